"""edit_file: swe-tooling 6.2."""

import difflib
import random

import pytest

from support.calling import done, refused

EDIT = "rye/swe/edit_file"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\nb\nc\n", "a\nb\n", "x\n", b"x\nc\n"),
        (b"a\nb\nc\n", "\nb", "", b"a\nc\n"),
        (b"a\nb\nc\n", "a\n", "x", b"xb\nc\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        (b"x\n" * 3 + b"tail", "tail", "", b"x\n" * 3),
    ],
)
def test_the_first_exact_place_is_replaced_and_no_other_byte(project, before, old, new, after):
    (project / "f").write_bytes(before)
    done(EDIT, project, path="f", old=old, new=new)
    assert (project / "f").read_bytes() == after


def test_the_answer_shows_the_lines_and_names_the_other_places(project):
    (project / "f").write_bytes(b"one\nx = 1\nx = 1\nfour\nx = 1\n")
    data = done(EDIT, project, path="f", old="x = 1\n", new="x = 2\n")
    assert data["output"].split("\n") == [
        "✓ Edited f:2-2",
        "1 line removed, 1 added",
        "1: one",
        "2: x = 2",
        "3: x = 1",
        "4: four",
        "[the text occurs at 3 places; only the first was changed. The others, in the numbering before: line 3, 5]",
    ]
    assert data["other_places"] == [3, 5]


def test_the_line_that_was_retyped_is_found_among_many(project):
    lines = [f"value_{number} = compute({number})" for number in range(4_000)]
    (project / "f").write_text("\n".join([*lines, "def render_page(request, template):", *lines[:500]]))
    said = refused("snippet_not_found", EDIT, project, path="f", old="def render_page(request,template) :", new="x")
    assert "4001: def render_page(request, template):" in said


def test_what_is_not_there_or_changes_nothing_is_refused(project):
    (project / "f").write_bytes(b"def total(prices):\n    return 1\n")
    said = refused("snippet_not_found", EDIT, project, path="f", old="def totals(price):", new="x")
    assert "1: def total(prices):" in said
    refused("no_change", EDIT, project, path="f", old="total", new="total")
    # Wide text is matched at whole characters only.
    (project / "f").write_bytes("\ufeff\u0161\u6100\n".encode("utf-16-le"))
    refused("snippet_not_found", EDIT, project, path="f", old="\u0061", new="x")


@pytest.mark.parametrize("width", [1_000_000, 40], ids=["one line", "many lines"])
def test_to_name_the_nearest_lines_costs_a_bounded_work(project, monkeypatch, width):
    letters = "".join(random.Random(1).choices("abcdefghij ", k=1_000_000))
    (project / "f").write_text("\n".join(letters[at : at + width] for at in range(0, len(letters), width)))
    compared, ratio = [], difflib.SequenceMatcher.ratio

    def counted(matcher):
        compared.append(len(matcher.a) * len(matcher.b))
        return ratio(matcher)

    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", counted)
    said = refused("snippet_not_found", EDIT, project, path="f", old=letters[5 : width - 5] + "Z", new="x")
    assert ("1: " in said, len(said) < 3_000) == (True, True)
    # At most 200 pairs of 80 characters each, and one to begin with; the naive way takes the product of the whole lines.
    assert 0 < sum(compared) <= 201 * 80 * 80


@pytest.mark.parametrize(
    ("encoding", "text", "old"),
    [
        # The second byte of the first character is that of old.
        ("shift_jis", "# 表示 \\n\nx = 1\n", "\\"),
        ("shift_jis", "本 {\n", "{"),
        ("gb18030", "\u4e02 @\n", "@"),
        ("gb18030", "\u0080 0\n", "0"),
        ("big5", "功 \\\n", "\\"),
        ("cp949", "갂 B\n", "B"),
        ("johab", "가 a\n", "a"),
    ],
)
def test_nothing_is_found_within_a_character(project, encoding, text, old):
    (project / "f").write_bytes(text.encode(encoding))
    done(EDIT, project, path="f", old=old, new="NEW", encoding=encoding)
    assert (project / "f").read_bytes() == text.replace(old, "NEW", 1).encode(encoding)


def test_in_an_unknown_encoding_bytes_behind_others_are_not_touched(project):
    data = b"# \x95\x5c x\ny \x5c\n"
    (project / "f").write_bytes(data)
    done(EDIT, project, path="f", old="\\", new="/")
    assert (project / "f").read_bytes() == b"# \x95\x5c x\ny /\n"
    assert "encoding=" in refused("unknown_characters", EDIT, project, path="f", old="\\", new="/")
    assert (project / "f").read_bytes() == b"# \x95\x5c x\ny /\n"


def test_many_places_in_one_line_are_counted_no_further_than_they_are_told(project):
    (project / "f").write_text("ab" * 2_500_000)
    data = done(EDIT, project, path="f", old="ab", new="cd")
    assert (project / "f").read_text().startswith("cdabab")
    assert data["other_places"] == [1] * 1_000
    assert "occurs at more than 1000 places" in data["output"]
