"""Pydantic AI with an MCP server."""

import asyncio
import json
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

ORDER = json.loads(sys.argv[1])


async def main():
    transport = StdioTransport(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    server = MCPToolset(transport)
    agent = Agent("openai:gpt-5", toolsets=[server])
    async with agent:
        return (await agent.run("Go.")).output


print(asyncio.run(main()))
