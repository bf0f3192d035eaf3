"""edit_lines takes an ID as it was pasted, and byte order marks; what it cannot take it explains."""

from __future__ import annotations

import pytest

from support.calling import call, done, ids, refused


@pytest.mark.parametrize(
    "form", ["{}", "[LID:{}]", "LID:{}", "lid:{}", '"{}"', "'{}'", "`{}`", " {}\n", "[LID:{}] two", "<{}>"]
)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_an_id_is_taken_as_it_was_pasted(project, form, case):
    (project / "f.txt").write_bytes(b"one\ntwo\n")
    line_id = case(ids(project)[1])
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": form.format(line_id), "new_content": "2"}])
    assert (project / "f.txt").read_bytes() == b"one\n2\n"


@pytest.mark.parametrize("end", ["end", '"end"', "END"])
def test_the_end_of_the_file_is_taken_as_it_was_pasted(project, end):
    (project / "f.txt").write_bytes(b"one\n")
    ids(project)
    done("edit_lines", project, file_path="f.txt", changes=[{"after_line_id": end, "new_content": "two"}])
    assert (project / "f.txt").read_bytes() == b"one\ntwo\n"


def test_values_of_another_type_are_explained(project):
    (project / "f.txt").write_bytes(b"one\n")
    error = refused("invalid_parameters", "edit_lines", project, file_path=["f.txt"], changes=[])
    assert "file_path" in error
    assert "write it without quotes: 1" in refused("invalid_parameters", "read", project, file_path="f.txt", offset="1")
    assert "write it without quotes: true" in refused(
        "invalid_parameters", "read", project, file_path="f.txt", show_whitespace="true"
    )


@pytest.mark.parametrize("count", [0, 3, 3_000])
def test_a_byte_order_mark_comes_and_goes_and_lines_keep_their_ids(project, count):
    data = b"".join(b"line %d\n" % number for number in range(count))
    (project / "f.txt").write_bytes(data)
    names = ids(project)
    added = done("edit_lines", project, file_path="f.txt", changes=[], bom="add")
    assert (project / "f.txt").read_bytes() == b"\xef\xbb\xbf" + data
    assert "utf-8 -> utf-8+bom" in added["output"]
    if count:
        assert ids(project) == names
        done("edit_lines", project, file_path="f.txt", changes=[{"line_id": names[1], "new_content": "x"}])
        assert (project / "f.txt").read_bytes() == b"\xef\xbb\xbf" + data.replace(b"line 1\n", b"x\n", 1)
        done("undo", project)
    assert done("undo", project)["undone"] == added["entry_id"]
    assert (project / "f.txt").read_bytes() == data
    done("edit_lines", project, file_path="f.txt", changes=[], bom="add")
    done("edit_lines", project, file_path="f.txt", changes=[], bom="remove")
    assert (project / "f.txt").read_bytes() == data


def test_marks_that_cannot_be_changed(project):
    (project / "f.txt").write_bytes(b"one\n")
    refused("no_change", "edit_lines", project, file_path="f.txt", changes=[], bom="remove")
    (project / "g.txt").write_bytes("\ufeffone\n".encode("utf-16-le"))
    refused("bom_needed", "edit_lines", project, file_path="g.txt", changes=[], bom="remove")
    (project / "h.txt").write_bytes(b"caf\xe9\n")
    refused("bom_needed", "edit_lines", project, file_path="h.txt", changes=[], bom="add", encoding="latin-1")
    change = {"line_id": ids(project)[0], "new_content": "x"}
    refused("bom_alone", "edit_lines", project, file_path="f.txt", changes=[change], bom="add")
    data = call("edit_lines", project, file_path="f.txt", changes=[], bom="add", dry_run=True)
    assert data["success"]
    assert (project / "f.txt").read_bytes() == b"one\n"
