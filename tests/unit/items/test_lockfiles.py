"""Lockfiles: the contract's shape, enforced from then on, renewed by one command; a hostile one shows and reaches nothing."""

import errno
import json
import os
import re

import pytest

import rye
from rye.items import lockfiles
from rye.items.spaces import Space
from support.calling import response as call
from support.in_process import rye as shell
from support.signed_tools import put, put_tool, signed

pytestmark = pytest.mark.usefixtures("here")

LOCK = ".ai/lockfiles/my/tool@1.2.3.lock.json"
MARK = "IGNORE-ALL-RULES"


@pytest.fixture
def locked(project):
    put_tool(project, "my/tool")
    assert lock(project)
    return project


def lock(project, item_id="my/tool"):
    return shell("lock", item_id, cwd=project).returncode == 0


def refused(project):
    response = call(project)
    assert (response["code"], response["metadata"]["ran"]) == ("lockfile_mismatch", False), response
    assert all(one in response["error"] for one in ("Lockfile integrity mismatch for my/tool", "rye lock my/tool"))
    assert MARK not in json.dumps(response)
    return response["error"]


def change(project, edit):
    record = json.loads((project / LOCK).read_text())
    edit(record)
    (project / LOCK).write_text(json.dumps(record))


def test_the_shape_is_the_contracts(locked):
    text = (locked / LOCK).read_text()
    record = json.loads(text)
    assert text == json.dumps(record, indent=2) + "\n"
    assert list(record) == ["lockfile_version", "generated_at", "root", "resolved_chain", "registry", "verified_deps"]
    assert (record["lockfile_version"], record["registry"], record["verified_deps"]) == (1, None, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["generated_at"])
    chain = call(locked)["chain"]
    assert record["root"] == {"tool_id": "my/tool", "version": "1.2.3", "integrity": chain[0]["integrity"]}
    assert record["resolved_chain"] == chain
    for link in record["resolved_chain"]:
        assert list(link) == ["item_id", "space", "tool_type", "executor_id", "integrity"]
        assert re.fullmatch("[0-9a-f]{64}", link["integrity"])


def test_a_changed_tool_is_refused_until_the_lock_is_renewed(locked):
    put_tool(locked, "my/tool", 'return {"success": True, "output": "changed"}')
    assert "the tool's digest is" in refused(locked)
    lock(locked)
    assert call(locked)["data"]["output"] == "changed"
    raw = (locked / ".ai/tools/my/tool.py").read_bytes().partition(b"\n")[2].replace(b"1.2.3", b"1.3.0")
    put(locked, "tools/my/tool.py", signed(raw))
    assert "another version than 1.3.0" in refused(locked)
    lock(locked)
    assert call(locked)["status"] == "success"
    assert os.listdir(locked / ".ai/lockfiles/my") == ["tool@1.3.0.lock.json"]


def test_every_field_that_pins_is_held_and_no_other(locked):
    kept = (locked / LOCK).read_bytes()
    for edit in (
        *(lambda r, name=name: r["root"].update({name: MARK}) for name in ("tool_id", "version", "integrity")),
        *(
            lambda r, at=at, name=name: r["resolved_chain"][at].update({name: MARK})
            for at in (0, 1)
            for name in ("item_id", "integrity")
        ),
        lambda r: r["resolved_chain"].pop(),
        lambda r: r["resolved_chain"].append(r["resolved_chain"][0]),
        lambda r: r["resolved_chain"].reverse(),
    ):
        change(locked, edit)
        refused(locked)
        (locked / LOCK).write_bytes(kept)
    change(locked, lambda r: r.update(generated_at="never", registry=MARK, more=1))
    assert call(locked)["status"] == "success"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"null", b"[]", b"\xff", b"1", b"[" * 100_000, b" " * (2 << 20)),
        *(b'{"root": []}', b'{"resolved_chain": [1]}', b'{"resolved_chain": [], "root": null}'),
        f'{{"{MARK}": "{MARK}"}}'.encode(),
        *(os.mkfifo, os.mkdir, lambda path: path.symlink_to(put(path.parent, "secret", b"{}"))),
    ],
    ids=range(15),
)
def test_one_that_cannot_be_read_is_refused_at_once_not_passed_over(locked, content):
    (locked / LOCK).unlink()
    content(locked / LOCK) if callable(content) else (locked / LOCK).write_bytes(content)
    assert "cannot be read" in refused(locked)


