r"""Glob patterns over paths, compiled to regular expressions that cannot explode.

Grammar: `*` and `?` within a component, `**` as a whole component for any number of them, `[a-z]`, `[!x]` (also `[^x]`),
`{a,b}` (nested too), backslash before any character to mean itself. Letter case counts. Names are text in which bytes that
are not UTF-8 are lone surrogates (`os.fsdecode`).

Every star but the last of a component, and every `**` but the last of a pattern, is an atomic group that takes the first
place where what follows it fits: later parts only gain from that, so nothing is ever tried twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from rye.errors import UsageError

MAX_ALTERNATIVES = 256
"""A pattern whose braces give more plain patterns is refused."""

# An escaped character; a class, whose first character may be a bracket; any other character.
_SIGN = re.compile(r"\\.|\[[!^]?+.[^\]]*\]|.", re.DOTALL)
_CLASS_SPECIAL = r"[\\\]\[^&~|-]"
# What every glob dialect reads alike, so that another program may be given the pattern to leave out most files early.
_PLAIN_NAME = r"[A-Za-z0-9_.*+@%=#, -]+"


def bad_glob(glob: str, why: str) -> UsageError:
    """Return the refusal of a malformed pattern."""
    hint = r"Use * ? ** [a-z] [!x] {a,b}; put a backslash before a character to mean itself, as in \[id\].tsx."
    return UsageError("bad_glob", f"Bad glob pattern {glob[:200]!r}: {why}.", hint)


def expand(glob: str) -> list[str]:
    """Return the patterns without braces that `glob` expands to.

    Raises:
        UsageError: `bad_glob` for an unclosed brace, or more than `MAX_ALTERNATIVES`.
    """
    done: dict[str, None] = {}
    pending = [glob]
    while pending:
        text = pending.pop()
        # Where the brace opened last stands, and its commas: the group that closes first holds no other.
        cuts: list[int] = []
        for sign in _SIGN.finditer(text):
            if sign[0] == "{":
                cuts = [sign.start()]
            elif sign[0] == "," and cuts:
                cuts.append(sign.start())
            elif sign[0] == "}" and cuts:
                options = [text[low + 1 : high] for low, high in pairwise([*cuts, sign.start()])]
                # Reversed, because the stack is popped from its end: the patterns keep their order.
                pending += [text[: cuts[0]] + option + text[sign.end() :] for option in reversed(options)]
                break
        else:
            if cuts:
                raise bad_glob(glob, "a { is not closed")
            done[text] = None
        # Checked at each step: nested braces multiply, and the full list might not fit into memory.
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise bad_glob(glob, f"its braces expand to more than {MAX_ALTERNATIVES} patterns")
    return [*done]


def ending(glob: str) -> str | None:
    """Return the ending that a pattern asks for and nothing else, at any depth, as most do: it needs no expression."""
    found = re.fullmatch(r"(?:\*\*/)?\*([\w.-]+)", glob, re.ASCII)
    return None if found is None else found[1]


def compiled(glob: str) -> Callable[[str], object]:
    """Return a test of whole relative paths; without a slash in it, `glob` is about the name, at any depth.

    Raises:
        UsageError: `bad_glob`.
    """
    end = ending(glob)
    if end is not None:
        return lambda name: name.endswith(end)
    alternatives = [translate(one if "/" in one else f"**/{one}", glob) for one in expand(glob)]
    return re.compile("|".join(alternatives), re.DOTALL).fullmatch


def plain_names(glob: str) -> list[str] | None:
    """Return last components of which every match of `glob` has one, if all dialects read them alike."""
    names = [one.rpartition("/")[2] for one in expand(glob)]
    return names if all(re.fullmatch(_PLAIN_NAME, name) and "**" not in name and name != "*" for name in names) else None


def names_a_dot(glob: str) -> bool:
    """Tell whether a component begins with a dot: then hidden files are meant."""
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
        # Each `**` ends a group of components that must follow one another.
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
    for sign in _SIGN.findall(part):
        if sign == "*":
            pieces.append("")
        elif sign == "?":
            pieces[-1] += "[^/]"
        elif sign == "[":
            # A lone bracket: a closed class comes as one sign with its brackets.
            raise bad_glob(whole, "a [ is not closed")
        elif sign[0] == "[":
            pieces[-1] += _class(sign[1:-1], whole)
        elif sign == "\\":
            raise bad_glob(whole, "it ends in a lone backslash")
        else:
            pieces[-1] += re.escape(sign[-1])
    if len(pieces) == 1:
        return pieces[0]
    if not any(pieces):
        return "[^/]+"
    # Atomic: the first fit is final, so that a pattern of many stars cannot take exponential time.
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
    # Neither kind of class may match a slash, which ends a component.
    return f"[^/{out}]" if negated else f"(?!/)[{out}]"


def _in_class(char: str) -> str:
    return re.sub(_CLASS_SPECIAL, lambda match: "\\" + match[0], char)
