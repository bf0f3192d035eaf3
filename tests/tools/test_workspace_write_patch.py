"""The patch protocol, rule by rule: each row and each test is named after the section of the protocol that it holds."""

import json
import subprocess
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.patches import patch_calls
from support.calling import call, ids
from support.workspace_calls import UUID7, apply, delete, done, get, insert, patch, read, refused, replace, sha, write

APP, BYTES = "src/App.cs", b"one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "MyRepo"
    (folder / "src").mkdir(parents=True)
    (folder / APP).write_bytes(BYTES)
    (folder / "tests.cs").write_bytes(b"a\r\nb\r\nc")
    return folder


def app(project):
    return (project / APP).read_bytes()


def without(change, name):
    return {key: value for key, value in change.items() if key != name}


def ranged(start, end):
    return {**replace(1, ["x"] * max(end - start + 1, 0), "2"), "startLine": start, "endLine": end}


# Section, changes of src/App.cs, what else its file patch says (`...`: nothing), and the codes of the refusal.
X = insert(0, "x")
REFUSED = [
    ("2.1", [X], {"originalSha256": sha(BYTES.replace(b"five", b"FIVE"))}, "wrong_digest"),
    ("2.2", [replace(3, ["two"], "TWO")], {}, "expected_lines_differ"),
    ("2.2", [X], {"docPath": "logo.png"}, "binary_file"),
    *[("3", [X], {"docPath": at}, "malformed_doc_path") for at in (APP, "/etc/passwd", "../x", "src//app.cs", "./src/app.cs")],
    ("3", [X], {"docPath": "a\0b"}, "malformed_doc_path"),
    *[("4.2", [X], {"docPath": at}, "missing_field") for at in ("", ...)],
    ("4.2", [X], {"originalSha256": ...}, "missing_field"),
    *[("4.2", [X], {"originalSha256": "a" * size}, "malformed_digest") for size in (0, 3, 63, 65)],
    *[("4.2", [X], {"originalSha256": text + "a" * 64}, "malformed_digest") for text in ("g", "sha256:")],
    ("4.2", [], {}, "no_changes"),
    *[("5.1", [{**X, "operation": name}], {}, "unknown_operation") for name in ("move", "", "Insert", "append")],
    ("5.1", [without(X, "operation")], {}, "unknown_operation"),
    *[("5.1", [insert(0, line)], {}, "newline_in_line") for line in ("a\nb", "a\n", "\n", "a\r\n", "a\r")],
    *[("5.1", [replace(1, ["one"], line)], {}, "newline_in_line") for line in ("a\nb", "a\r")],
    *[("5.2", [without(X, name)], {}, "missing_field") for name in ("afterLine", "newLines")],
    ("5.2", [insert(0)], {}, "no_lines"),
    ("5.2", [{**X, "startLine": 1}], {}, "unexpected_field"),
    *[("5.2", [insert(after, "x")], {}, "bad_range") for after in (-1, 6, 1000)],
    *[
        ("5.3", [without(replace(1, ["one"], "1"), name)], {}, "missing_field")
        for name in ("startLine", "endLine", "expectedOriginalLines", "newLines")
    ],
    *[("5.3", [replace(2, [line], "2")], {}, "expected_lines_differ") for line in ("two ", " two", "Two", "two\r", "")],
    ("5.3", [{**replace(2, ["two"], "2"), "endLine": 3}], {}, "expected_lines_differ"),
    *[("5.3", [ranged(*ends)], {}, "bad_range") for ends in ((0, 0), (3, 2), (-1, 1), (5, 6), (100, 100))],
    *[("5.4", [{**delete(1, "one"), "newLines": lines}], {}, "unexpected_field") for lines in (["x"], [])],
    ("6", [replace(4, ["four"], "4"), insert(1, "x")], {}, "unordered_changes"),
    ("6", [delete(2, "two", "three"), replace(3, ["three"], "3")], {}, "overlapping_changes"),
    ("6", [replace(2, ["two", "three"], "a"), insert(2, "b")], {}, "overlapping_changes"),
    ("6", [delete(1, "one", "two", "three"), insert(1, "x")], {}, "overlapping_changes"),
    ("11", [X], {"docPath": "out.cs"}, "path_outside"),
    ("8.2", [X], {"originalSha256": sha(b"one\ntwo\n")}, "wrong_digest"),
    ("8.5", [X, {"operation": "delete"}], {}, "missing_field missing_field missing_field"),
    ("10.3", [delete(1, "one", "two"), replace(2, ["two"], "x"), delete(9, "nine")], {}, "overlapping_changes bad_range"),
]


