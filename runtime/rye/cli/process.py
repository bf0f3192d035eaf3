"""How a command's process begins and ends: its streams, what a refusal prints, its exit code. Both without needless work."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` makes enumerations, which takes time; this has no stubs
import atexit
import gc
import io
import os
import sys

# As `typing` has it: what is loaded before `run` is loaded while garbage is still sought among it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, NoReturn

# Objects between two collections: importing makes tens of thousands, hardly one of which is garbage.
_ALLOCATIONS = 100_000

EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRUST: Final = 3
# What the executor answers when the call itself, or the signature, is at fault.
_USAGE_CODES = frozenset(
    {"invalid_parameters", "item_not_found", "bad_item_id", "unknown_type", "bad_call", "project_not_found", "reserved_id"}
)


def run(main: Callable[[], int]) -> NoReturn:
    """Be a command: call `main`, then end the process with its exit code.

    Collecting garbage while modules are imported and taking every module apart at the end takes 12 ms. The process skips both,
    unless a thread or a function of `atexit` waits for the end.
    """
    # Raised, not switched off: a command that runs for long must still collect its garbage.
    gc.set_threshold(_ALLOCATIONS)
    code = main()
    if not _has_pending_work():
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)
        # Skips the teardown of all modules; the streams were flushed above, since `_exit` does not.
        os._exit(code)
    sys.exit(code)


def _has_pending_work() -> bool:
    """Tell whether something is still to be done at the end: by a thread, or a function registered for it."""
    if atexit._ncallbacks():  # noqa: SLF001 - there is no public way to ask
        return True
    # Asked of `sys.modules`, as importing `threading` only to find no thread would cost time.
    threading = sys.modules.get("threading")
    return threading is not None and any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread())


def run_command(command: str, run: Callable[[], int], *, as_json: bool = False) -> int:
    """Do what a command was asked for; return its exit code.

    Whatever goes wrong is said in one line on standard error; with `as_json` a refusal is JSON on standard output, too.
    """
    _heed_children()
    # Before anything can print: a parent that closed the descriptors leaves the streams None.
    _repair_streams()
    _drop_current_folder_from_path()
    try:
        return _guarded(command, run, as_json=as_json)
    except KeyboardInterrupt:
        # The shell's code for a process that SIGINT ended (128 + 2).
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The shell's code for a process that SIGPIPE ended (128 + 13).
        return 141
    except OSError as err:
        from rye.cli.terminal import harmless

        print(harmless(f"{command}: {_message(err, _discard_stdout())}"), file=sys.stderr)
        return 1


def _message(err: OSError, unprinted: OSError | None) -> str:
    unprinted = err if isinstance(err, UnprintedError) else unprinted
    if unprinted is not None:
        return (
            f"The answer cannot be printed: {unprinted.strerror or unprinted}. What the command did, if anything, remains done."
        )
    where = f"{err.filename!r}: " if err.filename is not None else ""
    return f"{where}{err.strerror or err}. Check the folder, the disk and the permissions."


def _guarded(command: str, run: Callable[[], int], *, as_json: bool) -> int:
    """Run the command, and report a refusal. The answer is flushed here, also help, so that a failed write is an error."""
    from rye.errors import RyeError, TrustError, UsageError

    try:
        return run()
    except RyeError as err:
        from rye.cli.terminal import harmless, print_json

        if as_json:
            details = {"details": err.details} if err.details else {}
            print_json({"status": "error", "error": str(err), "code": err.code, **details})
        # The one place where all refusals are printed: a path or a word in one may hold anything.
        print(harmless(f"{command}: {err}"), file=sys.stderr)
        return 3 if isinstance(err, TrustError) else 2 if isinstance(err, UsageError) else 1
    finally:
        sys.stdout.flush()


def _heed_children() -> None:
    """Take back what a parent blocked, and that it ignored its children: what this process starts would inherit both.

    Bubblewrap then waits for ever, and the exit code of a search is lost.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _repair_streams() -> None:
    """Give a command that was started with closed streams some, and let none fail at a character it cannot show."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - for good
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal of another encoding would otherwise raise UnicodeEncodeError in the middle of an answer.
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_stdout() -> OSError | None:
    """Drop what is still to be printed, and return why, if that is what failed: Python would try again at the end."""
    try:
        sys.stdout.flush()
    except OSError as err:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return err
    return None


def _drop_current_folder_from_path() -> None:
    """Modules are never taken from the folder that the command is called in."""
    import site

    try:
        here = os.getcwd()
    except OSError:
        # The folder was deleted meanwhile.
        here = ""
    # A virtual environment may lie in the current folder: its own packages must stay importable.
    installed = site.getsitepackages()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".", here) or entry in installed]


def exit_code(response: dict[str, Any]) -> int:
    """Return the exit code for a response of the executor."""
    if response["status"] != "error":
        return EXIT_OK
    # Parameters that the schema refuses are the caller's mistake, also where the refusal comes in the tool's envelope.
    if response["metadata"]["ran"] and response.get("code") != "invalid_parameters":
        # Of a command that ended by itself it is the command's own.
        code = (response["data"] or {}).get("exit_code")
        return code if response.get("code") == "command_failed" and code.__class__ is int and 0 < code < 256 else EXIT_NO
    from rye.trust.verify import VERDICTS

    code = response.get("code")
    # First: an id that nobody serves is the caller's mistake, although files may be judged by the same word.
    if code in _USAGE_CODES:
        return EXIT_USAGE
    return EXIT_TRUST if code in (*VERDICTS, "lockfile_mismatch", "trust_store_unreadable") else EXIT_NO


class UnprintedError(OSError):
    """The answer cannot be written to standard output."""
