"""The line index: how IDs are made, how they live through changes, what becomes of the dead."""

from __future__ import annotations

from hashlib import sha256

import pytest

from rye.line_ids import index as line_ids_index
from rye.line_ids import reconcile
from rye.line_ids.document import fit, keys, scan
from rye.line_ids.reconcile import Change
from rye.workspace.encoding import UTF8


def digest(texts):
    return sha256(joined(texts)).hexdigest()


def joined(texts):
    return b"".join(text + b"\n" for text in texts)


def indexed(texts, epoch=1):
    text, width, digests = scan(joined(texts), UTF8)
    index = line_ids_index.fresh(epoch, digest(texts), digests, width)
    fit(index, text)
    return index


def replaced(index, texts):
    """Another program puts `texts` there."""
    text, _, digests = scan(joined(texts), UTF8, index.width)
    after = reconcile.reconcile(index, digests, texts.__getitem__, digest(texts))
    fit(after, text)
    return after


def spliced(index, old, changes):
    after = list(old)
    for change in reversed(changes):
        after[change.start : change.stop] = change.texts
    out = reconcile.splice(index, changes, digest(after))
    fit(out, scan(joined(after), UTF8)[0])
    return out


def ids(index):
    return [index.marks[at].id for at in range(index.count)]


def test_a_first_id_is_the_documented_hash():
    index = indexed([b"a", b"b"])
    assert ids(index) == [sha256(b"1:a").hexdigest()[:6], sha256(b"2:b").hexdigest()[:6]]


def test_equal_lines_have_different_ids():
    assert len(set(ids(indexed([b"}"] * 2_000)))) == 2_000


def test_clashing_ids_are_lengthened():
    """Six digits clash among 20,000 lines (control); the index's IDs never do."""
    texts = [b"%d" % n for n in range(20_000)]
    short = {sha256(b"%d:%b" % (n, text)).hexdigest()[:6] for n, text in enumerate(texts, 1)}
    assert len(short) < 20_000
    index = line_ids_index.fresh(1, digest(texts), line_ids_index.digest_lines(texts, 8), 8)
    line_ids_index.give_ids(index, 0, texts)
    made = ids(index)
    assert len(set(made)) == 20_000
    assert {len(name) for name in made} == {6, 8}
    assert sum(len(name) == 6 for name in made) == len(short)


@pytest.mark.slow
def test_a_million_equal_lines_have_a_million_ids():
    texts = [b"}"] * 1_000_000
    index = line_ids_index.fresh(1, "0" * 64, line_ids_index.digest_lines(texts, 8), 8)
    line_ids_index.give_ids(index, 0, texts)
    assert len(set(ids(index))) == 1_000_000


EPOCHS = [1, 2, 3, 15, 16, 17, 4_095, 4_096, 70_000, 1_048_576]


def test_epochs_share_no_id():
    """Also not by length or ending, whatever the digits say."""
    shapes = set()
    for epoch in EPOCHS:
        index = indexed([b"x"] * 30, epoch)
        index = spliced(index, [b"x"] * 30, [Change(0, 0, [b"y"] * 30)])
        for name in ids(index):
            shapes.add((epoch, len(name), name[6:] if epoch > 1 else ""))
    by_shape = {}
    for epoch, length, tail in shapes:
        assert by_shape.setdefault((length, tail), epoch) == epoch


def test_a_later_line_of_the_same_text_is_another_line():
    index = indexed([b"a", b"b"])
    gone = ids(index)[0]
    without = spliced(index, [b"a", b"b"], [Change(0, 1, [])])
    again = spliced(without, [b"b"], [Change(0, 0, [b"a"])])
    assert gone not in ids(again)
    assert gone in again.dead


def test_only_a_revival_gives_a_dead_id_back():
    index = indexed([b"a", b"b"])
    first = ids(index)[0]
    without = spliced(index, [b"a", b"b"], [Change(0, 1, [])])
    back = spliced(without, [b"b"], [Change(0, 0, [b"a"], [first])])
    assert ids(back) == ids(index)
    assert first not in back.dead


def test_a_living_id_is_not_given_twice():
    index = indexed([b"a", b"b"])
    twice = spliced(index, [b"a", b"b"], [Change(2, 2, [b"a"], [ids(index)[0]])])
    assert ids(twice)[:2] == ids(index)
    assert len(set(ids(twice))) == 3


def test_a_revived_id_is_not_found_on_a_twin_instead():
    """The line that comes back differs in white space from one that has no known ID."""
    old = [b"keep", b"    }", b"x"]
    index = indexed(old)
    brace = ids(index)[1]
    changes = [Change(1, 2, [b"}", b"new", b"    }"], [None, None, brace])]
    back = spliced(index, old, changes)
    assert ids(back)[3] == brace


def test_an_own_edit_keeps_the_ids_around_it():
    old = [b"}"] * 9
    index = indexed(old)
    after = spliced(index, old, [Change(3, 4, [b"}", b"}"]), Change(6, 8, [])])
    kept = ids(index)
    assert ids(after)[:3] == kept[:3]
    assert ids(after)[5:7] == kept[4:6]
    assert ids(after)[7] == kept[8]
    assert len(set(ids(after))) == 8


def test_twins_keep_their_own_identity_from_outside():
    """Defect 2 of the original: two `}` got one ID after an insertion."""
    old = [b"a {", b"}", b"b {", b"}"]
    index = indexed(old)
    after = replaced(index, [b"new", *old])
    assert ids(after)[1:] == ids(index)


