"""A mutation run over the modules that decide about trust: does a test fail for every check that is taken out?

One change at a time is made to a copy of the package: a condition that leads to a refusal made False, True or its opposite; an
operand of `and` or `or` left out; a comparison inverted; a `raise`, or a call that checks, taken out; a branch of a conditional
expression made the only one. Then the module's tests run against the copy. A survivor is a change that no test notices.

`python tests/attacks/mutations.py trust signing` (0 survivors is success); `--list` shows them, `--only 12,40` tries some.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TESTS = {
    "trust": ("test_trust.py", "attacks/test_signature_mutations.py", "test_admission.py", "test_verdicts.py"),
    "signing": ("test_signing.py", "attacks/test_signature_mutations.py", "test_trust.py"),
    "admission": ("test_admission.py", "test_verdicts.py", "test_bundles.py", "test_lockfiles.py", "test_executor.py"),
    "decisions": ("test_decisions.py",),
    "bundles": ("test_bundles.py", "test_admission.py"),
    "verdicts": ("test_verdicts.py",),
    "lockfiles": ("test_lockfiles.py",),
}
# Changes that make no difference to any caller, with the reason; each is the text of a change as it is listed.
EQUIVALENT: dict[str, dict[str, str]] = {
    "admission": {
        "known is None -> True": "it only saves doing the same again",
        "manifest is None -> True": "it only saves reading the same bytes again",
        "not allow_unsigned or err.code != 'unsigned' or candidate.space not in ('project', 'user') without candidate.space "
        "not in ('project', 'user')": "the manifest refuses an unsigned file of a bundle before",
        "len(known) >= _REMEMBERED -> True": "it only remembers less",
        "space.name in ('project', 'user') -> True": "no bundle has lockfiles, and one of its own would hold its own items",
    },
    "decisions": {"known is None -> True": "it only saves reading the same bytes again"},
    "signing": {
        "b'rye:signed:' in rest and _ANOTHER_LINE.search(rest) without b'rye:signed:' in rest": "it only saves the search"
    },
}
_OPPOSITE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CHECKS = ("check", "verify", "_refuse", "refuse", "_hold", "_check", "hold_to")


class Change(NamedTuple):
    """One change: where, what, and the module's text with it."""

    line: int
    what: str
    text: str


def changes(source: str) -> list[Change]:
    """Return every change of a module, each on a tree of its own."""
    tree = ast.parse(source)
    out: list[Change] = []
    for at, node in enumerate(ast.walk(tree)):
        for what, edit in _edits(node):
            mutant = copy.deepcopy(tree)
            if edit(mutant, list(ast.walk(mutant))[at]):
                out.append(Change(node.lineno, f"{node.lineno}: {what}", ast.unparse(ast.fix_missing_locations(mutant))))
    return sorted(out, key=lambda change: change.line)


def _edits(node):
    """Yield (description, edit) for a node; an edit changes the copy's node, or says that it does not apply."""
    if isinstance(node, ast.If | ast.IfExp | ast.While) and ast.unparse(node.test) != "TYPE_CHECKING":
        shown = ast.unparse(node.test)
        for value in (False, True):
            yield f"{shown} -> {value}", lambda tree, found, value=value: _set(found, "test", ast.Constant(value))
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            yield (
                f"{ast.unparse(node)} inverted at {number}",
                lambda tree, found, number=number, operator=operator: _put(found.ops, number, _OPPOSITE[type(operator)]()),
            )
    if isinstance(node, ast.BoolOp):
        for number, operand in enumerate(node.values):
            yield (
                f"{ast.unparse(node)} without {ast.unparse(operand)}",
                lambda tree, found, number=number: _drop(found.values, number),
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{ast.unparse(node)} without not", lambda tree, found: _replace(tree, found, found.operand)
    if isinstance(node, ast.comprehension):
        for number, condition in enumerate(node.ifs):
            node.lineno = condition.lineno
            yield f"filter {ast.unparse(condition)} dropped", lambda tree, found, number=number: _drop(found.ifs, number)
    if isinstance(node, ast.Raise):
        yield f"{ast.unparse(node)[:70]} -> pass", lambda tree, found: _replace(tree, found, ast.Pass())
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func).startswith(_CHECKS):
        yield f"{ast.unparse(node)} -> pass", lambda tree, found: _replace(tree, found, ast.Pass())


def _name(func) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _set(node, field, value) -> bool:
    setattr(node, field, value)
    return True


def _put(items, at, value) -> bool:
    items[at] = value
    return True


def _drop(items, at) -> bool:
    del items[at]
    return True


def _replace(tree, old, new) -> bool:
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if value is old:
                setattr(node, field, new)
                return True
            if isinstance(value, list) and any(item is old for item in value):
                value[[item is old for item in value].index(True)] = new
                return True
    return False


def survives(change: Change, module: str, worker: Path) -> bool:
    """Run the module's tests against a copy with the change."""
    (worker / f"runtime/rye/{module}.py").write_text(change.text)
    tests = [str(ROOT / "tests" / name) for name in TESTS[module]]
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "--no-header", f"--basetemp={worker / 'tmp'}", *tests]
    env = {
        **os.environ,
        "PYTHONPATH": str(worker / "runtime"),
        "USER_SPACE": str(worker / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=120, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def prepare(folder: Path) -> Path:
    """Copy package and system bundle."""
    shutil.copytree(ROOT / "runtime/rye", folder / "runtime/rye", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".ai", folder / ".ai", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(module: str, top: Path, jobs: int, only: set[int]) -> int:
    """Try a module's changes; return how many survived unexplained."""
    source = (ROOT / f"runtime/rye/{module}.py").read_text()
    found = [change for change in changes(source) if not only or change.line in only]
    workers = [prepare(top / f"{module}{number}") for number in range(jobs)]
    started = time.monotonic()
    unchanged = Change(0, "unchanged", ast.unparse(ast.parse(source)))
    if not survives(unchanged, module, workers[0]):
        sys.exit(f"{module}: its tests fail without any change")
    free = list(workers)

    def attempt(change):
        worker = free.pop()
        try:
            return survives(change, module, worker)
        finally:
            free.append(worker)

    with ThreadPoolExecutor(jobs) as pool:
        alive = [change for change, lives in zip(found, pool.map(attempt, found), strict=True) if lives]
    explained = EQUIVALENT.get(module, {})
    unexplained = [change for change in alive if change.what.partition(": ")[2] not in explained]
    for change in unexplained:
        print(f"SURVIVES {module}.py:{change.what}", flush=True)
    print(
        f"{module}: {len(found)} changes, {len(found) - len(alive)} noticed, {len(alive) - len(unexplained)} without effect "
        f"(listed with reasons), {len(unexplained)} survivors; {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return len(unexplained)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", choices=[*TESTS, []], default=["trust", "signing"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", metavar="LINES", help="lines, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    args = parser.parse_args()
    if args.list:
        for module in args.modules:
            for change in changes((ROOT / f"runtime/rye/{module}.py").read_text()):
                print(f"{module}.py:{change.what}")
        return
    only = {int(line) for line in args.only.split(",") if line}
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(sum(run(module, Path(folder), args.jobs, only) for module in args.modules) > 0)


if __name__ == "__main__":
    main()
