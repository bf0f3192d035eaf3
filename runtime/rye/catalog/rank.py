"""Which entries a query matches, and how well each does.

A word counts more the fewer items have it, and more in a title than in a body (BM25 over weighted fields). In a plain
question every found word counts, so that items with most of them come first; with operators, a match is a match.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from rye.catalog.index import SearchIndex
from rye.catalog.query import Both, Either, Node, Not, Word, is_plain, words_of

_FUNCTION_WORDS = (
    "a an and are as at be by can do does for from has have how i if in instead into is it its may me my no not of on one "
    "or own so something that the their them then there they this to use was we what when where which while who why will "
    "with without would you your"
)
_STOP = frozenset(_FUNCTION_WORDS.split())
# Words that newcomers use for the same thing here. Each group is its own: nothing is inferred further.
_SYNONYMS = (
    ("run", "execute", "call"), ("find", "search"), ("directory", "folder"), ("undo", "revert", "restore"),
    ("delete", "remove"), ("shell", "bash", "command"), ("sandbox", "confinement"), ("kill", "cancel"),
    ("docs", "documentation"), ("web", "internet", "online"), ("show", "print", "display"),
    ("secret", "password", "credential"), ("modify", "edit", "change"), ("terminal", "shell", "console"),
    ("configure", "setup", "configuration"), ("regex", "pattern"), ("create", "make", "new"), ("error", "failure"),
)  # fmt: skip
_SATURATED = 2.2
_MOST_ALTERNATIVES = 50
_SYNONYM_WORTH = 0.6
_COVERAGE_POWER = 2.0


class RankOptions(NamedTuple):
    """How words are compared: in which fields, with how many typing errors, how near to one another.

    `distance` is 0 where a word must be as it is written; `within` is None where words may be anywhere.
    """

    fields: Sequence[str]
    distance: int = 0
    within: int | None = None


class _Leaf(NamedTuple):
    """A word or phrase of the query: for each row that has it, how much of it (0 to 1), and what it is worth."""

    values: dict[int, float]
    worth: float


def ranked(index: SearchIndex, tree: Node | None, options: RankOptions) -> dict[int, float]:
    """Return the matching rows of an index with their scores, 0 to 1; every row with 1 where everything is asked for."""
    if tree is None:
        return dict.fromkeys(range(len(index.entries)), 1.0)
    plain = is_plain(tree)
    words = _telling(words_of(tree)) if plain else words_of(tree)
    leaves = {word: _leaf(index, word, options) for word in words}
    if plain:
        found_in = [leaf.values for leaf in leaves.values()]
        rows = set().union(*found_in) if options.within is None else _near(index, words, options)
    else:
        rows = _rows(index, tree, options, leaves)
    if plain and (found := [leaf.worth for leaf in leaves.values() if leaf.values]):
        # A word that no item has tells no two apart. It is missed, but as the rarest of all it would hide the others.
        missed = _Leaf({}, sum(found) / len(found))
        leaves = {word: leaf if leaf.values else missed for word, leaf in leaves.items()}
    total = sum(leaf.worth for leaf in leaves.values()) or 1.0
    if plain:
        return _covered(rows, list(leaves.values()), total)
    return {row: sum(leaf.worth * leaf.values.get(row, 0.0) for leaf in leaves.values()) / total or 1.0 for row in rows}


def _covered(rows: Iterable[int], leaves: Sequence[_Leaf], total: float) -> dict[int, float]:
    """Return the scores of rows: an item with most of the words comes before one with a single word many times."""
    values, covered = dict.fromkeys(rows, 0.0), dict.fromkeys(rows, 0.0)
    # Word by word: a common one is in a hundred thousand rows.
    for leaf in leaves:
        for row, value in leaf.values.items():
            if row in values:
                values[row] += leaf.worth * value
                covered[row] += leaf.worth
    # The power of the coverage, over the total once more for the value.
    return {row: value / total * (covered[row] / total) ** _COVERAGE_POWER for row, value in values.items()}


def _telling(words: Sequence[Word]) -> list[Word]:
    """Return the words that say what is looked for; all of them where there is no such."""
    # Function words are in nearly every item; they would only dilute the coverage.
    return [word for word in words if _bare(word.text) not in _STOP] or list(words)


def _bare(text: str) -> str:
    return re.sub(r"^\W+|\W+$|['\u2019]s$", "", text.casefold())


def _rows(index: SearchIndex, tree: Node, options: RankOptions, leaves: dict[Word, _Leaf]) -> set[int]:
    """Return the rows that a tree matches, exactly as its operators say."""
    if isinstance(tree, Not):
        return set(range(len(index.entries))) - _rows(index, tree.part, options, leaves)
    if isinstance(tree, Both):
        parts = [_rows(index, part, options, leaves) for part in tree.parts]
        return set.intersection(*parts)
    if isinstance(tree, Either):
        return set().union(*(_rows(index, part, options, leaves) for part in tree.parts))
    # A word that is excluded is worth nothing, so it has no leaf yet.
    leaf = leaves.get(tree) or _leaf(index, tree, options)
    return set(leaf.values)


def _near(index: SearchIndex, words: Sequence[Word], options: RankOptions) -> set[int]:
    together = " ".join(_quoted(word.text) for word in words)
    return set(index.hits("stems", f"NEAR({together}, {options.within})", options.fields))


def _leaf(index: SearchIndex, word: Word, options: RankOptions) -> _Leaf:
    """Look a word up under each of its spellings; the best of them counts, the word's own rarity is its worth."""
    values: dict[int, float] = {}
    for table, expression, factor in _spellings(index, word, options):
        hits = index.hits(table, expression, options.fields)
        # BM25 as it comes counts a word that most items have as nothing; in a small index that is most words.
        rarity = max(math.log((len(index.entries) - len(hits) + 0.5) / (len(hits) + 0.5)), 1e-6) if hits else 1.0
        scale = rarity * _SATURATED
        met = {row: factor * min(1.0, value / scale) for row, value in hits.items()}
        if values:
            met.update((row, known) for row, known in values.items() if known > met.get(row, 0.0))
        values = met
    return _Leaf(values, math.log(1 + (len(index.entries) - len(values) + 0.5) / (len(values) + 0.5)))


