# rye:signed:2026-11-28T17:10:51Z:30c0b99a3833b4953d6fc0c4cc7c5820be243565552bc01745e641649b672f85:6Cc2SW8rXrlc9qnqpm94BalIavqMCX83jl2f6vR9ynQh2y8on-0Mt3Mblup2MR6PO84LGeUtazAOy0PUQqT1CA==:b63173adc9f5699f
"""Run a shell command in the project and return what it printed and its exit code.

Requires: command. It runs in bash (or sh) in working_dir, without a terminal: what would ask gets no answer; give input by
stdin. timeout in seconds (default 120, at most 600). background=true returns a job_id at once; then use job.
Does not: keep a directory or variables from call to call; leave anything running (background=true does); write outside the
project where the sandbox holds.
Side effects: those of the command; what it changes in the project is recorded, so that undo takes it back. On timeout or
cancellation it ends with all that it started; what it printed is returned. For a model it goes on as a job after its timeout.
Returns: output (stdout), stderr, exit_code, truncated, duration_ms, timed_out, sandbox (what holds and what does not). success
means exit code 0; else error says what happened. Escape codes are removed. Over 50 KB the beginning and the end are shown, and
a [tool_result: …] line names the job call that reads the rest.
Prefer it to other tools for building, testing and git only; for files use read, grep, glob, ls and edit_lines: they are
confined, paged and carry line IDs.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import Any

from rye import primary_tools
from rye.call import context, profile
from rye.call.command_channel import NONE, VARIABLE, CommandChannel
from rye.call.context import command_budget, deadline
from rye.call.results import call_text, ok
from rye.errors import RyeError, UsageError
from rye.journal import recorded_command, tree_changes
from rye.journal.recorded_command import Command
from rye.plain_class import changed
from rye.process import job_report, output_files, run, terminal_text
from rye.process.autorun import git_settings
from rye.process.output_files import Capture
from rye.process.sandbox_hints import explained
from rye.sandbox import sandbox
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/bash"
__tool_description__ = "Run a shell command: sandboxed where possible, ended whole, output in bounds"
__item_id__ = "rye/bash/bash"
__requires_rye__ = ">=0.1"
__timeout__ = 615
__needs__ = ["file_tool"]
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
__agent_description__ = """Run a shell command in the project, sandboxed; after timeout it goes on as a job.
Requires: command; each is a new shell without a terminal.
Does not: keep cd or variables; write outside the project, if the sandbox holds.
Side effects: the command's.
Returns: what it printed, [stderr], [exit code N] if not 0; of long output the ends, and the call for the rest.
Prefer it to build, test and use git."""
__agent_parameters__ = {
    "command": "",
    "timeout": "Seconds: 120, at most 600",
    "working_dir": "",
    "background": "Start as a job",
}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "maxLength": 131071, "description": "Shell command"},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 600,
            "description": "Seconds until it is ended; default 120, none for a background job",
        },
        "working_dir": {
            "type": "string",
            "format": "workspace-path",
            "default": ".",
            "description": "Directory inside the project to run in",
        },
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "maxProperties": 200,
            "default": {},
            "description": "Environment variables to add",
        },
        "stdin": {"type": "string", "maxLength": 4000000, "default": "", "description": "Text for its standard input"},
        "background": {"type": "boolean", "default": False, "description": "Return a job_id at once and let it run on"},
        "sandbox": {
            "type": "string",
            "enum": ["auto", "require", "off"],
            "description": "Ask for a stricter sandbox than the user set; the stricter of the two applies",
        },
        "network": {
            "type": "string",
            "enum": ["on", "off"],
            "description": "off: no network, where the sandbox holds that; the stricter applies",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}

_DEFAULT_SECONDS, _MAX_SECONDS = 120.0, 600.0
# So much of the call's own time must be left to make a job of the command.
_TO_HAND_ON = 8.0

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# The kernel takes no longer argument (MAX_ARG_STRLEN, with the NUL).
_MAX_WORD = 131_071
_HINTS = {
    126: "A file was found but could not be run: make it executable, or call it by its interpreter.",
    127: "A program was not found: `command -v NAME` tells whether one is installed; name others by their path.",
}
_LAST_LINES, _LAST_BYTES, _TRIES = 3, 400, 5

# There is no terminal: these variables keep programs from asking, paging, colouring and advertising; git takes the
# message that an editor would be given.
_QUIET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return how the command ended, or the job it became."""
    _check_command(params["command"])
    variables = {**_QUIET, **_checked(params.get("env", {}))}
    input_bytes = _as_bytes("stdin", params.get("stdin", ""))
    with running_commands.turn, Workspace(project_path) as ws, ws.held(params.get("working_dir", ".")) as (cwd_fd, parts):
        shown = os.fsdecode(b"/".join(parts))
        cwd = f"{ws.real}/{shown}" if shown else ws.real
        background = params.get("background", False)
        settings = sandbox.effective(ws.real, params.get("sandbox"), params.get("network"))
        policy = sandbox.Policy(
            ws.real,
            cwd,
            # A read-only profile holds for commands too, not only for the file tools.
            write_project=not profile.read_only(ws.real),
            network=settings.network,
            env={**variables, "PWD": cwd},
            pass_env=settings.pass_env,
            home_files=git_settings.identity_file(ws.real),
            required=settings.required,
            cover_absent=background,
            identity=ws.identity,
        )
        if background:
            return _as_job(ws, policy, settings.mode, cwd_fd, params, input_bytes)
        # The call's own deadline may be nearer, and a command that outlives it would lose its output.
        seconds = min(params.get("timeout", _DEFAULT_SECONDS), deadline().remaining())
        for _ in range(_TRIES):
            # `rt` is served by threads of this process: file tools run outside the sandbox, under their own checks.
            with CommandChannel(ws.real, functools.partial(primary_tools.file_tool, ws.real)) as channel:
                start = functools.partial(_run, channel, cwd_fd, seconds, input_bytes)
                env = {**channel.environment, **policy.env}
                result = _recorded(ws, changed(policy, env=env), settings.mode, params["command"], start)
            # Else what the sandbox covers was exchanged while it was made, as git does with its settings: nothing ran.
            if result.get("code") != sandbox.NOT_MADE:
                break
        return result


