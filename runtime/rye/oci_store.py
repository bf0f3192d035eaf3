"""What storage of registry items can do, and which one a registry's name stands for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rye import state
from rye.errors import UsageError
from rye.oci_layout import Layout
from rye.toolkit import config

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rye.oci_manifest import Layer, Pushed


class Store(Protocol):
    """Storage of manifests and blobs, a directory or a server. What it returns was hashed again; nothing else is known of it.

    `name` is for people; `parallel` tells how many requests at once are worth while.
    """

    name: str
    parallel: int

    def repositories(self) -> list[str]:
        """Return the repositories, where the storage can tell; [] where it cannot."""

    def tags(self, repository: str) -> list[str]:
        """Return a repository's tags; [] where there is none.

        Raises:
            RegistryError: of every kind, as each method here.
        """

    def manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by its tag, or by its digest, to which it was held."""

    def blob(self, repository: str, layer: Layer) -> bytes:
        """Return a blob, held to its digest and size; the caller judged whether it wants so much."""

    def push(self, repository: str, pushed: Iterable[Pushed]) -> None:
        """Put items there, each visible only when it is whole."""


def open_store(where: str | None, *, plain_http: bool = False) -> Store:
    """Return the storage that a name stands for.

    Args:
        where: `oci://host[:port][/prefix]` or a directory; None for the setting `registry.default`, else
            `${USER_SPACE:-~}/.ai/registry`.
        plain_http: speak http to a host that is not this machine.

    Raises:
        UsageError: `bad_registry`.
    """
    chosen = where or config.setting("registry.default") or Path(state.user_ai()) / "registry"
    name = os.fspath(chosen) if isinstance(chosen, str | Path) else ""
    if name.startswith("oci://"):
        from rye.oci_http import Server

        return Server(name, plain_http=plain_http)
    if "://" in name or not name:
        raise UsageError("bad_registry", f"Not a registry: {name[:200]!r}.", "Give a directory, or oci://host[:port][/prefix].")
    return Layout(Path(os.path.abspath(os.path.expanduser(name))))
