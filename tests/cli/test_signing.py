"""`rye sign`, `rye verify` and `rye keys` as a shell sees them."""

import json
import os

import pytest

from rye.trust import signature
from support.in_process import rye
from support.signed_tools import put, tool_text

GREET = tool_text("my/greet")


class Shell:
    """A shell in a project, which has no terminal."""

    def __init__(self, root):
        self.root = root

    def rye(self, *words, cwd=None, **env):
        done = rye(*words, cwd=cwd or self.root, env=env)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return done.returncode, out, err

    def put(self, path, raw=GREET):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(raw)


@pytest.fixture
def lone(project, monkeypatch):
    """A shell whose user has allowed nothing."""
    monkeypatch.delenv("RYE_SIGNING_KEY", raising=False)
    monkeypatch.setenv("USER_SPACE", str(project.parent / "home"))
    (project / ".git").mkdir()
    return Shell(project)


@pytest.fixture
def shell(lone):
    put(lone.root.parent / "home", "config/rye.yaml", b"signing: {agents: allow}\n")
    return lone


def test_from_no_key_to_a_valid_item(shell):
    shell.put(".ai/tools/my/greet.py")
    code, out, err = shell.rye("sign", "my/greet")
    assert (code, out, err.count("\n"), "rye keys generate" in err) == (1, "", 1, True)
    code, out, _ = shell.rye("keys", "generate")
    fingerprint, digest = (out.splitlines()[at].split()[1] for at in (0, 1))
    assert (code, len(fingerprint), len(digest)) == (0, 16, 64)
    assert (shell.root.parent / f"home/.ai/trusted_keys/{fingerprint}.toml").is_file()
    # A key is never overwritten.
    before = shell.rye("keys", "show", "--json")
    assert json.loads(before[1])["trusted"] is True
    code, out, err = shell.rye("keys", "generate")
    assert (code, out, "never overwritten" in err, shell.rye("keys", "show", "--json")) == (1, "", True, before)
    # All or none: of two names one is wrong.
    code, out, err = shell.rye("sign", "my/greet", "my/grete")
    told = "my/grete names no item, file or folder. Nothing was signed. Did you mean my/greet?"
    assert (code, out, told in err) == (1, "", True)
    code, out, _ = shell.rye("verify", "--space", "project")
    assert (code, "unsigned  .ai/tools/my/greet.py" in out, "rye sign" in out) == (3, True, True)
    code, out, _ = shell.rye("sign", "--all")
    heading = "STATUS  TARGET                 SIGNER            REASON AND NEXT STEP"
    assert (code, out) == (0, f"{heading}\nsigned  .ai/tools/my/greet.py  {fingerprint}\n1 file: 1 signed.\n")
    assert "unchanged" in shell.rye("sign", "--all")[1]
    code, out, _ = shell.rye("verify", "my/greet")
    assert (code, f"valid    .ai/tools/my/greet.py  {fingerprint} (local)\n1 file: 1 valid." in out) == (0, True)
    # One bad file among good ones fails, and is counted.
    shell.put(".ai/tools/my/evil.py", (shell.root / ".ai/tools/my/greet.py").read_bytes() + b"#")
    assert shell.rye("verify", "--space", "project")[1].endswith("2 files: 1 valid, 1 tampered.\n")
    code, out, _ = shell.rye("verify", "--space", "project", "--json")
    rows = json.loads(out)
    assert list(rows[0]) == ["target", "item_id", "type", "verdict", "signer", "owner", "expected", "actual", "hint"]
    assert (code, [(row["verdict"], row["owner"]) for row in rows]) == (3, [("tampered", None), ("valid", "local")])


