"""The benchmark of recorded and scripted edits: what it reads, and that its scripted callers come out right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rye

FOLDER = Path(__file__).parents[2] / "benchmarks/agent_edits"
RUNTIME = os.fspath(Path(rye.__file__).parents[1])


def transcript(path):
    """Write a transcript of one session: a read, an edit of it, a refused edit, and the same read again."""
    before, after = "one\ntwo\nthree\n", "one\n2\nthree\n"
    calls = [
        ("Read", {"file_path": "/p/a.txt"}, "     1→one\n     2→two\n     3→three", {"file": _file(before)}),
        ("Edit", _words("two", "2"), "The file has been updated.", _result(before, "two", "2")),
        ("Edit", _words("four", "4"), "<tool_use_error>String to replace not found in file.", "Error"),
        ("Read", {"file_path": "/p/a.txt"}, "     1→one\n     2→2\n     3→three", {"file": _file(after)}),
        ("Edit", _words("three", "3"), "The file has been updated.", _result(after, "three", "3")),
    ]
    entries = []
    for number, (name, arguments, answer, result) in enumerate(calls):
        common = {"sessionId": "s", "cwd": "/p", "timestamp": f"2026-01-01T00:00:0{number}"}
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
        entries.append({**common, "uuid": f"a{number}", "type": "assistant", "message": {"content": [use]}})
        told = {"type": "tool_result", "tool_use_id": f"t{number}", "content": answer, "is_error": isinstance(result, str)}
        entries.append(
            {**common, "uuid": f"u{number}", "type": "user", "message": {"content": [told]}, "toolUseResult": result}
        )
    path.write_text("\n".join(map(json.dumps, entries)))


def _file(text):
    lines = text.removesuffix("\n").split("\n")
    return {"content": "\n".join(lines), "startLine": 1, "numLines": len(lines), "totalLines": len(lines)}


def _words(old, new):
    return {"file_path": "/p/a.txt", "old_string": old, "new_string": new}


def _result(before, old, new):
    return {"filePath": "/p/a.txt", "oldString": old, "newString": new, "originalFile": before, "replaceAll": False}


def run(*words):
    """Run the benchmark; return what it printed."""
    done = subprocess.run(
        [sys.executable, str(FOLDER), "--bytes", *words],
        env={**os.environ, "PYTHONPATH": RUNTIME},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_recorded_session_is_replayed_exactly_and_priced(tmp_path):
    transcript(tmp_path / "full.jsonl")
    for way in ("call", "sessions"):
        found = json.loads(run("--only", "recordings", "--way", way, "--json", str(tmp_path)))
        counts = found["counts"]
        assert (counts["reads"], counts["edits"], counts["exact"]) == (2, 2, 2)
        assert counts.get("silent", 0) == counts.get("refused", 0) == 0
        if way == "sessions":
            assert counts["not found: made later"] == 1
        assert 0 < found["price against recorded"]["o200k"] < 2


def test_missing_tokenizers_are_said_with_the_way_to_get_them(tmp_path):
    done = subprocess.run(
        [sys.executable, str(FOLDER), "--tokenizers", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": RUNTIME},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--install --tokenizers" in done.stderr


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=12), st.lists(st.sampled_from(["", "a", "c"]), max_size=12))
def test_the_changes_of_the_scripted_callers_make_the_text_that_is_wanted(old, new):
    sys.path.insert(0, str(FOLDER))
    try:
        import changes
    finally:
        sys.path.remove(str(FOLDER))
    found = changes.joined(changes.named(changes.hunks(old, new), len(old), lambda at: bool(old[at])), 1)
    made, at = [], 0
    for hunk in found:
        assert at <= hunk.start
        made += [*old[at : hunk.start], *new[hunk.new_start : hunk.new_stop]]
        at = hunk.stop
    assert [*made, *old[at:]] == new
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    made, at = "", 0
    for quote, text, _ in sorted(changes.quoted(before, after), key=lambda one: before.find(one[0])) if before != after else ():
        place = before.find(quote)
        assert place >= at
        made, at = made + before[at:place] + text, place + len(quote)
    assert made + before[at:] == after
