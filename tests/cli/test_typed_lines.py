"""What is typed: what works as one expects, and of what is wrong the exit code, and one or two lines that say what is right."""

import json
import re
import socket
import subprocess
import sys

import pytest

from support.harness import environment
from support.in_process import rye
from support.signed_tools import MINE, put, signed, tool_text, trust_key
from support.terminal import typed

# Words (behind `|` where one has a blank), the exit code, and what is said.
ROWS = [
    ("log --limit=1 --json", 0, "[]"),
    ("--color never log --json", 0, "[]"),
    ("log a.txt b.txt", 2, "'b.txt' is a word too many. usage: rye log [FILE] [--limit N]"),
    ("log --limit", 2, "--limit has no value. Write --limit N."),
    ("log --json=yes", 2, "--json takes no value."),
    ("log --limt 3", 2, "rye log has no option --limt. Did you mean --limit?"),
    ("--colour never log", 2, "rye has no option --colour. Did you mean --color?"),
    ("--color maybe log", 2, "--color is auto, always or never, not 'maybe'."),
    ("state prun", 2, "ACTION is list, prune or adopt, not 'prun'. Did you mean 'prune'?"),
    ("trust list x", 2, "list takes no key."),
    ("lock", 2, "usage: rye lock TOOL [--project DIR] [--json]\n`rye lock --help` explains it."),
    ("load tool", 2, "Such as `rye load tool rye/file-system/line-ids`"),
    ("log --help --limit", 0, "usage: rye log [FILE]"),
    ("lock read", 0, "Locked rye/file-system/read "),
    ("", 2, "verbs:"),
    ("-V", 0, "rye 0."),
    ("verify|", 2, "A target is empty."),
    ("prompt swe", 0, "Profile in force: dev. Edits are applied at once"),
    ("serve --help", 0, "Whoever reaches such a port runs commands"),
    ("search undo my last change", 0, "tool rye/file-system/undo  (system, "),
    ("search xyzzyx", 1, ""),
    ("load knowledge rye/file-system/file-operations", 0, "# Working with files"),
    # What one types without knowing.
    ("edit app.py", 2, "Write `rye edit_lines FILE 'ID|new text'`"),
    ("load rye/file-system/line-ids", 2, "`rye load knowledge rye/file-system/line-ids`"),
    ("registry push", 2, "`rye registry --help` says what each action takes"),
    ("search a)b", 2, "rye: "),
    ("search x --scope tool --type tool", 2, "--scope already says type and category."),
    ("prompt swee", 2, "rye/agent/swe"),
    ("new directive my/x", 2, "KIND is tool, not 'directive'."),
    ("lint none/such", 1, "none/such"),
    ("lint --all my/greet", 2, "not both"),
    *((f"{verb} --project gone", 2, "There is no folder gone.") for verb in ("tools", "doctor", "trust list", "read a.txt")),
    # Signatures and keys.
    ("verify my/gret", 1, "my/greet"),
    ("verify a --all", 2, "not both"),
    ("verify --trust no.toml", 2, "no.toml"),
    ("sign .", 1, "rye keys generate"),
    ("sign . --key .ai/tools/my/greet.py", 3, "not an Ed25519"),
    ("keys show", 1, "rye keys generate"),
    ("trust show", 2, "No key is named"),
    ("trust show ffffffffffffffff", 1, "No key ffffffffffffffff"),
    *((f"trust revoke{digest}", 2, "64 hex digits") for digest in ("", f" {'f' * 16}", f" {'F' * 64}")),
    ("trust add", 2, "No key document"),
    ("trust add .ai/tools/my/greet.py", 2, "not a key document"),
    ("bundle create --folder src/.ai --id ../x --key key.pem", 1, "Not an item id"),
    # No bundle of one's own is looked for in the installed package.
    *((f"bundle {words} --key key.pem", 2, "Give --folder") for words in ("create --id extra", "create", "verify --id extra")),
    # Servers.
    ("review", 1, "Only a person at a terminal may open the pages"),
    ("serve", 2, "Say what to serve"),
    ("serve --agent-sandbox --project /no/such/folder", 2, "/no/such/folder"),
    ("serve|--agent-sandbox|--host|no such host|--port|0", 2, "Cannot listen"),
    ("mcp install --client emacs", 2, "no client 'emacs'"),
    ("mcp install --client claude", 2, "Did you mean claude-code or claude-desktop?"),
    ("mcp install --client claude-desktop --http 1", 2, "stdio"),
    ("mcp install --client vscode --http 1 --write", 2, "--write"),
    ("mcp install --client codex --http here", 2, "HOST:PORT"),
    ("mcp --category rye/swe --category rye/swee", 2, "There is no category 'rye/swee'. Did you mean rye/swe"),
    ("mcp --tools raed", 2, "Did you mean read"),
    # What is typed without thinking.
    ("read a.txt --limit 1", 0, "one\n"),
    ("grep THREE --ignore-case a.txt", 0, "three"),
    ("ls -la", 0, "a.txt"),
    ("grep -C 1 two", 0, "three"),
    ("grep -l one", 0, "a.txt\nsub/b.txt\n"),
    ("grep -x one .", 2, "Without it: rye grep one ."),
    ("grep one sub", 0, "sub/b.txt:1:"),
    ("bash ls -la", 2, "rye bash 'ls -la'"),
    ("read a.txt --help", 0, "usage: rye read FILE_PATH"),
    ("read a.txt sub/b.txt", 2, "Write: rye read a.txt 'more=[\"sub/b.txt\"]'"),
    ("read", 2, "usage: rye read FILE_PATH [name=value …]"),
    ("grep", 2, "usage: rye grep PATTERN [PATH] [name=value …]"),
    ("read a.txt nofoo=1", 2, "rye: unknown parameter 'nofoo'. `rye help read` explains them."),
    ("rye_execute rye/file-system/read parameters:={}", 2, '"file_path" is a required property. `rye help read` explains'),
    ("read a.txt --limit x", 2, 'rye: limit: "x" is not of type "integer". `rye help read` explains'),
    ("read -", 2, "Write ./- for it."),
    ("read|sub/c d.txt", 0, "one\n"),
    ("init", 2, "Write `rye read FILE`"),
    ("config set x", 2, ".ai/config/rye.yaml"),
    ("version", 2, "Write `rye --version`."),
    ("cat a.txt", 2, "Write `rye read FILE`."),
    ("read sub", 1, 'Use ls(path="sub")'),
    ("raed a.txt", 2, "Did you mean 'read'?"),
    ("rye/file-system/raed a.txt", 2, "rye/file-system/read"),
    ("web x", 2, "Did you mean 'webfetch' or 'websearch'?"),
    ('execute|read|--params|{"file_path":"a.txt","limit":NaN}', 2, "not JSON"),
    ("read a.txt --lim 1", 2, "Write: rye read a.txt --limit 1"),
    ("read --json -- a.txt", 0, '"status": "success"'),
    ("read a.txt --offset -1", 0, "three"),
    (["edit_lines", "a.txt", "end+|four", "--dry-run"], 0, "+four"),
    ("execute rye/file-system/write new.txt x --dry-run", 0, "not run"),
    ("bash|exit 7", 7, "exit code 7"),
    ('read {"file_path":"a.txt","limit":1}', 0, "one\n[tool_result: 1 of 3"),
    ('grep {"one":1}', 1, "Bad pattern '{\"one\":1}'"),
]


