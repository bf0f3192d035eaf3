"""`rye doctor`: what works on this machine and what does not, each with what to do about it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from types import SimpleNamespace
from typing import Any, Literal

from rye.cli import terminal
from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import clone, install_command, is_installed, project_of
from rye.cli.terminal import printable, told_json
from rye.config import layers, settings, stored_state, user_dirs
from rye.errors import RyeError
from rye.filesearch import ripgrep
from rye.items import sign_verify, spaces, targets
from rye.lsp import servers
from rye.plain_class import Record, as_dict
from rye.sandbox import bubblewrap, resource_limits, sandbox
from rye.trust import decisions, keys
from rye.trust.verify import TrustStore

Status = Literal["ok", "note", "problem"]

# Extra of the package: (distributions that it brings, what it is for).
_EXTRAS = {
    "mcp": (("mcp",), "the MCP server"),
    "review": (("starlette", "jinja2", "pygments"), "the pages of rye review"),
    "pdf": (("pypdf",), "reading PDFs"),
    "search": (("ddgs",), "searching the web without a key"),
    "fleet": (("distributed",), "calls in many workspaces, rye fleet"),
}
_MAX_FILES = 5_000
_MUCH_STATE = 1 << 30
_PASSED_OVER = ("node_modules", "target", "build", "dist", "__pycache__", "venv")


class Diagnosis(Record):
    """One line: what was looked at, whether it works, what was found, and what to do (nothing: nothing)."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def findings(project: str) -> list[Diagnosis]:
    """Return what was found, part by part; a part that fails is a problem of its own."""
    found: list[Diagnosis] = []
    for part in _PARTS:
        try:
            found += part(project)
        # The other parts must still run: a broken machine is when their findings are needed.
        except (RyeError, OSError) as err:
            name = part.__name__.strip("_").replace("_", " ")
            message, fix = (err.message, err.hint) if isinstance(err, RyeError) else (str(err), "")
            found.append(Diagnosis(name, "problem", message, fix or "Fix what the message names."))
    return found


def _installation(_project: str) -> Iterator[Diagnosis]:
    from rye._version import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    yield Diagnosis("rye", "ok", f"{__version__}, Python {version}, in {sys.prefix}")
    own, found = os.path.join(os.path.dirname(sys.executable), "rye"), shutil.which("rye")
    if found is None:
        yield Diagnosis(
            "path", "note", "`rye` is not on the PATH", f"export PATH={os.path.dirname(own)}:$PATH, or activate the environment"
        )
    elif os.path.exists(own) and not os.path.samefile(found, own):
        yield Diagnosis("path", "note", f"`rye` on the PATH is another one: {found}", f"Call {own}, or put its folder first.")


def _settings(project: str) -> Iterator[Diagnosis]:
    path = f"{user_dirs.user_ai()}/config/rye.yaml"
    files = ((layers.own(path), path), layers.of_project(project, "rye.yaml"))
    wrong = [err for content, where in files for _, err in settings.faults(content, where)]
    yield from (Diagnosis("settings", "problem", err.message, err.hint) for err in wrong)
    for name in layers.SHAPES:
        # Whatever is wrong in one of these becomes a finding, too.
        layers.load(project, name)
    if not wrong:
        yield Diagnosis("settings", "ok", path if os.path.exists(path) else f"{path} does not exist: the defaults apply")


def _sandbox(project: str) -> Iterator[Diagnosis]:
    why_not = sandbox.layers()
    mode = sandbox.effective(project).mode
    if mode == "off":
        yield Diagnosis("sandbox", "problem", "switched off", "Remove `sandbox: {mode: off}` from ~/.ai/config/rye.yaml.")
    elif not why_not["bubblewrap"]:
        yield Diagnosis("sandbox", "ok", "bubblewrap works")
    elif not why_not["landlock"]:
        detail = f"Landlock only, which does not protect names in the project; {why_not['bubblewrap']}"
        yield Diagnosis("sandbox", "problem", detail, bubblewrap.advice())
    else:
        yield Diagnosis("sandbox", "problem", f"none: {'; '.join(why_not.values())}", bubblewrap.advice())
    if sandbox.loads_from(os.path.realpath(project)):
        detail = f"{sandbox.OWN_PROJECT}: what a command changes of it runs outside the sandbox"
        yield Diagnosis("sandbox", "note", detail, "Install it in an environment of its own, elsewhere.")
    # Made and removed for real: whether control groups may be written shows only in the attempt.
    groups, why = resource_limits.make(resource_limits.configured())
    resource_limits.release(groups)
    fix = "Run rye in a systemd user session, or in a container that may write its control group."
    works = "memory and processes of a command are limited"
    yield Diagnosis("limits", "note", why, fix) if why else Diagnosis("limits", "ok", works)


