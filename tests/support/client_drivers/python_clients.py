"""Clients and agents in Python, one function for each; runs in the environment of the one that is named: NAME ORDER.

A client library is told the calls, and prints what was offered and what came back. An agent is told `Go.`, asks the scripted API for
its calls, and its last word is printed.
"""

import asyncio
import json
import sys

ORDER = json.loads(sys.argv[2])
COMMAND, *ARGUMENTS = ORDER["command"]
STEPS = ORDER["steps"]


def parameters(kind=None, **more):
    if kind is None:
        from mcp import StdioServerParameters as kind
    return kind(command=COMMAND, args=ARGUMENTS, env=ORDER["env"], **more)


def patient(name):
    """What its user must set; at its defaults nothing."""
    return {name: 300} if ORDER["helped"] else {}


def told(offered, results):
    return json.dumps({"offered": list(offered), "results": results})


async def agno():
    from agno.tools.mcp import MCPTools

    async with MCPTools(server_params=parameters(), transport="stdio", **patient("timeout_seconds")) as tools:
        known = {**tools.functions, **getattr(tools, "async_functions", {})}
        results = [str(getattr(done := await known[name].entrypoint(**given), "content", done)) for name, given in STEPS]
        return told(known, results)


async def autogen():
    from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

    async with McpWorkbench(parameters(StdioServerParams, **patient("read_timeout_seconds"))) as bench:
        offered = [tool["name"] for tool in await bench.list_tools()]
        return told(offered, [(await bench.call_tool(name, given)).to_text() for name, given in STEPS])


async def crewai():
    from crewai_tools import MCPServerAdapter

    with MCPServerAdapter(parameters(), connect_timeout=60) as tools:
        known = {tool.name: tool for tool in tools}
        results = []
        for name, given in STEPS:
            try:
                results.append(str(known[name].run(**given)))
            except Exception as err:
                results.append(f"{type(err).__name__}: {err}")
        return told(known, results)


async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    async with Client(parameters(StdioTransport)) as client:
        offered = [tool.name for tool in await client.list_tools()]
        found = [await client.call_tool(name, given, raise_on_error=False) for name, given in STEPS]
        return told(offered, ["\n".join(part.text for part in one.content) for one in found])


async def google_adk():
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams

    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=parameters(), **patient("timeout")))
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    results = [json.dumps(await tools[name].run_async(args=given, tool_context=None)) for name, given in STEPS]
    await toolset.close()
    return told(tools, results)


async def google_genai():
    from google import genai
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async with stdio_client(parameters()) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        # As a dict: the library copies the members of its own class deeply, which a session does not bear.
        config = {"tools": [session], "automatic_function_calling": {"maximum_remote_calls": 30}}
        client = genai.Client()
        return (await client.aio.models.generate_content(model="gemini-2.5-flash", contents="Go.", config=config)).text


async def langchain():
    from langchain.agents import create_agent
    from langchain_mcp_adapters.client import MultiServerMCPClient

    tools = await MultiServerMCPClient({"rye": parameters(dict, transport="stdio")}).get_tools()
    found = await create_agent("openai:gpt-5", tools).ainvoke({"messages": [("user", "Go.")]}, {"recursion_limit": 60})
    return found["messages"][-1].text


async def llama_index():
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    client = BasicMCPClient(COMMAND, args=ARGUMENTS, env=ORDER["env"], **patient("timeout"))
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client=client).to_tool_list_async()}
    return told(tools, [str(await tools[name].acall(**given)) for name, given in STEPS])


async def openai_agents():
    from agents import Agent, Runner
    from agents.mcp import MCPServerStdio

    async with MCPServerStdio(params=parameters(dict), **patient("client_session_timeout_seconds")) as server:
        agent = Agent("Editor", model="gpt-5", mcp_servers=[server])
        return (await Runner.run(agent, "Go.", max_turns=30)).final_output


async def pydantic_ai():
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset

    async with Agent("openai:gpt-5", toolsets=[MCPToolset(parameters(StdioTransport))]) as agent:
        return (await agent.run("Go.")).output


async def python_sdk():
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async with stdio_client(parameters()) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        offered = [tool.name for tool in (await session.list_tools()).tools]
        found = [await session.call_tool(name, given) for name, given in STEPS]
        return told(offered, ["\n".join(part.text for part in one.content) for one in found])


async def smolagents():
    from smolagents import MCPClient, OpenAIModel, ToolCallingAgent

    with MCPClient(parameters(), structured_output=False) as tools:
        return ToolCallingAgent(tools, OpenAIModel("gpt-5"), max_steps=30).run("Go.")


print(asyncio.run(globals()[sys.argv[1]]()), flush=True)
