"""The interface of registry storage, and the choice of one by a registry's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from rye.call import context
from rye.config import user_dirs
from rye.errors import UsageError
from rye.registry.oci.client import RegistryServer
from rye.registry.oci.layout import Layout
from rye.registry.oci.manifest import Layer, Pushed
from rye.registry.oci.reference import Reference

_T = TypeVar("_T")
_R = TypeVar("_R")


class OciStore(Protocol):
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
        """Return a manifest by its tag, or by its digest, which is checked."""

    def blob(self, repository: str, layer: Layer) -> bytes:
        """Return a blob whose digest and size are checked; the caller decides whether it wants so much."""

    def push(self, repository: str, pushed: Iterable[Pushed]) -> list[str]:
        """Put items there, each visible only when it is whole; return the digest of each manifest as it is served."""


def at_once(most: int, function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """Return the function's result for each item, in order; several are worked on at once where `most` allows it."""
    if most == 1 or len(items) < 2:
        return list(map(function, items))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(function, items))


def open_store(where: str | None, *, plain_http: bool = False) -> OciStore:
    """Return the storage that a name means.

    Args:
        where: `oci://host[:port][/prefix]` or a directory; None for the setting `registry.default`, else
            `${USER_SPACE:-~}/.ai/registry`.
        plain_http: speak http to a host that is not this machine.

    Raises:
        UsageError: `bad_registry`.
    """
    location = where or context.settings().get("registry.default") or Path(user_dirs.user_ai()) / "registry"
    name = os.fspath(location) if isinstance(location, str | Path) else ""
    if name.startswith("oci://"):
        return RegistryServer(name, plain_http=plain_http)
    # Another scheme would otherwise become a directory of that name.
    if "://" in name or not name:
        raise UsageError("bad_registry", f"Not a registry: {name[:200]!r}.", "Give a directory, or oci://host[:port][/prefix].")
    return Layout(Path(os.path.abspath(os.path.expanduser(name))))


class RegistryTarget(NamedTuple):
    """Where to look: the registry (see `open_store`), whether plain http is spoken, and the project."""

    project: str
    registry: str | None = None
    plain_http: bool = False

    def store(self, reference: Reference | None = None) -> OciStore:
        """Return the storage: the reference's own registry before the named one."""
        return open_store((reference.registry if reference else None) or self.registry, plain_http=self.plain_http)
