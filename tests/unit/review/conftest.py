"""A project with some changes, and its pages."""

from __future__ import annotations

import pytest

from support.calling import call
from support.shell_calls import bash

pytest.importorskip("uvicorn")

from support.review_pages import serving


@pytest.fixture
def ten(project):
    """A project with a command that changed two places of one file, another one, and a whole new file."""
    (project / "ten.py").write_text("".join(f"value_{number} = {number}  # a comment\n" for number in range(20)))
    (project / "other.txt").write_text("other\n")
    bash(project, "true")
    bash(project, "sed -i '1s/.*/first = \"text\"/; 12s/.*/eighth = 8/' ten.py; echo more >> other.txt")
    call("write", project, file_path="new.py", content="def new():\n    return 1\n")
    return project


@pytest.fixture
def changed(project):
    """A project in which a command changed `a.txt` and made a file whose name and content are HTML."""
    (project / "a.txt").write_text("one\n")
    bash(project, "true")
    bash(project, "echo two > a.txt; echo '<script>alert(1)</script>' > '<b>.html'")
    return project


@pytest.fixture
def served(changed):
    """Its pages."""
    with serving(changed) as pages:
        yield pages


@pytest.fixture
def client(served):
    """A client that opened them."""
    with served.client() as one:
        yield one
