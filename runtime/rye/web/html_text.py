"""The text of an HTML page, in a child process of its own, because it parses hostile input.

The call is `main(task)` with the page's bytes (UTF-8) in the descriptor that the task names; the answer is one line of JSON:
`{"title", "text", "main"}`: headings, paragraphs, lists, links and code; of a table each row is a line, its cells between bars.
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

_UNSEEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])"
    r"|opacity\s*:\s*\.?0(?![.\d]*[1-9])|(?:left|top|text-indent)\s*:\s*-\d{3,}|clip\s*:\s*rect\(\s*0[^1-9]*\)"
    # An escape could stand for any letter, and nobody writes one by hand.
    r"|(?<![\w-])color\s*:\s*(?:transparent|(?:rgb|hsl)a?\((?:[^,)]{1,20},){3}\s*0?\.?0*%?\s*\))|\\[0-9a-f]",
    re.IGNORECASE,
)
# A box of no width or height shows its content all the same, unless that is cut off.
_NO_SIZE = re.compile(r"(?:^|[;\s-])(?:width|height)\s*:\s*0(?:px|em|rem|%)?\s*(?:;|!|$)", re.IGNORECASE)
_CUT_OFF = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.{0,1000}?\*/", re.DOTALL)
_LINKS = ("http://", "https://", "mailto:")
_BLANKS = re.compile(r"\n{3,}")

_UNSEEN = {"script", "style", "noscript", "template", "iframe", "object", "svg", "canvas"}
_UNSEEN |= {"audio", "video", "datalist", "noframes"}
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
_LISTS = {"ul", "ol", "menu"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
# Of the elements that browsers set apart by lines, those that pages use most.
_BLOCKS = {"address", "article", "aside", "blockquote", "details", "div", "dl", "figure", "footer", "form", "header", "main"}
_BLOCKS |= {"dd", "dt", "nav", "ol", "p", "pre", "section", "summary", "table", "ul", *_HEADINGS}
# These end where the next of their kind begins, whether or not they were closed.
_CLOSED_BY_NEXT = {"p", "li", "dt", "dd", "tr", "td", "th"}
_MAX_TITLE = 300


def main(task: str) -> int:
    """Answer one task: `{"fd", "url", "format": "markdown" | "text", "main_only"}`."""
    request = json.loads(task)
    with open(request["fd"], "rb") as file:
        html = file.read()
    found = read(html, request["url"], request["format"], main_only=request["main_only"])
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def read(html: bytes, url: str, form: str, *, main_only: bool) -> dict[str, Any]:
    """Return the page's title and text, and whether only its main part was taken."""
    reducer = _Reducer(url, markdown=form == "markdown")
    reducer.feed(html.decode("utf-8", "replace"))
    reducer.close()
    start, end = reducer.main_part() if main_only else (0, None)
    lines = [line.rstrip() for line in "".join(reducer.pieces[start:end]).split("\n")]
    return {
        "title": " ".join("".join(reducer.title).split())[:_MAX_TITLE],
        "text": _BLANKS.sub("\n\n", "\n".join(lines)).strip("\n") + "\n",
        "main": (start, end) != (0, None),
    }


