"""A file is a list of byte lines: every tool that writes, in any order, against an oracle that knows nothing of the tools' code.

A state machine makes calls and other programs' changes; after each call every byte, every text and every ID is compared.
The codecs include those whose characters can end in the bytes of `\\`, `{` and `|`, and bytes that no codec explains.
Hypothesis shrinks what goes wrong, and prints it as a program. `RYE_TEST_TIMES=20` tries 20 times as many.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from support.byte_oracle import BOMS, Content, Refused
from support.calling import call
from support.harness import times
from support.workspace_calls import delete, insert, replace

CODECS = [
    *["utf-8", "utf-8", "utf-8+mark", "broken", "utf-16-le", "utf-16-le+mark", "utf-16-be+mark", "utf-32-le+mark", "utf-32-be"],
    *["iso8859-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "koi8-r", "koi8-u", "cp866"],
    *["mac_roman", "shift_jis", "cp932", "euc_jp", "gb18030", "gbk", "big5", "big5hkscs", "euc_kr", "cp949", "johab"],
]
MARKS = {codec: mark for mark, codec in BOMS.items()}
ODD_BYTES = b"\\{|}[]^`~@"
NO_CODEC = b"caf\xe9 \xff\xfe\x81\x8d\x90\x9d"
TEXTS = ["", "}", "    }", "return x", "x\ty ", "a\rb", "f\x0cf", "[x", "\\x", "0"]
NAME = "some file.txt"
ROWS = {"lid": re.compile(r"\[LID:([0-9a-f]+)\] (.*)", re.DOTALL), "short": re.compile(r"(?:([0-9]+[a-z]*)\t)?(.*)", re.DOTALL)}
# What leaves a file as it was, where an edit would change nothing or cannot be written.
NOTHING = {"no_change", "unencodable", "bad_change", "final_newline", "ambiguous_escape"}


@cache
def alphabet(codec: str) -> list[str]:
    """Characters of a codec: ASCII, its own, and those whose last byte is one of `\\`, `{`, `|` and the like."""
    # In UTF-16 these hold a newline's bytes, across two characters.
    own, odd = ["\u0a05\u0100\u0a05"] if codec[:3] == "utf" else [], []
    for number in (*range(0xA1, 0x500), *range(0x2010, 0x2200), *range(0x3040, 0x9FA6, 3), *range(0xAC00, 0xD7A0, 7), 0x1F642):
        char = chr(number)
        try:
            data = char.encode(codec)
        except UnicodeError:
            continue
        if data.decode(codec) == char:
            (odd if len(data) > 1 and codec[:3] != "utf" and data[-1] in ODD_BYTES else own).append(char)
    chance = Random(codec)
    own = [*own[:1], *chance.sample(own, min(len(own), 23))]
    return [*"abcxyz \t\\{|}", *own, *chance.sample(odd, min(len(odd), 24))]


def bare(text: str) -> str:
    return re.sub("[ \t\r\x0b\x0c]", "", text)


class ByteMachine(RuleBasedStateMachine):
    """One file, what stands in it, and what a model was shown of it."""

    folder: Path
    form: str

    @initialize(codec=st.sampled_from(CODECS), data=st.data())
    def begin(self, codec: str, data: st.DataObject) -> None:
        self.project = Path(tempfile.mkdtemp(dir=self.folder))
        self.file = self.project / NAME
        self.kind, _, marked = codec.partition("+")
        self.codec = "utf-8" if self.kind == "broken" else self.kind
        self.bom = MARKS[self.codec] if marked else b""
        self.declared = None if marked or self.codec == "utf-8" else self.codec
        # The text that each ID ever named, and the versions that were shown, with their texts by ID.
        self.named: dict[str, str] = {}
        self.versions: dict[str, dict[str | None, str]] = {}
        # Changes that are recorded: entry, bytes before, bytes after.
        self.entries: list[tuple[str, bytes, bytes]] = []
        self.put(self.bom + b"".join(self.raw_lines(data, 9)))

    def teardown(self) -> None:
        if hasattr(self, "project"):
            shutil.rmtree(self.project)

    # --- the file, and other programs ---

    def put(self, data: bytes) -> None:
        self.file.write_bytes(data)
        self.content = Content(data, self.codec)

    @property
    def data(self) -> bytes:
        return self.content.bom + b"".join(self.content.lines)

    @property
    def decodes(self) -> bool:
        try:
            self.data[len(self.bom) :].decode(self.codec)
        except UnicodeDecodeError:
            return False
        return True

    def text(self, data: st.DataObject) -> str:
        letters = st.lists(st.sampled_from(alphabet(self.codec)), max_size=8).map("".join)
        found = data.draw(st.sampled_from([*TEXTS, alphabet(self.codec)[12] * 2]) | letters, "text")
        return found if self.kind != "broken" or found.isascii() else "ascii"

    def texts(self, data: st.DataObject, least: int = 0) -> list[str]:
        return [self.text(data) for _ in range(data.draw(st.integers(least, 3), "lines"))]

    def raw_lines(self, data: st.DataObject, most: int) -> list[bytes]:
        ends = data.draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]]), "line ends")
        lines = []
        for _ in range(data.draw(st.integers(0, most), "raw lines")):
            is_broken = self.kind == "broken" and data.draw(st.booleans(), "broken")
            text = NO_CODEC if is_broken else self.text(data).encode(self.codec)
            lines.append(text + data.draw(st.sampled_from(ends), "end").encode(self.codec))
        if lines and data.draw(st.integers(0, 3), "open end") == 0:
            lines[-1] = "x".encode(self.codec)
        # A last line that no codec explains holds the guess of an encoding off.
        return [*lines, NO_CODEC] if self.kind == "broken" else lines

    @rule(data=st.data())
    def another_program_writes(self, data: st.DataObject) -> None:
        lines = self.content.lines
        start = data.draw(st.integers(0, len(lines)), "start")
        stop = data.draw(st.integers(start, min(len(lines), start + 3)), "stop")
        end = data.draw(st.sampled_from([self.content.lf, self.content.crlf]), "end")
        new = [line if self.content.ending(line) else line + end for line in self.raw_lines(data, 3)]
        if stop < len(lines) or not new:
            self.put(self.bom + b"".join([*lines[:start], *new, *lines[stop:]]) if start < len(lines) else self.data)

    @precondition(lambda self: (self.project / ".ai/cache").exists())
    @rule(what=st.sampled_from(["cache", "state"]))
    def memory_is_lost(self, what: str) -> None:
        """What was known of lines goes with the cache, and with the state that seals it."""
        shutil.rmtree(self.project / ".ai/cache")
        self.named, self.versions = {}, {}
        if what == "state":
            shutil.rmtree(Path(os.environ["USER_SPACE"], ".ai/state"), ignore_errors=True)
            self.entries.clear()

    # --- calls ---

    def call(self, tool: str, **parameters: object) -> dict:
        return call(tool, self.project, **parameters)

    @property
    def encoding(self) -> dict:
        return {"encoding": self.declared} if self.declared else {}

    def ids(self) -> list[str | None]:
        """Read the file; compare what is shown; return the IDs of its lines, None where the short form prints none."""
        shown = self.call("read", file_path=NAME, limit=2_000, line_ids=self.form, **self.encoding)
        assert shown["success"], shown
        assert shown["total_lines"] == len(self.content.lines)
        rows = [ROWS[self.form].fullmatch(row) for row in shown["output"].split("\n")[: shown["line_count"]]]
        assert [row[2] for row in rows] == self.content.texts(), shown
        ids = [row[1] for row in rows]
        named = [one for one in ids if one]
        assert len(set(named)) == len(named), ids
        for name, text in zip(ids, self.content.texts(), strict=True):
            assert name is None or bare(self.named.setdefault(name, text)) == bare(text), (name, self.named[name], text)
        self.versions[shown["version"]] = dict(zip(ids, self.content.texts(), strict=True))
        return ids

    def span(self, data: st.DataObject) -> tuple[int, int]:
        start = data.draw(st.integers(0, len(self.content.lines) - 1), "first line")
        return start, data.draw(st.integers(start + 1, min(len(self.content.lines), start + 4)), "behind the last")

    def expected(self, spans: list[tuple[int, int, str]], **means: object) -> bytes | None:
        """The bytes after an edit; None where it must be refused."""
        try:
            return self.content.edited(spans, ascii_only=self.kind == "broken" and not self.decodes, **means)
        except Refused:
            return None

    def settle(self, answer: dict, expected: bytes | None) -> None:
        """Hold answer and file to what was expected."""
        before, now = self.data, self.file.read_bytes()
        if expected is None or expected == before:
            assert now == before, answer
            assert not answer["success"] or "entry_id" not in answer, answer
            return
        assert answer["success"], (answer, expected)
        assert now == expected, (now, expected, answer)
        self.content = Content(now, self.codec)
        entry = answer.get("entry_id") or self.call("undo", list=True, limit=1)["entries"][0]["entry_id"]
        self.entries.append((entry, before, now))

    def change(self, data: st.DataObject, ids: list[str | None]) -> tuple[dict, tuple[int, int, str]]:
        """A change by IDs, and the span that it means."""
        known = [at for at, name in enumerate(ids) if name]
        form = data.draw(st.sampled_from(["line", "range", "after", "before", "end", "start"] if known else ["end", "start"]))
        lines = self.texts(data, 0 if form in ("line", "range") else 1)
        content = "".join(f"{line}\n" for line in lines)
        if form in ("end", "start"):
            to = 0 if form == "start" else len(ids)
            return {f"{'before' if form == 'start' else 'after'}_line_id": form, "new_content": content}, (to, to, content)
        at = data.draw(st.sampled_from(known), "line")
        if form in ("after", "before"):
            to = at + (form == "after")
            return {f"{form}_line_id": ids[at], "new_content": content}, (to, to, content)
        last = at if form == "line" else data.draw(st.sampled_from([one for one in known if at <= one < at + 6]), "last")
        keys = {"line_id": ids[at]} if form == "line" else {"start_line_id": ids[at], "end_line_id": ids[last]}
        return {**keys, "new_content": content}, (at, last + 1, content)

    @rule(data=st.data(), more=st.integers(0, 2))
    def edit_by_id(self, data: st.DataObject, more: int) -> None:
        ids = self.ids()
        made = [self.change(data, ids) for _ in range(1 + more)]
        says, means = {}, {}
        for parameter, meaning, values in (
            ("newline", "newline", ["lf", "crlf"]),
            ("final_newline", "final", ["add", "remove"]),
            ("convert_newlines", "convert", ["lf", "crlf"]),
        ):
            if data.draw(st.integers(0, 5), parameter) == 0:
                says[parameter] = means[meaning] = data.draw(st.sampled_from(values))
        says["dry_run"] = data.draw(st.integers(0, 7), "dry run") == 0
        changes, spans = [one for one, _ in made], [span for _, span in made]
        expected = self.expected(spans, **means)
        if data.draw(st.integers(0, 9), "spoilt") == 0:
            wrong = [
                {"line_id": "ffffffffff", "new_content": "x"},
                {"new_content": "x"},
                {"after_line_id": "end", "new_content": ""},
            ]
            changes.insert(data.draw(st.integers(0, len(changes))), data.draw(st.sampled_from(wrong)))
            expected = None
        answer = self.call("edit_lines", file_path=NAME, changes=changes, line_ids=self.form, **says, **self.encoding)
        if not answer["success"]:
            assert "Nothing was written" in answer["error"], answer
        if says["dry_run"]:
            assert answer["success"] == (expected not in (None, self.data)), answer
            expected = None
        self.settle(answer, expected)
        if answer["success"]:
            self.ids()

    @precondition(lambda self: self.content.lines)
    @rule(data=st.data(), is_insert=st.booleans())
    def edit_by_number(self, data: st.DataObject, is_insert: bool) -> None:
        self.call("rye/swe/open_file_chunk", path=NAME, start=1, **self.encoding)
        start, stop = self.span(data)
        content = "".join(f"{line}\n" for line in self.texts(data, is_insert))
        if is_insert:
            answer = self.call("rye/swe/insert_at", path=NAME, line=start + 1, new_text=content, **self.encoding)
            self.settle(answer, self.expected([(start, start, content)]))
        else:
            words = {"start_line": start + 1, "end_line": stop, "new_text": content}
            answer = self.call("rye/swe/edit_range", path=NAME, **words, **self.encoding)
            self.settle(answer, self.expected([(start, stop, content)]))

    @precondition(lambda self: self.content.lines and self.kind != "broken")
    @rule(data=st.data())
    def edit_by_text(self, data: st.DataObject) -> None:
        """Part of a line, or a sign that is also the last byte of other characters."""
        texts = self.content.texts()
        line = data.draw(st.sampled_from(texts), "line")
        low = data.draw(st.integers(0, len(line)), "from")
        old = data.draw(st.sampled_from([line[low : low + 3], "\\", "{", "|", "}"]), "old") or "\\"
        new = self.text(data).replace("\r", "")
        at = next((at for at, text in enumerate(texts) if old in text), None)
        made = texts[at].replace(old, new, 1) if at is not None else ""
        # A carriage return before the newline would belong to the terminator; an open line without text is no line.
        if made.endswith("\r") or (not made and at == len(texts) - 1):
            return
        answer = self.call("rye/swe/edit_file", path=NAME, old=old, new=new, **self.encoding)
        self.settle(answer, None if at is None else self.expected([(at, at + 1, f"{made}\n")]))

    @precondition(lambda self: self.content.lines and self.decodes)
    @rule(data=st.data(), kind=st.sampled_from(["insert", "replace", "delete"]))
    def edit_by_patch(self, data: st.DataObject, kind: str) -> None:
        self.ids()
        start, stop = self.span(data)
        old = self.content.texts()[start:stop]
        new = [] if kind == "delete" else self.texts(data, 1)
        if kind == "insert":
            stop, change = start, insert(start, *new)
        else:
            change = delete(start + 1, *old) if kind == "delete" else replace(start + 1, old, *new)
        file = {"docPath": NAME, "originalSha256": hashlib.sha256(self.data).hexdigest(), "changes": [change]}
        answer = self.call("rye/workspace/workspace_write_patch", files=[file])
        self.settle(answer, self.expected([(start, stop, "".join(f"{line}\n" for line in new))]))

    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        text = "".join(line + data.draw(st.sampled_from(["\n", "\r\n"])) for line in self.texts(data, 1))
        codec = "utf-8-sig" if self.bom and self.codec == "utf-8" else self.codec
        # No codec name writes another mark: the text holds it.
        mark = "\ufeff" if self.bom and codec != "utf-8-sig" else ""
        answer = self.call("write", file_path=NAME, content=mark + text, encoding=codec)
        expected = self.bom + text.encode(self.codec)
        if answer["success"]:
            assert answer["unchanged"] == (expected == self.data), answer
        self.settle(answer, expected)
        # Lines that a whole file has again may be new ones.
        self.versions = {}

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), again=st.booleans())
    def undo(self, data: st.DataObject, again: bool) -> None:
        """A change whose file stands as it left it is taken back to the byte; another one too, or nothing is written."""
        entry, before, after = data.draw(st.sampled_from(self.entries), "entry")
        now = self.data
        answer = self.call("undo", entry_id=entry)
        if now != after:
            assert answer["success"] or self.file.read_bytes() == now, answer
            self.put(self.file.read_bytes())
            self.entries = []
            return
        if not answer["success"]:
            assert answer["code"] == "already_undone", answer
            return
        assert self.file.read_bytes() == before, (answer, before)
        if again:
            done = self.call("undo", entry_id=answer["entry_id"])
            assert done["success"], done
            assert self.file.read_bytes() == after
        self.put(self.file.read_bytes())

    @precondition(lambda self: any(None not in one for one in self.versions.values()))
    @rule(data=st.data())
    def read_changes(self, data: st.DataObject) -> None:
        """Every line that is new since, or has another text, is shown; what is shown is true."""
        version, then = data.draw(st.sampled_from([item for item in self.versions.items() if None not in item[1]]), "version")
        answer = self.call("read", file_path=NAME, changes_since=version, line_ids=self.form, **self.encoding)
        if not answer["success"] or not answer["changes_known"]:
            return
        found = (ROWS[self.form].fullmatch(row) for row in answer["output"].split("\n"))
        shown = {row[1]: row[2] for row in found if row and row[1]}
        for name, text in zip(self.ids(), self.content.texts(), strict=True):
            assert name not in shown or shown[name] == text, answer
            assert name in shown or not name or then.get(name) == text, (version, name, text, answer)


@pytest.mark.parametrize("form", ["lid", "short"])
@pytest.mark.parametrize("examples", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_no_byte_differs_and_no_good_edit_is_refused(tmp_path, form, examples):
    machine = type("Machine", (ByteMachine,), {"folder": tmp_path, "form": form})
    found = settings(
        max_examples=times(examples),
        stateful_step_count=12,
        database=None,
        suppress_health_check=[*HealthCheck],
        phases=[Phase.generate, Phase.shrink],
    )
    run_state_machine_as_test(machine, settings=found)


@pytest.mark.parametrize("wrong", ["表示\r\nb\n", "表\\\r\nb\r\n", "表示\r\nb\r\n\r\n"])
def test_control_a_torn_character_and_a_lost_terminator_are_seen(tmp_path, wrong):
    machine = ByteMachine()
    machine.file, machine.codec = tmp_path / NAME, "shift_jis"
    machine.put("表示\r\nb\r\n".encode("shift_jis"))
    machine.file.write_bytes(wrong.encode("shift_jis"))
    with pytest.raises(AssertionError):
        machine.settle({"success": True, "entry_id": "x"}, machine.content.edited([(0, 1, "示\n")]))
