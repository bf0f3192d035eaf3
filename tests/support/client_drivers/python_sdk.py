"""The Python SDK, 1.x or 2.x: list the tools, make the calls."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ORDER = json.loads(sys.argv[1])


async def main():
    server = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        offered = [tool.name for tool in (await session.list_tools()).tools]
        results = []
        for name, arguments in ORDER["steps"]:
            found = await session.call_tool(name, arguments)
            results.append("\n".join(part.text for part in found.content))
        return {"offered": offered, "results": results}


print(json.dumps(asyncio.run(main())))
