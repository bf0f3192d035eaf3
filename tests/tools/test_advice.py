"""What a tool says names only parameters that its caller was offered, by item id or as a model, and calls that can be sent."""

import json
import os
import random
import re
import shutil

import pytest

import rye
from rye.call.context import CallOptions
from rye.fs import names
from support.calling import call
from support.harness import times
from support.workspace_calls import insert, sha

FS, SWE, PATCH = "rye/file-system", "rye/swe", "rye/workspace"
LATIN = "café\nnaïve\n".encode("latin-1")
FILES = {
    "a.py": b"x = 1\ny = 2\n",
    "lat.txt": LATIN,
    "wide.txt": "a\nb\n".encode("utf-16-le"),
    "escape.txt": b"\xe9\n\\xe9\n\x81\n",
    "crlf.txt": b"a\r\nb\r\n",
    "book.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["x"]}], "nbformat": 4}, indent=1).encode(),
    'q"uo te.txt': b"".join(b"line %d\n" % n for n in range(9)),
    "empty.txt": b"",
}
PATCHED = {"docPath": "lat.txt", "originalSha256": sha(LATIN), "changes": [insert(1, "Ж")]}
QUOTED = 'q"uo te.txt'
CALLS = [
    # Stale: a parameter is named that the tool has.
    (f"{FS}/edit_lines", {"file_path": "a.py", "changes": ["1|x = 3"], "on_stale": "refuse"}, "changed"),
    # Encodings.
    *[(f"{FS}/read", {"file_path": name}, "") for name in ("lat.txt", "wide.txt", "escape.txt", "empty.txt", "book.ipynb")],
    *[(f"{FS}/edit_lines", {"file_path": n, "changes": ["1|Ж"]}, "read") for n in ("lat.txt", "wide.txt", "escape.txt")],
    (f"{FS}/edit_lines", {"file_path": "escape.txt", "changes": ["1|\\xe9!"]}, "read"),
    (f"{FS}/write", {"file_path": "lat.txt", "content": "Ж\n"}, "read"),
    (f"{FS}/write", {"file_path": "escape.txt", "content": "\\x81\n"}, "read"),
    (f"{FS}/write", {"file_path": "crlf.txt", "content": "a\nc\n"}, "read"),
    (f"{FS}/grep", {"pattern": "caf", "path": "lat.txt"}, ""),
    (f"{SWE}/search_file", {"path": "lat.txt", "pattern": "caf"}, ""),
    (f"{SWE}/open_file_chunk", {"path": "lat.txt"}, ""),
    (f"{SWE}/edit_range", {"path": "lat.txt", "start_line": 1, "end_line": 1, "new_text": "Ж"}, "read"),
    (f"{SWE}/edit_file", {"path": "escape.txt", "old": "\xe9", "new": "Ж"}, ""),
    (f"{PATCH}/workspace_write_patch", {"files": [PATCHED]}, ""),
    # Syntax, notebooks.
    (f"{FS}/edit_lines", {"file_path": "a.py", "changes": ["1|x = ("], "guard": "refuse"}, "read"),
    (f"{SWE}/edit_range", {"path": "a.py", "start_line": 1, "end_line": 1, "new_text": "x = (", "guard": "refuse"}, "read"),
    (f"{FS}/edit_lines", {"file_path": "book.ipynb", "changes": [{"find": '"cells": [', "replace": "oops"}]}, ""),
    # Searches.
    *[
        (tool, {"pattern": pattern, **more}, "")
        for pattern in ("a\nb", "(", "absent", "x = 1")
        for tool, more in ((f"{FS}/grep", {}), (f"{SWE}/search_dir", {"root": "."}), (f"{SWE}/search_file", {"path": "a.py"}))
    ],
    *[(tool, {"pattern": p}, "") for tool in (f"{FS}/glob", f"{SWE}/find_file") for p in ("../*", "absent", "*.txt")],
    (f"{FS}/glob", {"pattern": "*", "limit": 1}, ""),
    # Paths, windows, undo.
    *[(f"{FS}/read", {"file_path": name, "limit": 2}, "") for name in ("b.py", "folder", QUOTED)],
    (f"{FS}/edit_lines", {"file_path": QUOTED, "changes": ["99|z"]}, ""),
    (f"{FS}/ls", {"depth": 2, "limit": 1}, ""),
    (f"{SWE}/open_file_chunk", {"path": QUOTED, "start": 1, "end": 2}, ""),
    (f"{SWE}/scroll_file", {"path": QUOTED, "direction": "down"}, ""),
    (f"{PATCH}/workspace_read_file", {"docPath": QUOTED, "limit": 2}, ""),
    (f"{FS}/undo", {"list": True, "limit": 1}, "written"),
    (f"{FS}/undo", {"list": True, "file_path": QUOTED, "limit": 1}, "written"),
    (f"{SWE}/undo_edit", {"entry_id": "0" * 15}, ""),
    ("rye/bash/bash", {"command": "seq 1 30000; seq 1 30000 >&2"}, ""),
    ("rye/lsp/lsp", {"file_path": QUOTED, "action": "definition"}, ""),
]
TEXT = r'"(?:[^"\\]|\\.)*"'
VALUE = rf"(?:{TEXT}|…|\[\]|[\w.+-]+)"
CALL = re.compile(rf"\b([a-z_]+)\(((?:\w+={VALUE}(?:, )?)+)\)")
WORDS = re.compile(r"(?<![\w./-])([a-z][a-zA-Z_]*)=(?=[\w\"…\[])")


