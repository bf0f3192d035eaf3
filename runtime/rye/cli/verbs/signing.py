"""`rye verify`, `rye sign`, `rye keys` and `rye skill`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rye.cli.process import EXIT_NO, EXIT_OK, EXIT_TRUST
from rye.cli.shared import project_of, require_person_or_key
from rye.cli.terminal import note, print_table, printable, tell, tell_rows, told_json
from rye.errors import ItemError, RyeError, UsageError
from rye.folders import signing
from rye.items import release_list, spaces
from rye.trust import keys
from rye.trust.verify import TrustStore

_MOST_INPUT = 16 << 20
_DENIED = 2
_HOOK_SECONDS = 20
_SKILL_COLUMNS = ("verdict", "skill", "host", "scope", "hint")


def run_verify(args: SimpleNamespace) -> int:
    """Run `rye verify`; return its exit code."""
    if args.hook is not None:
        return _hook()
    project = project_of(args.project)
    wanted = args.key is not None or args.signature is not None
    folders, targets = _folders(args, lambda one: wanted or signing.is_whole(one))
    everything = args.all or not args.targets
    store = spaces.trust_store(spaces.spaces(project), keys.named_documents(args.trust)) if folders else TrustStore()
    results = [signing.verify(one, store, key=args.key, signature=args.signature)[0] for one in folders]
    if targets or everything:
        from rye import api

        results += api.verify(targets, project_path=project, space=args.space, trust=args.trust, everything=everything)
    if not told_json(args, results):
        table = ({**row, "signer": _signer(row), "reason_and_next_step": row["hint"]} for row in results)
        _print_rows(results, table, "verdict", "valid")
        for row in results:
            if row.get("uncovered"):
                note(f"no signature covers these in {row['target']}: {printable(', '.join(row['uncovered'][:20]))}")
        if everything and not release_list.is_listed():
            note("the code of the package rye is not checked: this is no release, so there is no signed list of its files.")
    if not results:
        note("nothing to verify: there is no item. Name a file, a folder or an id.")
    if any(row["verdict"] != "valid" for row in results):
        return EXIT_TRUST
    return EXIT_OK if results else EXIT_NO


def run_sign(args: SimpleNamespace) -> int:
    """Run `rye sign`; return its exit code."""
    require_person_or_key("sign items", args.key, key_option=True)
    project = project_of(args.project)
    folders, targets = _folders(args, lambda one: not signing.holds_items(one))
    how = {"key": args.key, "signature": args.signature, "ignore": args.ignore, "links": args.allow_links}
    items = []
    try:
        if targets or args.all or not folders:
            from rye import api

            items = api.sign(targets, project_path=project, key=args.key, everything=args.all, space=args.space)
    except ItemError as err:
        # All targets are found before any is signed.
        raise ItemError(err.code, err.message, f"Nothing was signed. {err.hint}") from None
    results = [*(signing.sign(one, project, **how) for one in folders), *items]
    if not told_json(args, results):
        table = ({**row, "reason_and_next_step": " ".join(filter(None, (row["error"], row["hint"])))} for row in results)
        _print_rows(results, table, "status", "signed")
        for warning in (one for row in results for one in row.get("warnings", ())):
            note(printable(warning))
    if not results:
        note("nothing to sign: there is no item. Name a file, a folder or an id.")
    return EXIT_OK if results and all(row["status"] != "failed" for row in results) else EXIT_NO


def _hook() -> int:
    """Answer a hook. What goes wrong denies: exit code 2 is a refusal to its client."""
    import signal

    from rye.folders import gate

    def late(*_: object) -> None:
        # No exception: what runs may catch it and go on.
        os.write(2, b"The gate of skills found no answer in %d s, so it denies.\n" % _HOOK_SECONDS)
        os._exit(_DENIED)

    # A client lets pass what its hook does not answer in time, so a clone must not make the answer late.
    signal.signal(signal.SIGALRM, late)
    signal.alarm(_HOOK_SECONDS)
    try:
        data = sys.stdin.buffer.read(_MOST_INPUT)
        said = gate.answer(data, spaces.trust_store(spaces.spaces(project_of(None))))
    except Exception as err:  # noqa: BLE001  # a gate that failed open would let everything pass
        note(printable(str(err)) or type(err).__name__)
        return _DENIED
    finally:
        signal.alarm(0)
    if said:
        print(json.dumps(said))
    return EXIT_OK


def _folders(args: SimpleNamespace, whole: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the targets that are taken as whole folders, and the others."""
    folders = [one for one in args.targets if os.path.isdir(one) and whole(one)]
    if args.signature is not None and (len(folders), len(args.targets)) != (1, 1):
        raise UsageError("bad_option", "--signature is of one folder.", "Name that folder, and nothing else.")
    return folders, [one for one in args.targets if one not in folders]


