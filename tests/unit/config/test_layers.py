"""Layers of settings: merged by mapping, variables filled in, and a project's file read from inside the project only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.config import layers
from rye.errors import RyeError

FILE = "web/websearch.yaml"
LEAVES = st.integers(0, 3)
TREES = st.dictionaries(st.sampled_from("abc"), LEAVES | st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2), max_size=3)


def write(folder, text):
    path = folder / ".ai" / "config" / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_each_layer_is_known_by_itself_and_the_users_word_is_last(project, user_space):
    write(user_space, "providers: {exa: {api_key: mine}}\n")
    write(project, "providers: {exa: {api_key: theirs}}\ndefault_provider: brave\n")
    found = layers.load(str(project), FILE)
    assert found.own["providers"]["exa"]["api_key"] == "mine"
    assert set(found.system["providers"]) <= set(found.own["providers"])
    assert found.project["default_provider"] == "brave"


@given(TREES, TREES)
def test_merging_keeps_what_only_one_says_and_takes_the_upper_of_both(under, over):
    both = layers.merged(under, over)
    assert both.keys() == under.keys() | over.keys()
    for name, value in both.items():
        if name not in over:
            assert value == under[name]
        elif not (isinstance(over[name], dict) and isinstance(under.get(name), dict)):
            assert value == over[name]
    assert layers.merged(both, over) == both


@pytest.mark.parametrize(
    "text",
    ["- a list", "a: [", "\t", b"\xff\xfe\0", "a: &a [*a]\n- b", "x" * 300_000, "!!python/object/apply:os.system ['true']"],
    ids=["list", "broken", "tab", "bytes", "mixed", "large", "object"],
)
def test_a_file_that_is_no_mapping_says_so(project, user_space, text):
    for place in (user_space, project):
        path = write(place, text)
        if text == "\t":
            assert layers.load(str(project), FILE)
        else:
            with pytest.raises(RyeError) as caught:
                layers.load(str(project), FILE)
            assert caught.value.code == "bad_config"
        path.unlink()


def test_a_projects_file_is_not_read_through_a_link_out_of_the_project(project, user_space, tmp_path):
    secret = tmp_path / "secret.yaml"
    secret.write_text("default_provider: brave\n")
    path = write(project, "")
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(RyeError):
        layers.load(str(project), FILE)
