"""The first step of `rye` and `rt`: ask the user's helper (`rye daemon`), where one runs, to make the call.

Only built-in modules are imported here, and nothing of the package: importing is what the helper saves. The call goes to it
with the words, the environment and all inherited descriptors. The helper answers one byte before it does anything, so whatever
fails up to there leads to a normal start. Later failures do not: a call that may have been made is not made again.

The socket is `${USER_SPACE:-~}/.ai/state/daemon/DEVICE-INODE.socket`, named by the package's folder: each installation has
its own.
"""

from __future__ import annotations

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

MAGIC = b"RYE1"
NONCE_BYTES = 16
NOT_SERVED, STARTED, ENDED = b"n", b"s", b"e"
FOLDER = b".ai/state/daemon"
PROBE = "probe"
"""The command of a request that only asks whether it would be served."""
VARIABLE = b"RYE_DAEMON"
"""In the environment: `off` starts normally, whatever helper runs."""
IN_A_COMMAND = b"RYE_CHANNEL"
"""As `rye.call.command_channel` sets it: a command of the `bash` tool asks the process that started it."""

OWN_PROCESS = frozenset(
    (
        *("mcp", "serve", "review", "fleet", "daemon", "completion"),
        *("new", "lint", "sign", "trust", "bundle", "lock", "keys", "registry", "doctor", "state"),
    )
)
"""Verbs that always start normally: they stay, ask a person, or change what the helper itself stands on."""

# Seconds: for a helper that was stopped or is overloaded, and to take a large environment.
_GREETING_SECONDS = 0.25
_SENDING_SECONDS = 10.0
_MOST_DESCRIPTORS = 200
_FORWARDED = (1, 2, 3, 10, 12, 14, 15)  # HUP, INT, QUIT, USR1, USR2, ALRM, TERM
_LOST = (
    b": The helper (rye daemon) ended in the middle of this call. What the call did, if anything, remains done: "
    b"look with `rye log` before you repeat it.\n"
)


def rye() -> NoReturn:
    """Be the installed command `rye`."""
    call("rye")
    from rye.cli.main import command

    command()


def rt() -> NoReturn:
    """Be the installed command `rt`."""
    call("rt")
    from rye.cli.rt.main import command

    command()


def launch(command: str, program: str) -> NoReturn:
    """Be a launcher (`rye daemon start --launchers`), whose normal start is another program."""
    call(command, by_launcher=True)
    posix.execv(program, [program, *sys.argv[1:]])


def call(command: str, *, by_launcher: bool = False) -> None:
    """Have the helper make this call, and end with its exit code; return where it is not served: nothing was done then."""
    if not _may_be_served(command, by_launcher=by_launcher):
        return
    try:
        request = _Request(command)
        server, nonce, process = _connect()
    except (OSError, ImportError, ValueError):
        return
    signals = _Signals(process)
    try:
        request.send(server, nonce)
        code = _answer(server)
    except OSError:
        code = None
    if code is None or (code < 0 and signals.last):
        signals.end_likewise()
    if code is None:
        signals.restore()
        server.close()
        posix.close(process)
        return
    if code < 0:
        posix.write(2, command.encode() + _LOST)
    posix._exit(code if code >= 0 else 1)  # noqa: SLF001 - without the interpreter's own end


def _may_be_served(command: str, *, by_launcher: bool) -> bool:
    first = sys.argv[1] if len(sys.argv) > 1 else "-"
    if first[:1] == "-" or first == "completion" or (command == "rye" and first in OWN_PROCESS):
        return False
    environ = posix.environ
    if IN_A_COMMAND in environ or environ.get(VARIABLE) == b"off":
        return False
    # Options of the interpreter itself: the helper was started without any.
    if not by_launcher and (len(sys.orig_argv) < 2 or sys.orig_argv[1][:1] == "-"):
        return False
    try:
        # A person may be asked, page through an answer, or stop the command: that takes the terminal's own process.
        return posix.geteuid() == posix.getuid() and not posix.isatty(0)
    except OSError:
        return False


def _inherited() -> list[int]:
    """Return the numbers of the descriptors that a program started here inherits.

    Raises:
        ValueError: a standard stream is closed, or there are more than can be sent.
    """
    found = []
    for name in posix.listdir("/proc/self/fd"):
        try:
            if posix.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            # The one that listed the folder.
            continue
    if not {0, 1, 2} <= set(found) or len(found) > _MOST_DESCRIPTORS:
        raise ValueError(found)
    return found


def socket_folder(environ: Mapping[bytes, bytes]) -> bytes:
    """Return the folder of the user's sockets.

    Raises:
        ValueError: the environment names no home.
    """
    space = environ.get(b"USER_SPACE") or environ.get(b"HOME", b"")
    if space[:1] != b"/":
        raise ValueError(space)
    return space.rstrip(b"/") + b"/" + FOLDER


def socket_name(package: str) -> bytes:
    """Return the name of the socket of an installation: by its package's folder, which no other one is."""
    info = posix.stat(package)
    return b"%x-%x.socket" % (info.st_dev, info.st_ino)


