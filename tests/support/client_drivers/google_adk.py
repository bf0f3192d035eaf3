"""Google's Agent Development Kit: the tools of an MCP server, called as its agents call them."""

import asyncio
import json
import sys

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters

ORDER = json.loads(sys.argv[1])


async def main():
    server = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    more = {"timeout": 300} if ORDER["helped"] else {}
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=server, **more))
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    results = [json.dumps(await tools[name].run_async(args=given, tool_context=None)) for name, given in ORDER["steps"]]
    await toolset.close()
    return {"offered": list(tools), "results": results}


print(json.dumps(asyncio.run(main())))
