"""Names both ways without loss, and protected places under every spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rye.fs import names
from rye.workspace import protected_paths

# Any bytes but NUL and slash, many of them near the escapes themselves.
NEAR = st.text(st.sampled_from("\\x0af9c\xe9\u200d\n\udc80"), min_size=1, max_size=20)
NAMES = st.one_of(
    NEAR.map(lambda text: text.encode("utf-8", "surrogateescape")),
    st.binary(min_size=1, max_size=40).map(lambda raw: raw.replace(b"\0", b"").replace(b"/", b"") or b"x"),
)


@pytest.mark.slow
@given(NAMES)
@example(b"\\x41")
@example(b"\\\\\\x")
@example(b"\\\\\xff\\")
@example("\u202egpj.exe".encode())
@example(b"\xed\xa0\x80")
@settings(max_examples=3_000, deadline=None)
def test_every_name_shows_as_printable_text_that_leads_back_to_it(raw):
    """So no two names show alike."""
    shown = names.show(raw)
    assert names.parse(shown) == raw
    assert all(char == " " or char.isprintable() for char in shown)
    assert json.loads(json.dumps(shown)) == shown
    shown.encode("utf-8")


@given(st.text(max_size=30))
@settings(max_examples=1_000, deadline=None)
def test_text_that_is_no_shown_name_is_taken_as_it_stands_or_refused(text):
    try:
        raw = names.parse(text)
    except UnicodeEncodeError:
        assert any("\ud800" <= char <= "\udfff" for char in text)
        return
    assert names.parse(names.show(raw)) == raw


def test_what_is_plain_stays_plain_and_what_is_not_is_seen():
    assert names.show("src/naïve file.py".encode()) == "src/naïve file.py"
    assert names.show(b"a\nb\x1b[0m") == r"a\x0ab\x1b[0m"
    assert names.show(b"\xff") == r"\xff"
    assert names.show(b"\\xff") == r"\\xff"
    assert names.parse(r"C:\dir\name") == rb"C:\dir\name"


PLAIN = (
    ".git .GIT .Git .git. .git... .git:x .git::$INDEX_ALLOCATION .git git~1 GIT~1 .git .ai/trusted_keys "
    ".AI/trusted_keys .ai/Trusted_Keys .ai./trusted_keys. ai~1/trusted_keys .ai/TRUSTE~1 .ai/keys .ai/cache "
    ".Ai/Cache::$DATA .ai/config .AI/Config .ai/lockfiles .ai/LOCKFI~1"
)
# What is not ASCII is invisible, or folds to the letter that it looks like.
SPELLINGS = [
    *PLAIN.split(),
    *(".git ", ".git. . .", ".git :x", ".git\u200c", ".g\u200dit", "\ufeff.git", ".gi\u00adt", ".g\u034fit", ".git\ufe0f"),
    *(".\uff47\uff49\uff54", "\uff0egit", ".\u24d6\u24d8\u24e3", ".ai/tru\u017fted_keys", ".ai/trusted_\u212aeys", ".ai/KEYS "),
    *(".a\u200bi/keys", ".\uff41\uff49/\uff4b\uff45\uff59\uff53", ".ai/k\ufe00eys", ".ai/trusted_keys\u3164"),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
@pytest.mark.parametrize("where", ["{}", "{}/x", "deep/er/{}/config/y"])
def test_protected_places_under_every_spelling(spelling, where):
    parts = tuple(where.format(spelling).encode().split(b"/"))
    place = protected_paths.protected(parts)
    assert place is not None
    assert place.startswith((".git", ".ai/"))


NEIGHBOURS = (
    ".gitignore .github/workflows/x.yml .gitattributes .ai/tools/x.py .ai/knowledge/keys.md ai/keys git keys trusted_keys "
    ".ai/configs/cache.yaml x.git .ai/trusted .aide/keys \xff/.gi"
)


@pytest.mark.parametrize("path", NEIGHBOURS.split())
def test_neighbours_of_protected_places_are_free(path):
    assert protected_paths.protected(tuple(path.encode().split(b"/"))) is None
