"""The OpenAI Agents SDK with an MCP server. Its own limit of five seconds for an answer is raised, as its users must."""

import asyncio
import json
import sys

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

ORDER = json.loads(sys.argv[1])


async def main():
    params = {"command": ORDER["command"][0], "args": ORDER["command"][1:], "env": ORDER["env"]}
    more = {"client_session_timeout_seconds": 300} if ORDER["helped"] else {}
    async with MCPServerStdio(params=params, **more) as server:
        agent = Agent("Editor", model="gpt-5", mcp_servers=[server])
        return (await Runner.run(agent, "Go.", max_turns=30)).final_output


print(asyncio.run(main()))
