"""Settings files: whose word counts, and that every tool which reads one says what no settings file should hold."""

import itertools
import os
import pwd
import time
from pathlib import Path

import pytest
import yaml

import rye
from rye.config import layers, user_dirs
from rye.items import spaces
from rye.lsp import servers
from support.in_process import rye as run
from support.signed_tools import module_of


def write(folder, text, name="rye.yaml"):
    path = folder / ".ai/config" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(project, tool="rye/bash/bash", **parameters):
    """The error of a call that reads the settings, which are not as they should be."""
    answer = rye.execute(tool, parameters or {"command": "true"}, project_path=project)
    assert answer["code"] == "bad_config", answer
    assert len(answer["error"]) < 1_000
    return answer["error"]


def profile(project):
    return run("prompt", "swe", cwd=project).stdout.decode().partition("Profile in force: ")[2].partition(".")[0]


def test_a_change_is_noticed_even_of_the_same_size_and_time(project, user_space):
    (project / ".git").mkdir()
    file = write(user_space, "swe: {profile: safe-read-only} # \nunknown: {x: 1}\n")
    assert profile(project) == "safe-read-only"
    before = file.stat()
    other = file.with_name("other")
    other.write_text("swe: {profile: unsafe} #         \nunknown: {x: 1}\n")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert file.stat().st_size == before.st_size
    assert profile(project) == "unsafe"
    for text in ("", "# all\n", "null\n", "swe:\n", "swe: {profile: null}\n", None):
        file.unlink() if text is None else file.write_text(text)
        assert profile(project) == "dev"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "is not a mapping"),
        ("sandbox: 5\n", "sandbox must be a mapping"),
        ("sandbox: {mode: [" + "x, " * 5_000 + "]}", "sandbox.mode"),
        ("sandbox: {pass_env: A}\n", "sandbox.pass_env"),
        ("1: a\n", "the key 1, which is no text"),
        ("on: off\n", "the key True"),
        ("sandbox: {mode: auto, 1: 2}\n", "the key 1 in sandbox"),
        ("other: [{a: {3: b}}]\n", "the key 3 in other.a"),
        ("other: 2026-01-02\n", "holds a date in other"),
        ("other: !!binary aGk=\n", "tags"),
        ("sandbox: {mode: require, mode: off}\n", "repeats a key"),
        ("other: .nan\n", "holds nan"),
        ("other: 0x" + "f" * 5_000, "63 bits"),
        ("? [a]\n: b\n", "cannot be read"),
        *((text, "rye.yaml") for text in (b"a: \xff", b"a: 2021-99-99", b"!!python/name:os.system x")),
        *((text, "more than 100 characters") for text in (b"a: 1" + b":1" * 99, "a: " + "9" * 5_000)),
        *((text, "nested deeper than 64 levels") for text in (b"[" * 16_000, b"{a: " * 101)),
        (b"#" * 300_000, "larger than"),
        ("folder", "rye.yaml"),
        ("pipe", "not a regular file"),
    ],
)
def test_what_no_setting_can_be_is_named_whoever_wrote_it(project, user_space, text, said):
    for whose in (user_space, project):
        file = write(whose, text)
        if text in ("folder", "pipe"):
            file.unlink()
            (os.mkdir if text == "folder" else os.mkfifo)(file)
        assert said in refused(project), whose
        assert str(file) in refused(project)
        file.rmdir() if text == "folder" else file.unlink()


@pytest.mark.parametrize("value", ["'5'", "5.0", "true", "[5]", "{a: 1}"])
def test_a_value_of_another_type_is_named(project, user_space, value):
    write(user_space, f"journal: {{max_bytes: {value}}}\n")
    said = refused(project, "rye/file-system/write", file_path="a.txt", content="x")
    assert "journal.max_bytes must be a whole number" in said


@pytest.mark.parametrize("join", ["[{0}, {0}]", "{{<<: [{0}, {0}]}}"])
def test_a_projects_file_of_aliases_is_refused_at_once(project, join):
    def bomb(levels, join):
        return ["a0: &a0 {k: v}", *(f"a{n}: &a{n} {join.format(f'*a{n - 1}')}" for n in range(1, levels))]

    # The control: what the same few lines mean grows with 2 to the power of the levels.
    twelve = yaml.safe_load("\n".join([*bomb(12, "[{0}, {0}]"), "sandbox: {mode: *a11}"]))
    assert len(repr(twelve["sandbox"])) > 2**11
    text = "\n".join([*bomb(40, join), "sandbox: {mode: *a39}"])
    started = time.process_time()
    write(project, text)
    assert "alias" in refused(project)
    write(project, "{}\n")
    write(project, text, "web/websearch.yaml")
    assert "alias" in refused(project, "rye/web/websearch", query="x")
    assert time.process_time() - started < 5


