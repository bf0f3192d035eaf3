# rye:signed:2026-11-21T08:47:14Z:68ab08be0118b69d87cd20ab941a856b677ccc5c1a7a2e4a8bca98c80acb11f7:1SbLpdWF9KM1SORSGeI50a6R4jN-W8cBkHJy-bvZvAchk6kpqcM22BAu4Loq9ipqV_QxTlVFd5n-15KwVbB0CQ==:b63173adc9f5699f
"""Run a shell command in the project and return what it printed and its exit code.

Requires: command. It runs in bash (or sh) in working_dir, without a terminal: what would ask gets no answer; give input by
stdin. timeout in seconds (default 120, at most 600). background=true returns a job_id at once; then use job.
Does not: keep a directory or variables from call to call; leave anything running (background=true does); write outside the
project where the sandbox holds; record what it changes, so undo does not bring it back.
Side effects: those of the command. On timeout or cancellation it ends with all that it started; what it printed is kept.
Returns: output (stdout), stderr, exit_code, truncated, duration_ms, timed_out, sandbox (what holds and what does not). success
means exit code 0; else error says what happened. Escape codes are removed. Over 50 KB the beginning and the end are shown, and
a [tool_result: …] line names the job call that reads the rest.
Prefer it to other tools for building, testing and git only; for files use read, grep, glob, ls and edit_lines: they are
confined, paged and carry line IDs.
"""

from rye.toolkit import running

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/bash"
__tool_description__ = "Run a shell command: sandboxed where possible, ended whole, output in bounds"
__item_id__ = "rye/bash/bash"
__requires_rye__ = ">=0.1"
__timeout__ = 615
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}

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


def execute(params: dict, project_path: str) -> dict:
    """Return how the command ended, or the job it became."""
    return running.bash(project_path, mode=params.pop("sandbox", None), **params)
