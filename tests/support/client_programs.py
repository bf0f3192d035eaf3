"""Programs that others wrote and that use the MCP server: how each is installed, told of the server, and driven by a script.

An agent (`Claude Code`, `pydantic-ai`) runs whole, with a model API on loopback that plays the script; its results are what it
sent to that API. A client library is driven by a few lines of its own language (`client_drivers/`); its results are what it gave.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.scripted_api import scripted_api

DRIVERS = Path(__file__).with_name("client_drivers")
RYE = [str(Path(sys.executable).with_name("rye"))]


class Program(NamedTuple):
    """One program: packages of its registry, and its driver or, for a command line, the name by which `rye mcp install` knows it.

    `setting` is what its user must set, and `value` to what; a driver sets it where it is `helped`.
    """

    title: str
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    driver: str = ""
    client: str = ""
    agent: bool = False
    setting: str = ""
    value: str = ""


_PROGRESS = {"setting": "`callTool(…, {onprogress, resetTimeoutOnProgress})`", "value": "`true`"}
PROGRAMS = {
    "claude-code": Program("Claude Code", npm=("@anthropic-ai/claude-code",), client="claude-code", agent=True),
    "codex": Program("Codex", npm=("@openai/codex",), client="codex", agent=True, setting="`mcp_servers.rye.required`, for `codex exec`", value="`true`"),
    "gemini-cli": Program("Gemini CLI", npm=("@google/gemini-cli",), client="gemini", agent=True, value="`true`", setting="trust of the folder: asked at its first start there, or `GEMINI_CLI_TRUST_WORKSPACE`"),
    "opencode": Program("OpenCode", npm=("opencode-ai",), client="opencode", agent=True),
    "openai-agents": Program("OpenAI Agents SDK", pip=("openai-agents",), driver="openai_agents", agent=True, value="`300`", setting="`MCPServerStdio(client_session_timeout_seconds=…)`"),
    "pydantic-ai": Program("Pydantic AI", pip=("pydantic-ai-slim[mcp,openai]",), driver="pydantic_ai", agent=True),
    "langchain": Program("LangChain, LangGraph", pip=("langchain-mcp-adapters", "langchain", "langchain-openai"), driver="langchain", agent=True),
    "smolagents": Program("smolagents", pip=("smolagents[mcp,openai]", "mcp<2"), driver="smolagents", agent=True, setting="none: its model must fill in every parameter"),
    "google-genai": Program("Google GenAI SDK", pip=("google-genai", "mcp<2"), driver="google_genai", agent=True),
    "fastmcp": Program("FastMCP client", pip=("fastmcp",), driver="fastmcp"),
    "llama-index": Program("LlamaIndex", pip=("llama-index-tools-mcp",), driver="llama_index", setting="`BasicMCPClient(timeout=…)`", value="`300`"),
    "crewai": Program("CrewAI", pip=("crewai-tools[mcp]", "crewai"), driver="crewai"),
    "python-sdk-1": Program("MCP Python SDK 1.x", pip=("mcp<2",), driver="python_sdk"),
    "python-sdk-2": Program("MCP Python SDK 2.x", pip=("mcp>=2.3",), driver="python_sdk"),
    "ts-sdk-1": Program("MCP TypeScript SDK 1.x", npm=("@modelcontextprotocol/sdk@1",), driver="ts_sdk.mjs", **_PROGRESS),
    "ts-client-2": Program("MCP TypeScript client 2.x", npm=("@modelcontextprotocol/client@2",), driver="ts_client.mjs", **_PROGRESS),
    "google-adk": Program("Google ADK", pip=("google-adk[mcp]",), driver="google_adk", setting="`StdioConnectionParams(timeout=…)`", value="`300`"),
    "agno": Program("agno", pip=("agno", "fastmcp>=4"), driver="agno", setting="`MCPTools(timeout_seconds=…)`", value="`300`"),
    "autogen": Program("AutoGen", pip=("autogen-ext[mcp]", "mcp<2"), driver="autogen", setting="`StdioServerParams(read_timeout_seconds=…)`", value="`300`"),
}  # fmt: skip


def install(name: str, folder: Path) -> str:
    """Install a program into a folder of its own, unless it is there; return "" or the reason why it cannot be had."""
    return installed(folder, npm=PROGRAMS[name].npm, pip=PROGRAMS[name].pip)


def installed(folder: Path, npm: tuple[str, ...] = (), pip: tuple[str, ...] = ()) -> str:
    """Install packages into a folder of its own, unless they are there; return "" or the reason why they cannot be had."""
    wanted, whole = " ".join((*npm, *pip)), folder / "done"
    if whole.exists() and whole.read_text() in (wanted, ""):
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    if npm:
        if not shutil.which("npm"):
            return "npm is not installed"
        commands = [["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *npm]]
    elif uv := shutil.which("uv"):
        commands = [[uv, "venv", "-q", "--allow-existing", "-p", sys.executable, f"{folder}/venv"]]
        commands += [[uv, "pip", "install", "-q", "-p", f"{folder}/venv/bin/python", *pip]]
    else:
        commands = [[sys.executable, "-m", "venv", f"{folder}/venv"]]
        commands += [[f"{folder}/venv/bin/python", "-m", "pip", "install", "-q", *pip]]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{wanted} cannot be installed: {' '.join(done.stderr.strip().splitlines()[-1:])[:200]}"
    whole.write_text(wanted)
    return ""


def folder_of(name: str, base: Path | str) -> Path:
    """Return where something is installed: below `RYE_CLIENTS`, which keeps it for the next run, or below a folder."""
    return Path(os.environ.get("RYE_CLIENTS") or base) / name


def python_with(name: str, base: Path, *packages: str) -> str:
    """Return a Python of its own that has some packages; the test is skipped where they cannot be installed."""
    folder = folder_of(name, base)
    if why := installed(folder, pip=packages):
        pytest.skip(why)
    return f"{folder}/venv/bin/python"


def version(name: str, folder: Path) -> str:
    """Return the version of the first package of a program."""
    program = PROGRAMS[name]
    if program.npm:
        package = program.npm[0].lstrip("@").partition("@")[0]
        package = f"@{package}" if program.npm[0].startswith("@") else package
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text(encoding="utf-8"))["version"])
    package = program.pip[0].partition("[")[0].partition("<")[0].partition(">")[0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([f"{folder}/venv/bin/python", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class Run(NamedTuple):
    """What became of a script: exit code, the tools offered, the text of each result, and what the program printed."""

    code: int | None
    offered: list[str]
    results: list[str]
    printed: str


def play(
    name: str, folder: Path, project: Path, home: Path, steps: list[Any], *, interrupt: Path | None = None, helped: bool = True
) -> Run:
    """Let a program make the calls of a script in a project.

    It is one of `PROGRAMS`, installed in a folder, and gets a home: its settings, and the user's space of rye. The steps are those of
    `scripted_api`. It is helped by what its user must set, or left at its defaults, and ended by Ctrl-C once the file `interrupt` is there.
    """
    home.mkdir(exist_ok=True)
    # smolagents gives its answer by a tool of its own.
    script = [*steps, ("final_answer", {"answer": "All done."})] if name == "smolagents" else steps
    with scripted_api(script, "All done.", fills=helped) as api:
        env = _environment(project, home, api.url) | ({"GEMINI_CLI_TRUST_WORKSPACE": "true"} if helped else {})
        words = _command(name, folder, project, home, env, api.url, steps, helped=helped)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(words, cwd=project, env=env, text=True, errors="replace", start_new_session=True, **streams)
        try:
            if interrupt is not None:
                _interrupt(process, interrupt)
            printed = process.communicate(timeout=400)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            printed = f"[no end after 400 s]\n{process.communicate()[0]}"
        if PROGRAMS[name].agent:
            return Run(process.returncode, api.offered, api.results, "\n".join([printed, *api.faults]))
    lines = [line for line in printed.splitlines() if line.startswith('{"offered"')]
    told = json.loads(lines[-1]) if lines else {"offered": [], "results": []}
    return Run(process.returncode, told["offered"], told["results"], printed)


def _interrupt(process: subprocess.Popen[str], when: Path) -> None:
    end = time.monotonic() + 120
    while not when.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        # As a terminal does: some programs run themselves again, and what they started first passes nothing on.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(15)
            return
        except subprocess.TimeoutExpired:
            continue


def _environment(project: Path, home: Path, url: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE")}
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "sk-script")
    # Nothing but the script is asked.
    quiet = ("OPENAI_AGENTS_DISABLE_TRACING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "OPENCODE_DISABLE_AUTOUPDATE")
    return {
        **kept, **keys, **dict.fromkeys((*quiet, "OPENCODE_DISABLE_MODELS_FETCH"), "1"),
        "HOME": str(home), "PWD": str(project), "USER_SPACE": str(home), "NO_PROXY": "*",
        "OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url,
    }  # fmt: skip


def _command(
    name: str, folder: Path, project: Path, home: Path, env: dict[str, str], url: str, steps: list[Any], *, helped: bool
) -> list[str]:
    program = PROGRAMS[name]
    if program.client:
        _configure(program.client, home, env, project, url, helped=helped)
        return [f"{folder}/node_modules/.bin/{_ARGUMENTS[program.client][0]}", *_ARGUMENTS[program.client][1:]]
    # These two hold an answer's fields to the schema that was listed.
    server = [*RYE, "mcp", "--project", str(project), *["--structured"] * (program.driver == "python_sdk")]
    order = json.dumps({"command": server, "env": {**env, "PATH": env.get("PATH", "")}, "steps": steps, "helped": helped})
    if program.driver.endswith(".mjs"):
        # Beside its packages, where Node.js looks for them.
        driver = shutil.copy(DRIVERS / program.driver, folder / program.driver)
        return ["node", str(driver), order]
    # Without its own folder on the path, and without this module's environment.
    code = "import sys; path = sys.argv.pop(1); exec(compile(open(path).read(), path, 'exec'))"
    return [f"{folder}/venv/bin/python", "-c", code, str(DRIVERS / "python_clients.py"), program.driver, order]


_ARGUMENTS = {
    "claude-code": ("claude", "-p", "Go.", "--allowedTools", "mcp__rye"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Go."),
    "gemini": ("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "Go."),
    "opencode": ("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "Go."),
}


def _configure(client: str, home: Path, env: dict[str, str], project: Path, url: str, *, helped: bool) -> None:
    """Tell a command line of the server as a user does, and of the scripted API; what an earlier run wrote goes."""
    (home / ".codex/config.toml").unlink(missing_ok=True)
    words = [*RYE, "mcp", "install", "--client", client, "--write"]
    done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if client == "codex":
        path = home / ".codex/config.toml"
        provider = f'[model_providers.script]\nname = "script"\nbase_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        # Without it a turn begins before a server that starts on a busy machine has listed its tools.
        servers = path.read_text().rstrip("\n") + ("\nrequired = true\n" if helped else "\n")
        path.write_text(f'model = "gpt-5"\nmodel_provider = "script"\n{provider}\n{servers}')
    elif client == "gemini":
        path = home / ".gemini/settings.json"
        more = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
        path.write_text(json.dumps(json.loads(path.read_text()) | more))
    elif client == "opencode":
        path = home / ".config/opencode/opencode.json"
        more = {"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": "sk-script"}}}}
        path.write_text(json.dumps(json.loads(path.read_text()) | more))
