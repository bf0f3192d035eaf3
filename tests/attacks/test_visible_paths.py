"""What a command can see must not follow from what a command can change (`support/visible_paths.py`), as root and as a user."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.harness import times
from support.other_users import UNHIDDEN, USERS, run_as


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("user", USERS)
def test_no_path_that_a_command_can_change_shows_what_is_hidden(user, layer):
    # Where nothing above is hidden: hiding must be the work of the view, not of its place.
    # Each user tries each attack under one layer; a run of full size all under both.
    share = ((USERS.index(user) + (layer == "landlock")) % 2, 2) if times(1) == 1 and len(USERS) == 2 else (0, 1)
    active, *found = run_as(user, ["visible_paths.py", "confined.py"], layer, *share, below=UNHIDDEN)
    if active != [layer]:
        pytest.skip(f"{layer} does not work on this machine")
    attacks = [one for one in found if "control" in one]
    assert len(attacks) >= 15
    for one in attacks:
        assert one["control"], f"without a sandbox the attack {one['name']!r} must succeed: {one['said']}"
        assert one["held"], one
        assert not one["succeeded"], one
    for one in found:
        assert one.get("works", True), one
