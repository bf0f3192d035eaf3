"""Verbs and their options as data, and what is made of them: the parsed words, usage, help, and what completes a word.

The form of an option is what its help shows, and says how many words it takes:

    "--json"              a switch              "FILE"       one word
    "-n, --limit N"       a value               "[FILE]"     one word or none
    "--category C …"      a value, repeatable   "FILE…"      one word or more
    "--project [DIR]"     a value or none       "[FILE…]"    any number of words
    "--words WORD…"       all words behind it
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from rye.errors import UsageError
from rye.plain_class import Record

# The choices of a word stand in its place where they are no longer.
_NARROWEST = 40


class Option(Record):
    """An option, or a word without a name.

    Attributes:
        form: as in the module's documentation.
        help: what it does.
        kind: what its text becomes: `str` or `int`.
        default: what stands where it is not given.
        choices: the texts that it may have; () for any.
        dest: the name of the parsed value, where it is not the form's own.
        completes: what completes it beside its choices: `tool`, `item`, `verb` or `client`; "" for files.
    """

    form: str
    help: str
    kind: type = str
    default: Any = None
    choices: Sequence[str] = ()
    dest: str = ""
    completes: str = ""

    @property
    def names(self) -> list[str]:
        """The names, such as `-n` and `--limit`; [] for a word without a name."""
        return [part.split()[0] for part in self.form.split(", ")] if self.form[0] == "-" else []

    @property
    def value(self) -> str:
        """What the help calls its value, `N` or `[DIR]`; "" for a switch."""
        return self.form.rpartition(", ")[2].partition(" ")[2] if self.form[0] == "-" else self.form

    @property
    def about(self) -> str:
        """What its help says: what it does, what it may be, and what it is where it is not given."""
        said = ["" if shown(self) != self.form else ", ".join(self.choices), f"default {self.default}" if self.default else ""]
        facts = "; ".join(filter(None, said))
        return f"{self.help} ({facts})" if facts else self.help

    @property
    def many(self) -> bool:
        """Whether it is a list."""
        return self.value.rstrip("]").endswith("…")

    @property
    def key(self) -> str:
        """The name of the parsed value."""
        name = self.names[-1].lstrip("-") if self.names else self.form.strip("[]").rstrip("…").lower()
        return self.dest or name.replace("-", "_")


class Verb(Record):
    """A verb of a command.

    Attributes:
        module: of `rye` the module that has its function `run_NAME`, of `rt` its tool.
        summary: what it does, for lists and its help.
        options: what it takes, beside `--help` and `--color`.
        notes: text behind the help of its options.
        usage: how it is called, where that is not simply the list of its options.
        rest: whether words behind `--` are the value `rest`, as they stand; else they are words like the others.
        passes: whether words that look like options and are none belong to the last word without a name, as they stand.
    """

    module: str
    summary: str
    options: Sequence[Option]
    notes: str = ""
    usage: str = ""
    rest: bool = False
    passes: bool = False


def completion(command: str) -> Verb:
    """Return the verb by which a shell completes the words of a command."""
    options = (
        Option("[SHELL]", "print the script for this shell", choices=("bash", "zsh", "fish")),
        Option("--words WORDS…", "print what can stand for the last of these words"),
    )
    notes = f"""\
