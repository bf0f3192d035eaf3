"""`rye bundle create|verify|inspect` and `rye lock`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from rye.cli.verbs import EXIT_OK, EXIT_TRUST, Verb, print_json, print_table
from rye.errors import RyeError, TrustError, UsageError

if TYPE_CHECKING:
    import argparse

    from rye.spaces import Space

_BUNDLE_EPILOG = """\
A bundle is a folder `.ai` with a signed manifest: the list of its items and their digests. Nothing of a bundle is served
unless the manifest is good and lists the very file.

examples:
  rye bundle verify                                          the system bundle
  rye bundle create --folder src/mine/.ai --id mine --version 1.0.0 --description "My tools" --key KEY.pem
"""


def _build_bundle(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _BUNDLE_EPILOG
    parser.add_argument("action", choices=("create", "verify", "inspect"), help="what to do")
    parser.add_argument("--folder", metavar="DIR", help="the bundle's .ai folder (default: the system bundle's)")
    parser.add_argument("--id", default="rye", help="the bundle's id (default: rye)")
    parser.add_argument("--version", default="0.0.0", help="create: the bundle's version (default: 0.0.0)")
    parser.add_argument("--type", default="bundle", help="create: what kind of bundle (default: bundle)")
    parser.add_argument("--description", default="", help="create: one line about it")
    parser.add_argument("--key", metavar="PEM", help="create: the private key to sign with")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _run_bundle(args: argparse.Namespace) -> int:
    from rye import spaces

    space = spaces.Space(
        "system" if args.folder is None else f"bundle:{args.id}",
        spaces.system_folder() if args.folder is None else args.folder,
    )
    if not os.path.isdir(space.folder):
        raise UsageError("no_bundle", f"There is no folder {space.folder}.", "Name the bundle's .ai folder with --folder.")
    spaces.check_id(args.id)
    if args.action == "create":
        return _create(space, args)
    return _inspect(space, args) if args.action == "inspect" else _verify(space, args)


def _create(space: Space, args: argparse.Namespace) -> int:
    from rye import bundles, keyring, signing
    from rye.cli.presence import require_person_or_key

    require_person_or_key("sign a bundle manifest", args.key, key_option=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    facts = {
        "id": args.id, "version": args.version, "type": args.type, "description": args.description, "created_at": now,
    }  # fmt: skip
    raw = bundles.compose(space, facts)
    path = bundles.path_of(space, args.id)
    signed = signing.sign(raw, signing.form_of("tool", ".yaml"), keyring.signing_key(args.key), timestamp=now)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    temporary.write_bytes(signed)
    temporary.replace(path)
    if args.json:
        print_json({"path": str(path), "bundle": facts})
    else:
        print(f"Wrote {path}.")
    return EXIT_OK


def _load(space: Space, args: argparse.Namespace) -> Any:  # noqa: ANN401 - bundles.Manifest, imported late
    from rye import bundles, spaces

    store = spaces.trust_store(spaces.spaces(os.getcwd()))
    return bundles.read(spaces.read_file(space, f"bundles/{args.id}/manifest.yaml"), args.id, store)


def _inspect(space: Space, args: argparse.Namespace) -> int:
    manifest = _load(space, args)
    key = manifest.verified.key
    rows = [
        {"type": kind, "item_id": item_id, "sha256": digest}
        for kind, listed in manifest.items.items()
        for item_id, digest in listed.items()
    ]
    if args.json:
        print_json({"bundle": dict(manifest.bundle), "signer": key.public.fingerprint, "owner": key.owner, "items": rows})
    else:
        print(f"bundle {args.id} {manifest.bundle.get('version')}, signed by {key.public.fingerprint} ({key.owner})")
        print_table(rows, ("type", "item_id", "sha256"))
    return EXIT_OK


def _verify(space: Space, args: argparse.Namespace) -> int:
    """Hold every item that stands in the bundle, and every one that the manifest lists, against each other."""
    rows = _verdicts(space, args)
    bad = [row for row in rows if row["verdict"] != "valid"]
    if args.json:
        print_json(rows)
    else:
        print_table(bad or rows, ("verdict", "type", "item_id", "hint"))
        print(f"{len(rows) - len(bad)} valid, {len(bad)} not.")
    return EXIT_TRUST if bad else EXIT_OK


def _verdicts(space: Space, args: argparse.Namespace) -> list[dict[str, Any]]:
    from rye import bundles, items, signing, spaces, trust

    manifest = _load(space, args)
    store = spaces.trust_store(spaces.spaces(os.getcwd()))
    rows: list[dict[str, Any]] = []
    for item_type in spaces.TYPES:
        standing = dict(spaces.items_in(space, item_type))
        for item_id in sorted(standing.keys() | manifest.items.get(item_type, {}).keys()):
            row = {"verdict": "valid", "type": item_type, "item_id": item_id, "hint": ""}
            try:
                if item_id not in standing:
                    raise TrustError("tampered", "It is listed, and its file is gone.", "Reinstall the bundle.")
                path = standing[item_id]
                raw = spaces.read_file(space, path.relative_to(space.folder).as_posix()) or b""
                candidate = spaces.Candidate(item_type, item_id, path.suffix, space.name, str(path), raw)
                bundles.check(manifest, candidate)
                verified = trust.verify(raw, signing.form_of(item_type, path.suffix), store)
                spaces.refuse_alien_key(item_id, verified.key.role)
                items.check_place(verified, item_type, item_id, path.suffix)
            except (RyeError, UnicodeDecodeError) as err:
                row.update(verdict=err.code if isinstance(err, TrustError) else "malformed", hint=str(err))
            rows.append(row)
    return rows


def _build_lock(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "From then on the tool runs here only with exactly these digests.\n\nexample:\n  rye lock my/tools/report"
    parser.add_argument("item_id", help="the tool to pin")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="print the lockfile's path and content as JSON")


def _run_lock(args: argparse.Namespace) -> int:
    from rye import executor, lockfiles
    from rye.toolkit.workspace import find_root

    project = args.project or find_root(os.getcwd())
    tool, chain = executor.chain_of(args.item_id, project)
    record = lockfiles.write(project, tool.id, tool.version, chain)
    path = os.path.join(project, ".ai", lockfiles.name_of(tool.id, tool.version))
    if args.json:
        print_json({"path": path, **record})
    else:
        print(f"Locked {tool.id} {tool.version}: {path}")
    return EXIT_OK


VERBS = {
    "bundle": Verb("Create, verify or inspect a bundle's signed manifest.", _build_bundle, _run_bundle),
    "lock": Verb("Pin a tool to the digests of its whole chain.", _build_lock, _run_lock),
}
