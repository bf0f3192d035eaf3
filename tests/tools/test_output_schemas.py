"""Results of the file tools are as their OUTPUT_SCHEMA says, and it says every field of theirs."""

import jsonschema_rs
import pytest

import rye
from support.calling import done

DOT = bytes.fromhex("89504e470d0a1a0a0000000d494844520000000100000001")
CALLS = {
    "read": [{}, {"limit": 1}, {"changes_since": True}, {"file_path": "dot.png"}],
    "grep": [{"pattern": "x"}, {"pattern": "x", "mode": "count"}, {"pattern": ".", "limit": 1}],
    "glob": [{"pattern": "*"}, {"pattern": "*", "limit": 1}],
    "ls": [{}, {"long": True, "depth": 2}, {"limit": 1}],
    "write": [{"file_path": "new.txt", "content": "a\n"}, {"content": "x\n"}],
    "edit_lines": [
        {"changes": [{"after_line_id": "end", "new_content": "z"}]},
        {"changes": [{"after_line_id": "end", "new_content": "z"}], "dry_run": True},
    ],
    "undo": [{"dry_run": True}, {}, {"list": True}, {"list": True, "limit": 1}],
}


@pytest.mark.parametrize("tool", CALLS)
def test_every_field_of_a_result_is_declared_and_of_its_type(tool, project):
    (offer,) = rye.toolset(project, only=[f"rye/file-system/{tool}"]).offers
    check = jsonschema_rs.Draft202012Validator(offer.output)
    done("write", project, file_path="a.txt", content="x\ny\n")
    done("write", project, file_path="b.txt", content="x\n")
    (project / "dot.png").write_bytes(DOT)
    version = done("read", project, file_path="a.txt")["version"]
    for parameters in CALLS[tool]:
        given = {name: version if value is True and name == "changes_since" else value for name, value in parameters.items()}
        if tool in ("read", "write", "edit_lines"):
            given = {"file_path": "a.txt", **given}
        result = done(tool, project, **given)
        check.validate(result)
        assert set(result) <= set(offer.output["properties"]), set(result) - set(offer.output["properties"])
