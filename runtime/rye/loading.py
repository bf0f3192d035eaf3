"""Loading items: a verified item's text, and byte copies of it between spaces."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye import items, served, spaces, state
from rye.admission import Admission
from rye.errors import UsageError
from rye.installing import Copy, install
from rye.toolkit import names
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.spaces import Candidate, Space
    from rye.trust import Verified

_TOOL = "rye/primary-tools/rye_load"


def load(
    item_type: str, item_id: str, project_path: str, source: str | None, destination: str | None, *,
    overwrite: bool = False, allow_downgrade: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return an item's verified text, and copy the item if a destination is given; see `rye.api.load`."""
    if destination is not None and destination == source:
        raise UsageError("same_space", f"Source and destination are both {source}.", "Give two spaces.")
    with Workspace(project_path):
        among = spaces.spaces(project_path)
        candidate = spaces.find(item_type, item_id, _from(among, source))
        verified = Admission(among).verify(candidate)
        metadata = _metadata(verified, candidate)
    text = verified.body.decode("utf-8", "replace").strip("\n") + "\n"
    content = served.shown(verified, text)
    found: dict[str, Any] = {
        "status": "success", "type": item_type, "item_id": item_id, "content": content, "metadata": metadata,
        "path": names.show(os.fsencode(candidate.path)), "source": candidate.space,
        "item": served.describe(candidate, verified, str(metadata.get("version", ""))), "warnings": [],
    }  # fmt: skip
    if content != text:
        found["warnings"].append("Hidden characters or forged notices in the text are shown as marks; a copy has its bytes.")
    if destination is not None:
        if not allow_downgrade:
            version = str(metadata.get("version") or "")
            _refuse_lower(candidate, version, next((one for one in among if one.name == destination), None), among)
        found.update(_copy(candidate, project_path, destination, found["warnings"], overwrite=overwrite))
    return found


def _from(among: Sequence[Space], source: str | None) -> Sequence[Space]:
    if source is None:
        return among
    known = [space for space in among if space.name == source]
    if source not in ("project", "user", "system") or not known:
        raise UsageError("bad_space", f"There is no space {source!r} here.", "Spaces are project, user and system.")
    return known


def _metadata(verified: Verified, candidate: Candidate) -> dict[str, Any]:
    """Return what is known of an item beside its text; an item that is not where it belongs is refused."""
    name = candidate.item_id.rpartition("/")[2]
    found: dict[str, Any] = {"name": name, "extension": candidate.suffix}
    version = items.check_place(verified, candidate.item_type, candidate.item_id, candidate.suffix)
    if candidate.item_type == "tool":
        tool = items.read_tool(verified, candidate.item_id, candidate.suffix)
        found |= {"tool_type": tool.tool_type, "executor_id": tool.executor_id, "description": tool.description}
    elif candidate.item_type == "knowledge":
        header = items.read_knowledge(verified, candidate.item_id, candidate.suffix).header
        found |= {key: header[key] for key in ("title", "entry_type", "description", "tags") if key in header}
    else:
        found["description"] = items.read_directive(verified, candidate.item_id).text.metadata["description"]
    listed: dict[str, Any] = served.listable(verified, {**found, "version": version})
    return listed


def _refuse_lower(candidate: Candidate, version: str, space: Space | None, among: Sequence[Space]) -> None:
    # Only who copies an item pays for what compares versions.
    from rye import marks, rollback

    coming = rollback.Coming(candidate.item_type, candidate.item_id, candidate.suffix, version)
    remedy = f"rye load {candidate.item_type} {candidate.item_id} … --overwrite --allow-downgrade"
    rollback.refuse_lower(coming, marks.load(), space, among, remedy)


def _copy(
    candidate: Candidate, project_path: str, destination: str, warnings: list[str], *, overwrite: bool
) -> dict[str, Any]:  # fmt: skip
    """Copy the very bytes that were verified to the same id of another space, or say what stands there."""
    if destination not in ("project", "user"):
        raise UsageError("bad_space", f"Nothing is copied to {destination!r}.", "Copy to project or user.")
    if destination == candidate.space:
        raise UsageError(
            "same_space", f"{candidate.item_id} is served from the {destination} space already.",
            "Give source, to copy another space's.",
        )  # fmt: skip
    root = project_path if destination == "project" else os.fspath(state.user_space())
    folder, suffixes = spaces.type_folder(candidate.item_type)
    copy = Copy(f".ai/{folder}/{candidate.item_id}{candidate.suffix}", candidate.raw, suffixes)
    done = install([copy], root, _TOOL, lambda _path, _old: overwrite)
    warnings += done.warnings
    if candidate.item_id.startswith(spaces.RESERVED):
        warnings.append(
            f"Ids under {spaces.RESERVED} are served by the system bundle; this copy is not, unless a person lets it "
            "(`rye trust approve --shadow`). To change a tool, copy it to an id of your own and sign it."
        )
    return {"copied_to": destination, "destination_path": done.paths[0], "replaced": done.replaced[0]}
