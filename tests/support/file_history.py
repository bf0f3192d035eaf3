"""One file's random history through the tools, and the oracle beside it that holds the file as bytes."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from random import Random

import rye
from rye.journal import journal
from rye.workspace.workspace import Workspace
from support.byte_oracle import Content, Refused, derivable, overlapping

TEXTS = [
    "",
    "",
    "}",
    "}",
    "    }",
    "return x",
    "    return x",
    "x\ty ",
    "a\rb",
    "f\x0cf",
    "s\u2028s",
    "n\x85n",
    "é",
    "日本",
    "🙂",
    "[x",
]
ROWS = {"lid": re.compile(r"\[LID:([0-9a-f]+)\] (.*)", re.DOTALL), "short": re.compile(r"(?:([0-9]+[a-z]*)\t)?(.*)", re.DOTALL)}
KINDS = ["utf-8", "utf-8", "utf-8+bom", "utf-16-le+bom", "utf-16-be+bom", "latin-1", "shift_jis", "broken"]
NAME = "some file.txt"


def bare(text):
    return re.sub("[ \t\r\x0b\x0c]", "", text)


class History:
    """One file's history and what the model knows of it."""

    def __init__(self, seed, folder, tally, form="lid"):
        self.rng = Random(seed)
        self.form, self.row = form, ROWS[form]
        self.root = Path(folder) / "project"
        self.root.mkdir()
        self.file = self.root / NAME
        self.kind = self.rng.choice(KINDS)
        self.declared = self.kind if self.kind in ("latin-1", "shift_jis") else None
        self.codec = self.kind.split("+")[0] if self.kind != "broken" else "utf-8"
        self.tally = tally
        self.fresh = 0
        self.problems = []
        # What the model knows: the IDs of the lines as they stand, the text of every ID ever seen.
        self.ids = []
        self.names = {}
        self.revived = set()
        self.indexed = self.stale = False
        self.snapshots = {}
        # Recorded changes as (entry, bytes before, bytes after); None where the file did not exist.
        self.done = []
        self.undoes = {}
        self.put(self.random_bytes())

    # The outside world.

    def put(self, data):
        self.file.write_bytes(data)
        self.content = Content(data, self.codec)
        self.ids = [None] * len(self.content.lines)

    @property
    def data(self):
        return self.content.bom + b"".join(self.content.lines)

    def text(self):
        self.fresh += 1
        text = self.rng.choice([self.rng.choice(TEXTS), f"line {self.fresh}", "  " * self.rng.randrange(3) + f"l{self.fresh}"])
        return text if self.kind != "broken" or text.isascii() else "ascii"

    def fitting(self):
        """A line's bytes in the file's encoding, sometimes with bytes that do not decode."""
        text = self.text()
        if self.kind == "broken" and self.rng.random() < 0.3:
            return b"caf\xe9 \xff\xfe\x81\x8d\x90\x9d"
        return text.encode(self.codec, "replace")

    def random_bytes(self, lines=None):
        head = {"utf-8+bom": b"\xef\xbb\xbf", "utf-16-le+bom": b"\xff\xfe", "utf-16-be+bom": b"\xfe\xff"}.get(self.kind, b"")
        style = self.rng.choice(["\n", "\n", "\r\n", "mixed"])
        lines = self.rng.randrange(14) if lines is None else lines
        out = [self.fitting() + self.line_end(style).encode(self.codec) for _ in range(lines)]
        if out and self.rng.random() < 0.3:
            out[-1] = self.fitting() or "x".encode(self.codec)
        if self.kind == "broken":
            out.append(b"\xe9\xff\x81\x8d\x90\x9d")
        return head + b"".join(out)

    def line_end(self, style):
        return self.rng.choice(["\n", "\r\n"]) if style == "mixed" else style

    def outside(self):
        lines = list(self.content.lines)
        before = lines[:]
        for _ in range(self.rng.randrange(1, 3)):
            at = self.rng.randrange(len(lines) + 1)
            kind = self.rng.randrange(4)
            if kind == 0:
                lines[at : at + self.rng.randrange(4)] = []
            elif kind == 1 and lines:
                lines[at:at] = lines[:2]
            elif kind == 2:
                tab = "\t".encode(self.codec)
                lines[at : at + 4] = [tab + line for line in lines[at : at + 4]]
            else:
                lines[at:at] = [self.fitting() + self.content.lf for _ in range(self.rng.randrange(1, 4))]
        for at, line in enumerate(lines[:-1]):
            if not self.content.ending(line):
                lines[at] = line + self.content.lf
        if lines == before:
            return
        self.put(self.content.bom + b"".join(lines))
        self.stale = self.indexed

    def lose_index(self):
        shutil.rmtree(self.root / ".ai" / "cache", ignore_errors=True)
        self.ids = [None] * len(self.content.lines)
        self.indexed = self.stale = False
        self.snapshots.clear()

    def lose_state(self):
        shutil.rmtree(Path(os.environ["USER_SPACE"]) / ".ai" / "state", ignore_errors=True)
        self.done.clear()
        self.undoes.clear()
        # The index was sealed by a secret that is gone with the state.
        self.ids = [None] * len(self.content.lines)
        self.indexed = self.stale = False
        self.snapshots.clear()

    # Calls.

    def call(self, tool, **parameters):
        if tool in ("read", "edit_lines"):
            parameters["line_ids"] = self.form
            parameters |= {"encoding": self.declared} if self.declared else {}
        answer = rye.execute(f"rye/file-system/{tool}", parameters, project_path=self.root)
        data = answer["data"] or {"success": False, "error": answer["error"], "code": answer["code"]}
        self.tally[f"{tool} {'done' if data['success'] else data['code']}"] += 1
        if data.get("code") == "tool_crashed":
            self.problems.append(f"{tool} crashed: {parameters}")
        return data

    def same(self, expected, what):
        if self.file.read_bytes() != expected:
            self.problems.append(f"{what}: the file's bytes are {self.file.read_bytes()!r}, expected {expected!r}")

    def learn(self, at, name):
        """A line was shown with an ID; the short form prints none before an empty line."""
        if name is None and not self.content.shown(at):
            return
        text = self.content.shown(at)
        if self.ids[at] not in (None, name):
            self.problems.append(f"line {at + 1} was {self.ids[at]}, now it is {name}")
        if bare(self.names.setdefault(name, text)) != bare(text):
            self.problems.append(f"{name} named {self.names[name]!r}, now it names {text!r}")
        self.ids[at] = name

    def unique(self):
        known = [name for name in self.ids if name]
        if len(set(known)) != len(known):
            self.problems.append(f"an ID stands twice: {self.ids}")

    def read(self, offset=1, limit=2_000):
        data = self.call("read", file_path=NAME, offset=offset, limit=limit)
        total = len(self.content.lines)
        if not data["success"]:
            if data["code"] != "bad_offset" or offset <= total or (offset == 1 and not total):
                self.problems.append(f"read refused: {data}")
            return None
        if data["total_lines"] != total:
            self.problems.append(f"read: {data['total_lines']} lines, there are {total}")
            return None
        lines = data["output"].split("\n")[: data["line_count"]]
        for at, line in enumerate(lines, data["offset"] - 1):
            match = self.row.fullmatch(line)
            if match is None or match[2] != self.content.shown(at):
                self.problems.append(f"read shows {line!r} for line {at + 1}, {self.content.shown(at)!r}")
                return None
            self.learn(at, match[1])
        self.unique()
        self.indexed, self.stale = True, False
        self.snapshots[data["version"]] = (self.data, list(self.ids))
        return data

    def read_pages(self):
        size = self.rng.choice([3, 7, 2_000])
        for offset in range(1, max(2, len(self.content.lines) + 1), size):
            self.read(offset, size)

    def read_changes(self):
        whole = self.form == "short"
        known = [(version, *rest) for version, rest in self.snapshots.items() if whole or None not in rest[1]]
        if not known:
            return
        version, then, ids = self.rng.choice(known)
        data = self.call("read", file_path=NAME, changes_since=version)
        if not data["success"] or not data["changes_known"]:
            return
        at, seen = 0, set()
        if self.form == "short":
            self.read_short_changes(data, then, ids)
            return
        for line in data["output"].split("\n"):
            if line.startswith("@ line "):
                at = int(line[7:]) - 1
            elif (match := self.row.fullmatch(line)) and at < len(self.content.lines):
                if match[2] != self.content.shown(at):
                    self.problems.append(f"changes_since shows {line!r} for line {at + 1}")
                self.learn(at, match[1])
                seen.add(at)
                at += 1
        self.indexed, self.stale = True, False
        texts = dict(zip(ids, Content(then, self.codec).texts(), strict=True))
        self.read()
        for at, name in enumerate(self.ids):
            if at not in seen and texts.get(name) != self.content.shown(at):
                self.problems.append(f"changes_since {version} was silent about line {at + 1}")

    def read_short_changes(self, data, then, ids):
        """Every line that is new or has another text since is shown with its address; nothing shown is wrong."""
        shown = dict(line.split("\t", 1) for line in data["output"].split("\n") if re.match(r"[0-9]+[a-z]*\t", line))
        self.indexed, self.stale = True, False
        texts = dict(zip(ids, Content(then, self.codec).texts(), strict=True))
        self.read()
        for at, name in enumerate(self.ids):
            text = self.content.shown(at)
            if name in shown and shown[name] != text:
                self.problems.append(f"changes_since shows {shown[name]!r} for {name}, which is {text!r}")
            if text and name not in shown and texts.get(name) != text:
                self.problems.append(f"changes_since was silent about line {at + 1}")

    def write(self):
        text = "".join(self.text() + self.rng.choice(["\n", "\r\n"]) for _ in range(self.rng.randrange(9)))
        codec = self.codec
        text = self.content.bom.decode(codec) + text.encode(codec, "ignore").decode(codec)
        before = self.data
        data = self.call("write", file_path=NAME, content=text, encoding=codec)
        if not data["success"]:
            self.problems.append(f"write refused: {data}")
            return
        expected = text.encode(codec)
        self.same(expected, "write")
        if data["bytes_written"] != len(expected) or data["created"]:
            self.problems.append(f"write reports {data['bytes_written']} bytes, created {data['created']}")
        if data["unchanged"] != (before == expected) or ("entry_id" in data) == data["unchanged"]:
            self.problems.append(f"write says unchanged={data['unchanged']}, entry {data.get('entry_id')}")
        if data["unchanged"]:
            return
        self.done.append((data["entry_id"], before, expected))
        self.restarted(expected)

    def restarted(self, data):
        self.content = Content(data, self.codec)
        self.ids = [None] * len(self.content.lines)
        self.indexed, self.stale = True, False
        self.snapshots.clear()

    def change(self):
        """A change by IDs that the model knows, and the span that it means; or None."""
        known = [at for at, name in enumerate(self.ids) if name]
        content = "".join(self.text() + "\n" for _ in range(self.rng.randrange(4)))
        content = content.removesuffix("\n") if self.rng.random() < 0.5 else content
        form = self.rng.randrange(6)
        if form < 2 and known:
            at = self.rng.choice(known)
            return {"line_id": self.ids[at], "new_content": content}, (at, at + 1, content)
        if form == 2 and known:
            a, b = sorted((self.rng.choice(known), self.rng.choice(known)))
            b = min(b, a + 5)
            if self.ids[b]:
                return {"start_line_id": self.ids[a], "end_line_id": self.ids[b], "new_content": content}, (a, b + 1, content)
        content = content or "\n"
        side = self.rng.choice(["after", "before"])
        if form == 3 and known:
            at = self.rng.choice(known)
            to = at + (side == "after")
            return {f"{side}_line_id": self.ids[at], "new_content": content}, (to, to, content)
        end = self.rng.choice(["start", "end"])
        to = 0 if end == "start" else len(self.content.lines)
        return {f"{side}_line_id": end, "new_content": content}, (to, to, content)

    def edit(self):
        made = [self.change() for _ in range(self.rng.choice([1, 1, 2, 3]))]
        changes, spans = [one for one, _ in made], [span for _, span in made]
        options, dry = self.options()
        spoiled = self.spoil(changes)
        before = self.data
        nameless = [at for at, name in enumerate(self.ids) if name is None]
        # In the short form an empty line shows no address, and has one all the same.
        nameless = [at for at in nameless if self.form == "lid" or self.content.shown(at)]
        seen = not nameless and not self.stale and self.indexed
        try:
            ascii_only = self.kind == "broken" and not self.decodes()
            expected = self.content.edited(spans, ascii_only=ascii_only, **options["means"])
        except Refused:
            expected = None
        data = self.call("edit_lines", file_path=NAME, changes=changes, dry_run=dry, **options["says"])
        may = expected not in (None, before) and not spoiled and self.indexed and not self.stale
        if not data["success"]:
            self.same(before, f"refused edit ({data['code']})")
            if "Nothing was written" not in data["error"] and data["code"] != "tool_crashed":
                self.problems.append(f"a refusal does not say that nothing was written: {data['error']}")
            if may and seen:
                self.problems.append(f"a good edit was refused: {data} {changes}")
            # The refusal itself brings the index up to date, but makes none.
            self.stale = self.stale and data["code"] != "stale_file"
            return
        if not may:
            self.problems.append(f"an edit was applied that had to be refused: {changes} {options}")
        self.same(before if dry else expected, f"edit {changes} {options}")
        if dry or self.problems:
            return
        self.done.append((data["entry_id"], before, expected))
        self.follow(before, expected, spans)
        for row in data["lines"] if self.form == "lid" else ():
            self.learn(row["line_num"] - 1, row["id"])
        self.unique()

    def decodes(self):
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return False
        return True

    def options(self):
        says, means = {}, {}
        if self.rng.random() < 0.2:
            says["newline"] = means["newline"] = self.rng.choice(["lf", "crlf"])
        if self.rng.random() < 0.3:
            says["final_newline"] = means["final"] = self.rng.choice(["add", "remove"])
        if self.rng.random() < 0.1:
            says["convert_newlines"] = means["convert"] = self.rng.choice(["lf", "crlf"])
        return {"says": says, "means": means}, self.rng.random() < 0.1

    def spoil(self, changes):
        """Now and then make the request wrong; then all of it must be refused."""
        if self.rng.random() > 0.1:
            return False
        known = [name for name in self.ids if name]
        wrong = [
            {"line_id": "ffffffffff", "new_content": "x"},
            {"new_content": "x"},
            {"after_line_id": "end", "new_content": ""},
        ]
        if len(known) > 1:
            wrong.append({"start_line_id": known[1], "end_line_id": known[0], "new_content": "x"})
            wrong.append({"line_id": known[0], "after_line_id": known[0], "new_content": "x"})
        changes.insert(self.rng.randrange(len(changes) + 1), self.rng.choice(wrong))
        return True

    def follow(self, before, after, spans):
        """Carry the known IDs of lines outside the spans; those inside are learnt again."""
        assert not overlapping(spans)
        old = Content(before, self.codec)
        self.content = Content(after, self.codec)
        ids, at = [], 0
        for start, stop, content in sorted(spans, key=lambda span: span[:2]):
            count = len(content.split("\n")) - content.endswith("\n") if content else 0
            ids += [*self.ids[at:start], *[None] * count]
            at = stop
        ids += self.ids[at:]
        assert len(ids) == len(self.content.lines), (old.lines, self.content.lines, spans)
        self.ids = ids

    def undo(self):
        """Take back the last change, or any, or an undo."""
        standing = [one for one in self.done if not self.undone(one[0])]
        parameters = {}
        plain = [one for one in standing if one[0] not in self.undoes]
        if self.rng.random() < 0.5 and standing:
            entry, before, after = self.rng.choice(standing)
            parameters["entry_id"] = entry
        elif plain:
            entry, before, after = plain[-1]
        else:
            entry = None
        now = self.data
        recorded = self.recorded(entry) if entry else None
        data = self.call("undo", **parameters)
        if not data["success"]:
            self.same(now, f"refused undo ({data['code']})")
            self.indexed, self.stale = self.indexed or data["code"] == "changed_since", False
            if entry is not None and now == after:
                self.problems.append(f"a good undo was refused: {data}")
            return
        if entry is None or data["undone"] != entry:
            self.problems.append(f"undo took back {data['undone']}, expected {entry}")
            return
        result = self.file.read_bytes()
        if now == after:
            self.same(before, "undo")
        elif recorded.whole or not derivable(Content(now, self.codec), Content(result, self.codec), recorded.splices):
            self.problems.append(f"undo of {entry} made {result!r} of {now!r}")
        self.undoes[data["entry_id"]] = entry
        self.done.append((data["entry_id"], now, result))
        self.content = Content(result, self.codec)
        self.ids = [None] * len(self.content.lines)
        self.indexed, self.stale = True, False
        self.snapshots.clear()
        if recorded.whole and self.declared:
            # A restored file is looked at anew; the encoding declared with the next call may be another.
            self.read()

    def undone(self, entry):
        """Whether an undo of it stands: one that is not undone itself."""
        return any(of == entry and not self.undone(by) for by, of in self.undoes.items())

    def recorded(self, entry):
        with Workspace(str(self.root)) as ws:
            return journal.find(ws, entry)

    def step(self):
        ops = [
            self.read_pages,
            self.read_pages,
            self.edit,
            self.edit,
            self.edit,
            self.edit,
            self.edit,
            self.undo,
            self.undo,
            self.outside,
            self.outside,
            self.read_changes,
            self.write,
            self.lose_index,
            self.lose_state,
        ]
        weights = [3, 3, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 0.7, 0.5, 0.2]
        op = self.rng.choices(ops, weights)[0]
        op()
        if op == self.outside and self.rng.random() < 0.7:
            self.read()
        self.same(self.data, op.__name__)
        return op.__name__
