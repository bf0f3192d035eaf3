"""What changes on the disk between two questions, by anyone's hand, is known at the next one: real servers, three languages.

The control leaves out the news and so gets old answers.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

import rye
from rye.lsp import session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Case(NamedTuple):
    """A file that uses a part of another one: `good` and `bad` are of one size, and only `bad` is an error in `user`."""

    user: str
    text: str
    part: str
    good: str
    bad: str


C_USER = '#include "parts/deep/one.h"\nint x = f(1);\nint g(void) { return f(1); }\n'
FUNCTION = "export function f(a: {}) {{ return a }}\n"
CASES = {
    "python": Case(
        "user.py", "from parts.deep.one import f\n\nf(1)\n", "one.py", "def f(a: int): ...\n", "def f(a: str): ...\n"
    ),
    "typescript": Case(
        "user.ts",
        "import { f } from './parts/deep/one'\nf(1)\n",
        "one.ts",
        FUNCTION.format("number"),
        FUNCTION.format("string"),
    ),
    "c": Case("user.c", C_USER, "one.h", "#define f(a) (a)\n", "#define f(a) (b)\n"),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch):
    """A language whose server is installed."""
    if request.param == "typescript":
        monkeypatch.setenv("PATH", f"{request.getfixturevalue('typescript')}{os.pathsep}{os.environ['PATH']}")
    return CASES[request.param]


@pytest.fixture(autouse=True)
def ended():
    yield
    session.close_all()


def wrong(project: Path, case: Case) -> bool:
    """Tell whether the user file has errors, as the tool says."""
    answer = rye.execute("rye/lsp/lsp", {"file_path": case.user}, project_path=project)
    assert answer["status"] == "success", answer
    return bool(answer["data"]["counts"]["error"])


def begun(project: Path, case: Case) -> Path:
    """Make the two files, older than the clock's grain; return the part."""
    part = project / "parts/deep" / case.part
    part.parent.mkdir(parents=True)
    part.write_text(case.good)
    (project / case.user).write_text(case.text)
    (project / "pyrightconfig.json").write_text("{}")
    time.sleep(0.1)
    return part


def changes(project: Path, case: Case, part: Path) -> list[tuple[str, Callable[[], object], bool]]:
    """Return (what, how, whether the user file has errors then), one after the other."""
    away = project / "elsewhere"
    return [
        ("changed, of the same size", lambda: part.write_text(case.bad), True),
        ("replaced", lambda: _replace(part, case.good), False),
        ("removed", part.unlink, True),
        ("added", lambda: part.write_text(case.good), False),
        ("its folder renamed", lambda: (project / "parts").rename(away), True),
        ("its folder renamed back", lambda: away.rename(project / "parts"), False),
        ("renamed", lambda: part.rename(part.with_stem("two")), True),
        ("a link in its place", lambda: part.symlink_to(part.with_stem("two").name), False),
    ]


def _replace(part: Path, text: str) -> None:
    fresh = part.with_suffix(".fresh")
    fresh.write_text(text)
    os.replace(fresh, part)


@pytest.mark.slow
def test_what_changed_outside_is_known_at_the_next_question(project, case):
    part = begun(project, case)
    assert not wrong(project, case)
    said = []
    for what, how, expected in changes(project, case, part):
        how()
        said.append((what, wrong(project, case), expected))
    assert [one for one in said if one[1] is not one[2]] == []


@pytest.mark.slow
def test_control_without_the_news_the_answer_is_an_old_one(project, case, monkeypatch):
    part = begun(project, case)
    assert not wrong(project, case)
    monkeypatch.setattr(session.ServerSession, "refresh", lambda *_: None)
    _, how, expected = changes(project, case, part)[0]
    how()
    assert wrong(project, case) is not expected
