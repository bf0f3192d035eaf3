"""What a person types for a call: short names, bare values, files and JSON as values."""

import json
import os
import re
import subprocess
import sys

import pytest

from support.harness import environment
from support.in_process import rye
from support.signed_tools import put_tool

APP = b"def total(prices):\n    return sum(prices)\n"
ECHO = 'return {"success": True, "output": "", "got": params}'
PATH = {"type": "string", "format": "workspace-path"}
TYPES = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "items": {"type": "array"},
        "number": {"type": "integer"},
        "real": {"type": "number"},
        "flag": {"type": "boolean"},
        "either": {"type": ["string", "null"]},
        "any": {},
        "path": PATH,
        "other_path": PATH,
    },
    "required": ["text", "items"],
    "additionalProperties": False,
}


@pytest.fixture
def here(project):
    (project / "app.py").write_bytes(APP)
    put_tool(project, "my/echo", ECHO, TYPES)
    for name, data in FILES.items():
        (project / name).write_bytes(data)
    for name in ("sub", "@types"):
        (project / name).mkdir()
    return project


def got(*typed, cwd, **options):
    done = rye(typed[0], "--json", *typed[1:], cwd=cwd, **options)
    answer = json.loads(done.stdout)
    assert done.returncode == 0, answer
    return answer["data"]["got"]


# --- names ---


def test_a_tool_goes_by_its_last_part(here):
    long = rye("execute", "rye/file-system/read", "file_path=app.py", cwd=here)
    assert long.returncode == 0
    for typed in ("read app.py", "execute read app.py", "rye/file-system/read app.py", "read file_path=app.py"):
        assert rye(*typed.split(), cwd=here).stdout == long.stdout, typed
    assert rye("read", "../app.py", cwd=here / "sub").stdout == long.stdout


def test_a_project_cannot_take_the_name_of_the_systems_own(here):
    """Control: under its whole id its tool runs, and a name that the system lacks is the project's."""
    put_tool(here, "my/read", 'return {"success": True, "output": "taken"}')
    assert b"total" in rye("read", "app.py", cwd=here).stdout
    assert rye("my/read", cwd=here).stdout == b"taken\n"
    assert got("echo", "a", "[1]", cwd=here) == {"text": "a", "items": [1]}


def test_a_name_of_two_tools_is_refused_with_both(here):
    put_tool(here, "your/echo", ECHO, TYPES)
    done = rye("echo", "a", "[]", cwd=here)
    assert (done.returncode, b"my/echo or your/echo" in done.stderr) == (2, True)
    assert got("my/echo", "a", "[]", cwd=here)["text"] == "a"
    (here.parent / "elsewhere").mkdir()
    assert got("my/echo", "a", "[]", "--project", str(here), cwd=here.parent / "elsewhere")["text"] == "a"


# --- values ---

