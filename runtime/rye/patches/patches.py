"""Line patches of several files: the request's form, its problems, and the splices that a file patch means on a text.

Everything here is pure. A problem is collected, never raised, so that one answer names all that is wrong with a batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from rye.call.results import MAX_LINE_CHARS, shorten
from rye.edits import splices as edits_splices
from rye.errors import RyeError
from rye.line_ids.reconcile import Splice
from rye.line_ids.render import reveal
from rye.plain_class import Record, field
from rye.workspace import escapes
from rye.workspace.text import Text

OPERATIONS = ("insert", "replace", "delete")
WORDS = ("description", "severity", "category", "tags")
"""What a change may say of itself: stored, echoed, and without effect."""

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_FIELDS = {
    "insert": ({"afterLine", "newLines"}, {"startLine", "endLine", "expectedOriginalLines"}),
    "replace": ({"startLine", "endLine", "expectedOriginalLines", "newLines"}, {"afterLine"}),
    "delete": ({"startLine", "endLine", "expectedOriginalLines"}, {"afterLine", "newLines"}),
}
_DIFFERENCES = 8
_SHOWN = 500
_BEFORE = 40


class Problems(Record, frozen=False):
    """What is wrong with a batch, and warnings; with `guard` "refuse" a new syntax error is wrong, too."""

    errors: list[dict[str, Any]] = field(factory=list)
    warnings: list[str] = field(factory=list)
    guard: str = "tell"

    def add(self, code: str, message: str, patch: FilePatch | None = None, change: LineChange | None = None) -> None:
        """Note a problem of the batch, of a file patch, or of one of its changes (counted from 1)."""
        problem: dict[str, Any] = {"code": code, "message": message}
        if patch is not None:
            problem["docPath"] = patch.doc_path
            problem.update({"fileKey": patch.key} if patch.key else {})
        if change is not None:
            problem["change"] = change.number
            problem.update({"changeKey": change.key} if change.key else {})
        self.errors.append(problem)


class LineChange(Record):
    """One operation on whole lines: lines [start, stop), from 0, become `new`; `expected` is what must be there."""

    number: int
    id: str
    request: dict[str, Any]
    operation: str
    start: int
    stop: int
    new: Sequence[str]
    expected: Sequence[str]
    sound: bool

    @property
    def key(self) -> str | None:
        """The caller's own name for it."""
        return self.request.get("changeKey")


class FilePatch(Record):
    """What a batch asks of one file: its changes by line, its creation with `content`, or its deletion.

    `sound` tells whether the request alone has no problem.
    """

    id: str
    request: dict[str, Any]
    kind: str
    doc_path: str
    digest: str
    changes: Sequence[LineChange] = ()
    sound: bool = True

    @property
    def key(self) -> str | None:
        """The caller's own name for it."""
        return self.request.get("fileKey")


class Batch(Record):
    """A request with an ID for itself, each file and each change."""

    id: str
    request: dict[str, Any]
    patches: Sequence[FilePatch]

    @property
    def ids(self) -> list[str]:
        """All IDs, in the order in which `parse` takes them."""
        return [self.id, *(name for patch in self.patches for name in (patch.id, *(change.id for change in patch.changes)))]


def parse(request: dict[str, Any], new_id: Callable[[], str], problems: Problems) -> Batch:
    """Return the batch that a request describes, of the right JSON types already; what is wrong with it goes to `problems`.

    Args:
        request: `batchLabel`, `batchKey`, `files`; besides, off the normative path, `createFiles` and `deleteFiles`.
        new_id: gives the next ID.
        problems: collects.
    """
    name = new_id()
    patches = [_file_patch(file_request, new_id, problems) for file_request in request.get("files", ())]
    patches += [_creation(file_request, new_id, problems) for file_request in request.get("createFiles", ())]
    patches += [_deletion(file_request, new_id, problems) for file_request in request.get("deleteFiles", ())]
    parts = [request, *request.get("files", ()), *(one for file in request.get("files", ()) for one in file.get("changes", ()))]
    # IDs are never taken from the caller: one that is reused would join two batches in the journal.
    for field_name in ("batchId", "filePatchId", "changeId"):
        if any(field_name in part for part in parts):
            problems.warnings.append(f"{field_name} is assigned here; the one given is ignored.")
    if not patches:
        problems.add("no_files", "files is required, and holds one or more file patches.")
    # A path to create may have capitals, a docPath has none: in lower case both mean one file.
    for patch in _again(patches, lambda patch: patch.doc_path.lower() or None):
        problems.add(
            "duplicate_doc_path", f"docPath {patch.doc_path} appears more than once; put all its changes together.", patch
        )
    for patch in _again(patches, lambda patch: patch.key):
        problems.warnings.append(f"fileKey {patch.key!r} names several files of the batch; use filePatchId to tell them apart.")
    return Batch(name, request, patches)


def _again(items: Sequence[Any], name: Callable[[Any], str | None]) -> list[Any]:
    """Return the items whose name an earlier one has."""
    keys_seen: set[str] = set()
    out = []
    for item in items:
        one = name(item)
        if one is not None and one in keys_seen:
            out.append(item)
        keys_seen.add(one or "")
    return out


