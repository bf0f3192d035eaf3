"""Google's library with an MCP session among its tools: it calls them by itself."""

import asyncio
import json
import sys

from google import genai
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

ORDER = json.loads(sys.argv[1])


async def main():
    server = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        # As a dict: the library copies the members of its own class deeply, which a session does not bear.
        config = {"tools": [session], "automatic_function_calling": {"maximum_remote_calls": 30}}
        client = genai.Client()
        return (await client.aio.models.generate_content(model="gemini-2.5-flash", contents="Go.", config=config)).text


print(asyncio.run(main()))
