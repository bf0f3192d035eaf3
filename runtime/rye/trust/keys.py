"""The user's own key: where it lies, making it, and the key documents that a command line names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rye.config import user_dirs
from rye.errors import RyeError, TrustError, UsageError
from rye.fs import atomic
from rye.trust import signature, verify
from rye.trust.signature import PrivateKey, PublicKey

_ENVIRONMENT = "RYE_SIGNING_KEY"
_LARGEST_DOCUMENT = 64 * 1024


def folder() -> Path:
    """Return `${USER_SPACE:-~}/.ai/keys`."""
    return Path(user_dirs.user_ai()) / "keys"


def signing_key(named: str | Path | None = None) -> PrivateKey:
    """Return the private key to sign with: the named file, else RYE_SIGNING_KEY's, else the user's own.

    Raises:
        RyeError: `key_not_found`, `key_unreadable`.
        TrustError: `bad_key`.
    """
    return signature.load_private_key(Path(named or os.environ.get(_ENVIRONMENT) or folder() / "private_key.pem"))


def generate(owner: str = "local") -> dict[str, Any]:
    """Make the user's key pair and the document by which it counts here; return what `show` returns.

    Raises:
        RyeError: `key_exists`, nothing is ever overwritten; `key_unwritable`.
        UsageError: `bad_key_document`, the owner is not one printable line.
    """
    verify.render_key_document(signature.PublicKey(bytes(32)), owner)  # refused before anything is made
    signature.generate_key_pair(folder(), lambda public: {_document_path(public): verify.render_key_document(public, owner)})
    return show()


def show() -> dict[str, Any]:
    """Return the user's own key: `{"fingerprint", "digest", "owner", "trusted", "public_key", "document"}`.

    `digest` is the key's full name (64 hex digits), `trusted` whether its document makes it count here, `public_key` and
    `document` paths; `owner` is None without a document.

    Raises:
        RyeError: `key_not_found`, `key_unreadable`.
        TrustError: `bad_key`.
    """
    path = folder() / "public_key.pem"
    try:
        with path.open("rb") as stream:
            public = signature.PublicKey.from_pem(stream.read(4096))
    except OSError as err:
        code = "key_not_found" if isinstance(err, FileNotFoundError) else "key_unreadable"
        raise RyeError(code, f"There is no own key: {path}: {err.strerror}.", "Run `rye keys generate`.") from None
    document = _document_path(public)
    owner = _owner(document, public)
    return {
        "fingerprint": public.fingerprint,
        "digest": public.digest,
        "owner": owner,
        "trusted": owner is not None,
        "public_key": str(path),
        "document": str(document),
    }


def named_documents(paths: Sequence[str | Path]) -> list[bytes]:
    """Read the key documents that a call names.

    Raises:
        UsageError: `bad_key_document`, one cannot be read, or is none: what was asked for is not left out in silence.
    """
    out: list[bytes] = []
    for path in paths:
        try:
            out.append(atomic.read_regular(path, _LARGEST_DOCUMENT)[0])
            verify.parse_key_document(out[-1])
        except OSError as err:
            message = f"The key document {path} cannot be read: {err.strerror}."
            raise UsageError("bad_key_document", message, "Give a file such as .ai/trusted_keys/<fingerprint>.toml.") from None
        except TrustError as err:
            raise UsageError("bad_key_document", f"{path}: {err.message}", err.hint) from None
    return out


def _document_path(public: PublicKey) -> Path:
    return Path(user_dirs.user_ai()) / "trusted_keys" / f"{public.fingerprint}.toml"


def _owner(document: Path, public: PublicKey) -> str | None:
    try:
        key = verify.parse_key_document(document.read_bytes())
    except (OSError, TrustError):
        return None
    return key.owner if key.public == public else None
