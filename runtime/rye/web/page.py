"""An answer from the web as text: which kind it is, in which charset, and what a reader would see of it."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import tempfile
from typing import Any, Literal

from rye.call.safe_text import is_hidden
from rye.errors import RyeError
from rye.fs.atomic import closing
from rye.plain_class import Record
from rye.process.child import Child, Command, own_module
from rye.web.client import HttpAnswer
from rye.workspace.encoding_guess import guess

Format = Literal["markdown", "text", "html"]

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})|<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_HEAD = 4_096
# What the labels of the web mean in browsers (WHATWG Encoding Standard), where Python means something narrower.
_BROWSERS = {
    "cp1252": "iso-8859-1 iso8859-1 latin1 latin-1 ascii us-ascii",
    "cp1254": "iso-8859-9",
    "cp932": "shift_jis shift-jis sjis x-sjis",
    "gb18030": "gb2312 gbk",
    "cp949": "euc-kr ks_c_5601-1987",
    "utf-16-le": "utf-16",
    "cp874": "iso-8859-11 tis-620",
}
_LABELS = {label: codec for codec, labels in _BROWSERS.items() for label in labels.split()}
# No encodings of text on the web, or ones that let the same bytes mean two things.
_REFUSED = {"utf_7", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
_HTML = {"text/html", "application/xhtml+xml"}
_TEXT = re.compile(
    r"text/[\w.+-]+\Z|[\w.-]+/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|toml|javascript|x-javascript|ecmascript|x-sh|sql|graphql|x-ndjson)\Z"
)
_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)
_JSON = re.compile(r"[\w.-]+/(?:[\w.-]+\+)?json\Z")
_LOOKS_LIKE_HTML = re.compile(rb"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TOO_LONG = re.compile(r"([^\n]{2000})(?=[^\n])")
MOST_SECONDS = 20.0
"""The conversion of a page takes so long at most."""
_CHILD_MEMORY = 2 * 1024**3
_MAX_TEXT = 32 * 1024 * 1024
_MAX_PRETTY_BYTES = 1024 * 1024
_MAX_PRETTY_CHARS = 8 * 1024 * 1024


class PageError(RyeError):
    """An answer is no text, or cannot be turned into text."""


class WebPage(Record):
    """An answer as text.

    Attributes:
        text: lines that end in LF, none longer than 2,000 characters; hidden characters are left out.
        title: the page's own title, or "".
        content_type: media type, without parameters.
        charset: Python codec the text was decoded with.
        main: only the main part of the page was taken.
        notes: what the answer must say about the conversion.
    """

    text: str
    title: str
    content_type: str
    charset: str
    main: bool = False
    notes: tuple[str, ...] = ()


def read(answer: HttpAnswer, form: Format, *, main_only: bool, seconds: float = MOST_SECONDS) -> WebPage:
    """Return an answer's body as text.

    Raises:
        PageError: `not_text`, `conversion_failed`.
    """
    kind = _kind(answer)
    charset = _charset(answer)
    if kind in _HTML and form != "html":
        return _from_html(answer, kind, charset, form, main_only=main_only, seconds=seconds)
    decoded = _decoded(answer, charset)
    text = _pretty(decoded) if _JSON.match(kind) and form != "html" else decoded
    notes = () if text is not None else ("shown as it came: not valid JSON, or too large to be indented",)
    return WebPage(_lines(decoded if text is None else text), "", kind, charset, False, notes)


def _kind(answer: HttpAnswer) -> str:
    stated = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    # What has not the form of a type names none, and is shown nowhere.
    stated = stated if _TYPE.fullmatch(stated) else ""
    head = answer.body[:_HEAD]
    # Servers that do not know a type send one of these.
    if stated in ("", "application/octet-stream", "text/plain") and _LOOKS_LIKE_HTML.match(head):
        return stated if stated == "text/plain" else "text/html"
    is_marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    wide = is_marked or "utf-16" in answer.headers.get("content-type", "").lower()
    if (stated and not _TEXT.match(stated) and stated not in _HTML) or (b"\0" in head and not wide):
        size = answer.headers.get("content-length") or f"{len(answer.body):,}{'+' * answer.cut}"
        why = f"{answer.asked} is {stated or 'binary data'} of {size} bytes, not text."
        raise PageError("not_text", why, "Only HTML, JSON, XML and other text are read. To keep a file, download it with bash.")
    return stated or "text/plain"


def _charset(answer: HttpAnswer) -> str:
    """Decide the charset: byte order mark, then header, then the document's own word, then UTF-8 if it is that."""
    for bom, name in _BOMS:
        if answer.body.startswith(bom):
            return name
    stated = _PARAMETER.search(answer.headers.get("content-type", ""))
    declared = _DECLARED.search(answer.body[:_HEAD])
    labels = [stated[1]] if stated else []
    if declared:
        own = (declared[1] or declared[2]).decode("ascii", "replace")
        # A document that could be read thus far is in no two-byte encoding, whatever it says.
        labels.append("utf-8" if own.lower().startswith("utf-16") else own)
    for label in labels:
        known = _codec(label)
        if known:
            return known
    return _guessed(answer.body)


