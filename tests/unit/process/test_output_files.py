"""One stream in bounded memory: what is shown of it, and what is kept."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from rye.process import output_files as process_capture
from rye.process.output_files import Capture


def fed(data, size, keep=None):
    capture = Capture(keep)
    for at in range(0, len(data), size):
        capture.feed(data[at : at + size])
    return capture


@given(st.integers(0, 400_000), st.sampled_from([1_000, 8_191, 65_536]))
def test_beginning_and_end_are_held_whatever_lies_between(length, size):
    data = bytes(at * 7 % 251 for at in range(min(length, 251))) * (length // 251 + 1)
    data = data[:length]
    head, tail = fed(data, size).ends()
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) + len(tail) == min(length, len(head) + len(tail))
    assert (fed(data, size).complete == data) == (len(head) + len(tail) == length)
    assert len(tail) < 200_000


def test_what_fits_is_shown_whole_and_kept_nowhere():
    made = []
    capture = fed(b"one\ntwo\n", 3, lambda: made.append(1))
    assert capture.shown(12, str) == ("one\ntwo\n", False)
    assert made == []


def test_what_does_not_fit_is_kept_from_its_first_byte(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    for length in (2_000, 100_000, 300_000):
        data = b"".join(b"%07d\n" % at for at in range(length // 8))
        capture = fed(data, 4_096, lambda length=length: process_capture.OutputFile(folder, f"{length}"))
        text, cut = capture.shown(1_000, lambda offset: f"job(offset={offset})")
        assert cut
        assert len(text) <= 1_000
        assert "job(offset=" in text
        assert process_capture.read(folder, f"{length}", 0, 1 << 20).data == data
    os.close(folder)


def test_a_disk_that_fails_ends_the_keeping_only():
    class Full:
        def write(self, data):
            raise OSError(28, "full")

        def close(self):
            pass

    capture = fed(b"x\n" * 100_000, 4_096, Full)
    assert capture.stored is False
    assert "not stored" in capture.shown(1_000, str)[0]
    assert capture.total == 200_000
