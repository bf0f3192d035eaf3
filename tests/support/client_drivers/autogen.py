"""AutoGen: the tools of an MCP server in its workbench."""

import asyncio
import json
import sys

from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

ORDER = json.loads(sys.argv[1])


async def main():
    more = {"read_timeout_seconds": 300} if ORDER["helped"] else {}
    server = StdioServerParams(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"], **more)
    async with McpWorkbench(server) as bench:
        offered = [tool["name"] for tool in await bench.list_tools()]
        results = [(await bench.call_tool(name, given)).to_text() for name, given in ORDER["steps"]]
        return {"offered": offered, "results": results}


print(json.dumps(asyncio.run(main())))
