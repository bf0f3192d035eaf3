"""Settings files of `.ai/config`: read as plain data, and in layers from the system bundle, the user's space and the project.

Whoever reads them decides what a project may say: a project's file comes from whoever wrote the repository.

A shape is a type, `[shape]` for a list, or a mapping of names to shapes, where `"*"` means every other name. What a shape
does not name may be anything. A name without a value says nothing.
"""

from __future__ import annotations

import errno
import math
import os
from functools import lru_cache
from typing import Any, Final

import rye
from rye.config import user_dirs
from rye.errors import UsageError
from rye.fs import atomic, beneath, strict_yaml
from rye.plain_class import Record

_NUMBER: Final = (int, float)
_LONGEST_NUMBER = 1 << 63
_SERVERS = {"command": [str], "install": str, "least_version": int, "settings": {}, "markers": [str]}
_LANGUAGE = {"suffixes": {"*": str}, "servers": [str], "server": str}
_PROVIDER = {"type": str, "api_key": str, "base_url": str}

SHAPES: Final[dict[str, Any]] = {
    "lsp.yaml": {
        "limits": {"idle_seconds": _NUMBER, "max_memory_mb": _NUMBER},
        "languages": {"*": _LANGUAGE},
        "servers": {"*": _SERVERS},
    },
    "web/websearch.yaml": {"default_provider": str, "providers": {"*": _PROVIDER}},
}

_MAX_BYTES = 256 * 1024
_MAX_LOADED = 64
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# Files by their paths, with the very bytes they were read from: YAML is slow to read.
_loaded: dict[str, tuple[bytes, dict[str, Any]]] = {}


class Layers(Record):
    """The mappings of one settings file, which readers leave as they are; {} where a layer has none."""

    system: dict[str, Any]
    user: dict[str, Any]
    project: dict[str, Any]

    @property
    def own(self) -> dict[str, Any]:
        """Return what the system and the user say, the user's values win."""
        return merged(self.system, self.user)


def load(root: str, name: str) -> Layers:
    """Return the layers of `.ai/config/<name>`.

    Raises:
        UsageError: `bad_config`, when a file is not a YAML mapping, or has another shape than `SHAPES` says.
    """
    read = [(own(place), place) for place in (f"{bundle_beside(str(rye.__file__))}/config/{name}", user_file(name))]
    return Layers(*(shaped(content, SHAPES.get(name, {}), where, "") for content, where in (*read, of_project(root, name))))


@lru_cache(maxsize=2)
def bundle_beside(module: str) -> str:
    """Return the system bundle's `.ai` by a file of the package: inside it, or in the checkout of an editable install.

    Raises:
        UsageError: `no_bundle`, where it is in neither.
    """
    # Once a process: the bundle belongs to the code that is running, wherever a link to it leads later.
    package = os.path.dirname(os.path.realpath(module))
    inside = f"{package}/.ai"
    # An editable install may leave a stale copy elsewhere; only these two places are ever asked.
    found = inside if os.path.isdir(inside) else f"{os.path.dirname(os.path.dirname(package))}/.ai"
    # Beside an archive of Python's lies whatever anybody put there.
    if not os.path.isdir(package) or not os.path.isdir(found):
        hint = "Install it anew, as a folder: it does not run from an archive (zipapp)."
        raise UsageError("no_bundle", f"The tools of rye are not where the package is ({package}).", hint)
    return found


def user_file(name: str) -> str:
    """Return where the user's own file of this name lies."""
    return f"{user_dirs.user_ai()}/config/{name}"


def merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return two mappings as one: mappings are merged, anything else is replaced."""
    both = {
        name: merged(under[name], value) if isinstance(value, dict) and isinstance(under.get(name), dict) else value
        for name, value in over.items()
    }
    return {**under, **both}


def own(path: str) -> dict[str, Any]:
    """Return what a file of the user's or the system's says; {} where there is none. Errors as `of_project`."""
    return _mapping(read(path), path)


def of_project(root: str, name: str, most: int = _MAX_BYTES) -> tuple[dict[str, Any], str]:
    """Return what a project's `.ai/config/<name>`, opened beneath the root, says ({} where there is none), and its path.

    Raises:
        UsageError: `bad_config`, naming the file; with `outside` where a link leads out of the project.
    """
    path = f"{root}/.ai/config/{name}"
    try:
        with atomic.closing(os.open(root, beneath.DIRECTORY)) as root_fd:
            fd, _ = beneath.open_beneath(root_fd, [b".ai", b"config", *os.fsencode(name).split(b"/")], _READ)
    except OSError as err:
        if err.errno in (errno.ENOENT, errno.ENOTDIR):
            return {}, path
        raise _bad(path, f"cannot be read ({err.strerror})", outside=err.errno == errno.EXDEV) from None
    return _mapping(_content(fd, path, most), path), path


def read(path: str) -> bytes:
    """Return the bytes of a file of the user's or the system's; b"" where there is none. Errors as `of_project`."""
    try:
        return _content(os.open(path, _READ), path, _MAX_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as err:
        raise _bad(path, f"cannot be read ({err.strerror})") from None


def _content(fd: int, path: str, most: int) -> bytes:
    try:
        return atomic.read_open(fd, most, path, whole=True)[0]
    except OSError as err:
        known = err.errno in (errno.EINVAL, errno.EFBIG)
        raise _bad(path, f"is {err.strerror}" if known else f"cannot be read ({err.strerror})") from None


def _mapping(data: bytes, path: str) -> dict[str, Any]:
    known = _loaded.get(path)
    if known is None or known[0] != data:
        if len(_loaded) >= _MAX_LOADED:
            _loaded.clear()
        known = _loaded[path] = (data, _parsed(data, path))
    return known[1]


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    try:
        content = strict_yaml.read(data.decode())
        plain(content, path)
    except strict_yaml.YamlError as err:
        raise _bad(path, err.fault, f"{err.remedy} Or remove the file.") from None
    except (UnicodeDecodeError, RecursionError) as err:
        raise _bad(path, f"cannot be read: {err}") from None
    if content is not None and not isinstance(content, dict):
        raise _bad(path, "is not a mapping")
    return content or {}


def plain(content: Any, where: object, at: str = "") -> None:
    """Hold what a file says to what JSON can say, too: text keys, and no dates, bytes, sets or boundless numbers.

    Raises:
        UsageError: `bad_config`, naming `where` and the key.
    """
    inside = f" in {at[:100]}" if at else ""
    if isinstance(content, dict):
        for key, value in content.items():
            if not isinstance(key, str):
                raise _bad(where, f"has the key {repr(key)[:100]}{inside}, which is no text", "Write it in quotes.")
            plain(value, where, f"{at}.{key}" if at else key)
    elif isinstance(content, list):
        for value in content:
            plain(value, where, at)
    elif isinstance(content, float) and not math.isfinite(content):
        raise _bad(where, f"holds {content}{inside}, which is no number", "Write a number.")
    # A longer one would fail later, in a JSON reader or a C library, far from the file that holds it.
    elif isinstance(content, int) and abs(content) >= _LONGEST_NUMBER:
        raise _bad(where, f"holds a number of more than 63 bits{inside}", "Write a smaller one, or put it in quotes.")
    elif not (content is None or isinstance(content, str | int | float)):
        raise _bad(where, f"holds a {type(content).__name__}{inside}", "Put it in quotes.")


def shaped(content: Any, shape: Any, where: str, at: str) -> Any:
    """Return what a file says, without what says nothing; `where` and `at` name the place. Raises UsageError `bad_config`."""
    if isinstance(shape, dict):
        if not isinstance(content, dict):
            raise _wrong(where, at, "a mapping", content)
        return {
            key: shaped(value, shape[key] if key in shape else shape["*"], where, f"{at}.{key}" if at else key)
            if key in shape or "*" in shape
            else value
            for key, value in content.items()
            if value is not None
        }
    if isinstance(shape, list):
        if not isinstance(content, list):
            raise _wrong(where, at, "a list", content)
        return [shaped(value, shape[0], where, at) for value in content]
    # bool is a subclass of int: `true` must not pass for a number.
    if not isinstance(content, shape) or (isinstance(content, bool) and shape is not bool):
        raise _wrong(where, at, _WORDS.get(shape, "text or a number"), content)
    return content


_WORDS = {str: "text", int: "a whole number", _NUMBER: "a number"}


def _wrong(where: str, at: str, expected: str, content: object) -> UsageError:
    return _bad(where, f"must have {expected} at {at}, not {repr(content)[:100]}")


def _bad(path: object, why: str, hint: str = "Mend or remove the file.", **details: bool) -> UsageError:
    return UsageError("bad_config", f"{path} {why}.", hint, **details)
