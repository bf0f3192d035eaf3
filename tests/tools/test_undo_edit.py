"""undo_edit: everything can be undone, and redone, within the profile."""

from __future__ import annotations

import hashlib

from support.calling import call, done, refused

UNDO = "rye/swe/undo_edit"


def test_edits_are_taken_back_in_turn_and_redone(project):
    (project / "f").write_bytes(b"a\r\nb\n")
    done("rye/swe/edit_range", project, path="f", start_line=1, end_line=1, new_text="x")
    done("rye/swe/insert_at", project, path="f", line=1, new_text="y")
    done("rye/swe/edit_file", project, path="f", old="b", new="z")
    assert (project / "f").read_bytes() == b"y\r\nx\r\nz\n"
    first = done(UNDO, project)
    assert first["output"].startswith("✓ Undone f\n--- a/f\n+++ b/f\n")
    assert (project / "f").read_bytes() == b"y\r\nx\r\nb\n"
    done(UNDO, project)
    done(UNDO, project)
    assert (project / "f").read_bytes() == b"a\r\nb\n"
    refused("nothing_to_undo", UNDO, project)
    done(UNDO, project, entry_id=first["entry_id"], dry_run=True)
    listed = done(UNDO, project, list=True)
    assert [entry["tool"].rpartition("/")[2] for entry in listed["entries"]][-3:] == ["edit_file", "insert_at", "edit_range"]


def test_a_dry_run_and_safe_read_only_write_nothing(project, monkeypatch):
    (project / "f").write_bytes(b"a\n")
    done("rye/swe/edit_range", project, path="f", start_line=1, end_line=1, new_text="x")
    assert done(UNDO, project, dry_run=True)["applied"] is False
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    data = call(UNDO, project)
    assert (data["code"], data["output"].startswith("--- a/f")) == ("read_only_profile", True)
    assert (data["applied"], (project / "f").read_bytes()) == (False, b"x\n")
    assert done(UNDO, project, list=True)["count"] == 1


def test_a_batch_of_several_files_is_taken_back_as_one(project):
    lines = [{"operation": "replace", "startLine": 1, "endLine": 1, "expectedOriginalLines": ["a"], "newLines": ["b"]}]
    digest = hashlib.sha256(b"a\n").hexdigest()
    for name in "fg":
        (project / name).write_bytes(b"a\n")
    files = [{"docPath": name, "originalSha256": digest, "changes": lines} for name in "fg"]
    done("rye/workspace/workspace_write_patch", project, files=files)
    assert (project / "f").read_bytes() + (project / "g").read_bytes() == b"b\nb\n"
    assert done(UNDO, project)["output"].startswith("✓ Undone f, g\n")
    assert (project / "f").read_bytes() + (project / "g").read_bytes() == b"a\na\n"
