"""The text of an HTML page by the libraries of the extra `web`: what a reader of the page would see. `plain_html` calls it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

import html_to_markdown
from selectolax.lexbor import LexborHTMLParser, LexborNode

from rye.web.plain_html import BLANKS, LINKS, absolute, is_unseen

_UNSEEN = (
    "script, style, noscript, template, iframe, object, embed, svg, canvas, [hidden], input[type=hidden], dialog:not([open])"
)
_MAIN = ("main", "[role=main]")
_MAX_TITLE = 300


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
    visible = root.text(separator=" ")
    flattened = not text.strip() and bool(visible.strip())
    return {
        "title": " ".join(title.text().split())[:_MAX_TITLE] if title else "",
        "text": " ".join(visible.split()) if flattened else text,
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
        if is_unseen(node.attributes.get("style") or ""):
            node.decompose()


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
        target = absolute(base, link.attributes.get("href") or "")
        if target.lower().startswith(LINKS):
            link.attrs["href"] = target
        else:
            link.unwrap()


def _converted(html: str, form: str) -> str:
    plain = form == "text"
    options = html_to_markdown.ConversionOptions(
        extract_metadata=False,
        skip_images=True,
        max_input_size=64 * 1024 * 1024,
        output_format=html_to_markdown.OutputFormat.PLAIN if plain else html_to_markdown.OutputFormat.MARKDOWN,
    )
    return BLANKS.sub("\n\n", html_to_markdown.convert(html, options).content or "").strip("\n") + "\n"
