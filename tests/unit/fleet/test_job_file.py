"""Job files and files of results: what is wrong is named with its line, all at once, and nothing is run or written over."""

from __future__ import annotations

import fcntl
import json

import pytest

import rye
from support.in_process import rye as run

CALL = {"item_id": "rye/file-system/ls", "parameters": {}}
GOOD = {"workspace": "w", "calls": [CALL]}
HEAD = b'{"fleet": 1, "run": "a"}\n'


def refused(tmp_path, lines, *words):
    """What the command says of a file of jobs that it does not run."""
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    done = run("fleet", "run", path, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b""), done
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "no JSON in UTF-8: "),
        (b"\xff{}", "no JSON in UTF-8: "),
        (b"[" * 100_000, "no JSON in UTF-8: "),
        ({"calls": [CALL]}, "workspace"),
        ({**GOOD, "workspace": ""}, "workspace: "),
        ({**GOOD, "workspace": 3}, "workspace: 3 is not"),
        ({"workspace": "w", "calls": []}, "calls: "),
        ({"workspace": "w", "calls": [[]]}, "calls[0]: "),
        ({"workspace": "w", "calls": [CALL, {}]}, 'calls[1]: "item_id" is a required'),
        ({"workspace": "w", "calls": [{**CALL, "parameters": []}]}, "calls[0].parameters: "),
        ({"workspace": "w", "calls": [{**CALL, "params": {}}]}, "'params' was unexpected); it has item_id"),
        ({**GOOD, "repeat": 1}, "repeat: 1 is not"),
        ({"workspace": "w", "calls": [{**CALL, "repeat": "yes"}]}, "calls[0].repeat: "),
        ({**GOOD, "on_error": "go"}, "on_error"),
        ({**GOOD, "id": 7}, "id: 7 is not"),
        (b'{"workspace": "w", "workspace": "v", "calls": []}', "a name stands twice"),
        (b'{"workspace": "\\ud800", "calls": [{"item_id": "a"}]}', "not JSON"),
        (b'{"workspace": "w", "calls": [{"item_id": "a", "parameters": {"x": NaN}}]}', "not JSON"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path, line, says):
    said = refused(tmp_path, [GOOD, line, GOOD])
    assert "jobs.jsonl:2: " in said
    assert says in said


def test_all_bad_lines_are_named_at_once_up_to_a_bound(tmp_path):
    said = refused(tmp_path, [b"{", GOOD, b"[]"])
    assert [f"jobs.jsonl:{number}: " in said for number in (1, 2, 3)] == [True, False, True]
    assert refused(tmp_path, [b"{"] * 1000).count("jobs.jsonl:") == 20
    for lines in ([], [b"", b"  "]):
        assert "has no job" in refused(tmp_path, lines)
    # Values of Python are checked alike.
    with pytest.raises(rye.RyeError, match="workspace 2: workspace: "):
        rye.fleet.run(["a", ""], [CALL])


@pytest.mark.parametrize(
    ("data", "resume", "says"),
    [
        (b"precious\n", False, "is not empty"),
        (b"precious\n", True, "holds no results"),
        (b"precious", True, "holds no results"),
        (HEAD + b"precious", True, "holds no results"),
        (HEAD + b'{"job": 1, "digest": "other", "status": "done"}\n', True, "Job 1 is another"),
        (HEAD + b'{"job": 9, "digest": "other", "status": "done"}\n', True, "Job 9 is another"),
        (HEAD + b"no json\n", True, "holds no results"),
        (b'{"fleet": 7, "run": "a"}\n', True, "holds no results"),
    ],
)
def test_results_of_others_are_never_written_over(tmp_path, data, resume, says):
    out = tmp_path / "out.jsonl"
    out.write_bytes(data)
    assert says in refused(tmp_path, [GOOD], "--out", out, *(["--resume"] if resume else []))
    assert out.read_bytes() == data


def test_results_that_another_run_writes_or_that_cannot_be_written_are_refused(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_bytes(HEAD)
    with out.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "Another run writes" in refused(tmp_path, [GOOD], "--out", out, "--resume")
    assert "cannot be written" in refused(tmp_path, [GOOD], "--out", tmp_path / "no/out")
