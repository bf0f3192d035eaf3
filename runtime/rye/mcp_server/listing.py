"""The tools of a server as its clients see them: which items, under which names, and how far its search and loads reach."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rye.agents.discovery import listing, names_of
from rye.agents.offers import Offer
from rye.agents.provider_schemas import render, tool_name
from rye.call.safe_text import nearest
from rye.errors import ItemError
from rye.items import spaces
from rye.plain_class import Record

_FILES = "rye/file-system/"
DIRECT: Final = (
    *(_FILES + name for name in ("read", "write", "edit_lines", "undo", "glob", "grep", "ls")),
    "rye/bash/bash",
    "rye/bash/job",
    "rye/primary-tools/rye_search",
)
"""Offered by default, in this order: what an agent needs at once, and the search for the rest."""

SEARCH: Final = "rye/primary-tools/rye_search"
EXECUTE: Final = "rye/primary-tools/rye_execute"
META: Final = (EXECUTE, "rye/primary-tools/rye_load")
"""Offered besides with `--meta`: other items by their ids."""

SIGN: Final = "rye/primary-tools/rye_sign"
"""Offered with `--allow-sign` only, whatever category is asked for."""

_PRIMARY = (*META, SIGN)
_NAMED = 5


class Selection(Record):
    """The choice made when a server is started.

    Attributes:
        categories: tools in these or below are offered too.
        meta: offer the primary tools.
        allow_sign: offer rye_sign; the user's configuration still decides whether it signs.
        structured: list output schemas and answer with fields besides the text, for programs.
        only: ids of the tools to offer in place of the usual ones; none for the usual ones.
        read_only: offer no tool that can change anything.
    """

    categories: tuple[str, ...] = ()
    meta: bool = False
    allow_sign: bool = False
    structured: bool = False
    only: tuple[str, ...] = ()
    read_only: bool = False

    def chooses(self, item_id: str) -> bool:
        """Tell whether a tool is one of the selection, by its id."""
        if self.only:
            return item_id in self.only and (item_id != SIGN or self.allow_sign)
        if item_id in _PRIMARY:
            return (item_id == SIGN and self.allow_sign) or (item_id in META and self.meta)
        return item_id in DIRECT or any(item_id.startswith(category.strip("/") + "/") for category in self.categories)

    def reaches(self, item_type: str, item_id: str) -> bool:
        """Tell whether the primary tools reach an item: the chosen tools; and texts, which can do nothing by themselves."""
        return item_type != "tool" or self.chooses(item_id)

    def categories_asked(self) -> list[str]:
        """Return the categories in which the chosen tools are to be looked for."""
        return sorted({item_id.rpartition("/")[0] for item_id in (*DIRECT, *_PRIMARY, *self.only)} | set(self.categories))

    def in_order(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return the chosen tools: the usual ones first, then by id."""
        places = {item_id: place for place, item_id in enumerate((*DIRECT, *_PRIMARY))}
        # By what its signer declares, which for other signers' tools the permissions bound.
        chosen = [one for one in offers if self.chooses(one.item_id) and (one.effects["read_only"] or not self.read_only)]
        return sorted(chosen, key=lambda offer: (places.get(offer.item_id, len(places)), offer.item_id))


def switch_for(item_ids: Iterable[str]) -> str:
    """Return the sentence that says how a user makes a server offer tools."""
    ids = list(item_ids)
    categories = [*dict.fromkeys(one.rpartition("/")[0] for one in ids if one not in _PRIMARY)][:_NAMED]
    options = [*(f"--category {one}" for one in categories), *(["--meta"] if set(ids) & set(_PRIMARY) else [])]
    return f"Your user can start it with `rye mcp {' '.join(options)}`."


class Offered(NamedTuple):
    """One tool of the listing: its offer, and what `tools/list` says of it."""

    offer: Offer
    tool: dict[str, Any]

    @property
    def repeatable(self) -> bool:
        """Whether a call may be made again: by the space that serves it, for another signer's tool cannot claim that."""
        return self.offer.space == "system" and self.offer.effects["read_only"]


_FEW = 20


class OfferedTools:
    """What a server offers now. Any thread may use it.

    The listing is made anew whenever it is asked for; between times names lead to ids from memory, since the executor verifies
    every call by itself.
    """

    def __init__(self, project: str, selection: Selection) -> None:
        self._project = project
        self._selection = selection
        self._known: dict[str, Offered] = {}

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools in the protocol's shape, always in the same order."""
        found = listing(self._selection.categories_asked(), project_path=self._project).offers
        offered = []
        for one in self._selection.in_order(found):
            with suppress(ItemError):
                offered.append(Offered(one, render(one, "mcp")))
        # Replaced as a whole: another thread sees the old listing or the new one.
        self._known = {one.tool["name"]: one for one in offered}
        # A schema without the fields that it describes makes some clients refuse the answer.
        left_out = () if self._selection.structured else ("outputSchema",)
        return [{name: part for name, part in one.tool.items() if name not in left_out} for one in offered]

    def known(self, name: str) -> Offered | None:
        """Return the tool of that name, as it was last listed."""
        return self._known.get(name)

    def find(self, name: str) -> Offered | None:
        """Return the tool of that name; looked for anew when it was not there before, which takes a moment."""
        # Not on each call: a listing verifies every tool of the categories.
        if name not in self._known:
            self.tools()
        known = self._known
        meant = tool_name(name, known)
        return known[meant] if meant is not None else None

    def by_id(self, item_id: str) -> Offered | None:
        """Return the tool of that id, if it is offered."""
        return next((one for one in self._known.values() if one.offer.item_id == item_id), None)

    def near(self, name: str) -> str:
        """Say which tools a wrong name may have meant: all, where they are few, since other products name theirs otherwise."""
        if len(self._known) <= _FEW:
            return f"This server has {', '.join(self._known)}."
        near = nearest(name, self._known, 3)
        return f"Did you mean {', '.join(near)}?" if near else "tools/list names what there is."

    def elsewhere(self, name: str) -> str | None:
        """Say why an installed tool of that name is not offered; None where there is none."""
        ids = [item_id for item_id, _, _ in spaces.served_items("tool", spaces.spaces(self._project))]
        found = names_of(ids).get(name) or (name if name in ids else None)
        if found is None or not self._selection.chooses(found):
            return found and f"{found} is installed, but this server does not offer it. {switch_for([found])}"
        read_only = "this server was started to read only, or " if self._selection.read_only else ""
        return f"{found} is not offered: {read_only}`rye verify {found}` says why."

    def schema_of(self, name: str) -> dict[str, Any] | None:
        """Return a tool's input schema."""
        found = self.find(name)
        return None if found is None else found.tool["inputSchema"]
