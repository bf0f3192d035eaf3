"""What a model reads of a docstring within a number of characters; and tools that are read in many threads."""

import sys
from concurrent.futures import ThreadPoolExecutor

from rye.items import parse

POINTS = """Count words.
And more.

Requires: a file.
Does not: change it,
or anything.
Side effects: none.
Returns: output. A count. And more of it.
Prefer it to wc."""


def test_a_docstring_has_points_and_what_is_too_long_loses_what_is_returned_first_then_the_longest_point():
    first, *others = parse.docstring_sections(POINTS)
    assert (first, others[1]) == ("Count words. And more.", "Does not: change it, or anything.")
    names = [point.partition(":")[0] for point in others]
    assert names == ["Requires", "Does not", "Side effects", "Returns", "Prefer it to wc."]
    assert parse.docstring_sections("Requires: x") == ["", "Requires: x"]
    assert parse.fitted_docstring(POINTS, len(POINTS)) == POINTS
    assert "Returns: output. A count.\n" in parse.fitted_docstring(POINTS, len(POINTS) - 5)
    assert parse.fitted_docstring(POINTS, 140).startswith("Count words. And more.\n")
    short = parse.fitted_docstring(POINTS, 125)
    assert (short.startswith("Count words.\n"), "Returns: output.\n" in short) == (True, True)
    assert parse.fitted_docstring(POINTS, 20) == f"{short[:19]}…"
    assert all(len(parse.fitted_docstring(POINTS, most)) <= most for most in range(1, len(POINTS) + 2))


def test_tools_are_read_in_many_threads_at_once():
    """An interpreter that switches threads while it makes a tree gives up on it if another is made (CPython 3.11)."""

    class Slow:
        def __init__(self):
            self.itself = self

        def __del__(self):
            for _ in range(50):
                pass

    body = "\n".join(f"x{number} = [{{'a': (1, [2, {{'b': {number}}}])}}]" for number in range(200)).encode()

    def read():
        for _ in range(8):
            Slow()
            parse.literals_of(parse.python_tree(body))

    def litter():
        for _ in range(10_000):
            Slow()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for one in [pool.submit(work) for work in (read, read, read, litter)]:
                one.result()
    finally:
        sys.setswitchinterval(interval)
