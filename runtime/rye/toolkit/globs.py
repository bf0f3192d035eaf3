r"""Glob patterns over paths, compiled to regular expressions that cannot explode.

Grammar: `*` and `?` within a component, `**` as a whole component for any number of them, `[a-z]`, `[!x]` (also `[^x]`),
`{a,b}` (nested too), backslash before any character to mean itself. Letter case counts. Names are text in which bytes that
are not UTF-8 stand as lone surrogates (`os.fsdecode`).

Every star but the last of a component, and every `**` but the last of a pattern, is an atomic group that takes the first
place where what follows it fits: later parts only gain from that, so nothing is ever tried twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rye.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ALTERNATIVES = 256
"""A pattern whose braces give more plain patterns is refused."""

_CLASS_SPECIAL = r"[\\\]\[^&~|-]"
# What every glob dialect reads alike, so that another program may be given the pattern to leave out most files early.
_PLAIN_NAME = r"[A-Za-z0-9_.*+@%=#, -]+"


def bad_glob(glob: str, why: str) -> UsageError:
    """Return the refusal of a malformed pattern."""
    return UsageError(
        "bad_glob", f"Bad glob pattern {glob[:200]!r}: {why}.",
        r"Use * ? ** [a-z] [!x] {a,b}; put a backslash before a character to mean itself, as in \[id\].tsx.",
    )  # fmt: skip


def expand(glob: str) -> list[str]:
    """Return the patterns without braces that `glob` stands for.

    Raises:
        UsageError: `bad_glob` for an unclosed brace, or more than `MAX_ALTERNATIVES`.
    """
    done: list[str] = []
    pending = [glob]
    while pending:
        text = pending.pop()
        brace = _first_brace(text, glob)
        if brace is None:
            done.append(text)
        else:
            start, stop, options = brace
            pending.extend(text[:start] + option + text[stop:] for option in reversed(options))
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise bad_glob(glob, f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done


def _first_brace(text: str, glob: str) -> tuple[int, int, list[str]] | None:
    """Return (start, stop, options) of the first brace group, or None."""
    depth, start, cut = 0, 0, 0
    options: list[str] = []
    for at, char in _significant(text):
        if char == "{":
            depth += 1
            if depth == 1:
                start, cut = at, at + 1
        elif char == "," and depth == 1:
            options.append(text[cut:at])
            cut = at + 1
        elif char == "}" and depth:
            depth -= 1
            if not depth:
                return start, at + 1, [*options, text[cut:at]]
    if depth:
        raise bad_glob(glob, "a { is not closed")
    return None


def _significant(text: str) -> list[tuple[int, str]]:
    """Return the positions and characters that are neither escaped nor inside a class."""
    out: list[tuple[int, str]] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] == "[":
            end = _class_end(text, at)
            if end is not None:
                at = end
                continue
        out.append((at, text[at]))
        at += 1
    return out


def _class_end(text: str, start: int) -> int | None:
    """Return the position behind the class that opens at `start`, or None where it is not closed."""
    at = start + 1
    if text[at : at + 1] in ("!", "^"):
        at += 1
    # A bracket that comes first stands for itself.
    end = text.find("]", at + 1)
    return None if end < 0 else end + 1


def compiled(glob: str) -> Callable[[str], object]:
    """Return a test of whole relative paths; without a slash in it, `glob` is about the name, at any depth.

    Raises:
        UsageError: `bad_glob`.
    """
    alternatives = [translate(one if "/" in one else f"**/{one}", glob) for one in expand(glob)]
    return re.compile("|".join(alternatives), re.DOTALL).fullmatch


def plain_names(glob: str) -> list[str] | None:
    """Return last components of which every match of `glob` has one, if all dialects read them alike."""
    names = [one.rpartition("/")[2] for one in expand(glob)]
    return names if all(re.fullmatch(_PLAIN_NAME, name) and "**" not in name and name != "*" for name in names) else None


def names_a_dot(glob: str) -> bool:
    """Tell whether a component begins with a dot: who writes it means hidden files."""
    return any(part.startswith((".", "\\.")) and part not in (".", "..") for one in expand(glob) for part in one.split("/"))


def escape(name: str) -> str:
    """Return the pattern that a name alone fits."""
    return re.sub(r"[*?\[\]{},\\]", lambda match: f"\\{match[0]}", name)


def translate(glob: str, whole: str | None = None) -> str:
    """Return the regular expression of a brace-free pattern, for a whole relative path.

    Raises:
        UsageError: `bad_glob`, quoting `whole`.
    """
    groups: list[list[str]] = [[]]
    for part in glob.split("/"):
        if part == "**":
            if len(groups) == 1 or groups[-1]:
                groups.append([])
        elif part not in ("", "."):
            groups[-1].append(component(part, whole or glob))
    first, *rest = ["/".join(group) for group in groups]
    if not rest:
        return first
    out = f"{first}/" if first else ""
    out += "".join(rf"(?>(?:[^/]+/)*?{group}/)" for group in rest[:-1])
    return out + (rf"(?:[^/]+/)*{rest[-1]}" if rest[-1] else ".+")


def component(part: str, whole: str) -> str:
    """Return the regular expression of one component."""
    pieces = [""]
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            end = _class_end(part, at - 1)
            if end is None:
                raise bad_glob(whole, "a [ is not closed")
            pieces[-1] += _class(part[at : end - 1], whole)
            at = end
        else:
            if char == "\\":
                if at == len(part):
                    raise bad_glob(whole, "it ends in a lone backslash")
                char = part[at]
                at += 1
            pieces[-1] += re.escape(char)
    if len(pieces) == 1:
        return pieces[0]
    if not any(pieces):
        return "[^/]+"
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _class(body: str, whole: str) -> str:
    negated = body[:1] in ("!", "^")
    body = body[1:] if negated else body
    out = ""
    at = 0
    while at < len(body):
        low = body[at]
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            high = body[at + 2]
            if low > high:
                raise bad_glob(whole, f"the range {low}-{high} runs backwards")
            out += f"{_in_class(low)}-{_in_class(high)}"
            at += 3
        else:
            out += _in_class(low)
            at += 1
    return f"[^/{out}]" if negated else f"(?!/)[{out}]"


def _in_class(char: str) -> str:
    return re.sub(_CLASS_SPECIAL, lambda match: "\\" + match[0], char)
