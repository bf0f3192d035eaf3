"""Search queries: words, "phrases", wildcards, AND OR NOT and parentheses, to a tree; what is not well formed is refused.

    either  = both { "OR" both }
    both    = one { ["AND"] one }
    one     = "NOT" one | "(" either ")" | phrase | word

Operators are written in capitals: `or` in a question is a word. A word with `*` is a pattern for whole words.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rye.call import safe_text
from rye.errors import UsageError
from rye.plain_class import Record

MAX_CHARS = 1_000
_DEEPEST = 32
_TOKEN = re.compile(r'(?P<sign>[()])|"(?P<phrase>[^"]*)"|(?P<open>")|(?P<word>[^\s()"]+)')
_SIGNS = ("AND", "OR", "NOT", "(", ")")
_WORD = re.compile(r"\w", re.UNICODE)


class Word(Record):
    """A bare word, or with `*` a pattern; as a `phrase` words in this order, side by side."""

    text: str
    phrase: bool = False


class Not(Record):
    """What does not match the part."""

    part: Node


class Both(Record):
    """What matches every part; `strict` where AND is written."""

    parts: tuple[Node, ...]
    strict: bool = False


class Either(Record):
    """What matches any part."""

    parts: tuple[Node, ...]


Node = Word | Not | Both | Either


class _Token(Record):
    kind: str
    text: str
    at: int


def parse(text: str) -> Node | None:
    """Return a query's tree; None for `*`, which asks for everything.

    Raises:
        UsageError: `bad_query`, showing the place.
    """
    # Before parsing: each word costs several queries of the index.
    if len(text) > MAX_CHARS:
        raise UsageError("bad_query", f"The query has {len(text):,} characters.", f"Use at most {MAX_CHARS:,}.")
    if text.strip() == "*":
        return None
    tokens = [_token(text, match) for match in _TOKEN.finditer(text)]
    if not tokens:
        raise UsageError("bad_query", "The query is empty.", "Give words, or * for every item of a scope.")
    reader = _Reader(text, tokens)
    tree = reader.either(0)
    if reader.left:
        raise _wrong(text, reader.left[0].at, "this parenthesis was never opened")
    if tree is None:
        raise _wrong(text, 0, "no word in it can be searched for")
    return tree


def words_of(tree: Node | None) -> list[Word]:
    """Return the words and phrases that are asked for, in order; not those that are excluded."""
    if isinstance(tree, Word):
        return [tree]
    if isinstance(tree, Both | Either):
        return [word for part in tree.parts for word in words_of(part)]
    return []


def is_plain(tree: Node | None) -> bool:
    """Tell whether a query is nothing but bare words: a question, in which not every word need be found."""
    parts = tree.parts if isinstance(tree, Both) and not tree.strict else (tree,)
    return all(isinstance(part, Word) and not part.phrase for part in parts)


def _token(text: str, match: re.Match[str]) -> _Token:
    kind = str(match.lastgroup)
    if kind == "open":
        raise _wrong(text, match.start(), "this quotation mark is never closed")
    return _Token(match[0] if match[0] in _SIGNS else kind, match[kind], match.start())


class _Reader:
    """Descends over the tokens of one query. A part without a letter or digit, such as `?`, is None and left out."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self.left = tokens

    def either(self, depth: int) -> Node | None:
        parts = [self._both(depth)]
        while self.left and self.left[0].kind == "OR":
            self._operand_follows(self.left.pop(0))
            parts.append(self._both(depth))
        return _joined(Either, parts)

    def _both(self, depth: int) -> Node | None:
        parts = [self._one(depth)]
        strict = False
        # OR binds weaker than AND, so it ends this level.
        while self.left and self.left[0].kind not in ("OR", ")"):
            if self.left[0].kind == "AND":
                strict = True
                self._operand_follows(self.left.pop(0))
            parts.append(self._one(depth))
        return _joined(lambda found: Both(found, strict), parts)

    def _one(self, depth: int) -> Node | None:
        token = self.left.pop(0)
        # The parser recurses: a long row of parentheses would end in Python's RecursionError.
        if depth > _DEEPEST:
            raise _wrong(self._text, token.at, f"it is nested deeper than {_DEEPEST} levels")
        if token.kind == "NOT":
            self._operand_follows(token)
            part = self._one(depth + 1)
            if part is None:
                raise _wrong(self._text, token.at, "NOT has nothing to exclude")
            return Not(part)
        if token.kind == "(":
            return self._parenthesis(token, depth)
        if token.kind in ("word", "phrase"):
            return self._word(token)
        raise _wrong(self._text, token.at, f"{token.text} has nothing before it" if token.kind != ")" else "it closes nothing")

    def _word(self, token: _Token) -> Word | None:
        if _WORD.search(token.text):
            return Word(token.text, token.kind == "phrase")
        if token.kind == "phrase" or "*" in token.text:
            why = "the phrase has no word" if token.kind == "phrase" else "a * needs a letter or digit beside it"
            raise _wrong(self._text, token.at, why)
        return None

    def _parenthesis(self, token: _Token, depth: int) -> Node | None:
        if not self.left or self.left[0].kind == ")":
            raise _wrong(self._text, token.at, "this parenthesis is empty" if self.left else "this parenthesis is never closed")
        inside = self.either(depth + 1)
        if not self.left:
            raise _wrong(self._text, token.at, "this parenthesis is never closed")
        self.left.pop(0)
        return inside

    def _operand_follows(self, token: _Token) -> None:
        if not self.left or self.left[0].kind in ("OR", "AND", ")"):
            raise _wrong(self._text, token.at, f"{token.kind} has nothing after it")


def _joined(kind: Callable[[tuple[Node, ...]], Node], parts: list[Node | None]) -> Node | None:
    # A single part is itself: a tree of one word must still count as plain.
    found = tuple(part for part in parts if part is not None)
    return kind(found) if len(found) > 1 else found[0] if found else None


def _wrong(text: str, at: int, why: str) -> UsageError:
    shown = safe_text.plain(f"{text[max(0, at - 30) : at]}⟨here⟩{text[at : at + 30]}")
    what = f"The query is not well formed at character {at + 1}, in '{shown}': {why}."
    hint = 'Use words, "a phrase", wild*, AND, OR, NOT and ( ); quote what is meant literally.'
    return UsageError("bad_query", what, hint, position=at + 1)