FILES = {
    "text.txt": "ä\r\n\n".encode(),
    "list.json": b"[1, 2]\n",
    "n": b"7\n",
    "all.json": b'{"text": "${HOME} `id`\\n", "items": []}',
    "binary": b"\xff\xfe",
}
ALL = FILES["all.json"].decode()
WHOLE = {"text": "${HOME} `id`\n", "items": []}
A = {"text": "a", "items": []}
# Words behind `echo`, and the parameters that they are: a bare value fills what is left, first what is required, then the path.
VALUES = {
    "bare": (["a", "[1]"], {"text": "a", "items": [1]}),
    "bare and named": (["a", "[]", "number=3", "flag=true"], {**A, "number": 3, "flag": True}),
    "a path at the end": (["number=3", "a", "items=[]", "app.py"], {**A, "number": 3, "path": "app.py"}),
    "by the schema": (
        ["text=5", "items=[1]", "number=-5", "real=1e3", "either=null", "path=a=b.txt"],
        {"text": "5", "items": [1], "number": -5, "real": 1000.0, "either": None, "path": "a=b.txt"},
    ),
    "JSON": (["a", "[]", 'any:={"b": [null]}', "number:=5", "flag:=false"], {**A, "any": {"b": [None]}, "number": 5, "flag": False}),
    "JSON of a text": (['text:="@nothing"', "[]"], {**A, "text": "@nothing"}),
    "a sign in a value": (["text=FOO=1 make", "[]"], {**A, "text": "FOO=1 make"}),
    "a sign behind --": (["items=[]", "--", "FOO=1 make"], {**A, "text": "FOO=1 make"}),
    "a dash behind --": (["items=[]", "--", "--json"], {**A, "text": "--json"}),
    **{f"no name: {one}": ([one, "[]"], {**A, "text": one}) for one in ("a b=c", "https://x.org/?a=b", "x.y=1", "=", "1==b", "a::=b", "ä=b", ":=b", "1a=b")},
    # What another signer's tool answers has plain line ends.
    "a file": (["text=@text.txt", "[]"], {**A, "text": "ä\n\n"}),
    "a file of a list": (["text=a", "items=@list.json"], {"text": "a", "items": [1, 2]}),
    "a file of a number": (["a", "[]", "number=@n"], {**A, "number": 7}),
    "standard input": (["text=@-", "[]"], {**A, "text": ALL}),
    "a path is no file's": (["a", "[]", "path=@types"], {**A, "path": "@types"}),
    "all as JSON": (["--params", ALL], WHOLE),
    "all of a file": (["--params", "@all.json"], WHOLE),
    "all of standard input": (["--params", "-"], WHOLE),
    "a word wins": (["--params", ALL, "number=4"], {**WHOLE, "number": 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_words_are_values(here, name):
    typed, wanted = VALUES[name]
    assert got("echo", *typed, cwd=here, stdin=ALL.encode()) == wanted


def test_a_path_is_from_the_current_folder(here):
    assert os.path.normpath(got("echo", "a", "[1]", "../app.py", cwd=here / "sub")["path"]) == "app.py"
    (here / "b.txt").write_text("-x\n")
    assert rye("grep", "path=b.txt", "--", "-x", cwd=here).stdout.startswith(b"b.txt:1:")
    assert rye("write", "copy.txt", "content=@text.txt", cwd=here).returncode == 0
    assert (here / "copy.txt").read_bytes() == FILES["text.txt"], "byte for byte"


# A slip in a name must not become a value, and a value that looks like a name is refused with how to write it.
REFUSED = {
    "a value that may be a name": (["FOO=1 make", "[]"], "text='FOO=1 make'"),
    "a slip in a name": (["txt=a", "[]"], "did you mean 'text'?"),
    **{f"twice: {one}": (one.split(), "text is given twice") for one in ("text=a text=b", 'text=a text:="b"')},
    "a file that is not there": (["text=@nothing", "[]"], """text:='"@nothing"'"""),
    "a file of bytes": (["text=@binary", "[]"], "is no UTF-8 text"),
    "a folder": (["text=@.", "[]"], "text=@.: "),
    "no JSON": (["a", "[]", "number:=five"], "number is not JSON"),
    "a list without quotes": (["a", "items=[{b: c}]"], "It came as [{b: c}] In a shell, quote it: items='[…]'."),
    **{
        f"all: {one[:20]}": (["--params", one], "rye: ")
        for one in ("@", "@nowhere", "@.", "{", "[]", "5", "null", '{"a": NaN', "[" * 50_000, "@binary", "''")
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_words_that_are_no_value_are_2_with_what_to_write(here, name):
    typed, said = REFUSED[name]
    done = rye("echo", *typed, cwd=here)
    assert (done.returncode, done.stdout, said in done.stderr.decode()) == (2, b"", True), done
    assert b"Traceback" not in done.stderr


def test_any_text_can_be_given_by_name_and_comes_whole(here):
    for text in ("", " ", "a\nb", "é☃", '"', "\\", "null", "7", "{", "-", "--", "=", ":=", "@", "~", "a=b", "\t"):
        assert got("echo", f"text:={json.dumps(text)}", "[]", cwd=here) == {**A, "text": text}, text
        if text[:1] != "@":
            assert got("echo", f"text={text}", "[]", cwd=here) == {**A, "text": text}, text


# --- output as it comes ---


def test_a_pipe_gets_output_as_it_comes_whole_and_the_streams_apart(here):
    """The other lines are written only after the first was read, so that nothing may wait for the end."""
    os.mkfifo(here / "go")
    command = "echo one; echo err >&2; read x < go; seq 1 60000; exit 3"
    words, pipe = [sys.executable, "-m", "rye", "bash", command], subprocess.PIPE
    with subprocess.Popen(words, cwd=here, env=environment(), stdout=pipe, stderr=pipe) as running:
        assert running.stdout.readline() == b"one\n"
        (here / "go").write_text("x\n")
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (3, b"".join(b"%d\n" % number for number in range(1, 60_001)))
    # Under Landlock alone a line says what that does not hold.
    err = re.sub(rb"rye: the sandbox here is Landlock, [^\n]*\n", b"", err)
    assert err == b"err\nrye: The command ended with exit code 3.\n", "what was shown already is not said again"
    # A reader that goes away ends the command.
    line = f"{sys.executable} -m rye bash 'echo $$ > pid; yes' | head -2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=here, env=environment(), capture_output=True, check=False, timeout=100)
    assert (done.stdout, done.returncode, done.stderr) == (b"y\ny\n", 141, b"")


def test_one_change_is_typed_without_brackets(project, user_space):
    """Where a list takes texts, a word that is none in JSON is its one member: nobody types brackets within quotes for one."""
    (project / ".git").mkdir()
    (project / "app.py").write_bytes(APP)
    rye("read", "app.py", cwd=project)
    for change, said in (
        ("4d90b3|    return 1", "return 1"),
        ("[LID:a1c851]|def t(p):", "def t(p):"),
        ('{"find": "return", "replace": "yield"}', "yield 1"),
        ('["start+|# top", "end+|# end"]', "# end"),
    ):
        done = rye("edit_lines", "app.py", change, cwd=project)
        assert (done.returncode, said in done.stdout.decode()) == (0, True), done.stderr
    assert (project / "app.py").read_text() == "# top\ndef t(p):\n    yield 1\n# end\n"
    for broken in ("[{line_id: 4d90b3}]", "{find: x}", "['12|x']"):
        done = rye("edit_lines", "app.py", broken, cwd=project)
        assert (done.returncode, b"changes is not JSON" in done.stderr) == (2, True)
    assert rye("read", "app.py", "more=app.py:2", cwd=project).stdout.count(b"def t(p)") == 2
