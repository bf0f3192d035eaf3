"""`rye daemon`: the helper that makes commands in a shell start faster, is started, stopped and asked here."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, print_json
from rye.errors import RyeError, UsageError

if TYPE_CHECKING:
    import subprocess

_EPILOG = """\
  rye daemon start            keep a helper for this user and this installation, until `rye daemon stop`
  rye daemon status           say whether it runs; exit code 1 where it does not
  rye daemon launchers DIR    write DIR/rye and DIR/rt, which ask the helper before anything else; put DIR first on PATH

With a helper these start faster: `rt`, and `rye` with a tool, search, load, log, diff, blame, tools, prompt, verify or help. A
process that has everything loaded makes the call, and does what a normal start does, in the caller's folder, environment and
rights. A call starts normally where no helper runs, or one of older code; where standard input is a terminal; within a command
of the tool bash; where the caller may do or see other things than the helper; and with RYE_DAEMON=off.

Nothing is written but the folder ${USER_SPACE:-~}/.ai/state/daemon, which has the socket. No sandbox shows it, and a process
in one is not served."""
_START_SECONDS = 30.0
_MARK = "# A launcher of `rye daemon`."
# What a kernel takes as a script's first line.
_FIRST_LINE = 120


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye daemon start [--foreground] | stop | status [--json] | launchers DIR"
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=("start", "stop", "status", "launchers"), metavar="start|stop|status|launchers")
    parser.add_argument("folder", nargs="?", metavar="DIR", help="where launchers are written")
    parser.add_argument("--foreground", action="store_true", help="be the helper, for a service manager; Ctrl-C ends it")
    parser.add_argument("--detached", action="store_true", help="with --foreground: let go of the standard streams once ready")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _run(args: argparse.Namespace) -> int:
    if (args.folder is not None) != (args.action == "launchers"):
        raise UsageError("bad_option", "launchers takes a folder, and nothing else does.", "See `rye daemon --help`.")
    if args.action == "launchers":
        return _write_launchers(args.folder)
    if args.action == "start":
        return _be_helper(detached=args.detached) if args.foreground else _start()
    pid = _running()
    if args.action == "stop":
        return _stop(pid)
    refusal = None if pid is None else _refusal()
    if args.json:
        print_json(
            {
                "running": pid is not None,
                "process": pid,
                "serves_this_shell": pid is not None and not refusal,
                "why_not": refusal,
            }
        )
    elif pid is None:
        print("No helper runs. Start one: rye daemon start")
    else:
        print(
            f"A helper runs (process {pid}). It {f'does not serve this shell: {refusal}' if refusal else 'serves this shell'}."
        )
    return EXIT_NO if pid is None else EXIT_OK


def _running() -> int | None:
    """Return the process of this installation's helper; None where none runs."""
    from rye.cli.daemon import client, server

    place = server.Place()
    try:
        helper = client.connected(place.folder, place.name)
    except (OSError, ValueError):
        return None
    finally:
        place.close()
    try:
        return client.credentials(helper)[0]
    finally:
        helper.close()


def _refusal() -> str | None:
    """Return why the helper would not serve a call that is made like this one; None where it would."""
    from rye.cli.daemon import client

    try:
        return client.refusal()
    except (OSError, ValueError) as err:
        return f"it does not answer: {err}"


def _be_helper(*, detached: bool) -> int:
    from rye.cli.daemon import server

    def ready() -> None:
        print("The helper is ready.", flush=True)
        if detached:
            # Who started it waits for this line alone.
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)

    if server.serve(server.Place(), ready):
        server.again(_words(detached=detached))
    return EXIT_OK


def _words(*, detached: bool) -> list[str]:
    """Return the interpreter's words for a helper."""
    begin = "from rye.cli.main import command; command()"
    return ["-c", begin, "daemon", "start", "--foreground", *(["--detached"] if detached else [])]


def _start() -> int:
    import subprocess

    if (pid := _running()) is not None:
        print(f"A helper runs already (process {pid}).")
        return EXIT_OK
    # A session of its own: it outlives the terminal. Its folder is none that somebody wants to unmount.
    with subprocess.Popen(
        [sys.executable, *_words(detached=True)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        start_new_session=True,
    ) as helper:
        said = _said(helper)
        # Not waited for: it stays.
        helper.returncode = 0
        if said != "The helper is ready.":
            raise RyeError("daemon_failed", f"The helper did not start: {said}", "Try `rye daemon start --foreground`.")
        print(f"A helper runs (process {helper.pid}). Stop it with `rye daemon stop`.")
    return EXIT_OK


def _said(helper: subprocess.Popen[bytes]) -> str:
    import select

    if helper.stdout is None or not select.select([helper.stdout], [], [], _START_SECONDS)[0]:
        return "it was not ready in time."
    return helper.stdout.readline().decode(errors="replace").strip()


def _stop(pid: int | None) -> int:
    import select
    import signal

    if pid is None:
        print("No helper runs.")
        return EXIT_OK
    process = os.pidfd_open(pid)
    # Its number may have passed on to another process since it was asked for.
    if _running() != pid:
        raise RyeError("daemon_failed", "The helper ended by itself, or another one began.", "Run `rye daemon status`.")
    signal.pidfd_send_signal(process, signal.SIGTERM)
    if not select.select([process], [], [], _START_SECONDS)[0]:
        raise RyeError("daemon_failed", f"Process {pid} does not end.", f"End it: kill -9 {pid}")
    print("The helper has ended. Calls that it was making go on.")
    return EXIT_OK


def _write_launchers(folder: str) -> int:
    """Write scripts whose interpreter looks for no packages, which a call by the helper does without."""
    from rye.cli.daemon import client

    where = os.path.dirname(os.path.abspath(client.__file__))
    first = f"#!{sys.executable} -IS"
    if " " in sys.executable or len(first) > _FIRST_LINE:
        raise RyeError("daemon_unusable", f"No script can name {sys.executable}.", "Install at a shorter path without spaces.")
    os.makedirs(folder, exist_ok=True)
    for name in ("rye", "rt"):
        program, path = f"{os.path.dirname(sys.executable)}/{name}", os.path.join(folder, name)
        if not os.access(program, os.X_OK):
            raise RyeError("daemon_unusable", f"{program} is not there.", "Launchers stand for an installation's programs.")
        text = _LAUNCHER.format(first=first, mark=_MARK, where=where, name=name, program=program)
        if os.path.lexists(path) and not _is_launcher(path):
            raise UsageError("file_exists", f"{path} exists and is no launcher.", "Name another folder.")
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(f"{path}.new", 0o755)  # noqa: S103 - a program, for whoever may enter the folder
        os.replace(f"{path}.new", path)
        print(path)
    return EXIT_OK


def _is_launcher(path: str) -> bool:
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return _MARK.encode() in file.read(1 << 12)


_LAUNCHER = """\
{first}
{mark}
import sys
sys.path.insert(0, {where!r})
try:
    import client
    del sys.path[0]
    client.launch({name!r}, {program!r})
except ImportError:
    import posix
    posix.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""

VERBS = {"daemon": Verb("Keep a helper that makes commands in a shell start faster.", _build, _run)}