def run_keys(args: SimpleNamespace) -> int:
    """Run `rye keys`; return its exit code."""
    if args.action != "generate" and args.owner is not None:
        raise UsageError("bad_option", f"`rye keys {args.action}` takes no --owner.", "Leave it out.")
    if args.action != "show":
        require_person_or_key("make a key that signs for them, or put theirs into a project")
    key = keys.generate(args.owner or "local") if args.action == "generate" else keys.show()
    if args.action == "export":
        key["exported"] = _export(key, project_of(args.project))
    names = [one for one in ("fingerprint", "digest", "owner", "public_key", "document", "exported") if one in key]
    tell(args, key, (f"{name.replace('_', ' '):<12} {key[name]}" for name in names))
    if args.json:
        return EXIT_OK
    if not key["trusted"]:
        note("this key does not count here: its document is missing or is another key's.")
    elif args.action == "generate":
        note("your colleagues' clones need the key, too: `rye keys export --project` puts it into a project.")
    elif args.action == "export":
        note("commit that file. Whoever clones the project runs `rye trust approve`, and asks you for the full digest.")
    return EXIT_OK


def _export(key: Mapping[str, Any], project: str) -> str:
    """Put the document of the user's key into a project, and return where it lies."""
    from rye.journal import own_files
    from rye.journal.own_files import OwnFile

    if not key["trusted"]:
        raise RyeError("no_key_document", f"Your key has no document {key['document']}.", "Run `rye trust add KEY.toml`.")
    path = os.path.join(os.path.realpath(project), ".ai", "trusted_keys", f"{key['fingerprint']}.toml")
    data = Path(key["document"]).read_bytes()
    if not os.path.isfile(path) or Path(path).read_bytes() != data:
        own_files.write([OwnFile(path, data, 0o644)], "rye/cli/keys", [project])
    return path


def run_skill(args: SimpleNamespace) -> int:
    """Run `rye skill`; return its exit code."""
    from rye.folders import skills

    project = project_of(args.project)
    names = args.words
    if args.action in ("add", "remove") and len(names) != 1:
        raise UsageError("bad_word", f"`rye skill {args.action}` takes one skill.", "Name it; --help shows how.")
    if args.action == "remove":
        scope = args.user or None
        gone = [{"removed": one} for one in skills.remove(names[0], project, host=args.host, user=scope)]
        return tell_rows(args, gone, gone, ("removed",))
    store = spaces.trust_store(spaces.spaces(project), keys.named_documents(args.trust))
    if args.action == "add":
        host = args.host or "agents"
        row = skills.add(names[0], project, store, host=host, user=args.user)
        rows = [_skill_row(row, row["path"], host, "user" if args.user else "project")]
        tell_rows(args, rows, rows, _SKILL_COLUMNS)
        for one in row["fetches"]:
            note(f"it fetches code when it is started: {printable(one)}")
        return EXIT_OK
    found = [
        _skill_row(skills.verify(path, store)[0] | {"path": path, "fetches": skills.fetches(path)}, path, host, scope)
        for path, host, scope in skills.folders(project, args.host)
        if not names or os.path.basename(path.rstrip("/")) in names
    ]
    tell_rows(args, found, found, _SKILL_COLUMNS)
    if missing := set(names) - {row["skill"] for row in found}:
        note(f"there is no skill {printable(', '.join(sorted(missing)))}.")
    refused = [row for row in found if not skills.allowed(row, project)]
    if args.action == "verify" and refused:
        return EXIT_TRUST
    return EXIT_NO if missing else EXIT_OK


def _skill_row(row: dict[str, Any], path: str, host: str, scope: str) -> dict[str, Any]:
    from rye.folders import skills

    return {"skill": os.path.basename(path.rstrip("/")), "host": host, "scope": scope, **row, "faults": skills.faults(path)}


def _signer(row: Mapping[str, Any]) -> str:
    """Show a name only for a proven signature; a bare fingerprint is what the line claims."""
    return " ".join(filter(None, (row["signer"], f"({row['owner']})" if row["owner"] else "")))


def _print_rows(rows: list[dict[str, Any]], table: Iterable[Mapping[str, Any]], outcome: str, first: str) -> None:
    if not rows:
        return
    print_table(table, (outcome, "target", "signer", "reason_and_next_step"))
    counts = Counter(row[outcome] for row in rows)
    # The good outcome first, the rest by name.
    order = sorted(counts, key=lambda name: (name != first, name))
    print(f"{len(rows):,} file{'s' * (len(rows) != 1)}: {', '.join(f'{counts[name]:,} {name}' for name in order)}.")
