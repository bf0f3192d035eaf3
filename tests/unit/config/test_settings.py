"""The user's settings over the defaults."""

from __future__ import annotations

import os
import time

import pytest
import yaml

from rye.config import layers, settings
from rye.errors import UsageError


@pytest.fixture
def file(user_space):
    path = user_space / ".ai/config/rye.yaml"
    path.parent.mkdir(parents=True)
    return path


def refusal(key="journal.max_bytes"):
    with pytest.raises(UsageError) as caught:
        settings.Settings().get(key)
    assert caught.value.code == "bad_config"
    assert caught.value.hint
    return str(caught.value)


def test_without_a_file_the_defaults_hold():
    assert settings.Settings().get("journal.max_bytes") == 64 * 1024 * 1024
    assert settings.Settings().number("jobs.max_age_days") == 7
    assert settings.Settings().get("signing.agents") == "deny"
    assert settings.Settings().get("log.events") is False


def test_the_users_file_wins_key_by_key(file):
    file.write_text("journal: {max_bytes: 5}\nsigning:\n  agents: allow\nunknown: {x: 1}\n")
    assert settings.Settings().number("journal.max_bytes") == 5
    assert settings.Settings().number("jobs.max_age_days") == 7
    assert settings.Settings().get("signing.agents") == "allow"


def test_a_change_is_noticed_even_of_the_same_size_and_time(file):
    file.write_text("journal: {max_bytes: 5}\n")
    assert settings.Settings().number("journal.max_bytes") == 5
    before = file.stat()
    other = file.with_name("other")
    other.write_text("journal: {max_bytes: 6}\n")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert settings.Settings().number("journal.max_bytes") == 6
    file.unlink()
    assert settings.Settings().number("journal.max_bytes") == 64 * 1024 * 1024


def test_a_project_has_no_say(project, monkeypatch, file):
    (project / ".ai/config").mkdir(parents=True)
    (project / ".ai/config/rye.yaml").write_text("signing: {agents: allow}\n")
    monkeypatch.chdir(project)
    assert settings.Settings().get("signing.agents") == "deny"
    # Control: in the user's own place the same text counts.
    file.write_text("signing: {agents: allow}\n")
    assert settings.Settings().get("signing.agents") == "allow"


@pytest.mark.parametrize("text", ["", "# all\n", "null\n", "other: 1\n", "journal:\n", "journal: {max_bytes: null}\n"])
def test_what_says_nothing_leaves_the_default(file, text):
    file.write_text(text)
    assert settings.Settings().number("journal.max_bytes") == 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "is not a mapping"),
        ("text\n", "is not a mapping"),
        ("0\n", "is not a mapping"),
        ("journal: 5\n", "journal must be a mapping"),
        ("journal: [1]\n", "journal must be a mapping"),
        ("1: a\n", "the key 1, which is no text"),
        ("~: a\nb: c\n", "the key None"),
        ("2026-01-02: a\n", "the key datetime.date"),
        ("on: off\n", "the key True"),
        ("journal: {max_bytes: 5, 1: 2}\n", "the key 1 in journal"),
        ("other: [{a: {3: b}}]\n", "the key 3 in other.a"),
        ("other: 2026-01-02\n", "holds a date in other"),
        ("other: !!binary aGk=\n", "holds a bytes"),
        ("other: !!set {a, b}\n", "holds a set"),
        ("other: !!pairs [a: b]\n", "holds a tuple"),
        ("other: .nan\n", "holds nan"),
        ("other: 0x" + "f" * 5_000, "63 bits"),
        ("? [a]\n: b\n", "is not valid YAML"),
        ("a: " + "9" * 5_000, "is not valid YAML"),
    ],
)
def test_what_no_setting_can_be_is_named(file, project, text, said):
    file.write_text(text)
    assert said in refusal()
    assert len(refusal()) < 500
    file.unlink()
    # In a project's file likewise.
    (project / ".ai/config").mkdir(parents=True)
    (project / ".ai/config/rye.yaml").write_text(text.replace("journal", "sandbox"))
    with pytest.raises(UsageError) as caught:
        settings.Settings().tightened("sandbox.mode", str(project))
    assert caught.value.code == "bad_config"


@pytest.mark.parametrize("value", ["'5'", "5.0", "true", "[5]", "{a: 1}"])
def test_a_value_of_another_type_is_named(file, value):
    file.write_text(f"journal: {{max_bytes: {value}}}\n")
    assert "journal.max_bytes must be a whole number" in refusal()


@pytest.mark.parametrize(
    "data", [b"a: [1", b"a: \xff", b"a: 2021-99-99", b"!!python/name:os.system x", b"[" * 100_000, b"#" * 300_000, b"a: b: c"]
)
def test_a_file_that_cannot_be_read_as_yaml_is_named(file, data):
    file.write_bytes(data)
    assert str(file) in refusal()


def test_what_is_no_regular_file_is_named_and_does_not_block(file):
    os.mkfifo(file)
    assert "not a regular file" in refusal()
    file.unlink()
    file.mkdir()
    assert str(file) in refusal()


def _bomb(levels, join):
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{n}: &a{n} {join.format(f'*a{n - 1}')}" for n in range(1, levels)]
    return lines


@pytest.mark.parametrize("join", ["[{0}, {0}]", "{{<<: [{0}, {0}]}}"])
def test_a_projects_file_of_aliases_is_refused_at_once(tmp_path, join):
    file = tmp_path / ".ai/config/rye.yaml"
    file.parent.mkdir(parents=True)
    # The control: what the same few lines mean grows with 2 to the power of the levels.
    twelve = yaml.safe_load("\n".join([*_bomb(12, "[{0}, {0}]"), "sandbox: {mode: *a11}"]))
    assert len(repr(twelve["sandbox"])) > 2**11
    file.write_text("\n".join([*_bomb(40, join), "sandbox: {mode: *a39}"]))
    started = time.process_time()
    with pytest.raises(UsageError) as caught:
        settings.Settings().tightened("sandbox.mode", str(tmp_path))
    assert caught.value.code == "bad_config"
    assert "alias" in str(caught.value)
    assert time.process_time() - started < 5
    with pytest.raises(UsageError, match="alias"):
        layers.load(str(tmp_path), "rye.yaml")


@pytest.mark.slow
def test_a_value_of_the_wrong_kind_is_told_in_short(tmp_path):
    file = tmp_path / ".ai/config/rye.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"sandbox: {{mode: [{'x, ' * 50_000}]}}")
    with pytest.raises(UsageError) as caught:
        settings.Settings().tightened("sandbox.mode", str(tmp_path))
    assert len(str(caught.value)) < 1_000


def test_a_folder_in_place_of_a_file_leaves_no_descriptor_open(file):
    file.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        refusal()
    assert len(os.listdir("/proc/self/fd")) == before