def _ripgrep(project: str) -> Iterator[Diagnosis]:
    program = ripgrep.locate(os.stat(project))
    if program:
        yield Diagnosis("ripgrep", "ok", program)
    else:
        yield Diagnosis("ripgrep", "problem", "not found: searches are slow", "pip install ripgrep, or install it as `rg`.")


def _extras(_project: str) -> Iterator[Diagnosis]:
    for extra, (names, purpose) in _EXTRAS.items():
        missing = [name for name in names if not is_installed(name)]
        if missing:
            detail = f"not installed: {purpose} (missing: {', '.join(missing)})"
            yield Diagnosis(f"extra {extra}", "note", detail, install_command(extra))
        else:
            yield Diagnosis(
                f"extra {extra}", "ok", f"{purpose}: {', '.join(f'{one} {metadata.version(one)}' for one in names)}"
            )


def _language_servers(project: str) -> Iterator[Diagnosis]:
    # One line for a language, whatever suffixes its files have.
    found: dict[tuple[str, ...], Diagnosis] = {}
    for suffix in sorted(_suffixes(project)):
        try:
            server = servers.server_for(project, f"file{suffix}")
        except RyeError as err:
            if err.code == "server_missing":
                found[(err.message,)] = Diagnosis("language server", "note", err.message, err.hint)
        else:
            found[server.argv] = Diagnosis("language server", "ok", f"{server.name}: {server.argv[0]}")
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


def _keys(_project: str) -> Iterator[Diagnosis]:
    private = keys.folder() / "private_key.pem"
    if not private.exists():
        yield Diagnosis("signing key", "note", "none: needed only to sign your own items", "rye keys generate")
        return
    if stat.S_IMODE(private.stat().st_mode) & 0o077:
        yield Diagnosis("signing key", "problem", f"{private} can be read by other users", f"chmod 600 {private}")
    shown = keys.show()
    if shown["trusted"]:
        yield Diagnosis("signing key", "ok", shown["fingerprint"])
    else:
        yield Diagnosis("signing key", "problem", "your own store does not trust it", "rye trust add, with its public key")


def _trust(project: str) -> Iterator[Diagnosis]:
    found = decisions.load()
    search_path = spaces.spaces(project)
    store = spaces.trust_store(search_path)
    yield Diagnosis("trust", "ok", f"keys that count here: {len(store.keys)}, revoked: {len(found.revoked_keys)}")
    for problem in store.problems:
        yield Diagnosis("trust", "problem", str(problem), "Remove the file, or write the key again with `rye trust add`.")
    pending = sum(one.role == "project" for one in store.proposed)
    if pending:
        fix = "rye trust approve: it shows what each would admit, and asks"
        text = f"{pending} key{'s' * (pending != 1)} of this project await{'s' * (pending == 1)} your decision"
        yield Diagnosis("trust", "note", text, fix)
    yield from _items(search_path, store)


def _items(search_path: Sequence[spaces.Space], store: TrustStore) -> Iterator[Diagnosis]:
    """Yield what does not verify, space by space: an unsigned item is being written, any other has a story."""
    for space in search_path:
        rows = list(sign_verify.verify(targets.all_targets([space]), store))
        bad = Counter(row["verdict"] for row in rows if row["verdict"] != "valid")
        if not bad:
            if rows:
                yield Diagnosis("items", "ok", f"all {len(rows)} of the {space.name} space verify")
            continue
        counted = ", ".join(f"{number} {verdict}" for verdict, number in sorted(bad.items()))
        status: Status = "note" if set(bad) == {"unsigned"} and space.name != "system" else "problem"
        fix = f"rye verify --all --space {space.name}: it names each, and what to do"
        yield Diagnosis(
            "items", status, f"{sum(bad.values())} of {len(rows)} of the {space.name} space do not verify: {counted}", fix
        )


