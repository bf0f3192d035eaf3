"""What all pages of `rye review` share: the frame with its navigation and help, forms, and text made safe to show."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from rye.call.safe_text import is_hidden

PAGES: Final = (
    ("", "Changes", "1"),
    ("since", "Since you looked", "2"),
    ("jobs", "Jobs", "3"),
    ("tools", "Tools", "4"),
    ("keys", "Keys", "5"),
)
"""The pages of the navigation: path, name, key."""

_KEYS: Final = (
    ("j, k", "the next, the previous item: a call, a file, a hunk"),
    ("Enter", "open the item"),
    ("n, p", "the older, the newer call"),
    ("u", "take back, or restore, the item; on a call's page without an item: the call"),
    ("U", "take back, or restore, the whole call"),
    ("r", "mark the item as reviewed, or not"),
    ("R", "mark the whole call as reviewed, or not"),
    ("s", "I have seen everything up to here"),
    ("/", "search"),
    ("x", "go to the stop button of the job (Enter presses it)"),
    ("a", "go to the code field or the button that approves a key"),
    ("b", "back to the list"),
    ("1 to 5", "the pages"),
    ("?", "this help (Escape closes it)"),
)


def shown(text: str) -> str:
    """Return a text as HTML: escaped, and what would hide or turn text around is named in its place."""
    if text.isascii() and text.isprintable():
        return escape(text)
    return "".join(_char(char) for char in text)


def _char(char: str) -> str:
    if char == "\t" or not is_hidden(char):
        return escape(char)
    return f'<span class="odd">U+{ord(char):04X}</span>'


class Frame(NamedTuple):
    """What a page needs besides its content.

    Attributes:
        base: the path that all addresses begin with.
        token: what a form must hold.
        project: the project's folder.
        said: what the last action came to; empty for nothing.
    """

    base: str
    token: str
    project: str
    said: str = ""

    def page(self, title: str, body: str, *, path: str = "", live: str = "") -> str:
        """Return a whole page.

        Args:
            title: its heading.
            body: HTML.
            path: the entry of the navigation that it belongs to.
            live: the version of what it shows; with one, `live.js` asks for newer ones.
        """
        links = "".join(
            f'<li><a href="{self.base}/{one}" data-key="{key}"{" aria-current=page" if one == path else ""}>{name}</a></li>'
            for one, name, key in PAGES
        )
        said = f'<p class="said" id="said">{shown(self.said)}</p>' if self.said else ""
        version = f' data-live="{escape(live)}"' if live else ""
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - rye review</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f'<link rel="stylesheet" href="{self.base}/static/review.css">'
            f'<script type="module" src="{self.base}/static/keys.js"></script>'
            f'<script type="module" src="{self.base}/static/live.js"></script></head><body>'
            '<a class="skip" href="#main">Skip to the content</a>'
            f'<header><p class="project" title="{escape(self.project)}">{shown(self.project.rpartition("/")[2])}</p>'
            f'<nav aria-label="Pages"><ul>{links}</ul></nav>'
            '<button type="button" id="help-button" hidden aria-haspopup="dialog">Shortcuts <kbd>?</kbd></button></header>'
            f'<main id="main" tabindex="-1"><h1>{shown(title)}</h1><div role="status" id="news">{said}</div>'
            f'<div id="live"{version}>{body}</div></main>{_help()}</body></html>'
        )

    def form(self, action: str, body: str, fields: Mapping[str, str] | None = None, kind: str = "") -> str:
        """Return a form that posts to a path below the base."""
        hidden = "".join(
            f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
            for name, value in {"token": self.token, **(fields or {})}.items()
        )
        mark = f' class="{kind}"' if kind else ""
        return f'<form method="post" action="{self.base}/{action}"{mark}>{hidden}{body}</form>'


def button(label: str, value: str, does: str = "", about: str = "", kind: str = "") -> str:
    """Return a button of a form.

    Args:
        label: what it shows.
        value: what it sends as `do`.
        does: by which name `keys.js` finds it.
        about: what it is for, told to who does not see where it is.
        kind: its class.
    """
    marks = f' data-do="{does}"' if does else ""
    marks += f' class="{kind}"' if kind else ""
    more = f'<span class="hide"> {shown(about)}</span>' if about else ""
    return f'<button name="do" value="{escape(value)}"{marks}>{escape(label)}{more}</button>'


def lines(added: int, removed: int) -> str:
    """Return how many lines were added and removed."""
    return f'<span class="lines"><span class="plus">+{added:,}</span> <span class="minus">&minus;{removed:,}</span></span>'


def toggle(made: str, *, pressed: bool, name: str = "") -> str:
    """Return a button that is pressed or not; with a name it is read as that."""
    label = f' aria-label="{escape(name)}"' if name else ""
    return made.replace("<button ", f'<button aria-pressed="{str(pressed).lower()}"{label} ', 1)


def shown_lines(text: str) -> str:
    """Return a text of several lines as HTML."""
    return "\n".join(map(shown, text.split("\n")))


def moment(stamp: float, *, whole: bool = False) -> str:
    """Return a time in this machine's time zone as a `time` element: hour and minute, or all of it, as in its title."""
    there = time.localtime(stamp)
    machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(stamp))
    full = time.strftime("%Y-%m-%d %H:%M:%S", there)
    text = full if whole else time.strftime("%H:%M", there)
    return f'<time datetime="{machine}" title="{full}">{text}</time>'


def day(stamp: float, now: float) -> str:
    """Return the day of a time, in words where it is near."""
    there = time.localtime(stamp)
    for text, before in (("Today", 0), ("Yesterday", 86_400)):
        if time.localtime(now - before)[:3] == there[:3]:
            return text
    return time.strftime("%A, %Y-%m-%d", there)


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """Return a table; cells are HTML already."""
    if not rows:
        return f'<p class="empty">{escape(empty)}</p>'
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in columns)
    body = "".join(
        f'<tr data-scope><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _help() -> str:
    rows = "".join(f"<div><dt>{_keys(keys)}</dt><dd>{escape(what)}</dd></div>" for keys, what in _KEYS)
    return (
        '<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Shortcuts</h2>'
        f'<dl>{rows}</dl><form method="dialog"><button>Close</button></form></dialog>'
    )


def _keys(text: str) -> str:
    return re.sub(r"[^ ,]+", lambda match: match[0] if match[0] == "to" else f"<kbd>{escape(match[0])}</kbd>", text)
