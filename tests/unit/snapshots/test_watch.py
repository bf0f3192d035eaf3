"""A look at the folders that changed finds what a look at the whole tree finds, whatever was done in between."""

from __future__ import annotations

import mmap
import os
import random
import shutil
from pathlib import Path

from rye.snapshots import states, tree
from rye.snapshots import watch as watches
from rye.snapshots.contents import Contents
from rye.snapshots.watch import Watch
from support.harness import exchange

NAMES = ("a", "b", "c", "d", "e.txt", "f.txt", "node_modules", "CACHEDIR.TAG")


def mapped(path):
    """Write a file by shared memory alone."""
    with path.open("r+b") as file:
        if os.fstat(file.fileno()).st_size:
            with mmap.mmap(file.fileno(), 0) as memory:
                memory[0] = (memory[0] + 1) % 256


def appended(path):
    with path.open("a") as file:
        file.write("x")


def unlisted(path):
    """Close a folder for anyone but root, and open it again at some time."""
    path.chmod(0o755 if path.stat().st_mode & 0o777 == 0o311 else 0o311)


def written_unseen(file, chance, *places):
    """Write a file by another name of it that is gone afterwards: removed, or another file in its place."""
    other, last = (chance.choice(places) / chance.choice(NAMES) for _ in range(2))
    os.link(file, other)
    try:
        appended(other)
        if chance.random() < 0.5:
            os.rename(other, last)
            other = last
        if chance.random() < 0.5:
            other.with_name("fresh").write_text("x")
            os.rename(other.with_name("fresh"), other)
    finally:
        if chance.random() < 0.7:
            other.unlink()


def recorded(folder, root, known):
    """Tell whether a folder is looked into, and was at the last look: nothing is told of names in others."""
    path = "" if folder == root else str(folder.relative_to(root))
    return path in known and not any(
        one.name == "node_modules" or (one / "CACHEDIR.TAG").exists() for one in (folder, *folder.parents)
    )


def changed_once(root, outside, chance, known):
    """Do one random thing to a tree; what cannot be done is passed over."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    folder, other = chance.choice(folders), chance.choice(folders)
    name = folder / chance.choice(NAMES)
    target = other / chance.choice(NAMES)
    file = chance.choice(files) if files else root / "first"
    steps = {
        "make": name.mkdir,
        "make deep": lambda: (name / "x/y").mkdir(parents=True),
        # An open of a pipe would wait.
        "write": lambda: name.is_fifo() or name.write_text(str(chance.random())),
        "append": lambda: appended(file),
        "map": lambda: mapped(file),
        "truncate": lambda: os.truncate(file, 0),
        "replace": lambda: (root / "new").write_text(str(chance.random())) and os.replace(root / "new", file),
        "rename": lambda: os.rename(chance.choice([*files, *folders[1:]]), target),
        "exchange": lambda: exchange(chance.choice(folders[1:]), chance.choice(folders[1:])),
        "unseen": lambda: (
            all(recorded(one, root, known) for one in (folder, other)) and written_unseen(file, chance, folder, other)
        ),
        "symlink": lambda: target.symlink_to(file),
        "remove": file.unlink,
        "remove folder": lambda: shutil.rmtree(chance.choice(folders[1:])),
        "mode": lambda: file.chmod(chance.choice((0o600, 0o644, 0o755))),
        "folder's mode": lambda: unlisted(chance.choice(folders[1:])),
        "times": lambda: os.utime(file, (1, 1)),
        "pipe": lambda: os.mkfifo(name),
        "out": lambda: os.rename(chance.choice(folders[1:]), outside / f"{chance.random()}"),
        "in": lambda: os.rename(chance.choice(sorted(outside.iterdir())), target),
        "outside": lambda: (chance.choice(sorted(outside.iterdir())) / "late").write_text("x"),
        "copy": lambda: shutil.copytree(folder, root / f"copy{chance.randrange(3)}", symlinks=True),
    }
    try:
        steps[chance.choice(list(steps))]()
    except (OSError, IndexError, ValueError, shutil.Error):
        return


def seen(walk):
    """Return what a walk found, and what it could not look into: what it knows of that is as old as its last look at it."""
    found = {
        f"{path}/{name}": states.state_of(mark)[:4] for path, marks in walk.folders.items() for name, mark in marks.items()
    } | dict.fromkeys(walk.folders)
    closed = tuple(f"{path}/" for path in walk.left_out)
    return {path: state for path, state in found.items() if not f"{path}/".startswith(closed)}, set(walk.left_out)


def history(base: Path, seed: int) -> int:
    """Make a random history; return how many of its looks visited the changed folders only."""
    chance = random.Random(seed)
    root, outside = base / "root", base / "outside"
    for folder in (root / "a/b", root / "c", outside):
        folder.mkdir(parents=True)
    for path in ("a/e.txt", "a/b/e.txt", "c/f.txt"):
        (root / path).write_text("x")
    # Files with two names: either is written at any time.
    os.link(root / "a/e.txt", root / "c/e.txt")
    os.link(root / "c/f.txt", root / "a/b/f.txt")
    fd = os.open(root, os.O_RDONLY)
    watch, short = Watch(fd, tree.SKIPPED), 0
    scope = tree.Scope(1 << 20, 1 << 30)
    try:
        with Contents(base / "known") as contents, Contents(base / "other") as others:
            walk = tree.Walk({}, contents, scope, watch)
            walk.run(fd)
            watch.settle(walk.folders)
            for look in range(10):
                before = walk.folders
                for _ in range(chance.randrange(8)):
                    changed_once(root, outside, chance, before)
                is_quick = chance.random() < 0.6
                walk = tree.Walk(before, contents, scope, watch, quick=is_quick)
                short += watch.tree is before and is_quick
                walk.run(fd)
                whole = tree.Walk(before, others, scope)
                whole.run(fd)
                assert seen(walk) == seen(whole), f"seed {seed}, look {look}"
                if chance.random() < 0.9:
                    watch.settle(walk.folders)
                else:
                    # It could not be stored: the next look must find it again.
                    walk.folders = before
    finally:
        watch.close()
        os.close(fd)
        for path in base.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
    return short


def test_changed_folders_tell_what_the_whole_tree_tells(tmp_path):
    seed = random.SystemRandom().randrange(1 << 30)
    short = 0
    # In the first ones an ordinary user closes folders, and changes what lies below them.
    for number in (55363982, 1003, *range(seed, seed + 25)):
        print("seed", number)
        (tmp_path / str(number)).mkdir()
        short += history(tmp_path / str(number), number)
    # Control: most looks were short ones.
    assert short > 60


def test_a_forked_child_takes_no_event_of_its_parent(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    watch = watches.of_project(fd, tree.SKIPPED)
    watch.restart()
    watch.add("", fd)
    known = {"": {}}
    watch.settle(known)
    (tmp_path / "new").touch()
    if not (child := os.fork()):
        os._exit(watch.changed(known) is not None or watches.of_project(fd, tree.SKIPPED) is watch)
    assert os.waitpid(child, 0)[1] == 0
    assert watch.changed(known) == {""}
    os.close(fd)
