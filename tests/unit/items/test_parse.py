"""Metadata by literals and YAML: nothing is imported or executed, and what is ambiguous or misplaced is refused."""

from __future__ import annotations

import sys
import threading

import pytest

from rye.errors import ItemError, RyeError, TrustError
from rye.items import parse
from rye.trust import signature, verify
from support.signed_tools import MINE, signed, tool_text

STORE = verify.TrustStore.build([verify.render_key_document(MINE.public, "me")], [])


def verified(raw, item_type="tool", suffix=".py"):
    return verify.verify(signed(raw, item_type=item_type, suffix=suffix), signature.form_of(item_type, suffix), STORE)


def tool(raw, item_id="my/tool", suffix=".py"):
    return parse.read_tool(verified(raw, "tool", suffix), item_id, suffix)


def entry(raw, item_id="my/entry", suffix=".md"):
    return parse.read_knowledge(verified(raw, "knowledge", suffix), item_id, suffix)


def refusal(read, *args):
    with pytest.raises(RyeError) as caught:
        read(*args)
    assert isinstance(caught.value, ItemError | TrustError)
    assert caught.value.hint
    return caught.value


# --- Python tools ---


def test_a_tools_metadata_are_its_literals():
    found = tool(
        tool_text(
            "my/tool", schema={"type": "object", "properties": {"a": {}}}, more="__timeout__ = 5\n__needs__: list = ['x']"
        )
    )
    assert (found.id, found.version, found.tool_type, found.category) == ("my/tool", "1.2.3", "python", "my")
    assert found.description == "Made for a test"
    assert found.docstring == "A tool made for a test."
    assert found.schema == {"type": "object", "properties": {"a": {}}}
    assert (found.metadata["__timeout__"], found.metadata["__needs__"]) == (5, ["x"])
    assert found.verified.key.owner == "me"


def test_nothing_of_a_tool_is_imported_or_executed_to_be_read(tmp_path):
    canary = tmp_path / "canary"
    raw = tool_text(
        "my/tool",
        head=f"import pathlib\npathlib.Path({str(canary)!r}).touch()",
        more=f"__timeout__ = pathlib.Path({str(canary)!r}).touch() or 9\nX = [c for c in [open({str(canary)!r}, 'w').close()]]",
    )
    found = tool(raw)
    assert "__timeout__" not in found.metadata
    assert "X" not in found.metadata
    assert not canary.exists()
    # Control: running the text fires the canary.
    exec(compile(raw, "<tool>", "exec"), {"__name__": "control"})
    assert canary.exists()


def test_only_plain_assignments_at_the_top_count():
    more = "if True:\n    __a__ = 1\n__b__ = __c__ = 2\n(__d__, __e__) = (3, 4)\nclass K:\n    __f__ = 5\n__g__: int\n__h__ = 6"
    found = tool(tool_text("my/tool", more=more)).metadata
    assert [name for name in ("__a__", "__b__", "__c__", "__d__", "__e__", "__f__", "__g__", "__h__") if name in found] == [
        "__h__"
    ]


GREET = tool_text("my/tool")


@pytest.mark.parametrize(
    "raw",
    [
        b"def f(:\n",
        b"x = 1\n",
        GREET.replace(b'"1.2.3"', b"123"),
        GREET.replace(b'"1.2.3"', b'"1.2"'),
        GREET.replace(b'"1.2.3"', b'"1.2.3\\n"'),
        GREET.replace(b'__tool_description__ = "Made for a test"', b""),
        *(
            tool_text("my/tool", more=more)
            for more in ("__executor_id__ = 5", "CONFIG_SCHEMA = []", "CONFIG_SCHEMA = {'type': 'string'}")
        ),
        b"x = " + b"(" * 5_000 + b")" * 5_000 + b"\n",
        b"x = " + b"-" * 100_000 + b"1\n",
    ],
)
def test_python_that_is_no_tool_is_malformed_or_misplaced(raw):
    assert refusal(tool, raw).code in ("malformed_item", "misplaced")


