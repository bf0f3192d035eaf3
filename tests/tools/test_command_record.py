"""What commands change is recorded whole, and undo and redo bring every state back byte for byte, with modes and links.

`python tests/tools/test_command_record.py --n 1000 --seed 1 --repository PATH` runs more scripts than the tests do.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.journal import journal
from rye.workspace.workspace import Workspace
from support.tree_photo import Photo, assert_same, changed, inodes, photo


def call(tool: str, project: Path, **params: object) -> dict[str, object]:
    answer = rye.execute(f"rye/{tool}", params, project_path=str(project))
    data: dict[str, object] = answer["data"]
    return data


def bash(project: Path, command: str) -> dict[str, object]:
    return call("bash/bash", project, command=command)


WORDS = ["alpha", "beta", "gamma", "delta", "x y", "ü", "-n"]
NAMES = [
    "a.txt", "b.txt", "src/c.py", "src/d e.py", "src/deep/f", "g", "src/link", "new/h", "new/dir/i", "bin.dat", "A.txt", "src/C.py",
    "-dash", "new\nline", "tab\t", "quo\"te", "back\\slash", "*", "caf\u00e9", "cafe\u0301", " space ", "\udcff\udcfe", "e" * 240,
]  # fmt: skip
"""Names that scripts use, so that their steps meet: cases, controls, bytes that are no UTF-8, long ones."""


def quoted(name: str) -> str:
    """Return a name as bash reads it, whatever bytes it has; nothing else of a script has such bytes."""
    raw = os.fsencode(name)
    return "$'" + "".join(chr(one) if 32 <= one < 127 and one not in b"\\'" else f"\\x{one:02x}" for one in raw) + "'"


def script(random_: random.Random, more: Sequence[str] = ()) -> str:
    """Return a random script over a few names, so that its steps meet; `more` are files of the project."""

    def name() -> str:
        return f"./{quoted(random_.choice(more) if more and random_.random() < 0.5 else random_.choice(NAMES))}"

    def step() -> str:
        one, two, word, third = name(), name(), random_.choice(WORDS), random_.choice(list(more) or NAMES)
        above = f"./{quoted(os.path.dirname(third) or 'src')}"
        rebase = "git add -A; git commit -qm z; git rebase -q master || git rebase --abort; git checkout -q -f master"
        return random_.choice(
            [
                f"mkdir -p \"$(dirname {one})\"; echo '{word}' > {one}",
                f"echo '{word}' >> {one}",
                f"sed -i 's/a/{word}/' {one}",
                f"sed -i '2d' {one}; sed -i '1i {word}' {two}",
                f"perl -pi -e 's/e/E/g' {one}",
                f"printf 'x\\n' | tee -a {one} > {two}",
                f"sort -o {one} {two}",
                f"mv {one} {two}",
                f"mv -T {one} {two}",
                f"mv {one} swap; mv {two} {one}; mv swap {two}",
                f"rm -rf {one}",
                "rm -rf src/deep",
                f"rm -rf {above}",
                f"mv {above} moved; mkdir -p {above}",
                f"cp -a {above} copy",
                "mkdir -p src/deep/er && echo deep > src/deep/er/file",
                f"chmod {random_.choice(['600', '755', '444', '640', '000', '711', '1644', 'a+x'])} {one}",
                f"chmod -R {random_.choice(['go-w', 'u+x', '700'])} {above}",
                f"ln -sf {one} {two}",
                f"ln -sfn {above} {one}",
                f"ln -s /nowhere/at/all {one}",
                f"ln -f {one} {two}",
                f"cp -r {one} {two}",
                f"install -m 750 {one} {two}",
                f"gzip -f {one}",
                f"split -l 1 {one} part.",
                f"head -c {random_.randrange(5000)} /dev/urandom > {one}",
                f"head -c {random_.randrange(3 << 20)} /dev/urandom > {one}",
                f"printf 'a\\r\\nb' > {one}",
                f": > {one}",
                f"tar cf t.tar src && rm -rf src && mkdir {one} ; tar xf t.tar; rm -f t.tar",
                f"tar czf t.tgz {above} && rm -rf {above} && tar xzf t.tgz",
                "git add -A; git commit -qm x",
                "git stash -u",
                "git stash pop",
                "git checkout -q -B other; git checkout -q -f master",
                "git checkout -q -- .",
                "git clean -fdq",
                "git reset -q --hard HEAD~1",
                f"git add -A; git commit -qm y; git checkout -q -B side HEAD~1; echo '{word}' >> {one}; {rebase}",
                "git checkout -q -B side HEAD~1; git merge -q master; git checkout -q -f master",
                "git revert --no-edit HEAD || git revert --abort",
                f"git mv {one} {two}",
                f"git rm -qrf {one}",
                "git show HEAD | git apply -R",
                "mkfifo pipe",
                "rm -f pipe",
                f"for i in 1 2 3; do echo $i >> {one} & done; wait",
                f"seq 20 | xargs -P 4 -I N sh -c 'echo N > many.N; echo N >> {'g'}'",
                "rm -f many.*",
                f"rm -rf {one}; mkdir {one}; touch {one}/inner",
                f"rm -rf {one}; echo file > {one}",
                f"rm -rf {one}; mkdir -p {one}/{random_.choice(['er/er', 'x'])}; ln -s er {one}/link",
                f"rm -rf {one}; ln -s g {one}; rm -f {one}; mkfifo {one}; rm -f {one}",
                f"mv {one} tmp; mv tmp {one}",
                f"cp {one} tmp; mv tmp {one}",
                "mkdir -p node_modules/x; echo 1 > node_modules/x/y",
                f"truncate -s {random_.randrange(200)} {one}",
                f"truncate -s {random_.randrange(9 << 20)} {one}",
                f"dd if=/dev/urandom of={one} bs=7 seek={random_.randrange(40)} count=3 conv=notrunc status=none",
                f"fallocate -l 100k {one}",
                f"touch {one}",
                f"touch -d '2001-01-01' {one}",
                f"rmdir {one}",
                "mkdir -p empty/er; chmod 700 empty",
                "rmdir empty/er empty",
                "mv A.txt a.TXT; mv src SRC; mv SRC src",
                f"( sleep 0.05; echo late >> {one} ) & wait",
                f"umask 077; echo private > {one}",
                f"find {above} -type f -newer .gitignore -delete",
                f"find {above} -name '*e*' -exec rm -rf {{}} +",
                f"python3 -c 'import sys; open(sys.argv[1], \"ab\").write(bytes(range(256)))' {one}",
                f"exec 3>>{one}; rm -f {one}; echo gone >&3; echo back > {one}; echo again >&3",
            ]
        )

    return "\n".join(step() for _ in range(random_.randint(1, 6)))


def prepared(project: Path, repository: Path | None = None) -> list[str]:
    """Make a project with git, or clone one; return some of its files."""
    identity = (["config", "user.name", "t"], ["config", "user.email", "t@example.org"])
    if repository is not None:
        subprocess.run(["git", "clone", "-q", str(repository), "."], cwd=project, check=True, capture_output=True)
        first = ["checkout", "-q", "-B", "master"]
    else:
        first = ["init", "-q", "-b", "master"]
        (project / "src/deep").mkdir(parents=True)
        (project / "a.txt").write_text("alpha\nbeta\n")
        (project / "b.txt").write_bytes(b"\xff\x00binary")
        (project / "src/c.py").write_text("def a():\n    return 1\n")
        (project / "src/deep/f").write_text("no newline")
    (project / ".gitignore").write_text("*.dat\n")
    (project / "bin.dat").write_bytes(b"ignored")
    for arguments in (first, *identity, ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)
    if repository is None:
        return []
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=project, check=True, capture_output=True).stdout.split(b"\0")
    return [os.fsdecode(one) for one in listed if one]


def run(project: Path, count: int, seed: int, files: Sequence[str] = ()) -> dict[str, int]:
    """Run scripts; undo and redo each; at the end undo them all. Raises AssertionError with the seed and the script."""
    random_ = random.Random(seed)
    more = random_.sample(sorted(files), min(len(files), 12))
    bash(project, "true")
    done: list[tuple[str, Photo]] = []
    effects = 0
    for number in range(count):
        text = script(random_, more)
        about = f"seed {seed}, script {number}:\n{text}"
        before, were = photo(project), inodes(project)
        result = bash(project, text)
        after = photo(project)
        expected = changed(before, after, were, inodes(project))
        assert "not_recorded" not in result, (about, result)
        assert result.get("changed_count", 0) == len(expected), (about, result, expected)
        name = str(result.get("change_id", ""))
        found = set(recorded_paths(project, name)) if name else set()
        assert found == expected, (about, {path: (before.get(path), after.get(path)) for path in found ^ expected})
        effects += len(expected)
        if not expected:
            continue
        undone = call("file-system/undo", project, entry_id=name)
        assert undone["success"], (about, undone)
        assert_same(photo(project), before, about)
        redone = call("file-system/undo", project, entry_id=undone["entry_id"])
        assert redone["success"], (about, redone)
        assert_same(photo(project), after, about)
        done.append((str(redone["entry_id"]), before))
    for name, before in reversed(done):
        undone = call("file-system/undo", project, entry_id=name)
        assert undone["success"], (name, undone)
        assert_same(photo(project), before, name)
    return {"scripts": count, "effects": effects, "undone": len(done)}


def recorded_paths(project: Path, entry_id: str) -> list[str]:
    with Workspace(str(project)) as ws:
        return journal.find(ws, entry_id).paths


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_scripts_are_recorded_undone_and_redone(project: Path, seed: int) -> None:
    prepared(project)
    assert run(project, 12, seed)["effects"] > 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repository", type=Path, action="append", default=[], help="clone these, in turn, as the projects")
    given = parser.parse_args()
    total = {"scripts": 0, "effects": 0, "undone": 0}
    for number, start in enumerate(range(0, given.n, 25)):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["USER_SPACE"] = f"{folder}/user"
            project = Path(folder, "project")
            project.mkdir()
            files = prepared(project, given.repository[number % len(given.repository)] if given.repository else None)
            for key, value in run(project, min(25, given.n - start), given.seed + start, files).items():
                total[key] += value
        print(total, file=sys.stderr)
    print(total)


if __name__ == "__main__":
    main()
