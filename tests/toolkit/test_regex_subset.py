"""What the search without ripgrep takes for a pattern, and what it refuses."""

from __future__ import annotations

import re

import pytest

from rye.errors import UsageError
from rye.toolkit.regex_subset import translate
from rye.toolkit.ripgrep import Pattern


@pytest.mark.parametrize(
    ("pattern", "found", "text"),
    [
        ("a.c", "abc", "xabcx"),
        (r"\w+", "größe_1", "größe_1 x"),
        (r"\bé\b", "é", "a é b"),
        ("[^a]", "\u00e9", "aé"),
        ("a{2,3}?", "aa", "aaaa"),
        (r"\x41\u0042\x{43}", "ABC", "ABC"),
        ("a|bc|", "bc", "bc"),
        ("}]", "}]", "}]"),
        (r"(?i)foo[k]", "FoOK", "FoO\u212a FoOK"),
    ],
)
def test_the_subset_means_what_it_says(pattern, found, text):
    match = re.search(translate(Pattern(pattern)), text)
    assert match
    assert match[0] == found or match[0] == "FoO\u212a"


@pytest.mark.parametrize("pattern", [".", "[^a]", r"\W", r"\D", r"\S"])
def test_a_byte_that_is_not_utf8_is_no_character(pattern):
    assert not re.search(translate(Pattern(pattern)), "\udcff")


@pytest.mark.parametrize(
    ("pattern", "caret"), [("(a", 0), ("a)", 1), ("[a", 0), ("a{", 1), ("*a", 0), ("x{3,2}", None), ("[z-a]", None), (r"\x{zz}", None), ("\\", 1)]
)  # fmt: skip
def test_a_bad_pattern_shows_where_it_is_bad(pattern, caret):
    with pytest.raises(UsageError) as caught:
        translate(Pattern(pattern))
    assert caught.value.code == "bad_pattern"
    if caret is not None:
        assert f"\n    {' ' * caret}^\n" in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?<n>a)",
        r"\p{L}",
        r"\Aa",
        r"a\z",
        r"\<a",
        r"\B",
        "[[:alpha:]]",
        "[a&&b]",
        "^*",
        "a**",
        "a{2000}",
        r"\1",
        "(?s).",
        "[a-b-c]",
    ],
)
def test_what_is_outside_is_refused_with_the_reason(pattern):
    with pytest.raises(UsageError) as caught:
        translate(Pattern(pattern))
    assert caught.value.code == "pattern_unsupported"
    assert repr(pattern) in str(caught.value)
