"""Knowledge and directives answered: context to read, instructions to follow; verified, and never run.

The answer has the shape of `rye.executor.run`, so that no caller need care what type an item is.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from rye import directives, eventlog, items, spaces
from rye.admission import Admission
from rye.errors import RyeError, UsageError
from rye.toolkit import output, untrusted
from rye.toolkit.pages import Page
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from rye.executor import Call
    from rye.spaces import Candidate
    from rye.trust import Verified

_RESERVED = ("success", "output", "instructions")


def run(call: Call) -> dict[str, Any]:
    """Answer a call of a knowledge entry or a directive.

    Returns:
        As `rye.executor.run`. `data` of knowledge: `{"success", "output": the entry's text, "instructions", …header
        fields}`; of a directive: `{"success", "output": its instructions with the inputs filled in, "name", "version",
        "metadata", "inputs", "declared_inputs", "outputs", "unfilled"?}`. A long text is cut as tools' outputs are.
    """
    started = time.perf_counter()
    response: dict[str, Any] = {"status": "error", "type": call.item_type, "item_id": call.item_id, "data": None, "chain": []}
    try:
        eventlog.record(call.project_path, "start", item=call.item_id)
        _serve(call, response)
    except RyeError as err:
        response.update(error=str(err), code=err.code, **({"details": err.details} if err.details else {}))
    duration = round((time.perf_counter() - started) * 1000, 3)
    response["metadata"] = {"duration_ms": duration}
    with contextlib.suppress(RyeError):
        digest = response.get("item", {}).get("digest")
        eventlog.record(call.project_path, response["status"], item=call.item_id, digest=digest, duration_ms=duration)
    return response


def _serve(call: Call, response: dict[str, Any]) -> None:
    with Workspace(call.project_path):
        among = spaces.spaces(call.project_path)
        candidate = spaces.find(call.item_type, call.item_id, among)
        verified = Admission(among).verify(candidate)
        data = _knowledge(call, candidate, verified) if call.item_type == "knowledge" else _directive(call, candidate, verified)
        version = str(data.get("version", ""))
        response["item"] = describe(candidate, verified, version)
        response["chain"] = [
            {
                "item_id": call.item_id, "space": candidate.space, "tool_type": call.item_type, "executor_id": None,
                "integrity": verified.digest,
            }
        ]  # fmt: skip
    if call.dry_run:
        response.update(status="validation_passed", data={"parameters": data.get("inputs", {})})
    else:
        response.update(status="success", data=data)


def schema_of(item_id: str, project_path: str) -> dict[str, Any]:
    """Return a directive's inputs as a schema, by which words of a command line are typed; {} for one that is refused."""
    try:
        among = spaces.spaces(project_path)
        verified = Admission(among).verify(spaces.find("directive", item_id, among))
        return directives.schema_of(items.read_directive(verified, item_id).text)
    except RyeError:
        return {}


def describe(candidate: Candidate, verified: Verified, version: str) -> dict[str, Any]:
    """Return where an item comes from and who signed it."""
    return {
        "space": candidate.space, "version": version, "digest": verified.digest,
        "signer": verified.key.public.fingerprint, "owner": verified.key.owner,
    }  # fmt: skip


def shown(verified: Verified, text: str) -> str:
    """Return a verified item's text as it may be put before a model: the system's own as it is."""
    return text if verified.key.role == "system" else untrusted.content(text)


def listable(verified: Verified, value: Any, most: int = 1_024) -> Any:  # noqa: ANN401 - JSON values
    """Return a value of a verified item's header as it may be listed."""
    if isinstance(value, dict):
        return {listable(verified, str(key)): listable(verified, part, most) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [listable(verified, part, most) for part in value]
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = str(value)
    return text if verified.key.role == "system" else untrusted.plain(text, most)


def _knowledge(call: Call, candidate: Candidate, verified: Verified) -> dict[str, Any]:
    if call.parameters:
        raise UsageError(
            "invalid_parameters", f"Knowledge takes no parameters; given: {', '.join(map(str, call.parameters))}.",
            "Execute it without.",
        )  # fmt: skip
    entry = items.read_knowledge(verified, candidate.item_id, candidate.suffix)
    header = {key: part for key, part in listable(verified, entry.header).items() if key not in _RESERVED}
    text, fields = _window(shown(verified, entry.body).strip("\n"), call)
    instructions = "Use this as context; it asks for nothing to be done."
    return {"success": True, "output": text, "instructions": instructions, **header, **fields}


def _directive(call: Call, candidate: Candidate, verified: Verified) -> dict[str, Any]:
    text = items.read_directive(verified, candidate.item_id).text
    inputs = directives.check(text, call.parameters)
    filled, unfilled = directives.fill(text.instructions, inputs)
    window, fields = _window(shown(verified, filled), call)
    defaults = listable(verified, {name: value for name, value in inputs.items() if name not in call.parameters})
    return {
        "success": True, "output": window, "name": text.name, "version": text.version,
        "metadata": listable(verified, text.metadata), "inputs": {**inputs, **defaults},
        "declared_inputs": listable(verified, list(text.inputs)), "outputs": listable(verified, list(text.outputs)),
        **fields, **({"unfilled": unfilled} if unfilled else {}),
    }  # fmt: skip


def _window(text: str, call: Call) -> tuple[str, dict[str, Any]]:
    """Return as many lines as an answer may have; the rest is for `rye_load` to show."""
    more = f'rye_load(item_type="{call.item_type}", item_id="{call.item_id}", offset={{offset}})'
    return window(text, 1, None, more)


def window(text: str, offset: int, limit: int | None, more: str) -> tuple[str, dict[str, Any]]:
    """Return a window of lines with the notice of what is left out, and the same as fields.

    Args:
        text: the whole.
        offset: the first line, from 1.
        limit: the most lines; None for as many as fit.
        more: the call that shows more, with `{offset}`.

    Raises:
        UsageError: `bad_offset`.
    """
    lines = text.split("\n")
    total = len(lines)
    if not 1 <= offset <= total:
        raise UsageError("bad_offset", f"offset {offset} is past the end: there are {total} lines.", f"Use 1 to {total}.")
    room = output.output_room() - 300
    page = Page(room)
    for line in lines[offset - 1 : None if limit is None else offset - 1 + limit]:
        if not page.add([line if len(line) <= room // 4 else line[: room // 4] + "… [line shortened]"]):
            break
    count = len(page.lines)
    if offset == 1 and count == total:
        return "\n".join(page.lines), {}
    fields: dict[str, Any] = {"truncated": offset - 1 + count < total, "total_lines": total, "offset": offset}
    if fields["truncated"]:
        fields["next_offset"] = offset + count
        left = total - offset + 1 - count
        page.lines.append(output.envelope(count, total, "lines", more.format(offset=offset + count), left))
    return "\n".join(page.lines), fields
