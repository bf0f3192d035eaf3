"""Line identity against a model: random histories of one text, every promise about IDs checked after every step.

    PYTHONPATH=runtime python tests/toolkit/test_line_ids_model.py --sequences 100000 [--seed 1]

The model remembers which text every ID ever named, which IDs are dead, and which epoch made them. It never asks the
index what is right.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rye.edits import splices as edits_splices
from rye.line_ids import index as line_ids_index
from rye.line_ids import reconcile as line_ids_reconcile
from rye.line_ids.addresses import Addresses
from rye.line_ids.document import fit, keys, scan
from rye.line_ids.index import LineId
from rye.plain_class import changed
from rye.workspace.encoding import UTF8
from rye.workspace.text import parse

POOL = [b"", b"", b"}", b"}", b"    }", b"  ", b"return x", b"    return x", b"\tpass", b"else:", b"x = 1", b"\x0c", b"a\rb"]
SPACES = b" \t\r\x0b\x0c"


def bare(text):
    return text.translate(None, SPACES)


def joined(texts):
    return b"".join(text + b"\n" for text in texts)


@dataclass
class Undo:
    """What takes an own edit back: the splices with the old lines and their IDs, and the content on which that is exact."""

    content: list[bytes]
    splices: list[tuple[int, int, list[bytes], list[str]]]


@dataclass
class World:
    """One text, its index, and what the model knows of its IDs."""

    rng: Random
    reconcile: object
    sparse: bool
    texts: list[bytes] = field(default_factory=list)
    index: line_ids_index.Index | None = None
    names: dict[str, bytes] = field(default_factory=dict)
    shorts: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    epoch_of: dict[str, int] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    undos: list[Undo] = field(default_factory=list)
    fresh_texts: int = 0
    problems: list[str] = field(default_factory=list)

    def text(self):
        """A line's text: often a twin, sometimes one never seen."""
        if self.rng.random() < 0.6:
            return self.rng.choice(POOL)
        return self.foreign()

    def foreign(self):
        self.fresh_texts += 1
        return b"  " * self.rng.randrange(3) + b"unmistakable line %d" % self.fresh_texts

    def some(self, most=4):
        return [self.text() for _ in range(self.rng.randrange(most + 1))]

    def span(self, most=4):
        start = self.rng.randrange(len(self.texts) + 1)
        return start, min(len(self.texts), start + self.rng.randrange(most + 1))

    def ids(self):
        return [self.index.marks[at].id if at in self.index.marks else None for at in range(len(self.texts))]

    # What happens to the text.

    def begin(self, epoch):
        """Index the text anew, as for a file without an index."""
        data = joined(self.texts)
        text, width, digests = scan(data, UTF8, 8 if self.sparse else 32)
        self.index = line_ids_index.fresh(epoch, sha256(data).hexdigest(), digests, width)
        self.settle(text)

    def settle(self, text):
        """Give IDs as a read does: to all lines, or in a large file to those shown."""
        if self.sparse:
            shown = [self.span(6), self.span(2)] if self.texts else []
            for start, stop in shown:
                line_ids_index.give_ids(self.index, start, self.texts[start:stop])
        else:
            fit(self.index, text)

    def outside(self, after):
        """Another program replaces the content."""
        self.texts = after
        data = joined(after)
        text, _, digests = scan(data, UTF8, self.index.width)
        self.index = self.reconcile(self.index, digests, after.__getitem__, sha256(data).hexdigest())
        self.settle(text)

    def own(self, splices, revive=()):
        """Edit through the pure code that the tools use; lines [start, stop) become texts."""
        before = parse(joined(self.texts), UTF8)
        if revive:
            exact = [edits_splices.Splice(a, b, [x + b"\n" for x in new]) for a, b, new in splices]
            changes = [
                line_ids_reconcile.Change(s.start, s.stop, keys(s.lines, UTF8), ids)
                for s, ids in zip(exact, revive, strict=True)
            ]
        else:
            wanted = [edits_splices.terminated(before, a, b, new) for a, b, new in splices]
            exact = edits_splices.refine(before, edits_splices.assemble(before, wanted), keys=UTF8.bodies)
            changes = [line_ids_reconcile.Change(s.start, s.stop, keys(s.lines, UTF8)) for s in exact]
        data = edits_splices.render(joined(self.texts), before, exact)
        for start, stop, new in reversed(splices):
            self.texts[start:stop] = new
        if data != joined(self.texts):
            self.problems.append("the edit's bytes are not those asked for")
        self.index = line_ids_reconcile.splice(self.index, changes, sha256(data).hexdigest())
        self.settle(parse(data, UTF8))


