"""`rye trust list|add|approve|revoke|show`: whose items may run, decided by the user."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye.cli.presence import confirm, require_person_or_key
from rye.cli.verbs import EXIT_NO, EXIT_OK, Verb, print_json, print_table
from rye.errors import RyeError, UsageError

if TYPE_CHECKING:
    import argparse

    from rye.trust import TrustedKey

_EPILOG = """\
  list                 the keys that count here, and those that the project only proposes
  show KEY             one key: owner, full digest, role, document
  add KEY.toml         put a key document into your own space: its items count in every project
  approve [KEY]        let a key that this project brings count for this project, after seeing what it would admit
  approve --shadow ID  let this project serve a reserved id (rye/…) instead of the system bundle
  revoke KEY           refuse a key everywhere, at once (its full digest, 64 hex digits)

KEY is a fingerprint (16 hex digits) or a full digest (64). A fingerprint only points; the full digest is what is recorded."""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=("list", "show", "add", "approve", "revoke"), help="see below")
    parser.add_argument("key", nargs="?", metavar="KEY", help="a fingerprint, a full digest, or for add a document")
    parser.add_argument("--shadow", metavar="ID", help="approve: a reserved id that the project may serve")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="list, show: print JSON and nothing else")


def _run(args: argparse.Namespace) -> int:
    from rye.toolkit.workspace import find_root

    project = args.project or find_root(os.getcwd())
    actions = {"list": _list, "show": _show, "add": _add, "approve": _approve, "revoke": _revoke}
    return actions[args.action](args, project)


def _keys(project: str) -> list[tuple[TrustedKey, bool]]:
    """Return the keys known in a project, each with whether it counts."""
    from rye import spaces

    store = spaces.trust_store(spaces.spaces(project))
    return [
        *((key, key.public.digest not in store.revoked) for key in store.keys),
        *((key, False) for key in store.proposed),
    ]


def _row(key: TrustedKey, *, counts: bool, revoked: frozenset[str]) -> dict[str, Any]:
    state = "revoked" if key.public.digest in revoked else "counts" if counts else "does not count"
    return {
        "fingerprint": key.public.fingerprint, "owner": key.owner, "role": key.role, "state": state,
        "digest": key.public.digest,
    }  # fmt: skip


def _rows(project: str) -> list[dict[str, Any]]:
    from rye import decisions

    revoked = decisions.load().revoked_keys
    rows = [_row(key, counts=counts, revoked=revoked) for key, counts in _keys(project)]
    known = {row["digest"] for row in rows}
    nameless = [{"fingerprint": None, "owner": None, "role": None, "state": "revoked", "digest": d} for d in revoked - known]
    return [*rows, *nameless]


def _list(args: argparse.Namespace, project: str) -> int:
    rows = _rows(project)
    if args.json:
        print_json(rows)
    else:
        print_table(rows, ("fingerprint", "owner", "role", "state", "digest"))
    return EXIT_OK


def _show(args: argparse.Namespace, project: str) -> int:
    from rye.trust import render_key_document

    key = _named(args.key, project)
    row = next(row for row in _rows(project) if row["digest"] == key.public.digest)
    if args.json:
        print_json({**row, "attestation": key.attestation, "pem": key.public.pem.decode()})
    else:
        for name, value in row.items():
            print(f"{name}: {value}")
        print(render_key_document(key.public, key.owner, key.attestation).decode(), end="")
    return EXIT_OK


def _named(name: str | None, project: str) -> TrustedKey:
    if name is None:
        raise UsageError("no_key", "No key is named.", "Give a fingerprint or a full digest; `rye trust list` shows them.")
    found = {key.public: key for key, _ in _keys(project) if name in (key.public.fingerprint, key.public.digest)}
    if not found:
        raise RyeError("unknown_key", f"No key {name} is known here.", "`rye trust list` shows those that are.")
    if len(found) > 1:
        raise RyeError("ambiguous_key", f"{len(found)} keys have the fingerprint {name}.", "Give the full digest.")
    return next(iter(found.values()))


def _add(args: argparse.Namespace, project: str) -> int:  # noqa: ARG001 - one signature for all actions
    from rye import state, trust

    require_person_or_key("add a key to the trust store")
    if args.key is None:
        raise UsageError("no_document", "No key document is named.", "Write `rye trust add KEY.toml`.")
    try:
        data = Path(args.key).read_bytes()
    except OSError as err:
        raise UsageError("no_document", f"{args.key}: {err.strerror}.", "Name a key document (KEY.toml).") from None
    key = trust.parse_key_document(data, "user")
    _describe(key)
    if sys.stdin.isatty() and not confirm("Trust this key in every project?"):
        return EXIT_NO
    path = state.user_ai() / "trusted_keys" / f"{key.public.fingerprint}.toml"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("xb") as file:
            file.write(trust.render_key_document(key.public, key.owner, key.attestation))
    except FileExistsError:
        if trust.parse_key_document(path.read_bytes(), "user").public != key.public:
            raise RyeError("fingerprint_taken", f"{path} holds another key.", "Remove it first if it is not wanted.") from None
    print(f"Added: {path}")
    return EXIT_OK


def _describe(key: TrustedKey) -> None:
    print(f"key {key.public.fingerprint}, says it belongs to {key.owner!r}\nfull digest {key.public.digest}", file=sys.stderr)


def _approve(args: argparse.Namespace, project: str) -> int:
    if args.shadow is not None:
        return _approve_shadow(args.shadow, project)
    proposed = [key for key, counts in _keys(project) if key.role == "project" and not counts]
    if args.key is not None:
        proposed = [key for key in proposed if args.key in (key.public.fingerprint, key.public.digest)]
    if not proposed:
        raise RyeError("nothing_proposed", "This project brings no such key to approve.", "`rye trust list` shows what counts.")
    approved = [_approve_key(key, project) for key in proposed]
    return EXIT_OK if all(approved) else EXIT_NO


def _approve_key(key: TrustedKey, project: str) -> bool:
    from rye import decisions

    admitted = _admitted(key, project)
    _describe(key)
    print(f"For the project {decisions.Root.of(project).path} it would admit:", file=sys.stderr)
    for row in admitted or [{"item_id": "nothing yet", "effects": ""}]:
        print(f"  {row['item_id']}  {row['effects']}".rstrip(), file=sys.stderr)
    if not confirm("Let it count for this project?"):
        print("Not approved.", file=sys.stderr)
        return False
    ids = frozenset(row["item_id"] for row in admitted)
    decisions.approve(key.public.digest, decisions.Root.of(project), ids)
    print(f"Approved {key.public.fingerprint} for {decisions.Root.of(project).path}.")
    return True


def _admitted(key: TrustedKey, project: str) -> list[dict[str, str]]:
    """Return the project's items that the key has signed, with their side effects in the signer's words."""
    from rye import items, signing, spaces, trust

    space = spaces.Space("project", Path(project) / ".ai")
    store = trust.TrustStore(keys=(key.as_explicit(),))
    rows: list[dict[str, str]] = []
    for item_type in spaces.TYPES:
        for item_id, path in spaces.items_in(space, item_type):
            raw = spaces.read_file(space, path.relative_to(space.folder).as_posix())
            try:
                verified = trust.verify(raw or b"", signing.form_of(item_type, path.suffix), store)
                effects = _effects(items.read_tool(verified, item_id, path.suffix)) if item_type == "tool" else item_type
            except RyeError:
                continue
            rows.append({"item_id": item_id, "effects": effects})
    return rows


def _effects(tool: Any) -> str:  # noqa: ANN401 - items.Tool, imported late
    """Return the docstring's sentence on side effects, printable and short; it is the signer's claim."""
    line = next((x for x in tool.docstring.splitlines() if x.lower().startswith("side effects:")), "side effects not stated")
    return "".join(c if c.isprintable() else "?" for c in line)[:160]


def _approve_shadow(item_id: str, project: str) -> int:
    from rye import decisions, spaces

    spaces.check_id(item_id)
    if not item_id.startswith(spaces.RESERVED):
        raise UsageError("not_reserved", f"{item_id} is not reserved; any space may serve it.", "Nothing to approve.")
    root = decisions.Root.of(project)
    print(f"{item_id} would be served by {root.path} instead of the system bundle.", file=sys.stderr)
    if not confirm("Let the project replace it?"):
        print("Not approved.", file=sys.stderr)
        return EXIT_NO
    decisions.approve_shadow(item_id, root)
    print(f"Approved: {item_id} may come from {root.path}.")
    return EXIT_OK


def _revoke(args: argparse.Namespace, project: str) -> int:  # noqa: ARG001 - one signature for all actions
    from rye import decisions

    require_person_or_key("revoke a key")
    if args.key is None or len(args.key) != 64 or set(args.key) - set("0123456789abcdef"):
        raise UsageError("not_a_digest", "revoke takes a full key digest, 64 hex digits.", "`rye trust list` shows them.")
    if sys.stdin.isatty() and not confirm(f"Refuse everything signed by {args.key}, everywhere?"):
        return EXIT_NO
    decisions.revoke(args.key)
    print(f"Revoked {args.key}.")
    return EXIT_OK


VERBS = {"trust": Verb("Decide whose items may run: list, show, add, approve and revoke keys.", _build, _run)}
