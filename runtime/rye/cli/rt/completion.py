"""`rt completion`: shell completion of verbs, options and files."""

from __future__ import annotations

import os

from rye.cli.rt import verbs
from rye.errors import UsageError

_SCRIPTS = {
    "bash": """\
_rt() {
    local IFS=$'\\n'
    COMPREPLY=($(rt completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _rt rt
""",
    "zsh": """\
#compdef rt
_rt() {
    local -a found
    found=(${(f)"$(rt completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _rt rt
""",
    "fish": """\
complete -c rt -a '(rt completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
_HELP = """\
usage: rt completion [bash|zsh|fish]

bash: eval "$(rt completion bash)"      in ~/.bashrc
zsh:  eval "$(rt completion zsh)"       in ~/.zshrc, after compinit
fish: rt completion fish | source       in ~/.config/fish/config.fish"""


def run(words: list[str]) -> int:
    """Print a shell's script, or with `--words` what can stand for the last of them."""
    if words[:1] == ["--words"]:
        print("\n".join(candidates(words[1:])))
    elif words in (["--help"], ["-h"]):
        print(_HELP)
    else:
        shell = words[0] if words else os.path.basename(os.environ.get("SHELL", "")) or "bash"
        if len(words) > 1 or shell not in _SCRIPTS:
            raise UsageError(
                "unknown_shell", f"No completion for {' '.join(words) or shell!r}.", f"Name {', '.join(_SCRIPTS)}."
            )
        print(_SCRIPTS[shell], end="")
    return 0


def candidates(words: list[str]) -> list[str]:
    """Return what can stand for the last word of a command line (without `rt` itself), sorted; [] leaves it to files."""
    last = words[-1] if words else ""
    if len(words) <= 1:
        known = [*verbs.VERBS, "completion"]
    elif words[0] == "completion":
        known = [*_SCRIPTS]
    elif words[0] == "scroll" and len(words) == 3 and last in ("", "+", "-"):
        known = ["+", "-"]
    elif words[0] in verbs.VERBS and last.startswith("-"):
        known = verbs.options_of(words[0])
    else:
        known = []
    return sorted(name for name in known if name.startswith(last))
