"""Find files by a glob pattern: those of the asked window, in order, and how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rye.call import results
from rye.call.context import advice, output_budget, widened
from rye.errors import WorkspaceError
from rye.filesearch import globs
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import SearchScope
from rye.filesearch.tree import Folders, SearchTree, too_many
from rye.fs import names
from rye.plain_class import Record
from rye.workspace.path_errors import outside
from rye.workspace.workspace import Workspace

_NOTICES = 3_000


class NameQuery(Record):
    """Which files are wanted, where, and which part of them (`offset` counts from 1)."""

    pattern: str
    path: str = "."
    newest_first: bool = False
    hidden: bool = False
    no_ignore: bool = False
    limit: int = 100
    offset: int = 1


def find(project_path: str, query: NameQuery, call: Callable[[int], str]) -> dict[str, Any]:
    """Return the files of the window as a tool's result; `call` writes the call that continues at an offset.

    Raises:
        UsageError: `bad_glob`, `bad_offset`.
        WorkspaceError: `path_outside` also for a pattern that leads out; `not_a_directory`; see `tree.opened`.
    """
    with _opened(project_path, query) as (tree, pattern):
        # Without names: ripgrep takes longer to compare them than to hand them over.
        view = filesearch_tree.view_of(tree, hidden=query.hidden or globs.names_a_dot(pattern), no_ignore=query.no_ignore)
        folders = Folders()
        first, total = _first(tree, pattern, view, query, folders)
        start = results.start_index(query.offset, total, "files", tree.timed_out)
        page = results.Page(output_budget() - _NOTICES)
        limit = widened(query.limit, total - start)
        # Asked of each name again: a link may have taken the file's place since.
        page.fill(tree.shown(name) for name in first[start : start + limit] if tree.exists(name))
        passed = start + len(page.lines) if page.full else min(start + limit, total)
        files, notices = page.lines, filesearch_tree.troubles(tree)
        if not total and not tree.timed_out:
            more = filesearch_tree.lifting("look at more", hidden=view.hidden, no_ignore=view.no_ignore)
            notices.insert(0, f"[no files in {tree.shown_base} fit {query.pattern}{more}]")
        narrowing = {_folder(): False, "pattern": False}
        where, narrower = too_many(folders, tree.shown_base, narrowing) if passed < total else ("", "")
        cut = results.left_out(notices, len(files), passed, total, f"files{where}", call, advice=narrower)
        facts = {"files": files, "count": len(files), "total": total, "notices": notices}
        return filesearch_tree.answer(tree, [*files, *notices], cut, **facts)


@contextmanager
def _opened(project_path: str, query: NameQuery) -> Iterator[tuple[SearchTree, str]]:
    """Open the folder to be searched; yield it with the pattern relative to it."""
    with Workspace(project_path) as ws:
        pattern, path = _inside(ws, query.pattern, query.path)
        with filesearch_tree.opened(ws, path) as tree:
            if tree.is_file:
                raise WorkspaceError("not_a_directory", f"{path} is a file.", "Name a directory, or leave it out.")
            yield tree, pattern


def _folder() -> str:
    """Return what the running tool calls the folder to search."""
    return advice("path", "path", "root")


def _inside(ws: Workspace, pattern: str, path: str) -> tuple[str, str]:
    """Return the pattern relative to a folder, and the folder; an absolute pattern is taken relative to the root."""
    text = filesearch_tree.glob_text(pattern)
    if text.startswith("/"):
        parts = text.split("/")
        # Only the part before the first wildcard is a path that can be resolved.
        fixed = next((at for at, part in enumerate(parts) if set(part) & set("*?[{\\")), len(parts))
        inner = [os.fsdecode(part) for part in ws.components(names.show(os.fsencode("/".join(parts[:fixed]) or "/")))]
        text, path = "/".join([*(globs.escape(part) for part in inner if part != "."), *parts[fixed:]]), "."
        # A pattern without a slash would match at any depth; this one is about the root's own files.
        text = text if "/" in text else f"/{text}"
    if any(".." in one.split("/") for one in globs.expand(text)):
        raise outside(pattern, f"a glob pattern cannot go up; give {_folder()} the folder to start from")
    if not text.strip("/."):
        raise globs.bad_glob(pattern, "it names no file")
    return f"{text}**" if text.endswith("/") else text, path


def _first(tree: SearchTree, pattern: str, view: SearchScope, query: NameQuery, folders: Folders) -> tuple[list[str], int]:
    """Return the first files in the wanted order, up to the window's end, and how many there are."""
    fits = filesearch_tree.fits(pattern)
    found: list[str] = []
    for some in tree.files(view):
        # Decoded together, which takes a fraction of the time.
        found += filter(fits, os.fsdecode(b"\0".join(some)).split("\0"))
    exact = pattern.strip("/")
    # Who writes a whole name means that file, hidden or ignored as it may be.
    if not found and not set(exact) & set("*?[{\\") and _is_open(exact, view) and tree.exists(exact):
        found = [exact]
    folders.add_files(found)
    found.sort(key=_newest(tree) if query.newest_first else os.fsencode)
    return found[: query.offset - 1 + widened(query.limit)], len(found)


def _is_open(name: str, view: SearchScope) -> bool:
    """Tell whether a name stands in no folder that is never searched."""
    return not any(f"{name}/".startswith(f"{folder}/") or f"/{folder}/" in name for folder in view.closed)


def _newest(tree: SearchTree) -> Callable[[str], tuple[float, bytes]]:
    def order(name: str) -> tuple[float, bytes]:
        try:
            return -os.stat(name, dir_fd=tree.fd, follow_symlinks=False).st_mtime_ns, os.fsencode(name)
        except OSError:
            return 0, os.fsencode(name)

    return order
