"""A project with some changes, and its pages."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("uvicorn")

from support.review_pages import call, serving

# The terminal view needs an extra of its own.
collect_ignore = [] if importlib.util.find_spec("textual") else ["test_terminal.py"]


@pytest.fixture
def changed(project):
    """A project in which a command changed `a.txt` and made a file whose name and content are HTML."""
    (project / "a.txt").write_text("one\n")
    call("bash/bash", project, command="true")
    call("bash/bash", project, command="echo two > a.txt; echo '<script>alert(1)</script>' > '<b>.html'")
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