def words_of(data):
    """All that a model reads of a result but the lines of files."""
    said = f"{data.get('error', '')}\n{data.get('output', '')}\n{data.get('hint', '')}\n{data.get('stderr', '')}"
    # The lines of the files and of the command hold no advice.
    kept = [line for line in said.split("\n") if not re.match(r"^(\S+\t|\d+[: ]|\[LID|\[\d|[ +-]|x = |\S+:\d)", line)]
    return "\n".join(kept)


def named(text):
    """Pairs of tool and parameter that a text names: the tool is None outside a written call."""
    found = [(tool, one) for tool, given in CALL.findall(text) for one in re.findall(rf"(\w+)={VALUE}", given)]
    return [*found, *((None, one) for one in WORDS.findall(CALL.sub("", text)))]


def prepared(project, how, tool, parameters):
    for name, content in FILES.items():
        (project / name).write_bytes(content)
    (project / "folder").mkdir(exist_ok=True)
    path = parameters.get("file_path") or parameters.get("path")
    if how in ("read", "changed"):
        reader = f"{SWE}/open_file_chunk" if tool.startswith(SWE) else f"{FS}/read"
        call(reader, project, **({"path": path} if tool.startswith(SWE) else {"file_path": path}))
    if how == "changed":
        (project / path).write_bytes(b"x = 9\ny = 2\n")
    if how == "written":
        for content in ("a\n", "b\n", "c\n"):
            call("write", project, file_path=QUOTED, content=content)


@pytest.mark.parametrize("form", ["item", "model"])
@pytest.mark.parametrize(("tool", "parameters", "how"), CALLS)
def test_what_a_tool_says_names_what_its_caller_was_offered(tool, parameters, how, form, project):
    tools = rye.toolset(project)
    schemas = {offer.name: offer.parameters if form == "item" else offer.listed_schema for offer in tools.offers}
    offered = {name: set(schema["properties"]) for name, schema in schemas.items()}
    prepared(project, how, tool, parameters)
    name = tool.rpartition("/")[2]
    if form == "item":
        data = call(tool, project, **parameters)
    else:
        data = tools.respond(name, dict(parameters))["data"]
        assert data.get("code") != "tool_crashed", data
    text = words_of(data)
    for other, parameter in named(text):
        # Facts of a patch and of a file, not advice.
        if other is None and parameter in ("sha256", "lines", "terminator", "source"):
            continue
        assert other is None or other in offered, text
        # `on_stale` and `guard` were given by this caller, so it knows them.
        assert parameter in offered[other or name], (other, parameter, text)


