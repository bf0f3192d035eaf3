# rye:signed:2026-11-28T10:37:40Z:f94309d9c54a9deb05928c12cb6b1fc865f2d085ffce1ee2dc84b32d03d349db:Yj9tsDQbp9mVQXwXD5A3rjRCADfJeoBOLXjparCF8Ce0qwZulOS8Mn_lYlcjlW3JlikxP5hrWCls7tEC6fLwBw==:b63173adc9f5699f
"""Replace the first occurrence of an exact snippet of a text file by another text; the fallback where lines are not known.

Requires: path, old (copied exactly, blanks included; "\\n" also fits the CRLF of a file that has it) and new.
Does not: use patterns, replace every occurrence, or change line endings, encoding or mode. A snippet that is not there is
refused, naming the lines most like it; one that occurs at several places is replaced at the first, and the others are named.
Side effects: rewrites the file atomically; recorded for undo_edit. In the profile safe-read-only nothing is written and the
patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Edited path:a-b`, lines removed and added, the new lines with two on each side, numbered), applied,
other_places (line numbers before the edit), start_line, end_line, entry_id, truncated. dry_run returns the diff only,
show_diff (or RAGIX_AUTO_DIFF=1) adds it. Over 50 KB the output is cut with a [tool_result: …] line.
Prefer edit_range or edit_lines: they name the lines, so nothing is retyped and no twin is hit.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from rye.call.results import first_few
from rye.call.safe_text import nearest
from rye.edits.splices import dominant
from rye.errors import EditError
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Splice
from rye.line_ids.render import Row
from rye.swe.edit import RequestedEdit, edit
from rye.workspace.escapes import encoding_to_try
from rye.workspace.text import content_lines, split

# Places that are named, and places that are looked for, beside the first.
_NAMED, _MOST = 10, 1_000
# Of a file where the snippet does not stand: lines looked at, those of them that are compared, and how much of each. What
# compares two texts takes up to the product of their lengths.
_LOOKED_AT, _COMPARED, _COMPARED_CHARS = 5_000, 200, 80

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Replace exact text (a snippet, a string) where it first occurs in a file, without its line"
__item_id__ = "rye/swe/edit_file"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "old": {"type": "string", "minLength": 1, "description": "The exact text to replace"},
        "new": {"type": "string", "description": "What is there afterwards"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "show_diff": {"type": "boolean", "default": False, "description": "Add the unified diff of this edit to the answer"},
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path", "old", "new"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Make the edit, or show it; name the other places."""
    others: list[int] = []

    def plan(document: Document) -> RequestedEdit:
        found, elsewhere = _snippet(document, params["old"], params["new"])
        others.extend(elsewhere)
        return found

    result = edit(__item_id__, project_path, params, plan, by_number=False)
    return _with_places(result, others) if others else {**result, "other_places": []}


def _snippet(document: Document, old: str, new: str) -> tuple[RequestedEdit, list[int]]:
    """Return the edit that puts `new` in place of the first `old`, and the lines (from 1) where else it occurs."""
    text, data = document.text, document.data or b""
    search_bytes = document.encode(old)
    places = _places(document, search_bytes)
    if not places and "\r" not in old:
        # A file with CRLF, and a snippet as models write it.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        search_bytes = document.encode(old)
        places = _places(document, search_bytes)
    elif "\n" in new and "\r" not in new and dominant(text) == text.encoding.crlf:
        new = new.replace("\n", "\r\n")
    if not places:
        raise _absent(document, old, search_bytes)
    low, high = places[0], places[0] + len(search_bytes)
    # Whole lines are replaced, so that each line keeps or changes its ID as a whole.
    start, stop = text.line_at(low), min(text.line_at(high) + 1, text.count)
    changed = data[text.offset(start) : low] + document.encode(new) + data[high : text.offset(stop)]
    lines = split(changed, text.encoding)
    if lines and high == text.offset(stop - 1) and text.lines(stop - 1, stop) == lines[-1:]:
        # The snippet ended with its line: the next one is not touched.
        stop -= 1
        lines.pop()
    elsewhere = [text.line_at(at) + 1 for at in places[1:]]
    return RequestedEdit(start, stop, len(lines), [Splice(start, stop, lines)]), elsewhere


