"""Every settings file with what no settings file should hold: each tool that reads it says so, and none crashes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

import rye
from rye.config import layers as config_layers
from rye.errors import RyeError
from rye.items import spaces
from rye.lsp import servers
from support.signed_tools import module_of

# Values of every kind that YAML has, as they may stand where another kind is wanted.
ODD = (
    "3",
    "true",
    "1.5",
    "text",
    "[]",
    "[1]",
    "[[a]]",
    "{}",
    "{a: 1}",
    "{a: [b]}",
    "2026-01-02",
    ".inf",
    "!!binary aGk=",
    "''",
)
KEYS = {
    "web/websearch.yaml": (
        "default_provider",
        "default_provider.type",
        "default_provider.api_key",
        "providers",
        "providers.exa",
        "providers.exa.type",
        "providers.exa.api_key",
        "providers.searxng.base_url",
        "providers.own.type",
    ),
    "lsp.yaml": (
        "limits",
        "limits.idle_seconds",
        "limits.max_memory_mb",
        "languages",
        "languages.python",
        "languages.python.suffixes",
        "languages.python.suffixes..py",
        "languages.python.servers",
        "languages.python.server",
        "languages.own",
        "servers",
        "servers.own",
        "servers.basedpyright",
        "servers.basedpyright.command",
        "servers.basedpyright.install",
        "servers.basedpyright.least_version",
        "servers.basedpyright.settings",
        "servers.basedpyright.markers",
    ),
}
WHOLE = (
    "1: a\nb: c\n",
    "~: a\nb: c\n",
    "on: a\nb: c\n",
    "2026-01-02: a\nx: b\n",
    "- a\n",
    "text\n",
    "[[[]]]\n",
    "a: &a [x]\nb: *a\n",
    "a: [" + "[" * 20_000,
    "a: b: c",
    "\x00",
    "x: " + "9" * 5_000,
    "? {a: b}\n: c\n",
    "<<: 3\n",
)
NOTHING = ("", "# nothing\n", "---\n...\n", "providers:\nservers:\nlimits:\nlanguages:\ndefault_provider:\n")


def write(folder, name, text):
    path = folder / ".ai/config" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def nested(key, value):
    # The suffix `.py` is a name of its own.
    names = key.replace("..py", ".\0").split(".")
    return "".join(f"{'  ' * depth}{name.replace(chr(0), '.py')}:\n" for depth, name in enumerate(names))[:-1] + f" {value}\n"


WEBSEARCH = module_of("rye/web/websearch")


def _search(root):
    layers = config_layers.load(root, "web/websearch.yaml")
    return WEBSEARCH._ignored(layers.project), WEBSEARCH._provider_for(layers, None)


def _language(root):
    return servers.server_for(root, "a.py")


READERS = {"web/websearch.yaml": _search, "lsp.yaml": _language}


def answer(name, project):
    """The code and text of the refusal of what reads the file, or what it reads."""
    try:
        return "", READERS[name](str(project))
    except RyeError as err:
        return err.code, str(err)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("whose", ["user", "project"])
def test_no_value_crashes_what_reads_it(project, user_space, name, whose):
    refused = 0
    for key, value in itertools.product(KEYS[name], ODD):
        write(project if whose == "project" else user_space, name, nested(key, value))
        # Any other exception ends the test.
        code, said = answer(name, project)
        refused += code == "bad_config"
        assert code != "bad_config" or said.count(". ") >= 1, said
    assert refused > len(KEYS[name]) * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
def test_what_is_no_settings_file_is_told_by_every_reader(project, user_space, name):
    for folder, text in itertools.product((project, user_space), WHOLE):
        path = write(folder, name, text)
        code, said = answer(name, project)
        assert code == "bad_config", (text[:40], code, said)
        assert str(path) in said
        assert len(said) < 1_000
        path.unlink()
    # Control: a file that says nothing changes nothing.
    usual = answer(name, project)
    for text in NOTHING:
        write(user_space, name, text)
        assert answer(name, project) == usual, text


def test_the_systems_own_files_have_their_shape(project):
    for name in config_layers.SHAPES:
        assert config_layers.load(str(project), name).system


def test_the_tools_answer_is_the_refusal(project):
    write(project, "web/websearch.yaml", WHOLE[0])
    answered = rye.execute("rye/web/websearch", {"query": "x"}, project_path=project)
    assert answered["code"] == "bad_config"
    # Control: what is kept away from the readers does break plain code.
    with pytest.raises(TypeError):
        sorted(yaml.safe_load(WHOLE[0]))
    with pytest.raises(RyeError):
        config_layers.plain(yaml.safe_load(WHOLE[0]), "file")


def test_the_example_in_the_documentation_has_the_shape(project, user_space):
    text = (Path(spaces.system_folder()) / "knowledge/rye/web/web-and-lsp.md").read_text()
    example = next(block for block in text.split("```yaml\n")[1:] if block.startswith("languages:")).partition("```")[0]
    write(user_space, "lsp.yaml", example)
    assert config_layers.load(str(project), "lsp.yaml").user["servers"]["zls"]["least_version"] == 0
