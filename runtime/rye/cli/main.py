"""The command `rye`: parse, call one function, print. Sub-commands are loaded when they are used.

It also starts and ends a command's process, both without work that a short command does not need.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from rye.errors import RyeError, TrustError, UsageError

if TYPE_CHECKING:
    import argparse

    from rye.cli.shared import Plain, Verb


# Objects between two collections: importing makes tens of thousands, hardly one of which is garbage.
_ALLOCATIONS = 100_000


def run(main: Callable[[], int]) -> NoReturn:
    """Be a command: call `main`, then end the process with its exit code.

    Collecting garbage while modules are imported and taking every module apart at the end takes 12 ms. The process skips both,
    unless a thread or a function of `atexit` waits for the end.
    """
    # Raised, not switched off: a command that runs for long must still collect its garbage.
    gc.set_threshold(_ALLOCATIONS)
    code = main()
    if not _has_pending_work():
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)
        # Skips the teardown of all modules; the streams were flushed above, since `_exit` does not.
        os._exit(code)
    sys.exit(code)


def _has_pending_work() -> bool:
    """Tell whether something is still to be done at the end: by a thread, or a function registered for it."""
    if atexit._ncallbacks():  # noqa: SLF001 - there is no public way to ask
        return True
    # Asked of `sys.modules`, as importing `threading` only to find no thread would cost time.
    threading = sys.modules.get("threading")
    return threading is not None and any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread())


# verb: (module of this package, summary); the module's VERBS says the rest.
_VERBS = {
    "execute": ("verbs.execute", "run a tool, such as rye/file-system/read"),
    "search": ("verbs.search_load", "find tools, knowledge and directives by words"),
    "load": ("verbs.search_load", "print an item, or copy it to your project or user space"),
    "mcp": ("verbs.mcp", "serve the tools to an agent's client, or print its configuration"),
    "tools": ("verbs.tools", "list the tools of a project, with schemas and signers"),
    "new": ("verbs.authoring", "make a new tool to begin with"),
    "lint": ("verbs.authoring", "check that tools are well made"),
    "prompt": ("verbs.tools", "print a directive's instructions, such as swe, for an agent's system prompt"),
    "verify": ("verbs.signing", "check signatures of items and files"),
    "sign": ("verbs.signing", "sign items and files"),
    "trust": ("verbs.trust", "decide whose items may run"),
    "bundle": ("verbs.bundle", "create, verify or inspect a bundle's manifest"),
    "lock": ("verbs.bundle", "pin a tool to the digests of its chain"),
    "completion": ("verbs.completion", "completion of names for bash, zsh and fish"),
    "keys": ("verbs.signing", "make or show your own key"),
    "doctor": ("verbs.doctor", "check this machine: sandbox, programs, keys, clients"),
    "help": ("verbs.help", "say what a verb or a tool does; --man prints the manual page"),
    "log": ("verbs.changes", "what was changed here: by tools, by commands, and by others in between"),
    "diff": ("verbs.changes", "a recorded change, or what differs between two points of the record"),
    "blame": ("verbs.changes", "who wrote each line of a file"),
    "review": ("verbs.changes", "a page on this machine that shows what was changed, and takes it back"),
    "state": ("verbs.state", "what is stored for projects, and how large; remove it, or give a moved project its own"),
    "serve": ("verbs.serve", "be the runtime inside an agent's sandbox (kubernetes-sigs/agent-sandbox)"),
    "fleet": ("verbs.fleet", "make calls in many workspaces, on many processes; each edit lands once"),
    "registry": ("verbs.registry", "share signed items: push, pull, search, inspect"),
}
_EPILOG = """\
examples:
  rye tools                              what can be run here
  rye read README.md limit=20            a tool by its short name, here rye/file-system/read
  rye help grep                          what a verb or a tool does, and its parameters
  rye verify --all                       check every item

