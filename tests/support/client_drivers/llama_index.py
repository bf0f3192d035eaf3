"""LlamaIndex: the tools of an MCP server as its own, called as its agents call them."""

import asyncio
import json
import sys

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

ORDER = json.loads(sys.argv[1])


async def main():
    more = {"timeout": 300} if ORDER["helped"] else {}
    client = BasicMCPClient(ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"], **more)
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client=client).to_tool_list_async()}
    results = [str(await tools[name].acall(**arguments)) for name, arguments in ORDER["steps"]]
    return {"offered": list(tools), "results": results}


print(json.dumps(asyncio.run(main())))
