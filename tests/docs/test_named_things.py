"""What our own texts name exists: parameters, options, verbs, items, files, settings, variables and error codes.

The texts are all string constants of the package and the tools (errors, hints, docstrings, help), the prompts, the knowledge
pages and the documents. A thing is found by the form in which texts write it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rye
from rye.cli.options import COMMON
from rye.cli.rt.verbs import VERBS as RT
from rye.cli.table import VERBS
from rye.config import settings
from rye.items import parse, spaces
from rye.journal import journal
from test_error_codes import listed

ROOT = Path(__file__).parents[2]
BUNDLE = spaces.Space("system", spaces.system_folder())
ITEMS = {item_id for kind in spaces.TYPES for item_id, _ in spaces.items_in(BUNDLE, kind)}
SCHEMAS = {
    item_id.rpartition("/")[2]: parse.literals_of(ast.parse(path.read_text()))[0].get("CONFIG_SCHEMA", {})
    for item_id, path in spaces.items_in(BUNDLE, "tool")
    if path.suffix == ".py"
}


def _names(schema) -> Iterator[str]:
    """Yield the names of a schema's properties, at any depth."""
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key == "properties":
            yield from value
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _names(part if isinstance(part, dict) else {})
        yield from _names(value)


PARAMETERS = {name for schema in SCHEMAS.values() for name in _names(schema)}
CALLS = (rye.execute, rye.search, rye.load, rye.sign, rye.verify, rye.toolset)
KEYWORDS = {name for one in CALLS for name in inspect.signature(one).parameters}
OPTIONS = {
    program: {verb: {name for one in (*COMMON, *row.options) for name in one.names} for verb, row in table.items()}
    for program, table in (("rye", VERBS), ("rt", RT))
}


@cache
def codes() -> re.Pattern[str]:
    return re.compile("|".join(re.escape(one).replace("…", "[a-z_]+") for one in listed()))


@cache
def variables() -> set[str]:
    """Return the variables of the environment that code names."""
    places = [path for top in ("runtime/rye", "tests") for path in (ROOT / top).rglob("*.py") if path != Path(__file__)]
    return {one for path in places for one in re.findall(r"\b(?:RYE|RAGIX|USER)_[A-Z_]+\b", path.read_text(encoding="utf-8"))}


def texts() -> list[tuple[str, str]]:
    """Return (place, text) of everything that is said."""
    out = []
    for path in [*(ROOT / "runtime/rye").rglob("*.py"), *(ROOT / ".ai/tools").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.JoinedStr):
                text = "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                text = node.value
            if " " in text:
                out.append((f"{path.relative_to(ROOT)}:{node.lineno}", text))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".ai").rglob("*.md")]
    out += [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in pages if path.name != "CHANGELOG.md"]
    return out


def lies(text: str) -> list[str]:
    """Return what a text names that is not there."""
    return [f"{kind} {name}" for kind, check in CHECKS.items() for name in check(text)]


def _calls(text: str) -> Iterator[str]:
    for tool, given in re.findall(r"\b([a-z_]+)\(((?:[a-z_]+=(?:\"[^\"]*\"|[^,()]*)(?:, ?)?)+)\)", text):
        # One parameter of several tools, such as `undo(list=true)`.
        if tool in SCHEMAS:
            known = set(_names(SCHEMAS[tool]))
            yield from (
                f"{tool}({name}=)" for name in re.findall(r"\b([a-z_]+)=", re.sub(r'"[^"]*"', '""', given)) if name not in known
            )


def _parameters(text: str) -> Iterator[str]:
    for name in re.findall(r"(?<![\w.\-/?&${<,'\[])([a-z]+(?:_[a-z]+)*)=(?:true|false)\b", text):
        if name not in PARAMETERS | KEYWORDS:
            yield name


def _commands(text: str) -> Iterator[str]:
    joined = text.replace("\\\n", " ")
    shown = re.findall(r"(?m)^\$ (?:echo .*\| )?(rye|rt) ([a-z].*)$", joined)
    for program, line in re.findall(r"`(rye|rt) ([a-z][^`\n]*)`", text) + shown:
        words = line.split()
        verb = words[0]
        table = OPTIONS[program]
        if not re.fullmatch(r"[a-z_-]+", verb):
            continue
        if verb not in table:
            # A tool of an example stands on its page.
            if verb not in SCHEMAS and f"/{verb}" not in text:
                yield f"{program} {verb}"
            continue
        for word in words[1:]:
            option = word.partition("=")[0].strip("[],.…")
            if (
                re.fullmatch(r"--[a-z][a-z-]+", option)
                and option not in table[verb]
                and option not in {f"--{name.replace('_', '-')}" for name in PARAMETERS}
            ):
                yield f"{program} {verb} {option}"
            if word in ("--", "|"):
                break


