"""What is not recorded of a command's changes is said: dependencies, caches, large files, and how git moved."""

import os
import re
import subprocess
import time

import pytest

import rye
from support.calling import call, undo
from support.harness import files_of
from support.shell_calls import bash, configure, set_sandbox


@pytest.fixture
def started(project):
    (project / "a.txt").write_text("one\n")
    bash(project, "true")
    return project


def tick():
    """Wait until a file's time of change would be a later one: what comes before counts as before.

    A kernel may give a file the precise time, which the clock of files (CLOCK_REALTIME_COARSE) reaches some ticks later.
    """
    now = time.time_ns()
    while time.clock_gettime_ns(5) <= now:
        time.sleep(0.001)


def made_folders(started):
    """Make dependencies and caches, before the command that counts."""
    bash(
        started,
        "mkdir -p node_modules/{a/b,.cache/d} pkg/node_modules .venv/lib .pytest_cache .hg/store sub/.svn cache; >node_modules/a/b/f",
    )
    bash(started, "echo 'Signature: 8a477f597d28d172789f06886806bc55' > cache/CACHEDIR.TAG")
    for number in range(5):
        (started / f"m{number}/__pycache__").mkdir(parents=True)
    tick()
    found = bash(started, "true")
    assert "not_recorded" not in found, found["not_recorded"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        *((command, "node_modules") for command in ("echo y >> node_modules/a/b/f", "rm -r node_modules")),
        *((command, "pkg/node_modules") for command in ("mkdir pkg/node_modules/new", "rm -r pkg")),
        *((command, ".venv") for command in ("chmod 700 .venv/lib", "mv .venv gone")),
        *(("touch .pytest_cache/x", ".pytest_cache"), ("echo x > cache/y", "cache"), ("mkdir sub/.nox -p", "sub/.nox")),
        ("for d in m*; do touch $d/__pycache__/x; done", "5 folders __pycache__"),
        *(("echo x >> .hg/store/data", ".hg"), ("touch node_modules/.cache/d/x", "node_modules/.cache")),
        ("rm -r sub/.svn", "sub/.svn"),
    ],
)
def test_a_folder_that_is_not_recorded_is_named_when_it_changed(started, command, said):
    made_folders(started)
    assert list(bash(started, command)["not_recorded"]) == [said]
    tick()
    assert "not_recorded" not in bash(started, "ls -R > /dev/null; cat node_modules/a/b/* 2>/dev/null || true")


def test_a_model_is_told_of_what_undo_cannot_take_back_but_not_of_caches(started):
    made_folders(started)
    told = rye.toolset(started).answer("bash", {"command": "touch .pytest_cache/x node_modules/.cache/x; echo x"}).text
    assert "recorded" not in told
    told = rye.toolset(started).answer("bash", {"command": "touch node_modules/x; truncate -s 20M big; echo x"}).text
    assert "[not recorded for undo: big (larger than 16,777,216 bytes), node_modules (installed again by programs" in told


def test_a_large_file_counts_as_changed_by_the_command_that_made_it_alone(started):
    """Its content is not known, so that its time decides: also where it was made a moment before the look."""
    bash(started, "truncate -s 20M big")
    for name in "abc":
        done = bash(started, f"echo {name} > {name}")
        assert "not_recorded" not in done
        assert undo(started, entry_id=done["change_id"])["success"]
    assert "big" in bash(started, "truncate -s 21M big")["not_recorded"]


def test_what_its_owner_closed_is_said_and_the_rest_is_recorded(started):
    (started / "shut").touch(0)
    if os.access(started / "shut", os.R_OK):
        pytest.skip("root reads what is closed")
    (started / "folder").mkdir(0)
    assert bash(started, "true")["not_recorded"] == {"folder": "Permission denied"}
    done = bash(started, "echo two > a.txt; chmod 600 shut; echo x > shut; chmod 0 shut; echo y > new; chmod 0 new")
    closed = dict.fromkeys(("folder", "new", "shut"), "Permission denied")
    assert (done["changed"], done["not_recorded"]) == (["a.txt", "new", "shut"], closed)
    assert undo(started, entry_id=done["change_id"], file_path="a.txt")["success"]
    (started / "folder").chmod(0o700)


GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"


def test_how_git_moved_is_said_and_that_undo_does_not_take_it_back(started):
    bash(started, f"{GIT} init -q && git add -A && {GIT} commit -qm x")
    done = bash(started, f"echo two > a.txt; {GIT} commit -qam y")
    first, second = re.fullmatch(r"main at ([0-9a-f]{12}) -> main at ([0-9a-f]{12})", done["git"]).groups()
    assert first != second
    done = bash(started, f"echo three > a.txt; {GIT} stash -q")
    assert re.fullmatch(f"main at {second} -> main at {second}, stash [0-9a-f]{{12}}", done["git"])
    done = bash(started, "git checkout -q -b other HEAD~1")
    assert done["git"].startswith(f"main at {second}, stash ")
    assert f" -> other at {first}, stash " in done["git"]
    answer = undo(started, entry_id=done["change_id"])
    assert answer["warnings"] == [f"What the command did to git is not taken back: {done['git']}."]
    assert (started / "a.txt").read_text() == "two\n"


