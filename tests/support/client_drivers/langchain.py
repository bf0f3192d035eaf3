"""LangChain's adapters for MCP, in an agent of LangGraph's."""

import asyncio
import json
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

ORDER = json.loads(sys.argv[1])


async def main():
    server = {"transport": "stdio", "command": ORDER["command"][0], "args": ORDER["command"][1:], "env": ORDER["env"]}
    tools = await MultiServerMCPClient({"rye": server}).get_tools()
    agent = create_agent("openai:gpt-5", tools)
    found = await agent.ainvoke({"messages": [("user", "Go.")]}, {"recursion_limit": 60})
    return found["messages"][-1].text


print(asyncio.run(main()))
