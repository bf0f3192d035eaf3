"""A language server that repository code has got into: it neither hangs nor fills its client, nor reads the user's own files."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rye
from rye.lsp import queries, session
from rye.sandbox import sandbox
from support.harness import put_program


def _server():
    return session.LanguageServer("hostile", ("/bin/false",), {".py": "python"}, {}, 1, 1, ())


def _session(path):
    """A session with an open document, and no server: what is told to it is given."""
    found = object.__new__(session.ServerSession)
    found.opened, found.published = {path: None}, {}
    return found


def test_what_a_server_says_of_files_that_nobody_opened_is_not_kept():
    found = _session("/a.py")
    for name in range(1_000):
        found.on_notification(
            "textDocument/publishDiagnostics", {"uri": f"file:///{name}.py", "diagnostics": [{"message": "x"}]}
        )
    found.on_notification("textDocument/publishDiagnostics", {"uri": "file:///a.py", "diagnostics": [{"message": "x"}]})
    assert list(found.published) == ["file:///a.py"]


@pytest.mark.skipif(not any(not why for why in sandbox.layers().values()), reason="no layer of the sandbox works here")
def test_a_server_in_the_users_programs_does_not_open_what_lies_beside_them(tmp_path, project, monkeypatch):
    home = tmp_path / "home"
    secret = home / ".local/share/history/all"
    secret.parent.mkdir(parents=True)
    secret.write_text("CANARY")
    library = home / ".local/lib/package"
    library.parent.mkdir(parents=True)
    library.write_text("LIBRARY")
    program = put_program(home / ".local/bin/server", f"#!/bin/sh\ncat {library}\ncat {secret}\n")
    # The control: as any program of the user it may read both.
    assert subprocess.run([program], capture_output=True, check=False).stdout == b"LIBRARYCANARY"
    monkeypatch.setenv("HOME", str(home))
    started = queries.start_confined((str(program),), str(project))
    try:
        done = subprocess.run(
            started.argv, env=started.env, pass_fds=started.fds, cwd=project, capture_output=True, check=False, timeout=60
        )
    finally:
        started.close()
    assert done.stdout == b"LIBRARY", done.stderr


# As servers do that load a project's own compiler or plugins.
RUNS_THE_PROJECTS_CODE = "#!/bin/sh\n. ./plugin.sh\n"


@pytest.mark.parametrize(("mode", "code", "ran"), [("auto", "sandbox_missing", False), ("'off'", "server_died", True)])
def test_without_a_sandbox_no_server_is_started_on_a_projects_code(project, user_space, tmp_path, monkeypatch, mode, code, ran):
    """The second case is the control: turned off by the user, the same server does run what the project brings."""
    monkeypatch.setattr(sandbox, "layers", lambda: {"bubblewrap": "it is not installed", "landlock": "this kernel has none"})
    canary, program = tmp_path / "ran", put_program(tmp_path / "server", RUNS_THE_PROJECTS_CODE)
    (project / "plugin.sh").write_text(f"touch '{canary}'\n")
    (project / "a.go").write_text("package main\n")
    config = user_space / ".ai/config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "lsp.yaml").write_text(f"servers: {{gopls: {{command: ['{program}']}}}}\n")
    (config / "rye.yaml").write_text(f"sandbox: {{mode: {mode}}}\n")
    answer = rye.execute("rye/lsp/lsp", {"file_path": "a.go"}, project_path=project)
    assert (answer["code"], canary.exists()) == (code, ran), answer
    edited = rye.execute("rye/file-system/write", {"file_path": "a.go", "content": "x\n", "check": True}, project_path=project)
    assert edited["status"] == "success", "what cannot be checked is written all the same"
    assert edited["data"]["check"]["code"] == code
    (config / "rye.yaml").unlink()
    (config / "lsp.yaml").unlink()


def test_what_was_made_for_a_server_goes_with_it(project):
    code = "import sys; sys.stdin.buffer.readline()"
    folder = project.parent / "made"
    folder.mkdir()
    started = sandbox.Confined([sys.executable, "-c", code], {}, (), {}, temporary=str(folder))
    with pytest.raises(rye.RyeError):
        session.session(str(project), _server(), lambda: started)
    assert not folder.exists()
