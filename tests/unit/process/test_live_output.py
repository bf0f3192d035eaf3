"""Output on its way to who watches."""

from __future__ import annotations

from rye.call import context
from rye.process.run import LiveOutput


def test_pieces_are_joined_and_told_not_too_often():
    told = []
    with context.using(options=context.CallOptions(on_output=told.append)):
        live = LiveOutput(2)
        assert live.due() is None
        for piece in (b"a", b"b\n"):
            live.feed(0, piece)
        live.report()
        live.feed(1, b"c\xc3")
        live.report()
        assert told == ["ab\n"]
        live.feed(1, b"\xa9")
        live.close()
    assert told == ["ab\n", "cé"]


def test_of_a_flood_so_much_is_told_and_the_rest_counted():
    told = []
    with context.using(options=context.CallOptions(on_output=told.append)):
        live = LiveOutput(1)
        for _ in range(100):
            live.feed(0, b"x" * 10_000)
        live.report()
    assert len(told[0]) < 50_000
    assert "bytes not shown here" in told[0]
