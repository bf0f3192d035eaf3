"""What `glob` does: the names of files that fit a pattern, in order, a window at a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye.errors import WorkspaceError
from rye.toolkit import globs, names, pages, walk
from rye.toolkit.first import First
from rye.toolkit.output import ok, output_room
from rye.toolkit.refusals import outside
from rye.toolkit.ripgrep import View
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.toolkit.walk import Engine, Tree

_NOTICES = 3_000


def glob(
    project_path: str, pattern: str, path: str = ".", sort: str = "name", limit: int = 100, offset: int = 1, *,
    hidden: bool = False, no_ignore: bool = False, engine: Engine | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/glob`; see its CONFIG_SCHEMA for the parameters. `engine` is for tests.

    Raises:
        UsageError: `bad_glob`, `bad_offset`.
        WorkspaceError: `path_outside` also for a pattern that leads out; `not_a_directory`; see `walk.held`.
    """
    call = pages.call(
        "glob",
        {"pattern": pattern, "path": path, "sort": sort, "limit": limit, "hidden": hidden, "no_ignore": no_ignore},
        {"path": ".", "sort": "name", "limit": 100},
    )  # fmt: skip
    with Workspace(project_path) as ws:
        wanted, below = _inside(ws, pattern, path)
        with walk.held(ws, below, engine) as tree:
            if tree.is_file:
                raise WorkspaceError("not_a_directory", f"{path} is a file.", "Name a directory, or leave it out.")
            view = View(
                hidden or globs.names_a_dot(wanted), no_ignore, tuple(globs.plain_names(wanted) or ()),
                () if no_ignore else walk.inherited(tree), closed=walk.closed(tree),
            )  # fmt: skip
            first = _first(tree, wanted, view, offset + limit, by_time=sort == "modified")
            start = pages.start(offset, first.count, "files", tree.timed_out)
            found = [name for _, name in first.items()[start : start + limit]]
            return _answer(tree, view, found, start, limit, first.count, call)


def _inside(ws: Workspace, pattern: str, path: str) -> tuple[str, str]:
    """Return the pattern relative to a folder, and the folder; an absolute pattern is taken relative to the root."""
    text = pages.glob_text(pattern)
    if text.startswith("/"):
        parts = text.split("/")
        fixed = next((at for at, part in enumerate(parts) if set(part) & set("*?[{\\")), len(parts))
        inner = [os.fsdecode(part) for part in ws.components(names.show(os.fsencode("/".join(parts[:fixed]) or "/")))]
        text, path = "/".join([*(globs.escape(part) for part in inner if part != "."), *parts[fixed:]]), "."
        # Of the folder that it names only: without a slash a pattern would match at any depth.
        text = text if "/" in text else f"/{text}"
    if any(".." in one.split("/") for one in globs.expand(text)):
        raise outside(pattern, "a glob pattern cannot go up; give path the folder to start from")
    if not text.strip("/."):
        raise globs.bad_glob(pattern, "it names no file")
    return f"{text}**" if text.endswith("/") else text, path


def _first(tree: Tree, wanted: str, view: View, most: int, *, by_time: bool) -> First[tuple[float, str]]:
    """Return the first files in the wanted order, with what they are ordered by before their names."""
    fits = globs.compiled(wanted)
    first: First[tuple[float, str]] = First(most, lambda item: (item[0], os.fsencode(item[1])))
    for some in tree.files(view):
        found = [name for name in some if fits(name)]
        first.add([(-_modified(tree, name), name) for name in found] if by_time else [(0, name) for name in found])
    return first


def _modified(tree: Tree, name: str) -> float:
    try:
        return os.stat(name, dir_fd=tree.fd, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _answer(
    tree: Tree, view: View, found: list[str], start: int, limit: int, total: int, call: Callable[[int], str],
) -> dict[str, Any]:  # fmt: skip
    page = pages.Page(output_room() - _NOTICES)
    files: list[str] = []
    for name in found:
        if not tree.stands(name):
            continue
        if not page.add([tree.shown(name)]):
            break
        files.append(tree.shown(name))
    reached = start + len(files) if page.full else min(start + limit, total)
    out = [*page.lines, *pages.troubles(tree)]
    if not total and not tree.timed_out:
        hints = [word for word, on in (("hidden=true", view.hidden), ("no_ignore=true", view.no_ignore)) if not on]
        more = f"; {' and '.join(hints)} would look at more" if hints else ""
        out.insert(0, f"[no files in {tree.shown_base} fit{more}]")
    fields = pages.trouble_fields(tree)
    if reached < total:
        out.append(pages.envelope(len(files), total, "files", call(reached + 1), total - reached))
        fields["next_offset"] = reached + 1
    return ok(
        "\n".join(out), files=files, count=len(files), total=total, truncated=reached < total or tree.timed_out, **fields,
    )  # fmt: skip