# --- misplaced ---


def test_a_tool_stands_where_its_signed_text_says_or_is_refused():
    raw = tool_text("my/tool")
    assert tool(raw, "my/tool")
    for elsewhere in ("my/other", "yours/tool", "tool", "my/deeper/tool", "My/tool"):
        assert refusal(tool, raw, elsewhere).code == "misplaced", elsewhere
    unbound = raw.replace(b'__item_id__ = "my/tool"', b"")
    assert tool(unbound, "my/other"), "without a bound id the category alone decides"
    assert refusal(tool, unbound, "yours/tool").code == "misplaced"
    assert refusal(tool, tool_text("my/tool", more="__category__ = ['my']")).code == "misplaced"


# --- YAML ---

RUNTIME = b'item_id: my/run\nversion: "1.0.0"\ntool_type: runtime\nexecutor_id: null\ncategory: my\ndescription: Runs.\n'


def test_a_yaml_tools_metadata_are_its_keys():
    found = tool(RUNTIME + b"config: {timeout_seconds: 300}\n", "my/run", ".yaml")
    assert (found.tool_type, found.executor_id, found.description) == ("runtime", None, "Runs.")
    assert found.metadata["config"] == {"timeout_seconds": 300}
    assert refusal(tool, RUNTIME, "my/walk", ".yaml").code == "misplaced"
    assert refusal(tool, RUNTIME.replace(b'"1.0.0"', b"1.0"), "my/run", ".yaml").code == "malformed_item"


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (b"category: my\n", "repeats a key"),
        (b"config: {a: 1, a: 2}\n", "repeats a key"),
        (b"config:\n  - {b: 1, b: 2}\n", "repeats a key"),
        (b"1: a\n'1': b\n", "repeats a key"),
        (b"a: &x 1\n", "anchors"),
        (b"a: &x [1]\nb: *x\n", "anchors"),
        (b"a: !!python/object/apply:os.system ['true']\n", "tags"),
        (b"a: !!str 1\n", "tags"),
        (b"---\nb: 1\n", "cannot be read"),
        (b"a: [1\n", "cannot be read"),
        (b"a: 2021-99-99\n", "cannot be read"),
        (b"? [a]\n: 1\n", "cannot be read"),
        (b"a: " + b"[" * 5_000 + b"]" * 5_000 + b"\n", "nested deeper"),
        (b"a: " + b"[" * 200_000, "nested deeper"),
        (b"a: " + b"{a: " * 200_000, "nested deeper"),
    ],
)
def test_yaml_that_could_read_otherwise_elsewhere_is_refused(more, word):
    err = refusal(tool, RUNTIME + more, "my/run", ".yaml")
    assert err.code == "malformed_item"
    assert word in str(err)
    assert "\n" not in str(err)


def test_yaml_that_is_no_mapping_is_refused_and_other_tools_are_listed_by_place_alone():
    for raw in (b"- a\n", b"text\n", b"5\n", b"null\n", b"# only a comment\n", b"category: my\ndescription: \xe4\n"):
        assert refusal(tool, raw, "my/run", ".yaml").code == "malformed_item"
    assert parse.yaml_mapping("a: " + "[" * 60 + "]" * 60)["a"] is not None, "nesting that people write is read"
    found = tool(b"#!/bin/sh\n# greets\necho hi\n", "my/script", ".sh")
    assert (found.tool_type, found.category, found.executor_id) == ("sh", "my", None)


# --- knowledge ---

FENCED = b"```yaml\nid: entry\ntitle: T\ncategory: my\n```\n\n# Entry\n\nText.\n"


def test_an_entrys_header_is_its_fence_and_its_body_what_follows():
    found = entry(FENCED)
    assert found.header == {"id": "entry", "title": "T", "category": "my"}
    assert found.body == "\n# Entry\n\nText.\n"
    assert entry(FENCED.replace(b"```yaml", b"```yml", 1)).header["title"] == "T"
    assert entry(b"\n\n" + FENCED).header["title"] == "T"


