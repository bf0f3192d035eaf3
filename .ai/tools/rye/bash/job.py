# rye:signed:2026-11-21T09:07:05Z:a63d9cd591a58119bac5cdd5e7ffefe25ec3ca0b3a86cac8e517c2d03e96ed6d:saL6strfbD_K6MayoLXiQjKme2cP7Ho3NIGkizlO6LgSJKjR0S0Nj9z-NLz-duRkqaqByn7g0LN1kF1et9B6CA==:b63173adc9f5699f
"""Work with background jobs that bash started (background=true), and read on in output that bash cut.

Requires: action; job_id except for list. write takes data, wait takes timeout (default 30, at most 600).
Does not: start jobs; keep more of an output than its first and last 32 MB.
Side effects: write and close_stdin feed the job's standard input; end ends the job with all that it started (asked first where
it can be, then killed). The others change nothing. Jobs live on when this server ends; any later call can use them.
Returns: output, job_id, status (running, ended, lost: its supervisor was killed), exit_code, why, offset, next_offset,
total_bytes, truncated. Both streams of a job stand in one output, as they came. list: jobs [{job_id, status, exit_code, command,
working_dir, started}]. read shows up to 50 KB from `offset` (bytes from 0; negative: from the end); pass next_offset to see what is
new; a cut ends with a [tool_result: …] line naming the call that continues. wait returns at the end or after timeout, with the
last output, or that from offset on.
Prefer it to sleeping in bash: wait returns as soon as the job is over.
"""

from rye.toolkit import attending

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/bash"
__tool_description__ = "Background jobs, running processes: list, read output, wait, send input, end; read on in long output"
__item_id__ = "rye/bash/job"
__requires_rye__ = ">=0.1"
__timeout__ = 615
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["list", "read", "wait", "write", "close_stdin", "end"],
            "description": "What to do",
        },
        "job_id": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "The job, or the output_id of a bash result"},
        "offset": {
            "type": "integer",
            "minimum": -1000000000000000,
            "maximum": 1000000000000000,
            "description": "First byte of output, from 0; negative counts from the end",
        },
        "stream": {
            "type": "string",
            "enum": ["stdout", "stderr"],
            "default": "stdout",
            "description": "Of a bash result's kept output: which stream to read",
        },
        "data": {"type": "string", "maxLength": 1000000, "description": "Text to write; end a line with a newline"},
        "timeout": {"type": "number", "minimum": 0, "maximum": 600, "description": "Longest wait in seconds (default 30)"},
    },
    "required": ["action"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return what the action gives."""
    return attending.job(project_path, **params)
