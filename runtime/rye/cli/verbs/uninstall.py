"""`rye uninstall`: what is kept outside of the program, and the removal of what is asked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import confirm, require_person
from rye.cli.terminal import note, print_json, print_table, printable, size_text
from rye.config import stored_state, user_dirs
from rye.errors import RyeError, UsageError
from rye.mcp_server import client_config, settings_file

# Option: folders of the user's `.ai`, and what they hold. The `.ai` may serve other programs: what is not named here stays.
_FOLDERS: Final = {
    "state": (("state",), "the record of changes (without it nothing can be undone), jobs, line IDs"),
    "keys": (("keys",), "your private key: nobody can sign as you afterwards, nor can you"),
    "trust": (("trust", "trusted_keys"), "keys that you trust, approvals, revocations, pins"),
    "settings": (("config",), "your settings and secrets"),
    "items": (("tools", "knowledge", "directives", "lockfiles", "bundles", "registry"), "items of your own"),
    "caches": (("cache",), "made again when needed"),
}
_KINDS: Final = (*_FOLDERS, "clients")


def run_uninstall(args: SimpleNamespace) -> int:
    """Run `rye uninstall`; return its exit code."""
    rows = list(_rows())
    wanted = {kind for kind in _KINDS if args.all or getattr(args, kind)}
    going = [row for row in rows if row["kind"] in wanted]
    if args.json and not wanted:
        print_json(rows)
        return EXIT_OK
    if not wanted:
        print_table([_in_table(row) for row in rows], ("kind", "size", "path", "what"))
        print(f"Nothing was removed. `rye uninstall --{' --'.join(_KINDS)}` removes what you name, --all all but `yours`.")
        print(f"The program itself: {_program()}")
        return EXIT_OK
    require_person("remove what rye keeps")
    if not going:
        print("Nothing of this kind is kept; nothing was removed.")
        return EXIT_OK
    if "state" in wanted and (busy := [one for one in stored_state.stored_states() if one.busy]):
        what = f"A background job still runs in {printable(busy[0].path)}."
        raise UsageError("job_running", what, "Wait for it, or end it with `rye job`.")
    print_table([_in_table(row) for row in going], ("kind", "size", "path", "what"))
    if not args.yes and not confirm(f"Remove {'this' if len(going) == 1 else f'these {len(going)}'} for good?"):
        print("Nothing was removed.")
        return EXIT_NO
    failed = [f"{row['path']}: {why}" for row in going if (why := _removed(row))]
    for line in failed:
        note(printable(line))
    print(f"{len(going) - len(failed)} removed. The program itself: {_program()}")
    return EXIT_NO if failed else EXIT_OK


def _in_table(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "size": size_text(row["bytes"])}


def _rows() -> Iterator[dict[str, Any]]:
    """Yield what is kept: folders of the user's space, entries of clients, caches of projects; and what is never removed."""
    for kind, (names, what) in _FOLDERS.items():
        for name in names:
            path = f"{user_dirs.user_ai()}/{name}"
            if os.path.lexists(path):
                yield {"kind": kind, "path": path, "bytes": _bytes_in(path), "what": what}
    yield from _clients("", "user", "clients", "starts the server")
    for one in stored_state.stored_states():
        # Another folder may stand at the path of a lost one.
        if one.lost or os.path.join(os.path.realpath(one.path), ".ai") == user_dirs.user_ai():
            continue
        own = os.path.join(os.path.realpath(one.path), ".ai")
        cache = os.path.join(own, "cache")
        # A link could lead the removal elsewhere.
        if os.path.isdir(cache) and os.path.realpath(cache) == cache:
            yield {"kind": "caches", "path": cache, "bytes": _bytes_in(cache), "what": "line index, made again when needed"}
        if os.path.isdir(own) and any(name != "cache" for name in os.listdir(own)):
            yield {"kind": "yours", "path": own, "bytes": _bytes_in(own), "what": "items of the project, which stay"}
        yield from _clients(
            one.path, "project", "yours", "starts the server here; `rye mcp uninstall --scope project` takes it out"
        )


def _clients(project: str, scope: client_config.Scope, kind: str, what: str) -> Iterator[dict[str, Any]]:
    for name, of, path in client_config.places(project):
        one = client_config.CLIENTS[name]
        if of == scope and settings_file.member(path, one.syntax, (one.section, client_config.NAME)) is not None:
            yield {"kind": kind, "path": path, "bytes": 0, "what": f"{name} {what}", "client": name}


def _removed(row: dict[str, Any]) -> str:
    """Remove what a row names; return why that failed, or nothing."""
    try:
        if row["kind"] == "clients":
            client_config.remove(row["client"], "user", os.getcwd())
        elif os.path.islink(row["path"]):
            os.unlink(row["path"])
        else:
            shutil.rmtree(row["path"])
    except (RyeError, OSError) as err:
        return str(err)
    return ""


def _bytes_in(folder: str) -> int:
    return sum(os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names)


def _program() -> str:
    """Return what removes the package itself, as it was installed."""
    if f"{os.sep}pipx{os.sep}" in sys.prefix:
        return "pipx uninstall rye-workspace"
    return f"{sys.executable} -m pip uninstall rye-workspace"
