"""Pages from the templates of `rye review`: each text is escaped, and what would hide or turn text around is named."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rye.call.safe_text import is_hidden

_PAGES: Final = (
    ("", "Changes", "1"),
    ("since", "Since you looked", "2"),
    ("jobs", "Jobs", "3"),
    ("tools", "Tools", "4"),
    ("keys", "Keys", "5"),
)
_KEYS: Final = (
    (("j", "k"), "the next, the previous item: a call, a file, a hunk"),
    (("Enter",), "open the item"),
    (("n", "p"), "the older, the newer call"),
    (("u",), "take back, or restore, the item; on a call's page without an item: the call"),
    (("U",), "take back, or restore, the whole call"),
    (("r",), "mark the item as reviewed, or not"),
    (("R",), "mark the whole call as reviewed, or not"),
    (("s",), "I have seen everything up to here"),
    (("/",), "search"),
    (("x",), "go to the stop button of the job (Enter presses it)"),
    (("a",), "go to the code field or the button that approves a key"),
    (("b",), "back to the list"),
    (("1", "5"), "the pages"),
    (("?",), "this help (Escape closes it)"),
)


class Frame(NamedTuple):
    """What a page needs besides its content.

    Attributes:
        base: the path that all addresses begin with.
        token: what a form must hold.
        project: the project's folder.
    """

    base: str
    token: str
    project: str


def render(
    frame: Frame, name: str, title: str, values: dict[str, Any], *, path: str = "", live: str = "", said: str = ""
) -> str:
    """Return a whole page.

    Args:
        frame: see `Frame`.
        name: its template.
        title: its heading.
        values: what the template shows.
        path: the entry of the navigation that it belongs to.
        live: the version of what it shows; with one, `live.js` asks for newer ones.
        said: what the last action came to; empty for nothing.
    """
    shared = {"frame": frame, "title": title, "path": path, "live": live, "said": said, "navigation": _PAGES, "keys": _KEYS}
    return _environment().get_template(f"{name}.html").render({"newline": "\n", **shared, **values})


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.filters |= {"text": _shown_text, "moment": _moment}
    return made


def _shown(value: Any) -> Any:
    """Return a text as HTML, with hidden characters named; what is HTML already stays."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isascii() and (value.isprintable() or value == "\n"):
        return escape(value)
    return Markup("").join(escape(char) if char == "\t" or not is_hidden(char) else _named(char) for char in value)


def _named(char: str) -> Markup:
    return Markup('<span class="odd">U+{}</span>').format(f"{ord(char):04X}")


def _shown_text(text: str) -> Markup:
    """Return a text of several lines as HTML."""
    return Markup("\n").join(map(_shown, text.split("\n")))


def _moment(stamp: float | str, whole: bool = False) -> Markup:
    """Return a time in this machine's time zone as a `time` element: hour and minute, or all of it, as in its title."""
    there = time.localtime(float(stamp))
    machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(float(stamp)))
    full = time.strftime("%Y-%m-%d %H:%M:%S", there)
    text = full if whole else time.strftime("%H:%M", there)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, full, text)