def test_an_entry_stands_where_its_header_says_or_is_refused():
    for line in (b"id: entry", b"name: entry", b"id: my/entry", b"name: my/entry"):
        assert entry(FENCED.replace(b"id: entry", line)).id == "my/entry", line
    for line in (b"id: other", b"name: other", b"id: yours/entry", b"title2: x", b"id: [entry]", b"id: null"):
        assert refusal(entry, FENCED.replace(b"id: entry", line)).code == "misplaced", line
    assert refusal(entry, FENCED, "yours/entry").code == "misplaced"
    assert entry(FENCED.replace(b"category: my\n", b""), "yours/entry"), "without a category the place decides"
    found = entry(b"id: entry\ncategory: my\nfact: 1\n", suffix=".yaml")
    assert (found.header["fact"], found.body) == (1, ""), "a YAML entry is all header"


def test_an_entry_without_a_header_that_reads_the_same_everywhere_is_malformed():
    for mark in (b"<!-- rye:unsigned -->\n\n", b"<!-- rye:unsigned -->\n<!-- rye:unsigned -->\n"):
        assert entry(mark + FENCED).header == entry(FENCED).header, "the mark of a file that was not signed yet"
    for raw in (
        b"# No header\n",
        b"# Late\n\n" + FENCED,
        b"<!-- anything else -->\n" + FENCED,
        FENCED.replace(b"id: entry", b"id: &a entry"),
        FENCED.replace(b"title: T", b"id: entry"),
        b"```yaml\nid: entry\n",
        b"```json\n{}\n```\n",
        b"```yaml\n```\n",
    ):
        assert refusal(entry, raw).code == "malformed_item", raw


POINTS = """Count words.
And more.

Requires: a file.
Does not: change it,
or anything.
Side effects: none.
Returns: output. A count. And more of it.
Prefer it to wc."""


def test_a_docstring_has_points_and_what_is_too_long_loses_what_is_returned_first_then_the_longest_point():
    first, *others = parse.docstring_sections(POINTS)
    assert (first, others[1]) == ("Count words. And more.", "Does not: change it, or anything.")
    assert [point.partition(":")[0] for point in others] == [
        "Requires",
        "Does not",
        "Side effects",
        "Returns",
        "Prefer it to wc.",
    ]
    assert parse.docstring_sections("Requires: x") == ["", "Requires: x"]
    assert parse.fitted_docstring(POINTS, len(POINTS)) == POINTS
    assert "Returns: output. A count.\n" in parse.fitted_docstring(POINTS, len(POINTS) - 5)
    assert parse.fitted_docstring(POINTS, 140).startswith("Count words. And more.\n")
    short = parse.fitted_docstring(POINTS, 125)
    assert (short.startswith("Count words.\n"), "Returns: output.\n" in short) == (True, True)
    assert parse.fitted_docstring(POINTS, 20) == f"{short[:19]}…"
    assert all(len(parse.fitted_docstring(POINTS, most)) <= most for most in range(1, len(POINTS) + 2))


def test_tools_are_read_in_many_threads_at_once():
    """An interpreter that switches threads while it makes a tree gives up on it, if another is made meanwhile (CPython 3.11)."""

    class Slow:
        def __init__(self):
            self.itself = self

        def __del__(self):
            for _ in range(50):
                pass

    body = "\n".join(f"x{number} = [{{'a': (1, [2, {{'b': {number}}}])}}]" for number in range(200)).encode()
    failed = []

    def read():
        for _ in range(8):
            Slow()
            try:
                parse.literals_of(parse.python_tree(body))
            except SystemError as err:
                failed.append(err)

    def litter():
        for _ in range(10_000):
            Slow()

    threads = [threading.Thread(target=one) for one in (read, read, read, litter)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
