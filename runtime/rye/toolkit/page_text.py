"""The text of an HTML page: what a reader of the page would see. Runs in a child of its own, for it parses hostile input.

The call is `main(task)` with the page's bytes (UTF-8) in the descriptor the task names; the answer is one JSON line:
`{"title", "text", "main", "flattened"}`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any
from urllib.parse import urljoin

import html_to_markdown
from selectolax.lexbor import LexborHTMLParser, LexborNode

_UNSEEN = (
    "script, style, noscript, template, iframe, object, embed, svg, canvas, [hidden], input[type=hidden], dialog:not([open])"
)
_UNSEEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|clip\s*:\s*rect\(\s*0[^1-9]*\)|(?<![\w-])color\s*:\s*transparent",
    re.IGNORECASE,
)
# A box of no width or height shows its content all the same, unless that is cut off.
_NO_ROOM = re.compile(r"(?:^|[;\s-])(?:width|height)\s*:\s*0(?:px|em|rem|%)?\s*(?:;|!|$)", re.IGNORECASE)
_CUT_OFF = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)
_COMMENT = re.compile(r"/\*.{0,1000}?\*/", re.DOTALL)
_MAIN = ("main", "[role=main]")
_LINKS = ("http://", "https://", "mailto:")
_BLANKS = re.compile(r"\n{3,}")
_MAX_TITLE = 300


def main(task: str) -> int:
    """Answer one task: `{"fd", "url", "format": "markdown" | "text", "main_only"}`."""
    asked = json.loads(task)
    with open(asked["fd"], "rb") as file:
        html = file.read()
    sys.stdout.write(json.dumps(read(html, asked["url"], asked["format"], main_only=asked["main_only"])) + "\n")
    return 0


def read(html: bytes, url: str, form: str, *, main_only: bool) -> dict[str, Any]:
    """Return the page's title and text, whether only its main part was taken, and whether its structure was lost."""
    tree = LexborHTMLParser(html)
    base = tree.css_first("base[href]")
    title = tree.css_first("title")
    where = urljoin(url, base.attributes.get("href") or "") if base else url
    _drop_unseen(tree)
    part = _main(tree) if main_only else None
    root = part or tree.body or tree.root
    if root is None:
        return {"title": "", "text": "", "main": False, "flattened": False}
    _mend_links(root, where)
    text = _converted(root.html or "", form)
    seen = root.text(separator=" ")
    flattened = not text.strip() and bool(seen.strip())
    return {
        "title": " ".join(title.text().split())[:_MAX_TITLE] if title else "",
        "text": " ".join(seen.split()) if flattened else text,
        "main": part is not None,
        "flattened": flattened,
    }


def _drop_unseen(tree: LexborHTMLParser) -> None:
    # A root that a script of the page would show at last is read all the same: else nothing were left.
    for root in (tree.root, tree.body):
        for name in ("hidden", "style"):
            if root is not None and name in root.attributes:
                del root.attrs[name]
    for node in tree.css(_UNSEEN):
        node.decompose()
    for node in tree.css("[style]"):
        if _unseen(_COMMENT.sub("", node.attributes.get("style") or "")):
            node.decompose()


def _unseen(style: str) -> bool:
    return bool(_UNSEEN_STYLE.search(style) or (_NO_ROOM.search(style) and _CUT_OFF.search(style)))


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    """Return the page's main part: a `main`, or the one article; None where it says neither, or holds no text."""
    for selector in _MAIN:
        found = tree.css_first(selector)
        if found is not None and found.text().strip():
            return found
    articles = tree.css("article")
    return articles[0] if len(articles) == 1 and articles[0].text().strip() else None


def _mend_links(root: LexborNode, base: str) -> None:
    """Make links absolute; those that lead nowhere on the web become their text."""
    for link in root.css("a[href]"):
        target = _absolute(base, link.attributes.get("href") or "")
        if target.lower().startswith(_LINKS):
            link.attrs["href"] = target
        else:
            link.unwrap()


def _absolute(base: str, href: str) -> str:
    # Browsers leave out control characters and blanks that stand in a URL, also within "javascript:".
    cleaned = re.sub(
        r"[\x00-\x20\x7f]+",
        lambda match: "" if "\n" in match[0] or "\t" in match[0] or "\r" in match[0] else "%20",
        href.strip(),
    )
    try:
        return urljoin(base, cleaned)
    except ValueError:
        return ""


def _converted(html: str, form: str) -> str:
    plain = form == "text"
    options = html_to_markdown.ConversionOptions(
        extract_metadata=False, skip_images=True, max_input_size=64 * 1024 * 1024,
        output_format=html_to_markdown.OutputFormat.PLAIN if plain else html_to_markdown.OutputFormat.MARKDOWN,
    )  # fmt: skip
    return _BLANKS.sub("\n\n", html_to_markdown.convert(html, options).content or "").strip("\n") + "\n"


if __name__ == "__main__":
    os._exit(main(sys.argv[1]))
