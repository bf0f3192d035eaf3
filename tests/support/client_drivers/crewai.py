"""CrewAI: the tools of an MCP server as its own, which hold every argument to the schema, called as its agents call them."""

import json
import sys

from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters

ORDER = json.loads(sys.argv[1])


def main():
    server = StdioServerParameters(command=ORDER["command"][0], args=ORDER["command"][1:], env=ORDER["env"])
    with MCPServerAdapter(server, connect_timeout=60) as tools:
        known = {tool.name: tool for tool in tools}
        results = []
        for name, given in ORDER["steps"]:
            try:
                results.append(str(known[name].run(**given)))
            except Exception as err:
                results.append(f"{type(err).__name__}: {err}")
        return {"offered": list(known), "results": results}


print(json.dumps(main()), flush=True)