def open_folder(folder: bytes) -> int:
    """Open the folder of sockets, which must be this user's alone.

    Raises:
        OSError, ValueError: it is not there; others may enter it.
    """
    fd = posix.open(folder, posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
    info = posix.fstat(fd)
    if info.st_uid != posix.geteuid() or info.st_mode & 0o77:
        posix.close(fd)
        raise ValueError(folder)
    return fd


def connected(folder: int, name: bytes) -> _socket.socket:
    """Return a connection to the helper of an installation, whose process is this user's.

    Raises:
        OSError, ValueError: there is none.
    """
    import _socket

    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        server.settimeout(_GREETING_SECONDS)
        # By the open folder: its path may be longer than a socket's may be, or lead elsewhere by now.
        server.connect(b"/proc/self/fd/%d/%s" % (folder, name))
        if credentials(server)[1] != posix.geteuid():
            raise ValueError("the helper is another user's")
    except BaseException:
        server.close()
        raise
    return server


def credentials(connection: Any) -> tuple[int, int]:
    """Return process and user at the other end; of a helper the process that listens."""
    import _socket

    found = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)


def greeting(server: _socket.socket) -> tuple[bytes, int]:
    """Return what the helper greets with: its nonce for this call, and a descriptor of the process that makes it.

    Raises:
        OSError, ValueError: it does not greet in time, or otherwise.
    """
    import _socket

    # MSG_CMSG_CLOEXEC
    greeted, ancillary, _, _ = server.recvmsg(len(MAGIC) + NONCE_BYTES, _socket.CMSG_SPACE(4), 0x40000000)
    if greeted[: len(MAGIC)] != MAGIC or len(greeted) != len(MAGIC) + NONCE_BYTES or len(ancillary) != 1:
        raise ValueError(greeted)
    return greeted[len(MAGIC) :], int.from_bytes(ancillary[0][2][:4], sys.byteorder)


def _connect() -> tuple[_socket.socket, bytes, int]:
    package = __file__.rpartition("/cli/daemon/")[0]
    name = socket_name(package)
    folder = open_folder(socket_folder(posix.environ))
    try:
        server = connected(folder, name)
    finally:
        posix.close(folder)
    try:
        return server, *greeting(server)
    except BaseException:
        server.close()
        raise


class _Request:
    """What is sent: the command, the interpreter, the numbers of the descriptors, the words, the environment."""

    def __init__(self, command: str) -> None:
        """Put it together. Errors as `_inherited`."""
        self._descriptors = _inherited()
        words = [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in sys.argv]
        numbers = " ".join(map(str, self._descriptors))
        head = [command.encode(), sys.executable.encode(), numbers.encode(), b"%d" % len(words)]
        self._fields = b"\0".join([*head, *words, *(b"%s=%s" % pair for pair in posix.environ.items())])

    def send(self, server: _socket.socket, nonce: bytes) -> None:
        """Send it.

        Raises:
            OSError: not all of it was taken, so nothing is done.
        """
        import _socket

        request = (len(nonce) + len(self._fields)).to_bytes(4, "little") + nonce + self._fields
        server.settimeout(_SENDING_SECONDS)
        rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in self._descriptors)
        sent = server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        if sent < len(request):
            server.sendall(request[sent:])


def refusal() -> str | None:
    """Ask the helper whether it would serve a call of this process; return why not, or None.

    Raises:
        OSError, ValueError: it does not answer.
    """
    request = _Request(PROBE)
    server, nonce, process = _connect()
    try:
        request.send(server, nonce)
        said = b""
        while block := server.recv(4096):
            said += block
        if said[:1] != NOT_SERVED:
            raise ValueError("it ended before it answered")
        return said[1:].decode(errors="replace") or None
    finally:
        server.close()
        posix.close(process)


def _answer(server: _socket.socket) -> int | None:
    """Return the exit code; None where the call was not begun, -1 where it was and its end is not known."""
    server.settimeout(None)
    said = b""
    while len(said) < 3 and said != NOT_SERVED:
        try:
            block = server.recv(3 - len(said))
        except OSError:
            # The connection was reset.
            block = b""
        if not block:
            break
        said += block
    if said[:1] != STARTED:
        return None
    return said[2] if len(said) == 3 else -1


class _Signals:
    """Passes on to the process that makes the call what this process is told; what is ignored here stays ignored."""

    def __init__(self, process: int) -> None:
        import _signal  # type: ignore[import-not-found]

        self._signal, self._process = _signal, process
        self.last = 0
        self._before: dict[int, Callable[..., Any] | int | None] = {}
        for number in _FORWARDED:
            if _signal.getsignal(number) != _signal.SIG_IGN:
                self._before[number] = _signal.signal(number, self._forward)

    def _forward(self, number: int, _frame: object) -> None:
        self.last = number
        try:
            self._signal.pidfd_send_signal(self._process, number)
        except OSError:
            # It has ended, and the connection says how.
            return

    def restore(self) -> None:
        """Put back what was there: a normal start follows."""
        for number, before in self._before.items():
            self._signal.signal(number, before)

    def end_likewise(self) -> None:
        """End by the signal that ended the call, where one did: who started this process sees what it would see otherwise."""
        if self.last:
            self._signal.signal(self.last, self._signal.SIG_DFL)
            posix.kill(posix.getpid(), self.last)
