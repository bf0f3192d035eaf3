"""`rye doctor`: what works on this machine and what does not, each with what to do about it."""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from rye.call import context
from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, print_json, printable, project_of
from rye.config import user_dirs
from rye.errors import RyeError
from rye.filesearch import ripgrep
from rye.lsp import servers
from rye.plain_class import Record, as_dict
from rye.sandbox import bubblewrap, limits, sandbox
from rye.trust import decisions, keys

if TYPE_CHECKING:
    from rye.mcp_server import settings_file

Status = Literal["ok", "note", "problem"]

# Extra of the package: (distribution that it brings, what it is for).
_EXTRAS = {
    "mcp": ("mcp", "the MCP server"),
    "web": ("html-to-markdown", "reading HTML pages"),
    "search": ("ddgs", "searching the web without a key"),
}
_MAX_SETTINGS = 8 << 20
_MAX_FILES = 5_000
_MUCH_STATE = 1 << 30
_PASSED_OVER = ("node_modules", "target", "build", "dist", "__pycache__", "venv")


class Finding(Record):
    """One line: what was looked at, whether it works, what was found, and what to do (nothing: nothing)."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def findings(project: str) -> list[Finding]:
    """Return what was found, part by part; a part that fails is a problem of its own."""
    found: list[Finding] = []
    for part in _PARTS:
        try:
            found += part(project)
        # The other parts must still run: a broken machine is when their findings are needed.
        except (RyeError, OSError) as err:
            name = part.__name__.strip("_").replace("_", " ")
            message, fix = (err.message, err.hint) if isinstance(err, RyeError) else (str(err), "")
            found.append(Finding(name, "problem", message, fix or "Fix what the message names."))
    return found


def _settings(_project: str) -> Iterator[Finding]:
    path = f"{user_dirs.user_ai()}/config/rye.yaml"
    # Reading one value parses the file, so that a broken one becomes a finding here.
    context.settings().get("sandbox.mode")
    yield Finding("settings", "ok", path if os.path.exists(path) else f"{path} does not exist: the defaults apply")


def _sandbox(project: str) -> Iterator[Finding]:
    why_not = sandbox.layers()
    mode = sandbox.effective(project).mode
    if mode == "off":
        yield Finding("sandbox", "problem", "switched off", "Remove `sandbox: {mode: off}` from ~/.ai/config/rye.yaml.")
    elif not why_not["bubblewrap"]:
        yield Finding("sandbox", "ok", "bubblewrap works")
    elif not why_not["landlock"]:
        detail = f"Landlock only, which does not protect names in the project; {why_not['bubblewrap']}"
        yield Finding("sandbox", "problem", detail, bubblewrap.advice())
    else:
        yield Finding("sandbox", "problem", f"none: {'; '.join(why_not.values())}", bubblewrap.advice())
    # Made and removed for real: whether control groups may be written shows only in the attempt.
    groups, why = limits.make(limits.wanted())
    limits.release(groups)
    fix = "Run rye in a systemd user session, or in a container that may write its control group."
    works = "memory and processes of a command are limited"
    yield Finding("limits", "note", why, fix) if why else Finding("limits", "ok", works)


def _ripgrep(project: str) -> Iterator[Finding]:
    program = ripgrep.locate(os.stat(project))
    if program:
        yield Finding("ripgrep", "ok", program)
    else:
        yield Finding("ripgrep", "problem", "not found: searches are slow", "pip install ripgrep, or install it as `rg`.")


def _extras(_project: str) -> Iterator[Finding]:
    for extra, (name, purpose) in _EXTRAS.items():
        try:
            yield Finding(f"extra {extra}", "ok", f"{purpose}: {name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            yield Finding(f"extra {extra}", "note", f"not installed: {purpose}", f"pip install 'rye-workspace[{extra}]'")


def _language_servers(project: str) -> Iterator[Finding]:
    # One line for a language, whatever suffixes its files have.
    found: dict[tuple[str, ...], Finding] = {}
    for suffix in sorted(_suffixes(project)):
        try:
            server = servers.server_for(project, f"file{suffix}")
        except RyeError as err:
            if err.code == "server_missing":
                found[(err.message,)] = Finding("language server", "note", err.message, err.hint)
        else:
            found[server.argv] = Finding("language server", "ok", f"{server.name}: {server.argv[0]}")
    yield from found.values()


def _suffixes(project: str) -> set[str]:
    """Return the file name endings of the project, of its first few thousand files."""
    found: set[str] = set()
    count = 0
    for _, folders, names in os.walk(project):
        # Changed in place: `os.walk` descends into what is left in the list.
        folders[:] = [one for one in folders if not one.startswith(".") and one not in _PASSED_OVER]
        found.update(os.path.splitext(name)[1] for name in names)
        count += len(names)
        if count > _MAX_FILES:
            break
    return found - {""}


def _keys(_project: str) -> Iterator[Finding]:
    private = keys.folder() / "private_key.pem"
    if not private.exists():
        yield Finding("signing key", "note", "none: needed only to sign your own items", "rye keys generate")
        return
    if stat.S_IMODE(private.stat().st_mode) & 0o077:
        yield Finding("signing key", "problem", f"{private} can be read by other users", f"chmod 600 {private}")
    shown = keys.show()
    if shown["trusted"]:
        yield Finding("signing key", "ok", shown["fingerprint"])
    else:
        yield Finding("signing key", "problem", "your own store does not trust it", "rye trust add, with its public key")


def _trust(_project: str) -> Iterator[Finding]:
    found = decisions.load()
    yield Finding("trust", "ok", f"{len(found.approvals)} approved keys, {len(found.revoked_keys)} revoked")


def _clients(project: str) -> Iterator[Finding]:
    from rye.mcp_server import client_config

    configured = False
    for client, place, section, syntax in client_config.places():
        path = os.path.join(project, place)
        for name, server in _servers_in(path, section, syntax):
            configured = True
            yield _client(client, path, name, server)
    if not configured:
        yield Finding("clients", "note", "no client is configured to start rye", "rye mcp install --client NAME")


def _client(client: str, path: str, name: str, server: dict[str, Any]) -> Finding:
    command = server.get("command", server.get("cmd", ""))
    words = command if isinstance(command, list) else [command, *server.get("args", [])]
    program = str(words[0]) if words else ""
    if program and shutil.which(program) is None:
        fix = f"rye mcp install --client {client} --write"
        return Finding(f"client {client}", "problem", f"{path}: {name} starts {program}, which cannot be run", fix)
    return Finding(f"client {client}", "ok", f"{path}: {name}")


def _servers_in(path: str, section: str, syntax: settings_file.Syntax) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the servers of a client's settings that are rye's, by name."""
    from rye.mcp_server import settings_file

    try:
        with open(path, "rb") as file:
            # Bounded: another program's file may be of any size.
            content = settings_file.parse(file.read(_MAX_SETTINGS).decode(), syntax)
    except (OSError, ValueError, RecursionError):
        # None there, or another program's trouble: nothing that can be said about rye.
        return
    servers = content.get(section)
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if isinstance(server, dict) and "rye" in f"{name} {server.get('command', server.get('cmd', ''))}".lower():
            yield name, server


