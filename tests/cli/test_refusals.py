"""What is typed wrong: the exit code, and one or two lines that say what is right. The words of an option may stand anywhere."""

from __future__ import annotations

import pytest

from support.in_process import rye
from support.signed_tools import MINE, put, signed, tool_text, trust_key

# Words (behind `|` where one has a blank), the exit code, and what is said.
ROWS = [
    ("log --limit=1 --json", 0, "[]"),
    ("log --json --limit 1 a.txt", 0, "[]"),
    ("--color never log --json", 0, "[]"),
    ("log --json --color=never", 0, "[]"),
    ("log a.txt b.txt", 2, "'b.txt' is a word too many. usage: rye log [FILE] [--limit N]"),
    ("log --limit", 2, "--limit has no value. Write --limit N."),
    ("log --limit --json", 2, "--limit has no value."),
    ("log --limit many", 2, "--limit is a whole number, not 'many'."),
    ("log --json=yes", 2, "--json takes no value."),
    ("log --limt 3", 2, "rye log has no option --limt. Did you mean --limit?"),
    ("--colour never log", 2, "rye has no option --colour. Did you mean --color?"),
    ("--color maybe log", 2, "--color is auto, always or never, not 'maybe'."),
    ("state prun", 2, "ACTION is list, prune or adopt, not 'prun'. Did you mean 'prune'?"),
    ("trust list x", 2, "list takes no key."),
    ("lock", 2, "usage: rye lock TOOL [--project DIR] [--json]\n`rye lock --help` explains it."),
    ("load tool", 2, "Such as `rye load tool rye/file-system/line-ids`"),
    ("log --help --limit", 0, "usage: rye log [FILE]"),
    ("log --limt 3 --json", 2, '"code": "bad_option"'),
    ("tools --color sometimes", 2, "--color is auto, always or never, not 'sometimes'."),
    ("lock read", 0, "Locked rye/file-system/read "),
    ("", 2, "verbs:"),
    ("-V", 0, "rye 0."),
    ("--version", 0, "rye 0."),
    ("-h", 0, "2 usage, 3 refused by trust; 130 Ctrl-C, 141 the reader of a pipe went away"),
    # What one types without knowing.
    ("edit app.py", 2, "Write `rye edit_lines FILE 'ID|new text'`"),
    ("read", 2, "`rye help read` explains them."),
    ("load rye/file-system/line-ids", 2, "`rye load knowledge rye/file-system/line-ids`"),
    ("registry push", 2, "rye registry push ID…: send items"),
    ("registry key", 2, "rye registry key REF: print the signer's key document"),
    ("search a)b", 2, "rye: "),
    ("search x --scope tool --type tool", 2, "--scope already says type and category."),
    ("prompt swee", 2, "rye/agent/swe"),
    ("new directive my/x", 2, "KIND is tool, not 'directive'."),
    ("lint none/such", 1, "none/such"),
    ("lint --all my/greet", 2, "not both"),
    *(
        (f"{verb} --project gone", 2, "There is no folder gone.")
        for verb in ("tools", "verify", "lint", "trust list", "read a.txt")
    ),
    # Signatures and keys.
    ("verify my/gret", 1, "my/greet"),
    ("verify a --all", 2, "not both"),
    ("verify --space moon", 2, "project, user and system"),
    ("verify --trust no.toml", 2, "no.toml"),
    ("sign", 2, "--all"),
    ("sign .", 1, "rye keys generate"),
    ("sign . --key .ai/tools/my/greet.py", 3, "not an Ed25519"),
    ("keys show", 1, "rye keys generate"),
    ("keys show --owner x", 2, "--owner"),
    ("trust show", 2, "No key is named"),
    ("trust show ffffffffffffffff", 1, "No key ffffffffffffffff"),
    *((f"trust revoke{digest}", 2, "64 hex digits") for digest in ("", f" {'f' * 16}", f" {'F' * 64}")),
    ("trust add", 2, "No key document"),
    ("trust add no.toml", 2, "no.toml"),
    ("trust add .ai/tools/my/greet.py", 2, "not a key document"),
    ("bundle verify --folder none", 2, "no folder none"),
    ("bundle create --folder src/.ai --id ../x --key key.pem", 1, "Not an item id"),
    ("bundle create --folder src/.ai --key none.pem", 1, "none.pem"),
    # No bundle of one's own is looked for in the installed package.
    *((f"bundle {words} --key key.pem", 2, "Give --folder") for words in ("create --id extra", "create", "verify --id extra")),
    # Servers.
    ("review", 1, "Only a person at a terminal may open the pages"),
    ("serve", 2, "Say what to serve"),
    ("serve --agent-sandbox --port 70000", 2, "70000 is no port"),
    ("serve --agent-sandbox --project /no/such/folder", 2, "/no/such/folder"),
    ("serve|--agent-sandbox|--host|no such host|--port|0", 2, "Cannot listen"),
    ("mcp install", 2, "--client"),
    ("mcp install --client emacs", 2, "no client 'emacs'"),
    ("mcp install --client claude", 2, "Did you mean claude-code or claude-desktop?"),
    ("mcp uninstall --client claude", 2, "Did you mean claude-code or claude-desktop?"),
    ("mcp install --client claude-desktop --http 1", 2, "stdio"),
    ("mcp install --client goose --scope project", 2, "--scope user"),
    ("mcp install --client vscode --http 1 --write", 2, "--write"),
    ("mcp install --client codex --tools raed", 2, "Did you mean read"),
    ("mcp install --client codex --http here", 2, "HOST:PORT"),
    ("mcp --client codex", 2, "install"),
    ("mcp --write", 2, "install"),
    ("mcp --tools raed", 2, "Did you mean read"),
]


@pytest.mark.parametrize(("words", "code", "said"), ROWS)
def test_what_is_typed_wrong_is_answered_in_a_line_or_two(project, user_space, words, code, said):
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    put(project, "tools/my/greet.py", tool_text("my/greet"))
    put(project / "src", "tools/extra/one.py", signed(tool_text("extra/one")))
    trust_key()
    (project / "key.pem").write_bytes(MINE.pem)
    done = rye(*words.split("|" if "|" in words else None), cwd=project)
    assert (done.returncode, said in (done.stdout + done.stderr).decode()) == (code, True), done
    assert code == 0 or len(done.stderr.splitlines()) <= 2
    assert not code or "--json" in words or words == "" or done.stdout == b""