def _codec(label: str) -> str | None:
    name = _LABELS.get(label.lower(), label.lower())
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    is_text = getattr(found, "_is_text_encoding", True) and found.name.replace("-", "_") not in _REFUSED
    return found.name if is_text else None


def _guessed(body: bytes) -> str:
    sample = body[:262_144]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
        return "utf-8"
    except UnicodeDecodeError:
        # Of a codec and a wider one that reads the same the wider one is last.
        return (guess(sample) or ["cp1252"])[-1]


def _pretty(text: str) -> str | None:
    """Return JSON indented; None where it is not valid, or where its objects or its indents would fill the memory."""
    if len(text) > _MAX_PRETTY_BYTES:
        return None
    out = io.StringIO()
    try:
        for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(json.loads(text)):
            out.write(piece)
            if out.tell() > _MAX_PRETTY_CHARS:
                return None
    except (ValueError, RecursionError):
        return None
    return out.getvalue() + "\n"


def _lines(text: str) -> str:
    """Give every line an LF, leave hidden characters out, and fold what is too long to be shown whole."""
    # Few copies at a time: a page may have 5 MB.
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # One look at each distinct character, however long the text.
    unseen = {ord(char): None for char in set(text) if char not in "\n\t" and is_hidden(char)}
    if unseen:
        text = text.translate(unseen)
    text = _TOO_LONG.sub(r"\1\n", text).rstrip()
    return text + "\n" if text else ""


def _decoded(answer: HttpAnswer, charset: str) -> str:
    return answer.body.decode(charset, "replace").removeprefix("\ufeff")


def _from_html(answer: HttpAnswer, kind: str, charset: str, form: Format, *, main_only: bool, seconds: float) -> WebPage:
    with tempfile.TemporaryFile() as page:
        # No name holds the decoded page while the child works: it may have 5 MB.
        page.write(_decoded(answer, charset).encode("utf-8", "replace"))
        page.seek(0)
        task = json.dumps({"fd": page.fileno(), "url": answer.url, "format": form, "main_only": main_only})
        found = _run_reader(own_module("rye.web.html_text", task, (page.fileno(),), libraries=True), answer.asked, seconds)
    title = "".join(char for char in found["title"] if not is_hidden(char))
    return WebPage(_lines(found["text"]), title, kind, charset, found["main"])


def _run_reader(command: Command, url: str, seconds: float) -> dict[str, Any]:
    with (
        closing(os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as root,
        Child(command, root, seconds, _CHILD_MEMORY) as child,
    ):
        output = bytearray()
        for block in child.blocks():
            output += block
            if len(output) > _MAX_TEXT:
                break
        code = child.end()
    if child.timed_out or code or len(output) > _MAX_TEXT:
        why = f"{url} could not be converted{' in time' * child.timed_out}."
        raise PageError("conversion_failed", why, 'Ask again with format="html".')
    answer: dict[str, Any] = json.loads(output)
    return answer