def _items(text: str) -> Iterator[str]:
    for name in re.findall(
        r"(?<![/\w:.@-])rye/(?:file-system|bash|swe|web|lsp|workspace|core|registry|primary-tools|agent)/[\w/-]*\w", text
    ):
        if name not in ITEMS and not any(one.startswith(f"{name}/") for one in ITEMS):
            yield name


def _files(text: str) -> Iterator[str]:
    for name in re.findall(r"(?<![\w/.])((?:docs|benchmarks|runtime/rye|tests)/[\w./-]+\.(?:md|py))\b", text):
        # Examples name files of a project of their own.
        if not (ROOT / name).exists() and name != "tests/models.py" and not name.startswith("tests/test_"):
            yield name


def _settings(text: str) -> Iterator[str]:
    known = set(settings._DEFAULTS)
    sections = "|".join(sorted({key.partition(".")[0] for key in known}))
    for name in re.findall(rf"`({sections})\.([a-z_]+)`", text):
        if ".".join(name) not in known and not hasattr(journal, name[1]):
            yield ".".join(name)
    for section, inner in re.findall(rf"`({sections}): \{{([a-z_]+):", text):
        if f"{section}.{inner}" not in known:
            yield f"{section}.{inner}"


def _environment(text: str) -> Iterator[str]:
    yield from (name for name in re.findall(r"\b(?:RYE|RAGIX)_[A-Z_]+[A-Z]\b", text) if name not in variables())


def _codes(text: str) -> Iterator[str]:
    for block in re.findall(r"(?s)Raises:\n(.*?)(?:\n\n|\Z)", text):
        for error, said in re.findall(
            r"(?s)\b([A-Z]\w*Error)(?: with the code)?:? ((?:`[a-z_0-9]+`(?:, | or | and )?)+)", block
        ):
            if error.endswith("Error") and error not in ("OSError", "ValueError", "TypeError"):
                yield from (code for code in re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)`", said) if not codes().fullmatch(code))
    yield from (
        code for code in re.findall(r"(?:the |its )?code `([a-z]+(?:_[a-z0-9]+)+)`", text) if not codes().fullmatch(code)
    )


CHECKS = {
    "call": _calls, "parameter": _parameters, "command": _commands, "item": _items, "file": _files, "setting": _settings,
    "variable": _environment, "code": _codes,
}  # fmt: skip


def test_everything_that_a_text_names_exists():
    said = texts()
    assert len(said) > 3_000
    assert [(place, lie) for place, text in said for lie in lies(text)] == []


@pytest.mark.parametrize(
    ("kind", "true", "lie"),
    [
        ("call", 'Call read(file_path="a b", offset=3).', 'Call read(file_path="a b", offest=3).'),
        ("parameter", "Give literal=true.", "Give multilime=true."),
        ("command", "Run `rye sign --key K my/a`.", "Run `rye sign --keyy K my/a`."),
        ("command", "Run `rye sign`, `rt open f`.", "Run `rye singn`, `rt open f`."),
        ("command", "$ rye sign my/a --key K", "$ rye sign my/a \\\n    --keyy K"),
        ("item", "Use rye/bash/bash.", "Use rye/bash/bashh."),
        ("file", "See docs/shell.md.", "See docs/shel.md."),
        ("setting", "Set `web.allow_hosts`.", "Set `web.allow_host`."),
        ("setting", "Say `signing: {agents: allow}`.", "Say `signing: {agent: allow}`."),
        ("variable", "Unset RAGIX_ENABLE_SWE.", "Unset RAGIX_ENABLE_SWEE."),
        ("code", "Raises:\n    ItemError: `item_not_found`.", "Raises:\n    ItemError: `item_not_fund`."),
    ],
)
def test_control_a_planted_lie_of_each_kind_is_caught(kind, true, lie):
    assert (lies(true), [one.split()[0] for one in lies(lie)]) == ([], [kind])
