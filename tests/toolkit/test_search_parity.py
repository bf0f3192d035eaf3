"""ripgrep and the search without it answer the same, on trees and patterns that nobody chose.

`python tests/toolkit/test_search_parity.py 500 [SEED]` runs so many generated pairs and 50 written ones on real trees given as
further arguments, and prints the counts.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from rye.errors import UsageError
from rye.toolkit import grepping, ripgrep
from rye.toolkit.fallback import Fallback
from rye.toolkit.globbing import glob

BINARY = ripgrep.locate(os.stat("/"))
pytestmark = pytest.mark.skipif(BINARY is None, reason="ripgrep is not installed")

WORDS = [
    "foo",
    "Foo",
    "bar",
    "a",
    "b",
    "_",
    " ",
    "\t",
    "1",
    "42",
    "(",
    ".",
    "\\",
    "é",
    "É",
    "ß",
    "日本",
    "٣",
    "²",
    "K",
    "-",
    "\u00a0",
    "ſ",
]
BROKEN = [b"\xff", b"\xe9", b"\xc3", b"\xed\xa0\x80"]
LINE = st.lists(st.sampled_from([word.encode() for word in WORDS] + BROKEN), max_size=6).map(b"".join)
END = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r"])
CONTENT = st.lists(st.tuples(LINE, END), max_size=6).map(lambda rows: b"".join(line + end for line, end in rows))
TEXT = st.one_of(
    CONTENT, CONTENT, CONTENT.map(lambda data: data.rstrip(b"\n")), CONTENT.map(lambda data: b"\xef\xbb\xbf" + data),
    CONTENT.map(lambda data: data + b"\0" + data), CONTENT.map(lambda data: data.decode("utf-8", "replace").encode("utf-16")),
)  # fmt: skip
NAME = st.sampled_from(
    [b"a.py", b"b.txt", b"x:y.py", b"new\nline", b"\xff\xfe.py", b".hidden", b"-rf", b"caf\xc3\xa9.txt", b"[a].py"]
)
FOLDER = st.sampled_from([b"", b"src", b"src/lib", b"dist", b".git", b"x.egg-info", b"\xe9t\xe9", b"src/build", b".github"])
RULES = st.lists(
    st.sampled_from(
        ["*.py", "/src", "src/", "!a.py", "lib/", "*.txt", "b.*", "src/*", "!src/lib", "**/a.py", "# note", "", "[ab].*", "/b.txt",
         "src/**", "x?y.py", "{a,b}.py", "*", "!*/", "caf*", "lib/a.py ", "\\!x", "!.hidden"]
    ),
    max_size=3,
).map(lambda lines: "\n".join(lines).encode())  # fmt: skip

ATOM = st.sampled_from(
    ["foo", "a", "b", ".", r"\w", r"\d", r"\s", r"\W", r"\S", r"\D", "[a-c]", "[^a]", r"[\w-]", r"[^\s]", r"\.", r"\(", "é", "[é-ÿ]", "_", " ",
     r"\x61", r"\u00e9", r"\t", "K", "[^é]", "日", r"\\", "-"]
)  # fmt: skip
EDGE = st.sampled_from([r"\b", "^", "$"])
REPEAT = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?", "+?", "{0,1}"])


def _group(inner):
    many = st.lists(inner, min_size=1, max_size=3).map("".join)
    return st.tuples(st.lists(many, min_size=1, max_size=3).map("|".join), REPEAT).map(lambda pair: f"(?:{pair[0]}){pair[1]}")


REGEX = st.lists(
    st.recursive(st.one_of(st.tuples(ATOM, REPEAT).map("".join), EDGE), _group, max_leaves=4), min_size=1, max_size=4
).map("".join)  # fmt: skip
GLOB = st.sampled_from(
    ["*.py", "**/*.py", "src/**", "src/*", "*", "**", "[!a]*", "{a,b}.*", "?.py", "src/**/a.py", "*/b.txt", "*.{py,txt}", "x:*", ".*", "**/lib/*",
     "\\[a\\].py", "caf?.txt", "new*", "*[.]py"]
)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {"hidden": st.booleans(), "no_ignore": st.booleans(), "path": st.sampled_from([".", ".", "src", "src/lib"])}
)


@st.composite
def trees(draw):
    """Paths and contents: files, and `.gitignore` files in some folders."""
    files = draw(st.dictionaries(st.tuples(FOLDER, NAME), TEXT, min_size=1, max_size=8))
    rules = draw(st.dictionaries(st.sampled_from([b"", b"src", b"src/lib"]), RULES, max_size=2))
    return files | {(folder, b".gitignore"): data for folder, data in rules.items()}


def plant(root: bytes, tree) -> None:
    for folder in (b"src/lib",):
        os.makedirs(os.path.join(root, folder))
    for (folder, name), data in tree.items():
        os.makedirs(os.path.join(root, folder), exist_ok=True)
        Path(os.fsdecode(os.path.join(root, folder, name))).write_bytes(data)


def answer(function, *words, **options):
    try:
        return function(*words, **options)
    except UsageError as err:
        return err.code


def both(function, root, *words, **options):
    """The answers of ripgrep and of the search without it; the second None where the pattern is outside the subset."""
    ours = answer(function, root, *words, engine=Fallback(), **options)
    if ours == "pattern_unsupported":
        return None, None
    return answer(function, root, *words, engine=ripgrep.Ripgrep(BINARY), **options), ours


def compare_grep(tree, pattern, options, flags) -> bool:
    """Compare on a tree of their own; tell whether there was anything to compare."""
    root = tempfile.mkdtemp()
    try:
        plant(os.fsencode(root), tree)
        theirs, ours = both(grepping.grep, root, pattern, **options, **flags)
        assert theirs == ours, (pattern, options, flags, tree, theirs, ours)
        return theirs is not None
    finally:
        shutil.rmtree(root)


FLAGS = st.fixed_dictionaries(
    {"ignore_case": st.booleans(), "multiline": st.booleans(), "literal": st.sampled_from([False, False, False, True])}
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(tree=trees(), pattern=REGEX, options=OPTIONS, flags=FLAGS)
def test_grep_finds_the_same_with_and_without_ripgrep(tree, pattern, options, flags):
    assume(compare_grep(tree, pattern, options, flags))


@QUICK
@given(tree=trees(), pattern=GLOB, options=OPTIONS)
def test_glob_finds_the_same_with_and_without_ripgrep(tree, pattern, options):
    with tempfile.TemporaryDirectory() as root:
        plant(os.fsencode(root), tree)
        theirs, ours = both(glob, root, pattern, **options)
        assert theirs == ours, (pattern, options, tree)


def test_control_a_different_pattern_is_seen():
    with tempfile.TemporaryDirectory() as root:
        plant(os.fsencode(root), {(b"", b"a.py"): b"foo\nbar\n"})
        theirs, ours = both(grepping.grep, root, "foo")
        assert theirs == ours != both(grepping.grep, root, "bar")[0]


def main(count: int, number: int, real: list[str]) -> None:
    compared = [0, 0]

    @seed(number)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, *([Phase.shrink] if "--shrink" in real else [])], report_multiple_bugs=False,
    )  # fmt: skip
    @given(tree=trees(), pattern=REGEX, options=OPTIONS, flags=FLAGS)
    def run(tree, pattern, options, flags):
        same = compare_grep(tree, pattern, options, flags)
        compared[same] += 1
        # Such a pair does not count as one of those asked for.
        assume(same)

    run()
    print(f"seed {number}: {compared[1]} generated pairs the same, {compared[0]} outside the subset")
    for root in (one for one in real if one != "--shrink"):
        same = 0
        for pattern in REAL:
            theirs, ours = both(grepping.grep, root, pattern, limit=2_000, mode="count")
            assert theirs == ours, (root, pattern)
            same += theirs is not None
        print(f"{root}: {same} of {len(REAL)} written patterns the same")


REAL = [
    "import", r"^import \w+", r"def \w+\(", r"class [A-Z]\w*", "TODO", r"\bself\b", r"return$", r"^\s*#", r"[0-9]{3,}", r"\.(py|rs|md)\b",
    r"https?://[^ )\"']+", r"(?i)error", r"fn \w+", r"->", r"\bNone\b|\bnull\b", r"^$", r"\t", r" +$", r"[^\x00-\x7f]", r"é",
    r"\w+@\w+\.\w+", r"v?\d+\.\d+\.\d+", r"^\s*(if|for|while)\b", r"\{\}", r"\[[^\]]*\]", r"^.{100,}$", r"(a|b|c)d+e?", r"__\w+__", r"lambda",
    r"^[a-z_]+ = ", r"raise \w+Error", r"@\w+", r"\$\{?\w+", r"0x[0-9a-fA-F]+", r"\"\"\"", r"^-{3,}$", r"!\[", r"== ?None", r"except:", r"assert ",
    r"\bT\b", r"[A-Z]{5,}", r"\s{8}\S", r"'[^']*'", r"--\w[\w-]*", r"\d+%", r"x*", r"\W\w\W", r"(?:ab?)+c", r"(?:\w+\.){2,}\w+",
]  # fmt: skip

if __name__ == "__main__":
    os.environ["USER_SPACE"] = tempfile.mkdtemp()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500, int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3:])
