"""Differences of files as a patch in git's form, which `git apply` takes: texts, binary files, modes, links and renames."""

from __future__ import annotations

import zlib
from base64 import b85encode
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from hashlib import sha1
from typing import Final, NamedTuple

from rye.fs import names
from rye.journal.merges import lines_of
from rye.provenance.points import FileDiff, Side

_LINK: Final = 0o120000
_FILE, _PROGRAM = 0o100644, 0o100755
# A file that came where another went is shown as renamed, if so many of its lines were in it.
_ALIKE: Final = 0.5
_SAME: Final = 1.1
# So many pairs of a file that went and one that came are compared line by line.
_MOST_COMPARED: Final = 400
_LINE_BYTES: Final = 52
_NOTHING: Final = "0" * 40
_NO_NEWLINE: Final = b"\n\\ No newline at end of file\n"


class _Change(NamedTuple):
    """A path before and after, with another name before where it was renamed. Each side is a file or a link; None: nothing."""

    old: bytes
    new: bytes
    before: Side | None
    after: Side | None


def patch(changes: Iterable[FileDiff]) -> bytes:
    """Return a patch of what is known of some changes. Git has no folders, pipes and devices: they are left out."""
    return b"".join(piece for one in _renamed(_changes(changes)) for piece in _section(one))


def _changes(changes: Iterable[FileDiff]) -> Iterator[_Change]:
    for one in changes:
        if not one.is_known:
            continue
        name = names.parse(one.path)
        before, after = (side if side is not None and side.kind in ("file", "link") else None for side in one[1:])
        if before is not None and after is not None and before.kind != after.kind:
            # As git has it: another kind of file is another file.
            yield _Change(name, name, before, None)
            yield _Change(name, name, None, after)
        elif before is not None or after is not None:
            yield _Change(name, name, before, after)


def _renamed(changes: Iterable[_Change]) -> list[_Change]:
    """Return changes with each file that came under another name as a rename of the one that went."""
    found = list(changes)
    # A name that another kind of file took is no rename: backwards, git would find the other one in its place.
    times = Counter(one.new for one in found)
    gone = [at for at, one in enumerate(found) if one.after is None and times[one.new] == 1 and _has_content(one.before)]
    came = [at for at, one in enumerate(found) if one.before is None and times[one.new] == 1 and _has_content(one.after)]
    # Where many files came and went, only the same content is looked for.
    least = _ALIKE if len(gone) * len(came) <= _MOST_COMPARED else _SAME
    by_data = {one.data: at for at in gone if (one := found[at].before) is not None}
    for at in came:
        after = found[at].after
        near = gone if least < _SAME else [by_data[after.data]] if after is not None and after.data in by_data else []
        near = [other for other in near if found[other].before is not None]
        likeness, best = max(((_likeness(found[other].before, after), other) for other in near), default=(0.0, 0))
        if likeness >= least:
            found[at] = found[at]._replace(old=found[best].old, before=found[best].before)
            found[best] = found[best]._replace(before=None)
    return [one for one in found if one.before is not None or one.after is not None]


def _has_content(side: Side | None) -> bool:
    return side is not None and side.kind == "file" and bool(side.data)


def _likeness(old: Side | None, new: Side | None) -> float:
    """Return which part of the lines of two files is in both."""
    if old is None or new is None or old.kind != new.kind or not old.data or not new.data:
        return 0.0
    if old.data == new.data:
        return _SAME
    lines = [Counter(lines_of(side.data or b"")) for side in (old, new)]
    return (lines[0] & lines[1]).total() / max(lines[0].total(), lines[1].total())


def _section(change: _Change) -> Iterator[bytes]:
    """Yield the pieces for one path."""
    before, after = change.before, change.after
    modes = (_mode(before, after), _mode(after, before))
    data = tuple(b"" if side is None or side.data is None else side.data for side in (before, after))
    is_kept = before is not None and after is not None
    if is_kept and change.old == change.new and modes[0] == modes[1] and data[0] == data[1]:
        return
    yield b"diff --git %s %s\n" % (_quoted(b"a/" + change.old), _quoted(b"b/" + change.new))
    if before is None:
        yield b"new file mode %o\n" % modes[1]
    elif after is None:
        yield b"deleted file mode %o\n" % modes[0]
    elif modes[0] != modes[1]:
        yield b"old mode %o\nnew mode %o\n" % modes
    if change.old != change.new:
        share = int(100 * min(_likeness(before, after), 1))
        names_of = (_quoted(change.old), _quoted(change.new))
        yield b"similarity index %d%%\nrename from %s\nrename to %s\n" % (share, *names_of)
    if is_kept and data[0] == data[1]:
        return
    blobs = tuple(_NOTHING if side is None else _blob(one) for side, one in zip((before, after), data, strict=True))
    kept_mode = f" {modes[0]:o}" if is_kept and modes[0] == modes[1] else ""
    yield f"index {blobs[0]}..{blobs[1]}{kept_mode}\n".encode()
    if any(b"\0" in one for one in data):
        yield b"GIT binary patch\n" + _literal(data[1]) + _literal(data[0])
    elif data[0] != data[1]:
        yield _heading(b"---", None if before is None else b"a/" + change.old)
        yield _heading(b"+++", None if after is None else b"b/" + change.new)
        yield from _hunks(data[0], data[1])


def _mode(side: Side | None, other: Side | None) -> int:
    """Return a side's mode as git has it; one that is not recorded is that of the other side."""
    if side is not None and side.kind == "link":
        return _LINK
    known = side.mode if side is not None and side.mode is not None else other.mode if other is not None else None
    return _PROGRAM if known is not None and known & 0o100 else _FILE


def _blob(data: bytes) -> str:
    """Return git's name of a content: binary patches must have both."""
    return sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def _literal(data: bytes) -> bytes:
    """Return a whole content as git writes it in a binary patch: compressed, in lines of 52 bytes in base 85."""
    packed = zlib.compress(data)
    out = [b"literal %d\n" % len(data)]
    for at in range(0, len(packed), _LINE_BYTES):
        line = packed[at : at + _LINE_BYTES]
        # The first letter is the line's length: A to Z are 1 to 26, a to z go on.
        size = bytes([len(line) + (64 if len(line) <= 26 else 70)])
        out.append(size + b85encode(line, pad=True) + b"\n")
    return b"".join([*out, b"\n"])


def _heading(sign: bytes, name: bytes | None) -> bytes:
    """Return a line that names a side. Behind a name with a blank stands a tab, by which other programs find its end."""
    quoted = b"/dev/null" if name is None else _quoted(name)
    return b"%s %s%s\n" % (sign, quoted, b"\t" if b" " in quoted and quoted[:1] != b'"' else b"")


def _hunks(before: bytes, after: bytes) -> Iterator[bytes]:
    """Yield the lines of the hunks between two texts, which may be in any encoding."""
    old, new = ([line.decode("utf-8", "surrogateescape") for line in lines_of(data)] for data in (before, after))
    # The first two lines are the names.
    for at, text in enumerate(unified_diff(old, new)):
        if at > 1:
            line = text.encode("utf-8", "surrogateescape")
            yield line if line.endswith(b"\n") else line + _NO_NEWLINE


def _quoted(path: bytes) -> bytes:
    r"""Return a path as git writes it in a patch: in quotes with escapes, where it holds more than printable ASCII."""
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in path):
        return path
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in path)
    return f'"{escaped}"'.encode()
