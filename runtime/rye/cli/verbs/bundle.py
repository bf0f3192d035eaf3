"""`rye bundle create|verify|inspect` and `rye lock`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

from rye._version import __version__
from rye.cli import words
from rye.cli.process import EXIT_OK, EXIT_TRUST
from rye.cli.shared import project_of, require_person_or_key
from rye.cli.terminal import harmless, print_table, tell, told_json
from rye.errors import UsageError
from rye.executor import executor
from rye.items import bundles, lockfiles, release_list, spaces
from rye.items.spaces import Space
from rye.journal import own_files
from rye.journal.own_files import OwnFile
from rye.trust import keys, signature


def run_bundle(args: SimpleNamespace) -> int:
    """Run `rye bundle`; return its exit code."""
    own = args.folder is None
    space = spaces.Space("system", spaces.system_folder()) if own else spaces.Space(f"bundle:{args.id}", args.folder)
    # Without a folder it is the installed package's: what was meant is one of the user's own.
    if (own and (args.action == "create" or args.id != "rye")) or not os.path.isdir(space.folder):
        why = "Which folder is the bundle?" if own else f"There is no folder {space.folder}."
        raise UsageError("no_bundle", why, "Give --folder with its .ai, such as --folder src/mine/.ai.")
    spaces.check_id(args.id)
    if args.action == "release":
        return _release(args)
    if args.action == "create":
        return _create(space, args)
    return _inspect(space, args) if args.action == "inspect" else _verify(space, args)


def _create(space: Space, args: SimpleNamespace) -> int:
    require_person_or_key("sign a bundle manifest", args.key, key_option=True)
    # One timestamp for the manifest and its signature line.
    facts = {"id": args.id, "version": args.version, "type": args.type, "description": args.description, "created_at": _now()}
    path = bundles.path_of(space, args.id)
    _write_signed(bundles.compose(space, facts), path, args.key, facts["created_at"])
    return tell(args, {"path": str(path), "bundle": facts}, f"Wrote {path}.")


def _release(args: SimpleNamespace) -> int:
    """Write the signed list of the package's files."""
    require_person_or_key("sign a release", args.key, key_option=True)
    now, path = _now(), release_list.path_of()
    _write_signed(release_list.compose(__version__, now), path, args.key, now)
    said = f"Wrote {path}. Build the wheel now, and remove the file afterwards."
    return tell(args, {"path": str(path), "version": __version__, "created_at": now}, said)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _write_signed(raw: bytes, path: Path, key: str | None, timestamp: str) -> None:
    """Write a signed list: recorded in this project, or in that of its `.ai`."""
    signed = signature.sign(raw, signature.form_of("tool", ".yaml"), keys.signing_key(key), timestamp=timestamp)
    above = next((str(one.parent) for one in path.parents if one.name == ".ai"), os.getcwd())
    own_files.write([OwnFile(os.path.realpath(path), signed)], "rye/cli/bundle", [project_of(None), above])


def _load(space: Space, args: SimpleNamespace) -> bundles.Manifest:
    store = spaces.trust_store(spaces.spaces(os.getcwd()))
    return bundles.read(spaces.read_file(space, f"bundles/{args.id}/manifest.yaml"), args.id, store)


def _inspect(space: Space, args: SimpleNamespace) -> int:
    manifest = _load(space, args)
    key = manifest.verified.key
    rows = [
        {"type": kind, "item_id": item_id, "sha256": digest}
        for kind, digests in manifest.items.items()
        for item_id, digest in digests.items()
    ]
    signed = {"signer": key.public.fingerprint, "owner": key.owner}
    if not told_json(args, {"bundle": dict(manifest.bundle), **signed, "items": rows}):
        print(harmless(f"bundle {args.id} {manifest.bundle.get('version')}, signed by {key.public.fingerprint} ({key.owner})"))
        print_table(rows, ("type", "item_id", "sha256"))
    return EXIT_OK


def _verify(space: Space, args: SimpleNamespace) -> int:
    """Compare the items in the bundle with those that its manifest lists, in both directions."""
    rows = bundles.verdicts(_load(space, args), space, spaces.trust_store(spaces.spaces(os.getcwd())))
    bad = [row for row in rows if row["verdict"] != "valid"]
    if not told_json(args, rows):
        print_table(bad or rows, ("verdict", "type", "item_id", "hint"))
        print(f"{len(rows) - len(bad)} valid, {len(bad)} not.")
    return EXIT_TRUST if bad else EXIT_OK


def run_lock(args: SimpleNamespace) -> int:
    """Run `rye lock`; return its exit code."""
    project = project_of(args.project)
    tool, chain = executor.chain_of(words.tool_id(args.item_id, project) or args.item_id, project)
    record = lockfiles.write(project, tool.id, tool.version, chain)
    path = os.path.join(project, ".ai", lockfiles.name_of(tool.id, tool.version))
    return tell(args, {"path": path, **record}, f"Locked {tool.id} {tool.version}: {path}")
