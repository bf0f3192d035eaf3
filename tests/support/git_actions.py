"""Ways by which a command makes the user's own git run a program, one line of JSON for each; run by `test_users_git.py`.

Arguments: a folder to work in, `require` or `off`, and names of ways (none: all). Each way has what the user did before, what
the model's command does, and what the user does after it, outside the sandbox.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import rye

PROGRAM = "touch $MARK; false"
NESTED = f"git init -q vendor/lib && cd vendor/lib && git config core.fsmonitor '{PROGRAM}'"
PIECES = "mkdir -p {0}/objects {0}/refs; echo ref: refs/heads/main >{0}/HEAD"
REBASE = "for n in 1 2; do echo $n >f$n; git add f$n; git commit -qm $n; done; GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2"
APPEND = f"printf '[core]\\n\\tfsmonitor = \"{PROGRAM}\"\\n' >>"

# A commit whose tree is missing: a promisor remote is asked for it at the root's `git status`.
MISSING = "git init -q vendor/lib && cd vendor/lib && echo 1 >f && git add f && git commit -qm x && (cd ../.. && git add vendor/lib) && T=$(git rev-parse HEAD^{tree}) && rm -f .git/objects/${T:0:2}/${T:2} && git config core.repositoryformatversion 1 && git config extensions.partialClone origin && git config remote.origin.promisor true"

# No path is long enough for the folder that it goes to.
DEEP = "python3 -c \"import os; r = os.open('.', 0)\nfor i in range(30): os.path.isdir('d' * 200) or os.mkdir('d' * 200); os.chdir('d' * 200)\n"

FILTER = "mkdir tools; printf 'import json, sys\nsys.stdout.write(sys.stdin.read())\n' >tools/nb.py; git config filter.nb.clean 'python3 tools/nb.py'; echo 'f filter=nb' >.gitattributes"

# The undo comes to the settings last; the folder is there before.
OVER_CHANNEL = """(setsid "$PY" -c 'import sys; from rye.cli.rt.main import main; sys.argv = ["rt", "undo"]; main()' >/dev/null 2>&1 &)
while [ ! -d z/a/b/c ]; do sleep 0.005; done; cd z/a/b/c; mkdir objects refs; echo ref: refs/heads/main >HEAD; cd ../../../..; mkdir sub
echo gitdir: ../z/a/b/c >sub/.git; git -C sub commit -q --allow-empty -m x; git add sub; ls z/a/b/c"""

# name: (what the user did before, what the model's command does, what the user does then)
WAYS = {
    "a nested repository, status in the root": ("", f"{NESTED}; git commit -q --allow-empty -m x; cd ../..; git add vendor/lib", "git status"),
    "a nested repository, status in it": ("", NESTED, "cd vendor/lib && git status"),
    "a bare repository": ("", f"{PIECES.format('docs')}; {APPEND} docs/config; git config -f docs/config core.bare false; git config -f docs/config core.worktree .; git config -f docs/config core.repositoryformatversion 0", "cd docs && git status"),
    "a bare repository, its last part in a second command": (f"{PIECES.format('docs')}; rmdir docs/refs", f"{APPEND} docs/config; git config -f docs/config core.bare false; git config -f docs/config core.worktree .; git config -f docs/config core.repositoryformatversion 0; mkdir docs/refs", "cd docs && git status"),
    "a repository elsewhere, named by a file": ("", f"git init -q --bare .git/objects/evil; cd .git/objects/evil; git config core.bare false; git config core.fsmonitor '{PROGRAM}'; cd ../../..; mkdir sub; echo gitdir: ../.git/objects/evil >sub/.git", "cd sub && git status"),
    "settings taken from another folder": ("", f"mkdir -p g c/objects c/refs; echo ref: refs/heads/main >g/HEAD; echo ../c >g/commondir; {APPEND} c/config; mkdir sub; echo gitdir: ../g >sub/.git", "cd sub && git status"),
    "a hook of a nested repository": ("", "git init -q n && printf '#!/bin/sh\\ntouch $MARK\\n' >n/.git/hooks/pre-commit && chmod +x n/.git/hooks/pre-commit", "cd n && git commit --allow-empty -m x"),
    "hooks by a link": ("", "git init -q n && rm -r n/.git/hooks && mkdir h && ln -s ../../h n/.git/hooks && printf '#!/bin/sh\\ntouch $MARK\\n' >h/pre-commit && chmod +x h/pre-commit", "cd n && git commit --allow-empty -m x"),
    "a filter": ("", "git init -q n && cd n && git config filter.x.clean 'touch $MARK; cat' && echo '* filter=x' >.gitattributes && echo a >a", "cd n && git add a"),
    "an alias": ("", "git init -q n && git -C n config alias.st '!touch $MARK'", "cd n && git st"),
    "settings that another file includes": ("", f"git init -q n && git -C n config include.path ../../inc && {APPEND} inc", "cd n && git status"),
    "a file that the user's settings include": ("git config include.path ../shared; touch shared", f"{APPEND} shared", "git status"),
    "a hook where the user's settings look for it": ("mkdir .hooks; git config core.hooksPath .hooks", "printf '#!/bin/sh\ntouch $MARK\n' >.hooks/pre-commit; chmod +x .hooks/pre-commit", "git commit --allow-empty -m x"),
    "a changed hook where the user's settings look for it": ("mkdir .hooks; git config core.hooksPath .hooks; printf '#!/bin/sh\ntrue\n' >.hooks/pre-commit; chmod +x .hooks/pre-commit", "echo 'touch $MARK' >>.hooks/pre-commit", "git commit --allow-empty -m x"),
    "a hook that husky starts": ("mkdir -p .husky/_; git config core.hooksPath .husky/_; printf '#!/bin/sh\n. ./.husky/pre-commit\n' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit; echo true >.husky/pre-commit", "echo 'touch $MARK' >.husky/pre-commit", "git commit --allow-empty -m x"),
    "a hook where all of the user's repositories look for it": ("git config --global core.hooksPath .githooks", "mkdir .githooks; printf '#!/bin/sh\ntouch $MARK\n' >.githooks/pre-commit; chmod +x .githooks/pre-commit", "git commit --allow-empty -m x; git config --global --unset core.hooksPath"),
    "a program that the user's settings start": ("mkdir tools; printf '#!/bin/sh\ncat\n' >tools/clean; chmod +x tools/clean; git config filter.u.clean 'sh tools/clean -x'; echo 'f filter=u' >.gitattributes", "printf 'touch $MARK\ncat\n' >tools/clean", "echo 1 >f; git add f"),
    "a program that the user's settings start, by write": ("git config filter.u.clean tools/clean; echo 'f filter=u' >.gitattributes", "write: clean", "chmod +x tools/clean; echo 1 >f; git add f"),
    "a hook of a linked worktree, by shared settings": ("git config core.hooksPath .hooks; git worktree add -q w", "mkdir w/.hooks; printf '#!/bin/sh\ntouch $MARK\n' >w/.hooks/pre-commit; chmod +x w/.hooks/pre-commit", "cd w && git commit --allow-empty -m x"),
    "a hook of a repository elsewhere": ("git config core.hooksPath .hooks; git worktree add -q w; mv .git ../main; echo gitdir: $PWD/../main/worktrees/w >w/.git; rm -rf f; mv w/.git .; rm -rf w; echo $PWD/.git >../main/worktrees/w/gitdir", "mkdir .hooks; printf '#!/bin/sh\ntouch $MARK\n' >.hooks/pre-commit; chmod +x .hooks/pre-commit", "git commit --allow-empty -m x; rm -rf ../main"),
    "a hook of a repository elsewhere, by write": ("git config core.hooksPath .husky; git worktree add -q w; mv .git ../main; echo gitdir: $PWD/../main/worktrees/w >w/.git; rm -rf f; mv w/.git .; rm -rf w; echo $PWD/.git >../main/worktrees/w/gitdir", "write: hook", "chmod +x .husky/pre-commit; git commit --allow-empty -m x; rm -rf ../main"),
    "a list of programs for the user's hook": ("printf '#!/bin/sh\nsh .pre-commit-config.yaml\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo true >.pre-commit-config.yaml", "echo 'touch $MARK' >t; mv t .pre-commit-config.yaml; echo 'touch $MARK' >>.pre-commit-config.yaml", "git commit --allow-empty -m x"),
    "a start file in a linked folder": ("", "mkdir c; echo 'touch $MARK' >c/hgrc; ln -s c .hg", "bash .hg/hgrc"),
    "a start file in a folder that is closed": ("", "mkdir .hg; echo 'touch $MARK' >.hg/hgrc; chmod 555 .hg .", "bash .hg/hgrc; chmod 755 ."),
    "a setting in a repository that is closed": ("", f"{NESTED}; chmod -R a-w . ../../vendor", "cd vendor/lib && git status; chmod -R u+w ../../vendor"),
    "husky by write": ("mkdir -p .husky/_; git config core.hooksPath .husky/_; printf '#!/bin/sh\n. ./.husky/pre-commit\n' >.husky/_/pre-commit; chmod +x .husky/_/pre-commit; echo true >.husky/pre-commit", "write: hook", "git commit --allow-empty -m x"),
    "an included file by write": ("git config include.path ../shared; touch shared", "write: shared", "git status"),
    "a repository by one patch": ("", "patch:", "cd docs && git status"),
    "a repository by an undo": ("", f"{PIECES.format('docs')}; rm docs/HEAD; {APPEND} docs/config; git config -f docs/config core.bare false; git config -f docs/config core.worktree .; git config -f docs/config core.repositoryformatversion 0; touch docs/objects/.keep docs/refs/.keep NEXT rm -r docs NEXT mkdir docs; echo ref: refs/heads/main >docs/HEAD NEXT undo:", "cd docs && git status"),
    "settings by a link": ("", f"git init -q n && mv n/.git/config cfg && ln -s ../../cfg n/.git/config && {APPEND} cfg", "cd n && git status"),
    "a folder that cannot be listed": ("", f"mkdir dark && cd dark && {NESTED}; cd ../..; chmod 311 .", "cd dark/vendor/lib && git status"),
    "config.worktree": ("git config extensions.worktreeConfig true", f"{APPEND} .git/config.worktree", "git status"),
    "config.worktree of a linked worktree": ("git config extensions.worktreeConfig true; git worktree add -q linked", f"{APPEND} .git/worktrees/linked/config.worktree", "cd linked && git status"),
    "settings of an earlier command, a repository by a later one": ("", f"{PIECES.format('docs')}; rmdir docs/refs; {APPEND} docs/config; git config -f docs/config core.bare false; git config -f docs/config core.worktree .; git config -f docs/config core.repositoryformatversion 0 NEXT mkdir docs/refs", "cd docs && git status"),
    "settings in a .git that the user's git makes whole": ("", f"mkdir -p n/.git; {APPEND} n/.git/config", "cd n && git init -q && git status"),
    "a hook in a .git that the user's git makes whole": ("", "mkdir -p n/.git/hooks; cd n/.git/hooks; printf '#!/bin/sh\ntouch $MARK\n' >pre-commit; chmod +x pre-commit", "cd n && git init -q && git commit --allow-empty -m x"),
    "a hook by a link to what comes later": ("", "git init -q n; ln -s ../../later n/.git/hooks/pre-commit; printf '#!/bin/sh\ntouch $MARK\n' >n/tool", "cp n/tool n/later; chmod +x n/later; cd n && git commit --allow-empty -m x"),
    "a deep repository that a later command moves": ("", f"git init -q n; {APPEND} n/.git/config; {DEEP}os.rename('n', 'n', src_dir_fd=r)\" NEXT {DEEP}os.rename('n', 'x', dst_dir_fd=r)\"", "cd x && git status"),
    "a tool of difftool by a path": ("", "git init -q n; cd n; git config diff.tool ../../../../../../../../..$PWD/t; git config difftool.prompt false; echo 'diff_cmd () { touch $MARK; }; touch $MARK' >t; echo 1 >f; git add f; git commit -qm f; echo 2 >f", "cd n && timeout 5 git difftool -y"),
    "steps of a rebase": (REBASE, "echo 'exec touch $MARK' >>.git/rebase-merge/git-rebase-todo", "git rebase --continue"),
    "a rebase of the command's own": ("for n in 1 2; do echo $n >f$n; git add f$n; git commit -qm $n; done", "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i -x 'touch $MARK' HEAD~2", "git rebase --continue"),
    "a job whose mounts come off": ("", f"job: while ! {{ {APPEND} .git/config; }} 2>/dev/null; do :; done; sleep 60", "git config user.nick x; sleep 0.7; git status"),
    "a command whose mounts come off": ("", f"meanwhile: touch started; while ! {{ {APPEND} .git/config; }} 2>/dev/null; do :; done", "git status"),
    "a start file whose mount comes off": ("echo true >.envrc", "meanwhile: touch started; while ! { echo 'touch $MARK' >>.envrc; } 2>/dev/null; do :; done", "bash ./.envrc"),
    "tasks whose mount comes off": ("echo '{}' >.mcp.json", "job: while ! { echo 'touch $MARK' >.mcp.json; } 2>/dev/null; do :; done; sleep 60", "cp .mcp.json x; mv x .mcp.json; sleep 1; bash ./.mcp.json"),
    "a cookie jar of a fetch at status": ("", f"{MISSING} && git config remote.origin.url http://127.0.0.1:$PORT/x.git && git config http.cookieFile $BASE/.jar && git config http.saveCookies true", "git status"),
    "a proxy of a fetch at status": ("", f"{MISSING} && git config remote.origin.url https://example.invalid/x.git && git config http.proxy http://127.0.0.1:$PORT && git config http.sslVerify false", "git status"),
    "a .git file, then its settings by write": ("", "mkdir sub store; echo gitdir: ../store >sub/.git NEXT write: store NEXT mkdir -p store/objects store/refs; echo ref: refs/heads/main >store/HEAD; git -C sub commit -q --allow-empty -m x; git add sub", "git status"),
    "a commondir, then its settings by write": ("", "mkdir sub; git init -q --bare g; rm -r g/config g/hooks; echo ../store >g/commondir; echo gitdir: ../g >sub/.git NEXT write: store NEXT mkdir -p store/objects store/refs; git -C sub commit -q --allow-empty -m x; git add sub", "git status"),
    "the user's own setting in another repository": (f"git init -q own; git -C own config core.fsmonitor '{PROGRAM}'", f"{NESTED}", "cd vendor/lib && git status"),
    "steps of a rebase by its format": ("", "git init -q n; cd n; git commit -q --allow-empty -m 0; git branch side; echo 1 >f; git add f; git commit -qm 1; git checkout -q side; echo 2 >g; git add g; git commit -qm 2; git config rebase.instructionFormat '%s%nexec touch $MARK'", "cd n && git rebase master; git rebase main"),
    "a work tree by a link that turns later": ("", "mkdir x; ln -s x link; git init -q --bare n; cd n; git config core.bare false; git config core.worktree ../link; cd ../x; echo 1 >mark; export GIT_DIR=../n; git add mark; git commit -qm 1; rm mark NEXT ln -sfn $BASE link", "GIT_DIR=n git reset --hard"),
    "a module beside the user's filter": (FILTER, "printf 'import os\nos.system(\"touch $MARK\")\n' >tools/json.py", "echo 1 >f; git add f"),
    "a module beside the user's filter, by write": (FILTER, "write: json", "echo 1 >f; git add f"),
    "a message of the user's git by a link": ("", "ln -sf $BASE/mark .git/COMMIT_EDITMSG", "git commit --allow-empty -m x"),
    "the log of the user's git by a link": ("", "rm -f .git/logs/HEAD; ln -s $BASE/mark .git/logs/HEAD", "git commit --allow-empty -m x"),
    "the objects of a nested repository by a link": ("", "git init -q n; rm -r n/.git/objects; ln -s $BASE/objects n/.git/objects", "mkdir ../objects; cd n; echo 1 >f; git add f; rmdir ../../objects || touch $MARK; rm -rf ../../objects"),
    "a repository outside by a .git file": ("rm -rf ../other; git init -q ../other", "mkdir sub; echo gitdir: $BASE/other/.git >sub/.git", "cd sub && git commit -q --allow-empty -m x; git -C ../../other log -1 && touch $MARK"),
    "an undo that outlives its command": ("", f"for n in $(seq 1000); do echo $n >f$n; done; mkdir -p z/a/b/c; {APPEND} z/a/b/c/config; git config -f z/a/b/c/config core.repositoryformatversion 0 NEXT rm -r f* z NEXT {OVER_CHANNEL}", "git status"),
    "four calls of write": ("", "write:", "cd docs && git status"),
}  # fmt: skip
WRITES = {
    "docs/config": f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "{PROGRAM}"\n',
    "docs/objects/.keep": "x\n",
    "docs/refs/.keep": "x\n",
    "docs/HEAD": "ref: refs/heads/main\n",
}


WRITE_SETS = {
    "write:": WRITES,
    "patch:": WRITES,
    "write: store": {"store/config": f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "{PROGRAM}"\n'},
    "write: json": {"tools/json.py": "import os\nos.system('touch $MARK')\n"},
    "write: hook": {".husky/pre-commit": "touch $MARK\n"},
    "write: clean": {"tools/clean": "#!/bin/sh\ntouch $MARK\ncat\n"},
    "write: shared": {"shared": f'[core]\n\tfsmonitor = "{PROGRAM}"\n'},
}


def users_shell(project: Path, script: str, mark: Path) -> None:
    identity = {f"GIT_{who}_{what}": "u@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {"PATH": os.environ["PATH"], "HOME": str(project.parent), "MARK": str(mark), "GIT_EDITOR": "true", **identity}
    subprocess.run(["bash", "-c", script], cwd=project, env=env, capture_output=True, timeout=60, check=False)


def models_command(project: Path, command: str, mark: Path) -> dict:
    identity = {f"GIT_{who}_{what}": "m@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    parameters = {"env": {"MARK": str(mark), "PY": sys.executable, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **identity}}
    if command == "patch:" and MODE != "off":
        files = [{"path": path, "content": content} for path, content in reversed(WRITES.items())]
        rye.execute(
            "rye/workspace/workspace_write_patch", {"batchLabel": "x", "files": [], "createFiles": files}, project_path=project
        )
        return {}
    if command in WRITE_SETS:
        for path, text in WRITE_SETS[command].items():
            content = (
                text.replace("$MARK", str(mark))
                if command in ("write: hook", "write: clean", "write: store", "write: json")
                else text
            )
            if MODE == "off":
                # What the file tools refuse nobody can switch off, so the control is a plain write.
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).write_text(content)
            else:
                rye.execute("rye/file-system/write", {"file_path": path, "content": content}, project_path=project)
        return {}
    if command.startswith("meanwhile: "):
        return with_the_user_beside(project, {**parameters, "command": command[11:].replace("$MARK", str(mark)), "timeout": 60})
    if command.startswith("job: "):
        parameters.update(command=command[5:].replace("$MARK", str(mark)), background=True)
    else:
        parameters["command"] = command.replace("$MARK", str(mark))
    for one in parameters.pop("command").split(" NEXT "):
        if one == "undo:":
            undone(project)
            continue
        if one in WRITE_SETS:
            models_command(project, one, mark)
            continue
        # The guard of file tools cannot be switched off either.
        beside = f"; {APPEND} z/a/b/c/config" if OVER_CHANNEL in one and MODE == "off" else ""
        command = one + beside.replace("$MARK", str(mark))
        answer = rye.execute("rye/bash/bash", {**parameters, "command": command}, project_path=project)
    assert answer["data"].get("code") not in ("tool_crashed", "sandbox_unavailable"), answer
    return answer["data"]


def undone(project: Path) -> None:
    """Take back the command before the last one, which removed a folder."""
    listed = rye.execute("rye/file-system/undo", {"list": True}, project_path=project)["data"]["entries"]
    for path, content in WRITES.items() if MODE == "off" else ():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content)
    rye.execute("rye/file-system/undo", {"entry_id": listed[1]["entry_id"]}, project_path=project)


def with_the_user_beside(project: Path, parameters: dict) -> dict:
    """Run a command, while the user's git and editor replace files."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(rye.execute("rye/bash/bash", parameters, project_path=project)))
    thread.start()
    while thread.is_alive() and not (project / "started").exists():
        time.sleep(0.02)
    while thread.is_alive():
        time.sleep(0.1)
        users_shell(project, "git config user.nick x; cp .envrc x && mv x .envrc", project)
    thread.join()
    return answers[0]["data"]


