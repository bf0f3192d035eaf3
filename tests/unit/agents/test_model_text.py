"""What a model reads of a result: one text, each thing once."""

from __future__ import annotations

import pytest

from rye.agents.model_text import Answer, Sessions, answer_of

NONE = {"kind": "none", "holds": [], "missing": {"home_hidden": "no sandbox", "network_off": "the network is on"}}
WHOLE = {"kind": "bubblewrap", "holds": ["home_hidden"], "missing": {"network_off": "the network is on"}}


def response(status="success", **data):
    """Return a response as the executor makes it."""
    return {"status": status, "data": data, **({"error": data["error"]} if "error" in data else {})}


@pytest.mark.parametrize(
    ("given", "text", "is_error"),
    [
        (response(success=True, output="done", rows=[1, 2]), "done", False),
        (response(success=True, output="", rows=[1]), '{"rows": [1]}', False),
        (response(success=True, output=""), '{"success": true}', False),
        (response(success=True, output="a\n", stderr="b\n", exit_code=0), "a\n[stderr]\nb\n", False),
        (response(success=True, output="", stderr="", exit_code=0), "[exit code 0; it printed nothing]", False),
        (response("error", output="a", code="command_failed", exit_code=3, error="It ended."), "a\n[exit code 3]", False),
        (response("error", output="", code="command_failed", exit_code=None, signal="SIGKILL", error="x"), None, False),
        (response("error", error="No such file. Use ls.", code="file_not_found", nearest=["a"]), "No such file. Use ls.", True),
        (response("error", error="Too slow.", code="timed_out", output="part"), "Too slow.\n\npart", True),
        ({"status": "error", "error": "It broke."}, "It broke.", True),
        ({"status": "error", "data": {}}, "The tool failed without a reason.", True),
    ],
)
def test_a_response_is_one_text(given, text, is_error):
    found = answer_of(given)
    assert found.is_error is is_error
    assert found.text == ("[ended by SIGKILL; it printed nothing]" if text is None else text)


def test_a_command_run_by_rye_execute_reads_the_same():
    inner = {"success": False, "output": "hi\n", "stderr": "", "exit_code": 2, "sandbox": NONE}
    outer = response("error", success=False, output="hi\n", code="command_failed", error="x", chain=[], data=inner)
    assert answer_of(outer) == Answer("hi\n[exit code 2]", is_error=False)


def test_the_notice_of_a_cut_command_output_stands_at_the_end_too():
    notice = '[tool_result: 2 of 9 bytes; 7 more omitted. Call job(action="read", job_id="a", offset=2) to see more.]'
    cut = response(success=True, output=f"ab\n{notice}\nyz\n", exit_code=0, output_id="a")
    assert answer_of(cut).text == f"ab\n{notice}\nyz\n{notice}"
    # Control: a file that holds such a line is shown as it is.
    assert answer_of(response(success=True, output=f"{notice}\nyz\n")).text == f"{notice}\nyz\n"


def test_a_sandbox_is_told_once_a_session_and_a_whole_one_never():
    sessions = Sessions()

    def told(report, session):
        return sessions.answer(response(success=True, output="out\n", sandbox=report), session).text

    assert told(WHOLE, "a") == "out\n"
    assert told(NONE, "a") == "out\n[sandbox: none; not held: home_hidden (no sandbox)]"
    assert told(NONE, "a") == "out\n"
    assert told(NONE, "b") != "out\n"
    assert told(WHOLE, "a") == "out\n[sandbox: bubblewrap]"
    assert told({"kind": "bubblewrap"}, "a") == "out\n"


def test_what_is_not_recorded_is_told_once_a_session():
    sessions = Sessions()

    def told(left, session="a"):
        return sessions.answer(response(success=True, output="out\n", not_recorded=left), session).text

    assert told({"node_modules": "it is ignored"}) == "out\n[not recorded for undo: node_modules (it is ignored)]"
    assert told({"node_modules": "it is ignored"}) == "out\n"
    assert "dist" in told({"dist": "it is ignored"})
    assert "dist" in told({"dist": "it is ignored"}, "b")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"status": "ended", "why": "exited", "exit_code": 3}, "[exit code 3]"),
        ({"status": "ended", "why": "timed_out", "exit_code": None}, "[timed out]"),
        ({"status": "running"}, ""),
    ],
)
def test_a_job_that_ended_says_how(fields, line):
    data = {"success": True, "output": "done\n", "job_id": "1", "total_bytes": 5, **fields}
    assert answer_of({"status": "success", "data": data}).text == f"done\n{line}"
