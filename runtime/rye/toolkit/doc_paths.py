"""From a docPath to the file it names.

A docPath is a file's project-relative path in lower case, optionally led by the project folder's own name. It names a file by
any spelling of its letters' case; one that fits two files names neither. What it leads to is decided by directory listings
beneath the held root, and opened like any other path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rye.errors import UsageError, WorkspaceError
from rye.toolkit import beneath, names
from rye.toolkit.output import deadline
from rye.toolkit.suggest import nearest

if TYPE_CHECKING:
    from rye.toolkit.workspace import Workspace

_MOST = 10


class DocPaths:
    """The docPaths of one call; a directory is listed once."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._listings: dict[beneath.Parts, dict[str, list[bytes]]] = {}

    def resolve(self, doc_path: str) -> str:
        """Return the project-relative path of the one file that a docPath names, as it stands in results.

        Raises:
            UsageError: `malformed_doc_path` (not lower case, not relative), `ambiguous_doc_path`, naming the files.
            WorkspaceError: `file_not_found`, with the nearest docPaths.
        """
        parts = self._parts(doc_path)
        found = {self._physical(one): one for readable in self._readings(parts) for one in self._matches(readable)}
        if len(found) > 1:
            listed = sorted(names.show(b"/".join(one)) for one in found.values())
            raise UsageError(
                "ambiguous_doc_path", f"docPath {doc_path} names {len(listed)} files: {', '.join(listed[:_MOST])}.",
                f"Lead it with the project folder's name ({self._root()}/…), or leave that name out; files that differ in "
                "letter case only have no docPath of their own: use edit_lines for them.",
            )  # fmt: skip
        if not found:
            raise self._missing(doc_path, parts)
        return names.show(b"/".join(next(iter(found.values()))))

    def _root(self) -> str:
        return names.show(os.fsencode(os.path.basename(self._ws.root))).lower()

    def _parts(self, doc_path: str) -> list[str]:
        parts = doc_path.split("/")
        if doc_path != doc_path.lower():
            why, hint = "is not in lower case", f"Write {doc_path.lower()}."
        elif "\0" in doc_path or any(part in ("", ".", "..") for part in parts):
            why, hint = "is not a plain relative path", "Write it without a leading slash, without . and .. in it."
        else:
            return parts
        raise UsageError("malformed_doc_path", f"docPath {doc_path[:300]!r} {why}.", hint)

    def _readings(self, parts: list[str]) -> list[list[str]]:
        """Return the paths below the root that it may stand for: with its first name, and without the project's."""
        return [parts, parts[1:]] if len(parts) > 1 and parts[0] == self._root() else [parts]

    def _matches(self, parts: list[str]) -> list[beneath.Parts]:
        folders = self._folders(parts[:-1])
        here = [(*folder, name) for folder in folders for name in self._listing(folder).get(parts[-1], [])]
        return [one for one in here if self._is_file(one)]

    def _listing(self, folder: beneath.Parts) -> dict[str, list[bytes]]:
        """Return a directory's names by their docPath form; nothing where it is no directory inside the project."""
        if folder not in self._listings:
            by_form: dict[str, list[bytes]] = {}
            try:
                fd, _ = beneath.open_beneath(self._ws.fd, folder, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                fd = None
            if fd is not None:
                try:
                    for name in map(os.fsencode, os.listdir(fd)):
                        by_form.setdefault(names.show(name).lower(), []).append(name)
                finally:
                    os.close(fd)
            self._listings[folder] = by_form
        return self._listings[folder]

    def _is_file(self, parts: beneath.Parts) -> bool:
        """Tell whether something other than a directory stands there; what exactly, and where, the open decides."""
        return self._directory(parts) is None

    def _directory(self, parts: beneath.Parts) -> beneath.Parts | None:
        """Return where a directory physically lies; None where there is none inside the project."""
        try:
            fd, physical = beneath.open_beneath(self._ws.fd, parts, beneath.DIRECTORY)
        except OSError:
            return None
        os.close(fd)
        return physical

    def _physical(self, parts: beneath.Parts) -> beneath.Parts:
        """Return where links lead, so that two ways to one file are no two files."""
        try:
            fd, physical = beneath.open_parent(self._ws.fd, parts)
        except OSError:
            return parts
        os.close(fd)
        return physical

    def _missing(self, doc_path: str, parts: list[str]) -> WorkspaceError:
        close: list[str] = []
        said = f"No file has the docPath {doc_path}."
        for reading in self._readings(parts):
            folder = "/".join(reading[:-1])
            for parent in self._folders(reading[:-1]):
                listing = {name for name in self._listing(parent) if name != reading[-1]}
                if len(listing) < len(self._listing(parent)):
                    said = f"The docPath {doc_path} is no file."
                close += [f"{folder}/{one}".lstrip("/") for one in nearest(reading[-1], listing)]
        near = f"Did you mean {' or '.join(close[:3])}? " if close else ""
        return WorkspaceError(
            "file_not_found", said,
            f"{near}A docPath is the project-relative path in lower case; use ls or glob to see the files.", nearest=close[:3],
        )  # fmt: skip

    def _folders(self, parts: list[str]) -> list[beneath.Parts]:
        """Return the directories that fit, each once: a link beside a folder of its name would double the ways at every level.

        Raises:
            DeadlineError: the call's time is up.
        """
        folders: list[beneath.Parts] = [()]
        for part in parts:
            deadline().check()
            named = [(*folder, name) for folder in folders for name in self._listing(folder).get(part, [])]
            folders = list(dict.fromkeys(place for one in named if (place := self._directory(one)) is not None))
        return folders