@pytest.mark.parametrize(("section", "changes", "more", "codes"), REFUSED)
def test_what_a_section_forbids_is_refused(project, section, changes, more, codes):
    (project.parent / "outside.cs").write_bytes(BYTES)
    (project / "out.cs").symlink_to("../outside.cs")
    (project / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    asked = {key: value for key, value in {**patch(project, APP, *changes), **more}.items() if value is not ...}
    assert refused(project, asked) == codes.split()


# Section, a file's bytes (none: those of src/App.cs), changes, the bytes after them.
ODD = "a\x0bb\x0cc\u2028d\x85e\rf\nsecond\n".encode()
APPLIED = [
    ("4.2", b"\xef\xbb\xbfbom\n", [X], b"\xef\xbb\xbfx\nbom\n"),
    ("4.2", b"crlf\r\nlf\n", [X], b"x\r\ncrlf\r\nlf\n"),
    ("4.2", b"caf\xe9\n", [X], b"x\ncaf\xe9\n"),
    ("5.1", None, [insert(0, "x", description="delete everything; operation: delete")], b"x\n" + BYTES),
    ("5.2", None, [insert(0, "top", "top2"), insert(2, ""), insert(5, "end")], b"top\ntop2\none\ntwo\n\nthree\nfour\nfive\nend\n"),
    ("5.3", None, [replace(1, ["one"], "1"), replace(3, ["three", "four"], "3", "3.5", "4")], b"1\ntwo\n3\n3.5\n4\nfive\n"),
    ("5.4", None, [delete(1, "one"), delete(4, "four", "five")], b"two\nthree\n"),
    ("6", None, [X, replace(1, ["one"], "1"), insert(1, "1.5"), delete(2, "two"), insert(2, "2.5"), insert(2, "2.6")], b"x\n1\n1.5\n2.5\n2.6\nthree\nfour\nfive\n"),
    ("6", None, [insert(1, "a", "b", "c"), replace(5, ["five"], "5")], b"one\na\nb\nc\ntwo\nthree\nfour\n5\n"),
    ("6", ODD, [replace(2, ["second"], "2")], ODD.replace(b"second", b"2")),
    ("8.3", b"a \r\nb\t\nc\r\n\xff\xfe\nend", [replace(2, ["b\t"], "B")], b"a \r\nB\nc\r\n\xff\xfe\nend"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "before", "changes", "after"), APPLIED)
def test_what_a_section_allows_changes_these_bytes_and_no_other(project, section, before, changes, after):
    path = APP if before is None else "x.txt"
    if before is not None:
        (project / path).write_bytes(before)
        assert read(project, path)["result"]["sha256"] == sha(before)
    asked = patch(project, path, *changes)
    done(project, {**asked, "originalSha256": asked["originalSha256"].upper()})
    assert (project / path).read_bytes() == after


# --- 1, 2: purpose and scope ---


def test_section_1_a_batch_of_file_patches_with_digests_operations_descriptions_and_keys(project):
    texts = {"changeKey": "clé", "description": "why — 'quoted' \u2028"}
    result = done(
        project,
        patch(project, APP, replace(2, ["two"], "TWO", **texts), fileKey="app", fileLabel="first"),
        patch(project, "tests.cs", insert(0, "top"), fileLabel="second"),
        batchKey="b",
        batchLabel="label",
    )
    assert app(project) == b"one\nTWO\nthree\nfour\nfive\n"
    assert (project / "tests.cs").read_bytes() == b"top\r\na\r\nb\r\nc"
    assert (result["status"], result["fileCount"], result["changeCount"]) == ("applied", 2, 2)
    assert (result["batchKey"], result["batchLabel"]) == ("b", "label")
    assert [one["newSha256"] for one in result["files"]] == [sha(app(project)), sha(b"top\r\na\r\nb\r\nc")]
    assert [(one["docPath"], one["fileLabel"]) for one in result["files"]] == [("src/app.cs", "first"), ("tests.cs", "second")]
    (change,) = result["files"][0]["changes"]
    # Section 10.6: descriptive metadata is round-tripped.
    assert {key: change[key] for key in texts} == texts


# --- 3: file identity ---


def test_section_4_1_files_holds_one_or_more_patches_and_each_file_once(project):
    assert refused(project) == refused(project, batchKey="b") == ["no_files"]
    (project / "link.cs").symlink_to(APP)
    one, other, link = patch(project, APP, X), patch(project, APP, insert(3, "x")), patch(project, "link.cs", insert(3, "y"))
    for second in (other, {**other, "docPath": "myrepo/src/app.cs"}, link):
        assert refused(project, one, second) == ["duplicate_doc_path"]


@pytest.mark.parametrize("doc_path", ["src/app.cs", "myrepo/src/app.cs"])
def test_section_3_a_doc_path_is_lower_case_and_names_one_file(project, doc_path):
    result = done(project, {**patch(project, APP, X), "docPath": doc_path})
    (one,) = result["files"]
    assert (one["path"], one["docPath"], one["source"]) == (APP, doc_path, "disk")
    assert app(project).startswith(b"x\none")
    assert not {"batchKey", "batchLabel"} & result.keys()


def test_section_3_a_doc_path_that_fits_two_files_is_refused_naming_both(project):
    (project / "src/APP.cs").write_bytes(b"other\n")
    answer = write(project, files=[patch(project, APP, X)])
    assert [one["code"] for one in answer["errors"]] == ["ambiguous_doc_path"]
    assert "src/APP.cs, src/App.cs" in answer["error"]
    # Of files that differ in case only neither has a docPath.
    (project / "TESTS.cs").write_bytes(b"x\n")
    answer = read(project, "tests.cs")
    assert answer["code"] == "ambiguous_doc_path"
    assert ("Lead it" in answer["error"], "use edit_lines" in answer["error"]) == (False, True)


def test_section_3_the_project_folders_name_may_be_a_folder_in_it_too(project):
    (project / "myrepo").mkdir()
    (project / "myrepo/tests.cs").write_bytes(b"inner\n")
    asked = patch(project, "tests.cs", X)
    assert refused(project, {**asked, "docPath": "myrepo/tests.cs"}) == ["ambiguous_doc_path"]
    done(project, {**asked, "docPath": "tests.cs"})
    done(project, {**patch(project, "myrepo/tests.cs", insert(0, "y")), "docPath": "myrepo/myrepo/tests.cs"})
    assert (project / "myrepo/tests.cs").read_bytes() == b"y\ninner\n"


@pytest.mark.parametrize("name", ["Größe.TXT", "ÄÖ\u0130.c", "a\u2028B", "x\\X", "tab\tX", "\udcffCaf\udce9"])
def test_section_3_any_name_has_a_doc_path(project, name):
    (project / name).write_bytes(b"one\n")
    (path,) = {line.strip() for line in call("ls", project)["output"].split("\n")} - {"src/", "tests.cs"}
    assert read(project, path.lower())["result"]["path"] == path


def test_section_3_what_a_doc_path_that_leads_to_no_file_tells(project, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_bytes(b"")
    (project / "way").symlink_to("../secret")
    (project / "SRC").symlink_to("src")
    # Two links to one file are one file.
    assert read(project, "src/app.cs")["success"]
    tells = {"src/ap.cs": "ap.cs. Did you mean src/", "src": "is no file. A docPath", "way/file": "", "way/fiel": ""}
    for path, said in tells.items():
        answer = read(project, path)
        assert (answer["code"], said in answer["error"], "secret" in answer["error"]) == ("file_not_found", True, False), path


def test_section_3_deep_trees_and_links_beside_folders_of_their_name(project):
    """Way by way the links would lead through 2**60 folders; and a tree may be deeper than the recursion limit."""
    folder = project
    for _ in range(60):
        (folder / "deep").mkdir()
        (folder / "DEEP").symlink_to("deep")
        folder = folder / "deep"
    (folder / "f").write_bytes(b"")
    assert read(project, "deep/" * 60 + "f")["success"]
    assert read(project, "deep/" * 60 + "g")["code"] == "file_not_found"
    deep = "d/" * 1_200
    subprocess.run(["mkdir", "-p", deep], cwd=project, check=True)
    (project / f"{deep}f").write_text("x\n")
    assert read(project, f"{deep}f")["result"]["path"] == f"{deep}f"
    subprocess.run(["rm", "-rf", project / "d"], check=True)


ACTIVE = [{"docPath": "myrepo/src/app.cs", "content": "one\nEDITED\nthree\n"}]
EDITED = {
    "docPath": "src/app.cs",
    "originalSha256": sha(ACTIVE[0]["content"].encode()),
    "changes": [replace(2, ["EDITED"], "two!")],
}


def test_section_3_an_active_file_wins_over_the_disk(project):
    assert refused(project, EDITED) == ["wrong_digest", "expected_lines_differ"]
    answer = write(project, files=[EDITED], activeFiles=ACTIVE)
    assert answer["result"]["files"][0]["source"] == "active"
    assert "differs from the active content" in answer["warnings"][0]
    assert app(project) == b"one\ntwo!\nthree\n"
    call("undo", project)
    assert app(project) == BYTES


@pytest.mark.parametrize("saved", [False, True])
def test_section_3_active_files_outlive_the_call_that_stores_a_batch(project, saved):
    stored = write(project, files=[EDITED], activeFiles=ACTIVE, apply=False)["result"]["batchId"]
    if saved:
        (project / APP).write_bytes(b"one\nSAVED\n")
        # What somebody saved since is not overwritten by what an editor held then.
        assert [one["code"] for one in apply(project, stored)["errors"]] == ["wrong_digest", "expected_lines_differ"]
        assert app(project) == b"one\nSAVED\n"
        assert apply(project, stored, activeFiles=ACTIVE)["success"]
    else:
        assert apply(project, stored)["result"]["files"][0]["source"] == "active"
    assert app(project) == b"one\ntwo!\nthree\n"


def test_section_3_an_active_file_is_written_in_the_encoding_that_the_disk_has(project):
    (project / "u.txt").write_bytes(b"\xff\xfe" + "a\r\nb\r\n".encode("utf-16-le"))
    active = "a\r\nb\r\nc\r\n"
    asked = {"docPath": "u.txt", "originalSha256": sha(active.encode()), "changes": [insert(3, "é")]}
    done(project, asked, activeFiles=[{"docPath": "u.txt", "content": active}])
    assert (project / "u.txt").read_bytes() == b"\xff\xfe" + "a\r\nb\r\nc\r\né\r\n".encode("utf-16-le")


# --- 7: IDs and keys ---


@pytest.mark.parametrize("more", [{}, {"apply": False}, {"dryRun": True}])
def test_sections_5_1_7_1_10_5_ids_are_assigned_and_those_of_a_request_are_ignored(project, more):
    files = [patch(project, APP, insert(0, "x", changeId="c"), insert(1, "y"), filePatchId="f"), patch(project, "tests.cs", X)]
    answer = write(project, files=files, batchId="b", **more)
    result = answer["result"]
    assert [warning.split()[0] for warning in answer["warnings"]] == ["batchId", "filePatchId", "changeId"]
    names = [result["batchId"]]
    for one in result["files"]:
        names += [one["filePatchId"], *(change["changeId"] for change in one["changes"])]
    assert len(set(names)) == len(names) == 6
    assert all(map(UUID7.fullmatch, names))
    if "dryRun" not in more:
        assert {get(project, name)["result"]["batchId"] for name in names} == {result["batchId"]}


# --- 9: errors and the log ---


WRONG = {"docPath": 5, "surplus": 1}
NAMES_OF_NOTHING = ["", "x", "../../etc/passwd", "01a1fd27-5f52-7c74-84bd-47608b40cf20"]
PLACES = [{"docPath": 5, "changes": [{"operation": "insert", "newLines": [None]}]}, {"docPath": "a", "originalSha256": []}]


@pytest.mark.parametrize(
    ("tool", "request_", "code", "said"),
    [
        *[(tool, WRONG, "invalid_parameters", "surplus") for tool in ("write_patch", "read_file", "apply_patch")],
        ("get_patch_change", WRONG, "invalid_parameters", "surplus"),
        ("write_patch", {"files": "none"}, "invalid_parameters", "files"),
        *[
            ("write_patch", {"files": PLACES}, "invalid_parameters", place)
            for place in ("files[0].docPath", "files[0].changes[0].newLines[0]", "files[1].originalSha256")
        ],
        *[("apply_patch", {"batchId": name}, "unknown_batch", "") for name in NAMES_OF_NOTHING],
        *[("get_patch_change", {"id": name}, "unknown_patch_id", "") for name in NAMES_OF_NOTHING],
        ("write_patch", {"createFiles": [{"path": "../x", "content": "x"}]}, "path_outside", "../x"),
        ("write_patch", {"createFiles": [{"path": ".git/config", "content": "x"}]}, "invalid_batch", ".git/config"),
        ("write_patch", {"files": [], "createFiles": [{"path": "", "content": "x"}]}, "bad_path", "empty"),
    ],
)
def test_section_9_every_refusal_has_the_envelope_and_names_the_place(project, tool, request_, code, said):
    item = f"rye/workspace/{tool}" if tool.startswith("get") else f"rye/workspace/workspace_{tool}"
    answer = rye.execute(item, request_, project_path=project)
    data = answer["data"]
    assert (answer["status"], answer["code"]) == ("error", code), data
    assert (data["success"], data["successful"], data["result"], data["warnings"]) == (False, False, None, [])
    assert all({"code", "message"} <= set(one) for one in data["errors"])
    assert any(said in one["message"] for one in data["errors"]), data


def test_section_9_all_problems_of_a_batch_are_told_at_once(project):
    files = [
        {**patch(project, APP, insert(9, "x"), insert(0, "a\nb")), "originalSha256": "0" * 64},
        {"docPath": "missing.cs", "originalSha256": "x", "changes": []},
        patch(project, "tests.cs", {**delete(1, "A"), "newLines": []}, replace(2, ["B"], "b2")),
    ]
    answer = write(project, files=files)
    codes = "bad_range expected_lines_differ file_not_found malformed_digest newline_in_line no_changes unexpected_field"
    assert sorted(one["code"] for one in answer["errors"]) == [*codes.split(), "wrong_digest"]
    assert {one["docPath"] for one in answer["errors"]} == {"src/app.cs", "missing.cs", "tests.cs"}
    (past,) = [(one["change"], one["message"]) for one in answer["errors"] if one["code"] == "bad_range"]
    assert (past[0], "afterLine 9 is past the end" in past[1]) == (1, True)
    assert (answer["code"], "Nothing was written" in answer["error"]) == ("invalid_batch", True)
    wrong = [{**delete(2, "B"), "endLine": 1}, {**replace(1, ["A"], "x"), "newLines": []}]
    error = write(project, files=[patch(project, APP, delete(2, "too")), patch(project, "tests.cs", *wrong)])["error"]
    told = ("\n-2: too", "\n+2: two", "lines 2 to 1 are no range", "one or more lines. Use delete")
    assert [text for text in told if text not in error] == [], error


@pytest.mark.parametrize(
    ("found", "expected", "said"),
    [("\tx ", ["    x"], ["-1:     x\n+1: →\tx·"]), ("x\n" * 49 + "x", ["y"] * 50, ["-1: y\n+1: x\n", "…"])],
)
def test_section_9_lines_that_differ_are_shown_with_their_white_space_and_many_are_cut(project, found, expected, said):
    (project / "f.txt").write_text(f"{found}\n")
    message = write(project, files=[patch(project, "f.txt", delete(1, *expected))])["errors"][0]["message"]
    assert all(text in message for text in said)
    assert len(message) < 500


def test_section_9_an_unexpected_failure_is_answered_in_general(project, monkeypatch):
    monkeypatch.setattr(patch_calls, "run_batch", lambda *_, **__: 1 / 0)
    request = {"files": [patch(project, APP, insert(0, "secret line"))]}
    answer = rye.execute("rye/workspace/workspace_write_patch", request, project_path=project)["data"]
    assert (answer["code"], answer["successful"], answer["result"], answer["warnings"]) == ("tool_crashed", False, None, [])
    assert answer["errors"] == [{"code": "tool_crashed", "message": answer["error"]}]
    assert "division by zero" not in json.dumps(answer)
    assert "ZeroDivisionError: division by zero" in Path(answer["log"]).read_text()


def test_the_text_of_an_answer_names_every_id_key_and_digest(project):
    words = {"description": "why, in words", "severity": "low", "category": "style", "tags": ["a", "b c"]}
    change = {**insert(0, "new"), "changeKey": "first-change", **words}
    one = {**patch(project, APP, change), "fileKey": "the-app", "fileLabel": "The app"}
    # Section 7.2: keys are echoed and nothing rests on them.
    other = {**patch(project, "tests.cs", insert(0, "x", changeKey="k"), insert(1, "y", changeKey="k")), "fileKey": "the-app"}
    answer = write(project, files=[one, other], batchKey="the-batch", batchLabel="All of it")
    assert (len(answer["warnings"]), get(project, "the-app")["errors"][0]["code"]) == (2, "unknown_patch_id")
    file, _ = answer["result"]["files"]
    for named in (
        answer["result"]["batchId"],
        f"filePatchId={file['filePatchId']}",
        "fileKey=the-app",
        f"newSha256={file['newSha256']}",
        f"entryId={file['entryId']}",
        f"changeId={file['changes'][0]['changeId']}",
        "changeKey=first-change",
        'fileLabel="The app"',
        'batchKey=the-batch batchLabel="All of it"',
        'description="why, in words" severity=low category=style tags=["a", "b c"]',
    ):
        assert named in answer["output"], named
    stored = get(project, file["changes"][0]["changeId"])["result"]["change"]
    assert {name: stored[name] for name in words} == words
    # The next patch of the file needs no read.
    more = {"docPath": "src/app.cs", "originalSha256": file["newSha256"], "changes": [insert(0, "newer")]}
    assert write(project, files=[more])["successful"]


def test_section_11_as_many_files_as_a_batch_may_have_and_ids_that_do_not_fit_are_said_to_be_left_out(project):
    files = [{"path": f"d{number % 7}/{number}" + "x" * 200, "content": "1\n"} for number in range(200)]
    answer = write(project, createFiles=files)
    assert answer["result"]["fileCount"] == len([*project.glob("d*/*")]) == 200
    assert "not all IDs are listed" in answer["output"]
    assert len(answer["output"].encode()) <= 51_200


def test_of_many_problems_some_are_named_and_the_rest_counted(project):
    gone = [{"docPath": f"none/{number}", "originalSha256": "0" * 64} for number in range(45)]
    all_of_them, first = (write(project, deleteFiles=gone[:count])["error"] for count in (45, 40))
    assert ("has 45 problem(s)" in all_of_them, "none/39: " in all_of_them, "none/40: " in all_of_them) == (True, True, False)
    assert ("\n- and 5 more\n" in all_of_them, "- and " in first) == (True, False)


def test_section_9_start_success_and_error_are_events(project, user_space):
    (user_space / ".ai/config").mkdir(parents=True)
    (user_space / ".ai/config/rye.yaml").write_text("log: {events: true}\n")
    result = done(project, patch(project, APP, insert(0, "secret line")))
    refused(project, patch(project, APP, insert(99, "secret line")))
    text = (Path(user_dirs.state_dir(str(project))) / "log/events.jsonl").read_text()
    start, success, _, error = map(json.loads, text.splitlines())
    assert [row["event"] for row in (start, success, error)] == ["start", "success", "error"]
    assert (success["batchId"], success["fileCount"], success["changeCount"]) == (result["batchId"], 1, 1)
    assert (error["code"], error["problems"]) == (
        "invalid_batch",
        [{"code": "bad_range", "docPath": "src/app.cs", "change": 1}],
    )
    assert "secret" not in text


# --- 11: extensions ---


def test_section_11_a_dry_run_shows_the_diffs_and_writes_and_stores_nothing(project):
    answer = write(project, files=[patch(project, APP, replace(1, ["one"], "1"))], dryRun=True)
    assert ("-one\n+1" in answer["output"], "-one\n+1" in answer["result"]["files"][0]["diff"]) == (True, True)
    assert (app(project), get(project, answer["result"]["batchId"])["code"]) == (BYTES, "unknown_patch_id")


def test_section_11_files_are_created_and_deleted_with_the_rest(project):
    (project / APP).chmod(0o640)
    gone = {"docPath": "src/app.cs", "originalSha256": sha(app(project)), "fileKey": "g"}
    made = {"path": "New/Folder/File.txt", "content": "x\ny", "fileKey": "n"}
    old = app(project)
    result = done(project, patch(project, "tests.cs", insert(0, "z")), createFiles=[made], deleteFiles=[gone])
    assert [one["operation"] for one in result["files"]] == ["patch", "create", "delete"]
    assert (project / "New/Folder/File.txt").read_bytes() == b"x\ny"
    assert not (project / APP).exists()
    call("undo", project, batchId=result["batchId"])
    assert (app(project), (project / APP).stat().st_mode & 0o777) == (old, 0o640)
    assert not (project / "New/Folder/File.txt").exists()


def test_section_11_creation_and_deletion_are_verified_like_the_rest(project):
    gone = {"docPath": "src/app.cs", "originalSha256": "0" * 64}
    assert refused(project, createFiles=[{"path": APP, "content": ""}]) == ["file_exists"]
    assert refused(project, deleteFiles=[gone]) == ["wrong_digest"]
    assert refused(project, createFiles=[{"path": "x"}], deleteFiles=[{"docPath": "tests.cs"}]) == ["missing_field"] * 2
    assert refused(project, createFiles=[{"path": ".git/hooks/x", "content": ""}]) == ["protected_path"]
    # A refused batch leaves no folder behind.
    assert refused(project, createFiles=[{"path": "new/f", "content": "x"}], deleteFiles=[gone]) == ["wrong_digest"]
    assert not (project / "new").exists()


def test_section_11_lines_keep_their_ids_through_a_batch(project):
    names = ids(project, APP)
    done(project, patch(project, APP, insert(1, "x"), delete(3, "three")), patch(project, "tests.cs", insert(0, "y")))
    after = ids(project, APP)
    assert [after[0], after[2], after[3], after[4]] == [names[0], names[1], names[3], names[4]]
    call("undo", project)
    assert ids(project, APP) == names


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"createFiles": [{"path": "nn", "content": "x"}, {"path": "nn/y", "content": "x"}]}, "not_a_directory"),
        ({"createFiles": [{"path": "Tests.cs", "content": "x"}]}, "duplicate_doc_path"),
        ({"activeFiles": [{"docPath": "tests.cs", "content": one} for one in "ab"]}, "duplicate_doc_path"),
        ({"activeFiles": [{"docPath": "../tests.cs", "content": "a"}]}, "malformed_doc_path"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_section_11_what_cannot_be_applied_is_refused_by_its_dry_run_too(project, request_, code, dry):
    assert refused(project, patch(project, APP, X), **request_, dryRun=dry) == [code]


def test_section_5_3_a_long_line_is_expected_whole_or_as_it_was_shown(project):
    long = "w" * 5_000
    (project / "w.txt").write_bytes(f"{long}\nb\n".encode())
    (shown, _) = [row.partition(": ")[2] for row in read(project, "w.txt")["output"].split("\n")[1:3]]
    assert len(shown) < len(long)
    answer = write(project, files=[patch(project, "w.txt", replace(1, ["w" * 2_100 + "x"], "new"))])
    assert "-1 (from character 2061): " + "w" * 40 + "x\n+1 (from character 2061): " + "w" * 41 in answer["error"]
    assert refused(project, patch(project, "w.txt", replace(1, [shown], "v" + shown))) == ["shortened_line"]
    done(project, patch(project, "w.txt", replace(1, [shown], "new")))
    assert (project / "w.txt").read_bytes() == b"new\nb\n"


def test_section_3_the_encoding_of_a_file_is_given_with_its_patch(project):
    (project / "lat.txt").write_bytes(b"\351\nb\n")
    assert "1: \u00e9" in read(project, "lat.txt", encoding="latin-1")["output"]
    assert refused(project, patch(project, "lat.txt", insert(1, "\u00fc"))) == ["unencodable"]
    done(project, patch(project, "lat.txt", replace(1, ["\u00e9"], "\u00fc"), encoding="latin-1"))
    assert (project / "lat.txt").read_bytes() == b"\374\nb\n"


def test_section_11_a_patch_that_changes_nothing_is_said_and_not_written(project):
    before = (project / APP).stat()
    answer = write(project, files=[patch(project, APP, replace(1, ["one"], "one"))])
    assert answer["success"]
    assert "leave src/app.cs as it is" in answer["warnings"][0]
    assert (answer["result"]["status"], get(project, answer["result"]["batchId"])["result"]["status"]) == ("unchanged",) * 2
    assert (project / APP).stat().st_mtime_ns == before.st_mtime_ns


def test_section_4_models_are_offered_what_is_required(project):
    (schema,) = rye.toolset(project, only=["workspace_write_patch"]).schemas("mcp")
    properties = schema["inputSchema"]["properties"]
    file, made = properties["files"]["items"], properties["createFiles"]["items"]
    change = file["properties"]["changes"]["items"]
    assert set(file["required"]) >= {"docPath", "originalSha256", "changes"}
    assert set(made["required"]) >= {"path", "content"}
    assert change["properties"]["operation"]["enum"] == ["insert", "replace", "delete"]
    assert "operation" in change["required"]
    # A call without them is still answered with all that is wrong, in the protocol's words.
    assert set(refused(project, {"changes": [{"operation": "move"}]})) >= {"missing_field", "unknown_operation"}
