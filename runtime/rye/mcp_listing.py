"""The tools of a server as its clients see them: verified, named, described, pinned by digest and signer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from rye import discovery
from rye.toolkit.suggest import nearest

if TYPE_CHECKING:
    from rye.mcp_selection import Selection


class Offered(NamedTuple):
    """One tool of the listing: its id, and what `tools/list` says of it."""

    item_id: str
    tool: dict[str, Any]

    @property
    def read_only(self) -> bool:
        """Whether the tool declares, in its signed text, that it changes nothing."""
        return self.tool["annotations"].get("readOnlyHint") is True


class Listing:
    """What a server offers now. Any thread may use it.

    The listing is made anew whenever it is asked for; between times names lead to ids from memory, since the corridor verifies
    every call by itself.
    """

    def __init__(self, project: str, selection: Selection) -> None:
        self._project = project
        self._selection = selection
        self._lock = threading.Lock()
        self._known: dict[str, Offered] = {}

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools in the protocol's shape, always in the same order."""
        rows = discovery.tools(project_path=self._project)
        offered = [_offered(row) for row in self._selection.in_order(rows) if row["verdict"] == "valid"]
        with self._lock:
            self._known = {one.tool["name"]: one for one in offered}
        return [one.tool for one in offered]

    def find(self, name: str) -> Offered | None:
        """Return the tool of that name; looked for again when it was not there before."""
        found = self._known.get(name)
        if found is None:
            self.tools()
            found = self._known.get(name)
        return found

    def by_id(self, item_id: str) -> Offered | None:
        """Return the tool of that id, if it is offered."""
        return next((one for one in self._known.values() if one.item_id == item_id), None)

    def near(self, name: str) -> list[str]:
        """Return the names that a wrong one may have meant."""
        return nearest(name, self._known, 3)

    def schema_of(self, name: str) -> dict[str, Any] | None:
        """Return a tool's input schema."""
        found = self.find(name)
        return None if found is None else found.tool["inputSchema"]


def _offered(row: dict[str, Any]) -> Offered:
    name = row["item_id"].rpartition("/")[2]
    read_only = name in ("read", "grep", "glob", "ls")
    return Offered(
        row["item_id"],
        {
            "name": name,
            "title": name,
            "description": row["docstring"],
            "inputSchema": row["parameters"],
            "outputSchema": {"type": "object", "properties": {"success": {"type": "boolean"}}},
            "annotations": {"title": name, "readOnlyHint": read_only},
            "_meta": {"rye/digest": row["digest"], "rye/signer": row["signer"], "rye/id": row["item_id"]},
        },
    )