def _spellings(index: SearchIndex, word: Word, options: RankOptions) -> list[tuple[str, str, float]]:
    """Return (table, FTS5 expression, worth) of every way in which a word may be met."""
    if word.phrase:
        return [("words", _quoted(word.text), 1.0)]
    if "*" in word.text:
        pattern = re.sub(r"\*+", "*", word.text.casefold())
        # FTS5 knows only a * at the end, so patterns are tried against the vocabulary; [ and ? are plain here.
        met = [term for term in index.vocabulary() if fnmatchcase(term, re.sub(r"([\[?])", "[\\1]", pattern))]
        return [("words", " OR ".join(map(_quoted, met[:_MOST_ALTERNATIVES])), 1.0)] if met else []
    out = [("stems", _quoted(word.text), 1.0)]
    bare = _bare(word.text)
    out += [
        ("stems", _quoted(other), _SYNONYM_WORTH) for group in _SYNONYMS if bare in group for other in group if other != bare
    ]
    if options.distance:
        close = [(distance(bare, term, options.distance), term) for term in index.vocabulary()]
        near = sorted((far, term) for far, term in close if 0 < far <= options.distance)
        # The nearest first, and a bounded number: each becomes a query of its own.
        out += [("words", _quoted(term), 1 / (1 + far)) for far, term in near[:_MOST_ALTERNATIVES]]
    return out


def _quoted(text: str) -> str:
    """Return text as an FTS5 string, in which nothing is an operator."""
    return '"' + text.replace('"', " ").replace("\0", " ").encode("utf-8", "replace").decode() + '"'


def distance(one: str, other: str, most: int) -> int:
    """Return how many characters must be put in, left out or changed between two words; `most + 1` for more than `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    row = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        before, row = row, [at]
        for place, against in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (char != against)))
        # No later row can be smaller, so the rest need not be computed.
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