HEX = "c0ffee" + "0123456789abcdef" * 2 + "42"


@pytest.mark.parametrize(
    "command",
    [
        "echo $HEX > .git/refs/heads/control; echo ref: refs/heads/control > .git/HEAD",
        "ln -s $OUT/hex .git/refs/heads/y; echo ref: refs/heads/y > .git/HEAD",
        "rm .git/HEAD; ln -s $OUT/hex .git/HEAD",
        "ln -s $OUT .git/refs/heads/x; echo ref: refs/heads/x/hex > .git/HEAD",
        "ln -s $OUT/hex .git/refs/stash",
        "rm .git/packed-refs; ln -s $OUT/packed .git/packed-refs; echo ref: refs/heads/p > .git/HEAD",
        "git init -q in; echo $OUT/repository/.git > in/.git/commondir; echo ref: refs/heads/hidden > in/.git/HEAD",
        "git init -q in; echo ../../../outside/repository/.git > in/.git/commondir; echo ref: refs/heads/hidden > in/.git/HEAD",
        "mkdir in; echo gitdir: $OUT/repository/.git > in/.git",
        "mkdir in; ln -s $OUT/repository/.git in/.git",
        "mkdir in; echo gitdir: ../../outside/repository/.git > in/.git",
        "mkdir in; echo gitdir: ../link/repository/.git > in/.git; ln -s $OUT link",
    ],
)
def test_where_git_is_tells_nothing_of_files_outside(started, tmp_path, command):
    """A command puts links and names of other folders where git keeps its own; the result must not read what they lead to."""
    outside = tmp_path / "outside"
    subprocess.run(["git", "init", "-q", "-b", "hidden", outside / "repository"], check=True)
    (outside / "repository/.git/refs/heads/hidden").write_text(HEX + "\n")
    (outside / "hex").write_text(HEX + "\n")
    (outside / "packed").write_text(f"{HEX} refs/heads/p\n")
    bash(started, f"{GIT} init -q && git add -A && {GIT} commit -qm x && git pack-refs --all && git checkout -q --detach")
    told = str(bash(started, command.replace("$OUT", str(outside)).replace("$HEX", HEX)).get("git"))
    assert (HEX[:12] in told) == ("control" in command), told
    assert "hidden" not in told or "hidden at no commit" in told


