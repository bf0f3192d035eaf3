r"""Splicing line ranges: pure functions from a text and what shall change to the exact bytes, and to a diff.

Every byte outside the given splices is the same afterwards. The only exceptions follow from the format of text itself: a
last line without a newline gains one when lines are put behind it. Exact text that is found in lines is a splice, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Literal, NamedTuple

from rye.errors import EditError
from rye.line_ids.diff import align, gaps
from rye.line_ids.document import Document
from rye.line_ids.index import bare
from rye.line_ids.reconcile import Splice
from rye.plain_class import changed
from rye.workspace import escapes
from rye.workspace.encoding import Encoding
from rye.workspace.text import Text

Newline = Literal["keep", "lf", "crlf"]
FinalNewline = Literal["keep", "add", "remove"]
CONTEXT = 3


def placed(splices: Sequence[Splice]) -> Iterator[tuple[Splice, int]]:
    """Yield ascending splices, each with the line of the new text at which its lines begin."""
    shift = 0
    for splice in splices:
        yield splice, splice.start + shift
        shift += len(splice.lines) - (splice.stop - splice.start)


def terminated(text: Text, start: int, stop: int, bodies: Sequence[bytes], newline: Newline = "keep") -> Splice:
    """Return the splice that puts `bodies` in place of lines [start, stop), each with a terminator.

    With "keep", a new line takes the terminator of the line it replaces, further ones that of the line before them.
    """
    code = text.encoding
    if newline != "keep":
        ending = code.newline if newline == "lf" else code.crlf
        return Splice(start, stop, [body + ending for body in bodies])
    old = code.terminators(text.lines(start, stop))
    last = _neighbour(text, start, old)
    out: list[bytes] = []
    for at, body in enumerate(bodies):
        if at < len(old) and old[at]:
            last = old[at]
        out.append(body + last)
    return Splice(start, stop, out)


def _neighbour(text: Text, start: int, old: list[bytes]) -> bytes:
    """Return the terminator that lines around `start` have; a lone line's file ends lines with LF."""
    code = text.encoding
    for ending in old:
        if ending:
            return ending
    for at in (start - 1, start + len(old)):
        for line in text.lines(max(at, 0), at + 1):
            if ending := code.terminator(line):
                return ending
    return dominant(text)


def dominant(text: Text) -> bytes:
    """Return the commonest terminator of the text's first 256 lines, LF where there is none."""
    counts = Counter(text.encoding.terminator(line) for line in text.lines(0, 256))
    counts.pop(b"", None)
    return counts.most_common(1)[0][0] if counts else text.encoding.newline


def line_ends(text: Text) -> str:
    """Return how the lines end: "lf", "crlf", "mixed", or "none" for a text without a newline."""
    code = text.encoding
    # Counted in the bytes: splitting a large file for this would cost many times as much.
    if len(code.newline) == 1:
        data = text.slice(0, text.size)
        crlf = data.count(b"\r\n")
        kinds = {"crlf": crlf, "lf": data.count(b"\n") - crlf}
    else:
        endings = [code.terminator(line) for line in text.lines()]
        kinds = {"crlf": endings.count(code.crlf), "lf": endings.count(code.newline)}
    present = [name for name, count in kinds.items() if count]
    return present[0] if len(present) == 1 else "mixed" if present else "none"


def assemble(text: Text, splices: Sequence[Splice], final: FinalNewline = "keep") -> list[Splice]:
    """Return the splices with the end of the file put right.

    Args:
        text: the text before.
        splices: ascending, one for each change; they may meet. Every new line has a terminator.
        final: "keep" leaves untouched lines alone and gives a new last line a newline if the old last line had one, or if
            it is empty.

    Returns:
        Ascending splices; joined with the untouched lines they make the new file.

    Raises:
        EditError: `empty_last_line`, `odd_end`: no bytes say what is asked for.
    """
    out = [splice for splice in splices if splice.stop > splice.start or splice.lines]
    code, count = text.encoding, text.count
    tail = text.lines(count - 1, count)
    open_end = bool(tail) and not code.terminator(tail[0])
    appended = next((at for at, splice in enumerate(out) if splice.start == count), None)
    if appended is not None and open_end and not (appended and out[appended - 1].stop == count):
        # A splice of its own, or the old last line might be taken for a twin among those put behind it.
        out.insert(appended, Splice(count - 1, count, [_closed(text, tail[0])]))
    return _end(text, out, final, open_end=open_end)