def test_a_folder_of_lockfiles_that_leads_outside_is_refused(locked, tmp_path):
    (locked / ".ai/lockfiles").rename(tmp_path / "outside")
    (locked / ".ai/lockfiles").symlink_to(tmp_path / "outside")
    refused(locked)
    assert not lock(locked)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_failing_system_lifts_no_pin(locked, monkeypatch, number):
    def failing(path, *more, **named):
        if str(path).endswith("/.ai"):
            raise OSError(number, os.strerror(number))
        return opened(path, *more, **named)

    space, opened = Space("project", str(locked / ".ai")), os.open
    chain = [{"item_id": "my/tool", "integrity": "0" * 64}]
    with pytest.raises(rye.RyeError, match="Lockfile integrity mismatch"):
        lockfiles.check(space, "my/tool", "1.2.3", chain)
    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(rye.RyeError, match="Items cannot be read now"):
        lockfiles.check(space, "my/tool", "1.2.3", chain)


def test_a_project_pins_a_system_tool_for_itself(project):
    (project / "a.txt").write_text("x\n")
    lock(project, "rye/file-system/read")
    assert rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)["status"] == "success"
    (path,) = (project / ".ai/lockfiles/rye/file-system").iterdir()
    path.write_text(json.dumps({"root": MARK, "resolved_chain": MARK}))
    response = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)
    assert response["code"] == "lockfile_mismatch"
    assert MARK not in json.dumps(response)


def test_the_users_own_lockfile_holds_in_every_project(locked, user_space):
    (user_space / ".ai").mkdir(exist_ok=True)
    (locked / ".ai/lockfiles").rename(user_space / ".ai/lockfiles")
    assert call(locked)["status"] == "success"
    put_tool(locked, "my/tool", 'return {"success": True, "output": "changed"}')
    assert "in the user space" in refused(locked)


def test_writing_one_reaches_nothing_outside_and_no_other_file(project, tmp_path):
    put_tool(project, "my/tool")
    folder, outside, victim = project / ".ai/lockfiles/my", tmp_path / "outside", tmp_path / "victim"
    for theirs in (outside / "tool@9.lock.json", victim, project / "source.py"):
        theirs.parent.mkdir(exist_ok=True)
        theirs.write_text("theirs")
    # A link in the folder's place, in the file's, and in that of any temporary name that could be guessed.
    folder.parent.mkdir()
    folder.symlink_to(outside)
    assert not lock(project)
    folder.unlink()
    folder.mkdir()
    for name in (".tool@1.2.3.lock.json.tmp", "tool@1.2.3.lock.json.tmp"):
        (folder / name).symlink_to(victim)
    assert lock(project)
    for target in (victim, "../../../source.py"):
        (project / LOCK).unlink()
        (project / LOCK).symlink_to(target)
        assert not lock(project)
    # That of another version, which would be removed.
    (project / LOCK).rename(folder / "tool@0.9.0.lock.json")
    assert not lock(project)
    assert [path.read_text() for path in (outside / "tool@9.lock.json", victim, project / "source.py")] == ["theirs"] * 3
    assert os.listdir(outside) == ["tool@9.lock.json"]


def test_rye_lock_pins_what_would_run_and_nothing_that_is_refused(project):
    put_tool(project, "my/tool")
    done = shell("lock", "my/tool", "--project", str(project), cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"Locked my/tool 1.2.3: {project / LOCK}\n"
    printed = json.loads(shell("lock", "my/tool", "--project", str(project), "--json", cwd=project).stdout)
    assert printed.pop("path") == str(project / LOCK)
    assert printed == json.loads((project / LOCK).read_text())
    path = project / ".ai/tools/my/tool.py"
    path.write_bytes(path.read_bytes() + b"#")
    done = shell("lock", "my/tool", "--project", str(project), cwd=project)
    assert (done.returncode, done.stdout) == (3, b"")
