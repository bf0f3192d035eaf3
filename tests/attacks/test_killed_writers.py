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
import signal
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
import rye
from support.harness import environment, times

LINES = 60
# s: only our writers change their content; p: patched in pairs; g: git and the editor rewrite them, too.
SAFE, PAIRS, WILD = [f"s{at}" for at in range(3)], ["p0", "p1"], ["g0", "g1"]
ROW = re.compile(r"^\[LID:([0-9a-z]+)\] (.*)$", re.MULTILINE)
LINE = re.compile(r"([spg]\d\.\d+):((?: w\d+-\d+-\d+\.)*)")
# What a writer is told when others were faster.
TOLD = {
    *(
        "invalid_line_id",
        "stale_file",
        "conflict",
        "locked",
        "file_not_found",
        "changed_since",
        "already_undone",
        "unseen_lines",
    ),
    *("lines_changed", "unknown_entry", "nothing_to_undo", "invalid_batch"),
}


def content(name: str) -> str:
    return "".join(f"{name}.{at}:\n" for at in range(LINES))


# --- a writer ---


class Writer:
    """One process that edits until it is killed."""

    def __init__(self, project: str, name: str, log: str, seed: int) -> None:
        self.project, self.name, self.rng = project, name, random.Random(f"{seed} {name}")
        self.log = open(log, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - for the life of the process
        self.number = 0

    def call(self, tool: str, **parameters: object) -> dict:
        data = rye.execute(tool, parameters, project_path=self.project)["data"]
        if not data["success"] and data.get("code") not in TOLD:
            self.say("refused", tool, data.get("code"), data.get("error"))
        return data

    def say(self, *words: object) -> None:
        self.log.write(json.dumps(words) + "\n")

    def token(self) -> str:
        self.number += 1
        return f"{self.name}-{self.number}."

    def shown(self, name: str) -> list[tuple[str, str]]:
        window = {"file_path": f"{name}.txt", "offset": self.rng.randrange(LINES) + 1, "limit": 3}
        data = self.call("rye/file-system/read", **window)
        found = ROW.findall(data["output"]) if data["success"] else []
        for line_id, text in found:
            self.say("seen", name, line_id, text.split(":")[0])
        return found

    def edit(self) -> None:
        name = self.rng.choice([*SAFE, *SAFE, *WILD])
        found = self.shown(name)
        if not found:
            return
        line_id, text = self.rng.choice(found)
        token = self.token()
        self.say("begun", token, text.split(":")[0])
        change = {"line_id": line_id, "new_content": f"{text} {token}"}
        done = self.call(
            "rye/file-system/edit_lines",
            file_path=f"{name}.txt",
            changes=[change],
            on_stale=self.rng.choice(["refuse", "rebase"]),
        )
        if done["success"]:
            self.say("done", token, name)
            if self.rng.random() < 0.2:
                self.undo(token, name, done["entry_id"])
        else:
            self.say("not", token)

    def undo(self, token: str, name: str, entry: str) -> None:
        self.say("undoing", token)
        done = self.call("rye/file-system/undo", entry_id=entry)
        if done["success"]:
            self.say("undone", token, name)

    def patch(self) -> None:
        """Put one token into the same line of both files of the pair."""
        at, token = self.rng.randrange(LINES), self.token()
        files = []
        for name in PAIRS:
            data = Path(self.project, f"{name}.txt").read_bytes()
            old = data.decode().split("\n")[at]
            change = {
                "operation": "replace",
                "startLine": at + 1,
                "endLine": at + 1,
                "expectedOriginalLines": [old],
                "newLines": [f"{old} {token}"],
            }
            files.append({"docPath": f"{name}.txt", "originalSha256": sha256(data).hexdigest(), "changes": [change]})
        self.say("begun", token, f"p0.{at}", f"p1.{at}")
        done = self.call("rye/workspace/workspace_write_patch", files=files)
        self.say("done" if done["success"] else "not", token, *PAIRS)

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
        lines = text.splitlines(keepends=True)
        if len(lines) != LINES:
            # Somebody else is in the middle of writing it in place.
            return
        beside = file.with_suffix(".editor")
        how = rng.randrange(3)
        if how == 1:
            with open(file, "r+b") as out:
                out.write(text)
                out.truncate()
            return
        beside.write_bytes(text)
        if how == 2:
            file.rename(file.with_suffix(".away"))
        beside.rename(file)


# --- the whole ---


class Campaign:
    """Writers, killed and started again, and the others beside them."""

    def __init__(self, project: Path, logs: Path, writers: int, seed: int) -> None:
        self.project, self.logs, self.seed, self.rng = project, logs, seed, random.Random(seed)
        self.generation: Counter[int] = Counter()
        self.running: dict[int, subprocess.Popen] = {}
        self.over = threading.Event()
        project.mkdir()
        logs.mkdir()
        for name in [*SAFE, *PAIRS, *WILD]:
            (project / f"{name}.txt").write_text(content(name))
        git(project, "init", "-q")
        git(project, "add", ".")
        git(project, "commit", "-qm", "first")
        for at in range(writers):
            self.start(at)

    def start(self, at: int) -> None:
        name = f"w{at}-{self.generation[at]}"
        self.generation[at] += 1
        words = [sys.executable, __file__, "--worker", str(self.project), name, str(self.logs / name), str(self.seed)]
        self.running[at] = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment())

    def beside(self, work) -> threading.Thread:
        rng = random.Random(f"{self.seed} {work.__name__}")

        def go_on() -> None:
            while not self.over.wait(rng.uniform(0.02, 0.3)):
                work(self.project, rng)

        thread = threading.Thread(target=go_on)
        thread.start()
        return thread

    def kill(self, times: int) -> None:
        """Kill random writers that are at work, one after another."""
        for _ in range(times):
            at = self.rng.choice([*self.running])
            child = self.running[at]
            assert child.stdout.readline() == b"ready\n"
            time.sleep(self.rng.uniform(0, 0.5))
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            self.start(at)

    def end(self) -> None:
        self.over.set()
        for child in self.running.values():
            child.kill()
            child.wait()
            child.stdout.close()