def _recorded(
    ws: Workspace, policy: sandbox.Policy, mode: sandbox.Mode, command: str, start: Callable[[Command], dict[str, Any]]
) -> dict[str, Any]:
    """Run a command in its sandbox with `start`, and return its result with what it changed and what the sandbox did."""
    with _begun(ws, policy, mode, command) as begun:
        try:
            result = start(begun)
        finally:
            # A job's supervisor does this at its end.
            recorded, set_aside = (tree_changes.RecordedChanges(), []) if begun.job_ids else begun.end()
    result |= tree_changes.fields(recorded)
    return explained(result, ws.real, set_aside)


def _as_job(
    ws: Workspace, policy: sandbox.Policy, mode: sandbox.Mode, cwd_fd: int, params: dict[str, Any], input_bytes: bytes
) -> dict[str, Any]:
    """Start a background job: its supervisor makes the looks, and ends what was made for the sandbox."""
    # Nobody serves it: this process may end before the job does.
    policy = changed(policy, env={**policy.env, VARIABLE: NONE})
    with _begun(ws, policy, mode, params["command"]) as begun:
        try:
            job_id = begun.become_job(cwd_fd, params.get("timeout"), input_bytes)
        except BaseException:
            begun.drop()
            raise
    waits = call_text("job", action="wait", job_id=job_id)
    text = f"Started as job {job_id}. {waits} waits for its end and shows its output."
    return ok(text, job_id=job_id, sandbox=begun.confined.report)


def _begun(ws: Workspace, policy: sandbox.Policy, mode: sandbox.Mode, command: str) -> Any:
    def confine(token: str) -> sandbox.Confined:
        return sandbox.confine([_shell(), "-c", command], changed(policy, token=token), mode)

    folder = policy.cwd[len(ws.real) + 1 :]
    return recorded_command.begun(ws, __item_id__, command, folder, confine, mode, policy.required)


def _check_command(command: str) -> None:
    if "\0" in command:
        what = "The command contains a NUL character, which no command line holds."
        raise UsageError("bad_command", what, "Use printf '\\0'.")
    if len(_as_bytes("command", command)) > _MAX_WORD:
        why = f"The command is longer than {_MAX_WORD:,} bytes."
        raise UsageError("bad_command", why, "Put it into a file with write and run that, or give data by stdin.")


