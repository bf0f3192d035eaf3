"""What a tool of another signer may ask of its parent: line IDs, edits and whole files, within bounds (`test_copied_tools`)."""

import re

import rye
from support.signed_tools import put_tool

ASK = """\
from rye.toolkit import view_lines
ask = view_lines.args[0]
return {"success": True, "replies": [ask(one) for one in params["requests"]]}
"""


def replies(project, *requests, permissions=("read", "write")):
    schema = {"type": "object", "properties": {"requests": {"type": "array"}}}
    put_tool(project, "my/asker", ASK, schema, more=f"__permissions__ = {list(permissions)!r}")
    response = rye.execute("my/asker", {"requests": list(requests)}, project_path=project)
    assert response["status"] == "success", response
    return response["data"]["replies"]


VIEW = {"op": "view", "path": "a.txt", "encoding": None, "ids": True}
EDIT = {"op": "edit_lines", "path": "a.txt", "changes": ["1|x"], "version": None}
WRITE = {"op": "replace_file", "path": "a.txt", "content": "x", "encoding": "utf-8", "expected_sha256": None}
MALFORMED = [
    *({}, {"op": ["view"]}, {"op": "view"}, {"op": "document", "name": "printed", "args": [0, 1]}, {**VIEW, "path": 7}),
    *({**EDIT, "changes": [one]} for one in (7, {"line_id": []})),
    *({**EDIT, **odd} for odd in ({"project_path": "/"}, {"line_ids": 3}, {"show": {"ids": True}})),
    *({**WRITE, **odd} for odd in ({"content": None}, {"encoding": 5})),
    # An encoding in which the same bytes would be other text for later reads.
    *({**one, "encoding": "utf-7"} for one in (VIEW, EDIT, WRITE)),
]


def test_malformed_requests_are_refused(project):
    (project / "a.txt").write_text("x +ACM- y\n")
    for request, reply in zip(MALFORMED, replies(project, *MALFORMED), strict=True):
        assert "failure" in reply, request
        assert re.fullmatch(r"[a-z_]+", reply["failure"]["code"]), reply
        assert (reply["failure"]["code"] == "unknown_encoding") == (request.get("encoding") == "utf-7")
    assert (project / "a.txt").read_text() == "x +ACM- y\n"


def test_methods_and_sizes_are_bounded(project):
    (project / "a.txt").write_text("a\n" * 10_000)
    asked = [
        {"op": "document", "name": name, "args": args}
        for name, args in [("store", []), ("confirm", []), ("__class__", []), ("printed", [0, 9_000]), ("texts", [5, 1])]
    ]
    texts = {"op": "document", "name": "texts", "args": [0, 2]}
    found = replies(project, VIEW, *asked, texts, {"op": "close"}, texts)
    assert "value" in found[0]
    assert [reply["failure"]["code"] for reply in found[1:6]] == ["bad_request"] * 5
    assert (found[6], "failure" in found[8]) == ({"value": ["a", "a"]}, True)


def test_changes_of_several_files_are_refused_before_any_is_made_where_one_is_meant(project):
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("one\n")
    body = 'edit_lines(project_path, "a.txt", ["1|x", "b.txt:1|y"])'
    put_tool(project, "my/tool", body, head="from rye.toolkit import edit_lines", more='__permissions__ = ["read", "write"]')
    assert rye.execute("my/tool", {}, project_path=project)["code"] == "one_file"
    assert [(project / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "one\n"]


def test_no_path_leads_outside_or_to_what_no_tool_may_write(project, tmp_path):
    (tmp_path / "outside.txt").write_text("outside\n")
    (project / "link").symlink_to(tmp_path / "outside.txt")
    (project / ".ai/config").mkdir(parents=True)
    paths = ["../outside.txt", "link", str(tmp_path / "outside.txt"), ".git/config", ".ai/trusted_keys/x.toml", ".ai/keys/k"]
    found = replies(project, *({**WRITE, "path": path} for path in paths), *({**VIEW, "path": path} for path in paths[:3]))
    assert all("failure" in reply for reply in found)
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
