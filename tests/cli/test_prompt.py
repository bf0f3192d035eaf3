"""`rye prompt`: guidance for models, filled in for the profile in force."""

from __future__ import annotations

import json
import re

import pytest

from rye.cli.rt.table import VERBS
from support.in_process import rye


@pytest.mark.parametrize(
    ("profile", "said"), [("dev", "Edits are applied at once"), ("safe-read-only", "Edits are not applied")]
)
def test_swe_is_filled_in_for_the_profile(project, profile, said):
    done = rye("prompt", "swe", cwd=project, env={"RAGIX_PROFILE": profile})
    text = done.stdout.decode()
    assert done.returncode == 0
    assert f"Profile in force: {profile}. {said}" in text
    assert "{input:" not in text


def test_it_names_only_commands_that_there_are(project):
    text = rye("prompt", "swe", cwd=project).stdout.decode()
    named = set(re.findall(r"`rt ([a-z-]+)", text))
    assert {"open", "scroll", "find", "grep", "grep-file", "edit", "insert", "undo"} <= named <= set(VERBS)


def test_another_name_is_refused_and_json_is_the_response(project):
    assert rye("prompt", "swee", cwd=project).returncode == 2
    assert json.loads(rye("prompt", "swe", "--json", cwd=project).stdout)["item_id"] == "rye/agent/swe"
