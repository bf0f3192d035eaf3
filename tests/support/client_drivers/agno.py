"""agno: the tools of an MCP server as its own functions, called as its agents call them."""

import asyncio
import json
import sys

from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters

ORDER = json.loads(sys.argv[1])


async def main():
    server = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    async with MCPTools(
        server_params=server, transport="stdio", **({"timeout_seconds": 300} if ORDER["helped"] else {})
    ) as tools:
        known = {**tools.functions, **getattr(tools, "async_functions", {})}
        results = [
            str(getattr(done := await known[name].entrypoint(**given), "content", done)) for name, given in ORDER["steps"]
        ]
        return {"offered": list(known), "results": results}


print(json.dumps(asyncio.run(main())))