def own_edit(world):
    before, ids = list(world.texts), world.ids()
    cuts = sorted({at for _ in range(world.rng.choice((1, 1, 2))) for at in world.span()})
    spans = [(cuts[0], cuts[-1])] if len(cuts) < 4 else [(cuts[0], cuts[1]), (cuts[2], cuts[3])]
    splices = [(a, b, world.some()) for a, b in spans]
    if all(world.texts[a:b] == new for a, b, new in splices):
        return
    world.own(splices)
    back, shift = [], 0
    for a, b, new in splices:
        back.append((a + shift, a + shift + len(new), before[a:b], ids[a:b]))
        shift += len(new) - (b - a)
    world.undos.append(Undo(list(world.texts), back))
    # Untouched lines keep exactly their IDs.
    now, at, shift = world.ids(), 0, 0
    for a, b, new in [*splices, (len(before), len(before), [])]:
        if any(name is not None and name != now[old_at + shift] for old_at, name in enumerate(ids[at:a], at)):
            world.problems.append("own edit: an untouched line lost its ID")
        at, shift = b, shift + len(new) - (b - a)


def own_reindent(world):
    """White space alone changes: what is unmistakable but for it keeps its ID."""
    a, b = world.span(5)
    new = [b"    " + x if world.rng.random() < 0.8 else x.strip() for x in world.texts[a:b]]
    if new == world.texts[a:b]:
        return
    old, ids = list(world.texts), world.ids()
    world.own([(a, b, new)])
    same_but_for_space(world, old, ids)


def undo(world):
    """Take the last own edit back when the content is still what it made; the undo can be undone too."""
    if not world.undos or world.undos[-1].content != world.texts:
        return
    last = world.undos.pop()
    before, ids = list(world.texts), world.ids()
    alive_elsewhere = {x for at, x in enumerate(ids) if not any(a <= at < b for a, b, _, _ in last.splices)}
    world.revivable = {x for *_, old in last.splices for x in old if x}
    world.own([(a, b, old) for a, b, old, _ in last.splices], [[*x] for *_, x in last.splices])
    now, back, shift = world.ids(), [], 0
    for a, b, old, old_ids in last.splices:
        start = a + shift
        for at, name in enumerate(old_ids, start):
            if name is not None and name not in alive_elsewhere and now[at] != name:
                world.problems.append(f"undo: line {at + 1} did not get its own ID back")
        back.append((start, start + len(old), before[a:b], ids[a:b]))
        shift += len(old) - (b - a)
    world.undos.append(Undo(list(world.texts), back))


def outside_hunk(world):
    """One hunk of lines never seen, or a deletion: everything outside keeps its ID, in the same order."""
    old, ids = list(world.texts), world.ids()
    a, b = world.span()
    new = [world.foreign() for _ in range(world.rng.randrange(4))]
    after = old[:a] + new + old[b:]
    world.outside(after)
    head, tail = common(old, after), common(old[::-1], after[::-1])
    least = min(len(old), len(after))
    if head + tail > least:
        # Among equal lines the hunk can stand at several places; what none of them touches is outside for sure.
        head, tail = least - tail, least - head
    now = world.ids()
    for at in range(head):
        if ids[at] is not None and now[at] != ids[at]:
            world.problems.append(f"outside hunk: line {at + 1} before it lost its ID")
    for at in range(1, tail + 1):
        if ids[-at] is not None and now[-at] != ids[-at]:
            world.problems.append(f"outside hunk: line -{at} behind it lost its ID")
    in_order(world, ids, now)


