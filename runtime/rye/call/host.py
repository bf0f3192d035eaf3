"""What a system tool may ask of its host: to execute, search, load and sign items, and to share them.

`rye.primary_tools` implements it. The executor gives it to one call, of a tool that the system's key signed and that declares
what it asks for: `__needs__ = ["search"]`.
"""

from __future__ import annotations

from typing import Any, Protocol

from rye.call import context
from rye.errors import UsageError


class Host(Protocol):
    """Each answer is a tool's result; for the parameters see the CONFIG_SCHEMA of the tool that is answered."""

    def execute(
        self, project_path: str, item_type: str, item_id: str, parameters: dict[str, Any] | str, *, dry_run: bool
    ) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_execute`."""

    def file_tool(self, project_path: str, item_id: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the whole response of a file tool that a command of the running tool asks for."""

    def search(self, project_path: str, **asked: Any) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_search`."""

    def load(
        self,
        project_path: str,
        item_type: str,
        item_id: str,
        source: str | None,
        destination: str | None,
        *,
        overwrite: bool,
        offset: int,
        limit: int | None,
    ) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_load`."""

    def sign(self, project_path: str, item_type: str, item_id: str, source: str) -> dict[str, Any]:
        """Answer `rye/primary-tools/rye_sign`."""

    def registry(self, project_path: str, **asked: Any) -> dict[str, Any]:
        """Answer `rye/registry/registry`."""


def ask(need: str) -> Host:
    """Return the host of the running call.

    Raises:
        UsageError: `capability_denied`, the running tool may not ask for this.
    """
    call = context.current()
    if call.host is None or need not in call.needs:
        raise UsageError(
            "capability_denied",
            f"This tool may not use {need!r} of the host.",
            f"Only tools of the system bundle that declare {need!r} in __needs__ may.",
        )
    return call.host()
