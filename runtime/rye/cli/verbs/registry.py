"""`rye registry push|pull|search|list|inspect|verify|yank|key|unpin`: sharing signed items."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rye.cli.process import EXIT_NO, EXIT_OK, EXIT_TRUST
from rye.cli.shared import project_of, require_person_or_key
from rye.cli.terminal import note, printable, tell, tell_rows, told_json
from rye.errors import UsageError
from rye.registry import browse, pull, push
from rye.registry.oci.store import RegistryTarget
from rye.registry.pull import PullOptions

_HELP = "`rye registry --help` says what each action takes."


def run_registry(args: SimpleNamespace) -> int:
    """Run `rye registry`; return its exit code."""
    target = RegistryTarget(project_of(args.project), args.registry, args.plain_http)
    return _ACTIONS[args.action](args, target)


def _one(args: SimpleNamespace) -> str:
    if len(args.words) != 1:
        raise UsageError("bad_arguments", f"{args.action} takes one word, not {len(args.words)}.", _HELP)
    return str(args.words[0])


def _some(args: SimpleNamespace) -> list[str]:
    if not args.words:
        raise UsageError("bad_arguments", f"{args.action} needs a word.", _HELP)
    return list(args.words)


def _push(args: SimpleNamespace, target: RegistryTarget) -> int:
    if args.type == "bundle":
        rows = push.push_bundle(target, _one(args), Path(args.folder) if args.folder else None)
    else:
        rows = push.push(target, args.type or "tool", _some(args), source=args.source)
    return tell_rows(args, rows, rows, ("status", "item_type", "item_id", "version", "signer", "digest"))


def _pull(args: SimpleNamespace, target: RegistryTarget) -> int:
    # Only with --pin: a pull alone gives no trust, but a pin decides whose key counts from now on.
    if args.pin:
        require_person_or_key("pin a namespace's key")
    options = PullOptions(args.destination, args.pin, args.allow_downgrade, args.overwrite)
    rows = pull.pull(target, args.type or "tool", _some(args), options)
    if not told_json(args, rows):
        for row in rows:
            _tell(row)
    # Others may be installed: the exit code still reports that one was refused, trust first.
    refused = [row for row in rows if row["status"] == "refused"]
    return EXIT_OK if not refused else EXIT_TRUST if any(row["trust"] for row in refused) else EXIT_NO


def _tell(row: dict[str, Any]) -> None:
    if row["status"] == "refused":
        note(f"{row['reference']} was refused ({row['code']}): {printable(row['error'])}")
        note(f"  {printable(row['hint'])}")
        return
    for warning in row["warnings"]:
        note(f"warning: {printable(warning)}")
    # The owner's name and the path come from outside: escaped for the terminal.
    signer = printable(f"signed by {row['signer']} ({row['owner']})")
    print(f"Installed {row['item_type']} {row['item_id']}:{row['version']}, {signer}: {printable(row['path'])}")
    for name in row["locked"]:
        print(f"Lockfile renewed: .ai/{printable(name)}")


def _search(args: SimpleNamespace, target: RegistryTarget) -> int:
    found = browse.search(target, " ".join(args.words), args.namespaces, args.type, args.limit)
    tell_rows(args, found, _marked(found["results"]), _COLUMNS)
    if found["total"] > len(found["results"]) and not args.json:
        note(f"{found['total'] - len(found['results']):,} more; --limit shows them.")
    return EXIT_OK if found["results"] else EXIT_NO


def _list(args: SimpleNamespace, target: RegistryTarget) -> int:
    rows = browse.rows(target, [*args.words, *args.namespaces], args.type)
    return tell_rows(args, rows, _marked(rows), _COLUMNS)


_COLUMNS = ("item_type", "item_id", "version", "yanked", "signer", "description")


def _marked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # A mark in place of True and False, which a reader would have to compare line by line.
    return [{**row, "yanked": "yanked" if row["yanked"] else ""} for row in rows]


def _inspect(args: SimpleNamespace, target: RegistryTarget) -> int:
    found = browse.inspect(target, args.type or "tool", _one(args), args.destination)
    lines = [f"{name}: {_shown(value)}" for name, value in found.items() if name not in ("diff", "items")]
    lines += [
        f"  {row['item_type']} {row['item_id']} {row['version']} {_shown(row.get('permissions', ''))}"
        for row in found.get("items", ())
    ]
    diff = ["", found["diff"]] if found.get("diff") else []
    return tell(args, found, "\n".join([*map(printable, lines), *diff]), EXIT_OK if found["verdict"] == "valid" else EXIT_TRUST)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else "" if value is None else str(value)


def _verify(args: SimpleNamespace, target: RegistryTarget) -> int:
    found = pull.verify(target, args.type or "tool", _one(args))
    for warning in () if args.json else found["warnings"]:
        note(f"warning: {printable(warning)}")
    said = f"valid: {found['item_type']} {found['item_id']}:{found['version']}, {found['signer']} ({found['owner']})"
    return tell(args, found, [said])


def _yank(args: SimpleNamespace, target: RegistryTarget) -> int:
    result = push.yank(target, args.type or "tool", _one(args), args.reason)
    said = f"Yanked {result['item_type']} {result['item_id']}:{result['version']}: whoever pulls it is warned."
    return tell(args, result, said)


def _key(args: SimpleNamespace, target: RegistryTarget) -> int:
    found = browse.key(target, args.type or "tool", _one(args))
    if told_json(args, found):
        return EXIT_OK
    # On standard error, so that standard output is the document alone and can go into a file.
    note(f"the full digest is {found['digest']}; compare it with its owner by another way.")
    print(found["document"], end="")
    return EXIT_OK


def _unpin(args: SimpleNamespace, _target: RegistryTarget) -> int:
    require_person_or_key("unpin a namespace's key")
    digest = pull.unpin(_one(args))
    content = {"namespace": args.words[0], "key_digest": digest}
    return tell(args, content, f"{args.words[0]} is no longer pinned to {digest}.")


_DOING: tuple[Callable[[SimpleNamespace, RegistryTarget], int], ...]
_DOING = (_push, _pull, _search, _list, _inspect, _verify, _yank, _key, _unpin)
_ACTIONS = {one.__name__[1:]: one for one in _DOING}
