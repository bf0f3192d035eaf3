"""`rye trust list|add|approve|revoke|show|settings`: whose items may run, and what a command left, decided by the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import at_terminal, confirm, project_of, require_person, require_person_or_key
from rye.cli.terminal import harmless, note, printable, tell, tell_rows
from rye.config import user_dirs
from rye.errors import RyeError, TrustError, UsageError
from rye.executor.primitives import interpreters
from rye.folders import signing
from rye.fs import atomic
from rye.items import proposed_keys, spaces
from rye.process.autorun import command_check
from rye.trust import decisions, keys, verify
from rye.trust.decisions import Root
from rye.trust.verify import TrustedKey, TrustStore
from rye.workspace.workspace import Workspace


def run_trust(args: SimpleNamespace) -> int:
    """Run `rye trust`; return its exit code."""
    project = project_of(args.project)
    actions = {"list": _list, "show": _show, "add": _add, "approve": _approve, "revoke": _revoke, "settings": _settings}
    return actions[args.action](args, project)


def _row(key: TrustedKey, store: TrustStore) -> dict[str, Any]:
    """Return what is shown of a key. The words of one that does not count are for a person alone, not for a model."""
    counts = key in store.keys and key.public.digest not in store.revoked
    state = "revoked" if key.public.digest in store.revoked else "counts" if counts else "does not count"
    owner = key.owner if counts or at_terminal() else None
    public, role = key.public, key.role
    return {"fingerprint": public.fingerprint, "owner": owner, "role": role, "state": state, "digest": public.digest}


def _list(args: SimpleNamespace, project: str) -> int:
    if args.key is not None:
        why = "list takes no key."
        raise UsageError("bad_arguments", why, f"Write `rye trust show {args.key}` for one, or `rye trust list`.")
    store = proposed_keys.store_of(project)
    rows = [_row(key, store) for key in (*store.keys, *store.proposed)]
    nameless = store.revoked - {row["digest"] for row in rows}
    rows += [
        {"fingerprint": None, "owner": None, "role": None, "state": "revoked", "digest": digest} for digest in sorted(nameless)
    ]
    tell_rows(args, rows, rows, ("fingerprint", "owner", "role", "state", "digest"))
    for problem in store.problems:
        note(f"{printable(problem)}")
    return EXIT_OK


def _show(args: SimpleNamespace, project: str) -> int:
    store = proposed_keys.store_of(project)
    key = _named(args.key, store)
    row: dict[str, Any] = _row(key, store)
    row |= {"attestation": key.attestation if row["owner"] is not None else None, "pem": key.public.pem.decode()}
    lines = (f"{name}: {'' if value is None else value}".rstrip() for name, value in row.items() if name != "pem")
    return tell(args, row, [*lines, *f"pem: {row['pem']}".split("\n")])


def _named(name: str | None, store: TrustStore) -> TrustedKey:
    if name is None:
        raise UsageError("no_key", "No key is named.", "Give a fingerprint or a full digest; `rye trust list` shows them.")
    known = (*store.keys, *store.proposed)
    # Reversed, so that of two documents for one key the one that counts wins.
    found = {key.public: key for key in reversed(known) if name in (key.public.fingerprint, key.public.digest)}
    if not found:
        raise RyeError("unknown_key", f"No key {name} is known here.", "`rye trust list` shows those that are.")
    if len(found) > 1:
        raise RyeError("ambiguous_key", f"{len(found)} keys have the fingerprint {name}.", "Give the full digest.")
    return next(iter(found.values()))


def _add(args: SimpleNamespace, _project: str) -> int:
    require_person_or_key("add a key to the trust store")
    if args.key is None:
        raise UsageError("no_document", "No key document is named.", "Write `rye trust add KEY.toml`.")
    if args.key.endswith(".pem"):
        return _add_pem(args.key)
    key = verify.parse_key_document(keys.named_documents([args.key])[0], "user")
    # Before the question: a revoked key must not look as if a yes could bring it back.
    _refuse_revoked(key.public.digest, decisions.load().revoked_keys)
    path = Path(user_dirs.user_ai()) / "trusted_keys" / f"{key.public.fingerprint}.toml"
    known = atomic.read(path)
    if known is not None and verify.parse_key_document(known, "user").public != key.public:
        raise RyeError("fingerprint_taken", f"{path} holds another key.", "Remove it first if it is not wanted.")
    document = known or verify.render_key_document(key.public, key.owner, key.attestation)
    return _decided(_described(key), "Trust this key in every project?", lambda: _put(path, document), f"Added: {path}")


def _add_pem(path: str) -> int:
    """Put a bare public key among the user's: it counts for folders that are signed as a whole, and for no item."""
    pem, digest = signing.public_key(path)
    _refuse_revoked(digest, decisions.load().revoked_keys)
    added = Path(user_dirs.user_ai()) / "trusted_keys" / f"{digest[:16]}.pem"
    shown = f"key {digest[:16]}, full digest {digest}"
    return _decided(shown, "Trust this key for folders that it signs?", lambda: _put(added, pem), f"Added: {added}")


def _put(path: Path, data: bytes) -> None:
    atomic.make_private(path.parent)
    atomic.write(path, data, 0o644)


