"""A tool of several files: signed with the digests of the others, run with those bytes and no other."""

import os

import pytest

import rye
from rye.errors import RyeError
from rye.items import parse, tool_files
from support.calling import response as call
from support.signed_tools import put, sign, signed, tool_text, trust_key

RUNTIMES = "rye/core/runtimes"
BODY = """import _helper, pathlib
return {"success": True, "output": _helper.word() + pathlib.Path(__file__).with_name("w.txt").read_text()}"""
SHELL = f"""# ---
# version: "1.0.0"
# tool_type: bash
# executor_id: {RUNTIMES}/bash_script_runtime
# category: my
# description: d
# files: [_lib/words.sh]
# ---
. "${{0%/*}}/_lib/words.sh"
word
"""


@pytest.fixture
def tools(project):
    trust_key()
    put(
        project,
        "tools/my/tool.py",
        tool_text("my/tool", BODY, more='__files__ = ["_helper.py", "w.txt"]\n__permissions__ = []').rstrip(),
    )
    put(project, "tools/my/_helper.py", b'def word(): return "hello "\n')
    put(project, "tools/my/w.txt", b"world")
    put(project, "tools/my/shell.sh", SHELL.encode())
    put(project, "tools/my/_lib/words.sh", b"word() { echo hello; }\n")
    return project


def test_signing_writes_the_digests_and_the_very_files_run(tools):
    rows = sign(tools, "my/tool", "my/shell")
    assert [row["status"] for row in rows] == ["signed", "signed"], rows
    assert b'"_helper.py": "' in (tools / ".ai/tools/my/tool.py").read_bytes()
    assert [call(tools, item_id)["data"]["output"] for item_id in ("my/tool", "my/shell")] == ["hello world", "hello\n"]
    # Signed again without a change: the same bytes.
    assert [row["status"] for row in sign(tools, "my/tool", "my/shell")] == ["unchanged", "unchanged"]


@pytest.mark.parametrize(("item_id", "path"), [("my/tool", "_helper.py"), ("my/tool", "w.txt"), ("my/shell", "_lib/words.sh")])
def test_another_file_is_refused_and_the_tool_does_not_run(tools, item_id, path):
    sign(tools, "my/tool", "my/shell")
    assert call(tools, item_id)["status"] == "success"
    file = tools / ".ai/tools/my" / path
    content = file.read_bytes()
    outside = tools.parent / "outside"
    outside.write_bytes(content)

    def same_size():
        stat = file.stat()
        file.write_bytes(content[:-1] + b"#")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    for change in (lambda: file.write_bytes(content + b"\n"), same_size, file.unlink, lambda: file.symlink_to(outside)):
        change()
        answer = call(tools, item_id)
        assert (answer["code"], answer["metadata"]["ran"]) == ("tampered", False)
        assert (" is not there." in answer["error"]) == (not file.is_file() or file.is_symlink()), answer["error"]
        assert rye.verify([item_id], project_path=tools)[0]["verdict"] == "tampered"
    file.unlink()
    file.write_bytes(content)
    assert call(tools, item_id)["status"] == "success"


def test_only_files_below_the_tools_folder_that_are_there_are_signed_and_only_those_with_a_digest_run(project):
    for value in (
        *(f'["{path}"]' for path in ("../x", "/etc/passwd", "a/../b", "", "tool.py", "a b", ".hidden", "a//b")),
        *("[3]", '"x"', '{"a": 3}'),
    ):
        put(project, "tools/my/tool.py", tool_text("my/tool", more=f"__files__ = {value}"))
        row = sign(project, "my/tool")[0]
        assert (row["status"], row["code"]) == ("failed", "malformed_item"), value
    text = tool_text("my/tool", more='__files__ = ["gone.txt"]')
    put(project, "tools/my/tool.py", text)
    assert sign(project, "my/tool")[0]["code"] == "file_not_found"
    large = [put(project, f"tools/my/_{at}", b"x" * (1 << 20)).name for at in range(9)]
    put(project, "tools/my/tool.py", tool_text("my/tool", more=f"__files__ = {large}"))
    assert sign(project, "my/tool")[0]["code"] == "malformed_item"
    trust_key()
    put(project, "tools/my/tool.py", signed(text))
    assert call(project)["code"] == "malformed_item"


@pytest.mark.parametrize(
    ("raw", "suffix"),
    [
        (b"version: 1.0.0\nfiles:\n- a.txt\n- b/c.txt\ncategory: my\n", ".yaml"),
        (b"version: 1.0.0\nfiles: [a.txt, b/c.txt]\ncategory: my\n", ".yaml"),
        (b"version: 1.0.0\nfiles:\n  a.txt: ''\n  b/c.txt: old\ncategory: my\n", ".yaml"),
        (b'{"version": "1.0.0", "files": ["a.txt", "b/c.txt"], "category": "my"}', ".yaml"),
        (b"# ---\n# version: 1.0.0\n# files:\n#   - a.txt\n#   - b/c.txt\n# category: my\n# ---\nfiles: x\n", ".sh"),
        (b"// ---\n// files: [a.txt, b/c.txt]\n// category: my\n// ---\n", ".js"),
        (b"{version: '1.0.0', files: [a.txt, b/c.txt], category: my}", ".yaml"),
        (b'{\t"files":\t["a.txt",\n"b/c.txt"], "category": "my"}\n', ".yaml"),
        (b"category: my\nfiles: # these\n  - a.txt # one\n  - b/c.txt\n# behind\nx: 1", ".yml"),
    ],
)
def test_only_the_list_of_files_is_rewritten(raw, suffix):
    found = tool_files.with_digests(raw, "my/tool", suffix, lambda path: path.encode())
    text = parse.header(found, suffix) if suffix in (".sh", ".js") else found.decode()
    mapping = parse.yaml_mapping(text)
    assert {path: len(digest) for path, digest in mapping["files"].items()} == {"a.txt": 64, "b/c.txt": 64}
    assert mapping["category"] == "my"
    assert tool_files.with_digests(found, "my/tool", suffix, lambda path: path.encode()) == found
    assert suffix != ".sh" or found.endswith(b"# ---\nfiles: x\n")
    with pytest.raises(RyeError):
        tool_files.with_digests(raw, "my/tool", suffix, lambda _path: None)
