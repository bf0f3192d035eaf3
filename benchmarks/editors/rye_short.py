"""This project's `read` and `edit_lines` in short addresses, with changes as strings, as a model is offered them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from editors.rye_lines import RyeLines
from outcome import Unavailable

if TYPE_CHECKING:
    from pathlib import Path


class RyeShort(RyeLines):
    """Reads every page, then makes all of a pair's changes in one call."""

    form = "short"

    def ids_of(self, pages: list[str]) -> list[str]:
        """Return the addresses; in a file that was never edited an empty line has the number behind the one before."""
        out: list[str] = []
        for page in pages:
            for line in page.split("\n"):
                if line.startswith(("[version ", "[tool_result: ", "[empty file", "[bytes that", "[the file is")):
                    break
                out.append(line.partition("\t")[0] or str(len(out) + 1))
        return out

    def said(self, change: dict[str, Any]) -> dict[str, Any] | str:
        """Return a change as one string, where a string can say it."""
        lines = change["new_content"].split("\n")
        if change["new_content"].endswith("\n"):
            lines.pop()
        if not change["new_content"] or set(change) & {"newline"} or any("\r" in line for line in lines):
            return change
        if "line_id" in change:
            head = str(change["line_id"])
        elif "start_line_id" in change:
            head = f"{change['start_line_id']}-{change['end_line_id']}"
        else:
            head = f"{change['after_line_id']}+" if "after_line_id" in change else f"+{change['before_line_id']}"
        text = "\n".join(lines)
        return f"{head}|{text}"


def open_editor(root: Path, _tools: Path) -> RyeShort:
    """Import the runtime.

    Raises:
        Unavailable: It is not importable.
    """
    try:
        import rye

        return RyeShort(rye.execute, root)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"not importable: {error}") from error
