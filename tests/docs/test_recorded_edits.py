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


@pytest.mark.slow
def test_runs_of_a_benchmark_begin_at_the_tasks_base_commit(tmp_path):
    commit = repository(tmp_path / "o+n", {"a.txt": BEFORE})
    window = "[File: /o__n/a.txt (3 lines total)]\n"
    steps = [
        {"action": "edit 2:2\n2\nend_of_edit\n", "observation": f"{window}1:one\n2:2\n3:three\nFile updated."},
        # What the answer shows is another file: from here on nothing is known of it.
        {"action": "edit 2:2\nzwei\nend_of_edit\n", "observation": f"{window}1:one\n2:zwei\n3:drei\nFile updated."},
        {"action": "edit 2:2\ndeux\nend_of_edit\n", "observation": f"{window}1:one\n2:deux\n3:drei\nFile updated."},
        {"action": "edit 2:2\n(\nend_of_edit\n", "observation": "Your proposed edit has introduced new syntax error(s)."},
    ]
    state = json.dumps({"open_file": "/o__n/a.txt"})
    info = {"instance_id": "o__n-1", "repo": "o/n", "base_commit": commit}
    files = {
        "runs/o__n-1.traj": json.dumps({"trajectory": [{**step, "state": state} for step in steps], "info": {}}),
        "results/o__n-1_2024-01-01_00-00-00/meta.json": json.dumps({"task_info": info}),
        "results/o__n-1_2024-01-01_00-00-00/extracted_patch_1.diff": f"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n{DIFF}",
    }
    repository(tmp_path / "results", files)
    found = edits(tmp_path / "results", tmp_path / "o+n")
    assert (found["SWE-agent"]["edits"]["exact"], found["SWE-agent"]["edits"]["not rebuilt"]) == (1, 2)
    assert found["SWE-agent"]["failures"]["recorded"] == 1
    assert found["AutoCodeRover"]["edits"]["exact"] == 1


@pytest.mark.slow
def test_a_chat_of_aider_is_held_to_the_commits_that_it_names(tmp_path):
    repository(tmp_path / "r", {"a.txt": BEFORE})
    (tmp_path / "r/a.txt").write_text(AFTER)
    git(tmp_path / "r", "commit", "-aqm", "fix: two")
    commit = git(tmp_path / "r", "rev-parse", "--short=7", "HEAD")
    block = "a.txt\n```\n<<<<<<< SEARCH\n{}\n=======\n2\n>>>>>>> REPLACE\n```\n"
    said = f"\n> Applied edit to a.txt  \n> Commit {commit} fix: two  \n"
    chat = f"#### two\n\n{block.format('two')}{said}\n#### again\n\n{block.format('Two')}{said}"
    (tmp_path / "r/.aider.chat.history.md").write_text(chat)
    git(tmp_path / "r", "add", "-A")
    git(tmp_path / "r", "commit", "-qm", "chat")
    found = edits(tmp_path / "r")["Aider"]["edits"]
    assert (found["exact"], found["not rebuilt"]) == (1, 1)