@pytest.mark.parametrize("home", ["", "relative", "./here", "{tmp}"])
def test_a_home_that_a_project_could_hold_is_not_taken(home, monkeypatch, tmp_path):
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", home.format(tmp=tmp_path))
    # An account that the password file does not name has none.
    own = {one.pw_uid: one.pw_dir for one in pwd.getpwall()}.get(os.getuid(), "").rstrip("/") or "/"
    assert user_dirs.user_space() == (str(tmp_path) if home == "{tmp}" else own)


# Values of every kind that YAML has, as they may stand where another kind is wanted.
ODD = "3|true|1.5|text|[]|[1]|[[a]]|{}|{a: 1}|{a: [b]}|2026-01-02|.inf|!!binary aGk=|''"
KEYS = {
    "web/websearch.yaml": """default_provider providers providers/exa providers/exa/type providers/exa/api_key
        providers/searxng/base_url providers/own/type""",
    "lsp.yaml": """limits limits/idle_seconds limits/max_memory_mb languages languages/python languages/own
        languages/python/suffixes languages/python/suffixes/.py languages/python/servers languages/python/server
        servers servers/own servers/basedpyright servers/basedpyright/command servers/basedpyright/install
        servers/basedpyright/least_version servers/basedpyright/settings servers/basedpyright/markers""",
}
NOTHING = ("", "# nothing\n", "---\n...\n", "providers:\nservers:\nlimits:\nlanguages:\ndefault_provider:\n")
WEBSEARCH = module_of("rye/web/websearch")


READERS = {
    "web/websearch.yaml": lambda root: WEBSEARCH._provider_for(layers.load(root, "web/websearch.yaml"), None),
    "lsp.yaml": lambda root: servers.server_for(root, "a.py"),
}


def read(name, project):
    """The code and text of the refusal of what reads the file, or what it reads; any other exception ends the test."""
    try:
        return "", READERS[name](str(project))
    except rye.RyeError as err:
        return err.code, str(err)


@pytest.mark.parametrize("name", KEYS)
def test_no_value_crashes_what_reads_it(project, user_space, name):
    usual, keys = read(name, project), KEYS[name].split()
    for whose in (user_space, project):
        refused = 0
        for key, value in itertools.product(keys, ODD.split("|")):
            nested = "\n".join(f"{'  ' * depth}{one}:" for depth, one in enumerate(key.split("/")))
            write(whose, f"{nested} {value}\n", name)
            code, said = read(name, project)
            refused += code == "bad_config"
            assert code != "bad_config" or said.count(". ") >= 1, said
        assert refused > len(keys) * 3
        for text in ("1: a\nb: c\n", "- a\n", "a: [" + "[" * 20_000, "\x00", "<<: 3\n", b"\xff\xfe\0"):
            path = write(whose, text, name)
            code, said = read(name, project)
            assert (code, str(path) in said, len(said) < 1_000) == ("bad_config", True, True), text[:40]
        # Control: a file that says nothing changes nothing.
        for text in NOTHING:
            write(whose, text, name)
            assert read(name, project) == usual, text


def test_a_link_out_of_the_project_is_no_settings_file(project, tmp_path):
    for name, asked in (("web/websearch.yaml", {"tool": "rye/web/websearch", "query": "x"}), ("rye.yaml", {})):
        path = write(project, "sandbox: {mode: require}\n", name)
        path.rename(tmp_path / "secret.yaml")
        path.symlink_to(tmp_path / "secret.yaml")
        assert "cannot be read" in refused(project, **asked)


def test_the_example_in_the_documentation_has_the_shape(project, user_space):
    text = (Path(spaces.system_folder()) / "knowledge/rye/web/web-and-lsp.md").read_text()
    example = next(block for block in text.split("```yaml\n")[1:] if block.startswith("languages:")).partition("```")[0]
    write(user_space, example, "lsp.yaml")
    assert layers.load(str(project), "lsp.yaml").user["servers"]["zls"]["least_version"] == 0