def _end(text: Text, splices: list[Splice], final: FinalNewline, *, open_end: bool) -> list[Splice]:
    """Decide whether the file's last line, new or old, ends in a newline."""
    code, count = text.encoding, text.count
    at = len(splices) - 1
    reach = count
    # Deletions at the end uncover an earlier line.
    while at >= 0 and splices[at].stop == reach and not splices[at].lines:
        reach = splices[at].start
        at -= 1
    is_new = at >= 0 and splices[at].stop == reach
    if not is_new and (final == "keep" or reach == 0):
        return splices
    lines = splices[at].lines if is_new else text.lines(reach - 1, reach)
    body = code.body(lines[-1])
    if (not open_end) if final == "keep" else final == "add":
        last_line = lines[-1] if code.terminator(lines[-1]) else _closed(text, lines[-1])
    elif body or final == "keep":
        last_line = body or lines[-1]
    else:
        why = "The last line would be empty, and an empty line without a newline does not exist. Nothing was written."
        raise EditError("empty_last_line", why, "Delete that line, or leave the final newline.")
    if is_new:
        splices[at] = splices[at]._replace(lines=[*lines[:-1], last_line])
    elif last_line != lines[-1]:
        splices.insert(at + 1, Splice(reach - 1, reach, [last_line]))
    return splices


def _closed(text: Text, line: bytes) -> bytes:
    """Return the text's last line with the terminator that it lacks."""
    if len(line) % len(text.encoding.newline):
        raise EditError(
            "odd_end",
            f"The file ends within a character of its encoding ({text.encoding.label}); no line can follow there. "
            "Nothing was written.",
            "Replace its last line, then put lines behind it.",
        )
    return line + _neighbour(text, text.count - 1, [])


def refine(text: Text, splices: Sequence[Splice], keys: Callable[[list[bytes]], list[bytes]] | None = None) -> list[Splice]:
    """Return the smallest splices of the same effect; with `keys`, lines of equal key count as unchanged.

    Each is compared by itself, so that no line counts as unchanged because another change wrote its text. One whose lines have
    names stays as it is.
    """
    out: list[Splice] = []
    for splice in splices:
        if splice.names is not None:
            out.append(splice)
            continue
        old = text.lines(splice.start, splice.stop)
        both = [*old, *splice.lines] if keys is None else keys([*old, *splice.lines])
        a, b = both[: len(old)], both[len(old) :]
        for i, stop, j, new_stop in gaps(_same(text.encoding, a, b), len(a), len(b)):
            out.append(Splice(splice.start + i, splice.start + stop, splice.lines[j:new_stop]))
    return out