def findings(project: Path, logs: Path) -> dict[str, list]:
    """Compare what the writers know with what stands in the files."""
    found: dict[str, list] = defaultdict(list)
    stands: dict[str, list[str]] = defaultdict(list)
    for name in [*SAFE, *PAIRS, *WILD]:
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
    where: dict[str, list[str]] = {}
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
                    where[first] = [line.split(".")[0] for line in rest]
    for token, lines in stands.items():
        if len(lines) != len(set(lines)) or len(lines) > len(wanted.get(token, ())):
            found["doubled"].append((token, lines))
        if not set(lines) <= set(wanted.get(token, ())):
            found["wrong line"].append((token, lines, wanted.get(token)))
    for token, what in state.items():
        if not set(where[token]).isdisjoint(WILD):
            continue
        count = len(stands.get(token, ()))
        if what == "done" and count != len(where[token]):
            found["lost"].append((token, where[token], stands.get(token)))
        if what in ("not", "undone") and count:
            found["came back"].append((token, what, stands[token]))
        if len(where[token]) == 2 and count == 1:
            found["mixed"].append((token, stands[token]))
    found["two lines of one ID"] = [pair for pair in shown.items() if len(pair[1]) > 1]
    return {**found, "counts": [Counter(state.values()), len(shown)]}


WRONG = ("torn", "doubled", "wrong line", "lost", "came back", "mixed", "two lines of one ID", "refused")


def campaign(folder: Path, kills: int, writers: int, seed: int) -> dict[str, list]:
    """Run it; return what was found."""
    print("seed", seed, flush=True)
    made = Campaign(folder / "project", folder / "logs", writers, seed)
    beside = [made.beside(work) for work in (work_of_git, work_of_the_editor)]
    try:
        made.kill(kills)
    finally:
        made.end()
        for thread in beside:
            thread.join()
    # A call of any kind finishes what the killed ones began.
    assert rye.execute("rye/file-system/undo", {"list": True}, project_path=made.project)["status"] == "success"
    found = findings(made.project, made.logs)
    found["leftovers"] = [name for name in os.listdir(made.project) if name.startswith(".rye-") and "conflict" not in name]
    return found


@pytest.mark.slow
def test_no_edit_is_lost_torn_or_misplaced(tmp_path, user_space, rng):
    found = campaign(tmp_path, times(12), 4, rng.randrange(1 << 30))
    print(found["counts"])
    assert found["counts"][0]["done"] > 0
    assert {name: found[name] for name in (*WRONG, "leftovers") if found.get(name)} == {}


def test_control_each_kind_of_damage_is_seen(tmp_path):
    project, logs = tmp_path / "project", tmp_path / "logs"
    project.mkdir()
    logs.mkdir()
    for name in [*SAFE, *PAIRS, *WILD]:
        (project / f"{name}.txt").write_text(content(name))
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        Writer(*sys.argv[2:5], int(sys.argv[5])).run()