def _places(document: Document, search_bytes: bytes) -> list[int]:
    """Return the byte offsets at which a snippet occurs, as whole characters, without overlaps.

    The first, and at most 1,000 others.
    """
    data = document.data or b""
    out: list[int] = []
    at = data.find(search_bytes, len(document.text.encoding.bom))
    while at >= 0 and len(out) <= _MOST:
        is_whole = _is_whole(document, at, at + len(search_bytes))
        if is_whole:
            out.append(at)
        # A false match moves on by one byte only: a true one may begin inside it.
        at = data.find(search_bytes, at + (len(search_bytes) if is_whole else 1))
    return out


def _is_whole(document: Document, low: int, high: int) -> bool:
    """Tell whether bytes that look like the snippet are it, not parts of other characters."""
    code, data = document.text.encoding, document.data or b""
    if len(code.newline) > 1:
        # Units of UTF-16 and UTF-32; half a surrogate pair is never encoded.
        return (low - len(code.bom)) % len(code.newline) == 0
    if not code.certain:
        # The byte before may be the first half of a character of the unknown encoding.
        return data[low - 1 : low].isascii()
    if code.name in ("utf-8", "ascii", "latin-1", "iso8859-1") or code.name.startswith(("cp12", "iso8859", "koi8")):
        return True
    # In the other encodings a byte of one character can look like another character.
    start, end = data.rfind(b"\n", 0, low) + 1, data.find(b"\n", high)
    bounds = (start, low, high, len(data) if end < 0 else end)
    try:
        parts = [data[a:b].decode(code.name, "surrogateescape") for a, b in pairwise(bounds)]
        return data[bounds[0] : bounds[-1]].decode(code.name, "surrogateescape") == "".join(parts)
    except UnicodeError:
        return False


def _absent(document: Document, old: str, search_bytes: bytes) -> EditError:
    """Name the lines that are most like the snippet's first: what was retyped is seldom far off."""
    if not document.text.encoding.certain and search_bytes in (document.data or b""):
        return EditError(
            "unknown_characters",
            f"The bytes of old stand in {document.path} only behind bytes that do not decode, perhaps within other characters. "
            "Nothing was written.",
            f'Give the file\'s encoding: encoding="{encoding_to_try(document.data or b"")}" is the most likely.',
        )
    first = next((line for line in content_lines(old) if line.strip()), "").strip()[:_COMPARED_CHARS]
    rows = document.rows(0, min(document.text.count, _LOOKED_AT), ids=False)
    by_text: dict[str, Row] = {}
    for row in rows:
        by_text.setdefault(row.text.strip()[:_COMPARED_CHARS], row)
    # Sort by common words first: comparing every line by edit distance would take seconds in a large file.
    words = {*re.findall(r"\w+", first)}
    alike = sorted(by_text, key=lambda text: -len(words.intersection(re.findall(r"\w+", text))))
    close = [by_text[found] for found in nearest(first, alike[:_COMPARED], 2)]
    near = f" The nearest lines: {'; '.join(row.numbered() for row in close)}." if close else ""
    why = f"The text of old does not occur in {document.path}. Nothing was written.{near}"
    return EditError("snippet_not_found", why, "Copy old exactly, blanks included, or name the lines: edit_range (rt edit).")


def _with_places(result: dict[str, Any], others: list[int]) -> dict[str, Any]:
    some = f"more than {len(others)}" if len(others) == _MOST else len(others) + 1
    notice = (
        f"[the text occurs at {some} places; only the first was changed. The others, in the numbering before: "
        f"line {first_few(others, _NAMED)}]"
    )
    output = f"{result['output']}\n{notice}"
    return {**result, "other_places": others, "output": output, "notices": [*result["notices"], notice]}
