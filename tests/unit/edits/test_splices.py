"""Lines put in the place of others: their terminators, and the diff of it. What stays the same is in `test_byte_machine.py`."""

from __future__ import annotations

import difflib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.edits import splices as module
from rye.edits.splices import Splice, assemble, converted, dominant, refine, terminated, unified_diff
from rye.errors import EditError
from rye.workspace.encoding import UTF8, Encoding
from rye.workspace.text import parse

BODIES = st.text(st.sampled_from("ab} \t\x0b\x0c\x85\xe9\u2028"), max_size=5).map(str.encode)


@st.composite
def edits(draw):
    """A text with or without a final newline, and spans (start, stop, bodies) apart from each other."""
    lines = b"".join(body + b"\n" for body in draw(st.lists(BODIES, max_size=8)))
    text = parse(lines + (draw(BODIES) if draw(st.booleans()) else b""), UTF8)
    spans, at = [], 0
    for _ in range(draw(st.integers(1, 3))):
        if at > text.count:
            break
        start = draw(st.integers(at, text.count))
        stop = draw(st.integers(start, min(text.count, start + 3)))
        spans.append((start, stop, draw(st.lists(BODIES, max_size=3))))
        at = stop + 1
    return text, spans


def render(text, splices):
    return module.render(text.encoding.bom + b"".join(text.lines()), text, splices)


def applied(text, spans, newline="keep", final="keep"):
    splices = assemble(text, [terminated(text, *span, newline) for span in spans], final)
    return render(text, refine(text, splices))


@given(edits())
def test_the_diff_is_one_that_patch_applies(tmp_path_factory, case):
    """`git apply` rebuilds the new file from the old one and the diff."""
    text, spans = case
    whole = b"".join(text.lines())
    splices = refine(text, assemble(text, [terminated(text, *span) for span in spans]))
    result = render(text, splices)
    if not splices or not whole or not result:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(whole)
    diff = "\n".join(unified_diff("f", text, splices)) + "\n"
    done = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=diff.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stderr, diff)
    assert (folder / "f").read_bytes() == result


def test_text_mode_is_what_corrupts():
    """Control: the obvious way loses terminators and splits at form feeds."""
    data = b"a\r\nb\x0cc\r\nd"
    naive = "\n".join(["a", "B", *data.decode().splitlines()[2:]]).encode()
    assert applied(parse(data, UTF8), [(1, 2, [b"B"])]) == b"a\r\nB\r\nd"
    assert naive != b"a\r\nB\r\nd"


@pytest.mark.parametrize(
    ("data", "span", "expected"),
    [
        (b"a\r\nb\n", (0, 1, [b"x"]), b"x\r\nb\n"),
        (b"a\r\nb\n", (0, 1, [b"x", b"y"]), b"x\r\ny\r\nb\n"),
        (b"a\r\nb\n", (0, 2, [b"x", b"y"]), b"x\r\ny\n"),
        (b"a\r\nb\n", (1, 1, [b"x"]), b"a\r\nx\r\nb\n"),
        (b"a\nb\r\n", (0, 0, [b"x"]), b"x\na\nb\r\n"),
        (b"a\r\nb", (1, 2, [b"x", b"y"]), b"a\r\nx\r\ny"),
        (b"a\r\nb", (2, 2, [b"x"]), b"a\r\nb\r\nx"),
        (b"a", (0, 1, [b"x", b"y"]), b"x\ny"),
        (b"a", (1, 1, [b"a"]), b"a\na"),
        (b"a\n", (1, 1, [b"b"]), b"a\nb\n"),
        (b"a\nb", (1, 2, []), b"a\n"),
        (b"a\nb\n", (0, 2, []), b""),
        (b"", (0, 0, [b"a"]), b"a\n"),
        (b"a\nb", (1, 2, [b""]), b"a\n\n"),
        (b"a", (1, 1, [b""]), b"a\n\n"),
    ],
)
def test_terminators_follow_the_neighbours(data, span, expected):
    assert applied(parse(data, UTF8), [span]) == expected


