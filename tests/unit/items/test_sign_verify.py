"""Verdicts on files as they stand, signing in place, and the user's own key."""

import os
import re
import stat

import pytest

import rye
from rye.errors import RyeError, UsageError
from rye.items import parse, spaces
from rye.trust import signature
from support.in_process import rye as shell
from support.signed_tools import MINE, STRANGER, bring_key, key_document, signed, tool_text


def tool(category="my", item_id="my/greet", extra=""):
    return tool_text(item_id, category=category, more=extra)


ENTRY = b"```yaml\nid: k\ntitle: T\ncategory: my\nversion: '1.0.0'\n```\n\n# Entry\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    home, root = tmp_path / "home", tmp_path / "project"
    put(home, ".ai/keys/private_key.pem", MINE.pem)
    put(home, ".ai/keys/public_key.pem", MINE.public.pem)
    bring_key(home, MINE, "me")
    (root / ".ai").mkdir(parents=True)
    monkeypatch.setenv("USER_SPACE", str(home))
    monkeypatch.delenv("RYE_SIGNING_KEY", raising=False)
    monkeypatch.chdir(root)
    return root


def put(root, path, raw, key=None):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(raw if key is None else signed(raw, key))
    return target


def verdict(path, **options):
    (row,) = rye.verify([path], **options)
    return row


def outcome(path, **options):
    (row,) = rye.sign([path], **options)
    return row


def test_a_key_that_is_named_has_authority_over_the_reserved_ids_of_the_files(project, tmp_path):
    """As for the files of another bundle of RYE: its own key decides, for this call and for nothing else."""
    document = put(tmp_path, "their.toml", key_document(STRANGER, "their bundle"))
    put(project, ".ai/tools/rye/my/greet.py", tool(category="rye/my", item_id="rye/my/greet"), STRANGER)
    put(project, ".ai/tools/my/greet.py", tool(item_id="my/greet"), STRANGER)

    def verdicts(**options):
        return [row["verdict"] for row in rye.verify([".ai/tools"], **options)]

    assert verdicts() == ["untrusted_key", "untrusted_key"]
    assert verdicts(trust=[document]) == ["valid", "valid"]
    # Also where the user trusts it already, for ids of its own.
    bring_key(project.parent / "home", STRANGER)
    assert sorted(verdicts()) == ["reserved_id", "valid"]
    assert verdicts(trust=[document]) == ["valid", "valid"]
    # It changes nothing for calls, nor for files that another key signed, or nobody.
    assert rye.execute("rye/my/greet", {}, project_path=project)["code"] == "reserved_id"
    put(project, ".ai/tools/rye/my/greet.py", tool(category="rye/my", item_id="rye/my/greet"), MINE)
    assert sorted(verdicts(trust=[document])) == ["reserved_id", "valid"]
    row = verdict(".ai/tools/rye/my/greet.py")
    assert (row["owner"], "--trust" in row["hint"]) == ("me", True)
    assert outcome(".ai/tools/rye/my/greet.py")["code"] == "reserved_id"
    with pytest.raises(RyeError, match="reserved"):
        rye.sign(["rye/my/greet"])
    (project / ".ai/tools/my/greet.py").write_bytes((project / ".ai/tools/my/greet.py").read_bytes() + b"#")
    assert sorted(verdicts(trust=[document])) == ["reserved_id", "tampered"]