@pytest.mark.parametrize(
    "shape", ["submodule", "worktree inside", "linked worktree", "linked worktree of relative paths", "nested"]
)
def test_where_git_is_is_told_of_every_usual_form(started, tmp_path, user_space, shape):
    set_sandbox(user_space, "off")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-C"]
    for folder in (started, tmp_path / "other"):
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
        subprocess.run([*git, folder, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    folder, project = "wt", started
    if shape == "submodule":
        subprocess.run([*git, started, "submodule", "--quiet", "add", tmp_path / "other", "wt"], check=True)
    elif shape == "nested":
        subprocess.run(["git", "clone", "-q", tmp_path / "other", started / "wt"], check=True)
    else:
        at = started / "wt" if shape == "worktree inside" else tmp_path / "wt"
        subprocess.run([*git, started, "worktree", "add", "-q", "-b", "wt", at], check=True, capture_output=True)
        if at != started / "wt":
            folder, project = "", at
        if "relative" in shape:
            (at / ".git").write_text(f"gitdir: ../{started.name}/.git/worktrees/wt\n")
    branch = "wt" if "worktree" in shape else "main"
    head = subprocess.run([*git, project / folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    done = bash(project, f"git -C ./{folder} -c user.name=a -c user.email=a@b commit -q --allow-empty -m y")
    told = f"{folder}: {branch} at {head[:12]} -> {branch} at ".removeprefix(": ")
    assert done["git"].startswith(told), done["git"]


def test_a_nested_repository_that_a_command_made_moved_or_removed_is_said(started):
    done = bash(started, f"{GIT} init -q sub && cd sub && echo x > x && git add -A && {GIT} commit -qm x")
    assert re.fullmatch("sub: no repository -> main at [0-9a-f]{12}", done["git"])
    done = bash(started, f"cd sub && echo y > x && {GIT} commit -qam y")
    assert re.fullmatch("sub: main at [0-9a-f]{12} -> main at [0-9a-f]{12}", done["git"])
    done = bash(started, "rm -rf sub")
    assert re.fullmatch("sub: main at [0-9a-f]{12} -> no repository", done["git"])
    answer = undo(started, entry_id=done["change_id"])
    assert (started / "sub/x").read_text() == "y\n"
    assert answer["warnings"] == [f"What the command did to git is not taken back: {done['git']}."]


def test_a_job_says_how_git_moved_and_what_is_not_recorded(started):
    made_folders(started)
    bash(started, f"{GIT} init -q")
    command = f"git add a.txt; {GIT} commit -qm x; touch node_modules/x"
    job = bash(started, command, background=True)["job_id"]
    done = call("rye/bash/job", started, job_id=job, action="wait", timeout=120)
    assert "node_modules" in done["not_recorded"]
    assert done["git"].startswith("main at no commit -> main at ")


def test_repositories_that_a_command_made_are_named_as_such(started):
    made = bash(started, "mkdir -p v/w; git init -q v/w/x; touch v/w/x/f; git init -q v/w/x/y; git init -q --bare v/b.git")
    assert made["not_recorded"] == {"v/b.git": "a git repository, which is not recorded; it changed"}
    answer = undo(started, entry_id=made["change_id"])
    stays = "stays: it holds a git repository, which is not recorded; remove it by hand where it is not wanted."
    # The folders above them stay for their sake, and for no files that something else made.
    assert sorted(answer["warnings"][:-1]) == [f"{path} {stays}" for path in ("v/b.git", "v/w/x", "v/w/x/y")]
    assert not (started / "v/w/x/f").exists()
    assert undo(started, entry_id=answer["entry_id"])["success"]
    assert (started / "v/w/x/f").exists()


TAG = "printf 'Signature: 8a477f597d28d172789f06886806bc55' > "


@pytest.fixture
def tagged(project):
    """A project with a folder of the user's, `d`, and one that is a cache from its beginning, `e`."""
    for name in ("d/f", "d/gone", "d/s/g", "d/s/t/h"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"{name}\n")
    bash(project, "true")
    made = bash(project, f"mkdir -p e/s/t; {TAG} e/CACHEDIR.TAG; for one in e/f e/gone e/s/t/h; do echo cached > $one; done")
    assert made["changed"] == ["e"]
    return project


@pytest.mark.parametrize("step", ["rm d/gone; mkdir d/new; echo x > d/s/new", "echo more >> d/f", "mv d/f d/s/f", "rm -r d/s"])
def test_a_folder_that_is_made_a_cache_stays_recorded(tagged, step):
    before = files_of(tagged)
    change = bash(tagged, step)["change_id"]
    tag = bash(tagged, f"{TAG} d/CACHEDIR.TAG; echo cached > d/cached")
    assert sorted(tag["changed"]) == ["d/CACHEDIR.TAG", "d/cached"]
    after = files_of(tagged)
    for one in (tag["change_id"], change):
        answer = undo(tagged, entry_id=one)
        assert answer["success"], answer
    assert files_of(tagged) == before
    # The redo of the older one first: they are independent.
    assert undo(tagged, entry_id=answer["entry_id"])["success"]
    bash(tagged, f"{TAG} d/CACHEDIR.TAG; echo cached > d/cached")
    assert files_of(tagged) == after


def test_a_cache_that_is_none_any_more_has_not_made_its_files(tagged):
    bash(tagged, "echo more > e/cached; rm e/gone; echo z > e/f")
    ended = bash(tagged, "rm e/CACHEDIR.TAG; echo new > e/new; echo top > top")
    assert (ended["changed"], ended["not_recorded"]["e"][:17]) == (["top"], "recorded from now")
    there = files_of(tagged)
    undo(tagged, entry_id=ended["change_id"])
    assert files_of(tagged) == {path: text for path, text in there.items() if path != "top"}
    changed = bash(tagged, "echo more >> e/new; rm -r e/s")
    assert sorted(changed["changed"]) == ["e/new", "e/s", "e/s/t", "e/s/t/h"]
    undo(tagged, entry_id=changed["change_id"])
    assert files_of(tagged) == {path: text for path, text in there.items() if path != "top"}


def test_another_folder_in_the_place_of_a_cache_counts_as_the_cache_that_it_was(tagged):
    made = bash(tagged, "mv e x; mkdir e; echo new > e/new; echo top > top")
    assert (made["changed"], made["not_recorded"]["e"][:17]) == (["top", "x"], "recorded from now")
    undo(tagged, entry_id=made["change_id"])
    assert files_of(tagged)["e/new"] == b"new\n"


def test_a_folder_that_the_users_settings_leave_out_or_take_in_has_not_changed(tagged, user_space):
    entries = undo(tagged, list=True)["total"]
    for text in ("record: {skip: [d]}\n", ""):
        configure(user_space, text)
        assert "changed" not in bash(tagged, "true")
    assert undo(tagged, list=True)["total"] == entries
    changed = bash(tagged, "rm -r d")
    assert undo(tagged, entry_id=changed["change_id"])["success"]
    assert "d/s/t/h" in files_of(tagged)
