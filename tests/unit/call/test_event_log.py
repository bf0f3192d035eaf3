"""Events as JSON lines, if the user switches them on: what happened to which item, never with what parameters."""

import json
import os
import stat
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.toolkit import log_event
from support.calling import response as call
from support.signed_tools import OK, put, put_tool

pytestmark = pytest.mark.usefixtures("here")

SECRET = "hunter2-parameter"


@pytest.fixture
def log(project, user_space):
    put(user_space, "config/rye.yaml", b"log: {events: true}\n")
    return Path(user_dirs.state_dir(str(project))) / "log/events.jsonl"


def events(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_nothing_is_logged_unless_the_user_says_so(project, user_space):
    put_tool(project, "my/tool")
    put(project, "config/rye.yaml", b"log: {events: true}\n")  # the project's word does not count
    call(project)
    assert not [*(user_space / ".ai").rglob("*.jsonl"), *project.rglob("*.jsonl")]
    put(user_space, "config/rye.yaml", b"log: {events: maybe}\n")
    assert call(project)["code"] == "bad_config"


def test_each_call_is_two_events_with_digest_code_and_duration_and_no_parameter(project, log, caplog):
    put_tool(project, "my/tool", OK, {"type": "object", "properties": {"word": {"type": "string"}}})
    with caplog.at_level("DEBUG", "rye"):
        digest = call(project, word=SECRET)["item"]["digest"]
        call(project, word=[SECRET])
        call(project, 'a\n{"event": "success"}\x1b[2J')
    start, success, *others = events(log)
    assert {name: start[name] for name in ("event", "item")} == {"event": "start", "item": "my/tool"}
    assert (success["event"], success["item"], success["digest"], success["code"]) == ("success", "my/tool", digest, None)
    assert (start["time"].endswith("+00:00"), success["duration_ms"] > 0) == (True, True)
    assert [event["code"] for event in others if event["event"] == "error"] == ["invalid_parameters", "bad_item_id"]
    # Hostile text stays on its line.
    assert others[-1]["item"].startswith("a\n")
    assert SECRET not in log.read_text()
    assert (stat.S_IMODE(log.stat().st_mode), stat.S_IMODE(log.parent.stat().st_mode)) == (0o600, 0o700)
    # Whoever listens to the logger hears the same.
    assert [record.getMessage() for record in caplog.records] == [event["event"] for event in events(log)]
    assert SECRET not in str([vars(record) for record in caplog.records])


def test_a_full_log_is_set_aside_once(project, log):
    for number in range(60):
        log_event("my tick", str(project), "tick", number=number, text="x" * 400_000)
    assert sorted(os.listdir(log.parent)) == ["events.1.jsonl", "events.jsonl"]
    assert log.stat().st_size <= 11_000_000
    kept = [event["number"] for name in ("events.1.jsonl", "events.jsonl") for event in events(log.parent / name)]
    assert kept == list(range(kept[0], 60))


@pytest.mark.parametrize("block", ["link", "folder", "no_folder"])
def test_a_log_that_cannot_be_written_stops_nothing_and_reaches_nothing(project, log, tmp_path, block):
    put_tool(project, "my/tool")
    if block == "no_folder":
        log.parent.write_bytes(b"")
    else:
        log.parent.mkdir()
        (log.symlink_to(tmp_path / "elsewhere") if block == "link" else log.mkdir())
    assert call(project)["status"] == "success"
    assert not (tmp_path / "elsewhere").exists()
