"""The program that searches: ripgrep or, without it, a search in Python that answers alike; and what neither of them may do."""

import os
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rye
from rye.call.context import CallOptions, Cancellation
from rye.filesearch import ripgrep, tree
from support.calling import call, done, refused
from support.harness import is_over, put_program
from support.waiting import until

BINARY = ripgrep.locate(os.stat("/"))
needs_ripgrep = pytest.mark.skipif(BINARY is None, reason="ripgrep is not installed")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Let a shell script be the program that searches; `{rg}` in it is ripgrep."""

    def put(script):
        path = put_program(tmp_path / "tools/rg", f"#!/bin/sh\n{script.replace('{rg}', str(BINARY))}\n")
        monkeypatch.setattr(ripgrep, "locate", lambda _: str(path))

    return put


def put(project, **texts):
    for name, text in texts.items():
        (project / name).write_text(text)


# --- two engines, one answer ---

FILES = {
    b"a.py": "foo\nBar é 42\n\n  def foo(bar):\n".encode(),
    b"b.txt": b"one\r\ntwo foo\r\nlast",
    b"marked.txt": b"\xef\xbb\xbffoo\n",
    b"wide.txt": "foo wide\n".encode("utf-16"),
    b"binary": b"foo\n\0foo\n",
    b"broken.txt": b"foo \xff\xe9\nbar\xed\xa0\x80\n",
    b".gitignore": b"*.log\n/dist\n!src/lib/keep.log\nx?y\n# note\n",
    b"src/.gitignore": b"lib/b.*\n",
    b"src/lib/b.py": b"bar foo bar\n",
    **dict.fromkeys([b".hidden", b"new\nline", b"\xff\xfe.py", b"src/a.py", b"src/lib/keep.log", b"dist/a.py"], b"foo\nfoo\n"),
    **dict.fromkeys([b"node_modules/x/a.py", b".github/a.yml", b"x1y", "xéy".encode()], b"foo\n"),
    b"empty": b"",
}
PATTERNS = ["foo", "^foo$", r"\bbar\b", "o+", r"\d+", "é", "[^a-z]", "$", r"\s{2}\w", "(?i)BAR", "a|b", ".", r"foo\s*$", "x*"]


@pytest.fixture
def files(project):
    for name, data in FILES.items():
        path = os.path.join(os.fsencode(project), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return project


def both(monkeypatch, tool, project, /, **parameters):
    """What ripgrep answers, and what is answered without it, without the line that says so."""
    theirs = done(tool, project, **parameters)
    with monkeypatch.context() as patch:
        patch.setattr(ripgrep, "locate", lambda _: None)
        ours = done(tool, project, **parameters)
    ours["output"] = "\n".join(line for line in ours["output"].split("\n") if not line.startswith("[searched by Python"))
    return theirs, ours


@needs_ripgrep
@pytest.mark.parametrize("pattern", PATTERNS)
def test_contents_are_found_alike(files, monkeypatch, pattern):
    # Bytes that are no UTF-8 fit `.` and negated classes in `re` alone.
    is_wide = pattern in (".", "[^a-z]")
    everything = {"hidden": True, "no_ignore": True}
    further = [] if is_wide else [{"literal": True}, {"mode": "count"}]
    for options in ({}, everything, {"path": "src"}, {"include": "*.py", "ignore_case": True}, *further):
        theirs, ours = both(monkeypatch, "grep", files, pattern=pattern, **options)
        for data in (theirs, ours) if is_wide else ():
            data["matches"] = [one for one in data["matches"] if one["file"] != "broken.txt"]
            data["output"] = ""
        assert (ours["matches"], ours["output"]) == (theirs["matches"], theirs["output"]), options


@needs_ripgrep
@pytest.mark.parametrize("pattern", ["*.py", "src/**", "*", "[!a]*", "{a,b}.*", "?.py", "src/**/a.py", ".*", "**/lib/*"])
def test_names_are_found_alike(files, monkeypatch, pattern):
    for options in ({}, {"hidden": True}, {"no_ignore": True}, {"path": "src/lib"}, {"sort": "modified", "limit": 3}):
        theirs, ours = both(monkeypatch, "glob", files, pattern=pattern, **options)
        assert ours == theirs


def test_the_answer_says_that_it_is_the_fallback_and_where_patterns_differ(files, request):
    # Control: with ripgrep it says nothing of it.
    assert BINARY is None or "Python" not in done("grep", files, pattern="foo")["output"]
    request.getfixturevalue("without_ripgrep")
    for tool in ("grep", "rye/swe/search_dir"):
        output = done(tool, files, pattern="foo")["output"]
        assert ("[searched by Python's re" in output, "pip install ripgrep" in output, r"\p{…}" in output) == (True,) * 3
    assert done("grep", files, pattern="f(?=oo)")["total"] == done("grep", files, pattern="foo")["total"]
    # An escaped backslash before an n is no newline.
    assert done("grep", files, pattern=r"a\\n")["total"] == 0
    assert "pip install ripgrep" in refused("ripgrep_missing", "grep", files, pattern="a.*b", multiline=True)


@pytest.mark.parametrize("pattern", ["(a", "[a", "[[:alpha:]]", "[a&&b]", r"\p{L}", "(?<name>a)", "a\nb", r"a\nb", "*a"])
def test_a_pattern_that_re_reads_otherwise_is_refused(files, without_ripgrep, pattern):
    assert refused("bad_pattern", "grep", files, pattern=pattern)


def test_a_large_file_is_named_and_not_searched(files, without_ripgrep):
    with open(files / "large", "wb") as file:
        file.writelines(b"foo" * 349_525 + b"\n" for _ in range(65))
    data = call("grep", files, pattern="foo", path=".")
    assert "large (File too large)" in data["output"]
    assert "large" not in {one["file"] for one in data["matches"]}


PIECES = [b"ab", b"a", b"b", b"aab", b" ", b"\n", b"\r\n", b"\r", "ä".encode(), b"\xff", b"\t", b"a-b", b"\x0c"]
CONTENTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=120).map(b"".join)
ODD = ["ab\n".encode("utf-16"), "\ufeffab\n".encode(), b"ab\n\0", b"ab\n" + b"x" * (1 << 20), b"ab\n" * 1_001]


@needs_ripgrep
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=CONTENTS | st.sampled_from(ODD), word=st.sampled_from(["ab", "a", "ä", " a", "aab", "a\tb"]))
def test_a_plain_word_is_found_as_by_a_pattern(project, data, word):
    """Words are looked for without a second run of the program."""
    (project / "f").write_bytes(data)
    for more in ({}, {"context": 1}):
        theirs, ours = (call("grep", project, pattern=one, limit=2_000, **more) for one in (f"(?:{word})", word))
        assert theirs["matches"] == ours["matches"]


# --- what neither of them may do ---


def test_options_in_a_pattern_are_text_and_no_configuration_changes_anything(project, engine, monkeypatch, tmp_path):
    put(project, a="--pre=./run\n-e\n", run=f"#!/bin/sh\ntouch {project}/ran\n")
    (project / "run").chmod(0o755)
    (tmp_path / "rc").write_text("--files-with-matches\n--glob=!a\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    for name in (".ignore", ".rgignore", "../.gitignore"):
        (project / name).write_text("a\n")
    for text in ("--pre=./run", "-e"):
        assert [one["file"] for one in done("grep", project, pattern=text)["matches"]] == ["a"]
    assert done("glob", project, pattern="*")["files"] == ["a", "run"]
    assert not (project / "ran").exists()


@needs_ripgrep
def test_control_the_same_words_without_care_run_a_program(project, program):
    program(f"exec {{rg}} --pre={project}/run x .")
    put(project, a="x\n", run=f"#!/bin/sh\ntouch {project}/ran\n")
    (project / "run").chmod(0o755)
    call("grep", project, pattern="x")
    assert (project / "ran").exists()


def test_rules_above_the_folder_count_up_to_the_root(project, engine):
    (project / "src/lib").mkdir(parents=True)
    (project / ".gitignore").write_text("*.log\n/src/lib/gen.py\n/gen.py\nlib/deep\n")
    (project / "src/.gitignore").write_text("!keep.log\n")
    put(project / "src/lib", **dict.fromkeys(("a.log", "keep.log", "gen.py", "a.py", "deep"), "x\n"))
    for ignored, names in ((False, "a.py deep keep.log"), (True, "a.log a.py deep gen.py keep.log")):
        found = done("glob", project, pattern="*", path="src/lib", no_ignore=ignored)["files"]
        assert found == [f"src/lib/{name}" for name in names.split()]


def test_another_ripgrep_counts_only_outside_the_project(project, monkeypatch, tmp_path):
    """By a link in the project, or by a way through it and out again, it is what the project can change at any time."""
    canary = tmp_path / "ran"
    for folder in ("tools", "hop", "links", "empty", "project/link"):
        (tmp_path / folder).mkdir()
    for folder in (project, tmp_path / "tools"):
        for name in ("rg", "interpreter")[: 1 + (folder == project)]:
            put_program(folder / name, f"#!/bin/sh\n{'interpreter' * (name == 'rg')}\necho $0 >> {canary}\nexit 1\n")
    for link, target in {
        "project/link/rg": tmp_path / "tools/rg",
        "project/tools": tmp_path / "tools",
        "way": project / "link",
        "hop/rg": project / "link/rg",
        "links/rg": tmp_path / "tools/rg",
    }.items():
        (tmp_path / link).symlink_to(target)
    bare = put_program(tmp_path / "empty/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    monkeypatch.setattr(sys, "executable", str(bare))
    for folder in ("project", "project/link", "project/tools", "way", "hop"):
        monkeypatch.setenv("PATH", str(tmp_path / folder))
        assert "[searched by Python" in done("grep", project, pattern="x")["output"], folder
        assert not canary.exists()
    # Control: from these it is started, as the very file that was judged.
    for folder in ("tools", "links"):
        monkeypatch.setenv("PATH", f"{project}:{tmp_path / folder}")
        done("grep", project, pattern="x")
    assert {*canary.read_text().split()} == {str(tmp_path / "tools/rg")}


def test_the_program_sees_no_secrets_and_its_failure_is_no_search_without_matches(project, program, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    # As `$LD_LIBRARY_PATH:/opt/lib` begins, where it was not set: with the current folder, which is the project.
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/opt/lib")
    program("/usr/bin/env > ../seen; exit 70")
    refused("search_failed", "grep", project, pattern="x")
    seen = (project.parent / "seen").read_text()
    assert ("secret" in seen, "LD_LIBRARY_PATH=/opt/lib\n" in seen) == (False, True)


def test_the_program_is_ended_with_all_it_started(project, program):
    program("sleep 200 & echo $! > ../pid; sleep 200")
    cancellation, pid = Cancellation(), project.parent / "pid"
    more = {"project_path": project, "options": CallOptions(cancellation=cancellation)}
    thread = threading.Thread(target=rye.execute, args=("rye/file-system/grep", {"pattern": "x"}), kwargs=more)
    thread.start()
    assert until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    cancellation.cancel()
    thread.join()

    # It was killed; a busy machine takes its time to end it.
    assert until(lambda: is_over(int(pid.read_text())))


@needs_ripgrep
@pytest.mark.parametrize(
    ("meanwhile", "files"),
    [
        # Behind the second run, which found the lines: no wrong line is shown.
        ('{rg} "$@"; case "$*" in *--json*) printf "zero\\none\\nneedle\\n" > a;; esac', ["b"]),
        # Behind the first run, which found the files: nothing leaks through a link.
        ('{rg} "$@"; case "$*" in *--count*) rm a; ln -s ../secret a;; esac', ["b"]),
    ],
)
def test_a_file_that_becomes_another_while_it_is_searched_is_not_shown(project, program, meanwhile, files):
    (project.parent / "secret").write_text("needle of the secret\n")
    put(project, a="one\nneedle\n", b="needle\n")
    program(meanwhile)
    data = done("grep", project, pattern="needl[e]", context=0)
    assert ([one["file"] for one in data["matches"]], "secret" in str(data)) == (files, False)


@needs_ripgrep
def test_the_folder_searched_is_the_one_that_was_opened(project, program):
    (project / "src").mkdir()
    put(project / "src", a="x\n")
    program('mv ../src ../moved 2>/dev/null && ln -s /etc ../src\nexec {rg} "$@"')
    assert done("glob", project, pattern="*", path="src")["files"] == ["src/a"]


@needs_ripgrep
@pytest.mark.slow
def test_a_line_too_long_for_memory_is_refused_in_bounded_memory(project, monkeypatch):
    with open(project / "long", "wb") as file:
        file.writelines(b"a" * (1 << 20) for _ in range(220))
    monkeypatch.setattr(tree, "MAX_MEMORY", 200 << 20)
    assert "needed more memory" in refused("search_failed", "grep", project, pattern="needle")