Exit codes: 0 success, 1 the tool said no, 2 usage, 3 refused by trust; 130 Ctrl-C, 141 the reader of a pipe went away;
of `rye bash` the command's own.
Colours: --color auto|always|never before or behind the verb, NO_COLOR, FORCE_COLOR. The project is the nearest folder above
with .git, or with items in .ai."""
COLOR_OPTION = "--color"


def top_parser() -> argparse.ArgumentParser:
    """Return the parser of the command itself: its help lists the verbs."""
    from rye._version import __version__

    verb_lines = "\n".join(f"  {name:<10} {summary}" for name, (_, summary) in _VERBS.items())
    parser = make_parser(
        prog="rye",
        usage="rye VERB …\n       rye TOOL [value | name=value …]",
        description=f"Signed workspace tools for coding agents.\n\nverbs:\n{verb_lines}",
        epilog=_EPILOG,
        formatter_class=help_formatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"rye {__version__}")
    add_color(parser)
    parser.add_argument("verb", nargs="?", help="==SUPPRESS==")
    return parser


def add_color(parser: argparse.ArgumentParser) -> None:
    """Let a parser take `--color`."""
    parser.add_argument(
        COLOR_OPTION, metavar="WHEN", choices=("auto", "always", "never"), help="colours: auto (at a terminal), always or never"
    )


def verb_of(name: str) -> Verb:
    """Return a verb by its name, which `verb_names` has."""
    found: Verb = import_module(f"rye.cli.{_VERBS[name][0]}").VERBS[name]
    return found


def parser_of(name: str, verb: Verb, prog: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    parser = make_parser(prog=prog or f"rye {name}", description=verb.summary, formatter_class=help_formatter)
    verb.build(parser)
    add_color(parser)
    return parser


def summaries() -> dict[str, str]:
    """Return what each verb does, by its name."""
    return {name: summary for name, (_, summary) in _VERBS.items()}


def verb_names() -> list[str]:
    """Return the verbs."""
    return list(_VERBS)


def option_names(verb: str) -> list[str]:
    """Return the options of a verb; [] for one that does not exist."""
    if verb not in _VERBS:
        return []
    parser = parser_of(verb, verb_of(verb))
    return [word for action in parser._actions for word in action.option_strings]  # noqa: SLF001 - argparse has no other way


def command() -> NoReturn:
    """Be the installed command `rye`."""
    run(main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run_command("rye", lambda: _run(words), as_json="--json" in words)


def run_command(command: str, run: Callable[[], int], *, as_json: bool = False) -> int:
    """Do what a command was asked for; return its exit code.

    Whatever goes wrong is said in one line on standard error; with `as_json` a refusal is JSON on standard output, too.
    """
    # Before anything can print: a parent that closed the descriptors leaves the streams None.
    _repair_streams()
    _drop_current_folder_from_path()
    try:
        return _guarded(command, run, as_json=as_json)
    except KeyboardInterrupt:
        # The shell's code for a process that SIGINT ended (128 + 2).
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The shell's code for a process that SIGPIPE ended (128 + 13).
        return 141
    except OSError as err:
        from rye.cli.shared import harmless

        print(harmless(f"{command}: {_message(err, _discard_stdout())}"), file=sys.stderr)
        return 1


def _message(err: OSError, unprinted: OSError | None) -> str:
    from rye.cli.shared import UnprintedError

    unprinted = err if isinstance(err, UnprintedError) else unprinted
    if unprinted is not None:
        return (
            f"The answer cannot be printed: {unprinted.strerror or unprinted}. What the command did, if anything, remains done."
        )
    where = f"{err.filename!r}: " if err.filename is not None else ""
    return f"{where}{err.strerror or err}. Check the folder, the disk and the permissions."


def _guarded(command: str, run: Callable[[], int], *, as_json: bool) -> int:
    """Run the command, and report a refusal. The answer is flushed here, also help, so that a failed write is an error."""
    try:
        return run()
    except RyeError as err:
        from rye.cli.shared import harmless, print_json

        if as_json:
            details = {"details": err.details} if err.details else {}
            print_json({"status": "error", "error": str(err), "code": err.code, **details})
        # The one place where all refusals are printed: a path or a word in one may hold anything.
        print(harmless(f"{command}: {err}"), file=sys.stderr)
        return 3 if isinstance(err, TrustError) else 2 if isinstance(err, UsageError) else 1
    finally:
        sys.stdout.flush()


def _run(words: list[str]) -> int:
    when, words = color_before(words)
    choose_color(when)
    if not words or (words[0].startswith("-") and words[0] != "--"):
        parser = top_parser()
        parser.parse_args(words)
        parser.print_help()
        return 0 if words else 2
    # A tool by its short name or id: `rye read …` is `rye execute read …`.
    short = words[0] not in _VERBS
    name, rest = ("execute", words) if short else (words[0], words[1:])
    at = rest.index("--") if "--" in rest else len(rest)
    if name == "execute" and _asks_for_tool(rest[:at]):
        from rye.cli.verbs import help as cli_help

        return cli_help.explain_tool(rest[:at], short=short)
    verb = verb_of(name)
    typed = rest[:at] if verb.rest else rest
    # What is no option of ours is one of the tool's, whose schema is not known yet.
    own, typed = verb.own(typed) if verb.own else ([], typed)
    args = None if own or not typed else without_options(verb.plain, typed, anything=verb.own is not None)
    if args is None:
        args = parsed(parser_of(name, verb, f"rye {words[0]}"), [*own, *(typed[:1] if verb.own else typed)])
        if verb.own:
            args.values = typed[1:]
    args.rest, args.short = rest[at + 1 :] if verb.rest else [], short
    choose_color(args.color or when)
    return verb.run(args)


def _asks_for_tool(words: Sequence[str]) -> bool:
    """Tell whether help is asked for a tool, as by `rye read --help`."""
    return ("--help" in words or "-h" in words) and any(word[:1] != "-" for word in words)


def color_before(words: list[str]) -> tuple[str | None, list[str]]:
    """Return what `--color` before the verb says, and the other words; what it cannot mean is left for the parser."""
    if words[:1] == [COLOR_OPTION] and words[1:2] in (["auto"], ["always"], ["never"]):
        return words[1], words[2:]
    if words and words[0].partition("=")[0] == COLOR_OPTION and words[0].partition("=")[2] in ("auto", "always", "never"):
        return words[0].partition("=")[2], words[1:]
    return None, words


def choose_color(when: str | None) -> None:
    """Set what `--color` said; None: `auto`."""
    from rye.cli import terminal

    terminal.choose(when or "auto")


def make_parser(**options: Any) -> argparse.ArgumentParser:
    """Return a parser whose errors cannot steer a terminal, whatever words they name; options as `argparse` takes them."""
    import argparse

    from rye.cli.shared import harmless

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(harmless(message))

    return Parser(**options)


def help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return what formats help; argparse would import shutil only to learn the width, which takes 2 ms."""
    import argparse

    columns = os.environ.get("COLUMNS", "")
    try:
        width = int(columns) if columns.isdigit() and columns != "0" else os.get_terminal_size(1).columns
    except OSError:
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=max(width, 40) - 2)