def test_control_the_texts_of_the_table_name_parameters(project):
    said = []
    for tool, parameters, how in CALLS:
        prepared(project, how, tool, parameters)
        said += [one for _, one in named(words_of(call(tool, project, **parameters)))]
    words = "on_stale encoding guard notebook multiline literal hidden no_ignore offset stream file_path docPath list"
    assert {*words.split(), "changes_since", "convert_newlines"} <= set(said)


@pytest.mark.parametrize("budget", range(1_500, 40_000, 9_500))
@pytest.mark.parametrize("form", ["lid", "short", "none"])
def test_a_cut_answer_says_how_many_lines_it_holds_and_of_how_many(project, budget, form):
    long = "".join(f"{n} {'y' * 9_000}\n" for n in range(12))
    options = CallOptions(max_output_bytes=budget)
    for tool, parameters, shown_as in (
        (
            "rye/file-system/edit_lines",
            {"file_path": "f.txt", "changes": [{"find": f"{n} y", "replace": f"{n} z"} for n in (3, 7, 8)]},
            "line_ids",
        ),
        ("rye/swe/edit_range", {"path": "f.txt", "start_line": 4, "end_line": 5, "new_text": "a\nb\nc\n"}, "line_ids"),
        ("rye/file-system/write", {"file_path": "f.txt", "content": long.replace("y", "z")}, ""),
    ):
        (project / "f.txt").write_text(long)
        given = {**parameters, shown_as: form} if shown_as else parameters
        data = rye.execute(tool, given, project_path=project, options=options)["data"]
        assert data["success"], data
        found = re.search(r"\[tool_result: (\d+) of (\d+) (?:diff )?lines; (-?\d+) more omitted\.", data["output"])
        assert bool(found) == data["truncated"]
        assert len(data["output"].encode()) <= budget
        if found:
            shown, total, left = map(int, found.groups())
            assert 0 <= shown < total
            assert left == total - shown
            # Each of the long lines is counted once.
            assert shown >= data["output"].count("line shortened:")


def test_a_search_without_line_ids_indexes_no_file(project):
    (project / "lat.txt").write_bytes(LATIN)
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    index = project / ".ai/cache"
    for context in (None, 0, 1):
        more = {} if context is None else {"context": context}
        output = call("grep", project, pattern="two|na", line_ids="none", **more)["output"]
        assert ("a.txt-1-one" in output, "lat.txt-1-" in output) == (context == 1, context == 1)
        assert "a.txt:2:two" in output
        assert not [path for path in index.rglob("*") if "line_index" in str(path)]
    call("rye/swe/search_dir", project, pattern="two")
    assert not [path for path in index.rglob("*") if "line_index" in str(path)]
    # Control: with line IDs they are.
    call("grep", project, pattern="two", line_ids="lid")
    assert [path for path in index.rglob("*.json") if "line_index" in str(path)]


ODD = "ab \"'\\\n\té→😀()=,[]{}*?!#$;|&.-…x"
"""What names are made of: all that a written call must carry through."""

_LISTS = {
    # Tool: parameters for a file and its folder, what one item of the answer is.
    "rye/file-system/read": (lambda file, folder: {"file_path": file}, r"(?m)^\S+\] (line \d+)$"),
    "rye/swe/open_file_chunk": (lambda file, folder: {"path": file, "start": 1, "end": 2}, r"(?m)^\d+: (line \d+)$"),
    "rye/workspace/workspace_read_file": (lambda file, folder: {"docPath": file}, r"(?m)^\d+: (line \d+)$"),
    "rye/swe/search_file": (lambda file, folder: {"path": file, "pattern": 'line ["\\d]+'}, r"(?m)^\d+ : (line \d+)$"),
    "rye/swe/search_dir": (lambda file, folder: {"root": folder, "pattern": 'line (?:"|\\d+|é)'}, r"(?m):\d+: (line \d+)$"),
    "rye/file-system/grep": (lambda file, folder: {"path": folder, "pattern": r'line (?:"|\d+|é)'}, r"(?m)\]:(line \d+)$"),
    "rye/file-system/glob": (lambda file, folder: {"path": folder, "pattern": "{*,é\"'}"}, r"(?m)^(?!\[tool_result)(.+)$"),
    "rye/swe/find_file": (lambda file, folder: {"root": folder, "pattern": "*"}, r"(?m)^(?!\[tool_result)(.+)$"),
    "rye/file-system/ls": (lambda file, folder: {"path": folder}, r"(?m)^(?!\[tool_result)(.+)$"),
}