def outside_insert_text(world):
    """Several hunks, twins among them."""
    after = list(world.texts)
    for _ in range(world.rng.randrange(1, 4)):
        a = world.rng.randrange(len(after) + 1)
        after[a : a + world.rng.randrange(3)] = world.some()
    world.outside(after)


def outside_deletions(world):
    """Only deletions: what is left is in the same order."""
    ids = world.ids()
    world.outside([x for x in world.texts if world.rng.random() < 0.7])
    in_order(world, ids, world.ids())


def outside_reindent(world):
    a, b = world.span(6)
    old, ids = list(world.texts), world.ids()
    world.outside([*old[:a], *(b"\t" + x for x in old[a:b]), *old[b:]])
    # A short line may be a twin of another one now, and beside that one.
    same_but_for_space(world, old, [name if b"unmistakable" in x else None for x, name in zip(old, ids, strict=True)])


def outside_move(world):
    """A block moves: unmistakable lines keep their IDs."""
    a, b = world.span(5)
    old, ids = list(world.texts), world.ids()
    rest = old[:a] + old[b:]
    to = world.rng.randrange(len(rest) + 1)
    after = rest[:to] + old[a:b] + rest[to:]
    world.outside(after)
    now = dict(zip(after, world.ids(), strict=True))
    count = Counter(old)
    for text, name in zip(old, ids, strict=True):
        # A short line may as well have been deleted here and written there.
        if name is not None and count[text] == 1 and b"unmistakable" in text and now[text] != name:
            world.problems.append(f"outside move: {text!r} lost its ID")


def outside_anything(world):
    choice = world.rng.randrange(4)
    after = list(world.texts)
    if choice == 0:
        world.rng.shuffle(after)
    elif choice == 1:
        after.reverse()
    elif choice == 2:
        after = [world.text() for _ in range(world.rng.randrange(15))]
    else:
        after = after * 2
    world.outside(after[:40])


def lost_index(world):
    """The index is gone; the next one begins a new epoch, and old IDs are unknown."""
    world.undos.clear()
    world.dead.update(name for name in world.ids() if name)
    world.begin(world.index.epoch + world.rng.choice((1, 1, 1, 14, 300)))
    world.lost = True


OPS = [
    own_edit,
    own_edit,
    own_edit,
    own_reindent,
    undo,
    undo,
    outside_hunk,
    outside_hunk,
    outside_insert_text,
    outside_deletions,
    outside_reindent,
    outside_move,
    outside_anything,
    lost_index,
]


def common(one, other):
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def same_but_for_space(world, old, ids):
    """Only white space changed: every line whose text, white space aside, is unmistakable keeps its ID (a blank never is)."""
    count = Counter(map(bare, old))
    for at, (text, before, now) in enumerate(zip(old, ids, world.ids(), strict=True)):
        if before is not None and bare(text) and count[bare(text)] == 1 and now != before:
            world.problems.append(f"re-indent: line {at + 1} lost its ID")


def in_order(world, before, after):
    """Surviving IDs, twins' among them, stand in the order in which they stood."""
    alive = set(after)
    then = [name for name in before if name and name in alive]
    known = set(then)
    if then != [name for name in after if name in known]:
        world.problems.append("surviving IDs changed their order")


