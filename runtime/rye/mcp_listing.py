"""The tools of a server as its clients see them: verified, named, described, pinned by digest and signer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.discovery import listing
from rye.provider_schemas import render_all, wanted_of
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
        return self.tool["annotations"]["readOnlyHint"] is True

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return arguments as the tool's schema wants them, where a model wrote an array or object as its JSON text."""
        wanted: dict[str, Any] = wanted_of(self.tool["inputSchema"], given)
        return wanted


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
        found = listing(self._selection.categories_asked(), project_path=self._project).offers
        rendered = render_all(self._selection.in_order(found), "mcp")[0]
        offered = [Offered(tool["_meta"]["rye/item_id"], tool) for tool in rendered]
        with self._lock:
            self._known = {one.tool["name"]: one for one in offered}
        return [one.tool for one in offered]

    def known(self, name: str) -> Offered | None:
        """Return the tool of that name, as it was last listed."""
        return self._known.get(name)

    def find(self, name: str) -> Offered | None:
        """Return the tool of that name; looked for anew when it was not there before, which takes a moment."""
        if name not in self._known:
            self.tools()
        return self._known.get(name)

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