def _as_bytes(parameter: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        why = f"{parameter} contains a lone surrogate, which no bytes are."
        raise UsageError("bad_command", why, "Use printf '\\xHH'.") from None


def _checked(env: dict[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not _NAME.match(name):
            raise UsageError("bad_env", f"{name[:80]!r} is no name of a variable.", "Use letters, digits and underscores.")
        # Name, equals sign and value are one string to the kernel, with the same limit as an argument.
        if "\0" in value or len(_as_bytes(f"env {name}", value)) + len(name) + 1 > _MAX_WORD:
            why = f"The value of {name} contains a NUL character or is longer than {_MAX_WORD:,} bytes."
            raise UsageError("bad_env", why, "Give it by stdin or in a file.")
    return env


def _shell() -> str:
    # Fixed places, not PATH: the project may have put a program of this name there.
    return next(path for path in _SHELLS if os.access(path, os.X_OK) or path == _SHELLS[-1])


def _run(channel: CommandChannel, cwd_fd: int, seconds: float, stdin: bytes, command: Command) -> dict[str, Any]:
    confined = changed(command.confined, fds=(*command.confined.fds, channel.fd))
    stored = output_files.StoredOutputs(command.ws.fd)
    goes_on = context.current().options.agent_defaults and command.token and seconds < deadline().remaining() - _TO_HAND_ON
    more: dict[str, Any] = {"asked": (channel.own_fd, channel.serve)}
    if goes_on:
        held = running_commands.handle(command.token)[1]
        more |= {"held": held, "hand_on": functools.partial(command.hand_on, cwd_fd)}
    stdout, stderr = (Capture(functools.partial(stored.create, name)) for name in ("stdout", "stderr"))
    try:
        outcome = run.run(confined, cwd_fd, seconds, stdin=stdin, stdout=stdout, stderr=stderr, **more)
    finally:
        # What a call of the command wrote later would come after the look.
        channel.end()
    budget = command_budget()
    # Of two long ones, standard error gets a quarter.
    errors, errors_cut = stderr.shown(max(budget // 4, budget - stdout.total), stored.id, "stderr")
    text, text_cut = stdout.shown(budget - len(errors.encode()), stored.id, "stdout")
    result = {
        "output": text,
        "stderr": errors,
        "exit_code": outcome.exit_code,
        "truncated": text_cut or errors_cut,
        "duration_ms": round(outcome.seconds * 1_000),
        "timed_out": outcome.why in ("timed_out", "handed_on"),
        "sandbox": confined.report,
        "total_bytes": stdout.total,
        "total_stderr_bytes": stderr.total,
    }
    result |= {"output_id": stored.id} if stdout.stored or stderr.stored else {}
    result |= {"signal": outcome.signal} if outcome.signal else {}
    if command.job_ids:
        result["output"] = job_report.with_line(text, _goes_on(command.job_ids[0], seconds))
        return {"success": True, **result, "job_id": command.job_ids[0], "status": "running"}
    # None counts as well: the reaper was killed, so nobody knows.
    if outcome.survivors != 0:
        result["survivors"] = outcome.survivors
    return _judged(result, outcome, seconds, made=outcome.exit_code != 1 or confined.was_made())


def _goes_on(job_id: str, seconds: float) -> str:
    waits, ends = (call_text("job", action=action, job_id=job_id) for action in ("wait", "end"))
    most = f"{recorded_command.JOB_SECONDS / 3600:g} h at most"
    return (
        f"[still running after {seconds:g} s; it goes on as a job ({most}): {waits} shows what it prints now, {ends} ends it]"
    )


def _judged(result: dict[str, Any], outcome: run.Outcome, seconds: float, *, made: bool) -> dict[str, Any]:
    """Return the result as success (exit code 0), or with its error: what happened and what to do."""
    if outcome.exit_code == 0:
        return {"success": True, **result}
    error, code = _error(result, outcome, seconds, made=made)
    result |= {"hint": hint} if (hint := _HINTS.get(outcome.exit_code or 0)) else {}
    if outcome.why != "exited":
        end = "timed out" if outcome.why == "timed_out" else "cancelled"
        result["output"] = job_report.with_line(result["output"], f"[{end} after {outcome.seconds:.1f} s]")
    return {"success": False, "error": str(error), "code": code, **result}


def _error(result: dict[str, Any], outcome: run.Outcome, seconds: float, *, made: bool) -> tuple[RyeError, str]:
    if not made:
        found = sandbox.not_made(result["stderr"].strip()[-_LAST_BYTES:])
    elif outcome.why == "timed_out":
        found = RyeError(
            "timed_out",
            f"The command ran past its timeout of {seconds:g} s and was ended, with all that it had started. "
            "What it printed until then is kept.",
            f"Give a larger timeout (at most {_MAX_SECONDS:g}), or background=true for what shall go on running.",
        )
    elif outcome.why == "cancelled":
        why = "The call was cancelled: the command was ended, with all that it had started."
        found = RyeError("cancelled", why, "What it printed until then is kept.")
    elif outcome.exit_code is None and outcome.signal is None:
        why = "The process that watches over the command was killed, and the command with it."
        found = RyeError("command_lost", why, "A command must not end its parent process ($PPID).")
    else:
        found = RyeError("command_failed", f"The command {run.ending(outcome)}.", _advice(result, outcome))
    return found, found.code


def _advice(result: dict[str, Any], outcome: run.Outcome) -> str:
    printed = result["stderr"].strip() or result["output"].strip()
    last = terminal_text.last("\n".join(printed.splitlines()[-_LAST_LINES:]).encode(), _LAST_BYTES)[0]
    message = f"Its last message: {last}" if last else "It printed nothing."
    hint = _HINTS.get(outcome.exit_code or 0)
    return f"{message.rstrip('.')}. {hint}" if hint else message
