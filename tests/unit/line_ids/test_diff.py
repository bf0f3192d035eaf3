"""The alignment: valid blocks always, the right lines, hunks where git has nearly all of its own, and bounded work."""

from __future__ import annotations

import difflib
import random
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.line_ids import diff as module
from rye.line_ids.diff import align, indentation

TWINS = st.lists(st.sampled_from("abc"), max_size=40)
LINES = st.lists(st.integers(0, 12), max_size=60)


def valid(old, new, blocks):
    """Whether blocks keep every promise of the docstring."""
    end_old = end_new = 0
    for at, (i, j, length) in enumerate(blocks):
        assert length > 0
        assert i >= end_old
        assert j >= end_new
        assert not (at and (i, j) == (end_old, end_new)), "adjacent blocks are merged"
        end_old, end_new = i + length, j + length
        assert old[i:end_old] == new[j:end_new]
    assert end_old <= len(old)
    assert end_new <= len(new)
    return True


def kept(blocks):
    return sum(length for _, _, length in blocks)


def lcs(old, new):
    """The length of a longest common subsequence, by the book."""
    row = [0] * (len(new) + 1)
    for token in old:
        diagonal = 0
        for j, other in enumerate(new, 1):
            diagonal, row[j] = row[j], diagonal + 1 if token == other else max(row[j], row[j - 1])
    return row[-1]


@given(LINES, LINES)
def test_blocks_are_valid(old, new):
    assert valid(old, new, align(old, new))
    assert valid(old, new, align(old, new, lambda j: new[j] or None))


@given(TWINS, TWINS, st.integers(0, 400), st.integers(0, 20))
def test_blocks_are_valid_however_small_the_budget(old, new, steps, pairs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_STEPS", steps)
        patch.setattr(module, "_STEPS_PER_LINE", 0)
        patch.setattr(module, "_MOST_PAIRS", pairs)
        assert valid(old, new, align(old, new, lambda j: ord(new[j]) - 97 or None))


@given(LINES)
def test_identical_versions_are_one_block(lines):
    assert align(lines, list(lines)) == ([(0, 0, len(lines))] if lines else [])


@given(LINES, LINES)
def test_what_is_appended_leaves_the_rest_alone(lines, more):
    assert kept(align(lines, lines + more)) == len(lines)
    assert kept(align(lines + more, lines)) == len(lines)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 30))
def test_a_run_inserted_among_unique_lines_is_found_exactly(above, below, run):
    short = [*range(above), *range(100, 100 + below)]
    long = [*range(above), *range(200, 200 + run), *range(100, 100 + below)]
    expected = [b for b in [(0, 0, above), (above, above + run, below)] if b[2]]
    assert align(short, long) == expected
    assert align(long, short) == [(j, i, n) for i, j, n in expected]


@given(TWINS, TWINS)
def test_without_unique_lines_as_much_is_kept_as_can_be(old, new):
    """The optimum, when no line is unique: behind a first line of its own each version has every line twice or more."""
    shared = sorted(set(old) | set(new))
    old, new = [*old, *shared] * 2, [*new, *shared] * 2
    assert kept(align(["old", *old, "old"], ["new", *new, "new"])) == lcs(old, new)


FUNCTION = ["def f{}():", "    one()", "    return {}", "", ""]


def functions(*names):
    return [line.format(name) for name in names for line in FUNCTION]


def texts_aligned(old, new):
    return align(old, new, lambda j: indentation(new[j].encode()), lambda i: indentation(old[i].encode()))


def test_an_inserted_function_is_inserted_whole():
    old, new = functions(1, 2), functions(1, 9, 2)
    assert texts_aligned(old, new) == [(0, 0, 5), (5, 10, 5)]


def test_a_deleted_function_is_deleted_whole():
    old, new = functions(1, 9, 2), functions(1, 2)
    assert texts_aligned(old, new) == [(0, 0, 5), (10, 5, 5)]


def test_a_hunk_without_indentation_stands_at_the_lowest_place():
    assert align("axab", "axaxab") == [(0, 0, 3), (3, 5, 1)]


def test_a_hunk_comes_to_stand_beside_one_of_the_other_version():
    old, new = ["x", "}", "old", "}", "y"], ["x", "}", "new", "}", "}", "y"]
    assert align(old, new)[:1] == [(0, 0, 2)]


@pytest.mark.parametrize(
    ("line", "width"),
    [(b"", None), (b" \t\r\n", None), (b"x", 0), (b"  x", 2), (b" \tx", 8), (b"\t x", 9), (b" " * 900 + b"x", 200)],
)
def test_indentation(line, width):
    assert indentation(line) == width


def git_blocks(folder, old, new):
    """What `git diff --patience` leaves unchanged, as pairs."""
    for name, lines in (("old", old), ("new", new)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    command = ["git", "diff", "--no-index", "--patience", "--no-color", "-U100000", "old", "new"]
    out = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True).stdout
    pairs, i, j = [], 0, 0
    for line in out.split("\n@@", 1)[-1].split("\n")[1:]:
        if line[:1] == " ":
            pairs.append((i, j))
        i, j = i + (line[:1] in " -" and line != ""), j + (line[:1] in " +" and line != "")
    return pairs if out else [(at, at) for at in range(len(old))]


