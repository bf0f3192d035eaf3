"""The careful exact-string replacement: bytes in, bytes out, each old text there exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hunks import quoted
from outcome import Attempt, Pair, json_bytes

if TYPE_CHECKING:
    from pathlib import Path


class ExactString:
    """The best a string editor can be: strict UTF-8, no text mode, no guess, all edits or none."""

    def attempt(self, target: Path, pair: Pair) -> Attempt:
        """Replace string by string; refuse what is not UTF-8."""
        try:
            shown = target.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            return Attempt(False, f"not UTF-8: {error}")
        try:
            edits = [(old, new) for old, new, _ in quoted(shown, pair.after.decode("utf-8"))]
        except UnicodeDecodeError:
            return Attempt(False, "the new text is not UTF-8", read=len(pair.before), sayable=False)
        arguments = {"path": str(target), "edits": [{"old": old, "new": new} for old, new in edits]}
        cost = {"wrote": json_bytes(arguments), "read": len(pair.before), "read_plain": len(pair.before)}
        problem = self._replace(target, edits)
        return Attempt(problem is None, problem or "", **cost)

    def close(self) -> None:
        """Nothing is running."""

    @staticmethod
    def _replace(target: Path, edits: list[tuple[str, str]]) -> str | None:
        text = target.read_bytes().decode("utf-8")
        for old, new in edits:
            if old == text:
                text = new
                continue
            at = text.find(old)
            if at < 0 or text.find(old, at + 1) >= 0:
                return f"{text.count(old)} matches"
            text = text[:at] + new + text[at + len(old) :]
        target.write_bytes(text.encode("utf-8"))
        return None


def open_editor(_root: Path, _tools: Path) -> ExactString:
    """Return the editor; it needs nothing installed."""
    return ExactString()
