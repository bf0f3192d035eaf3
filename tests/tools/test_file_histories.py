"""Random histories of files, against an oracle that knows none of the tools' code: every byte, every text, every address.

The oracle is a list of labelled raw lines for each file. It knows our own edits exactly: every line that a change leaves, moves or
takes back keeps its address; a line that a change writes has a new one, or that of an equal line (white space aside) among
those that the same change replaces. Of changes by others an address may stay with its line, or go where `git diff --patience`
says that the line is; otherwise it must be unknown. An edit of lines that stand as they were shown is not refused.
The codecs include those whose characters can end in the bytes of `\\`, `{` and `|`, and bytes that no codec explains.
`RYE_TEST_TIMES=40` tries 40 times as many.
"""

import itertools
import os
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import rye
from rye.line_ids import index as line_ids_index
from rye.toolkit import view_lines
from support.file_oracle import File, Line, Plan, Refused, bare, git_readings
from support.harness import times

CODECS = [
    *["utf-8", "utf-8", "utf-8+mark", "broken", "utf-16-le", "utf-16-le+mark", "utf-16-be+mark", "utf-32-le+mark", "utf-32-be"],
    *["iso8859-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "koi8-r", "koi8-u", "cp866"],
    *["mac_roman", "shift_jis", "cp932", "euc_jp", "gb18030", "gbk", "big5", "big5hkscs", "euc_kr", "cp949", "johab"],
]
ROWS = {"lid": re.compile(r"\[LID:([0-9a-f]+)\] (.*)", re.DOTALL), "short": re.compile(r"(?:([0-9]+[a-z]*)\t)?(.*)", re.DOTALL)}
FILES = ("some file.txt", "b.txt")
SPARSE = 8


def hold(problems):
    assert (found := [*problems]) == [], found


class History:
    """One history: two files, calls and writes by others, each checked."""

    def __init__(self, project, seed, form):
        self.rng, self.project, self.form = Random(seed), project, form
        self.tally, self.labels = Counter(), itertools.count(1)
        kinds = [self.rng.choice(CODECS) if self.rng.random() < 0.6 else "utf-8", "utf-8"]
        files = (File(project / name, kind, self.rng, self.labels) for name, kind in zip(FILES, kinds, strict=True))
        self.files = {file.name: file for file in files}
        # Of each call what undo takes it back by, and the lines of the files before and after.
        self.done = []

    def call(self, tool, **parameters):
        answer = rye.execute(tool if "/" in tool else f"rye/file-system/{tool}", parameters, project_path=self.project)
        data = answer["data"] or {"success": False, "code": answer["code"], "error": answer["error"]}
        assert data.get("code") != "tool_crashed", (parameters, data)
        return data

    def names(self, file):
        """The addresses of all lines; of a file that is looked at sparsely no line gets an ID by this."""

        def of(document):
            if self.form == "short":
                return document.index.addresses.names(0, document.count)
            # In a large file a line has an ID once it is shown.
            return [mark.id if (mark := document.index.marks.get(at)) else None for at in range(document.count)]

        return view_lines(str(self.project), file.name, of, file.encoding.get("encoding"))

    def read(self, file, *, whole=False):
        """Show all lines or some, as a model does."""
        if file.before is not None:
            hold(file.follow(self.names(file), self.project.parent, self.tally))
        window = {}
        if not whole and self.rng.random() < 0.3 and file.lines:
            window = {"offset": self.rng.randint(1, len(file.lines)), "limit": self.rng.randint(1, 20)}
        shown = self.call("read", file_path=file.name, line_ids=self.form, **window, **file.encoding)
        assert (shown["success"], shown["total_lines"]) == (True, len(file.lines)), shown
        start = window.get("offset", 1) - 1
        stop = min(start + window.get("limit", len(file.lines)), len(file.lines))
        rows = [ROWS[self.form].fullmatch(row) for row in shown["output"].split("\n")[: stop - start]]
        names = self.names(file)
        # The short form prints no address of an empty line.
        wanted = [(names[at] if self.form == "lid" or file.texts[at] else None, file.texts[at]) for at in range(start, stop)]
        assert [(row[1], row[2]) for row in rows] == wanted, shown
        printed = [line.label for line in file.lines[start:stop]]
        file.shown.update(printed)
        file.beside.update(itertools.pairwise(printed))
        hold(file.settle(names))

    # Changes by line.

    def name(self, file, at):
        """The address by which a model would name a line, None where it cannot know it."""
        label, raw = file.lines[at]
        return None if label not in file.shown or (self.form == "short" and not file.body(raw)) else file.address.get(label)

    def is_possible(self, file, start, stop):
        """Whether lines were shown as they are, side by side: then an edit of them is not to be refused."""
        labels = [line.label for line in file.lines[start:stop]]
        return file.shown.issuperset(labels) and file.beside.issuperset(itertools.pairwise(labels))

    def planned(self, file):
        """Disjoint changes as a model writes them, and what they mean."""
        cuts = sorted(self.rng.randrange(len(file.lines) + 1) for _ in range(2 * self.rng.randint(1, 3)))
        spans = [(a, min(b, a + 5)) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
        changes, plans, beside, moved = [], [], set(), set()
        place = "" if file.name == FILES[0] else f"{file.name}:"
        for start, stop in spans:
            here, new, number = [], file.new_texts(1, 3), len(changes) + 1
            if self.rng.random() < 0.4 and start < stop:
                # Written again among new ones, some of it.
                new += [text for text in file.texts[start:stop] if self.rng.random() < 0.7 and "\\x" not in text]
                self.rng.shuffle(new)
            written = "\n".join(new)
            if start == stop:
                side = self.rng.choice([at for at in (start - 1, start) if 0 <= at < len(file.lines)] or [-1])
                name = self.name(file, side) if side >= 0 else "end"
                beside.add(side)
                key, text = ("before", f"+{name}|") if side == start and side >= 0 else ("after", f"{name}+|")
                change, here = {f"{key}_line_id": name}, [Plan(start, stop, number, new)]
            else:
                first, last = self.name(file, start), self.name(file, stop - 1)
                name = None if None in (first, last) else first if stop - start == 1 else f"{first}-{last}"
                change, text, choice = {"start_line_id": first, "end_line_id": last}, f"{name}|", self.rng.random()
                here = [Plan(start, stop, number, new)]
                if choice < 0.2:
                    text, written, here = f"{name} delete", "", [Plan(start, stop, number, [])]
                elif choice < 0.45:
                    free = [at for at in range(len(file.lines)) if not any(a <= at < b or a == at + 1 for a, b in spans)]
                    at = self.rng.choice(free) if free else -1
                    if at < 0 or start <= at + 1 <= stop or self.name(file, at) is None:
                        continue
                    verb, lines = self.rng.choice(["move", "copy"]), file.lines[start:stop]
                    text, written = f"{name} {verb} after {self.name(file, at)}", ""
                    here = [Plan(at + 1, at + 1, number, lines if verb == "move" else [line.raw for line in lines])]
                    here += [Plan(start, stop, number, [])] if verb == "move" else []
                    moved.update(range(start, stop) if verb == "move" else ())
            if name is not None:
                is_text = place or text[-1] != "|" or "\r" in written or self.rng.random() < 0.5
                changes.append(f"{place}{text}{written}" if is_text else {**change, "new_content": f"{written}\n"})
                plans += here
        return ([], []) if beside & moved else (changes, plans)

    def edit_lines(self):
        """Changes of every form, in one file or both; most are of lines that were shown as they are."""
        one, other = self.files.values()
        files = [one, other] if self.rng.random() < 0.3 and not one.encoding else [one]
        if is_fresh := self.rng.random() < 0.3:
            for file in files:
                self.read(file, whole=True)
        changes, plans, says = [], {}, {}
        for file in files:
            made, plans[file.name] = self.planned(file)
            changes += made
        if len(files) == 1:
            ends = ["lf", "crlf"]
            for name, values in {"newline": ends, "final_newline": ["add", "remove"], "convert_newlines": ends}.items():
                if self.rng.random() < 0.1:
                    says[name] = self.rng.choice(values)
        is_possible = all(self.is_possible(self.files[name], *plan[:2]) for name, some in plans.items() for plan in some)
        if changes and (is_possible or self.rng.random() < 0.2):
            parameters = {"file_path": one.name, "changes": changes, "line_ids": self.form, "on_stale": "rebase"}
            parameters |= {**one.encoding, **says}
            self.submit("edit_lines", parameters, plans, is_possible=is_possible, is_fresh=is_fresh, **says)

    def find(self):
        """Exact text in all places: a line's, or a sign that is also the last byte of other characters."""
        file = self.files[self.rng.choice(FILES)]
        texts = [text for text in file.texts if text.strip() and "\r" not in text and "\\" not in text]
        old = self.rng.choice(texts if texts and self.rng.random() < 0.7 else ["{", "|", "}"])
        count, new = "\n".join(file.texts).count(old), file.new_text().replace("\r", "")
        if old in new or not count:
            return
        plans = [Plan(at, at + 1, 1, [text.replace(old, new)]) for at, text in enumerate(file.texts) if old in text]
        if any("\\x" in text for plan in plans for text in plan.new):
            return
        change = {"find": old, "replace": new, "count": count}
        parameters = {"file_path": file.name, "changes": [change], "line_ids": self.form, "on_stale": "rebase", **file.encoding}
        self.submit("edit_lines", parameters, {file.name: plans}, is_fresh=False)

    def submit(self, tool, parameters, plans, *, is_possible=True, is_fresh=True, **means):
        """Call a tool that means some plans; check the bytes and all addresses. Of files that were just read no edit is refused."""
        before = {name: list(file.lines) for name, file in self.files.items()}
        try:
            after = {name: self.files[name].edited(some, **means) for name, some in plans.items()}
        except Refused:
            after, is_possible = None, False
        else:
            changed = {name: made for name, made in after.items() if self.files[name].data(made) != self.files[name].data()}
            # What leaves one file as it is may be refused.
            after, is_possible = changed, is_possible and len(changed) == len(after)
        were_written = [file for file in self.files.values() if file.before is not None]
        dry = {"dry_run": True} if tool == "edit_lines" and self.rng.random() < 0.1 else {}
        if tool == "edit_lines" and self.rng.random() < 0.08:
            names = self.rng.choice([{"line_id": "ffffffffff"}, {}, {"line_id": "end"}])
            parameters["changes"].insert(0, {**names, "new_content": "x"})
            after = None
        answer = self.call(tool, **parameters, **dry)
        about = (tool, parameters, answer)
        done = answer["success"] and not dry and ("entry_id" in answer or "batchId" in answer)
        if not after:
            assert not answer["success"] or "entry_id" not in answer, about
            after = {}
        elif dry:
            assert answer["success"] or not (is_possible and is_fresh), about
        for name, file in self.files.items():
            found = file.path.read_bytes()
            if done and name in after and file.before is not None:
                # Where git, too, takes another line for the one that was named, nobody can tell which it is.
                readings = [after[name], *self.readings(file, plans[name], means)]
                after[name] = next((one for one in readings if file.data(one) == found), after[name])
            wanted = file.data(after[name] if done and name in after else None)
            assert found == wanted, (found, wanted, about)
        if not done:
            assert answer["success"] or "Nothing was written" in answer["error"] or tool != "edit_lines", about
            if after and not dry:
                self.tally["edits of lines that stand as they were shown"] += is_possible
                self.tally["edits refused"] += is_possible
                assert not (is_possible and is_fresh), about
            for file in self.files.values():
                if file.before is not None:
                    hold(file.follow(self.names(file), self.project.parent, self.tally))
            return
        self.tally["edits of lines that stand as they were shown"] += is_possible
        for name, file in self.files.items():
            if file.before is not None:
                # Edited without a look: the tool followed the others' change before it made ours.
                self.follow_blind(file, after.get(name))
            elif name in after:
                hold(file.check(self.names(file), after[name]))
        if were_written:
            # Which lines these were before is not known exactly.
            self.done.clear()
            return
        taken = {"batchId": answer["batchId"]} if "batchId" in answer else {"entry_id": answer.get("entry_id")}
        self.done.append((taken, before, {name: list(file.lines) for name, file in self.files.items()}))

    def readings(self, file, plans, means):
        """What plans make of a file that others wrote, if its lines are those that git takes them for."""
        before = [file.text_of(line.raw) for line in file.before]
        for pairs in git_readings(before, file.texts, self.project.parent):
            place = {file.before[old].label: new for old, new in pairs}
            labels, moved = [line.label for line in file.lines], []
            for plan in plans:
                start, stop = plan.start, plan.stop
                named = [place.get(label) for label in labels[start:stop] or labels[max(start - 1, 0) : start or 1]]
                if None in named or named != [*range(named[0], named[0] + len(named))]:
                    break
                first = named[0] + (start == stop and start > 0)
                moved.append(plan._replace(start=first, stop=first + stop - start))
            else:
                yield file.edited(moved, **means)

    def follow_blind(self, file, after):
        """Check an edit that came between others' change and a look: bytes were as the truth says; addresses by what they name."""
        texts = {line.label: file.text_of(line.raw) for line in file.before}
        file.before, names = None, self.names(file)
        lines = file.lines
        if after is not None:
            lines = [Line(next(self.labels) if one.label is None else one.label, one.raw) for one in after]
        owners, now = [file.owner.get(name) for name in names], []
        for name, owner, (label, raw) in zip(names, owners, lines, strict=True):
            if owner is not None and owner != label and owner in texts:
                assert bare(texts[owner]) == bare(file.text_of(raw)), (
                    f"after others: {name} named {texts[owner]!r}, now {raw!r}"
                )
            is_other = label in owners or file.address.get(label) is not None
            now.append(Line(owner if owner is not None else next(self.labels) if is_other else label, raw))
        file.lines = now
        hold(file.settle(names))

    def write(self):
        """A whole file, one change: much of it as it was."""
        file = self.files[self.rng.choice(FILES)]
        self.read(file, whole=True)
        if file.ascii_only:
            return
        new = [(text, self.rng.choice(["\n", "\n", "\r\n"])) for text in file.texts if self.rng.random() < 0.8]
        for _ in range(self.rng.randint(1, 3)):
            at = self.rng.randint(0, len(new))
            new[at : at + self.rng.randint(0, 3)] = [(text, "\n") for text in file.new_texts(0, 3)]
        if not new:
            return
        is_marked = file.bom and file.codec == "utf-8"
        # No codec name writes another mark: the text holds it.
        content = ("\ufeff" if file.bom and not is_marked else "") + "".join(map("".join, new))
        raw = [(text.removesuffix("\r") + ("\r\n" if text.endswith("\r") else end)).encode(file.codec) for text, end in new]
        encoding = "utf-8-sig" if is_marked else file.codec
        given = {"file_path": file.name, "content": content, "encoding": encoding, "line_ids": "short"}
        self.submit("write", given, {file.name: [Plan(0, len(file.lines), 1, raw)]}, final_newline="add")

    def undo(self):
        """Take back the last call, and now and then redo it: every line has its own address again."""
        if not self.done or any(file.before is not None for file in self.files.values()):
            return
        taken, before, after = self.done.pop()
        if any(self.files[name].lines != after[name] for name in FILES):
            self.done.clear()
            return
        steps = [before, after, before] if self.rng.random() < 0.3 else [before]
        for lines in steps:
            answer = self.call("undo", **(taken if taken.get("entry_id") or "batchId" in taken else {}))
            assert answer["success"], answer
            taken = {"batchId": answer["batchId"]} if "batchId" in answer else {"entry_id": answer["entry_id"]}
            for name, file in self.files.items():
                assert file.path.read_bytes() == file.data(lines[name]), (name, answer)
                names, was = self.names(file), {label: address for address, label in file.owner.items()}
                file.lines, old = [], {line.label: line.raw for line in (*before[name], *after[name])}
                for address, (label, raw) in zip(names, lines[name], strict=True):
                    assert address is None or address == was.get(label, address), (name, raw, was[label], address)
                    # A line of a large file that nobody had seen may have got its first ID from the change that was taken back.
                    owner = None if label in was else file.owner.get(address)
                    is_unseen = owner in old and bare(file.text_of(old[owner])) == bare(file.text_of(raw))
                    file.lines.append(Line(owner if is_unseen else label, raw))
                hold(file.settle(names))
                file.shown &= {line.label for line in (before if lines is after else after)[name]}

    def others(self):
        """Another program writes one of the files."""
        file, rng = self.files[self.rng.choice(FILES)], self.rng
        file.before = list(file.lines) if file.before is None else file.before
        now = list(file.lines)
        for _ in range(rng.choice([1, 1, 2])):
            a = rng.randint(0, len(now))
            b = min(len(now), a + rng.randint(0, 5))
            choice = rng.randrange(5)
            if choice == 0:
                block, rest = now[a:b], now[:a] + now[b:]
                to = rng.randint(0, len(rest))
                now = rest[:to] + block + rest[to:]
            elif choice == 1 and file.unit == 1:
                now[a:b] = [line._replace(raw=b"    " + line.raw) if file.body(line.raw) else line for line in now[a:b]]
            else:
                now[a:b] = [Line(next(self.labels), raw) for raw in (file.raw_lines(0, 4) if choice > 2 else ())]
        now = now or [Line(next(self.labels), "one".encode(file.codec))]
        now[:-1] = [line if file.ending(line.raw) else line._replace(raw=line.raw + file.lf) for line in now[:-1]]
        file.lines = now
        beside = self.project / "other"
        beside.write_bytes(file.data())
        beside.replace(file.path)

    def run(self):
        for file in self.files.values():
            self.read(file)
        ops = [self.edit_lines] * 8 + [self.others, self.undo] * 3 + [self.find, self.write] * 2
        for step in range(12):
            op = self.rng.choice(ops)
            if op != self.others:
                for file in self.files.values():
                    # A model looks now and then.
                    if self.rng.random() < 0.5:
                        self.read(file)
            try:
                op()
            except AssertionError as err:
                err.add_note(f"step {step + 1}, {op.__name__}")
                raise


def run(count, form):
    """Play histories; return the figures. Raises AssertionError with the seed."""
    tally, shared = Counter(), Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        for seed in range(10**6, 10**6 + count):
            project = Path(folder, str(seed), "project")
            project.mkdir(parents=True)
            line_ids_index.ALL_IDS_MAX = SPARSE if seed % 4 == 0 else 2_000
            history = History(project, seed, form)
            try:
                history.run()
            except Exception as err:
                err.add_note(f"seed {seed}, {form}")
                raise
            tally += history.tally
            shutil.rmtree(project.parent)
    return tally


@pytest.mark.parametrize("form", ["lid", "short"])
@pytest.mark.parametrize("count", [40, pytest.param(times(80), marks=pytest.mark.slow)])
def test_no_byte_is_wrong_and_no_address_ever_names_another_line(monkeypatch, form, count):
    monkeypatch.setenv("USER_SPACE", "")
    monkeypatch.setattr(line_ids_index, "ALL_IDS_MAX", 2_000)
    tally = run(count, form)
    # Which edits are refused differs from seed to seed; of many it is about one in 150.
    assert tally["edits refused"] <= 0.02 * tally["edits of lines that stand as they were shown"]
    assert tally["lines that others left, with a new address"] <= 0.05 * tally["lines that others left"]


@pytest.mark.parametrize("wrong", ["表示\r\nb\n", "表\\\r\nb\r\n", "表示\r\nb\r\n\r\n"])
def test_control_a_torn_character_and_a_lost_terminator_are_seen(tmp_path, monkeypatch, wrong):
    history = History(tmp_path, 0, "lid")
    file = history.files[FILES[0]] = File(tmp_path / FILES[0], "shift_jis", history.rng, history.labels)
    file.put("表示\r\nb\r\n".encode("shift_jis"))

    def call(*_, **__):
        file.path.write_bytes(wrong.encode("shift_jis"))
        return {"success": True, "entry_id": "x"}

    monkeypatch.setattr(history, "call", call)
    with pytest.raises(AssertionError):
        history.submit("write", {}, {file.name: [Plan(0, 1, 1, ["示"])]})
