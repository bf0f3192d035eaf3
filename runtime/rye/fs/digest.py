"""SHA-256 and HMAC-SHA256 without OpenSSL, whose loading takes a tenth of a short command's time.

`sha256` is CPython's own, for short data: line texts, settings, small records. `sha256_of_much` is that of `hashlib`, five
times faster for whole files. `sha256_for` chooses: a process that has loaded it anyway uses it sooner. The digests are equal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hashlib import sha256
    from hmac import compare_digest
else:
    # As `hmac` itself has it.
    from _operator import _compare_digest as compare_digest

    try:
        from _sha256 import sha256
    except ImportError:
        try:
            # Its name from CPython 3.12 on.
            from _sha2 import sha256
        except ImportError:
            # A Python that was built without its own.
            from hashlib import sha256

MUCH = 64 * 1024
"""From this size on (bytes) OpenSSL is worth its loading."""

_SHORT = 1_024
_BLOCK = 64
_INNER = bytes(number ^ 0x36 for number in range(256))
_OUTER = bytes(number ^ 0x5C for number in range(256))


def sha256_of_much(data: bytes | memoryview = b"") -> Any:
    """Return a hash object for data of any size: that of `hashlib`."""
    import hashlib

    return hashlib.sha256(data)


def sha256_for(size: int) -> Any:
    """Return what makes a hash object for so many bytes: `sha256` or `sha256_of_much`."""
    return sha256_of_much if size >= MUCH or (size > _SHORT and "_hashlib" in sys.modules) else sha256


def hexdigest(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hex digits."""
    found: str = sha256_for(len(data))(data).hexdigest()
    return found


def hmac_hexdigest(key: bytes, *parts: bytes | memoryview) -> str:
    """Return HMAC-SHA256 (RFC 2104) over the parts as 64 hex digits; the key has at most 64 bytes."""
    if len(key) > _BLOCK:
        raise ValueError("the key is too long")
    # Written out, since importing `hmac` loads OpenSSL.
    padded = key.ljust(_BLOCK, b"\0")
    inner = sha256_for(sum(map(len, parts)))(padded.translate(_INNER))
    for part in parts:
        inner.update(part)
    found: str = sha256(padded.translate(_OUTER) + inner.digest()).hexdigest()
    return found


__all__ = ["MUCH", "compare_digest", "hexdigest", "hmac_hexdigest", "sha256", "sha256_for", "sha256_of_much"]
