"""The bounded file of output."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.process.output_files import OutputFile, read


@pytest.fixture
def folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@given(pieces=st.lists(st.integers(1, 40), max_size=12), most=st.integers(2, 60), window=st.integers(1, 50))
def test_everything_within_bounds_else_beginning_and_end(tmp_path_factory, pieces, most, window):
    folder = os.open(tmp_path_factory.mktemp("spool"), os.O_RDONLY)
    spool = OutputFile(folder, "out", most)
    everything = b""
    for size in pieces:
        piece = bytes((len(everything) + at) % 251 for at in range(size))
        everything += piece
        spool.write(piece)
    spool.close()
    at, seen, lost = 0, 0, 0
    while at < len(everything):
        part = read(folder, "out", at, window)
        assert (part.total, part.start) == (len(everything), at + part.lost)
        assert part.data == everything[part.start : part.start + len(part.data)]
        assert part.data
        lost += part.lost
        seen += len(part.data)
        at = part.start + len(part.data)
    assert seen == min(len(everything), most)
    assert lost == len(everything) - seen
    os.close(folder)


def test_from_the_end_and_past_it(folder):
    spool = OutputFile(folder, "out")
    spool.write(b"0123456789")
    assert read(folder, "out", -3, 100)[:2] == (b"789", 7)
    assert read(folder, "out", -30, 4)[:2] == (b"0123", 0)
    assert read(folder, "out", 30, 4) == (b"", 10, 10, 0)
    spool.close()


def test_the_file_is_the_users_own_and_never_another_one(folder, tmp_path):
    OutputFile(folder, "out").close()
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        OutputFile(folder, "out")
    (tmp_path / "link").symlink_to("out")
    with pytest.raises(OSError):
        read(folder, "link", 0, 1)
    (tmp_path / "other").write_bytes(b"something else, longer than a header is")
    with pytest.raises(ValueError):
        read(folder, "other", 0, 1)