@pytest.fixture
def here(project, user_space):
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    (project / "sub/b.txt").write_text("one\n")
    (project / "sub/c d.txt").write_text("one\n")
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    put(project, "tools/my/greet.py", tool_text("my/greet"))
    put(project / "src", "tools/extra/one.py", signed(tool_text("extra/one")))
    trust_key()
    (project / "key.pem").write_bytes(MINE.pem)
    return project


@pytest.mark.parametrize(("words", "code", "said"), ROWS)
def test_what_is_typed_works_or_is_answered_with_what_to_type(here, words, code, said):
    words = words if isinstance(words, list) else words.split("|" if "|" in words else None)
    if words[:1] == ["edit_lines"]:
        rye("read", "a.txt", cwd=here)
    done = rye(*words, cwd=here)
    assert (done.returncode, said in (done.stdout + done.stderr).decode()) == (code, True), done
    assert b"Traceback" not in done.stderr
    assert (here / "a.txt").read_text() == "one\ntwo\nthree\n"
    if code and words and said and words[0] != "bash":
        assert len(done.stderr.splitlines()) <= (4 if words[0] == "grep" else 3)
        # A refusal is JSON where that was asked for; else there is nothing on standard output.
        assert done.stdout == b"" or "--json" in words
        refusal = json.loads(rye(*words, "--json", cwd=here).stdout)
        assert (refusal["status"], bool(refusal["code"]), bool(refusal["error"])) == ("error", True, True)


