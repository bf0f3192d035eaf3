"""Writers killed at random moments, while git and an editor work in the same tree: no edit is lost, torn, doubled or misplaced.

Every line has a name of its own (`s1.17:`), and every edit adds one token to one line. Writers log what they do in files of their own,
before and after each call, so that what was acknowledged is known after a SIGKILL. At the end (and the control shows that each
of these is seen):

- lost: a token whose edit was acknowledged, and not undone, stands nowhere. Only in the files that no other program rewrites.
- doubled: a token stands twice. Torn: a line is no name with tokens, or the names are not all there in their order.
- wrong ID: a token stands in another line than the one whose ID the edit named, or one ID was shown for two lines of a file.
- mixed: of an acknowledged or interrupted patch of two files, only one file has the token.

Full size: `RYE_TEST_TIMES=80 pytest -n 0 -m slow tests/attacks/test_killed_writers.py`.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.calling import call, done, rows
from support.harness import environment, times

LINES = 60
# s: only our writers change their content; p: patched in pairs; g: git and the editor rewrite them, too.
SAFE, PAIRS, WILD = [f"s{at}" for at in range(3)], ["p0", "p1"], ["g0", "g1"]
FILES = [*SAFE, *PAIRS, *WILD]
LINE = re.compile(r"([spg]\d\.\d+):((?: w\d+-\d+-\d+\.)*)")
# What a writer is told when others were faster.
TOLD = {
    "invalid_line_id", "stale_file", "conflict", "locked", "file_not_found", "changed_since", "already_undone", "unseen_lines",
    "lines_changed", "unknown_entry", "nothing_to_undo", "invalid_batch",
}  # fmt: skip


def content(name: str) -> str:
    return "".join(f"{name}.{at}:\n" for at in range(LINES))


class Writer:
    """One process that edits until it is killed, and logs every step."""

    def __init__(self, project: str, name: str, log: str, seed: str) -> None:
        self.project, self.name, self.rng = project, name, random.Random(f"{seed} {name}")
        self.log = open(log, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - for the life of the process
        self.number = 0

    def say(self, *words: object) -> None:
        self.log.write(json.dumps(words) + "\n")

    def call(self, tool: str, **parameters: object) -> dict:
        data = call(tool, self.project, **parameters)
        if not data["success"] and data.get("code") not in TOLD:
            self.say("refused", tool, data.get("code"), data.get("error"))
        return data

    def token(self) -> str:
        self.number += 1
        return f"{self.name}-{self.number}."

    def edit(self) -> None:
        """Read three lines, add a token to one, and now and then take that back."""
        name = self.rng.choice([*SAFE, *SAFE, *WILD])
        data = self.call("read", file_path=f"{name}.txt", offset=self.rng.randrange(LINES) + 1, limit=3)
        found = rows(data) if data["success"] else []
        for line_id, text in found:
            self.say("seen", name, line_id, text.split(":")[0])
        if not found:
            return
        line_id, text = self.rng.choice(found)
        token = self.token()
        self.say("begun", token, text.split(":")[0])
        change, stale = {"line_id": line_id, "new_content": f"{text} {token}"}, self.rng.choice(["refuse", "rebase"])
        data = self.call("edit_lines", file_path=f"{name}.txt", changes=[change], on_stale=stale)
        self.say("done" if data["success"] else "not", token, name)
        if data["success"] and self.rng.random() < 0.2:
            self.say("undoing", token)
            if self.call("undo", entry_id=data["entry_id"])["success"]:
                self.say("undone", token, name)

    def patch(self) -> None:
        """Put one token into the same line of both files of the pair."""
        at, token, files = self.rng.randrange(LINES), self.token(), []
        for name in PAIRS:
            data = Path(self.project, f"{name}.txt").read_bytes()
            old = data.decode().split("\n")[at]
            place = {"operation": "replace", "startLine": at + 1, "endLine": at + 1}
            change = {**place, "expectedOriginalLines": [old], "newLines": [f"{old} {token}"]}
            files.append({"docPath": f"{name}.txt", "originalSha256": sha256(data).hexdigest(), "changes": [change]})
        self.say("begun", token, f"p0.{at}", f"p1.{at}")
        landed = self.call("rye/workspace/workspace_write_patch", files=files)["success"]
        self.say("done" if landed else "not", token, *PAIRS)

    def run(self) -> None:
        print("ready", flush=True)
        while True:
            self.patch() if self.rng.random() < 0.25 else self.edit()


# --- what else goes on in the tree ---


def git(project: Path, *words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    subprocess.run(command, cwd=project, check=False, capture_output=True)


def work_of_git(project: Path, rng: random.Random) -> None:
    """Commit, stash, check out and switch branches, of the wild files alone."""
    wild = [f"{name}.txt" for name in WILD]
    words = rng.choice(
        [
            ("commit", "-qm", "x", "--", *wild),
            ("stash", "push", "-q", "--", *wild),
            ("stash", "pop", "-q"),
            ("checkout", "-q", "HEAD", "--", *wild),
            ("stash", "drop", "-q"),
            ("checkout", "-q", "--theirs", "--", *wild),
        ]
    )
    git(project, *words)
    # Conflicts of a `stash pop` would leave markers for good.
    if b"<<<<<<<" in b"".join((project / name).read_bytes() for name in wild if (project / name).exists()):
        git(project, "checkout", "-q", "--force", "HEAD", "--", *wild)


def work_of_the_editor(project: Path, rng: random.Random) -> None:
    """Save a wild file as editors do: beside it and renamed, in place, or moved away first; the lines are moved, never changed."""
    file = project / f"{rng.choice(WILD)}.txt"
    with suppress(FileNotFoundError):
        text = file.read_bytes()
        if text.count(b"\n") != LINES:
            # Somebody else is in the middle of writing it in place.
            return
        how = rng.randrange(3)
        if how == 1:
            with open(file, "r+b") as out:
                out.write(text)
                out.truncate()
            return
        beside = file.with_suffix(".editor")
        beside.write_bytes(text)
        if how == 2:
            file.rename(file.with_suffix(".away"))
        beside.rename(file)


# --- the whole ---


def begin(project: Path, logs: Path) -> None:
    for folder in (project, logs):
        folder.mkdir()
    for name in FILES:
        (project / f"{name}.txt").write_text(content(name))


def campaign(folder: Path, kills: int, writers: int, rng: random.Random) -> dict[str, list]:
    """Kill random writers that are at work and start others, git and the editor beside them; return what was found."""
    project, logs, over, seed = folder / "project", folder / "logs", threading.Event(), rng.randrange(1 << 30)
    begin(project, logs)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        git(project, *words)

    def started(name: str) -> subprocess.Popen:
        words = [sys.executable, __file__, "--worker", project, name, logs / name, str(seed)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, env=environment())

    def ended(child: subprocess.Popen) -> None:
        child.kill()
        child.wait()
        child.stdout.close()

    def go_on(work) -> None:
        chance = random.Random(f"{seed} {work.__name__}")
        while not over.wait(chance.uniform(0.02, 0.3)):
            work(project, chance)

    running = {at: started(f"w{at}-0") for at in range(writers)}
    beside = [threading.Thread(target=go_on, args=[work]) for work in (work_of_git, work_of_the_editor)]
    for thread in beside:
        thread.start()
    try:
        for generation in range(1, kills + 1):
            at = rng.choice([*running])
            assert running[at].stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0, 0.5))
            ended(running[at])
            running[at] = started(f"w{at}-{generation}")
    finally:
        over.set()
        for one in running.values():
            ended(one)
        for thread in beside:
            thread.join()
    # A call of any kind finishes what the killed ones began.
    done("undo", project, list=True)
    found = findings(project, logs)
    found["leftovers"] = [name for name in os.listdir(project) if name.startswith(".rye-") and "conflict" not in name]
    return found


def findings(project: Path, logs: Path) -> dict[str, list]:
    """Compare what the writers know with what stands in the files."""
    found: dict[str, list] = defaultdict(list)
    stands: dict[str, list[str]] = defaultdict(list)
    for name in FILES:
        if not (project / f"{name}.txt").exists():
            # Git or the editor was ended while it had the file away.
            assert name in WILD, name
            continue
        names = []
        for line in (project / f"{name}.txt").read_text().split("\n")[:-1]:
            match = LINE.fullmatch(line)
            names.append(match[1] if match else line)
            for token in match[2].split() if match else ():
                stands[token].append(names[-1])
        if names != [f"{name}.{at}" for at in range(LINES)]:
            found["torn"].append((name, names))
    wanted: dict[str, tuple] = {}
    state: dict[str, str] = {}
    shown: dict[tuple[str, str], set[str]] = defaultdict(set)
    for log in sorted(logs.iterdir()):
        # The last line may be cut by the kill.
        for text in log.read_text().split("\n")[:-1]:
            what, first, *rest = json.loads(text)
            if what == "seen":
                shown[first, rest[0]].add(rest[1])
            elif what == "refused":
                found["refused"].append((first, *rest))
            else:
                state[first] = what
                if what == "begun":
                    wanted[first] = tuple(rest)
    for token, lines in stands.items():
        if len(lines) != len(set(lines)) or len(lines) > len(wanted.get(token, ())):
            found["doubled"].append((token, lines))
        if not set(lines) <= set(wanted.get(token, ())):
            found["wrong line"].append((token, lines, wanted.get(token)))
    for token, what in state.items():
        if any(line.split(".")[0] in WILD for line in wanted[token]):
            continue
        count = len(stands.get(token, ()))
        if what == "done" and count != len(wanted[token]):
            found["lost"].append((token, wanted[token], stands.get(token)))
        if what in ("not", "undone") and count:
            found["came back"].append((token, what, stands[token]))
        if len(wanted[token]) == 2 and count == 1:
            found["mixed"].append((token, stands[token]))
    found["two lines of one ID"] = [pair for pair in shown.items() if len(pair[1]) > 1]
    return {**found, "counts": [Counter(state.values()), len(shown)]}


WRONG = ("torn", "doubled", "wrong line", "lost", "came back", "mixed", "two lines of one ID", "refused")


@pytest.mark.slow
def test_no_edit_is_lost_torn_or_misplaced(tmp_path, user_space, rng):
    found = campaign(tmp_path, times(12), 4, rng)
    print(found["counts"])
    assert found["counts"][0]["done"] > 0
    assert {name: found[name] for name in (*WRONG, "leftovers") if found.get(name)} == {}


def test_control_each_kind_of_damage_is_seen(tmp_path):
    project, logs = tmp_path / "project", tmp_path / "logs"
    begin(project, logs)
    said = []
    for at, target in enumerate(["s0.1", "s0.2", "s0.3", "s0.4"]):
        said += [["begun", f"w0-0-{at}.", target], ["done", f"w0-0-{at}.", "s0"]]
    said += [["begun", "w0-0-8.", "p0.5", "p1.5"], ["undoing", "w0-0-3."], ["undone", "w0-0-3.", "s0"]]
    said += [["seen", "s0", "a1", "s0.1"], ["seen", "s0", "a1", "s0.2"]]
    (logs / "w0-0").write_text("".join(json.dumps(line) + "\n" for line in said) + '["begun"')
    text = content("s0").replace("s0.2:", "s0.2: w0-0-1. w0-0-1.").replace("s0.9:", "s0.9: w0-0-2.")
    (project / "s0.txt").write_text(text.replace("s0.4:", "s0.4: w0-0-3.").replace("s0.30:\n", "s0.30:\ns0"))
    (project / "p0.txt").write_text(content("p0").replace("p0.5:", "p0.5: w0-0-8."))
    found = findings(project, logs)
    assert set(WRONG) - {"refused"} == {name for name in WRONG if found.get(name)}


if __name__ == "__main__" and sys.argv[1:2] == ["--worker"]:
    Writer(*sys.argv[2:6]).run()
