"""Epochs of line IDs: counted for each file, for good; and IDs of two epochs that never meet."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.cli.verbs import state
from rye.config import user_dirs
from rye.line_ids import addresses
from support.calling import done, refused, rows
from support.index_files import folder


def read(project, name="a.txt"):
    return done("read", project, file_path=name)


def anew(project, name="a.txt"):
    """The epoch of a file whose index is made anew."""
    for path in folder(project).glob(f"{named(name)}*"):
        path.unlink()
    return int(read(project, name)["version"].partition(".")[0])


def named(name):
    return sha256(name.encode()).hexdigest()[:16]


@pytest.fixture
def epochs(project):
    """The file of a project's epochs; two files were read, one of them often."""
    for name in ("a.txt", "b.txt", "c.txt"):
        (project / name).write_text("x\n" * 30)
    for name in ("a.txt", "b.txt"):
        read(project, name)
    return Path(user_dirs.state_dir(str(project)), "line_index_epochs")


def test_each_file_has_its_own_count_and_one_that_was_not_used_is_given_back(project, epochs):
    assert [anew(project, name) for name in ("a.txt", "a.txt", "b.txt")] == [2, 3, 2]
    for code, change in (("no_index", "3|x"), ("text_not_found", "find|absent|y")):
        refused(code, "edit_lines", project, file_path="c.txt", changes=[change])
    done("edit_lines", project, file_path="c.txt", changes=["find 30|x|y"], dry_run=True)
    done("rye/workspace/workspace_read_file", project, docPath="c.txt")
    done("write", project, file_path="c.txt", content="new\n")
    # The first is that of what was written.
    assert anew(project, "c.txt") == 2
    assert epochs.stat().st_mode & 0o777 == 0o600


def test_a_damaged_row_costs_only_its_own(project, epochs):
    epochs.write_bytes(b"\xff garbage\nx y\n%b 7\nhalf" % named("a.txt").encode())
    assert (anew(project), anew(project)) == (8, 9)
    # Without a count the epoch is one that nobody drew.
    epochs.unlink()
    assert anew(project, "b.txt") == 1


def test_an_unwritable_state_folder_gives_a_random_epoch(project, user_space):
    """Root passes permission checks, so a file stands where the folder would be."""
    (user_space / ".ai").mkdir()
    (user_space / ".ai/state").write_text("")
    (project / "a.txt").write_text("x\n")
    assert int(read(project)["version"].partition(".")[0]) >= 4_096


def test_merged_lists_have_the_higher_epoch_of_each_file(project, epochs, tmp_path):
    for name in ("b.txt", "b.txt"):
        anew(project, name)
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / "line_index_epochs").write_text(f"{named('a.txt')} 9\n{named('b.txt')} 2\n{named('c.txt')} 5\n")
    state.adopt(lost, epochs.parent)
    assert [anew(project, name) for name in ("a.txt", "b.txt", "c.txt")] == [10, 4, 6]


def test_epochs_share_no_id(project, epochs):
    """Also not by length or ending, whatever the digits say."""
    shapes = {}
    for epoch in (1, 2, 3, 15, 16, 17, 4_095, 4_096, 70_000, 1_048_576):
        epochs.write_text(f"{named('a.txt')} {epoch - 1}\n" if epoch > 1 else "")
        assert anew(project) == epoch
        for name, _ in rows(read(project)):
            assert shapes.setdefault((len(name), name[6:] if epoch > 1 else ""), epoch) == epoch


# --- short addresses: spelled and read the same way, and never taken for an ID ---


EPOCHS = st.one_of(st.integers(1, 400), st.integers(1, 16**7 - 1))
NUMBERS = st.one_of(st.integers(1, 2_000), st.integers(1, 10**7))


@given(NUMBERS, EPOCHS, NUMBERS, EPOCHS)
def test_two_lines_never_share_an_address(number, epoch, other, later):
    assert (addresses.spelled(number, epoch) == addresses.spelled(other, later)) == ((number, epoch) == (other, later))


@given(NUMBERS, EPOCHS, st.from_regex(r"[0-9a-f]{6,12}", fullmatch=True))
def test_what_is_spelled_is_read_back_and_is_no_id(number, epoch, line_id):
    name = addresses.spelled(number, epoch)
    assert addresses.parsed(name) == addresses.parsed(f" {name.upper()} ") == name
    assert addresses.number_of(name) == (number, epoch)
    assert not re.fullmatch(r"[0-9a-f]{6,}", name)
    assert addresses.parsed(line_id) is None


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *((12, "12"), (12.0, "12"), ("012", "12"), ("12g", "12"), (123456, "123456g")),
        *((True, None), (0, None), (-3, None), ("", None)),
    ],
)
def test_what_callers_write(given, meant):
    assert addresses.parsed(given) == meant
