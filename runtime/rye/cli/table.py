"""The verbs of `rye` and their options: data alone. `options.py` says what is made of it."""

from __future__ import annotations

from typing import Final

from rye.cli.options import JSON, PROJECT, Option, Verb, completion
from rye.cli.signing_table import SIGNING, TYPES

VERBS: Final = {
    "execute": Verb(
        "execute",
        "run a tool, such as rye/file-system/read",
        (
            Option("ITEM", "the item's id or short name, such as read (see `rye search`)", dest="item_id", completes="tool"),
            Option("--type T", "what the id names", choices=TYPES, default="tool"),
            Option(
                "[value | name=value…]",
                "a parameter; wins over --params. A path is tried from the current folder, then from the project root",
                dest="values",
            ),
            Option("--params JSON|@file|-", "all parameters: JSON, a file, or stdin"),
            PROJECT,
            Option("--dry-run", "verify, validate and confine, but do not run; a tool's own dry_run"),
            Option("--allow-unsigned", "run an unsigned tool you are building (terminal only)"),
            Option("--json", "print the whole response as JSON, and nothing else"),
        ),
        """\
A word is name=value, name=@file (the file's text; @- is standard input), name:=json, --name value (a switch: --name), or a
bare value. Bare values fill the required parameters in their order, then path, root or file_path. Behind -- a word is a
value unless it begins with a parameter's name. A tool goes by its id or by its last part; `rye ITEM …` is short for
`rye execute ITEM …`.

examples:
  rye read README.md limit=20
  rye edit_lines a.py changes='[{"line_id": "a1b2c3", "new_content": "x = 1"}]'
  rye write a.py content=@draft.py
  rye bash 'python -m pytest -q' timeout=600
  rye execute rye/core/signing-and-trust --type knowledge
  echo '{"file_path": "a.py", "content": "x = 1\\n"}' | rye execute rye/file-system/write --params -""",
        usage="rye [execute] ITEM [value | name=value | --name value …] [--type T] [--params JSON|@file|-]\n"
        "           [--project DIR] [--dry-run] [--json]",
        rest=True,
        passes=True,
    ),
    "search": Verb(
        "tools",
        "find tools, knowledge and directives by words",
        (
            Option("QUERY…", "what to look for"),
            Option("--scope S", "type and place, such as tool.rye.file-system.*"),
            Option("--category C", "only items in this category or below, such as rye/file-system"),
            Option("--space S", "only of this space: project, user or system", default="all"),
            Option("--type T", "only of this type", choices=TYPES),
            Option("--limit N", "most results", kind=int, default=10),
            PROJECT,
            Option("--json", "print the whole answer as JSON, and nothing else"),
        ),
        """\
QUERY is words, "a phrase", wild*, AND OR NOT in capitals, and parentheses; * is everything. Of plain words not every one
need be found: items with most of them come first. Unverified items are not searched; `rye verify` says why.
Exit code 0 if anything was found, 1 if nothing.

examples:
  rye search "edit a line by id"
  rye search 'trust AND NOT sign*' --type knowledge
  rye search '*' --scope 'tool.rye.file-system.*'""",
    ),
    "load": Verb(
        "tools",
        "print an item, or copy it to your project or user space",
        (
            Option("TYPE", "tool, knowledge or directive", completes="type"),
            Option("[ID]", "the item's id", dest="item_id", completes="item"),
            Option("--from S", "the space: project, user or system (default: the first)", dest="source"),
            Option("--to S", "copy it to this space", dest="destination", choices=("project", "user")),
            Option("--overwrite", "let the copy replace another file"),
            Option("--allow-downgrade", "let the copy be of a lower version than the one there"),
            PROJECT,
            Option("--json", "print text, metadata and signer as JSON, and nothing else"),
        ),
        """\
Only what is verified is printed. A copy has the same id and bytes, so its signature stays valid.

examples:
  rye load knowledge rye/file-system/file-operations          print an entry
  rye load tool my/category/tool --to user                    take a project's tool to your own space""",
    ),
    "mcp": Verb(
        "mcp",
        "serve the tools to an agent's client, or print its configuration",
        (
            Option("[ACTION]", "see below; without one it serves", choices=("install", "uninstall", "import")),
            Option("[NAME]", "with import: the server's name, mcp/NAME is its category"),
            Option("[COMMAND…]", "with import: what starts the server"),
            Option("--url URL", "with import: where the server is reached"),
            Option("--permissions P", "with import: what it may do, with commas between", default=""),
            Option("--key PEM", "with import: the private key to sign with"),
            Option(
                "--client NAME",
                "with install and uninstall: "
                "claude-code, claude-desktop, cursor, vscode, codex, gemini, opencode, copilot-cli, goose,"
                " zed, windsurf, cline, lm-studio",
                completes="client",
            ),
            Option(
                "--scope S",
                "with both: for all your projects (user, the default), or for this one",
                choices=("user", "project"),
            ),
            Option("--write", "with install: change the client's settings, and keep the old ones"),
            Option("--uvx", "with install: start it by uvx, in an environment of its own"),
            Option("--gate", "with install: write hooks of Claude Code that let no skill pass which skills.require refuses"),
            PROJECT,
            Option("--tools NAMES", "offer these tools only: names or ids, with commas between", default=""),
            Option("--read-only", "offer no tool that can change anything"),
            Option("--category C …", "offer the tools of this category too, such as my/tools"),
            Option("--meta", "offer the primary tools; they reach what is offered, no more"),
            Option("--allow-sign", "offer rye_sign; your configuration decides what it may"),
            Option("--structured", "for programs: answer with fields and list their schemas too"),
            Option("--http HOST:PORT", "listen there in place of standard input (default host: 127.0.0.1)"),
        ),
        """\
examples:
  rye mcp                                        serve the nearest project over standard input and output
  rye mcp --category rye/web --meta              offer more tools, and the primary tools with the same reach
  rye mcp --http 127.0.0.1:8765                  listen for clients on this machine that hold the printed token
  rye mcp --read-only --tools read,grep,ls       offer these only, none that changes anything
  rye mcp install --client claude-code           print what to tell the client
  rye mcp import files --permissions read -- node server.js .   another server's tools as signed items of this project
  rye mcp install --client codex --write         put it into the client's settings, which are kept beside
  rye mcp uninstall --client codex               take it out of them

The token is made anew at each start, or taken from RYE_MCP_TOKEN.""",
        usage="rye mcp [--project DIR] [--category C …] [--meta] [--allow-sign] [--structured] [--http HOST:PORT]\n"
        "       rye mcp install --client NAME [the same options]\n"
        "       rye mcp uninstall --client NAME [--scope user|project]\n"
        "       rye mcp import NAME [--permissions P,…] --url URL | -- COMMAND …",
    ),
    "tools": Verb(
        "tools",
        "list the tools of a project, with schemas and signers",
        (
            Option("[CATEGORY…]", "list the tools in it or below, such as rye/web", dest="categories"),
            Option("--category C …", "the same, as an option; repeatable"),
            Option("--all", "every tool"),
            Option("--format F", "openai, anthropic, gemini or mcp: print the tools as it takes them"),
            PROJECT,
            Option("--json", "print a list with schemas, docstrings, digests and signers"),
        ),
        """\
examples:
  rye tools                                         the categories
  rye tools rye/file-system                         the tools of a category and below; several may be named
  rye tools --all                                   every tool
  rye tools rye/file-system --json                  all that is known of each
  rye tools rye/file-system --format openai

`rye help TOOL` lists a tool's parameters. --format prints the list that the interface takes, of the tools that can run;
`rye tools --json` has the id of each name. A tool that is not valid shows its id and verdict only.""",
    ),
    "new": Verb(
        "authoring",
        "make a new tool to begin with",
        (
            Option("KIND", "what to make", choices=("tool",)),
            Option("ID", "category and name, such as my/text/word_count", dest="item_id"),
            Option(
                "--runtime R",
                "python (default), bash, node, http, or the id of a runtime, such as my/runtimes/lua",
                default="python",
            ),
            PROJECT,
            Option("--json", "print what was made as JSON, and nothing else"),
        ),
        """\
Writes .ai/tools/ID.py (or .sh, .js, .yaml), a whole tool that works, and tests/test_ID.py; no file is overwritten. For a
runtime of your own it writes the header, and the program is yours.

examples:
  rye new tool my/text/word_count
  rye new tool my/text/word_count --runtime bash
  rye new tool my/text/word_count --runtime my/runtimes/lua""",
    ),
    "lint": Verb(
        "authoring",
        "check that tools are well made",
        (
            Option("[TARGET…]", "item id, file, folder or glob", dest="targets", completes="id"),
            Option("--all", "every tool of every space"),
            PROJECT,
            Option("--json", "print a list of findings, and nothing else"),
        ),
        """\
A TARGET is an item id, a file, a folder or a glob; without one, every tool of the project. Nothing is run, and the files need
not be signed. One line for each finding: path:line: code message. Exit code 0 if there is none, 1 if there is, 2 for no tool.

examples:
  rye lint                                    every tool of the project
  rye lint my/text/word_count                 one, by its id
  rye lint .ai/tools/my --json                a folder; findings as JSON
  rye lint --all                              those of the user's space and of the system bundle too""",
    ),
    "prompt": Verb(
        "tools",
        "print a directive's instructions, such as swe, for an agent's system prompt",
        (
            Option("[NAME]", "a directive of rye/agent, such as swe; or a whole id; none: list them"),
            PROJECT,
            Option("--json", "print the whole response as JSON, and nothing else"),
        ),
        """\
example:
  rye prompt swe >> AGENTS.md""",
    ),
    **SIGNING,
    "completion": completion("rye"),
    "doctor": Verb(
        "doctor",
        "check this machine: sandbox, programs, keys, clients",
        (PROJECT, Option("--json", "print the findings as JSON, and nothing else")),
        """\
Exit code 0 when nothing is a problem, 1 otherwise; a note is no problem.""",
    ),
    "help": Verb(
        "help",
        "say what a verb or a tool does; --man prints the manual page",
        (
            Option("[VERB | TOOL]", "a verb, or a tool's id or short name", dest="name", completes="verb"),
            Option("--man", "print the manual page of rye, in the form that `man` reads"),
            PROJECT,
            Option("--json", "print a tool's schema, or the verbs, as JSON and nothing else"),
        ),
        """\
examples:
  rye help                   the verbs
  rye help execute           a verb; so does `rye execute --help`
  rye help edit_lines        a tool: its parameters, and what its signed text says; so does `rye edit_lines --help`
  rye help --man > rye.1     the manual page""",
    ),
    "log": Verb(
        "changes",
        "what was changed here: by tools, by commands, and by others in between",
        (
            Option("[FILE]", "only the changes of this file, also under earlier names", dest="path"),
            Option("--limit N", "most changes to show", kind=int, default=20),
            Option("--since ID", "only what was changed after this change"),
            Option("--new", "only what was changed since the last `rye log --new`"),
            Option("--actor TEXT", "only changes by callers whose name holds this"),
            PROJECT,
            JSON,
        ),
        """\
  rye log                the newest 20 changes
  rye log src/app.py     those of one file
  rye log --new          what came since the last `rye log --new`
  rye log --json | jq -r '.[].id'
`rye diff ID` shows a change, `rye undo entry_id=ID` takes it back.""",
    ),
    "diff": Verb(
        "changes",
        "a recorded change, or what differs between two points of the record",
        (
            Option("[ID[..ID]]", "see below", dest="points", default=""),
            Option("[FILE]", "only this file", dest="path"),
            Option("--new", "see below"),
            PROJECT,
            JSON,
        ),
        """\
  rye diff               the last change
  rye diff ID            one change
  rye diff ID..          everything that was changed after ID, until now
  rye diff ID..ID        what was changed after the first, up to the second and with it
  rye diff --new         what was changed since the last `rye log --new`
The answer is a patch in git's form: `rye diff ID | git apply -R` works where undo is not at hand.""",
    ),
    "blame": Verb(
        "changes",
        "who wrote each line of a file",
        (
            Option("FILE…", "a file; with --agent-trace several", dest="path"),
            Option("--agent-trace", "print an Agent Trace record (version 0.1.0) of the files"),
            PROJECT,
            JSON,
        ),
        """\
  rye blame src/app.py               each line with its change, who made it and when
  rye blame --agent-trace src/*.py   the same of several files as JSON, for other programs
A line stays its writer's when it moves, is indented anew or formatted. "-" is older than the record: `git blame` knows more
than it.""",
    ),
    "review": Verb(
        "changes",
        "a page on this machine that shows what was changed, and takes it back",
        (Option("--port N", "the port to listen at (default: any free one)", kind=int, default=0), PROJECT),
        """\
  rye review             open the address that it prints in a browser
It needs a terminal: the address that it prints opens the pages for whoever has it, once, and a key is approved on them with a
code that is shown here. The pages load nothing from elsewhere. Press ? on a page for its keys.""",
    ),
    "state": Verb(
        "state",
        "what is stored for projects, and how large; remove it, or give a moved project its own",
        (
            Option("[ACTION]", "see below", choices=("list", "prune", "adopt"), default="list"),
            Option("[ID]", "adopt: a state, as list names it"),
            Option("--max-mb N", "prune: what all state may take together", kind=int),
            PROJECT,
            Option("--json", "list: print JSON and nothing else"),
        ),
        """\
  list       the state that is stored, with its size and the folder it was made for; `lost` says that this folder is not there
             any more; the default
  prune      remove all lost state; with --max-mb also the state of projects that were not used for longest, until all state
             takes no more. Their changes cannot be undone afterwards, and their jobs are forgotten
  adopt ID   give this project the lost state ID: its changes (undo), jobs, patches and line IDs""",
    ),
    "uninstall": Verb(
        "state",
        "what rye keeps outside of the program; remove what you name of it",
        (
            Option("--state", "the record of changes of all projects, jobs and line IDs"),
            Option("--keys", "your own key pair"),
            Option("--trust", "keys that you trust, approvals and revocations"),
            Option("--settings", "your settings and secrets"),
            Option("--items", "tools, knowledge and directives of your own space"),
            Option("--caches", "caches, those of projects too"),
            Option("--clients", "the entries in settings of clients that count for all projects"),
            Option("--all", "all of these"),
            Option("--yes", "do not ask"),
            JSON,
        ),
        """\
Without an option it lists what is kept, and removes nothing. A person at a terminal removes. What lies in a project is
`yours` and stays, but for .ai/cache. The last line says how the program itself is removed.

examples:
  rye uninstall                       what is kept where
  rye uninstall --clients --caches    no client starts it any more; keys and the record stay
  rye uninstall --all""",
    ),
    "serve": Verb(
        "mcp",
        "be the runtime inside an agent's sandbox (kubernetes-sigs/agent-sandbox)",
        (
            Option("--agent-sandbox", "serve the contract of kubernetes-sigs/agent-sandbox"),
            PROJECT,
            Option("--host HOST", "where to listen; 0.0.0.0 lets other machines in", default="127.0.0.1"),
            Option("--port N", "the port, 0 for a free one", kind=int, default=8888),
            Option("--no-token", "let in whoever reaches the port"),
            Option("--allow-host NAME …", "accept this Host header too, such as a service's name; '*' for any"),
        ),
        """\
It answers /execute, /upload, /download/PATH, /list/PATH, /exists/PATH and a health check at /, as that project's clients ask.
Commands run by the tool bash, under its sandbox and settings. Files stay below the project's root. Every change is recorded:
`rye log` and `rye undo` know it.

It listens on this machine alone, and clients send a token: `Authorization: Bearer TOKEN`, made anew at each start or taken
from RYE_SANDBOX_TOKEN. In a pod, where only the router or a network policy lets clients in:

  rye serve --agent-sandbox --host 0.0.0.0 --port 8888 --no-token --allow-host '*'

Whoever reaches such a port runs commands in the project. Nothing is encrypted: that is the router's or the gateway's part.""",
    ),
    "fleet": Verb(
        "fleet",
        "make calls in many workspaces, on many processes; each edit lands once",
        (
            Option("ACTION", "run the jobs of a file", choices=("run",)),
            Option("JOBS.jsonl", "a file of jobs, one JSON object a line", dest="jobs"),
            Option("--workers N", "processes on this machine (default: one for each processor)", kind=int),
            Option("--scheduler ADDRESS", "use the workers of this Dask scheduler"),
            Option("--out FILE", "a new file for the results (default: standard output)"),
            Option("--resume", "go on with the run whose results --out names"),
            Option("--json", "print the counts at the end as JSON; goes with --out"),
        ),
        """\
A job file has one JSON object a line: a workspace (relative to the file) and the calls to make in it, one after the other:

  {"workspace": "w/1", "calls": [
     {"item_id": "rye/file-system/edit_lines",
      "parameters": {"file_path": "a.py", "changes": [{"find": "old", "replace": "new"}]}},
     {"item_id": "rye/bash/bash", "parameters": {"command": "python -m pytest -q"}, "repeat": true}]}

  (all on one line). More fields of a job: "id" (your name for it), "on_error": "stop" (default) or "continue",
  "repeat": true for all its calls.

What holds:
  Each edit lands once, whatever dies and however often a job is handed out again: the journal knows the call.
  A command (bash, other signers' tools) that was cut off is reported as "unknown". It is run again only with "repeat": true.
  Jobs of one workspace run one after the other, in the order of the file. Workspaces run beside each other.
  Results are JSON lines, in the order in which jobs end; "status" is done, failed or unknown.
  Ctrl-C ends what runs and keeps the results; --resume does the rest, and repeats nothing that was done.

examples:
  rye fleet run jobs.jsonl --out results.jsonl
  rye fleet run jobs.jsonl --out results.jsonl --resume
  rye fleet run jobs.jsonl --scheduler tls://10.0.0.1:8786 --out results.jsonl

Workers of a cluster need this package, the workspaces, and one shared USER_SPACE: it holds the journals. Whoever reaches a Dask
scheduler can run programs on its workers: use TLS. Exit codes: 0 all done, 1 some failed or unknown, 2 usage, 130 Ctrl-C.""",
    ),
}

__all__ = ["TYPES", "VERBS"]
