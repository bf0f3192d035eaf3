"""The signed list of a release: the SHA-256 of every file of the package `rye`.

It is `.ai/bundles/rye/release.yaml`, beside the system bundle's manifest, and has the manifest's form: signed like a YAML tool,
by the system's key. `rye bundle release` writes it just before a wheel is built. A checkout under development has none.

It covers every file that the wheel brings, but for the items, which the manifest covers. It does not cover what Python and pip
make at the installation: byte code, start scripts and metadata. Whoever can change the package can change this check as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rye.errors import ItemError, RyeError, TrustError
from rye.items import bundles, parse, spaces
from rye.trust import verify
from rye.trust.signature import form_of
from rye.trust.verify import TrustStore

NAME: Final = "bundles/rye/release.yaml"
_AGAIN = "Install the package again from a source that you trust, and find out what changed the file."


def is_listed() -> bool:
    """Tell whether there is a list: a release has one, a checkout has none."""
    return os.path.lexists(path_of())


def path_of() -> Path:
    """Return the path of the list."""
    return Path(spaces.system_folder(), NAME)


def compose(version: str, created_at: str) -> bytes:
    """Return the unsigned list of the package's files as they are now."""
    content = {"release": {"version": version, "created_at": created_at}, "files": dict(_digests())}
    return json.dumps(content, sort_keys=True, indent=1).encode() + b"\n"


def rows(store: TrustStore) -> Iterator[dict[str, Any]]:
    """Yield the verdict on the package, as `rye.items.sign_verify.verify` does: one row when all is well, else one a file."""
    if not is_listed():
        return
    try:
        files, fingerprint, owner = _read(store)
    except RyeError as err:
        verdict = err.code if err.code in verify.VERDICTS else "malformed"
        yield _row(NAME, verdict, str(err), signer=err.details.get("fingerprint"))
        return
    signer = {"signer": fingerprint, "owner": owner}
    found = dict(_digests())
    differing = [name for name in sorted(files.keys() | found.keys()) if files.get(name) != found.get(name)]
    for name in differing:
        pair = {"expected": files.get(name), "actual": found.get(name)}
        yield _row(f"rye/{name}", "tampered", f"{_fault(**pair)} {_AGAIN}", **pair, **signer)
    if not differing:
        yield _row(f"package rye ({len(files)} files)", "valid", None, **signer)


def _fault(expected: str | None, actual: str | None) -> str:
    if expected is None:
        return "The release has no such file."
    return "The file of the release is missing." if actual is None else "The file is not that of the release."


def _row(target: str, verdict: str, hint: str | None, **more: str | None) -> dict[str, Any]:
    row = {"target": target, "item_id": None, "type": "package", "verdict": verdict, "signer": None, "owner": None}
    return {**row, "expected": None, "actual": None, "hint": hint, **more}


def _read(store: TrustStore) -> tuple[dict[str, str], str, str]:
    """Return the verified list, and the fingerprint and owner of the key that signed it."""
    raw = spaces.read_file(spaces.Space("system", spaces.system_folder()), NAME)
    if raw is None:
        raise ItemError("malformed_item", "The list of the release cannot be read.", _AGAIN)
    verified = verify.verify(raw, form_of("tool", ".yaml"), store)
    if verified.key.role != "system":
        print_of = verified.key.public.fingerprint
        why = "The list of the release is signed by another key than RYE's."
        raise TrustError("untrusted_key", why, _AGAIN, fingerprint=print_of)
    files = parse.yaml_mapping(verified.body.decode("utf-8", "replace")).get("files")
    if not bundles.is_listing(files):
        raise ItemError("malformed_item", "The list of the release lists no files.", _AGAIN)
    return files, verified.key.public.fingerprint, verified.key.owner


def _digests() -> Iterator[tuple[str, str]]:
    """Yield (path in the package as a wheel installs it, SHA-256) of every file but the items."""
    bundle = spaces.system_folder()
    # The package that runs.
    yield from _below(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "", skipped=(".ai",))
    for part in ("config", "trusted_keys"):
        yield from _below(os.path.join(bundle, part), f".ai/{part}/")
    yield ".ai/bundles/rye/manifest.yaml", _digest(os.path.join(bundle, "bundles/rye/manifest.yaml"))


def _below(top: str, prefix: str, skipped: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != "__pycache__" and not (folder == top and name in skipped)]
        for name in files:
            path = os.path.join(folder, name)
            yield prefix + os.path.relpath(path, top).replace(os.sep, "/"), _digest(path)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
