"""Output of commands: what is held in bounded memory, and in a file of bounded size."""

from __future__ import annotations

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.process import output_files


@given(st.integers(0, 400_000), st.sampled_from([1_000, 8_191, 65_536]))
def test_beginning_and_end_are_held_whatever_lies_between(length, size):
    data = (bytes(at * 7 % 251 for at in range(251)) * (length // 251 + 1))[:length]
    capture = output_files.Capture(None)
    for at in range(0, length, size):
        capture.feed(data[at : at + size])
    head, tail = capture.ends()
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + len(tail) == min(length, len(head) + len(tail))
    assert (capture.complete == data) == (len(head) + len(tail) == length)
    assert len(tail) < 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    fd = os.open(tmp_path_factory.mktemp("outputs"), os.O_RDONLY)
    yield fd
    os.close(fd)


@given(pieces=st.lists(st.integers(1, 40), max_size=12), most=st.integers(2, 60), window=st.integers(1, 50))
def test_everything_within_bounds_else_beginning_and_end(folder, pieces, most, window):
    file, everything = output_files.OutputFile(folder, "out", most), b""
    for size in pieces:
        piece = bytes((len(everything) + at) % 251 for at in range(size))
        everything += piece
        file.write(piece)
    file.close()
    at, seen, lost = 0, 0, 0
    while at < len(everything):
        part = output_files.read(folder, "out", at, window)
        assert (part.total, part.start) == (len(everything), at + part.lost)
        assert part.data == everything[part.start : part.start + len(part.data)]
        assert part.data
        lost += part.lost
        seen += len(part.data)
        at = part.start + len(part.data)
    assert seen == min(len(everything), most)
    assert lost == len(everything) - seen
    os.unlink("out", dir_fd=folder)


def test_the_file_is_the_users_own_and_never_another_one(folder):
    file = output_files.OutputFile(folder, "out")
    file.write(b"0123456789")
    assert output_files.read(folder, "out", -3, 100)[:2] == (b"789", 7)
    assert output_files.read(folder, "out", -30, 4)[:2] == (b"0123", 0)
    assert output_files.read(folder, "out", 30, 4) == (b"", 10, 10, 0)
    file.close()
    assert stat.S_IMODE(os.stat("out", dir_fd=folder).st_mode) == 0o600
    with pytest.raises(FileExistsError):
        output_files.OutputFile(folder, "out")
    os.symlink("out", "link", dir_fd=folder)
    with pytest.raises(OSError):
        output_files.read(folder, "link", 0, 1)
    with open(os.open("other", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "wb") as other:
        other.write(b"something else, longer than a header is")
    with pytest.raises(ValueError):
        output_files.read(folder, "other", 0, 1)