def test_a_colleague_comes_to_trust_what_the_project_brings(shell):
    """`keys generate` and the refusal in a clone name the command; it puts the document there, and no more than that."""
    shell.put(".ai/tools/my/greet.py")
    assert "rye keys export --project" in shell.rye("keys", "generate", "--owner", "Jo")[2]
    shell.rye("sign", "--all")
    # A link out of the project takes no key.
    outside = shell.root.parent / "outside"
    outside.mkdir()
    (shell.root / ".ai/trusted_keys").symlink_to(outside)
    assert shell.rye("keys", "export")[0] != 0
    assert list(outside.iterdir()) == []
    (shell.root / ".ai/trusted_keys").unlink()
    home = shell.root.parent / "home"
    home.rename(home.with_name("author"))
    code, _, err = shell.rye("greet")
    assert (code, "rye keys export --project" in err) == (3, True)
    home.with_name("author").rename(home)
    code, out, err = shell.rye("keys", "export", "--project")
    file = shell.root / ".ai/trusted_keys" / f"{out.split()[1]}.toml"
    assert (code, file.stat().st_mode & 0o777, "rye trust approve" in err) == (0, 0o644, True)
    assert file.read_bytes() == (home / ".ai/trusted_keys" / file.name).read_bytes()
    assert json.loads(shell.rye("keys", "export", "--project", str(shell.root), "--json")[1])["exported"] == str(file)
    home.rename(home.with_name("author"))
    code, _, err = shell.rye("greet")
    assert (code, "The project brings it" in err, "rye trust approve" in err, "keys export" in err) == (3, True, True, False)


def test_the_project_is_found_from_below_and_paths_are_from_here(shell):
    shell.put(".ai/tools/my/greet.py")
    shell.put("deep/down/a.py")
    shell.rye("keys", "generate")
    rows = json.loads(shell.rye("sign", "my/greet", "a.py", "--json", cwd=shell.root / "deep/down")[1])
    told = [(row["target"], row["item_id"], row["status"]) for row in rows]
    assert told == [(str(shell.root / ".ai/tools/my/greet.py"), "my/greet", "signed"), ("a.py", None, "signed")]
    assert list(rows[0]) == ["target", "item_id", "type", "status", "digest", "signer", "path", "error", "code", "hint"]


def test_nothing_to_verify_is_no_success(shell):
    code, out, err = shell.rye("verify", "--all", "--space", "project")
    assert (code, out, "nothing to verify" in err) == (1, "", True)
    code, out, err = shell.rye("verify", "--space", "user", "--json")
    assert (code, json.loads(out), "nothing to verify" in err) == (1, [], True)
    # Control: the system's items are there in an empty project, too.
    code, out, _ = shell.rye("verify", "rye/file-system/read", "--json")
    (row,) = json.loads(out)
    assert (code, row["verdict"], row["owner"]) == (0, "valid", "rye"), row


def test_without_a_terminal_nothing_is_signed_unless_the_user_allowed_it_or_a_key_is_named(lone):
    lone.put(".ai/tools/my/greet.py")
    # What a project says of itself, and a key in the environment, allow nothing.
    lone.put(".ai/config/rye.yaml", b"signing: {agents: allow}\n")
    signature.generate_key_pair(lone.root.parent / "elsewhere")
    pem = str(lone.root.parent / "elsewhere/private_key.pem")
    named = {"RYE_SIGNING_KEY": pem}
    for line, env in (("sign my/greet", {}), ("sign my/greet", named), ("sign --all --json", named), ("keys generate", {})):
        code, out, err = lone.rye(*line.split(), **env)
        assert (code, "--json" in line or out == "") == (1, True), line
        assert ("Ask your user" in err, "signing: {agents: allow}" in err) == (True, True)
    assert (lone.root / ".ai/tools/my/greet.py").read_bytes() == GREET
    assert not (lone.root.parent / "home/.ai/keys").exists()
    assert lone.rye("sign", "my/greet", "--key", pem)[0] == 0
    assert lone.rye("verify", "my/greet")[0] == 3  # nothing asked for; that key does not count here
    code, _, err = lone.rye("keys", "show")
    assert (code, "no own key" in err) == (1, True)


def test_names_cannot_steer_the_terminal(shell):
    path = os.fsencode(shell.root) + b"/a\x1b[2J\n\xff.py"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    for env in ({}, {"PYTHONIOENCODING": "ascii"}):
        code, out, _ = shell.rye("verify", ".", **env)
        assert (code, r"a\x1b[2J\x0a\xff.py" in out, out.count("\n")) == (3, True, 3)
        json.loads(shell.rye("verify", ".", "--json", **env)[1])
