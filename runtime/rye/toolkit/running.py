"""What `bash` does: a shell command in the project, sandboxed as the user wants it, to its end or as a background job."""

from __future__ import annotations

import functools
import json
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from rye.errors import RyeError, UsageError, WorkspaceError
from rye.toolkit import beneath, console, jobs, outputs, process, profiles, sandbox
from rye.toolkit.capture import Capture
from rye.toolkit.output import deadline, ok, output_room
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_SECONDS = 120.0
MAX_SECONDS = 600.0

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# The kernel takes no longer argument (MAX_ARG_STRLEN, with the NUL).
_MAX_WORD = 131_071
_LAST_LINES = 3
_LAST_BYTES = 400

# Nobody sits at a terminal: what would ask, page or paint is told not to.
_QUIET = {
    "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never", "DEBIAN_FRONTEND": "noninteractive", "PIP_NO_INPUT": "1",
}  # fmt: skip


def bash(
    project_path: str, command: str, timeout: float | None = None, working_dir: str = ".", env: dict[str, str] | None = None,
    stdin: str = "", *, background: bool = False, mode: sandbox.Mode | None = None, network: Literal['on', 'off'] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/bash/bash`; see its CONFIG_SCHEMA for the parameters (`mode` is its `sandbox`).

    Raises:
        UsageError: `bad_command`, `bad_env`, `bad_config`.
        WorkspaceError: `not_a_directory` and what else an open refuses.
        RyeError: `sandbox_unavailable`, `command_failed_to_start`, and those of `jobs.start`.
    """
    _check_command(command)
    variables = {**_QUIET, **_checked(env or {})}
    given = _as_bytes("stdin", stdin)
    with Workspace(project_path) as ws, _directory(ws, working_dir) as (cwd_fd, shown):
        root = os.path.realpath(ws.root)
        cwd = os.path.join(root, shown) if shown else root
        chosen = sandbox.effective(root, mode, network)
        policy = sandbox.Policy(
            root,
            cwd,
            write_project=not profiles.read_only(root),
            network=chosen.network,
            env={**variables, "PWD": cwd},
            pass_env=chosen.pass_env,
            wanted=chosen.wanted,
        )
        confined = sandbox.confine([_shell(), "-c", command], policy, chosen.mode)
        goes_on = False
        try:
            if background:
                facts = {"command": command, "working_dir": shown or ".", "sandbox": confined.report}
                job_id = jobs.start(ws.root, confined, cwd_fd, facts, timeout, given)
                goes_on = True
                return _started(job_id, confined.report)
            seconds = DEFAULT_SECONDS if timeout is None else timeout
            return _run(ws.root, confined, cwd_fd, min(seconds, deadline().remaining()), given)
        finally:
            confined.close()
            if not goes_on:
                confined.finish()


def _check_command(command: str) -> None:
    if "\0" in command:
        raise UsageError(
            "bad_command", "The command contains a NUL character, which no command line holds.", "Use printf '\\0'."
        )
    if len(_as_bytes("command", command)) > _MAX_WORD:
        raise UsageError(
            "bad_command", f"The command is longer than {_MAX_WORD:,} bytes.",
            "Put it into a file with write and run that, or give data by stdin.",
        )  # fmt: skip


def _as_bytes(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "bad_command", f"{what} contains a lone surrogate, which no bytes are.", "Use printf '\\xHH'."
        ) from None


def _checked(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _NAME.match(name):
            raise UsageError("bad_env", f"{name[:80]!r} is no name of a variable.", "Use letters, digits and underscores.")
        if "\0" in value or len(_as_bytes(f"env {name}", value)) + len(name) + 1 > _MAX_WORD:
            raise UsageError(
                "bad_env", f"The value of {name} contains a NUL character or is longer than {_MAX_WORD:,} bytes.",
                "Give it by stdin or in a file.",
            )  # fmt: skip
    return env


@contextmanager
def _directory(ws: Workspace, path: str) -> Iterator[tuple[int, str]]:
    """Hold a folder open; yields its descriptor and its physical project-relative path ('' for the root)."""
    try:
        fd, physical = beneath.open_beneath(ws.fd, ws.components(path), beneath.DIRECTORY)
    except NotADirectoryError:
        raise WorkspaceError(
            "not_a_directory", f"{path} is not a directory.", "Give working_dir a directory inside the project."
        ) from None
    except OSError as err:
        raise ws.refusal(err, path) from None
    try:
        yield fd, os.fsdecode(b"/".join(physical))
    finally:
        os.close(fd)


def _shell() -> str:
    return next(path for path in _SHELLS if os.access(path, os.X_OK) or path == _SHELLS[-1])


def _started(job_id: str, report: dict[str, Any]) -> dict[str, Any]:
    call = f'job(action="read", job_id="{job_id}")'
    return ok(f"Started as job {job_id}. {call} shows its output.", job_id=job_id, sandbox=report)


def _run(root: str, confined: sandbox.Confined, cwd_fd: int, seconds: float, given: bytes) -> dict[str, Any]:
    kept = outputs.Outputs(root)
    stdout, stderr = (Capture(functools.partial(kept.spool, name)) for name in ("stdout", "stderr"))
    outcome = process.run(confined, cwd_fd, seconds, stdin=given, stdout=stdout, stderr=stderr)
    room = output_room()
    # Of two long ones, standard error gets a quarter.
    errors, errors_cut = stderr.shown(max(room // 4, room - stdout.total), _paging(kept.id, "stderr"))
    text, text_cut = stdout.shown(room - len(errors.encode()), _paging(kept.id, "stdout"))
    result = {
        "output": text, "stderr": errors, "exit_code": outcome.exit_code, "truncated": text_cut or errors_cut,
        "duration_ms": round(outcome.seconds * 1_000), "timed_out": outcome.why == "timed_out", "sandbox": confined.report,
        "total_bytes": stdout.total, "total_stderr_bytes": stderr.total,
    }  # fmt: skip
    if stdout.kept or stderr.kept:
        result["output_id"] = kept.id
    if outcome.signal:
        result["signal"] = outcome.signal
    if outcome.left != 0:
        result["survivors"] = outcome.left
    return _judged(result, outcome, seconds)


def _paging(output_id: str, stream: str) -> Callable[[int], str]:
    which = "" if stream == "stdout" else f", stream={json.dumps(stream)}"
    return lambda offset: f'job(action="read", job_id="{output_id}"{which}, offset={offset})'


def _judged(result: dict[str, Any], outcome: process.Outcome, seconds: float) -> dict[str, Any]:
    """Return the result as success (exit code 0), or with its error: what happened and what to do."""
    if outcome.exit_code == 0:
        return {"success": True, **result}
    error, code = _error(result, outcome, seconds)
    if outcome.why != "exited":
        end = "timed out" if outcome.why == "timed_out" else "cancelled"
        text = result["output"]
        result["output"] = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}[{end} after {outcome.seconds:.1f} s]"
    return {"success": False, "error": str(error), "code": code, **result}


def _error(result: dict[str, Any], outcome: process.Outcome, seconds: float) -> tuple[RyeError, str]:
    if outcome.why == "timed_out":
        found = RyeError(
            "timed_out",
            f"The command ran past its timeout of {seconds:g} s and was ended, with all that it had started. "
            "What it printed until then is in output.",
            f"Give a larger timeout (at most {MAX_SECONDS:g}), or background=true for what shall go on running.",
        )  # fmt: skip
    elif outcome.why == "cancelled":
        found = RyeError(
            "cancelled", "The call was cancelled: the command was ended, with all that it had started.",
            "What it printed until then is in output.",
        )  # fmt: skip
    elif outcome.exit_code is None and outcome.signal is None:
        found = RyeError(
            "command_lost", "The process that watches over the command was killed, and the command with it.",
            "A command must not end its parent process ($PPID).",
        )  # fmt: skip
    else:
        found = RyeError("command_failed", f"The command {_ending(outcome)}.", _advice(result, outcome))
    return found, found.code


def _ending(outcome: process.Outcome) -> str:
    if outcome.signal:
        return f"was ended by {outcome.signal}"
    code = outcome.exit_code or 0
    by_signal = f" (as a shell says that {process.signal_name(code - 128)} ended a program)" if 128 < code < 160 else ""
    return f"ended with exit code {code}{by_signal}"


def _advice(result: dict[str, Any], outcome: process.Outcome) -> str:
    said = result["stderr"].strip() or result["output"].strip()
    last = console.last("\n".join(said.splitlines()[-_LAST_LINES:]).encode(), _LAST_BYTES)[0]
    told = f"It said last: {last}" if last else "It printed nothing."
    if outcome.exit_code == 127:
        return f"{told} A program was not found: `command -v NAME` tells whether one is installed; name others by their path."
    if outcome.exit_code == 126:
        return f"{told} A file was found but could not be run: make it executable, or call it by its interpreter."
    return told