def test_what_a_server_refuses_before_it_listens(here, monkeypatch):
    done = rye("serve", "--agent-sandbox", "--port", "0", cwd=here, env={"RYE_SANDBOX_TOKEN": "short"})
    assert (done.returncode, b"RYE_SANDBOX_TOKEN holds no usable token" in done.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port in (taken.getsockname()[1], -1, 70_000):
            code, shown = typed("review", f"--port={port}", cwd=here)
            assert (code != 0, f"Cannot listen at 127.0.0.1:{port}" in shown, "open?code" in shown) == (True, True, False)
    # Without the server's packages it says what to install.
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "-packages" not in folder])
    for words in (("serve", "--agent-sandbox"), ("mcp",)):
        done = rye(*words, cwd=here)
        assert (done.returncode, b"extra `mcp`" in done.stderr) == (2, True)
        assert re.search(rb"pip install (?:-e )?'?\S+\[mcp\]", done.stderr)


def test_a_command_runs_where_one_stands(here):
    assert rye("bash", "pwd", cwd=here / "sub").stdout.decode().strip().endswith("/project/sub")
    assert rye("bash", "pwd", "--working-dir", "..", cwd=here / "sub").stdout.decode().strip().endswith("/project")
    assert rye("bash", "pwd", cwd=here).stdout.decode().strip().endswith("/project")
    # What a program gives is from the root.
    assert rye("bash", "--params", '{"command": "pwd"}', cwd=here / "sub").stdout.decode().strip().endswith("/project")


SHELL = {
    "|": ("rye grep e | head -1", 0, "a.txt:1:"),
    "| of much": ("rye bash 'seq 1 1000000' | head -1", 0, "1\n"),
    "| into": ("echo four | rye write sub/d.txt content=@- && cat sub/d.txt", 0, "four\n"),
    "a glob of one": ("rye read a*.txt", 0, "one"),
    "a glob of two": ("rye read sub/*.txt", 2, """Write: rye read sub/b.txt 'more=["sub/c d.txt"]'"""),
    "a file in the home": ("rye read ~/x.txt", 1, "outside"),
    "&&": ("rye bash true && rye bash false || echo no", 0, "no\n"),
    "> a file": ("rye read a.txt limit=1 --color never > sub/out && wc -l < sub/out", 0, "2\n"),
}


@pytest.mark.parametrize("name", SHELL)
def test_what_a_shell_makes_of_a_line_works_or_shows_the_line_to_type(here, name, tmp_path):
    line, code, said = SHELL[name]
    words, env = ["bash", "-c", f'rye() {{ {sys.executable} -m rye "$@"; }}; {line}'], environment(HOME=str(tmp_path))
    done = subprocess.run(words, cwd=here, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done


def test_undo_passes_over_what_no_tool_may_write_and_says_so(project):
    """A lockfile is the user's: it stays, and the edit before it is taken back."""
    assert rye("write", "a.txt", "content=one", cwd=project).returncode == 0
    assert rye("lock", "rye/file-system/read", cwd=project).returncode == 0
    done = rye("undo", cwd=project)
    assert (done.returncode, (project / "a.txt").exists()) == (0, False)
    assert b"was passed over: .ai/lockfiles/rye/file-system/read@" in done.stdout
    assert list((project / ".ai/lockfiles").rglob("*.json"))
    # Nothing else is left: then it is refused with the reason.
    done = rye("undo", cwd=project)
    assert (done.returncode, b"which tools may not write" in done.stderr) == (1, True)


def test_a_person_reads_commands_where_a_model_reads_calls(here):
    code, shown = typed("read", "sub", cwd=here)
    assert (code, "Use `rye ls path=sub` to list it" in shown) == (1, True), shown
    assert "Call `rye read file_path=a.txt offset=2` to see more" in typed("read", "a.txt", "limit=1", cwd=here)[1]
    assert b'Call read(file_path="a.txt", offset=2) to see more' in rye("read", "a.txt", "limit=1", cwd=here).stdout
