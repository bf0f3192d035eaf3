"""`rye state` and `rye uninstall`: what is kept outside of projects, its size, and how it is removed or given back.

State is stored under the identity of a project's folder: it survives a rename on the same disk. A copy, a move to another
disk, or a restored backup is another folder; `adopt` gives such a folder the state of the one that is gone.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import confirm, project_of, require_person
from rye.cli.terminal import note, print_json, print_table, printable, size_text, told_json
from rye.config import stored_state, user_dirs
from rye.config.stored_state import StoredState
from rye.errors import RyeError, UsageError
from rye.line_ids import epochs
from rye.mcp_server import client_config, settings_file

# What belongs to running commands of one folder, or is made anew for each.
_NOT_MOVED = (user_dirs.PROJECT_FILE, user_dirs.MOUNTS_RECORD, "journal/index")


def run_state(args: SimpleNamespace) -> int:
    """Run `rye state`; return its exit code."""
    if args.action == "adopt":
        return _adopt(args.id, project_of(args.project))
    if args.action == "prune":
        return _prune(args.max_mb)
    states = _states()
    rows = list(map(_row, states))
    if not told_json(args, rows):
        _print(rows)
        print(f"{_stored(states)}.")
    return EXIT_OK


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    shown = []
    for row in rows:
        largest = sorted(row["kinds"].items(), key=lambda one: -one[1])[:3]
        kinds = ", ".join(f"{kind} {size_text(size)}" for kind, size in largest)
        status = "lost" if row["lost"] else "in use"
        shown.append({**row, "status": status, "size": size_text(row["bytes"]), "most_of_it": kinds, "used": row["used"][:10]})
    print_table(shown, ("id", "status", "used", "size", "changes", "most_of_it", "path"))


def _prune(max_mb: int | None) -> int:
    """Remove lost state, and what is beyond the bound; a person sees first what goes."""
    require_person("remove stored state")
    states = _states()
    # A command may run on what was used within the last hour.
    now, most = time.time(), float("inf") if max_mb is None else max_mb * 1e6
    removed = stored_state.removable(states, now - 3_600, now, most)
    if not removed:
        lost = sum(one.lost for one in states)
        print(
            f"Nothing to remove: {_stored(states)}, {f'{lost} lost, but used within the hour' if lost else 'none of it lost'}."
        )
        return EXIT_OK
    _print(list(map(_row, removed)))
    if not confirm(f"Remove {len(removed)} of {len(states)}, {size_text(sum(one.size for one in removed))}, for good?"):
        print("Nothing was removed.")
        return EXIT_NO
    for one in removed:
        stored_state.remove(one.key)
    print(f"{len(removed)} removed.")
    return EXIT_OK


def _states() -> list[StoredState]:
    # A project that was renamed since it was used last is not lost where one stands in it.
    with suppress(OSError, ValueError):
        here = project_of(None)
        if (stored_state.folder() / user_dirs.project_key(here)).is_dir():
            user_dirs.state_dir(here)
    # What a removal left behind has a hidden name.
    return [one for one in stored_state.stored_states() if not one.key.startswith(".")]


def _stored(states: Sequence[StoredState]) -> str:
    return f"{len(states)} stored, {size_text(sum(one.size for one in states))}"


def _row(one: StoredState) -> dict[str, Any]:
    return {
        "id": one.key,
        "path": one.path,
        "lost": one.lost,
        "changes": sum(1 for _ in (stored_state.folder() / one.key / "journal").glob("*.json")),
        "used": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.used)),
        "bytes": one.size,
        "kinds": dict(one.kinds),
        "busy": one.busy,
    }


def _adopt(state_id: str | None, project: str) -> int:
    require_person("adopt stored state")
    lost = {one.key: _row(one) for one in _states() if one.lost and one.key != user_dirs.project_key(project)}
    if state_id is None or state_id not in lost:
        known = ", ".join(lost) or "none is lost"
        why = f"There is no lost state {str(state_id)[:40]!r}."
        raise UsageError("state_not_found", why, f"`rye state list` shows them ({known}).")
    row = lost[state_id]
    print(f"{state_id}: {row['changes']} changes, made for {printable(row['path'] or 'an unknown folder')}.")
    if not confirm(f"Give it to {printable(os.path.realpath(project))}?"):
        print("Nothing was moved.")
        return EXIT_NO
    target = Path(user_dirs.state_dir(project))
    moved = adopt(target.parent / state_id, target)
    print(f"{moved} files were taken over. What this project had of its own is still there.")
    return EXIT_OK


def adopt(lost: Path, target: Path) -> int:
    """Move what a lost state holds into another; return how many files were moved.

    A file that the target has stays. Epochs of line IDs take the higher number, so that no ID of either comes back. The secret
    of the lost state is taken, since the line index in the project's own cache bears its seals.
    """
    moved = 0
    for source in sorted(one for one in lost.rglob("*") if one.is_file() and not one.is_symlink()):
        inner = source.relative_to(lost)
        place = target / inner
        if str(inner) in _NOT_MOVED or inner.suffix == ".lock":
            continue
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if inner.parts[0] == epochs.FILE:
            continue
        if not place.exists() or inner.name == "seal_secret":
            source.replace(place)
            moved += 1
    if (lost / epochs.FILE).is_file():
        epochs.merge(lost / epochs.FILE, target / epochs.FILE)
    # It is made anew from all entries.
    (target / "journal/index").unlink(missing_ok=True)
    # What is left has its like in the target, or belongs to the folder that is gone.
    with suppress(OSError):
        (lost / user_dirs.PROJECT_FILE).unlink()
    return moved


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
    rows = list(_kept())
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


def _kept() -> Iterator[dict[str, Any]]:
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