bash: eval "$({command} completion bash)"      in ~/.bashrc
zsh:  eval "$({command} completion zsh)"       in ~/.zshrc, after compinit
fish: {command} completion fish | source       in ~/.config/fish/config.fish"""
    return Verb("completion", "completion of names for bash, zsh and fish", options, notes)


HELP: Final = Option("-h, --help", "show this help")
COLOR: Final = Option("--color WHEN", "colours; auto: at a terminal", choices=("auto", "always", "never"), dest="color")
PROJECT: Final = Option("--project DIR", "the project root (default: nearest folder above with .git, or with items in .ai)")
JSON: Final = Option("--json", "print JSON and nothing else")
COMMON: Final = (HELP, COLOR)


def parse(called: str, verb: Verb, words: Sequence[str]) -> Any:
    """Return the values of a verb's words as attributes; only `help` where help is asked for.

    Args:
        called: the command and the verb as they were typed, for messages.
        verb: the verb.
        words: the words behind it; options may stand before, between and behind the others.

    Raises:
        UsageError: `bad_option`, with what to type.
    """
    known = {name: one for one in (*COMMON, *verb.options) for name in one.names}
    values: dict[str, Any] = {
        one.key: [] if one.many else False if not one.value else one.default for one in (COLOR, *verb.options)
    }
    bare, rest, left = list[str](), list[str](), deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            (rest if verb.rest else bare).extend(left)
            break
        name, equals, text = word.partition("=")
        given = [one for part in _parts(name, known) if (one := known.get(part)) is not None]
        if not given:
            if not _is_option(word) or (verb.passes and bare):
                bare.append(word)
                continue
            raise unknown(called, name, [*known])
        if HELP in given:
            return SimpleNamespace(help=True)
        for one in given:
            _take(called, one, name, text if equals else None, left, values)
    _place(called, verb, bare, values)
    return SimpleNamespace(help=False, rest=rest, **values)


def _is_option(word: str) -> bool:
    # A lone dash and a negative number are values.
    return word[:1] == "-" and word != "-" and not word[1:2].isdigit()


def _parts(name: str, known: Mapping[str, Option]) -> list[str]:
    """Return the letters of `-in` as options of their own, where all are switches."""
    letters = [f"-{letter}" for letter in name[1:]]
    together = name[:1] == "-" and len(name) > 2 and all(one in known and not known[one].value for one in letters)
    return letters if together else [name]


def _take(called: str, one: Option, name: str, text: str | None, left: deque[str], values: dict[str, Any]) -> None:
    """Store the value of an option, taken from behind its `=` or from the next word."""
    if not one.value:
        if text is not None:
            raise UsageError("bad_option", f"{name} takes no value.", f"`{called} --help` explains it.")
        values[one.key] = True
        return
    if one.value.endswith("…") and not one.value.endswith(" …"):
        values[one.key] = list(left)
        left.clear()
        return
    if text is None and left and not (_is_option(left[0]) or left[0] == "--"):
        text = left.popleft()
    if text is None:
        if one.value[0] == "[":
            return
        raise UsageError("bad_option", f"{name} has no value.", f"Write {name} {one.value.removesuffix(' …')}.")
    value = _converted(called, one, name, text)
    values[one.key] = [*values[one.key], value] if one.many else value


def _converted(called: str, one: Option, name: str, text: str) -> Any:
    if one.choices and text not in one.choices:
        from rye.call.safe_text import nearest

        close = nearest(text, one.choices, 1)
        hint = f"Did you mean {close[0]!r}?" if close else f"`{called} --help` explains it."
        raise UsageError("bad_option", f"{name} is {_either(one.choices)}, not {text!r}.", hint)
    try:
        return one.kind(text)
    except ValueError:
        raise UsageError("bad_option", f"{name} is a whole number, not {text!r}.", f"`{called} --help` explains it.") from None


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _place(called: str, verb: Verb, bare: Sequence[str], values: dict[str, Any]) -> None:
    """Give the words without a name to those that the verb takes, in order."""
    for one in verb.options:
        if one.names:
            continue
        taken, bare = (bare, ()) if one.many else (bare[:1], bare[1:])
        if taken:
            found = [_converted(called, one, one.form.strip("[]…"), text) for text in taken]
            values[one.key] = found if one.many else found[0]
        elif one.form[0] != "[":
            raise UsageError("bad_option", f"usage: {usage(called, verb)}\n`{called} --help` explains it.")
    if bare:
        raise UsageError("bad_option", f"{bare[0]!r} is a word too many.", f"usage: {usage(called, verb)}")


def unknown(called: str, name: str, known: Sequence[str]) -> UsageError:
    """Return the refusal of an option that is not there, with the nearest one."""
    from rye.call.safe_text import nearest

    close = nearest(name, known, 1)
    hint = f"Did you mean {close[0]}?" if close else f"It has {', '.join(one for one in known if one[:2] == '--')}."
    return UsageError("bad_option", f"{called} has no option {name}.", hint)


def color_before(words: list[str]) -> tuple[str | None, list[str]]:
    """Return what `--color` before the verb says, and the other words.

    Raises:
        UsageError: `bad_option`.
    """
    if not words or words[0].partition("=")[0] != "--color":
        return None, words
    values, left = dict[str, Any](), deque(words)
    name, equals, text = left.popleft().partition("=")
    _take("rye", COLOR, name, text if equals else None, left, values)
    return values["color"], [*left]


def usage(called: str, verb: Verb) -> str:
    """Return how a verb is called, on one line unless the verb says otherwise."""
    if verb.usage:
        return verb.usage
    words = [shown(one) for one in verb.options if not one.names]
    return " ".join([called, *words, *(f"[{shown(one)}]" for one in verb.options if one.names)])


def shown(one: Option) -> str:
    """Return an option in a line of usage: `--limit N`, or the choices of a word without a name."""
    if one.names:
        return one.form.rpartition(", ")[2]
    # The words of a choice say more than its name.
    choices = "|".join(one.choices)
    inner = one.form.strip("[]")
    return one.form.replace(inner, choices) if choices and len(choices) < _NARROWEST else one.form


def completed(verb: Verb, words: Sequence[str]) -> tuple[list[str], str]:
    """Return what can stand for the last of a verb's words, and what kind of thing completes it, if not only these."""
    last, before = words[-1], words[:-1]
    known = {name: one for one in (*COMMON, *verb.options) for name in one.names}
    if before and (one := known.get(before[-1])) is not None and one.value:
        return list(one.choices), one.completes
    if last.startswith("-"):
        return list(known), ""
    placed = [one for one in verb.options if not one.names]
    number = sum(
        not _is_option(word) and (known.get(prior) or HELP).value == ""
        for prior, word in zip(["", *before], before, strict=False)
    )
    at = min(number, len(placed) - 1)
    if at < 0 or (number > at and not placed[at].many):
        return [], ""
    return list(placed[at].choices), placed[at].completes
