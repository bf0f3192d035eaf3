"""insert_at: swe-tooling 6.3.2."""

from __future__ import annotations

import pytest

from support.calling import done, refused

INSERT = "rye/swe/insert_at"


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        (b"a\nb\n", 1, b"x\ny\na\nb\n"),
        (b"a\nb\n", 2, b"a\nx\ny\nb\n"),
        (b"a\nb\n", 3, b"a\nb\nx\ny\n"),
        (b"a\nb", 3, b"a\nb\nx\ny"),
        (b"", 1, b"x\ny\n"),
        (b"a\r\nb\r\n", 2, b"a\r\nx\r\ny\r\nb\r\n"),
    ],
)
def test_lines_go_before_a_line_or_behind_the_last(project, before, line, after):
    (project / "f").write_bytes(before)
    data = done(INSERT, project, path="f", line=line, new_text="x\ny\n")
    assert (project / "f").read_bytes() == after
    assert data["output"].startswith(f"✓ Edited f:{line}-{line + 1}\n0 lines removed, 2 added\n")


@pytest.mark.parametrize("line", [0, 4])
def test_a_line_out_of_bounds_is_refused_with_the_valid_range(project, line):
    (project / "f").write_bytes(b"a\nb\n")
    assert f"line {line} out of range (1..3)" in refused("out_of_range", INSERT, project, path="f", line=line, new_text="x")
    assert (project / "f").read_bytes() == b"a\nb\n"


def test_nothing_to_insert_and_protected_places_are_refused(project):
    (project / "f").write_bytes(b"a\n")
    refused("nothing_to_insert", INSERT, project, path="f", line=1, new_text="")
    (project / ".git").mkdir()
    (project / ".git/config").write_bytes(b"a\n")
    refused("protected_path", INSERT, project, path=".git/config", line=1, new_text="x")
