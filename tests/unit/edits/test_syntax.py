"""What counts as a new syntax error of Python: as Python itself reads the bytes, and nothing of them runs."""

from __future__ import annotations

import pytest

from rye.edits.syntax_check import Broken, first_error, new_error


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"\xef\xbb\xbfx = 1\r\n",
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
        b"x = '\\d'\n",
        b"raise SystemExit(1)\n",
        b"",
    ],
)
def test_what_python_takes_is_not_broken(data, recwarn):
    assert first_error("a.py", data) is None
    assert not recwarn.list


@pytest.mark.parametrize(
    ("path", "before", "after", "told"),
    [
        ("a.go", b"func f() { g() }\n", b"func f() { g() } }\n", "Brackets of a.go pair no more: 1 { and 2 }."),
        ("a.TSX", b"f([1])\n", b"f([1)\n", "Brackets of a.TSX pair no more: 1 [ and 0 ]."),
        ("a.c", None, b'int f() { return s[0] == \'(\' || !strcmp(s, "[{\\"("); }\n', None),
        ("a.ts", b"f(`x`)\n", b"f('(')\n", None),
        ("a.rs", b"", b"fn f<'a>(x: &'a str, c: char) { c == '(' }\n", None),
        ("a.rs", None, b"fn f( {}\n", "Brackets of a.rs pair no more: 1 ( and 0 )."),
        # What stands in a string does not count.
        ("a.js", b"x = '('\n", b"x = '(' + ')' + '('\n", None),
        ("a.go", b"func f() {}\n", b"func f() { if x {} }\n", None),
        ("a.txt", b"()\n", b"(\n", None),
    ],
)
def test_brackets_are_counted_where_no_parser_is_at_hand(path, before, after, told):
    assert new_error(path, before, after) == told


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"x = 1\ndef f(:\n", 2),
        (b"x = '\xe9'\n", 1),
        (b"def f(a, a): pass\n", 1),
        (b"x = 1\n\nnonlocal x\n", 3),
        (b"(" * 300, 1),
    ],
)
def test_what_python_refuses_is_told_with_its_line(data, line):
    found = first_error("a.py", data)
    assert isinstance(found, Broken)
    assert found.line == line


@pytest.mark.parametrize("data", ["-" * 50_000 + "1", "+".join(["1"] * 50_000), "a" + ".b" * 50_000])
def test_what_is_nested_too_deeply_is_not_checked_and_ends_no_process(data):
    assert "nested too deeply" in str(first_error("a.py", data.encode()))


def test_an_error_that_was_there_before_is_not_told_again():
    before, after = b"def f(:\n", b"x = 1\ndef f(:\n"
    assert new_error("a.py", before, after) is None
    assert isinstance(new_error("a.py", b"x = 1\n", after), Broken)