def test_what_cannot_be_read_is_a_row_and_never_a_hang(project):
    outside = put(project.parent, "outside.py", tool(), MINE)
    tools = project / ".ai/tools/my"
    tools.mkdir(parents=True)
    os.mkfifo(tools / "fifo.py")
    # In the space, but not in the item's folder.
    put(project, ".ai/lib/aside.py", tool(item_id="my/aside"), MINE)
    links = {"zero": "/dev/zero", "out": outside, "dangling": "nowhere", "loop": "loop.py", "aside": "../../lib/aside.py"}
    for name, target in links.items():
        os.symlink(target, tools / f"{name}.py")
    put(project, ".ai/tools/my/large.py", b"#" * (spaces.MAX_ITEM_BYTES + 1))
    put(project, ".ai/tools/my/limit.py", b"#" * spaces.MAX_ITEM_BYTES)
    (tools / "folder.py").mkdir()
    rows = {row["item_id"][3:]: row for row in rye.verify(everything=True, space="project")}
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(("fifo", "large", *links), "malformed") | {
        "limit": "unsigned"
    }
    # Each way to ask says the same.
    answers = {name: rye.execute(f"my/{name}", {})["error"] for name in ("fifo", *links)}
    assert (set(answers), all("leads out" in one for one in answers.values())) == ({*rows} - {"large", "limit"}, True)
    assert rye.search("*", "tool", space="project")["unverified"] == {"malformed": len(rows) - 1, "unsigned": 1}
    assert [verdict(f"my/{name}")["verdict"] for name in links] == ["malformed"] * len(links)
    assert ("named pipe" in rows["fifo"]["hint"], "leads out" in rows["out"]["hint"]) == (True, True)
    assert "larger than 1,048,576" in rows["large"]["hint"]
    os.unlink(tools / "limit.py")
    rows = rye.sign([".ai"])
    assert {row["status"] for row in rows} == {"failed"}
    assert all(row["error"] and row["code"] and row["hint"] for row in rows)
    assert verdict(str(tools / "../my/large.py"))["verdict"] == "malformed"
    # A link within its folder serves, and is not replaced by signing.
    put(project, ".ai/tools/my/greet.py", tool(), MINE)
    os.symlink("my/greet.py", project / ".ai/tools/link.py")
    assert verdict(".ai/tools/link.py")["verdict"] == "misplaced"
    assert outcome(".ai/tools/link.py")["code"] == "is_link"
    assert (project / ".ai/tools/link.py").is_symlink()


def test_a_key_counts_for_one_call_when_its_document_is_named(project):
    put(project, "a.py", tool(), STRANGER)
    document = put(project, "other.toml", key_document(STRANGER, "another"))
    assert verdict("a.py", trust=[document])["owner"] == "another"
    # Not for what the project brings, nor for a later call; one of yours that cannot be read is named then.
    bring_key(project, STRANGER)
    put(project, ".ai/tools/my/greet.py", tool(), STRANGER)
    assert rye.execute("my/greet", {}, project_path=project)["code"] == "untrusted_key"
    assert "The user key document" not in verdict("a.py")["hint"]
    put(project.parent, "home/.ai/trusted_keys/broken.toml", b"owner = 3")
    assert (verdict("a.py")["verdict"], "The user key document" in verdict("a.py")["hint"]) == ("untrusted_key", True)
    for path in ("a.py", "nowhere.toml", "."):
        with pytest.raises(UsageError, match="document"):
            rye.verify(["a.py"], trust=[path])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads and writes whatever the modes say")
def test_what_the_modes_forbid_is_a_row(project):
    closed = put(project, ".ai/tools/my/closed.py", tool(item_id="my/closed"), MINE)
    put(project, ".ai/tools/shut/a.py", tool(), MINE)
    closed.chmod(0)
    (project / ".ai/tools/shut").chmod(0)
    try:
        rows = {row["target"]: row for row in rye.verify(["."])}
        assert {row["verdict"] for row in rows.values()} == {"malformed"}
        assert set(rows) == {".ai/tools/my/closed.py", ".ai/tools/shut"}
        closed.chmod(0o600)
        closed.write_bytes(tool(item_id="my/closed"))
        closed.parent.chmod(0o500)
        assert outcome("my/closed")["code"] == "permission_denied"
        assert closed.read_bytes() == tool(item_id="my/closed")
    finally:
        closed.parent.chmod(0o700)
        (project / ".ai/tools/shut").chmod(0o700)


