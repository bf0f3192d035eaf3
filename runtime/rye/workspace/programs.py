"""Which files of a project a program starts and loads that a setting of git names, such as `python3 tools/nb.py`.

Python looks for every module beside its script first, the standard library's and installed ones too. Of another language those
files count that a script names by a path. What an installed package of a project loads in turn is not known here.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from rye.fs import atomic, beneath
from rye.fs.atomic import passing

_INTERPRETER: Final = r"(?:(?:ba|da|z|k)?sh|python[\d.]*|node|perl|ruby|php|lua|Rscript)\Z"
_SHEBANG: Final = rb"#!\s*(?:/\S*/env\s+(?:-S\s*)?)?(?:/\S*/)?([\w.]+)"
_PYTHON: Final = (".py", ".pyc", ".so")
_ENDINGS: Final = {
    "node": ("", ".js", ".cjs", ".mjs", ".json", ".node", "/index.js"),
    "ruby": ("", ".rb"),
    "perl": ("", ".pm", ".pl"),
    "lua": ("", ".lua"),
    "php": ("", ".php"),
}
_PACKAGES: Final = ("/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages")
_MAX_SCRIPT: Final = 1 << 20
_MOST_FILES: Final = 3_000


class Loaded(NamedTuple):
    """What a command line loads.

    Attributes:
        files: real paths, there or not: what it starts, and what scripts name by a path.
        folders: folders in which Python looks for modules -> the names that count there.
    """

    files: set[str]
    folders: dict[str, set[str]]

    def holds(self, path: str) -> bool:
        """Tell whether a file, there or not, is one of them."""
        return path in self.files or any(_is_module(path, folder, names) for folder, names in self.folders.items())

    def there(self) -> Iterator[str]:
        """Yield those that are there; of a package with more than 3,000 the folder as well, and each that is not listed."""
        yield from sorted(path for path in self.files if os.path.lexists(path) and not os.path.isdir(path))
        for folder, names in self.folders.items():
            with passing():
                for name in sorted(os.listdir(folder)):
                    path = f"{folder}/{name}"
                    if os.path.isfile(path):
                        yield from [path] if _is_module(path, folder, names) else []
                    elif name == "__pycache__" or _stem(name) in names:
                        found = list(islice(_below(path), _MOST_FILES + 1))
                        yield from [*found[:_MOST_FILES], path] if len(found) > _MOST_FILES else found


def _below(package: str) -> Iterator[str]:
    """Yield the modules of a package, and what of it is a link or cannot be listed: Python finds there what it asks for."""
    failed: list[OSError] = []
    if os.path.islink(package):
        yield package
    for path, folders, files in os.walk(package, onerror=failed.append):
        yield from (f"{path}/{one}" for one in files if one.endswith(_PYTHON))
        yield from (f"{path}/{one}" for one in folders if os.path.islink(f"{path}/{one}"))
    for err in failed:
        if err.errno in atomic.FAILING:
            raise err
        yield err.filename


def _stem(name: str) -> str:
    return name.partition(".")[0]


def _is_module(path: str, folder: str, names: set[str]) -> bool:
    first, _, rest = path.removeprefix(f"{folder}/").partition("/")
    name = os.path.basename(rest) if first == "__pycache__" else first
    return path.startswith(f"{folder}/") and path.endswith(_PYTHON) and _stem(name) in names


def loaded(value: str, work_tree: str) -> Loaded:
    """Return what a command line loads, which git starts in the work tree's root.

    Args:
        value: as `tools/clean --fast`, `python tools/clean.py` or `!sh x/y`; PATH has programs without a slash.
        work_tree: its path.
    """
    found = Loaded(set(), {})
    for command in re.split(r"[;&|\n]+", value.replace('"', "").replace("\\", "").replace("'", "").lstrip("!")):
        words = command.split()
        while words and ("=" in words[0] or words[0] in ("exec", "env", "command")):
            del words[0]
        if not words:
            continue
        interpreter = os.path.basename(words[0]) if re.match(_INTERPRETER, os.path.basename(words[0])) else ""
        if "/" in words[0]:
            _add(found, _real(work_tree, words[0]), interpreter, work_tree, words[0])
        if interpreter and "-m" in words[1:-1]:
            path = words[words.index("-m", 1) + 1].replace(".", "/")
            names = found.folders.setdefault(_real(work_tree, "."), set())
            names |= {path.partition("/")[0]} | _known_to_python(words[0])
            for one in (f"{path}.py", f"{path}/__main__.py"):
                names |= _words(_text(_real(work_tree, one), work_tree))
        elif interpreter:
            arguments = [word for word in words[1:] if not word.startswith("-")]
            # An option may take a word of its own before the script.
            for script in [next((word for word in arguments if "/" in word or "." in word), arguments[0])] if arguments else []:
                _add(found, _real(work_tree, script), interpreter, work_tree, words[0])
        else:
            # What another program starts, as `uv run tools/nb.py`.
            for word in (one for one in words[1:] if "/" in one and not one.startswith("-")):
                _add(found, _real(work_tree, word), "", work_tree, words[0])
    return found


def _real(folder: str, path: str) -> str:
    # What the kernel takes for no path leads nowhere, and following it would take its square.
    return os.path.realpath(os.path.join(folder, os.path.expanduser(path))) if len(path) < beneath.PATH_MAX else os.devnull


def _add(found: Loaded, script: str, interpreter: str, work_tree: str, program: str) -> None:
    """Add a script, and what it loads in turn."""
    waiting, inside = [(script, interpreter)], f"{_real(work_tree, '.')}/"
    while waiting and len(found.files) <= _MOST_FILES:
        script, interpreter = waiting.pop(0)
        if script in found.files:
            continue
        found.files.add(script)
        text = _text(script, work_tree)
        named = re.match(_SHEBANG, text)
        # A text without a first line for the kernel is given to a shell.
        interpreter = named[1].decode() if named else interpreter or ("" if b"\0" in text else "sh")
        if interpreter.startswith("python"):
            names = found.folders.setdefault(os.path.dirname(script), set())
            names |= _words(text) | _known_to_python(program)
            continue
        # In their order: where they are too many, each look takes the same. A folder may stand in a variable (`"$D/lib.sh"`).
        words = dict.fromkeys(re.findall(rb"[\w.@-]*[./][\w./@-]*\w", text, re.ASCII))
        words |= dict.fromkeys(re.findall(rb"(?:\$\w+|[)}\"'`])/([\w./@-]*\w)", text, re.ASCII))
        for word in map(bytes.decode, words if re.match(_INTERPRETER, interpreter) else ()):
            # A word with a dot alone is mostly none (`process.stdin`), and a file by its whole name at best.
            for ending in _ENDINGS.get(interpreter, ("",)) if "/" in word else ("",):
                paths = {_real(folder, word + ending): "" for folder in (os.path.dirname(script), work_tree)}
                waiting += [(path, interpreter) for path in paths if path.startswith(inside) and not os.path.isdir(path)]


def _text(script: str, work_tree: str) -> bytes:
    # A program of the system is no script of the project.
    if script.startswith(f"{_real(work_tree, '.')}/"):
        with passing():
            return atomic.read_regular(script, _MAX_SCRIPT)[0]
    return b""


def _words(text: bytes) -> set[str]:
    return {*map(bytes.decode, re.findall(rb"\w+", text, re.ASCII))}


def _known_to_python(program: str) -> set[str]:
    """Return the modules that an interpreter has by itself: a file beside a script takes the place of each."""
    found = set(sys.stdlib_module_names)
    beside = f"{os.path.dirname(os.path.dirname(program))}/lib/python3*/site-packages"
    for pattern in (*_PACKAGES, *([beside] if os.path.isabs(program) else [])):
        for folder in glob.glob(pattern):
            with passing():
                found.update(map(_stem, os.listdir(folder)))
    return found