@pytest.mark.parametrize(
    ("data", "span", "final", "expected"),
    [
        (b"a\nb", (0, 1, [b"x"]), "add", b"x\nb\n"),
        (b"a\nb\n", (0, 1, [b"x"]), "remove", b"x\nb"),
        (b"a\nb", (1, 2, [b"x"]), "add", b"a\nx\n"),
        (b"a\r\nb", (1, 2, [b"x"]), "add", b"a\r\nx\r\n"),
        (b"a\nb\n", (1, 2, [b"x"]), "remove", b"a\nx"),
        (b"a\nb", (1, 2, []), "remove", b"a"),
        (b"a\nb\n", (1, 2, []), "remove", b"a"),
        (b"a\n", (0, 1, []), "remove", b""),
        (b"a\n", (0, 1, []), "add", b""),
    ],
)
def test_the_final_newline(data, span, final, expected):
    assert applied(parse(data, UTF8), [span], final=final) == expected


@pytest.mark.parametrize(
    ("data", "span"),
    [(b"a\n\n", (0, 1, [b"x"])), (b"a\nb\n", (1, 2, [b""])), (b"a\nb", (1, 2, [b"x", b""])), (b"\n", (0, 0, []))],
)
def test_an_empty_last_line_cannot_lose_its_newline(data, span):
    with pytest.raises(EditError) as caught:
        applied(parse(data, UTF8), [span], final="remove")
    assert caught.value.code == "empty_last_line"


def test_nothing_is_put_behind_half_a_character():
    code = Encoding("utf-16-le", b"\xff\xfe", b"\n\0")
    text = parse(b"\xff\xfea\0\n\0b", code)
    with pytest.raises(EditError) as caught:
        applied(text, [(2, 2, [b"x\0"])])
    assert caught.value.code == "odd_end"
    assert applied(text, [(0, 1, [b"x\0"])]) == b"\xff\xfex\0\n\0b"
    assert applied(text, [(1, 2, [b"x\0"])], final="add") == b"\xff\xfea\0\n\0x\0\n\0"


def test_converting_takes_no_line_for_its_twin():
    """The converted `x` equals a later raw one; each line still changes into itself."""
    text = parse(b"x\na\nx\r\n", UTF8)
    assert refine(text, converted(text, [], "crlf")) == [Splice(0, 2, [b"x\r\n", b"a\r\n"])]
    naive = difflib.SequenceMatcher(None, text.lines(), [b"x\r\n", b"a\r\n", b"x\r\n"]).get_matching_blocks()
    assert naive[0][:2] != (2, 2)


def test_appending_a_twin_leaves_the_old_last_line_itself():
    text = parse(b"a\n}", UTF8)
    splices = refine(text, assemble(text, [terminated(text, 2, 2, [b"}"])]))
    assert splices == [Splice(1, 2, [b"}\n"]), Splice(2, 2, [b"}"])]
    assert refine(text, splices, keys=UTF8.bodies) == [Splice(2, 2, [b"}"])]


def test_the_commonest_terminator():
    assert dominant(parse(b"a\r\nb\r\nc\n", UTF8)) == b"\r\n"
    assert dominant(parse(b"a", UTF8)) == b"\n"
    assert dominant(parse(b"", Encoding("utf-16-le", b"\xff\xfe", b"\n\0"))) == b"\n\0"


def test_a_change_of_terminators_alone_is_visible_in_the_diff():
    text = parse(b"a\r\nb\r\n", UTF8)
    diff = unified_diff("f", text, [Splice(0, 1, [b"a\n"])])
    assert diff == ["--- a/f", "+++ b/f", "@@ -1,2 +1,2 @@", "-a [CRLF]", "+a [LF]", " b"]


def test_a_missing_final_newline_is_told():
    text = parse(b"a\nb", UTF8)
    diff = unified_diff("f", text, [Splice(1, 2, [b"c\n"])])
    assert diff[-4:] == [" a", "-b", "\\ No newline at end of file", "+c"]


def test_a_newline_gained_by_an_appended_line_is_told_once():
    text = parse(b"a", UTF8)
    diff = unified_diff("f", text, refine(text, assemble(text, [terminated(text, 1, 1, [b"b"])])))
    assert diff[3:] == ["-a", "\\ No newline at end of file", "+a", "+b", "\\ No newline at end of file"]


def test_a_creation_is_told():
    text = parse(b"", UTF8)
    assert unified_diff("f", text, [Splice(0, 0, [b"a\n"])], created=True) == [
        "--- /dev/null",
        "+++ b/f",
        "@@ -0,0 +1,1 @@",
        "+a",
    ]