def test_signing_makes_valid_then_leaves_alone(project):
    path = put(project, ".ai/tools/my/greet.py", tool())
    path.chmod(0o640)
    row = outcome("my/greet")
    assert (row["status"], row["signer"], row["error"]) == ("signed", MINE.public.fingerprint, None)
    assert row["digest"] == verdict("my/greet")["actual"]
    assert (path.read_bytes().split(b"\n", 1)[1], stat.S_IMODE(path.stat().st_mode)) == (tool(), 0o640)
    before = path.stat()
    assert outcome("my/greet")["status"] == "unchanged"
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert os.listdir(path.parent) == ["greet.py"]
    # A foreign signature, or a broken one, is replaced.
    for raw in (signed(tool(), STRANGER), path.read_bytes() + b"# more\n"):
        path.write_bytes(raw)
        assert (outcome("my/greet")["status"], verdict("my/greet")["verdict"]) == ("signed", "valid")
        assert path.read_bytes().count(b"rye:signed:") == 1


GREET, OTHER, YAML = ".ai/tools/my/greet.py", ".ai/tools/my/other.py", ".ai/tools/my/run.yaml"
NOTES, DATA = ".ai/knowledge/my/k.md", ".ai/knowledge/my/k.yaml"
RUNS = b'item_id: my/run\nversion: "1.0.0"\ntool_type: runtime\nexecutor_id: null\ncategory: my\ndescription: Runs.\n'
UNBOUND = tool().replace(b'__item_id__ = "my/greet"', b"")
# What is wrong, and the files that are refused for it, each alone in its place.
REFUSED = {
    ("misplaced", ""): [
        *((GREET, tool(category="yours")), (GREET, b"x = 1\n"), (OTHER, tool()), (".ai/tools/yours/greet.py", UNBOUND)),
        *((f".ai/tools/{place}.py", tool()) for place in ("yours/tool", "tool", "my/deeper/greet", "My/greet")),
        (GREET, tool(extra="__category__ = ['my']")),
        (".ai/tools/my/walk.yaml", RUNS),
        *((f".ai/knowledge/{place}/k.md", ENTRY) for place in ("your", "my/deeper")),
        *(
            (NOTES, ENTRY.replace(b"id: k", line))
            for line in (b"id: other", b"name: other", b"id: yours/k", b"title2: x", b"id: [k]", b"id: null")
        ),
    ],
    ("empty_item", ""): [(GREET, b"")],
    ("malformed_item", ""): [
        (GREET, b"def f(:\n"),
        (GREET, tool().replace(b'__tool_description__ = "Made for a test"', b"")),
        *((GREET, tool().replace(b'"1.2.3"', text)) for text in (b"123", b'"1.2"', b'"1.2.3\\n"', b'"1.2.%b"' % (b"3" * 5000))),
        *(
            (GREET, tool(extra=text))
            for text in ("__executor_id__ = 5", "CONFIG_SCHEMA = []", "CONFIG_SCHEMA = {'type': 'string'}")
        ),
        *((GREET, b"x = " + text) for text in (b"(" * 5_000 + b")" * 5_000 + b"\n", b"-" * 100_000 + b"1\n")),
        *((YAML, raw) for raw in (b"- a\n", b"text\n", b"5\n", b"null\n", b"# only a comment\n", b"category: my\nd: \xe4\n")),
        (YAML, RUNS.replace(b'"1.0.0"', b"1.0")),
        *((NOTES, raw) for raw in (b"# No header\n", b"# Late\n\n" + ENTRY, b"<!-- anything else -->\n" + ENTRY)),
        *((NOTES, raw) for raw in (b"```yaml\nid: k\n", b"```json\n{}\n```\n", b"```yaml\n```\n")),
    ],
    ("malformed_item", "my/k has no title"): [(NOTES, ENTRY.replace(b"title: T", t)) for t in (b"", b"title: ' '", b"title:")],
    # YAML that could be read otherwise elsewhere.
    ("malformed_item", "repeats a key"): [
        *((YAML, RUNS + more) for more in (b"category: my\n", b"config: {a: 1, a: 2}\n", b"config:\n  - {b: 1, b: 2}\n")),
        *((YAML, RUNS + b"1: a\n'1': b\n"), (NOTES, ENTRY.replace(b"title: T", b"id: k"))),
    ],
    ("malformed_item", "anchors"): [(YAML, RUNS + b"a: &x 1\n"), (YAML, RUNS + b"a: &x [1]\nb: *x\n")],
    ("malformed_item", "anchors "): [(NOTES, ENTRY.replace(b"id: k", b"id: &a k"))],
    ("malformed_item", "tags"): [
        (YAML, RUNS + b"a: !!python/object/apply:os.system ['true']\n"),
        (YAML, RUNS + b"a: !!str 1\n"),
    ],
    ("malformed_item", "cannot be read"): [
        (YAML, RUNS + more) for more in (b"---\nb: 1\n", b"a: [1\n", b"a: 2021-99-99\n", b"? [a]\n: 1\n")
    ],
    ("malformed_item", "nested deeper"): [
        (YAML, RUNS + b"a: " + more) for more in (b"[" * 5_000 + b"]" * 5_000 + b"\n", b"[" * 200_000, b"{a: " * 200_000)
    ],
    ("bad_schema", ""): [(GREET, tool(extra='CONFIG_SCHEMA = {"type": "object", "minProperties": "x"}'))],
    ("malformed", ""): [(GREET, tool() + b"\r\n"), (".ai/directives/d.md", b"# No directive\n")],
    ("bad_item_id", ""): [(".ai/tools/my/a b.py", tool())],
}