class _Reducer(HTMLParser):
    """Collects what a reader of the page would see, in pieces of text."""

    def __init__(self, url: str, *, markdown: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._base, self._markdown = url, markdown
        # Of each open element: its name, whether it is hidden, what ends it, and where in `pieces` it began.
        self._open: list[tuple[str, bool, str, int]] = []
        self._hidden = self._pre = 0
        # Of each open list the number of its next item; 0 where items have none.
        self._lists: list[int] = []
        self._mains: list[tuple[int, int]] = []
        self._articles: list[tuple[int, int]] = []

    def main_part(self) -> tuple[int, int | None]:
        """Return the range of the main part: a `main`, or the one article; else of everything."""
        single = self._articles if len(self._articles) == 1 else []
        for start, end in (*self._mains, *single):
            if "".join(self.pieces[start:end]).strip():
                return start, end
        return 0, None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "base" and attributes.get("href"):
            self._base = _absolute(self._base, attributes["href"]) or self._base
        # Only directly inside its like: closing more could show what an outer element hides.
        if tag in _CLOSED_BY_NEXT and self._open and self._open[-1][0] == tag:
            self.handle_endtag(tag)
        if tag in _VOID:
            if not self._hidden:
                self._add({"br": "\n", "hr": "\n\n---\n\n" if self._markdown else "\n\n"}.get(tag, ""))
            return
        hidden = tag not in ("html", "body") and (
            tag in _UNSEEN
            or not attributes.keys().isdisjoint(("hidden", "popover"))
            or (tag == "dialog" and "open" not in attributes)
            or _is_unseen(attributes.get("style", ""))
        )
        start = len(self.pieces)
        begins, ends = ("", "") if hidden or self._hidden else self._around(tag, attributes)
        self._add(begins)
        # The role is remembered beside the name, by which the end tag finds it.
        kind = "main" if attributes.get("role") == "main" else tag
        self._open.append((tag if kind == tag else f"{tag} main", hidden, ends, start))
        self._hidden += hidden
        self._pre += tag == "pre"
        if tag in _LISTS:
            first = attributes.get("start", "")
            self._lists.append(0 if tag != "ol" else int(first) if first.isdecimal() and len(first) < 6 else 1)

    def _around(self, tag: str, attributes: dict[str, str]) -> tuple[str, str]:
        """Return what an element's text begins and ends with."""
        around = ("", "")
        if tag == "li":
            number = self._lists[-1] if self._lists else 0
            around = (f"\n{'   ' * (len(self._lists) - 1)}{f'{number}.' if number else '-'} ", "")
            self._lists[-1:] = [number + 1 if number else 0]
        elif tag == "tr":
            around = ("\n| ", "")
        elif tag in ("td", "th"):
            around = ("", " | ")
        elif tag in _BLOCKS and not (tag in _LISTS and self._lists):
            around = ("\n\n", "\n\n")
        if not self._markdown:
            return around
        if tag in _HEADINGS:
            return f"\n\n{'#' * int(tag[1])} ", "\n\n"
        if tag == "code" and not self._pre:
            return "`", "`"
        if tag == "pre":
            return "\n\n```\n", "\n```\n\n"
        target = _absolute(self._base, attributes.get("href", "")) if tag == "a" and "href" in attributes else ""
        return ("[", f"]({target})") if target.lower().startswith(_LINKS) else around

    def handle_endtag(self, tag: str) -> None:
        at = next((at for at in range(len(self._open) - 1, -1, -1) if self._open[at][0].split(" ")[0] == tag), None)
        if at is None:
            return
        # What was not closed inside ends here too.
        while len(self._open) > at:
            name, hidden, ends, start = self._open.pop()
            self._hidden -= hidden
            self._pre -= name == "pre"
            if name in _LISTS:
                self._lists.pop()
            self._add(ends)
            if name == "main" or name.endswith(" main"):
                self._mains.append((start, len(self.pieces)))
            elif name == "article":
                self._articles.append((start, len(self.pieces)))

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._open and self._open[-1][0] == "title":
            self.title.append(data)
        else:
            text = data if self._pre else re.sub(r"\s+", " ", data)
            last = self.pieces[-1][-1:] if self.pieces else "\n"
            # A blank at the beginning of a line is none.
            self._add(text.lstrip(" ") if last in ("\n", " ") and not self._pre else text)

    def _add(self, text: str) -> None:
        if text:
            self.pieces.append(text)


def _is_unseen(style: str) -> bool:
    """Tell whether an element's style hides it from a reader."""
    style_text = _COMMENT.sub("", style)
    return bool(_UNSEEN_STYLE.search(style_text) or (_NO_SIZE.search(style_text) and _CUT_OFF.search(style_text)))


def _absolute(base: str, href: str) -> str:
    """Return where a link leads; "" where it cannot be read."""
    # Browsers leave out control characters and blanks that stand in a URL, also within "javascript:".
    cleaned = re.sub(r"[\x00-\x20\x7f]+", lambda match: "" if set("\n\t\r") & set(match[0]) else "%20", href.strip())
    try:
        return urljoin(base, cleaned)
    except ValueError:
        return ""