def _file_patch(request: dict[str, Any], new_id: Callable[[], str], problems: Problems) -> FilePatch:
    patch_id, known = new_id(), len(problems.errors)
    patch = FilePatch(patch_id, request, "patch", request.get("docPath", ""), request.get("originalSha256", "").lower())
    _check_file(patch, problems)
    changes = [_change(patch, number, one, new_id(), problems) for number, one in enumerate(request.get("changes", ()), 1)]
    if not changes:
        problems.add("no_changes", "changes is required and must not be empty; leave a file without changes out.", patch)
    for change in _again(changes, lambda change: change.key):
        problems.warnings.append(f"changeKey {change.key!r} names several changes of {patch.doc_path}; use changeId.")
    # A change with a bad range would be reported a second time as out of order.
    _check_order(patch, [change for change in changes if change.sound], problems)
    return FilePatch(patch_id, request, "patch", patch.doc_path, patch.digest, changes, sound=len(problems.errors) == known)


def _check_file(patch: FilePatch, problems: Problems) -> None:
    if not patch.doc_path:
        problems.add("missing_field", "docPath is required.", patch)
    if "originalSha256" not in patch.request:
        problems.add("missing_field", "originalSha256 is required; workspace_read_file gives it as sha256.", patch)
    elif not _SHA256.fullmatch(patch.digest):
        problems.add(
            "malformed_digest",
            "originalSha256 is not a SHA-256 in hexadecimal (64 digits); copy the sha256 that workspace_read_file gives.",
            patch,
        )


def _creation(request: dict[str, Any], new_id: Callable[[], str], problems: Problems) -> FilePatch:
    patch = FilePatch(new_id(), request, "create", request.get("path", ""), "")
    if not patch.doc_path or "content" not in request:
        problems.add("missing_field", "A file to create needs path and content.", patch)
    return patch


def _deletion(request: dict[str, Any], new_id: Callable[[], str], problems: Problems) -> FilePatch:
    patch = FilePatch(new_id(), request, "delete", request.get("docPath", ""), request.get("originalSha256", "").lower())
    _check_file(patch, problems)
    return patch


def _change(patch: FilePatch, number: int, request: dict[str, Any], change_id: str, problems: Problems) -> LineChange:
    """Return one change; `sound` tells whether its own fields have no problem."""
    operation = request.get("operation", "")
    known = len(problems.errors)
    start, stop = request.get("startLine", 1) - 1, request.get("endLine", 0)
    if operation == "insert":
        start = stop = request.get("afterLine", 0)
    new, expected = request.get("newLines", []), request.get("expectedOriginalLines", [])
    change = LineChange(number, change_id, request, operation, start, stop, new, expected, sound=True)
    for code, message in _faults(change):
        problems.add(code, f"Change {number}: {message}", patch, change)
    if len(problems.errors) == known:
        return change
    return LineChange(number, change_id, request, operation, start, stop, new, expected, sound=False)


def _faults(change: LineChange) -> list[tuple[str, str]]:
    """Return what is wrong with a change by itself, as (code, sentence)."""
    request = change.request
    if change.operation not in OPERATIONS:
        message = f"operation {change.operation!r} is unknown" if "operation" in request else "operation is required"
        return [("unknown_operation", f"{message}; one of insert, replace, delete.")]
    required, forbidden = _FIELDS[change.operation]
    missing = sorted(required - request.keys())
    out = [("missing_field", f"{change.operation} needs {name}.") for name in missing]
    for name in sorted(forbidden & request.keys()):
        hint = " To put other lines there use replace." if name == "newLines" else ""
        out.append(("unexpected_field", f"{name} must not be present for {change.operation}.{hint}"))
    for at, line in enumerate(change.new, 1):
        if "\n" in line:
            out.append(("newline_in_line", f"newLines[{at}] holds a newline; give each line as an item of its own."))
    # The checks below would read a missing field as an empty one and report it again.
    if missing:
        return out
    if change.operation != "delete" and not change.new:
        hint = " Use delete to remove lines." if change.operation == "replace" else ""
        out.append(("no_lines", f"newLines must hold one or more lines.{hint}"))
    if change.operation == "insert":
        if change.start < 0:
            out.append(("bad_range", f"afterLine {change.start} is below 0; 0 inserts before line 1."))
        return out
    if change.start < 0 or change.stop <= change.start:
        message = f"lines {change.start + 1} to {change.stop} are no range; startLine is at least 1, endLine not before it."
        return [*out, ("bad_range", message)]
    if len(change.expected) != change.stop - change.start:
        message = f"expectedOriginalLines holds {len(change.expected)} line(s), the range {change.stop - change.start}."
        out.append(("expected_lines_differ", message))
    return out