def test_ids_do_not_depend_on_line_numbers():
    """Defect 3: after one edit all lines behind it had other IDs."""
    old = [b"line %d" % n for n in range(50)]
    index = indexed(old)
    after = replaced(index, [b"zero", *old])
    assert ids(after)[1:] == ids(index)


def test_moved_lines_keep_their_ids_and_what_is_between_them_follows():
    """What is at an end of a moved block, and has twins, may be another line than that which was there."""
    old = [b"def first_of_all():", b"    pass", b"    last = 1", b"", b"def g():", b"    return 1", b"    pass", b"", b"end"]
    index = indexed(old)
    after = replaced(index, [*old[4:8], *old[:4], old[8]])
    expected = ids(index)
    assert ids(after)[:7] == [*expected[4:8], *expected[:3]]
    assert ids(after)[8] == expected[8]
    assert ids(after)[7] not in expected


def test_reindented_lines_keep_their_ids():
    old = [b"if x:", b"a = 1", b"b = 2", b"end"]
    index = indexed(old)
    after = replaced(index, [b"if x:", b"    a = 1", b"\tb = 2  ", b"end"])
    assert ids(after) == ids(index)
    assert after.ages.values(0, 4) == [0, 1, 1, 0]


def test_a_replaced_line_is_a_new_line():
    index = indexed([b"a", b"b", b"c"])
    after = replaced(index, [b"a", b"other", b"c"])
    assert ids(after)[1] != ids(index)[1]
    fate = after.dead[ids(index)[1]]
    assert (fate.how, fate.line, fate.after, fate.before) == ("replaced", 2, ids(index)[0], ids(index)[2])


def test_a_deleted_line_leaves_its_fate():
    index = indexed([b"a", b"b", b"c"])
    after = replaced(index, [b"a", b"c"])
    fate = after.dead[ids(index)[1]]
    assert (fate.how, fate.line, fate.after, fate.before) == ("deleted", 2, ids(index)[0], ids(index)[2])


def test_fates_of_the_last_thousand_are_kept_and_all_dead_stay_reserved():
    old = [b"line %d" % n for n in range(1_500)]
    index = indexed(old)
    after = spliced(index, old, [Change(0, 1_500, [b"one"])])
    assert len(after.dead) == 1_500
    assert sum(fate is not None for fate in after.dead.values()) == line_ids_index.ENDS_STORED
    assert after.dead[ids(index)[0]] is None
    assert after.dead[ids(index)[-1]] is not None


def test_the_last_twenty_versions_are_known():
    texts = [b"0"]
    index = indexed(texts)
    names = [index.version]
    for n in range(1, 25):
        index = replaced(index, [b"%d" % n])
        names.append(index.version)
    assert [index.revision_of(name) for name in names[-20:]] == [*range(5, 25)]
    assert {index.revision_of(name) for name in names[:-20]} == {None}
    assert index.revision_of(names[-1].replace("1.", "2.", 1)) is None


def test_shown_is_remembered_until_the_line_changes():
    index = indexed([b"a", b"b"])
    assert line_ids_index.note_shown(index, 0, 2)
    assert not line_ids_index.note_shown(index, 0, 2)
    after = replaced(index, [b"a", b"  b"])
    assert line_ids_index.note_shown(after, 0, 2)
    # The first line was shown beside what the second one is now.
    assert [after.marks[at].shown for at in range(2)] == [1, 1]


def test_a_line_next_to_a_deleted_one_has_a_new_neighbour():
    index = indexed([b"a", b"b", b"c"])
    after = replaced(index, [b"a", b"c"])
    assert [after.marks[at].near for at in range(2)] == [0, 1]


@pytest.mark.parametrize(
    "count", [0, 1, line_ids_index.ALL_IDS_MAX - 1, line_ids_index.ALL_IDS_MAX, line_ids_index.ALL_IDS_MAX + 1]
)
def test_files_up_to_the_limit_have_an_id_for_every_line(count):
    index = indexed([b"line %d" % n for n in range(count)])
    assert index.count == count
    assert len(index.marks) == (count if count <= line_ids_index.ALL_IDS_MAX else 0)
    assert index.width == (32 if count <= line_ids_index.ALL_IDS_MAX else 8)


def test_growing_over_the_limit_and_back_keeps_ids():
    old = [b"line %d" % n for n in range(1_990)]
    index = indexed(old)
    grown = replaced(index, [*old, *[b"more"] * 20])
    assert grown.width == 8
    assert [grown.marks[at].id for at in range(1_990)] == ids(index)
    shrunk = replaced(grown, old)
    assert shrunk.width == 32
    assert ids(shrunk) == ids(index)


def test_carrying_changes_nothing_in_the_old_index():
    old = [b"a", b"b", b"c"]
    index = indexed(old)
    before = ids(index), dict(index.dead), list(index.versions), index.digests
    spliced(index, old, [Change(1, 2, [])])
    replaced(index, [b"x"])
    assert (ids(index), dict(index.dead), list(index.versions), index.digests) == before


def test_keys_agree_with_the_encoding():
    raw = [b"a\n", b"b\r\n", b"\r\n", b"\n", b"c\r", b"\r\r\n", b"d"]
    assert keys(raw, UTF8) == [UTF8.key(line) for line in raw] == [b"a", b"b", b"", b"", b"c\r", b"\r", b"d"]