def tried(base: Path, name: str) -> dict:
    before, command, after = WAYS[name]
    project, mark = base / "project", base / "mark"
    subprocess.run(["chmod", "-R", "u+rwx", project], capture_output=True, check=False)
    shutil.rmtree(project, ignore_errors=True)
    # A call that was cancelled may still end there.
    project.mkdir(exist_ok=True)
    users_shell(project, "git init -q; git commit -q --allow-empty -m first", mark)
    users_shell(project, before.replace("$MARK", str(mark)), mark)
    command = command.replace("$BASE", str(base)).replace("$PORT", str(CANARY.server_port))
    CANARY.mark = mark
    data = models_command(project, command, mark)
    time.sleep(0.1)
    mark.unlink(missing_ok=True)
    users_shell(project, after, mark)
    end_jobs(project)
    return {"name": name, "ran": mark.exists(), "said": data.get("set_aside"), "holds": data.get("sandbox", {}).get("holds")}


def end_jobs(project: Path) -> None:
    for row in rye.execute("rye/bash/job", {"action": "list"}, project_path=project)["data"]["jobs"]:
        rye.execute("rye/bash/job", {"action": "end", "job_id": row["job_id"]}, project_path=project)


class Asked(BaseHTTPRequestHandler):
    """A host that no look may ask: it leaves the mark of a program that ran."""

    def handle_one_request(self) -> None:
        if self.rfile.readline(1000):
            CANARY.mark.touch()
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 404 no\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")


CANARY = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
threading.Thread(target=CANARY.serve_forever, daemon=True).start()


if __name__ == "__main__":
    folder, MODE = Path(sys.argv[1]), sys.argv[2]
    os.environ["USER_SPACE"] = str(folder / f"user-{MODE}")
    settings = folder / f"user-{MODE}/.ai/config/rye.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f"sandbox: {{mode: '{MODE}'}}\n")
    for way in sys.argv[3:] or WAYS:
        print(json.dumps(tried(folder, way)), flush=True)
