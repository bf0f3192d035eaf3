"""InvokeResult-style envelopes: the same four fields, whatever happened."""

from __future__ import annotations

import pytest

from rye.errors import WorkspaceError
from rye.patches import patch_calls


def test_a_success_has_its_result_and_warnings():
    answer = patch_calls.answered(lambda: patch_calls.succeeded("text", {"a": 1}, ["careful"], more=2))
    assert answer == {
        "success": True,
        "output": "text",
        "successful": True,
        "result": {"a": 1},
        "errors": [],
        "warnings": ["careful"],
        "more": 2,
    }


def test_an_expected_failure_stays_what_it_is_and_gains_the_envelope():
    def work():
        raise WorkspaceError("no_space", "The disk is full.", "Free some.", errno="ENOSPC")

    with pytest.raises(WorkspaceError) as caught:
        patch_calls.answered(work)
    assert caught.value.details == {
        "errno": "ENOSPC",
        "successful": False,
        "result": None,
        "warnings": [],
        "errors": [{"code": "no_space", "message": "The disk is full. Free some."}],
    }


def test_what_ends_the_process_is_no_failure_of_the_call():
    def work():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        patch_calls.answered(work)