def check(world, was):
    """What must hold after any step."""
    say = world.problems.append
    index, ids = world.index, [name for name in world.ids() if name]
    alive = set(ids)
    if len(alive) != len(ids):
        say("two lines share an ID")
    if not world.sparse and len(ids) != len(world.texts):
        say("a line has no ID")
    if index.digests != line_ids_index.digest_lines(world.texts, index.width) or len(index.ages) != len(world.texts):
        say("the index is not of this content")
    if set(index.marks) - set(range(len(world.texts))) or list(index.marks) != sorted(index.marks):
        say("marks stand where no line is, or out of order")
    if alive & index.dead.keys():
        say("an ID is alive and dead")
    for at, mark in index.marks.items():
        named = bare(world.texts[at])
        if world.names.setdefault(mark.id, named) != named:
            say(f"{mark.id} named {world.names[mark.id]!r}, now it names {named!r}")
        # One identity, two views: an address belongs to one ID for ever, and an ID keeps its address.
        (short,) = index.addresses.names(at, at + 1)
        if not short or re.fullmatch(r"[0-9a-f]{6,}", short) or index.place(short) != at:
            say(f"{mark.id} has the address {short!r}")
        if world.owners.setdefault(short, mark.id) != mark.id:
            say(f"{short} belonged to {world.owners[short]}, now it is {mark.id}'s")
        if world.shorts.setdefault(mark.id, short) != short and mark.id not in world.revivable:
            say(f"{mark.id} had the address {world.shorts[mark.id]}, now {short}")
        world.shorts[mark.id] = short
        if mark.loose != line_ids_index.loose_digest(world.texts[at]):
            say("a mark's loose digest is not its line's")
        if world.epoch_of.setdefault(mark.id, index.epoch) != index.epoch and mark.id not in world.revivable:
            say(f"{mark.id} is of epoch {world.epoch_of[mark.id]}, alive in {index.epoch}")
    world.dead |= was - alive
    back = world.dead & alive - world.revivable
    if back:
        say(f"dead IDs came back: {back}")
    world.dead -= alive


def run(rng, steps, reconcile=line_ids_reconcile.reconcile):
    """Play one history; return what went wrong, with the step."""
    world = World(rng, reconcile, sparse=rng.random() < 0.25)
    world.revivable = set()
    world.texts = [world.text() for _ in range(rng.randrange(13))]
    world.begin(1)
    check(world, set())
    for step in range(steps):
        was = {name for name in world.ids() if name}
        world.revivable, world.lost = set(), False
        op = rng.choice(OPS)
        op(world)
        check(world, was)
        if world.problems:
            return [f"step {step + 1}, {op.__name__}: {problem}" for problem in world.problems]
    return []


def by_text(index, digests, texts, content_hash):
    """The seed design's reconciliation, for control: a line takes the ID that any line of its text had."""
    known = {index.digest(at): mark.id for at, mark in index.marks.items()}
    width, marks = index.width, {}
    count = len(digests) // width
    for at in range(count):
        name = known.get(digests[at * width : (at + 1) * width], "")
        if name:
            marks[at] = LineId(name, line_ids_index.loose_digest(texts(at)))
    return naive_state(index, content_hash, digests, marks)


def naive_state(index, content_hash, digests, marks):
    count, revision = len(digests) // index.width, index.revision + 1
    more = {"ages": line_ids_index.Runs([(count, revision)]), "addresses": Addresses([(count, 1, 1)])}
    return changed(index, content_hash=content_hash, digests=digests, marks=marks, revision=revision, **more)


def by_number(index, digests, texts, content_hash):
    """What an index does that trusts line numbers, for control."""
    count = len(digests) // index.width
    marks = {at: changed(mark, loose=line_ids_index.loose_digest(texts(at))) for at, mark in index.marks.items() if at < count}
    return naive_state(index, content_hash, digests, marks)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(st.integers(0, 2**63), st.integers(1, 25))
def test_random_histories_keep_every_promise(seed, steps):
    assert run(Random(seed), steps) == []


@pytest.mark.parametrize(("naive", "blame"), [(by_text, "two lines share an ID"), (by_number, "now it names")])
def test_the_model_sees_what_naive_indexes_do_wrong(naive, blame):
    """Control: the checks find the defects they are there for."""
    found = [problem for seed in range(200) for problem in run(Random(seed), 12, naive)]
    assert any(blame in problem for problem in found)


def _batch(job):
    first, count, steps = job
    return [(seed, problem) for seed in range(first, first + count) for problem in run(Random(seed), steps)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    started = time.monotonic()
    first, last = args.seed * 10**9, args.seed * 10**9 + args.sequences
    jobs = [(at, min(500, last - at), args.steps) for at in range(first, last, 500)]
    with multiprocessing.Pool(args.processes) as pool:
        found = [problem for batch in pool.imap_unordered(_batch, jobs) for problem in batch]
    for seed, problem in found[:20]:
        print(f"seed {seed}: {problem}")
    took = time.monotonic() - started
    print(f"{args.sequences} sequences of {args.steps} steps, seeds {first}..{last - 1}: {len(found)} violations, {took:.0f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