def code(rng, size):
    """Lines with many twins, nested like code."""
    lines = []
    while len(lines) < size:
        depth = rng.randrange(3)
        lines += ["  " * depth + f"call({rng.randrange(size)});"] * (rng.random() < 0.7)
        lines += ["  " * depth + rng.choice(["}", "{", "return", "end"])]
        lines += [""] * rng.randrange(2)
    return lines


def edited(rng, lines):
    new = list(lines)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(new))
        end = at + rng.randrange(6)
        new[at:end] = rng.choice([[], code(rng, 4), new[at:end] * 2, [f"changed({rng.random()})"]])
    return new


def twins(rng, _):
    """Lines of which nearly all have twins, at every depth."""
    return rng.choices(["", "", "}", "}", "    }", "        ]", "        ]", "return x", "    pass", "else:", "x = 1"], k=30)


def test_lines_are_paired_as_git_pairs_them(tmp_path):
    """On made-up code full of twins, 600 edits. The control: without sliding, many a twin is another's."""
    rng = random.Random(20260)
    total = alike = alike_unslid = 0
    for made in [code, twins] * 300:
        old = made(rng, 60)
        new = edited(rng, old)
        expected = set(git_blocks(tmp_path, old, new))
        unslid = module._joined(module._matched(old, new))
        found, unslid = (
            {(i + n, j + n) for i, j, length in blocks for n in range(length)} for blocks in (texts_aligned(old, new), unslid)
        )
        total, alike, alike_unslid = total + len(expected), alike + len(expected & found), alike_unslid + len(expected & unslid)
    print(f"seed 20260: {total} pairs as git, {alike} found, {alike_unslid} without sliding")
    assert alike > 0.99 * total
    assert total - alike_unslid > 1.5 * (total - alike)


TOKENS = [f"line {n}".encode() for n in range(20_000)]
SIZE = len(TOKENS)
SEED = random.Random(7)
ADVERSARIES = {
    "all equal, fewer": ([b"x"] * SIZE, [b"x"] * (SIZE - 777)),
    "all equal but one": ([b"x"] * SIZE, [*[b"x"] * 5000, b"y", *[b"x"] * 9000]),
    "total rewrite": (TOKENS, [b"new " + token for token in TOKENS]),
    "reversal": (TOKENS, TOKENS[::-1]),
    "shuffle": (TOKENS, SEED.sample(TOKENS, SIZE)),
    "every line twice, shuffled": (TOKENS * 2, SEED.sample(TOKENS * 2, 2 * SIZE)),
    "a b a b": ([b"a", b"b"] * SIZE, [b"b", b"a"] * (SIZE - 9)),
    "a b a b, a a b b": ([b"a", b"b"] * SIZE, [b"a", b"a", b"b", b"b"] * (SIZE // 2)),
    "periods of 7 and 11": ((TOKENS[:7] * SIZE)[:SIZE], (TOKENS[:11] * SIZE)[:SIZE]),
    "noise of 2": (SEED.choices(TOKENS[:2], k=SIZE), SEED.choices(TOKENS[:2], k=SIZE)),
    "noise of 50": (SEED.choices(TOKENS[:50], k=SIZE), SEED.choices(TOKENS[:50], k=SIZE)),
    "hunk at every second line": ([t for n in TOKENS for t in (b"x", n)], [b"x"] * SIZE),
    "hunks that slide over everything": ([b"x"] * SIZE, ([b"x"] * 19 + [b"y"]) * (SIZE // 20)),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_input_takes_long(name):
    """Each takes less than a second of a processor; by a table of all pairs it would be minutes."""
    old, new = ADVERSARIES[name]
    started = time.process_time()
    blocks = align(old, new, lambda j: j % 3 or None)
    assert time.process_time() - started < 10
    assert valid(old, new, blocks)


def nested(depth, mark):
    """Lines of which one is unique; its gap has one again, and so on: each gap a little smaller."""
    return [x for n in range(depth, 0, -1) for x in (n, (mark, n), n + 1, (mark, -n))]


def test_gaps_within_gaps_need_no_recursion():
    """3,000 deep, beyond what the interpreter recurses, with nothing for anchors to grow over."""
    old, new = nested(3000, "old"), nested(3000, "new")
    assert valid(old, new, align(old, new))
    assert kept(align(nested(300, "old"), nested(300, "new"))) == 600


def test_few_distinct_lines_are_kept():
    """2,000 lines of 5 texts with 20 edits. The control: difflib as it comes takes popular lines for junk."""
    rng = random.Random(5)
    old = rng.choices("abcde", k=2000)
    new = list(old)
    for _ in range(20):
        at = rng.randrange(len(new))
        new[at : at + rng.randrange(2)] = rng.choices("abcde", k=rng.randrange(1, 3))
    naive = difflib.SequenceMatcher(None, old, new).get_matching_blocks()
    assert kept(naive) < 0.2 * len(old)
    assert kept(align(old, new)) > 0.98 * len(old)
