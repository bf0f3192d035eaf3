"""Line patches on a text: every byte outside the addressed lines is the same, and what is wrong is told, not raised."""

from __future__ import annotations

import itertools
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from rye.patches import patches
from rye.workspace.encoding import UTF8, Encoding
from rye.workspace.text import parse
from unit.edits.test_splices import render

CODES = [
    UTF8,
    Encoding("utf-8", b"\xef\xbb\xbf"),
    Encoding("iso8859-1"),
    Encoding("utf-16-le", b"\xff\xfe", b"\n\0"),
    Encoding("utf-16-be", b"\xfe\xff", b"\0\n"),
]
BODIES = st.text(st.sampled_from("ab} \t\r\x0b\x0c\x85\xe9"), max_size=5).filter(lambda text: not text.endswith("\r"))
ENDINGS = st.sampled_from(["\n", "\n", "\r\n"])


@st.composite
def files(draw, codes=CODES):
    """A text of mixed terminators, with or without a final newline, in any encoding, with U+2028 where it fits."""
    code = draw(st.sampled_from(codes))
    lines = [(draw(BODIES) + draw(ENDINGS)).encode(code.name) for _ in range(draw(st.integers(0, 8)))]
    if draw(st.booleans()) and code.name != "iso8859-1":
        lines.insert(0, "s\u2028s\u2029\n".encode(code.name))
    if draw(st.booleans()):
        lines.append((draw(BODIES) or "x").encode(code.name))
    return parse(code.bom + b"".join(lines), code)


def whole(text):
    return text.encoding.bom + b"".join(text.lines())


def numbered():
    return map(str, itertools.count()).__next__


def parsed(changes, digest, problems):
    request = {"files": [{"docPath": "f", "originalSha256": digest, "changes": changes}]}
    return patches.parse(request, numbered(), problems).patches[0]


@st.composite
def patched(draw):
    """A text, and changes of it, ordered and apart from each other."""
    text = draw(files())
    lines = [text.encoding.show(line) for line in text.lines()]
    changes, at = [], 0
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(at, text.count))
        stop = draw(st.integers(start, min(text.count, start + 3)))
        new = draw(st.lists(BODIES, min_size=int(start == stop), max_size=3))
        span = {"startLine": start + 1, "endLine": stop, "expectedOriginalLines": lines[start:stop]}
        if start == stop:
            changes.append({"operation": "insert", "afterLine": start, "newLines": new})
        elif new:
            changes.append({"operation": "replace", **span, "newLines": new})
        else:
            changes.append({"operation": "delete", **span})
        at = stop + 1
        if at > text.count:
            break
    return text, changes


def spans(changes):
    for change in changes:
        start = change["afterLine"] if change["operation"] == "insert" else change["startLine"] - 1
        stop = start if change["operation"] == "insert" else change["endLine"]
        yield start, stop, change.get("newLines", [])


@given(patched())
def test_every_byte_outside_the_addressed_lines_is_the_same(case):
    text, changes = case
    data = whole(text)
    problems = patches.Problems()
    patch = parsed(changes, sha256(data).hexdigest(), problems)
    splices = patches.splices_for(patch, text, data, problems)
    if problems.errors:
        # The one thing that no bytes can say: an empty last line without a newline.
        assert {one["code"] for one in problems.errors} <= {"empty_last_line", "newline_in_line", "odd_end"}, problems
        return
    result = render(text, splices)
    code = text.encoding
    assert result.startswith(code.bom)
    rest, at = result[len(code.bom) :], 0
    for start, stop, new in [*spans(changes), (text.count, text.count, None)]:
        kept = b"".join(text.lines(at, start))
        ends_open = start == text.count and start > at and not code.terminator(text.lines(start - 1, start)[0])
        assert rest.startswith(kept)
        rest = rest[len(kept) :]
        if ends_open and rest:
            # A last line without a newline gains one when lines are put behind it.
            gained = next(end for end in (code.crlf, code.newline) if rest.startswith(end))
            rest = rest[len(gained) :]
        for line in new or []:
            body = line.encode(code.name)
            assert rest.startswith(body)
            rest = rest[len(body) :]
            ending = next((end for end in (code.crlf, code.newline) if rest.startswith(end)), b"")
            assert ending or not rest
            rest = rest[len(ending) :]
        at = stop
    assert rest == b""


JSON_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "operation": st.sampled_from(["insert", "replace", "delete", "move", ""]),
        "afterLine": st.integers(-2, 6),
        "startLine": st.integers(-2, 6),
        "endLine": st.integers(-2, 6),
        "expectedOriginalLines": st.lists(st.sampled_from(["a", "b", "x"]), max_size=3),
        "newLines": st.lists(st.sampled_from(["n", "n\n", "n\r", "\ud800", "\0"]), max_size=3),
        "changeKey": st.sampled_from(["k", "l"]),
    },
)


@given(st.lists(JSON_CHANGES, max_size=4), st.booleans())
def test_whatever_is_asked_for_is_done_or_told(changes, right):
    """Never an exception; and splices only without a problem, in order and apart."""
    data = b"a\nb\r\na\nb"
    text = parse(data, UTF8)
    problems = patches.Problems()
    patch = parsed(changes, sha256(data).hexdigest() if right else "0" * 64, problems)
    splices = patches.splices_for(patch, text, data, problems)
    if problems.errors:
        assert splices == []
        assert all(one["code"] and one["message"].strip() for one in problems.errors)
    else:
        assert right
        assert all(one.stop <= other.start for one, other in itertools.pairwise(splices))


def test_ids_are_taken_in_the_order_in_which_they_are_kept():
    request = {
        "files": [{"docPath": "a", "originalSha256": "0" * 64, "changes": [{}, {}]}],
        "createFiles": [{"path": "n", "content": ""}],
        "deleteFiles": [{"docPath": "d"}],
    }
    batch = patches.parse(request, numbered(), patches.Problems())
    assert batch.ids == [str(number) for number in range(6)]
    again = patches.parse(request, iter(batch.ids).__next__, patches.Problems())
    assert again.ids == batch.ids


def test_a_difference_of_white_space_is_made_visible():
    data = b"\tx \n"
    problems = patches.Problems()
    change = {"operation": "delete", "startLine": 1, "endLine": 1, "expectedOriginalLines": ["    x"]}
    patches.splices_for(parsed([change], sha256(data).hexdigest(), problems), parse(data, UTF8), data, problems)
    assert "-1:     x\n+1: →\tx·" in problems.errors[0]["message"]


def test_many_differences_are_cut_and_say_so():
    data = b"x\n" * 50
    problems = patches.Problems()
    change = {"operation": "delete", "startLine": 1, "endLine": 50, "expectedOriginalLines": ["y"] * 50}
    patches.splices_for(parsed([change], sha256(data).hexdigest(), problems), parse(data, UTF8), data, problems)
    assert problems.errors[0]["message"].endswith("…")
    assert len(problems.errors[0]["message"]) < 500
