"""smolagents with an MCP server."""

import json
import sys

from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

ORDER = json.loads(sys.argv[1])
SERVER = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
with MCPClient(SERVER, structured_output=False) as tools:
    print(ToolCallingAgent(tools, OpenAIModel("gpt-5"), max_steps=30).run("Go."))