@pytest.mark.parametrize(("code", "word"), REFUSED)
def test_what_a_reader_would_refuse_is_not_signed(project, code, word):
    for path, raw in REFUSED[code, word]:
        file = put(project, path, raw)
        row = outcome(path)
        assert (row["status"], row["code"], word.strip() in row["error"]) == ("failed", code, True), (path, raw[:80], row)
        assert (bool(row["hint"]), "\n" in row["error"]) == (True, False)
        assert file.read_bytes() == raw
        file.unlink()


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        (OTHER, UNBOUND),
        (YAML, RUNS + b"config: {timeout_seconds: 300}\n"),
        (YAML, RUNS + b"a: " + b"[" * 60 + b"]" * 60 + b"\n"),
        *((NOTES, ENTRY.replace(b"id: k", line)) for line in (b"name: k", b"id: my/k", b"name: my/k")),
        *((NOTES, raw) for raw in (ENTRY.replace(b"```yaml", b"```yml", 1), b"\n\n" + ENTRY)),
        *((NOTES, mark + ENTRY) for mark in (b"<!-- rye:unsigned -->\n\n", b"<!-- rye:unsigned -->\n<!-- rye:unsigned -->\n")),
        (".ai/knowledge/yours/k.md", ENTRY.replace(b"category: my\n", b"")),
        (DATA, b"id: k\ncategory: my\ntitle: K\nfact: 1\n"),
    ],
)
def test_what_every_reader_reads_alike_is_signed(project, path, raw):
    put(project, path, raw)
    assert (outcome(path)["status"], verdict(path)["verdict"]) == ("signed", "valid")
    if path == DATA:
        assert rye.execute("my/k", item_type="knowledge", project_path=project)["data"]["fact"] == 1


def test_text_that_is_no_item_is_malformed_in_an_ai_and_a_mere_file_outside(project):
    for path, wanted in ((GREET, "malformed"), ("greet.py", "valid")):
        put(project, path, b"def f(:\n", MINE)
        assert verdict(path)["verdict"] == wanted


def test_a_script_without_a_runtime_is_refused_with_the_lines_to_write(project):
    head = "# ---\n# version: 1.0.0\n# tool_type: q\n# category: my\n# description: d\n{}# ---\n"
    for runtime in ("", "# executor_id: my/nothing\n"):
        put(project, ".ai/tools/my/a.qq", head.format(runtime).encode())
        row = outcome("my/a")
        assert row["code"] == "runtime_missing"
        text = re.search(r"\{version.*\}", row["hint"])[0]
        assert (parse.yaml_mapping(text)["suffixes"], len(parse.yaml_mapping(text))) == ([".qq"], 10)
    # As they stand there, they are a runtime; and a tool that names none is told of it.
    put(project, ".ai/tools/my/runtimes/qq.yaml", text.encode())
    assert outcome("my/runtimes/qq")["status"] == "signed"
    put(project, ".ai/tools/my/a.qq", head.format("").encode())
    os.mkfifo(project / ".ai/tools/my/pipe.yaml")
    assert "executor_id: my/runtimes/qq" in outcome("my/a")["hint"]
    put(project, ".ai/tools/my/a.qq", head.format("# executor_id: my/runtimes/qq\n").encode())
    assert outcome("my/a")["status"] == "signed"
    put(project, ".ai/tools/my/runtimes/qq.yaml", text.replace('[".qq"]', "5").encode())
    assert outcome("my/a")["code"] == "malformed_item"


