"""`rye completion`: shell completion of verbs, options, item ids, parameter names and files."""

from __future__ import annotations

import argparse
import os

from rye.cli.shared import EXIT_OK, Verb
from rye.errors import UsageError

_SCRIPTS = {
    "bash": """\
_rye() {
    local IFS=$'\\n'
    COMPREPLY=($(rye completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _rye rye
""",
    "zsh": """\
#compdef rye
_rye() {
    local -a found
    found=(${(f)"$(rye completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -S '' -- $found; else _files; fi
}
compdef _rye rye
""",
    "fish": """\
function __rye_words
    set -l found (rye completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c rye -f -a '(__rye_words)'
""",
}
_EPILOG = """\
bash: eval "$(rye completion bash)"      in ~/.bashrc
zsh:  eval "$(rye completion zsh)"       in ~/.zshrc, after compinit
fish: rye completion fish | source       in ~/.config/fish/config.fish"""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("shell", nargs="?", choices=tuple(_SCRIPTS), help="print the script for this shell")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help="print what can stand for the last of these words")


def _run(args: argparse.Namespace) -> int:
    if args.words is not None:
        print("\n".join(candidates(args.words)))
    else:
        shell = args.shell or os.path.basename(os.environ.get("SHELL", "")) or "bash"
        if shell not in _SCRIPTS:
            raise UsageError("unknown_shell", f"No completion for {shell!r}.", f"Name {', '.join(_SCRIPTS)}.")
        print(_SCRIPTS[shell], end="")
    return EXIT_OK


def candidates(words: list[str]) -> list[str]:
    """Return what can stand for the last word of a command line (without `rye` itself), sorted; [] leaves it to files."""
    from rye.cli import main

    last = words[-1] if words else ""
    # No module beyond argparse is loaded for a verb: the shell waits for this at each Tab.
    if len(words) <= 1:
        # Names of tools too, and their ids once the word has a slash.
        return _starting(_tool_ids() if "/" in last else [*main.verb_names(), *_short_names()], last)
    if words[0] == "help" and len(words) == 2:
        return _starting([*main.verb_names(), *_short_names()], last)
    if words[0] not in main.verb_names():
        # `rye read …` is `rye execute read …`.
        words = ["execute", *words]
    if words[0] == "load" and not last.startswith("-"):
        return _starting(_load_words(words), last)
    if words[0] == "execute" and len(words) == 2 and not last.startswith("-"):
        return _starting([*_ids("tool", "knowledge", "directive"), *(() if "/" in last else _short_names())], last)
    if words[0] == "lock" and len(words) == 2 and not last.startswith("-"):
        return _starting(_tool_ids(), last)
    if words[0] == "execute" and not last.startswith("-") and "=" not in last:
        return _starting([f"{name}=" for name in _parameters(words[1])], last)
    if words[0] in ("verify", "sign") and not last.startswith("-"):
        return _starting(_tool_ids(), last)
    return _starting(main.option_names(words[0]), last) if last.startswith("-") else []


def _starting(names: list[str], start: str) -> list[str]:
    return sorted(name for name in names if name.startswith(start))


def _tool_ids() -> list[str]:
    return _ids("tool")


def _short_names() -> list[str]:
    """Return the last parts of the tools' ids, which stand for a tool alone."""
    return sorted({item_id.rpartition("/")[2] for item_id in _tool_ids()})


def _ids(*types: str) -> list[str]:
    from rye.items import spaces
    from rye.workspace.workspace import find_root

    search_path = spaces.spaces(find_root(os.getcwd()))
    return sorted({item_id for item_type in types for item_id, _, _ in spaces.served_items(item_type, search_path)})


def _load_words(words: list[str]) -> list[str]:
    """Return the types, then the ids of the type that was given."""
    types = ["tool", "knowledge", "directive"]
    return types if len(words) == 2 else _ids(words[1]) if len(words) == 3 and words[1] in types else []


def _parameters(item_id: str) -> list[str]:
    from rye.cli import words
    from rye.errors import RyeError
    from rye.executor import executor
    from rye.workspace.workspace import find_root

    project = find_root(os.getcwd())
    try:
        tool = executor.prepare(words.tool_id(item_id, project) or item_id, project).ready.tool
    except RyeError:
        return []
    return list(tool.schema.get("properties", {}))


VERBS = {"completion": Verb("Print a shell's completion script.", _build, _run)}
