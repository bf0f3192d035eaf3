"""FastMCP's client: list the tools, make the calls; a failed one raises there, so what it says is taken from the error."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

ORDER = json.loads(sys.argv[1])


async def main():
    transport = StdioTransport(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    async with Client(transport) as client:
        offered = [tool.name for tool in await client.list_tools()]
        results = []
        for name, arguments in ORDER["steps"]:
            try:
                found = await client.call_tool(name, arguments)
                results.append("\n".join(part.text for part in found.content))
            except ToolError as err:
                results.append(f"raised: {err}")
        return {"offered": offered, "results": results}


print(json.dumps(asyncio.run(main())))
