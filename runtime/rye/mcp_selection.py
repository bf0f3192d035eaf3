"""What one MCP server offers: which items, under which names, and how far its search and its other doors to items reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rye.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rye.offers import Offer

_FILES = "rye/file-system/"
DIRECT: Final = (
    *(_FILES + name for name in ("read", "write", "edit_lines", "undo", "glob", "grep", "ls")),
    "rye/bash/bash", "rye/bash/job", "rye/primary-tools/rye_search",
)  # fmt: skip
"""Offered by default, in this order: what an agent needs at once, and the way to the rest."""

EXECUTE: Final = "rye/primary-tools/rye_execute"
META: Final = (EXECUTE, "rye/primary-tools/rye_load")
"""Offered besides with `--meta`: other items by their ids."""

SIGN: Final = "rye/primary-tools/rye_sign"
"""Offered with `--allow-sign` only, whatever category is asked for."""

_PRIMARY = (*META, SIGN)


class Selection(Record):
    """The choice made when a server is started.

    Attributes:
        categories: tools in these or below are offered too.
        meta: offer the primary tools.
        allow_sign: offer rye_sign; the user's configuration still decides whether it signs.
    """

    categories: tuple[str, ...] = ()
    meta: bool = False
    allow_sign: bool = False

    def chooses(self, item_id: str) -> bool:
        """Tell whether a tool is one of the selection."""
        if item_id in _PRIMARY:
            return (item_id == SIGN and self.allow_sign) or (item_id in META and self.meta)
        return item_id in DIRECT or any(item_id.startswith(category.strip("/") + "/") for category in self.categories)

    def reaches(self, item_type: str, item_id: str) -> bool:
        """Tell whether the primary tools reach an item: the chosen tools; and texts, which can do nothing by themselves."""
        return item_type != "tool" or self.chooses(item_id)

    def categories_asked(self) -> list[str]:
        """Return the categories in which the chosen tools are to be looked for."""
        return sorted({item_id.rpartition("/")[0] for item_id in (*DIRECT, *_PRIMARY)} | set(self.categories))

    def in_order(self, offers: Iterable[Offer]) -> list[Offer]:
        """Return the chosen tools: the usual ones first, then by id."""
        places = {item_id: place for place, item_id in enumerate((*DIRECT, *_PRIMARY))}
        chosen = [offer for offer in offers if self.chooses(offer.item_id)]
        return sorted(chosen, key=lambda offer: (places.get(offer.item_id, len(places)), offer.item_id))