def _state(_project: str) -> Iterator[Finding]:
    folder, size = f"{user_dirs.user_ai()}/state", 0
    for above, _, names in os.walk(folder):
        for name in names:
            try:
                # Blocks, not length: sparse files take less than they claim.
                size += os.lstat(f"{above}/{name}").st_blocks * 512
            except OSError:
                continue
    detail = f"{size / 1e6:.1f} MB of history, jobs and output in {folder}"
    fix = "Lower journal.max_bytes and outputs.max_bytes in ~/.ai/config/rye.yaml."
    yield Finding("state", "note", detail, fix) if size > _MUCH_STATE else Finding("state", "ok", detail)


_PARTS: tuple[Callable[[str], Iterator[Finding]], ...] = (
    _settings,
    _sandbox,
    _ripgrep,
    _extras,
    _language_servers,
    _keys,
    _trust,
    _clients,
    _state,
)
_SIGNS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit code 0 when nothing is a problem, 1 otherwise; a note is no problem."
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON, and nothing else")


def _run(args: argparse.Namespace) -> int:
    found = findings(project_of(args.project))
    problems = sum(one.status == "problem" for one in found)
    if args.json:
        print_json({"problems": problems, "findings": [as_dict(one) for one in found]})
        return EXIT_NO if problems else EXIT_OK
    for one in found:
        print(printable(f"{_SIGNS[one.status]} {one.name}: {one.detail}"))
        if one.fix:
            print(printable(f"        fix: {one.fix}"))
    print(f"{problems} problem{'' if problems == 1 else 's'}.", file=sys.stderr)
    return EXIT_NO if problems else EXIT_OK


VERBS = {"doctor": Verb("Check this machine: sandbox, programs, keys, clients; each problem with its fix.", _build, _run)}