def _same(code: Encoding, old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return the unchanged blocks. Where only white space changes, each line is itself, however many twins it has."""
    if len(old) != len(new) or any(a != b and bare(code.key(a)) != bare(code.key(b)) for a, b in zip(old, new, strict=True)):
        # Most edits replace lines by others altogether: then there is nothing to align.
        return [] if set(old).isdisjoint(new) else align(old, new)
    blocks: list[tuple[int, int, int]] = []
    for at, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            start = blocks.pop()[0] if blocks and sum(blocks[-1][1:]) == at else at
            blocks.append((start, start, at + 1 - start))
    return blocks


def render(data: bytes, text: Text, splices: Sequence[Splice]) -> bytes:
    """Return the new content of the whole file; `data` is the old one, which `text` is the text of."""
    # Views: the unchanged part of a large file is copied once, in the join.
    old = memoryview(data)
    pieces: list[bytes | memoryview] = []
    at = 0
    for splice in splices:
        pieces += [old[at : text.offset(splice.start)], *splice.lines]
        at = text.offset(splice.stop)
    pieces.append(old[at:])
    return b"".join(pieces)


def converted(text: Text, splices: Sequence[Splice], to: Literal["lf", "crlf"]) -> list[Splice]:
    """Return splices over the whole text that also give every terminated line the terminator `to`."""
    code = text.encoding
    ending = code.newline if to == "lf" else code.crlf
    out: list[Splice] = []
    at = 0
    # The empty splice at the end covers the lines after the last real one.
    for splice in [*splices, Splice(text.count, text.count, [])]:
        out += (Splice(at, splice.start, text.lines(at, splice.start)), splice)
        at = splice.stop
    return [one._replace(lines=[code.body(x) + ending if code.terminator(x) else x for x in one.lines]) for one in out]


def joined(splices: Sequence[Splice]) -> list[Splice]:
    """Join splices that meet, such as insertions at one point in the order given; names are left out."""
    out: list[Splice] = []
    for splice in splices:
        if out and out[-1].stop == splice.start:
            out[-1] = Splice(out[-1].start, splice.stop, [*out[-1].lines, *splice.lines])
        else:
            out.append(Splice(*splice[:3]))
    return out


def unified_diff(
    path: str, text: Text, splices: Sequence[Splice], *, created: bool = False, line_ends: bool = False
) -> list[str]:
    """Return the lines of a unified diff of refined splices; a change of terminator alone is made visible.

    With `line_ends` that also holds for a line beside others that change: then no program can apply the diff.
    """
    out = ["--- /dev/null" if created else f"--- a/{path}", f"+++ b/{path}"]
    shift = 0
    for group in _groups(splices):
        low, high = max(0, group[0].start - CONTEXT), min(text.count, group[-1].stop + CONTEXT)
        grown = sum(len(s.lines) - (s.stop - s.start) for s in group)
        out.append(f"@@ -{_span(low, high - low)} +{_span(low + shift, high - low + grown)} @@")
        old = text.lines(low, high)
        # Shown in one go: to decode each few lines by themselves takes longer than the rest of a diff.
        shown = text.encoding.show_all(old)
        at = 0
        for splice in group:
            start, stop = splice.start - low, splice.stop - low
            out += _signed(" ", old[at:start], shown[at:start], text.encoding)
            out += _changed(old[start:stop], shown[start:stop], splice.lines, text.encoding, line_ends=line_ends)
            at = stop
        out += _signed(" ", old[at:], shown[at:], text.encoding)
        shift += grown
    return out


def _span(start: int, count: int) -> str:
    return f"{start + (count > 0)},{count}"


def _groups(splices: Sequence[Splice]) -> list[list[Splice]]:
    groups: list[list[Splice]] = []
    for splice in splices:
        # Hunks whose context would touch are printed as one, as git does.
        if groups and splice.start - groups[-1][-1].stop <= 2 * CONTEXT:
            groups[-1].append(splice)
        else:
            groups.append([splice])
    return groups


def _changed(old: list[bytes], shown: list[str], new: list[bytes], code: Encoding, *, line_ends: bool) -> list[str]:
    """Return both sides; where a line's terminator alone changes, it is named."""
    plain = code.bodies([*old, *new])
    bodies = plain[: len(old)], plain[len(old) :]
    twins: set[bytes] = set()
    if bodies[0] == bodies[1]:
        # A terminator that comes or goes shows in the marker of the missing newline.
        pairs = zip(code.terminators(old), code.terminators(new), strict=True)
        twins = {body for body, pair in zip(bodies[0], pairs, strict=True) if all(pair)}
    elif line_ends and {*old}.isdisjoint(new):
        # A line that is on both sides differs in its terminator alone.
        twins = {*bodies[0]} & {*bodies[1]}
    out: list[str] = []
    for sign, lines, texts, plain in zip("-+", (old, new), (shown, code.show_all(new)), bodies, strict=True):
        out += _signed(sign, lines, texts, code, [at for at, body in enumerate(plain) if body in twins])
    return out


def _signed(sign: str, lines: list[bytes], texts: list[str], code: Encoding, reveal: Collection[int] = ()) -> list[str]:
    out = [sign + text for text in texts]
    for at in reveal:
        ending = code.terminator(lines[at])
        out[at] += (" [CRLF]" if ending == code.crlf else " [LF]") if ending else ""
    # Only a file's last line can be without a terminator.
    if lines and (not lines[-1].endswith(code.newline) or len(lines[-1]) % len(code.newline)):
        out.append("\\ No newline at end of file")
    return out


class FoundText(NamedTuple):
    """Where a text was found: the lines that the matches touch (from 0), and the splices that replace them.

    Of matches that overlap (`b a b` in `b a b a b`) the first is among `places`; `overlapping` tells of others.
    """

    places: int
    lines: list[int]
    splices: list[Splice]
    overlapping: bool


def find(document: Document, start: int, stop: int, old: str, new: str) -> FoundText:
    """Find a text in lines [start, stop); it may span lines, and a newline at its end is the line's own."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    texts = document.texts(start, stop)
    all_text, starts = "\n".join([*texts, ""]), list(accumulate([len(text) + 1 for text in texts], initial=0))
    within = escapes.within(all_text, document.text.encoding, document.data or b"")
    places, every = (
        [at for at in _places(all_text, old, overlapping=each) if not {at, at + len(old)} & within] for each in (False, True)
    )
    splices, certain = list[Splice](), document.text.encoding.certain
    if places:
        # Of an encoding that is a guess this alone must fit; the rest of the lines stands in the file already.
        document.encode(new.replace("\n", ""))
    for low, high, bodies in _replaced(all_text, starts, places, len(old), new):
        encode = (None if certain else _as_guessed(document, start + low, texts[low:high])) or document.encode
        splices.append(terminated(document.text, start + low, start + high, [encode(body) for body in bodies]))
    lines = sorted({start + bisect_right(starts, place) - 1 for place in every})
    return FoundText(len(places), lines, splices, len(every) > len(places))


def _as_guessed(document: Document, start: int, texts: list[str]) -> Callable[[str], bytes] | None:
    """Return what encodes lines as their encoding was guessed; None where that gives other bytes than a file's lines have."""
    code = document.text.encoding

    def encode(text: str) -> bytes:
        return escapes.encode(text, changed(code, certain=True), document.data or b"", document.path)

    with suppress(EditError):
        if [*map(encode, texts)] == code.bodies(document.text.lines(start, start + len(texts))):
            return encode
    return None


def _replaced(all_text: str, starts: list[int], places: list[int], size: int, new: str) -> list[tuple[int, int, list[str]]]:
    """Return (first line, line behind the last, new lines) of each range of lines that matches of a text of `size` touch."""
    out: list[tuple[int, int, list[str]]] = []
    for low, high, inside in _regions(places, size, starts):
        pieces, at = list[str](), starts[low]
        for place in inside:
            pieces += [all_text[at:place], new]
            at = place + size
        lines = "".join([*pieces, all_text[at : starts[high]]]).split("\n")
        # What took the newline of the last line leaves it without one here; the file's end is kept as it was.
        out.append((low, high, lines[:-1] if lines[-1] == "" else lines))
    return out


def _places(all_text: str, old: str, *, overlapping: bool = False) -> list[int]:
    """Return where a text begins, each match behind the end of the one before; or all, also those that overlap."""
    out, at, step = list[int](), all_text.find(old), 1 if overlapping else len(old)
    while at >= 0:
        out.append(at)
        at = all_text.find(old, at + step)
    return out


def _regions(places: list[int], size: int, starts: list[int]) -> list[tuple[int, int, list[int]]]:
    """Return the ranges of lines [low, high) that matches touch, with the matches in each; a line is in one range only."""
    out: list[tuple[int, int, list[int]]] = []
    for place in places:
        # A match that ends in a newline joins the next line to what is put in its place.
        low, high = bisect_right(starts, place) - 1, min(bisect_right(starts, place + size), len(starts) - 1)
        if out and low < out[-1][1]:
            first, last, inside = out.pop()
            # Not copied: one line can have very many.
            inside.append(place)
            out.append((first, max(high, last), inside))
        else:
            out.append((low, high, [place]))
    return out


def similar_lines(document: Document, start: int, stop: int, old: str) -> tuple[list[int], int, bool]:
    """Return up to five places where a text begins but for white space, how many of its lines stand there, and whether all do.

    Of all places those that have most of it.
    """
    first, *others = ["".join(line.split()) for line in old.strip("\n").split("\n")]
    texts = ["".join(text.split()) for text in document.texts(start, stop)] if first else []

    def run(at: int) -> int:
        count = 0
        for line, text in zip(others, texts[at + 1 : at + 1 + len(others)], strict=False):
            if line != text and not (count == len(others) - 1 and text.startswith(line)):
                break
            count += 1
        return count + 1

    # Bounded: where all lines are alike, each would be tried with each.
    runs = {at: run(at) for at in [at for at, text in enumerate(texts) if first in text][: 1 + 100_000 // (1 + len(others))]}
    most = max(runs.values(), default=0)
    return [start + at for at, count in runs.items() if count == most][:5], most, most == len(others) + 1
