"""File paths as `file:` URIs and back: any name survives, bytes that are not UTF-8 too."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit


def uri_of(path: str) -> str:
    """Return a file's URI."""
    return "file://" + quote(os.fsencode(path), safe="/")


def path_of(uri: str) -> str | None:
    """Return the path of a file's URI; None for any other."""
    parts = urlsplit(uri)
    return (
        unquote(parts.path, errors="surrogateescape") if parts.scheme == "file" and parts.netloc in ("", "localhost") else None
    )


def normal(uri: str) -> str:
    """Return a URI as `uri_of` writes it, whatever the server escaped."""
    path = path_of(uri)
    return uri if path is None else uri_of(path)
