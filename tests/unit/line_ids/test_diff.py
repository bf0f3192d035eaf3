"""The alignment: valid blocks always, the right lines, git's places for hunks, and bounded work."""

from __future__ import annotations

import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.line_ids import diff as module

align = module.align
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


def steps_taken(old, new):
    """Align under the ordinary budget; return the blocks, what it allowed and what was spent."""
    allowed = module._STEPS + module._STEPS_PER_LINE * (len(old) + len(new))
    budget = module.Budget(allowed)
    blocks = module._align(old, new, budget)
    return blocks, allowed, allowed - budget.left


@given(LINES, LINES)
def test_blocks_are_valid(old, new):
    assert valid(old, new, align(old, new))


@given(TWINS, TWINS, st.integers(0, 400))
def test_blocks_are_valid_however_small_the_budget_and_on_the_path_for_large_files(old, new, steps):
    assert valid(old, new, module._align(old, new, module.Budget(steps)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WHOLE_LINES", 0)
        patch.setattr(module, "_MAX_COST", 2)
        assert valid(old, new, align(old, new))


def git_blocks(folder, old, new):
    """What `git diff --patience --no-indent-heuristic` leaves unchanged, as pairs."""
    for name, lines in (("old", old), ("new", new)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    options = ["--no-index", "--patience", "--no-indent-heuristic", "--no-color", "-U100000"]
    command = ["git", "diff", *options, "old", "new"]
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
    return rng.choices(
        ["", "", "}", "}", "    }", "        ]", "        ]", "return x", "    pass", "\tpass", "else:", "x = 1"], k=30
    )


def test_lines_are_paired_as_git_pairs_them(tmp_path):
    """On made-up code full of twins, 600 edits. The control: without sliding, many a twin is another's."""
    rng = random.Random(20260)
    total = alike_unslid = 0
    for made in [code, twins] * 300:
        old = made(rng, 60)
        new = edited(rng, old)
        expected = set(git_blocks(tmp_path, old, new))
        found, unslid = align(old, new), module._blocks(*module._changed(old, new, module.Budget(10**6)), len(old))
        found, unslid = ({(i + n, j + n) for i, j, length in blocks for n in range(length)} for blocks in (found, unslid))
        assert found == expected, (old, new)
        total += len(expected)
        alike_unslid += len(expected & unslid)
    print(f"seed 20260: {total} pairs as git, {alike_unslid} without sliding")
    assert alike_unslid < 0.997 * total


TOKENS = [f"line {n}".encode() for n in range(20_000)]
SIZE = len(TOKENS)
SEED = random.Random(7)
ADVERSARIES = {
    "all equal, fewer": ([b"x"] * SIZE, [b"x"] * (SIZE - 777)),
    "total rewrite": (TOKENS, [b"new " + token for token in TOKENS]),
    "reversal": (TOKENS, TOKENS[::-1]),
    "every line twice, shuffled": (TOKENS * 2, SEED.sample(TOKENS * 2, 2 * SIZE)),
    "a b a b": ([b"a", b"b"] * SIZE, [b"b", b"a"] * (SIZE - 9)),
    "noise of 50": (SEED.choices(TOKENS[:50], k=SIZE), SEED.choices(TOKENS[:50], k=SIZE)),
    "hunk at every second line": ([t for n in TOKENS for t in (b"x", n)], [b"x"] * SIZE),
    "hunks that slide over everything": ([b"x"] * SIZE, ([b"x"] * 19 + [b"y"]) * (SIZE // 20)),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_input_takes_more_steps_than_allowed(name):
    """The counter may run over by one round or one gap, which is at most a few steps a line."""
    old, new = ADVERSARIES[name]
    blocks, allowed, spent = steps_taken(old, new)
    assert valid(old, new, blocks)
    assert spent <= allowed + 4 * (len(old) + len(new))


def test_the_step_counter_counts():
    """Control: without a bound, noise takes many times what is allowed, and the counter sees it."""
    old, new = ADVERSARIES["noise of 50"]
    unbounded = module.Budget(10**12)
    module._align(old[:6000], new[:6000], unbounded)
    _, allowed, spent = steps_taken(old, new)
    assert spent > allowed / 2
    assert 10**12 - unbounded.left > allowed


def nested(depth, mark):
    """Lines of which one is unique; its gap has one again, and so on: each gap a little smaller."""
    return [x for n in range(depth, 0, -1) for x in (n, (mark, n), n + 1, (mark, -n))]


def test_gaps_within_gaps_need_no_recursion():
    """3,000 deep, beyond what the interpreter recurses, with nothing for anchors to grow over."""
    old, new = nested(3000, "old"), nested(3000, "new")
    blocks, allowed, spent = steps_taken(old, new)
    assert valid(old, new, blocks)
    assert spent <= allowed + 4 * (len(old) + len(new))
    assert kept(align(nested(300, "old"), nested(300, "new"))) == 600