def without_options(plain: Plain | None, words: Sequence[str], *, anything: bool = False) -> argparse.Namespace | None:
    """Return what the parser of a verb would for words of which none is an option; None where it must be asked.

    With `anything` words that look like options are not the verb's.

    Most calls are such, and loading argparse, gettext and locale takes a tenth of a cold command.
    """
    if plain is None or not words or (not anything and any(word[:1] == "-" for word in words)):
        return None
    found = plain(words)
    return None if found is None else cast("argparse.Namespace", SimpleNamespace(**found))


def parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse words of which options may stand before, between and after the rest; none stands behind `--`."""
    at = words.index("--") if "--" in words else len(words)
    # argparse drops `--` where options are mixed with the rest. So what is behind it goes through as words that are no options.
    behind = {f"\0{number}": word for number, word in enumerate(words[at + 1 :])}
    words = [*words[:at], *behind]
    # Without options both ways are the same, and the first does without composing the usage, which takes 2 ms.
    args = parser.parse_intermixed_args(words) if any(word[:1] == "-" for word in words) else parser.parse_args(words)
    for name, value in vars(args).items():
        if isinstance(value, str):
            setattr(args, name, behind.get(value, value))
        elif isinstance(value, list):
            setattr(args, name, [behind.get(one, one) for one in value])
    return args


def _repair_streams() -> None:
    """Give a command that was started with closed streams some, and let none fail at a character it cannot show."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - for good
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal of another encoding would otherwise raise UnicodeEncodeError in the middle of an answer.
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_stdout() -> OSError | None:
    """Drop what is still to be printed, and return why, if that is what failed: Python would try again at the end."""
    try:
        sys.stdout.flush()
    except OSError as err:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return err
    return None


def _drop_current_folder_from_path() -> None:
    """Modules are never taken from the folder that the command is called in."""
    import site

    try:
        here = os.getcwd()
    except OSError:
        # The folder was deleted meanwhile.
        here = ""
    # A virtual environment may lie in the current folder: its own packages must stay importable.
    installed = site.getsitepackages()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".", here) or entry in installed]