def _check_order(patch: FilePatch, changes: Sequence[LineChange], problems: Problems) -> None:
    """Changes come in order from top to bottom, by `afterLine` and `startLine`, and no two touch the same lines."""
    highest = -1
    for change in changes:
        line = change.start if change.operation == "insert" else change.start + 1
        if line < highest:
            message = (
                f"Change {change.number} is at line {line}, after one at line {highest}; order changes from top to bottom."
            )
            problems.add("unordered_changes", message, patch, change)
        highest = max(highest, line)
    reach, holder = -1, 0
    # Sorted here, because wrong order is a problem of its own, reported above.
    for change in sorted(changes, key=lambda change: (change.start, change.stop, change.number)):
        if change.start < reach:
            message = f"Changes {min(holder, change.number)} and {max(holder, change.number)} overlap."
            problems.add("overlapping_changes", message, patch, change)
        if change.stop > reach:
            reach, holder = change.stop, change.number


# --- against a text ---


def splices_for(patch: FilePatch, text: Text, data: bytes, problems: Problems) -> list[Splice]:
    """Return the complete splices that a file patch means on the authoritative text; [] after a problem.

    Args:
        patch: of kind "patch".
        text: the authoritative text.
        data: its bytes, of which `originalSha256` must be the digest.
        problems: collects.
    """
    known = len(problems.errors)
    check_digest(patch, data, problems)
    splices: list[Splice] = []
    for change in patch.changes:
        if change.sound and _fits(patch, change, text, problems):
            splices += _splice(patch, change, text, data, problems)
    if len(problems.errors) > known or not patch.sound:
        return []
    try:
        return edits_splices.assemble(text, sorted(splices, key=lambda splice: splice[:2]))
    except RyeError as err:
        problems.add(err.code, str(err), patch)
        return []


def check_digest(patch: FilePatch, data: bytes, problems: Problems) -> None:
    """Note a problem where the authoritative content is not the one that the patch was planned on."""
    found = sha256(data).hexdigest()
    if _SHA256.fullmatch(patch.digest) and found != patch.digest:
        problems.add(
            "wrong_digest",
            f"The file has the SHA-256 {found}, not {patch.digest}: the patch was planned on another "
            "content. Call workspace_read_file again.",
            patch,
        )


def _fits(patch: FilePatch, change: LineChange, text: Text, problems: Problems) -> bool:
    """Tell whether a change's lines exist and are the expected ones."""
    if change.stop > text.count:
        which = "afterLine" if change.operation == "insert" else "endLine"
        message = f"Change {change.number}: {which} {change.stop} is past the end; the file has {text.count} line(s)."
        problems.add("bad_range", message, patch, change)
        return False
    if change.operation == "insert":
        return True
    # Compared in the form in which views print lines: the caller knows no other.
    present = [text.encoding.show(line) for line in text.lines(change.start, change.stop)]
    # A long line may be given as views print it: the digest of the whole file says what stands behind its cut.
    printed = [shorten(line) for line in present]
    if not all(given in both for given, *both in zip(change.expected, present, printed, strict=True)):
        shown = "\n".join(_differences(change, present))
        message = f"Change {change.number}: the lines there are not the expected ones (- expected, + now there):\n{shown}"
        problems.add("expected_lines_differ", message, patch, change)
        return False
    marks = [line[MAX_LINE_CHARS:] for line in printed if len(line) > MAX_LINE_CHARS]
    if any(mark in line for mark in marks for line in change.new):
        message = f"Change {change.number}: newLines holds a line as it is shown, shortened; the rest of it would be lost."
        problems.add(
            "shortened_line", f"{message} edit_lines with find and replace changes a part of a long line.", patch, change
        )
        return False
    return True


def _differences(change: LineChange, present: Sequence[str]) -> list[str]:
    out: list[str] = []
    for at, (expected, found) in enumerate(zip(change.expected, present, strict=True), change.start + 1):
        if expected == found:
            continue
        if len(out) == 2 * _DIFFERENCES:
            return [*out, "…"]
        same = next(
            (n for n, (one, other) in enumerate(zip(expected, found, strict=False)) if one != other),
            min(len(expected), len(found)),
        )
        # What both lines begin with is left out, where it would push the difference out of sight.
        first = max(same - _BEFORE, 0) if same >= _SHOWN - _BEFORE else 0
        where = f" (from character {first + 1})" if first else ""
        sides = (expected[first : first + _SHOWN], found[first : first + _SHOWN])
        # Lines that differ only in blanks look the same in print.
        blank = sides[0].split() == sides[1].split()
        out += [f"{sign}{at}{where}: {reveal(side) if blank else side}" for sign, side in zip("-+", sides, strict=True)]
    return out


def _splice(patch: FilePatch, change: LineChange, text: Text, data: bytes, problems: Problems) -> list[Splice]:
    try:
        bodies = [escapes.encode(line, text.encoding, data, patch.doc_path) for line in change.new]
    except RyeError as err:
        problems.add(err.code, f"Change {change.number}: {err}", patch, change)
        return []
    splice = edits_splices.terminated(text, change.start, change.stop, bodies)
    if [text.encoding.body(line) for line in splice.lines] != bodies:
        message = (
            f"Change {change.number}: a line of newLines ends in a carriage return, which would become a part of its ending."
        )
        problems.add("newline_in_line", message, patch, change)
        return []
    return [splice]
