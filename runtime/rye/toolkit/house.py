"""What a tool may ask of the house: to execute, search, load and sign items, and to share them.

`rye.api` implements it; the executor lends it for one call, to tools that the system's key signed and that declare what they
ask for: `__needs__ = ["search"]`.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from rye.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


class House(Protocol):
    """Each answer is a tool's result; for the parameters see the CONFIG_SCHEMA of the tool that is answered."""

    def execute(
        self, project_path: str, item_type: str, item_id: str, parameters: dict[str, Any] | str, *, dry_run: bool
    ) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_execute`."""

    def search(self, project_path: str, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - a dozen kinds of them
        """Answer `rye/primary-tools/rye_search`."""

    def load(
        self, project_path: str, item_type: str, item_id: str, source: str | None, destination: str | None, *,
        overwrite: bool, offset: int, limit: int | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Answer `rye/primary-tools/rye_load`."""

    def sign(self, project_path: str, item_type: str, item_id: str, source: str) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_sign`."""

    def registry(self, project_path: str, action: str, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - as in search
        """Answer `rye/registry/registry`."""


_lent: ContextVar[tuple[House | None, tuple[str, ...]]] = ContextVar("rye_house", default=(None, ()))


@contextmanager
def lent(house: House | None, needs: tuple[str, ...]) -> Iterator[None]:
    """Lend the house to everything called inside the block, for what `needs` names."""
    token = _lent.set((house if needs else None, needs))
    try:
        yield
    finally:
        _lent.reset(token)


def ask(need: str) -> House:
    """Return the house.

    Raises:
        UsageError: `no_house`, the running tool may not ask for this.
    """
    house, needs = _lent.get()
    if house is None or need not in needs:
        raise UsageError(
            "no_house", f"This tool may not ask the house to {need} items.",
            f"Only tools of the system bundle that declare {need!r} in __needs__ may.",
        )  # fmt: skip
    return house