def _decided(shown: str, question: str, act: Callable[[], object], said: str) -> int:
    """Show what is to be decided, ask a person at the terminal, and act; return the exit code."""
    print(harmless(shown), end="\n" if shown else "", file=sys.stderr)
    if at_terminal() and not confirm(question):
        return _refused()
    act()
    print(harmless(said))
    return EXIT_OK


def _refuse_revoked(digest: str, revoked: frozenset[str]) -> None:
    if digest in revoked:
        raise TrustError("revoked_key", f"You revoked the key {digest}.", "It stays refused whatever is added or approved.")


def _refused() -> int:
    print("Nothing was changed.", file=sys.stderr)
    return EXIT_NO


def _described(key: TrustedKey) -> str:
    return f"key {key.public.fingerprint}, says it belongs to {key.owner!r}\nfull digest {key.public.digest}"


def _approve(args: SimpleNamespace, project: str) -> int:
    require_person("approve anything")
    # Taken once, with the folder's identity: a project swapped during the questions is another root.
    root = decisions.Root.of(project)
    if args.shadow is not None:
        return _approve_shadow(args.shadow, root)
    if args.interpreter is not None:
        return _approve_interpreter(args.interpreter, root)
    store = proposed_keys.store_of(project)
    proposed = proposed_keys.waiting(store, root)
    if args.key is not None:
        known = [*proposed, *(key for key in store.keys if key.role == "approved" and key not in proposed)]
        proposed = [key for key in known if args.key in (key.public.fingerprint, key.public.digest)]
    if not proposed:
        hint = "Who signed its items runs `rye keys export --project` and commits the file. `rye trust list` shows what counts."
        raise RyeError("nothing_proposed", "This project brings no such key to approve.", hint)
    return max([_approve_key(key, root, store.revoked) for key in proposed])


def _approve_key(key: TrustedKey, root: Root, revoked: frozenset[str]) -> int:
    _refuse_revoked(key.public.digest, revoked)
    admitted = proposed_keys.admitted(key, root)
    rows = [f"  {row.item_id}  {row.effects}".rstrip() for row in admitted] or ["  nothing yet"]
    shown = "\n".join([_described(key), f"For the project {printable(root.path)} it would admit:", *rows])
    said = f"Approved {key.public.fingerprint} for {printable(root.path)}."
    return _decided(shown, "Let it count for this project?", lambda: proposed_keys.approve(key, root, admitted), said)


def _settings(args: SimpleNamespace, project: str) -> int:
    require_person("bring back what was set aside")
    if args.key is None:
        raise UsageError("no_path", "No file is named.", "Write `rye trust settings PATH`, as the command's result names it.")
    with Workspace(project) as ws:
        path = os.fsdecode(b"/".join(ws.components(args.key)))
        one = command_check.kept(ws, path)
        print(f"{printable(one.path)}, for programs of yours to act on:", file=sys.stderr)
        for line in one.shown:
            print(f"  {printable(line)}", file=sys.stderr)
        if not confirm("Bring it back, and let it count as yours?"):
            return _refused()
        count = command_check.bring_back(ws, one)
    print(f"Yours: {printable(one.path)} ({count} settings or files).")
    return EXIT_OK


def _approve_shadow(item_id: str, root: Root) -> int:
    spaces.check_id(item_id)
    if not item_id.startswith(spaces.RESERVED):
        raise UsageError("not_reserved", f"{item_id} is not reserved; any space may serve it.", "Nothing to approve.")
    shown = (
        f"{item_id} would be served by {printable(root.path)} instead of the system bundle; its file there is "
        f"{proposed_keys.signer_of(item_id, root)}. Its key must count as well."
    )
    said = f"Approved: {item_id} may come from {printable(root.path)}."
    return _decided(shown, "Let the project replace it?", lambda: decisions.approve_shadow(item_id, root), said)


def _approve_interpreter(path: str, root: Root) -> int:
    inside = os.path.normpath(path)
    if os.path.isabs(inside) or inside.startswith(".."):
        why = f"{printable(path)} is no path below the project."
        raise UsageError("path_outside", why, "Give one such as .venv/bin/python3.")
    file = interpreters.identity(root.path, inside)
    real, _inode, digest, _settings = file.rsplit(" ", 3)
    shown = (
        f"{printable(inside)} in {printable(root.path)} is {printable(real)} (SHA-256 {digest[:16]}…). It would run this "
        "project's tools, with the packages that lie beside it, in the sandbox and with each tool's permissions."
    )
    said = f"Approved: {printable(inside)} may run tools of {printable(root.path)}."
    return _decided(shown, "Let it run tools here?", lambda: decisions.approve_interpreter(inside, file, root), said)


def _revoke(args: SimpleNamespace, _project: str) -> int:
    require_person_or_key("revoke a key")
    if args.key is None or len(args.key) != 64 or set(args.key) - set("0123456789abcdef"):
        raise UsageError("not_a_digest", "revoke takes a full key digest, 64 hex digits.", "`rye trust list` shows them.")
    digest = str(args.key)
    question = f"Refuse everything signed by {digest}, everywhere?"
    return _decided("", question, lambda: decisions.revoke(digest), f"Revoked {digest}.")
