"""Events of calls and tools, as JSON lines in the project's state folder.

Written if the user's configuration says `log: {events: true}`.
`<state>/log/events.jsonl` (0600): one object an event, with time, event, item, digest and duration; never parameter values.
Beyond 10 MiB the file is moved to `events.1.jsonl`, replacing the one before.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rye.call import context
from rye.config import user_dirs
from rye.fs.atomic import closing

_MAX_BYTES = 10 * 1024 * 1024


def log_event(logger: str, root: str, event: str, **facts: Any) -> None:
    """Log an event under a logger's name, and append it to the log of events, if that is switched on.

    Parameter values never are among the facts. A log that cannot be written stops nothing.

    Raises:
        UsageError: `bad_config`, the user's configuration cannot be read.
    """
    # If `logging` was never imported there are no handlers, so skip the import.
    if "logging" in sys.modules:
        # By the statement, which waits for another thread that is just importing it.
        import logging

        logging.getLogger(logger).info(event, extra=facts)
    if not context.settings().get("log.events"):
        return
    try:
        folder = f"{user_dirs.state_dir(root)}/log"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = f"{folder}/events.jsonl"
        if os.path.exists(path) and os.stat(path).st_size > _MAX_BYTES:
            os.replace(path, f"{folder}/events.1.jsonl")
        from datetime import UTC, datetime

        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts})
        with closing(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)) as fd:
            os.write(fd, line.encode() + b"\n")
    except OSError:
        return


def of_answer(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an event says of the system's patches: IDs and counts, and where problems are; never text of files."""
    data = response.get("data") or {}
    if "successful" not in data or not response["item_id"].startswith("rye/"):
        return {}
    errors, result = data.get("errors") or (), data.get("result") or {}
    problems = [{key: one[key] for key in ("code", "docPath", "change") if key in one} for one in errors]
    facts = {key: result[key] for key in ("batchId", "status", "fileCount", "changeCount") if key in result}
    return {key: value for key, value in {**facts, "problems": problems}.items() if value}
