"""One file of a commit: its new content prepared beside it, put in place, or taken back, each judged by digests alone.

Before it lands, the new content stands under the temporary name; afterwards the displaced one does. So what stands under the
two names tells how far the step came, whatever process looks, and whenever.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from rye.toolkit import names
from rye.toolkit.replace import conflict, digest_at, discard, keep, put, set_aside, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.journal import Entry
    from rye.toolkit.workspace import Place


class Step(NamedTuple):
    """A change whose new content stands under the entry's temporary name, or once did."""

    place: Place
    entry: Entry

    @property
    def aside(self) -> bytes:
        """The name beside the file, under which its other content stands."""
        return self.entry.temporary.encode()

    @property
    def backup(self) -> bytes:
        """A second temporary name, for file systems that cannot exchange: the first one's digits reversed."""
        return b".rye-" + self.aside[5:21][::-1] + b".tmp"


class Standing(NamedTuple):
    """How a step stands.

    Attributes:
        landed: the change is in place, or was.
        clean: the file holds what the commit knows of, not what someone else wrote meanwhile.
        ready: it can land, or has.
    """

    landed: bool
    clean: bool
    ready: bool


def prepare(step: Step, data: bytes | None) -> None:
    """Write a step's new content beside the file, if the file holds what the entry says.

    Raises:
        WorkspaceError: `conflict`.
        OSError: as the system says.
    """
    if digest_at(step.place.dir_fd, step.place.name) != step.entry.before or _blocked(step):
        raise conflict(step.place)
    if data is not None and step.entry.before != step.entry.after:
        stage(step.place, data, step.aside, step.entry.mode)


def _blocked(step: Step) -> bool:
    """Tell whether something that is no regular file stands where none is expected."""
    if step.entry.before is not None:
        return False
    try:
        os.stat(step.place.name, dir_fd=step.place.dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def turn(step: Step, before: str | None, after: str | None) -> None:
    """Let the content `after` stand where `before` stands; what is displaced stands under the temporary name then."""
    if before == after:
        return
    if after is None:
        set_aside(step.place, step.aside, before or "")
    else:
        put(step.place, step.aside, before, step.backup)


def take_back(steps: Sequence[Step], *, keep_staged: bool) -> list[str]:
    """Bring every file that is in place back to its old content; return what is to be said of files that are neither.

    Of such a file that had not had its turn, the content meant for it is kept beside it only with `keep_staged`.
    """
    left: list[str] = []
    for step in reversed(steps):
        standing = look(step)
        if standing.clean and standing.landed:
            turn(step, step.entry.after, step.entry.before)
        elif not standing.clean and (standing.landed or keep_staged):
            left += leave(step, standing)
    return left


def look(step: Step) -> Standing:
    """Find out how a step stands, from the digests alone; what another program's file lost in a crash it gets back."""
    fd, entry = step.place.dir_fd, step.entry
    now, aside = digest_at(fd, step.place.name), digest_at(fd, step.aside)
    if digest_at(fd, step.backup) is not None:
        # The file system cannot exchange, and the crash came within the renames that stand for it.
        if aside is None:
            os.rename(step.backup, step.aside, src_dir_fd=fd, dst_dir_fd=fd)
            aside = digest_at(fd, step.aside)
        else:
            os.unlink(step.backup, dir_fd=fd)
    if aside not in (None, entry.before, entry.after):
        put(step.place, step.aside, now)
        now, aside = aside, now
    if entry.before is None:
        landed = aside is None or now == entry.after
    elif entry.after is None:
        landed = aside == entry.before or (aside is None and now is None)
    else:
        landed = aside == entry.before or (aside is None and now == entry.after)
    clean = now == (entry.after if landed else entry.before)
    return Standing(landed, clean, landed or (clean and (entry.after is None or aside is not None or now == entry.after)))


def leave(step: Step, standing: Standing) -> list[str]:
    """Keep a step's other content beside a file that someone else has changed meanwhile."""
    about = f"{step.place.shown} was changed by another program meanwhile, and left as it is"
    try:
        kept = keep(step.place, step.aside)
    except FileNotFoundError:
        # A new file that is gone again was taken back already, or its deletion is the other program's last word.
        return [f"{about}."] if step.entry.before is not None or _blocked(step) else []
    which = "the content before" if standing.landed else "the content meant for it"
    return [f"{about}; {which} is kept as {names.show(b'/'.join([*step.place.parts[:-1], kept]))}."]


def clear(step: Step) -> bool:
    """Remove what stands under a step's temporary names; tell whether they are free."""
    free = [discard(step.place.dir_fd, name) for name in (step.aside, step.backup)]
    return all(free)
