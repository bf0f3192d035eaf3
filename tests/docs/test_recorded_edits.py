"""The benchmark of recorded edits: each agent's record is understood, rebuilt only where it fits, and replayed byte for byte."""

from __future__ import annotations

import json
import subprocess

import pytest

from docs.test_agent_edits import run

BEFORE, AFTER = "one\ntwo\nthree\n", "one\n2\nthree\n"
DIFF = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def git(folder, *words):
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True).stdout.strip()


def repository(folder, files):
    """Make a repository with one commit of some files; return the commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return git(folder, "rev-parse", "HEAD")


def recorded(folder, transcripts):
    """Put transcripts on a branch as Entire.io does."""
    git(folder, "checkout", "-q", "--orphan", "entire/checkpoints/v1")
    git(folder, "rm", "-rfq", ".")
    for number, text in enumerate(transcripts):
        (folder / f"{number}.jsonl").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "two")
    git(folder, "checkout", "-q", "main")


def lines(*entries):
    return "\n".join(map(json.dumps, entries))


def codex(diff, call="c1"):
    changes = {"/p/a.txt": {"type": "update", "unified_diff": diff}}
    done = {"type": "patch_apply_end", "call_id": call, "success": True, "stdout": "Success.", "changes": changes}
    asked = {"type": "custom_tool_call", "name": "apply_patch", "call_id": call, "input": "*** Begin Patch"}
    meta = {"type": "session_meta", "payload": {"id": "s", "cwd": "/p"}}
    return lines(meta, {"type": "response_item", "payload": asked}, {"type": "event_msg", "payload": done})


def opencode():
    file = {"filePath": "/p/a.txt", "before": BEFORE, "after": AFTER}
    state = {"status": "completed", "input": {}, "output": "Success.", "metadata": {"files": [file]}}
    part = {"type": "tool", "tool": "apply_patch", "callID": "o1", "state": state}
    # Over several lines, and twice: a later checkpoint repeats what the one before had.
    return json.dumps({"info": {"directory": "/p"}, "messages": [{"parts": [part]}, {"parts": [part]}]}, indent=1)


def gemini():
    shown = {"originalContent": BEFORE, "newContent": AFTER}
    call = {"id": "g1", "name": "replace", "status": "success", "args": {"file_path": "a.txt"}, "resultDisplay": shown}
    failed = {"id": "g0", "name": "replace", "status": "error", "args": {"file_path": "a.txt"}, "result": "0 occurrences found"}
    return lines({"type": "gemini", "toolCalls": [failed]}, {"type": "gemini", "toolCalls": [call]})


def claude(old, new):
    patch = [{"oldStart": 1, "oldLines": 3, "lines": [" one", f"-{old}", f"+{new}", " three"]}]
    result = {"filePath": "/p/a.txt", "oldString": old, "newString": new, "originalFile": None, "structuredPatch": patch}
    common = {"sessionId": "s", "cwd": "/p", "timestamp": "2026-01-01T00:00:00"}
    use = {
        "type": "tool_use",
        "id": "t",
        "name": "Edit",
        "input": {"file_path": "/p/a.txt", "old_string": old, "new_string": new},
    }
    told = {"type": "tool_result", "tool_use_id": "t", "content": "updated"}
    return lines(
        {**common, "uuid": "a", "type": "assistant", "message": {"content": [use]}},
        {**common, "uuid": "u", "type": "user", "message": {"content": [told]}, "toolUseResult": result},
    )


def edits(*paths):
    found = json.loads(run("--only", "edits", "--json", *map(str, paths)))
    return {name.partition(", ")[2] or "Claude Code": one for name, one in found.items()}


@pytest.mark.slow
def test_each_agents_record_is_replayed(tmp_path):
    repository(tmp_path / "r", {"a.txt": BEFORE})
    recorded(tmp_path / "r", [codex(DIFF), opencode(), gemini(), claude("two", "2")])
    found = edits(tmp_path / "r")
    assert set(found) == {"Codex", "OpenCode", "Gemini CLI", "Claude Code"}
    for name, one in found.items():
        assert {verdict: count for verdict, count in one["edits"].items() if count} == {"exact": 1}, name
    # The failure was replayed where it happened, with the edit that came next.
    assert found["Gemini CLI"]["failures"]["not found: prevented"] == 1


@pytest.mark.slow
def test_what_fits_no_version_of_the_file_is_not_rebuilt(tmp_path):
    repository(tmp_path / "r", {"a.txt": "one\nTWO\nthree\n"})
    recorded(tmp_path / "r", [codex(DIFF), claude("two", "2")])
    for name, one in edits(tmp_path / "r").items():
        assert {verdict: count for verdict, count in one["edits"].items() if count} == {"not rebuilt": 1}, name
