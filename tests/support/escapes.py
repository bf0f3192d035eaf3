"""Ways out of a sandbox, tried for real: each first without one, where it must succeed, then under "require", where it must not.

Run as a process of its own, by the user whom it shall be: `python escapes.py FOLDER LAYER [NAME …]`. Needs the package and the standard
library only. Prints a line of JSON a way: `name`, `property`, `control`, `escaped`, `held` (whether the layer claims the property).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tty
from dataclasses import dataclass, field
from pathlib import Path

CANARY = "canary-5f1c0e"
MARK = "WAS-HERE"
_VICTIM = "import ctypes, time; ctypes.CDLL(None).prctl(0x59616D61, -1, 0, 0, 0); print(flush=True); time.sleep(600)"


@dataclass(frozen=True)
class Way:
    """One way out: a script, what it would break, and the file (below the arena) or output that shows it."""

    name: str
    prop: str
    script: str
    shows: str = ""
    wait: float = 0
    env: dict = field(default_factory=dict)
    git: bool = True
    root_only: bool = False
    user_only: bool = False


def py(code):
    return f"$PY - <<'EOF'\nimport ctypes, os, socket, sys, glob\nout, port = os.environ['OUT'], int(os.environ['PORT'])\n{code}\nEOF"


_SEND = "s.connect({0}); s.send(b'x'); print('WAS-HERE')"
_INNER = "mount -o remount,bind,rw / 2>/dev/null; mount -o remount,rw $OUT 2>/dev/null; echo WAS-HERE > $OUT/new"
WAYS = [
    # --- outside ---
    Way("shell writes a file", "writes_outside", "echo WAS-HERE > $OUT/new", "outside/new"),
    Way("python appends", "writes_outside", py("open(out + '/victim', 'a').write('WAS-HERE')"), "outside/victim"),
    Way("through a symlink", "writes_outside", "ln -s $OUT/victim l; echo WAS-HERE > l", "outside/victim"),
    Way("through a folder's symlink", "writes_outside", "ln -s $OUT d; echo WAS-HERE > d/new", "outside/new"),
    Way("through a hard link", "writes_outside", "ln $OUT/victim h; echo WAS-HERE > h", "outside/victim"),
    Way("by rename out", "writes_outside", "echo WAS-HERE > n; mv n $OUT/new", "outside/new"),
    Way("by exchange", "writes_outside", py("open('n','w').write('WAS-HERE'); ctypes.CDLL(None).renameat2(-100, b'n', -100, (out+'/victim').encode(), 2)"), "outside/victim"),
    Way("deletes a file", "writes_outside", "rm -f $OUT/victim", "!outside/victim"),
    Way("truncates a file", "writes_outside", py("os.truncate(out + '/victim', 0)"), "=outside/victim"),
    Way("by /proc/self/root", "writes_outside", "echo WAS-HERE > /proc/self/root$OUT/new", "outside/new"),
    Way("by the server's root in /proc", "writes_outside", "echo WAS-HERE > /proc/$SERVER/root$OUT/new", "outside/new"),
    Way("by the server's folder in /proc", "writes_outside", "echo WAS-HERE > /proc/$SERVER/cwd/outside/new", "outside/new"),
    Way("by inherited descriptors", "writes_outside", py(
        "for fd in glob.glob('/proc/[0-9]*/fd/*'):\n"
        "  try: os.close(os.open(fd + '/../outside/new' if os.path.isdir(fd) else out + '/new', os.O_WRONLY | os.O_CREAT)); open(out + '/new', 'w').write('WAS-HERE')\n"
        "  except OSError: pass"
    ), "outside/new"),
    Way("mounts in a user namespace", "writes_outside", f"unshare -Urm sh -c '{_INNER}' || unshare -m sh -c '{_INNER}' || sh -c '{_INNER}'", "outside/new"),
    Way("the loader writes for it", "writes_outside", "true", "outside/dbg*", env={"LD_DEBUG": "all", "LD_DEBUG_OUTPUT": "$OUT/dbg"}),
    Way("a daemon, later", "processes_end", "setsid sh -c 'sleep 0.3; echo WAS-HERE > late' >/dev/null 2>&1 & disown; exit 0", "project/late", wait=0.6),
    Way("moves the project away", "writes_outside", "mv $ROOT $ROOT.moved; mkdir -p $OUT/x", "!project/file"),
    Way("a system setting", "writes_outside", 'f=/proc/sys/kernel/core_pattern; v=$(cat $f); echo "$v" > $f && echo WAS-HERE', root_only=True),
    Way("a device", "writes_outside", "mknod d c 1 5 && head -c1 d >/dev/null && echo WAS-HERE", root_only=True),
    Way("a setuid program", "no_new_privileges", "$OUT/setuid -p -c 'cat $ROOTONLY'", user_only=True),
    Way("leaves a setuid program", "no_new_privileges", "cp /bin/sh s; chmod 4755 s", "^project/s"),
    Way("leaves a setgid program", "no_new_privileges", "cp /bin/sh s; chmod g+s s", "^project/s"),
    Way("by fchmod", "no_new_privileges", py("os.fchmod(os.open('s', os.O_CREAT | os.O_RDWR), 0o4755)"), "^project/s"),
    Way("by open with a mode", "no_new_privileges", py("os.umask(0); os.open('s', os.O_CREAT | os.O_RDWR, 0o4755)"), "^project/s"),
    Way("by creat", "no_new_privileges", py("os.umask(0); ctypes.CDLL(None).creat(b's', 0o6755)"), "^project/s"),
    Way("by an unnamed file", "no_new_privileges", py("fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755); ctypes.CDLL(None).linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, b's', 0x400)"), "^project/s"),
    Way("by mknod", "no_new_privileges", py("os.umask(0); os.mknod('s', 0o104755)"), "^project/s"),
    Way("by openat2", "no_new_privileges", py(
        "import struct; os.umask(0); how = struct.pack('=QQQ', os.O_CREAT | os.O_RDWR, 0o4755, 0)\n"
        "ctypes.CDLL(None).syscall(437, -100, b's', how, ctypes.c_size_t(24))"
    ), "^project/s"),
    Way("by fchmodat2", "no_new_privileges", py("open('s', 'w').close(); ctypes.CDLL(None).syscall(452, -100, b's', 0o4755, 0)"), "^project/s"),
    Way("writes to a terminal of the user", "writes_outside", "printf WAS-HERE > $TERMINAL", "?terminal", wait=0.1),
    Way("changes a mode", "metadata_outside", "chmod 0777 $OUT/victim", "%outside/victim"),
    # --- protected names ---
    Way("a git hook", "protected_names", "mkdir -p .git/hooks; echo WAS-HERE > .git/hooks/pre-commit", "project/.git/hooks/pre-commit"),
    Way("git's configuration", "protected_names", "echo WAS-HERE >> .git/config", "project/.git/config"),
    Way("git's configuration by git", "protected_names", "sed -i s/core/WAS-HERE/ .git/config", "project/.git/config"),
    Way("another .git in its place", "protected_names", "mv .git g; mkdir -p .git/hooks; echo WAS-HERE > .git/hooks/pre-commit", "project/.git/hooks/pre-commit"),
    Way("a common folder elsewhere", "protected_names", "echo ../WAS-HERE > .git/commondir", "project/.git/commondir"),
    Way("renames git's folder of modules", "protected_names", "mv .git/modules .git/m; mkdir -p .git/modules/s; echo WAS-HERE > .git/modules/s/config", "project/.git/modules/s/config"),
    Way("a .git where none is", "protected_names", "mkdir -p .git/hooks; echo WAS-HERE > .git/hooks/pre-commit", "project/.git/hooks/pre-commit", git=False),
    Way("a .git file where none is", "protected_names", "echo 'gitdir: WAS-HERE' > .git", "project/.git", git=False),
    Way("an item", "protected_names", "mkdir -p .ai/tools; echo WAS-HERE > .ai/tools/x.py", "project/.ai/tools/x.py"),
    Way("another .ai in its place", "protected_names", "rm -rf .ai; mv .ai a; mkdir .ai; echo WAS-HERE > .ai/x", "project/.ai/x"),
    Way("an absent .vscode", "protected_names", "mkdir .vscode; echo WAS-HERE > .vscode/tasks.json", "project/.vscode/tasks.json"),
    Way("an absent .mcp.json", "protected_names", "rmdir .mcp.json; echo WAS-HERE > .mcp.json", "project/.mcp.json"),
    Way("an absent .mcp.json by rename", "protected_names", "echo WAS-HERE > n; mv -T n .mcp.json", "project/.mcp.json"),
    Way("a link for a .vscode", "protected_names", "mkdir v; echo WAS-HERE > v/tasks.json; rmdir .vscode; ln -s v .vscode", "project/.vscode/tasks.json"),
    Way("a hard link to git's configuration", "protected_names", "ln .git/config c; echo WAS-HERE >> c", "project/.git/config"),
    Way("unmounts what covers it", "protected_names", "unshare -Urm sh -c 'umount .git/config; umount -l .git; echo WAS-HERE >> .git/config' || echo WAS-HERE >> .git/config", "project/.git/config"),
    # --- secrets ---
    Way("reads ~/.ssh", "home_hidden", "cat ~/.ssh/id_rsa $KEYHOME/.ssh/id_rsa"),
    Way("reads ~/.aws", "home_hidden", "cat $KEYHOME/.aws/credentials"),
    Way("reads the user's keys", "home_hidden", "cat $SPACE/.ai/keys/private.pem"),
    Way("reads by a symlink of the project", "home_hidden", "cat link-to-home/.ssh/id_rsa"),
    Way("reads by the server's root", "home_hidden", "cat /proc/$SERVER/root$KEYHOME/.ssh/id_rsa"),
    Way("reads the temporary folder", "private_tmp", "cat $TEMP"),
    Way("the server's environment", "environment_clean", "cat /proc/*/environ /proc/$SERVER/environ | tr '\\0' '\\n'"),
    Way("its own environment", "environment_clean", "env | grep NOTES; cat /proc/self/environ /proc/1/environ"),
    # --- other processes ---
    Way("traces a process", "no_new_privileges", py("l = ctypes.CDLL(None)\nif not l.ptrace(0x4206, int(os.environ['VICTIM']), None, None): print('WAS-HERE')")),
    Way("limits a process", "no_new_privileges", py("import resource; resource.prlimit(int(os.environ['VICTIM']), resource.RLIMIT_CPU, (1, 1)); print('WAS-HERE')")),
    Way("kills a process", "other_processes_hidden", "kill -0 $VICTIM && echo WAS-HERE"),
    Way("sees a process", "other_processes_hidden", "tr '\\0' ' ' < /proc/$VICTIM/cmdline | grep -q prctl && echo WAS-HERE"),
    # --- the network ---
    Way("TCP on loopback", "network_off", py("s = socket.socket(); " + _SEND.format("('127.0.0.1', port)"))),
    Way("TCP by bash", "network_off", "echo x > /dev/tcp/127.0.0.1/$PORT && echo WAS-HERE"),
    Way("UDP on loopback", "network_off", py("s = socket.socket(2, 2); s.sendto(b'x', ('127.0.0.1', port))"), "?udp", wait=0.1),
    Way("a unix socket", "unix_sockets_off", py("s = socket.socket(socket.AF_UNIX); " + _SEND.format("out + '/stream'"))),
    Way("a unix socket in the project", "unix_sockets_off", py("s = socket.socket(socket.AF_UNIX); " + _SEND.format("'stream'"))),
    Way("an abstract unix socket", "unix_sockets_off", py("s = socket.socket(socket.AF_UNIX); " + _SEND.format("chr(0) + 'rye-' + str(port)"))),
    Way("a datagram from a pair", "unix_sockets_off", py("s, t = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', out + '/datagram')"), "?datagram", wait=0.1),
]  # fmt: skip


class Arena:
    """A project, what lies outside it, a home with keys, listeners, and a process to attack."""

    def __init__(self, base: Path):
        self.base = base
        self.got: list[str] = []
        self.victim = subprocess.Popen([sys.executable, "-c", _VICTIM], stdout=subprocess.PIPE)
        self.victim.stdout.readline()
        self.listen()

    def build(self, git: bool):
        """Make the arena anew."""
        for name in ("project", "project.moved", "home", "space"):
            shutil.rmtree(self.base / name, ignore_errors=True)
        outside = self.base / "outside"
        outside.mkdir(exist_ok=True)
        for path in outside.iterdir():
            if path.name not in ("stream", "datagram", "setuid"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, text in {
            "outside/victim": "original\n",
            "project/file": "file\n",
            "home/.ssh/id_rsa": CANARY,
            "home/.aws/credentials": CANARY,
            "space/.ai/keys/private.pem": CANARY,
        }.items():
            (self.base / path).parent.mkdir(parents=True, exist_ok=True)
            (self.base / path).write_text(text)
        (outside / "victim").chmod(0o644)
        if git:
            for name in ("objects", "refs/heads", "modules/s"):
                (self.base / "project/.git" / name).mkdir(parents=True)
            (self.base / "project/.git/HEAD").write_text("ref: refs/heads/main\n")
            (self.base / "project/.git/config").write_text("[core]\n\trepositoryformatversion = 0\n")
        (self.base / "project/link-to-home").symlink_to("../home")
        self.inner = _unix(str(self.base / "project/stream"), socket.SOCK_STREAM)

    def listen(self):
        self.tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        (self.base / "outside").mkdir(exist_ok=True)
        self.stream = _unix(str(self.base / "outside/stream"), socket.SOCK_STREAM)
        datagram = _unix(str(self.base / "outside/datagram"), socket.SOCK_DGRAM)
        self.abstract = _unix(f"\0rye-{self.port}", socket.SOCK_STREAM)
        master, slave = os.openpty()
        tty.setraw(slave)
        self.terminal = os.ttyname(slave)
        self.descriptors = master, slave
        threading.Thread(target=self.watch_terminal, daemon=True).start()
        for name, listener in (("udp", udp), ("datagram", datagram)):
            threading.Thread(target=self.receive, args=(name, listener), daemon=True).start()

    def receive(self, name, listener):
        while listener.recv(100):
            self.got.append(name)

    def watch_terminal(self):
        while MARK.encode() in os.read(self.descriptors[0], 1024):
            self.got.append("terminal")

    def environment(self):
        folders = {"OUT": "outside", "ROOT": "project", "KEYHOME": "home", "SPACE": "space", "ROOTONLY": "rootonly"}
        found = {name: str(self.base / folder) for name, folder in folders.items()}
        found |= {"PORT": str(self.port), "TERMINAL": self.terminal, "PY": sys.executable, "SERVER": str(os.getpid())}
        return found | {"VICTIM": str(self.victim.pid), "TEMP": os.environ["TEMP_SECRET"]}

    def close(self):
        self.victim.kill()
        self.victim.wait()


def _unix(path, kind):
    if path[0] != "\0" and os.path.lexists(path):
        os.unlink(path)
    made = socket.socket(socket.AF_UNIX, kind)
    made.bind(path)
    if kind == socket.SOCK_STREAM:
        made.listen(64)
    return made


def shown(arena, way, output):
    """Tell whether a way succeeded: by its output, or by what lies outside now."""
    kind, path = way.shows[:1], arena.base / way.shows.lstrip("!=%?^")
    if not way.shows:
        return MARK in output or CANARY in output
    if kind == "?":
        return way.shows[1:] in arena.got
    if kind == "!":
        return not path.exists()
    if kind == "=":
        return path.stat().st_size == 0
    if kind == "^":
        return path.exists() and bool(path.stat().st_mode & 0o6000)
    if kind == "%":
        return path.stat().st_mode & 0o777 == 0o777
    if "*" in way.shows:
        return any(path.parent.glob(path.name))
    try:
        return MARK in path.read_text()
    except OSError:
        return False


def attempt(arena, way, mode):
    """Try a way; return whether it succeeded, and the sandbox's report."""
    from confined import run_confined

    from rye.sandbox import sandbox

    arena.build(way.git)
    arena.got.clear()
    root = str(arena.base / "project")
    env = arena.environment()
    env |= {name: os.path.expandvars(value).replace("$OUT", env["OUT"]) for name, value in way.env.items()}
    policy = sandbox.Policy(root, root, network="off", env=env, extra_read=(sys.executable,))
    done, report = run_confined(["/bin/bash", "-c", way.script], policy, mode, cwd=root, linger=way.wait)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    return shown(arena, way, output), report, output


def main() -> int:
    base, layer = Path(sys.argv[1]), sys.argv[2]
    os.environ["HOME"], os.environ["USER_SPACE"] = str(base / "home"), str(base / "space")
    os.chdir(base)
    from rye.sandbox import bubblewrap, sandbox

    if layer == "landlock":
        bubblewrap._PLACES = ()
    usable = [name for name, why in sandbox.layers().items() if not why]
    print(json.dumps({"layers": sandbox.layers(), "active": usable[:1]}), flush=True)
    arena = Arena(base)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    root = os.geteuid() == 0
    try:
        for way in WAYS:
            if (sys.argv[3:] and way.name not in sys.argv[3:]) or (way.root_only and not root) or (way.user_only and root):
                continue
            control, _, said = attempt(arena, way, "off")
            escaped, report, output = attempt(arena, way, "auto")
            told = {"name": way.name, "property": way.prop, "held": way.prop in report["holds"]}
            told |= {"control": control, "escaped": escaped, "said": "" if control else said[-300:], "output": output[-500:]}
            print(json.dumps(told), flush=True)
    finally:
        arena.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
