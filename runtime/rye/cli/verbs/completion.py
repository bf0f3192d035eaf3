"""`rye completion` and `rt completion`: what completes the words of a shell's line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

from rye.cli import options
from rye.cli.options import Verb
from rye.cli.process import EXIT_OK
from rye.cli.table import TYPES, VERBS
from rye.errors import UsageError

# COMMAND is the command's name.
_SCRIPTS = {
    "bash": """\
_COMMAND() {
    local IFS=$'\\n'
    COMPREPLY=($(COMMAND completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _COMMAND COMMAND
""",
    "zsh": """\
#compdef COMMAND
_COMMAND() {
    local -a found
    found=(${(f)"$(COMMAND completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -S '' -- $found; else _files; fi
}
compdef _COMMAND COMMAND
""",
    "fish": """\
function __COMMAND_words
    set -l found (COMMAND completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c COMMAND -f -a '(__COMMAND_words)'
""",
}


def run_completion(args: SimpleNamespace) -> int:
    """Run `rye completion`; return its exit code."""
    return printed("rye", args, candidates)


def printed(command: str, args: SimpleNamespace, found: Callable[[list[str]], list[str]]) -> int:
    """Print a shell's script for a command, or what can stand for the last of `--words`; return the exit code."""
    if args.words:
        print("\n".join(found(args.words)))
        return EXIT_OK
    shell = args.shell or os.path.basename(os.environ.get("SHELL", "")) or "bash"
    if shell not in _SCRIPTS:
        raise UsageError("unknown_shell", f"No completion for {shell!r}.", f"Name {', '.join(_SCRIPTS)}.")
    print(_SCRIPTS[shell].replace("COMMAND", command), end="")
    return EXIT_OK


def candidates(words: list[str], verbs: Mapping[str, Verb] = VERBS) -> list[str]:
    """Return what can stand for the last word of a command line (without the command), sorted; [] leaves it to files."""
    last = words[-1] if words else ""
    own = verbs is VERBS
    if len(words) <= 1:
        known = [*(() if "/" in last else verbs), *(_things("tool", last) if own else ())]
    else:
        # `rye read …` is `rye execute read …`.
        words = words if words[0] in verbs or not own else ["execute", *words]
        known, kind = options.completed(verbs[words[0]], words[1:]) if words[0] in verbs else ([], "")
        known = [*known, *_things(kind, last)]
        if words[0] == "load" and len(words) == 3:
            known = _ids(words[1]) if words[1] in TYPES else []
        elif words[0] == "execute" and own and len(words) > 2 and (not known or last[:1] == "-"):
            known += _parameters(words[1], options=last[:1] == "-")
    # Bash puts a word into the line as it is: a tool's parameter may be called `x; command`.
    return sorted({name for name in known if name.startswith(last) and re.fullmatch(r"[\w./:=+-]*", name)})


def _things(kind: str, last: str) -> Sequence[str]:
    """Return the names of one kind, as `Option.completes` says it."""
    if kind == "client":
        from rye.mcp_server.client_config import CLIENTS

        return [*CLIENTS]
    if kind == "type":
        return TYPES
    if kind in ("tool", "verb", "id"):
        # The last part of a tool's id stands for it alone; whole ids come once the word has a slash.
        tools = _ids(*(TYPES if kind == "tool" and "/" in last else TYPES[:1]))
        short = {item_id.rpartition("/")[2] for item_id in tools} if "/" not in last and kind != "id" else ()
        return [*(VERBS if kind == "verb" else ()), *short, *(tools if "/" in last or kind == "id" else ())]
    return ()


def _ids(*types: str) -> list[str]:
    from rye.items import spaces
    from rye.workspace.workspace import find_root

    search_path = spaces.spaces(find_root())
    return sorted({item_id for item_type in types for item_id, _, _ in spaces.served_items(item_type, search_path)})


def _parameters(item_id: str, *, options: bool) -> list[str]:
    """Return a tool's parameters as words: `limit=`, or as options `--limit` and its letters."""
    from rye.cli import words
    from rye.errors import RyeError
    from rye.executor import executor
    from rye.workspace.workspace import find_root

    project = find_root()
    try:
        tool = executor.prepare(words.tool_id(item_id, project) or item_id, project).ready.tool
    except RyeError:
        return []
    names = tool.schema.get("properties", {})
    return (
        [*(words.option(name) for name in names), *(f"-{one}" for one in tool.letters)] if options else [f"{n}=" for n in names]
    )
