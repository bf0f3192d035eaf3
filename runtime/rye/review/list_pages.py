"""Jobs, tools and keys as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rye.process import job_report
from rye.review.approvals import Waiting
from rye.review.frame import Frame, button, moment, shown, shown_lines, table
from rye.trust.verify import TrustedKey

_COMMAND = 300


def jobs(frame: Frame, found: Sequence[Mapping[str, Any]]) -> str:
    """Return the list of jobs, given by their records."""
    rows = [
        [
            f'<a data-item href="{frame.base}/jobs/{escape(one["job_id"])}"><code>{shown(_short(one["command"]))}</code></a>',
            escape(_status(one)),
            moment(float(one["started"])),
            _stop(frame, one, "jobs"),
        ]
        for one in found
    ]
    return table(
        "Background jobs, newest first", ("Command", "Status", "Started", "Stop"), rows, "No command runs in the background."
    )


def _short(command: str) -> str:
    text = " ".join(command.split())
    return text if len(text) <= _COMMAND else f"{text[:_COMMAND]}…"


def _status(record: Mapping[str, Any]) -> str:
    return job_report.status_words(job_report.status_fields(dict(record)))


def _stop(frame: Frame, record: Mapping[str, Any], back: str) -> str:
    # What a killed supervisor left is ended by the same call.
    if record["status"] not in ("running", "lost"):
        return ""
    name = _short(record["command"])[:60]
    return frame.form("jobs/end", button("Stop", f"end {record['job_id']}", "stop", name), {"back": back}, "inline")


def job(frame: Frame, record: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return one job: its record, and the window of its output that a call of the tool `job` gave."""
    older = ""
    if answer.get("offset"):
        older = (
            f'<p class="note">The last {len(answer["output"]):,} characters; {answer["offset"]:,} bytes are before them.</p>'
        )
    text = shown_lines(answer["output"])
    return (
        f'<p class="way"><a data-key="b" href="{frame.base}/jobs">All jobs</a></p>'
        f'<pre class="command" tabindex="0" role="region" aria-label="command">{shown_lines(record["command"])}</pre>'
        f'<div class="facts"><span>{escape(_status(record))}, started {moment(float(record["started"]), whole=True)}</span>'
        f"{_stop(frame, record, 'jobs/' + record['job_id'])}</div>{older}"
        f'<pre class="output" id="output" tabindex="0" role="region" aria-label="output">{text}</pre>'
    )


def tools(frame: Frame, found: Sequence[Mapping[str, Any]], text: str) -> str:
    """Return the catalogue: each tool with its verdict, who signed it, and what it may do."""
    wanted = text.casefold()
    chosen = [
        row
        for row in found
        if wanted in f"{row['item_id']} {row.get('description', '')} {row.get('verdict', '')} {row.get('owner', '')}".casefold()
    ]
    rows = [[_tool(row), _verdict(row), _signer(row), shown(str(row.get("space") or "")), shown(_may(row))] for row in chosen]
    search = (
        f'<form method="get" action="{frame.base}/tools" role="search" class="filters" aria-label="Search tools">'
        f'<label>Search <input type="search" id="search" name="text" value="{escape(text)}" '
        'placeholder="id, description, signer"></label>'
        "<button>Search</button></form>"
    )
    columns = ("Tool", "Verdict", "Signed by", "From", "It may")
    return search + table(f"{len(rows):,} of {len(found):,} tools", columns, rows, "No tool fits.")


def _tool(row: Mapping[str, Any]) -> str:
    name = f'<span data-item tabindex="-1"><code>{shown(row["item_id"])}</code></span>'
    about = f'<span class="about">{shown(str(row["description"]))}</span>' if row.get("description") else ""
    details = ""
    if row.get("docstring"):
        details = f"<details><summary>More</summary><pre>{shown_lines(row['docstring'])}</pre></details>"
    return f"{name}{about}{details}"


def _verdict(row: Mapping[str, Any]) -> str:
    verdict = str(row.get("verdict") or "")
    # Of what runs tools the hint only says that it is none itself.
    has_hint = row.get("hint") and row.get("tool_type") not in ("runtime", "primitive")
    hint = f'<span class="about">{shown(str(row["hint"]))}</span>' if has_hint else ""
    return f'<span class="tag {"good" if verdict == "valid" else "bad"}">{shown(verdict)}</span>{hint}'


def _signer(row: Mapping[str, Any]) -> str:
    owner = f"{shown(str(row['owner']))} " if row.get("owner") else ""
    return f'{owner}<code class="name">{shown(str(row["signer"])[:16])}</code>' if row.get("signer") else ""


def _may(row: Mapping[str, Any]) -> str:
    if row.get("tool_type") in ("runtime", "primitive"):
        return "run tools"
    if row.get("space") == "system":
        effects: Mapping[str, bool] = row.get("effects") or {}
        return "read only" if effects.get("read_only") else "change files" if effects else ""
    return ", ".join(row.get("permissions") or ()) or "nothing"


def keys(frame: Frame, counting: Iterable[TrustedKey], waiting: Sequence[Waiting], problems: Sequence[str]) -> str:
    """Return the keys that count, and those that wait for the user, with what they would admit."""
    rows = [
        [f"<code>{one.public.fingerprint}</code>", shown(one.owner), shown(one.role), f"<code>{one.public.digest}</code>"]
        for one in counting
    ]
    text = "".join(_waiting(frame, one) for one in waiting) or '<p class="empty">No key of this project waits for you.</p>'
    notes = "".join(f'<p class="note">{shown(one)}</p>' for one in problems)
    known = table("Keys that count in this project", ("Fingerprint", "Owner", "Role", "Full digest"), rows, "No key counts.")
    return f"<h2>Waiting for you</h2>{text}<h2>Known</h2>{notes}{known}"


def _waiting(frame: Frame, one: Waiting) -> str:
    name = one.key.public.fingerprint
    rows = [[f"<code>{shown(row.item_id)}</code>", shown(row.effects)] for row in one.rows]
    admitted = table(f"What {name} would admit", ("Item", "What it is and may do"), rows, "It would admit nothing yet.")
    if one.asked:
        field = '<input name="code" required inputmode="numeric" autocomplete="off" size="8">'
        act = (
            "<p>Type the code that <code>rye review</code> shows at its terminal now.</p>"
            f"<label>Code {field}</label> {button('Approve', 'confirm', 'approve', name)}"
        )
    else:
        act = button("Ask at the terminal", "ask", "approve", name)
    form = frame.form("keys/approve", act, {"key": one.key.public.digest, "shown": one.seen}, "approve")
    title = f'<h3 tabindex="-1" data-item><code>{name}</code>, says it belongs to {shown(one.key.owner)}</h3>'
    about = f"<p>Full digest <code>{one.key.public.digest}</code></p>"
    return f'<section data-scope class="key" id="k-{name}" aria-label="key {name}">{title}{about}{admitted}{form}</section>'
