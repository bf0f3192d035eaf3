"""The record as a patch, beside git itself: applied to a copy of the old tree it gives the new one, and backwards."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import rye
from rye.cli.main import main
from support.harness import times
from support.shell_calls import bash

NAMES = ("a.txt", "a b.txt", "new\nline.txt", "tab\there", "\udcff.bin", "ü.txt", 'quo"te', "back\\slash", "-dash", "d/e/f.py")
TEXTS = (
    *(b"", b"one\n", b"one\ntwo\nthree\n", b"no\nend", b"a\r\nb\r\n"),
    *(b"caf\xe9\n\xff\n", b"\n\n\n", b"- x\n+ y\n@@ -1 +1 @@\n"),
)


def made(project: Path, *only: str) -> bytes:
    """Return all that was changed, as `rye diff` prints it."""
    out = io.TextIOWrapper(io.BytesIO(), errors="surrogateescape")
    with redirect_stdout(out):
        assert main(["diff", "--project", str(project), "..", *only]) == 0
    out.flush()
    return out.buffer.getvalue()


def photo(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what git would see: files with whether they are programs, and links. Git's own folder and ours are left out."""
    found: dict[str, tuple[object, ...]] = {}
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", ".ai", ".ragix")]
        for name in (*files, *folders):
            path = os.path.join(above, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                found[os.path.relpath(path, folder)] = (bool(os.stat(path).st_mode & 0o100), Path(path).read_bytes())
    return found


def apply(text: bytes, folder: Path, *options: str) -> None:
    done = subprocess.run(["git", "apply", *options], input=text, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, text)


def content(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return rng.randbytes(rng.choice((1, 51, 52, 53, 104, 3_000)))
    return rng.choice(TEXTS) + b"".join(b"line %d\n" % rng.randrange(9) for _ in range(rng.randrange(20)))


def change(rng: random.Random, folder: Path) -> None:
    """Do one thing that a command could have done."""
    where = folder / rng.choice(NAMES)
    where.parent.mkdir(parents=True, exist_ok=True)
    there = os.path.lexists(where)
    deed = rng.choice(("write", "write", "edit", "remove", "mode", "link", "rename"))
    if deed == "rename" and there:
        other = folder / rng.choice(NAMES)
        other.parent.mkdir(parents=True, exist_ok=True)
        where.replace(other)
    elif deed == "remove" and there:
        where.unlink()
    elif deed == "mode" and there and not where.is_symlink():
        where.chmod(rng.choice((0o644, 0o755)))
    elif deed == "edit" and there and not where.is_symlink():
        lines = where.read_bytes().splitlines(keepends=True)
        lines[rng.randrange(len(lines) + 1) :][:1] = [b"edited\n"]
        where.write_bytes(b"".join(lines))
    else:
        if there:
            where.unlink()
        if deed == "link":
            where.symlink_to(rng.choice(("a.txt", "no where", "\udcff.bin")))
        else:
            where.write_bytes(content(rng))


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(at, marks=pytest.mark.slow) for at in range(5, 5 + times(5)))])
def test_the_patch_gives_the_new_tree_and_backwards_the_old_one(tmp_path, project, seed):
    rng = random.Random(seed)
    for _ in range(12):
        change(rng, project)
    bash(project, "true")
    old = tmp_path / "old"
    shutil.copytree(project, old, symlinks=True, ignore=shutil.ignore_patterns(".ai", ".ragix"))
    subprocess.run(["git", "init", "-q", "."], cwd=old, check=True)
    before = photo(project)
    for _ in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(1, 8)):
            change(rng, project)
        if rng.random() < 0.5:
            rye.execute(
                "rye/file-system/write", {"file_path": "b\\xfe.txt", "content": f"{rng.random()}\n"}, project_path=project
            )
        # What changed until now is recorded before it runs.
        bash(project, "true")
    text = made(project)
    apply(text, old)
    assert photo(old) == photo(project), seed
    apply(text, old, "-R")
    assert photo(old) == before, seed


def test_what_git_has_not_is_left_out_and_a_file_that_moved_is_a_rename(project):
    (project / "old.txt").write_text("one\ntwo\nthree\n")
    bash(project, "true")
    bash(project, "mv old.txt new.txt; mkdir empty; mkfifo pipe")
    text = made(project).decode()
    assert "similarity index 100%\nrename from old.txt\nrename to new.txt\n" in text
    assert not re.search("pipe|b/empty", text)


def test_one_path_and_a_state_that_is_not_stored(project, user_space):
    (user_space / ".ai/config").mkdir(parents=True, exist_ok=True)
    (user_space / ".ai/config/rye.yaml").write_text("record: {max_file_bytes: 1000}\n")
    bash(project, "true")
    bash(project, "head -c 5000 /dev/zero > large; echo small > small; echo other > other")
    assert b"other" not in made(project, "small")
    assert (b"b/large" in made(project), b"b/small" in made(project), b"b/other" in made(project)) == (False, True, True)


def test_a_file_that_an_edit_made_and_that_is_a_program_now_is_one_in_the_patch(project):
    rye.execute("rye/file-system/write", {"file_path": "run", "content": "#!/bin/sh\n"}, project_path=project)
    assert b"new file mode 100644\n" in made(project)
    (project / "run").chmod(0o755)
    assert b"new file mode 100755\n" in made(project)