def test_all_signs_the_projects_own_items_only_and_one_failing_does_not_stop_the_others(project):
    for name in "abc":
        put(project, f".ai/tools/my/{name}.py", tool(item_id=f"my/{name if name != 'b' else 'x'}"))
    others = put(project.parent, "home/.ai/tools/my/greet.py", tool())
    rows = rye.sign(everything=True)
    assert [(row["item_id"], row["status"]) for row in rows] == [("my/a", "signed"), ("my/b", "failed"), ("my/c", "signed")]
    assert others.read_bytes() == tool()
    assert [row["status"] for row in rye.sign(everything=True, space="user")] == ["signed"]


def test_a_change_while_signing_is_not_overwritten(project, monkeypatch):
    path = put(project, "greet.py", tool())
    swap = signature.sign

    def slow(raw, *args, **options):
        path.write_bytes(b"# the user's edit\n")
        return swap(raw, *args, **options)

    monkeypatch.setattr(signature, "sign", slow)
    assert outcome("greet.py")["code"] == "conflict"
    assert (path.read_bytes(), sorted(os.listdir(project))) == (b"# the user's edit\n", [".ai", "greet.py"])


def test_an_installed_bundle_is_not_signed_in_place(project, monkeypatch):
    package = project.parent / "site/rye"
    path = put(package, ".ai/tools/my/greet.py", tool())
    monkeypatch.setattr(rye, "__file__", str(package / "__init__.py"))
    assert outcome(str(path))["code"] == "installed_bundle"
    os.symlink(package, project / "way")
    assert outcome("way/.ai/tools/my/greet.py")["code"] == "installed_bundle"
    assert path.read_bytes() == tool()


def test_the_key_is_the_named_one_then_the_environments_then_the_own(project, monkeypatch):
    third = type(MINE)(b"t" * 32)
    put(project, "other.pem", STRANGER.pem)
    put(project, "third.pem", third.pem)
    put(project, "a.py", tool())
    signers = [outcome("a.py")["signer"]]
    monkeypatch.setenv("RYE_SIGNING_KEY", "third.pem")
    signers += [outcome("a.py")["signer"], outcome("a.py", key="other.pem")["signer"]]
    assert signers == [key.public.fingerprint for key in (MINE, third, STRANGER)]
    monkeypatch.setenv("RYE_SIGNING_KEY", "a.pem")
    with pytest.raises(RyeError, match="rye keys generate"):
        rye.sign(["other.pem"])
    put(project, "a.pem", b"x")
    with pytest.raises(RyeError, match="not an Ed25519"):
        rye.sign(["a.py"])


def test_a_key_without_its_document_is_not_left_behind(project, monkeypatch):
    home = project.parent / "new"
    monkeypatch.setenv("USER_SPACE", str(home))
    put(home, ".ai/config/rye.yaml", b"signing: {agents: allow}\n")
    in_the_way = put(home, ".ai/trusted_keys", b"a file where the folder should be")
    for owner in ("two\nlines", "Jo"):
        assert shell("keys", "generate", "--owner", owner, cwd=project).returncode != 0
    assert os.listdir(home / ".ai/keys") == []
    in_the_way.unlink()
    assert shell("keys", "generate", "--owner", "Jo", cwd=project).returncode == 0
    (document,) = (home / ".ai/trusted_keys").iterdir()
    assert stat.S_IMODE(document.stat().st_mode) == 0o644
    put(project, "a.py", tool())
    assert (outcome("a.py")["status"], verdict("a.py")["owner"]) == ("signed", "Jo")