def _clients(project: str) -> Iterator[Diagnosis]:
    from rye.cli.verbs.mcp import started_by
    from rye.mcp_server import client_config, settings_file

    configured = False
    for client, _scope, path in client_config.places(project):
        one = client_config.CLIENTS[client]
        try:
            servers = settings_file.content(path, one.syntax).get(one.section)
        # Another program's file, of any content; it must not end the look at the others.
        except (OSError, ValueError, RecursionError, RyeError) as err:
            fix = f"Correct it: {client} cannot read it, either."
            yield Diagnosis(f"client {client}", "note", f"{path} cannot be read: {err}", fix)
            continue
        for name, server in servers.items() if isinstance(servers, dict) else ():
            if isinstance(server, dict) and "rye" in f"{name} {server.get('command', server.get('cmd', ''))}".lower():
                configured = True
                yield _client(client, path, name, server)
                if client == "gemini" and not _is_trusted_by_gemini(project):
                    why = "it starts no server in a folder that it does not trust, and it was not told to trust this one"
                    fix = "Choose so in gemini (/permissions), or set GEMINI_CLI_TRUST_WORKSPACE=true."
                    yield Diagnosis("client gemini", "note", why, fix)
    ours = [started_by(uvx=uvx) for uvx in (False, True) if clone() or not uvx]
    for path, programs in ((client_config.gate_path("project", project), ours), (client_config.gate_path("user", project), ())):
        if events := client_config.gates(path, *programs):
            off = client_config.hooks_off(project)
            fix = f"Take disableAllHooks out of {off}: Claude Code asks no hook." if off else ""
            yield Diagnosis("gate of skills", "problem" if off else "ok", f"{path}: {', '.join(events)}", fix)
    if not configured:
        yield Diagnosis("clients", "note", "no client is configured to start rye", "rye mcp install --client NAME")


def _client(client: str, path: str, name: str, server: dict[str, Any]) -> Diagnosis:
    command = server.get("command", server.get("cmd", ""))
    words = command if isinstance(command, list) else [command, *server.get("args", [])]
    program = str(words[0]) if words else ""
    fix = f"rye mcp install --client {client} --write"
    named = str(words[words.index("--project") + 1]) if "--project" in words[:-1] else ""
    if os.path.isabs(named) and not os.path.isdir(named):
        return Diagnosis(f"client {client}", "problem", f"{path}: {name} serves {named}, which is not there", fix)
    if program and shutil.which(program) is None:
        return Diagnosis(f"client {client}", "problem", f"{path}: {name} starts {program}, which cannot be run", fix)
    # Of a project's file, which a clone may have brought, the name says nothing.
    started = " ".join(map(str, words)) if program else server.get("url", server.get("httpUrl", ""))
    with_env = f", with {', '.join(server['env'])}" if isinstance(server.get("env"), dict) and server["env"] else ""
    return Diagnosis(f"client {client}", "ok", f"{path}: {name} starts {started}{with_env}")


def _is_trusted_by_gemini(project: str) -> bool:
    """Tell whether Gemini CLI trusts the project's very folder; one above it may count as well."""
    from rye.mcp_server import settings_file

    own = os.path.expanduser("~/.gemini")
    path = os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or f"{own}/trustedFolders.json"
    return (
        os.environ.get("GEMINI_CLI_TRUST_WORKSPACE") == "true"
        or settings_file.member(f"{own}/settings.json", "json", ("security", "folderTrust", "enabled")) is False
        or settings_file.member(path, "json", (os.path.realpath(project),)) == "TRUST_FOLDER"
    )


def _state(project: str) -> Iterator[Diagnosis]:
    folder = stored_state.folder()
    size = sum(one.size for one in stored_state.stored_states())
    try:
        # For real: permissions, a full disk and a read-only file system show only in the attempt.
        with tempfile.TemporaryFile(dir=user_dirs.state_dir(project)) as file:
            file.write(b"x" * 4_096)
            file.flush()
    except OSError as err:
        fix = f"Make {folder} writable, free the disk, or set USER_SPACE to a folder that can be written."
        yield Diagnosis(
            "state", "problem", f"{folder} cannot be written ({err.strerror}): nothing can be undone, no job starts", fix
        )
        return
    detail = f"{size / 1e6:.1f} MB of history, jobs and output in {folder}"
    fix = "Lower journal.max_bytes and outputs.max_bytes in ~/.ai/config/rye.yaml."
    yield Diagnosis("state", "note", detail, fix) if size > _MUCH_STATE else Diagnosis("state", "ok", detail)


_PARTS = (_installation, _settings, _sandbox, _ripgrep, _extras, _language_servers, _keys, _trust, _clients, _state)
_SIGNS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def run_doctor(args: SimpleNamespace) -> int:
    """Run `rye doctor`; return its exit code."""
    found = findings(project_of(args.project))
    problems = sum(one.status == "problem" for one in found)
    if told_json(args, {"problems": problems, "findings": [as_dict(one) for one in found]}):
        return EXIT_NO if problems else EXIT_OK
    for one in found:
        sign = terminal.styled(_SIGNS[one.status].ljust(7), one.status, sys.stdout)
        print(f"{sign} {printable(f'{one.name}: {one.detail}')}")
        if one.fix:
            print(printable(f"        fix: {one.fix}"))
    # Before the last line, which goes to another stream.
    sys.stdout.flush()
    print(f"{problems} problem{'' if problems == 1 else 's'}.", file=sys.stderr)
    return EXIT_NO if problems else EXIT_OK
