"""Output on its way to who watches."""

from __future__ import annotations

from rye.toolkit import output
from rye.toolkit.live import Live


def test_pieces_are_joined_and_told_not_too_often():
    told = []
    with output.opened_by(output.Door(on_output=told.append)):
        live = Live(2)
        assert live.due() is None
        for piece in (b"a", b"b\n"):
            live.feed(0, piece)
        live.tell()
        live.feed(1, b"c\xc3")
        live.tell()
        assert told == ["ab\n"]
        live.feed(1, b"\xa9")
        live.close()
    assert told == ["ab\n", "cé"]


def test_of_a_flood_so_much_is_told_and_the_rest_counted():
    told = []
    with output.opened_by(output.Door(on_output=told.append)):
        live = Live(1)
        for _ in range(100):
            live.feed(0, b"x" * 10_000)
        live.tell()
    assert len(told[0]) < 50_000
    assert "bytes passed over here" in told[0]