def followed(tool, project, given, item, keep):
    """Yield what the answer to a call shows, and its text, then those to the calls that continue, as they are written."""
    for _ in range(99):
        answer = call(tool, project, **given)
        assert answer["success"], (tool, given, answer)
        yield re.findall(item, answer["output"]), answer["output"]
        again = [args for name, args in CALL.findall(answer["output"].split("[tool_result")[-1]) if tool.endswith(f"/{name}")]
        if not again:
            return
        given = keep | {key: json.loads(value) for key, value in re.findall(rf"(\w+)=({VALUE})", again[-1])}


@pytest.mark.parametrize("cases", [pytest.param(12, id="sample"), pytest.param(times(200), marks=pytest.mark.slow)])
def test_every_call_that_continues_goes_on_where_the_answer_ended(cases, project):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice, cut = random.Random(seed), 0
    for case in range(cases):
        name = "".join(dice.choices(ODD, k=dice.randint(1, 12))).strip(" .") + "z"
        folder, lines, most = f"{case}{name}", dice.randint(5, 12), dice.randint(1, 4)
        (project / folder).mkdir()
        (project / folder / name).write_text("".join(f"line {number}\n" for number in range(1, lines + 1)))
        for number in range(lines - 1):
            (project / folder / f"{number}{name}").touch()
        # As answers show them: a newline in a name is \x0a there.
        file, where = (names.show(os.fsencode(one)) for one in (f"{folder}/{name}", folder))
        tool = dice.choice(sorted(_LISTS))
        parameters, item = _LISTS[tool]
        keep = {} if "chunk" in tool else {"limit": most}
        given = parameters(file, where) | keep
        pages = [*followed(tool, project, given, item, keep)]
        found = [one for some, _ in pages for one in some]
        assert len(found) == lines == len(set(found)), (seed, tool, given, found)
        cut += len(pages) - 1
        shutil.rmtree(project / folder)
    assert cut > cases, "control: most answers were cut"


@pytest.mark.parametrize("char", ["x", "🙂"])
@pytest.mark.parametrize("tool", [name for name, (_, item) in _LISTS.items() if "line" in item])
def test_an_answer_is_cut_in_bytes_behind_a_line_with_true_numbers_and_the_next_call_goes_on(project, tool, char):
    """Defect 7: the cut was counted in characters, fell within a line, and its numbers were wrong."""
    (project / "f").mkdir()
    (project / "f/f").write_text("".join(f"line {n} {char * 200}\n" for n in range(1, 601)))
    parameters, item = _LISTS[tool]
    pages = [*followed(tool, project, parameters("f/f", "f"), item.replace(")$", rf") {char}+$"), {})]
    assert [one for found, _ in pages for one in found] == [f"line {n}" for n in range(1, 601)]
    left = 600
    for found, text in pages:
        left -= len(found)
        numbers = (f"[tool_result: {len(found)} of 600 " in text, f"; {left} more omitted. " in text)
        assert (numbers, len(text.encode()) <= 51_200) == ((left > 0,) * 2, True)


def test_a_wrong_parameter_is_answered_with_those_that_the_model_was_shown(project):
    tools = rye.toolset(str(project))
    for one in tools.schemas("mcp"):
        said = tools.call(one["name"], {"nofoo": 1})
        wanted = re.findall(r"(\w+) \(", said.partition("Wanted: ")[2])
        assert wanted, said
        assert {*wanted} <= {*one["inputSchema"]["properties"]}, one["name"]
