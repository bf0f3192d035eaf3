"""The house as the primary tools ask it: execute, search, load and sign, each answered as a tool's result.

Who asks is an agent, so nothing here takes a terminal for a person: signing is for the user's configuration to allow.
"""

from __future__ import annotations

import base64
import json
import os
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rye import spaces
from rye.errors import ItemError, RyeError, UsageError
from rye.executor import Call
from rye.toolkit import config, output, pages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rye.spaces import Space

_DEEPEST = 4
_depth: ContextVar[int] = ContextVar("rye_depth", default=0)


class Household:
    """What `rye.toolkit.house.House` promises, for one call."""

    def __init__(self, answer: Callable[..., dict[str, Any]], reach: Callable[[str, str], bool] | None = None) -> None:
        """Take what answers a call of any item type, and what tells by type and id which items may be reached."""
        self._answer = answer
        self._reach = reach

    def execute(
        self, project_path: str, item_type: str, item_id: str, parameters: dict[str, Any] | str, *, dry_run: bool
    ) -> dict[str, Any]:
        """Execute another item; its failure is this call's, in the same shape.

        Raises:
            UsageError: `bad_parameters`, `nested_too_deep`. RyeError: `out_of_reach`.
        """
        self._check(project_path, item_type, item_id)
        depth = _depth.get()
        if depth >= _DEEPEST:
            raise UsageError(
                "nested_too_deep", f"{_DEEPEST} items are executing one another already.", "Execute the item directly."
            )
        cancellation = output.Cancellation()
        output.deadline().when_expired(cancellation.cancel)
        outer = output.door()
        door = output.Door(outer.max_output_bytes, outer.on_output, cancellation)
        token = _depth.set(depth + 1)
        try:
            call = Call(item_type, item_id, _object(parameters), project_path, dry_run, door=door)
            response = self._answer(call, self._reach)
        finally:
            _depth.reset(token)
        return _as_result(response)

    def search(self, project_path: str, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - see rye.searching.Wanted
        """Search items; `output` lists them. Errors as `rye.api.search`."""
        from rye import searching

        answer = searching.search(searching.Wanted(**asked), project_path, self._reach)
        page = pages.Page(output.output_room() // 2 - 500)
        kept = [row for number, row in enumerate(answer["results"], answer["offset"] + 1) if page.add(_listed(number, row))]
        answer["results"] = kept
        offset, total = answer["offset"] + len(kept), answer["total"]
        if not total:
            page.lines.append(f"Nothing fits {answer['query']!r}. Try fewer or other words, or * to list a scope.")
        answer["truncated"] = offset < total
        if answer["truncated"]:
            again = pages.call("rye_search", {**asked, "offset": None}, searching.Wanted._field_defaults)(offset)
            page.lines.append(output.envelope(len(kept), total, "items", again, total - offset))
            answer["next_offset"] = offset
        if "unverified" in answer:
            count = sum(answer["unverified"].values())
            page.lines.append(f"[{count} unverified item{'s' * (count != 1)} left out; `rye verify` says why]")
        return output.ok("\n".join(page.lines), **answer)

    def load(
        self, project_path: str, item_type: str, item_id: str, source: str | None, destination: str | None, *,
        overwrite: bool, offset: int, limit: int | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Load an item; `output` is a window of its text. Errors as `rye.api.load`."""
        self._check(project_path, item_type, item_id)
        # Only who loads an item pays for what writes one.
        from rye import loading, served

        found = loading.load(item_type, item_id, project_path, source, destination, overwrite=overwrite)
        more = f'rye_load(item_type="{item_type}", item_id="{item_id}", offset={{offset}})'
        text, fields = served.window(found.pop("content").rstrip("\n"), offset, limit, more)
        notes = [f"Copied to {found['destination_path']}."] if destination is not None else []
        notes += [f"Warning: {warning}" for warning in found["warnings"]]
        return output.ok("\n".join([text, *(["", *notes] if notes else [])]), **found, **fields)

    def sign(self, project_path: str, item_type: str, item_id: str, source: str) -> dict[str, Any]:
        """Sign an item, or every one that a pattern names, if the user's configuration lets agents sign.

        Raises:
            RyeError: `needs_person`, and those of `rye.api.sign`. ItemError: `item_not_found`; the reason of a refusal.
        """
        from rye import attest, keyring, targets

        if config.setting("signing.agents") != "allow":
            raise RyeError(
                "needs_person", "Only a person may sign items.",
                "Ask your user to run `rye sign` in a terminal, or to set `signing: {agents: allow}` in their own "
                "~/.ai/config/rye.yaml.",
            )  # fmt: skip
        pattern = any(char in item_id for char in "*?")
        found = self._signable(project_path, item_type, item_id, source)
        rows = list(attest.sign(targets.resolve([os.fspath(path) for path in found], []), keyring.signing_key()))
        return _batch(rows, item_id) if pattern else _signed(rows[0], item_type, source, found[0])

    def registry(self, project_path: str, action: str, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - see the tool
        """Share items as an agent may. Errors as `rye.registry_answers.answer`."""
        from functools import partial

        from rye import registry_answers

        return registry_answers.answer(project_path, action, partial(self._check, project_path), **asked)

    def _check(self, project_path: str, item_type: str, item_id: str) -> None:
        reach = self._reach
        if reach is None or reach(item_type, item_id):
            return
        known = (one for one, _, _ in spaces.listed(item_type, spaces.spaces(project_path)) if reach(item_type, one))
        close = spaces.alike(item_id, known)
        hint = f"Did you mean {' or '.join(close)}?" if close else "Ask your user."
        raise RyeError("out_of_reach", f"{item_type} {item_id} is not among what this server offers.", hint, nearest=close)

    def _signable(self, project_path: str, item_type: str, item_id: str, source: str) -> list[Path]:
        """Return the files that an id or a pattern names in one space; a pattern without `/` looks in every category."""
        if source not in ("project", "user"):
            raise UsageError("bad_space", f"Items of {source!r} are not signed here.", "Give project or user.")
        space = next((one for one in spaces.spaces(project_path) if one.name == source), None)
        known = spaces.items_in(space, item_type) if space is not None else []
        known = [(one, path) for one, path in known if self._reach is None or self._reach(item_type, one)]
        if any(char in item_id for char in "*?"):
            found = [path for one, path in known if fnmatchcase(one if "/" in item_id else one.rpartition("/")[2], item_id)]
        else:
            spaces.check_id(item_id)
            found = [path for one, path in known if one == item_id]
        if not found:
            where = f"{_where(space)}/{spaces.type_folder(item_type)[0]}"
            raise ItemError(
                "item_not_found", f"No {item_type} {item_id} in the {source} space.", f"It was searched for in {where}.",
                searched_in=where,
            )  # fmt: skip
        return found


def _where(space: Space | None) -> str:
    return space.folder if space is not None else "no folder"


def _object(parameters: dict[str, Any] | str) -> dict[str, Any]:
    """Return parameters as an object; some models send it as text."""
    if isinstance(parameters, dict):
        return parameters
    try:
        found = json.loads(parameters)
    except (ValueError, RecursionError) as err:
        raise UsageError("bad_parameters", f"parameters is text that is not JSON: {err}.", "Give a JSON object.") from None
    if not isinstance(found, dict):
        raise UsageError("bad_parameters", "parameters is not a JSON object.", 'Give one such as {"file_path": "a.py"}.')
    return found


def _as_result(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response as a tool's result: its text stands once, as `output`, the rest of its data in `data`."""
    data = dict(response["data"] or {})
    text = str(data.pop("output", ""))
    if response["status"] == "validation_passed":
        text = f"{response['item_id']}: verified, parameters valid, not run."
    rest = {key: value for key, value in response.items() if key not in ("data", "error", "code", "details")}
    if response["status"] != "error":
        return output.ok(text, **rest, data=data)
    for known in ("success", "error", "code"):
        data.pop(known, None)
    details = response.get("details", {})
    failure = {"success": False, "error": response["error"], "code": response["code"], **rest, "data": data or None}
    return {**failure, **({"output": text} if text else {}), **({"details": details} if details else {})}


def _listed(number: int, row: dict[str, Any]) -> list[str]:
    head = f"{number}. {row['type']} {row['id']} ({row['source']}, {row['score']:.2f})"
    told = row["title"] if row["title"] and not row["description"] else row["description"]
    return [f"{head}: {told}" if told else head, *([f"   {row['preview']}"] if row["preview"] else [])]


def _signed(row: dict[str, Any], item_type: str, source: str, path: Path) -> dict[str, Any]:
    if row["status"] == "failed":
        raise ItemError(row["code"], row["error"], row["hint"] or "", path=row["path"], issues=[row["error"]])
    from rye.signing import form_of, split

    with open(path, "rb") as file:
        line = split(file.read(), form_of(item_type, path.suffix)).signature
    told = f"{'Signed' if row['status'] == 'signed' else 'Signed before'}: {row['item_id']} by {row['signer']}."
    return output.ok(
        told, status="signed", item_id=row["item_id"], path=row["path"], location=source, message=told, warnings=[],
        signature={
            "timestamp": line.timestamp, "hash": line.digest, "pubkey_fp": line.fingerprint,
            "ed25519_sig": base64.urlsafe_b64encode(line.signature).decode(),
        },
    )  # fmt: skip


def _batch(rows: list[dict[str, Any]], item_id: str) -> dict[str, Any]:
    signed = [row["item_id"] for row in rows if row["status"] != "failed"]
    failed = [
        {"item": row["item_id"], "error": row["error"], "details": row["hint"]} for row in rows if row["status"] == "failed"
    ]
    summary = f"{len(signed)} of {len(rows)} items signed by {item_id}."
    told = [summary, *(f"Failed: {one['item']}: {one['error']}" for one in failed)]
    facts = {"status": "completed", "signed": signed, "failed": failed, "total": len(rows), "summary": summary}
    if failed:
        return {"success": False, "error": " ".join(told), "code": "not_all_signed", **facts}
    return output.ok("\n".join(told), **facts)
