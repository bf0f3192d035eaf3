"""How many tools of an original RYE bundle run here, unmodified, once their key is trusted; and why each other does not.

    python benchmarks/original_bundle.py BUNDLE/.ai [--json]

The bundle's tools and key are copied into a project of its own. A person's decisions are made for it: the key is trusted, its
reserved ids may be served by that project, and what its tools may do is granted, since they declare no permissions. Then each
tool that names an executor is called with harmless parameters. `runs` means that it succeeded; `refuses` that it ran and answered
with an error of its own; else the reason stands there.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import rye
from rye.errors import RyeError
from rye.items import spaces
from rye.trust import decisions
from rye.trust.decisions import Root

# What a tool needs to do something; every other tool is called without parameters.
GIVEN: dict[str, dict[str, Any]] = {
    "rye/file-system/read": {"path": "a.txt"},
    "rye/file-system/ls": {},
    "rye/file-system/glob": {"pattern": "*.txt"},
    "rye/file-system/grep": {"pattern": "one"},
    "rye/file-system/write": {"path": "b.txt", "content": "new\n"},
    "rye/file-system/edit_lines": {"path": "a.txt", "changes": [{"line_id": "000000", "new_content": "x"}]},
    "rye/bash/bash": {"command": "echo hi"},
    "rye/code/git/git": {"action": "status"},
    "rye/web/fetch/fetch": {"url": "http://127.0.0.1:9/"},
    "rye/web/search/search": {"query": "rye", "num_results": 1},
    "rye/agent/threads/internal/budget_ops": {"operation": "can_spawn", "thread_id": "t", "amount": 1},
    "rye/agent/threads/internal/control": {"action": "continue"},
    "rye/agent/threads/internal/emitter": {"event_type": "x", "thread_id": "t"},
    "rye/agent/threads/internal/limit_checker": {"limit_type": "turns", "current_value": 1, "max_value": 2},
    "rye/agent/threads/internal/thread_chain_search": {"thread_id": "t", "query": "x"},
    "rye/agent/threads/thread_directive": {"directive_id": "x"},
}


def prepared(bundle: Path, folder: Path) -> Path:
    """Return a project that holds the bundle's tools, with a user who decided for them."""
    project = folder / "project"
    shutil.copytree(bundle / "tools", project / ".ai/tools")
    user = Path(os.environ["USER_SPACE"], ".ai")
    shutil.copytree(bundle / "trusted_keys", user / "trusted_keys")
    (user / "config").mkdir()
    (user / "config/rye.yaml").write_text('permissions:\n  granted: ["rye/ write network run"]\n')
    (project / "a.txt").write_text("one\ntwo\n")
    for item_id, _ in spaces.items_in(spaces.Space("project", str(project / ".ai")), "tool"):
        decisions.approve_shadow(item_id, Root.of(project))
    return project


def executor_of(path: Path) -> str:
    """Return the executor that a file names, by its text; "" for none."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.removeprefix("export const ").replace("=", ":", 1).split(":", 1)
        if words[0].strip() in ("executor_id", "__executor_id__") and len(words) == 2:
            name = words[1].strip().strip("\"';")
            return "" if name in ("null", "None", "") else name
    return ""


def measured(project: Path) -> list[dict[str, str]]:
    """Return one row for each tool that names an executor: `{"item_id", "executor", "outcome", "told"}`."""
    rows = []
    for item_id, path in spaces.items_in(spaces.Space("project", str(project / ".ai")), "tool"):
        executor = executor_of(path)
        # Runtimes run tools, and are none.
        if not executor or "tool_type: runtime" in path.read_text(encoding="utf-8", errors="replace"):
            continue
        answer = rye.execute(item_id, GIVEN.get(item_id, {}), project_path=project)
        rows.append({"item_id": item_id, "executor": executor, "outcome": outcome(answer), "told": told(answer)})
    return rows


def outcome(answer: dict[str, Any]) -> str:
    """Return `runs`, `refuses`, or why it did not run."""
    if not answer["metadata"]["ran"]:
        return str(answer["code"])
    words = f"{answer['data'].get('stderr', '')} {answer.get('error', '')}"
    for sign in ("ModuleNotFoundError", "ImportError"):
        if sign in words:
            return f"imports: {words.partition(sign + ': ')[2].splitlines()[0][:80]}"
    if "Traceback" in words:
        return "crashes"
    return "runs" if answer["status"] == "success" else "refuses"


def told(answer: dict[str, Any]) -> str:
    """Return the first words of an answer."""
    text = str(answer["data"].get("output") or answer.get("error") or answer["data"])
    return " ".join(text.split())[:100]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        Path(folder, "user").mkdir()
        try:
            rows = measured(prepared(args.bundle, Path(folder)))
        except RyeError as err:
            sys.exit(str(err))
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(" | ".join(row.values()))
    counts = collections.Counter(row["outcome"].partition(":")[0] for row in rows)
    print(f"{counts['runs']} of {len(rows)} run; {dict(counts)}")


if __name__ == "__main__":
    main()
