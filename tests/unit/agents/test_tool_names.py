"""Item ids as names that every agent interface takes, one for each id."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rye
from rye.agents.discovery import LONGEST, encode, names_of
from rye.errors import ItemError
from rye.items.spaces import check_id
from support.signed_tools import put_tool

PART = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}", fullmatch=True)
IDS = st.lists(PART, min_size=1, max_size=6).map("/".join)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


@given(IDS)
@example("a--u/b")
@example("_x")
@example("a__b/c")
@example("-".join("abc") + "/x-")
def test_every_id_has_a_name_that_fits(item_id):
    check_id(item_id)
    name = encode(item_id)
    assert NAME.fullmatch(name)
    assert names_of([item_id])[next(iter(names_of([item_id])))] == item_id


@given(st.sets(IDS, max_size=12))
def test_no_two_ids_share_a_name_and_each_name_leads_to_its_id(ids):
    names = names_of(ids)
    assert sorted(names.values()) == sorted(ids)
    assert all(NAME.fullmatch(name) for name in names)


def test_the_systems_tools_go_by_their_last_part_and_no_other_can():
    names = names_of(["rye/file-system/read", "read", "evil/read", "rye/a/twice", "rye/b/twice", "my/text/word_count"])
    assert names == {
        "read": "rye/file-system/read",
        "_read": "read",
        "evil__read": "evil/read",
        "rye__a__twice": "rye/a/twice",
        "rye__b__twice": "rye/b/twice",
        "my__text__word_count": "my/text/word_count",
    }


def test_a_name_does_not_depend_on_what_else_is_asked_for(project):
    put_tool(project, "my/read")
    every = {row["item_id"]: row["name"] for row in rye.tools(project_path=project)}
    for category in ("my", "rye/file-system"):
        for row in rye.tools(category, project_path=project):
            assert row["name"] == every[row["item_id"]]
    assert (every["my/read"], every["rye/file-system/read"]) == ("my__read", "read")


def test_what_is_too_long_is_cut_and_still_told_apart():
    one, two = "my/" + "a" * 200, "my/" + "a" * 199 + "b"
    assert len(encode(one)) == len(encode(two)) == LONGEST
    assert set(names_of([one, two]).values()) == {one, two}


def test_two_ids_of_one_name_would_be_refused(monkeypatch):
    monkeypatch.setattr("rye.agents.discovery._DIGEST", 0)
    with pytest.raises(ItemError, match="come to one name"):
        names_of(["my/" + "a" * 200, "my/" + "a" * 201])
