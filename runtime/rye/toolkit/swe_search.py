"""Searching as the SWE tools show it: names, `path:line: text`, `line : text`; over `glob` and `grep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye.toolkit import globs, grepping, pages, swe
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 200
"""Results that a search shows where no other limit is asked for."""

_NOTICES = 4_000
_QUOTES = ("'", '"')


def find_file(
    project_path: str, pattern: str, root: str = ".", limit: int = MOST, offset: int = 1, *, hidden: bool = False,
    no_ignore: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/find_file`; see its CONFIG_SCHEMA. Errors as `globbing.glob`, `swe.enabled`."""
    # Not at the top: the searches in files are in no need of it.
    from rye.toolkit import globbing

    swe.enabled()
    found = globbing.glob(project_path, as_glob(pattern), root, "name", limit, offset, hidden=hidden, no_ignore=no_ignore)
    given = {"pattern": pattern, "root": root, "limit": limit, "hidden": hidden, "no_ignore": no_ignore}
    call = pages.call("find_file", given, {"root": ".", "limit": MOST})
    return _answer(found, found["files"], offset, "files", call)


def as_glob(pattern: str) -> str:
    """Return a name pattern as a glob: one that holds no wildcard stands for every name it is a part of."""
    if set(pattern) & set("*?[{"):
        return pattern
    folder, slash, name = pattern.rpartition("/")
    around = f"*{globs.escape(name)}*" if name else "*"
    return f"**/*{globs.escape(folder)}/{around}" if slash and folder else around


def search_dir(
    project_path: str, pattern: str, root: str = ".", include: str | None = None, limit: int = MOST, offset: int = 1, *,
    ignore_case: bool = False, literal: bool = False, hidden: bool = False, no_ignore: bool = False, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/search_dir`; see its CONFIG_SCHEMA. Errors as `grepping.grep`, `swe.enabled`."""
    swe.enabled()
    wanted, plain = unquoted(pattern)
    found = grepping.grep(
        project_path, wanted, root, include, 0, "content", limit, offset, ignore_case=ignore_case, literal=literal or plain,
        hidden=hidden, no_ignore=no_ignore, line_ids=line_ids,
    )  # fmt: skip
    given = {
        "pattern": pattern, "root": root, "include": include, "limit": limit, "ignore_case": ignore_case, "literal": literal,
        "hidden": hidden, "no_ignore": no_ignore, "line_ids": line_ids,
    }  # fmt: skip
    lines = [f"{one['file']}:{one['line']}: {text(one)}" for one in found["matches"]]
    return _answer(found, lines, offset, "matches", pages.call("search_dir", given, {"root": ".", "limit": MOST}))


def search_file(
    project_path: str, path: str, pattern: str, limit: int = MOST, offset: int = 1, *, ignore_case: bool = False,
    literal: bool = False, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/search_file`; see its CONFIG_SCHEMA.

    Raises:
        WorkspaceError: `is_directory`, `not_regular_file`, `file_not_found`. Others as `grepping.grep`, `swe.enabled`.
    """
    swe.enabled()
    with Workspace(project_path) as ws, ws.file(path):
        pass
    wanted, plain = unquoted(pattern)
    found = grepping.grep(
        project_path, wanted, path, None, 0, "content", limit, offset, ignore_case=ignore_case, literal=literal or plain,
        line_ids=line_ids,
    )  # fmt: skip
    given = {
        "path": path, "pattern": pattern, "limit": limit, "ignore_case": ignore_case, "literal": literal, "line_ids": line_ids,
    }  # fmt: skip
    lines = [f"{one['line']} : {text(one)}" for one in found["matches"]]
    return _answer(found, lines, offset, "matches", pages.call("search_file", given, {"limit": MOST}))


def unquoted(pattern: str) -> tuple[str, bool]:
    """Return a pattern without the quotes it is wrapped in, and whether there were any: it is plain text then."""
    quoted = len(pattern) > 2 and pattern[0] in _QUOTES and pattern[-1] == pattern[0]
    return (pattern[1:-1], True) if quoted else (pattern, False)


def text(match: dict[str, Any]) -> str:
    """Return the line of a match as it is shown, behind its ID where it has one."""
    return f"[LID:{match['line_id']}] {match['content']}" if match["line_id"] else str(match["content"])


def _answer(
    found: dict[str, Any], lines: list[str], offset: int, unit: str, call: Callable[[int], str]
) -> dict[str, Any]:  # fmt: skip
    """Turn the answer of `glob` or `grep` into one in the SWE tools' words; what they say beside the results is kept."""
    page = pages.Page(output_room() - _NOTICES)
    shown = sum(1 for line in lines if page.add([line]))
    beside = found["output"].split("\n")[len(lines) :]
    # Their envelope names another tool's call, and is said anew.
    notices = [line for line in beside if line and not line.startswith("[tool_result: ")]
    following = offset + shown if shown < len(lines) else found.get("next_offset")
    fields: dict[str, Any] = {name: found[name] for name in ("unreadable", "unreadable_count", "timed_out") if name in found}
    fields |= {name: found[name][:shown] for name in ("files", "matches") if isinstance(found.get(name), list)}
    if following is not None:
        notices.append(envelope(shown, found["total"], unit, call(following), found["total"] - following + 1))
        fields["next_offset"] = following
    return ok(
        "\n".join([*page.lines, *notices]), count=shown, total=found["total"],
        truncated=following is not None or found["truncated"], notices=notices, **fields,
    )  # fmt: skip
