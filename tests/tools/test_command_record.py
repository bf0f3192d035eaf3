"""What commands change is recorded whole, and undo and redo bring every state back byte for byte, with modes and links.

`python tests/tools/test_command_record.py --n 1000 --seed 1` runs more scripts than the tests do.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from support.tree_photo import assert_same, changed, inodes, photo


def call(tool: str, project: Path, **params: object) -> dict[str, object]:
    answer = rye.execute(f"rye/{tool}", params, project_path=str(project))
    data: dict[str, object] = answer["data"]
    return data


def bash(project: Path, command: str) -> dict[str, object]:
    return call("bash/bash", project, command=command)


WORDS = ["alpha", "beta", "gamma", "delta", "x y", "ü", "-n"]


def script(random_: random.Random) -> str:
    """Return a random script over a few names, so that its steps meet."""
    names = ["a.txt", "b.txt", "src/c.py", "src/d e.py", "src/deep/f", "g", "src/link", "new/h", "new/dir/i", "bin.dat"]

    def name() -> str:
        return f"'{random_.choice(names)}'"

    def step() -> str:
        one, two, word = name(), name(), random_.choice(WORDS)
        return random_.choice(
            [
                f"mkdir -p \"$(dirname {one})\"; echo '{word}' > {one}",
                f"echo '{word}' >> {one}",
                f"sed -i 's/a/{word}/' {one}",
                f"mv {one} {two}",
                f"mv -T {one} {two}",
                f"rm -rf {one}",
                "rm -rf src/deep",
                "mkdir -p src/deep/er && echo deep > src/deep/er/file",
                f"chmod {random_.choice(['600', '755', '444', '640'])} {one}",
                f"ln -sf {one} {two}",
                f"ln -f {one} {two}",
                f"cp -r {one} {two}",
                f"head -c {random_.randrange(5000)} /dev/urandom > {one}",
                f"printf 'a\\r\\nb' > {one}",
                f": > {one}",
                f"tar cf /tmp/t.tar src && rm -rf src && mkdir {one} ; tar xf /tmp/t.tar",
                "git add -A; git commit -qm x",
                "git stash -u",
                "git stash pop",
                "git checkout -q -B other; git checkout -q -f master",
                "git checkout -q -- .",
                "git clean -fdq",
                "mkfifo pipe",
                "rm -f pipe",
                f"for i in 1 2 3; do echo $i >> {one} & done; wait",
                f"rm -rf {one}; mkdir {one}; touch {one}/inner",
                "mkdir -p node_modules/x; echo 1 > node_modules/x/y",
                f"truncate -s {random_.randrange(200)} {one}",
                f"touch {one}",
                f"rmdir {one}",
                "mkdir -p empty/er; chmod 700 empty",
                f"( sleep 0.05; echo late >> {one} ) & wait",
            ]
        )

    return "\n".join(step() for _ in range(random_.randint(1, 6)))


def prepared(project: Path) -> None:
    (project / "src/deep").mkdir(parents=True)
    (project / "a.txt").write_text("alpha\nbeta\n")
    (project / "b.txt").write_bytes(b"\xff\x00binary")
    (project / "src/c.py").write_text("def a():\n    return 1\n")
    (project / "src/deep/f").write_text("no newline")
    (project / ".gitignore").write_text("*.dat\n")
    (project / "bin.dat").write_bytes(b"ignored")
    identity = (["config", "user.name", "t"], ["config", "user.email", "t@example.org"])
    for arguments in (["init", "-q", "-b", "master"], *identity, ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)


def run(project: Path, count: int, seed: int) -> dict[str, int]:
    """Run scripts; undo and redo each; at the end undo them all. Raises AssertionError with the seed and the script."""
    random_ = random.Random(seed)
    bash(project, "true")
    done: list[tuple[str, dict[str, tuple[object, ...]]]] = []
    effects = 0
    for number in range(count):
        text = script(random_)
        about = f"seed {seed}, script {number}:\n{text}"
        before, were = photo(project), inodes(project)
        result = bash(project, text)
        after = photo(project)
        expected = changed(before, after, were, inodes(project))
        found = set(result.get("changed", []))
        assert found == expected, (about, {path: (before.get(path), after.get(path)) for path in found ^ expected})
        assert "not_recorded" not in result, about
        effects += len(expected)
        if not expected:
            continue
        name = str(result["change_id"])
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_scripts_are_recorded_undone_and_redone(project: Path, seed: int) -> None:
    prepared(project)
    assert run(project, 12, seed)["effects"] > 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    total = {"scripts": 0, "effects": 0, "undone": 0}
    for start in range(0, given.n, 25):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["USER_SPACE"] = f"{folder}/user"
            project = Path(folder, "project")
            project.mkdir()
            prepared(project)
            for key, value in run(project, min(25, given.n - start), given.seed + start).items():
                total[key] += value
        print(total, file=sys.stderr)
    print(total)


if __name__ == "__main__":
    main()
