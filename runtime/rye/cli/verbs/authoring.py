"""`rye lint` and `rye new`: writing tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from rye.authoring.lint import lint
from rye.authoring.new_tool import KINDS, new_tool
from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import project_of, project_to_work_in
from rye.cli.terminal import harmless, note, tell, told_json
from rye.errors import UsageError
from rye.fs import atomic
from rye.items import spaces, targets
from rye.items.spaces import Space
from rye.items.targets import Target


def run_lint(args: SimpleNamespace) -> int:
    """Run `rye lint`; return its exit code."""
    tools = _tools(args)
    search_path = spaces.spaces(project_of(args.project))
    rows = [row for target in tools for row in _findings(target, search_path)]
    tell(args, rows, (f"{row['path']}:{row['line']}: {row['code']} {row['message']}" for row in rows))
    # After the rows, so that `--json` prints its (empty) list before the refusal.
    if not tools:
        why = "There is no tool to check."
        raise UsageError("no_tools", why, "Name a file, a folder or an id; `rye new tool ID` makes one.")
    files = len({row["path"] for row in rows})
    summary = f"Findings: {len(rows)}, in {files} of {len(tools)} files." if rows else f"Files: {len(tools)}. No findings."
    note(summary)
    return EXIT_NO if rows else EXIT_OK


def _tools(args: SimpleNamespace) -> list[Target]:
    if args.all and args.targets:
        raise UsageError("bad_targets", "Give targets, or --all; not both.", "")
    search_path = spaces.spaces(project_of(args.project))
    # The first space is the project's own; an author cannot change the others' tools here.
    searched = search_path if args.all else search_path[:1]
    found = targets.resolve(args.targets, search_path) if args.targets else targets.all_targets(searched)
    return [target for target in found if target.item_type == "tool"]


def _findings(target: Target, search_path: Sequence[Space]) -> Iterator[dict[str, Any]]:
    try:
        # The mode too: lint reports a file that others may write.
        raw, info = atomic.read_regular(target.path)
    except OSError as err:
        message = f"It cannot be read: {err.strerror}."
        yield {"path": target.text, "line": 1, "item_id": target.item_id, "code": "unreadable", "message": message}
        return
    for found in lint(raw, target.suffix, target.item_id, info.st_mode, search_path):
        yield {"path": target.text, "item_id": target.item_id, **found._asdict()}


def run_new(args: SimpleNamespace) -> int:
    """Run `rye new`; return its exit code."""
    # Not in a home: its `.ai` is the user's own space, and a folder of tests would lie beside it.
    made = new_tool(args.item_id, project_to_work_in(args.project), args.runtime)
    if told_json(args, made._asdict()):
        return EXIT_OK
    print(harmless(f"{made.tool}\n{made.test}"))
    print(f"""
Next, in the project's folder:
  edit {made.tool}
  rye lint {made.item_id}
  python -m pytest {made.test}        (pip install pytest)
  rye sign {made.item_id}        (`rye keys generate` once before; a person at a terminal signs)
  rye {made.item_id} {KINDS[args.runtime].example if args.runtime in KINDS else "hello"}""")
    return EXIT_OK
