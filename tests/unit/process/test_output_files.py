"""One stream in bounded memory: what is shown of it, and what is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
