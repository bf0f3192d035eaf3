"""Knowledge and directives: execute them (return their verified text), load any item's text, copy items between spaces.

Nothing here runs code. A response has the same shape as that of a tool, so callers need not distinguish item types.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rye.call import context, results, safe_text
from rye.call.results import Page, shorten, start_index
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.executor.admission import Admission, describe
from rye.executor.chain import link
from rye.executor.executor import Call, answer
from rye.fs import names
from rye.items import directives, parse, spaces, tool_files
from rye.items.install import Copy, install
from rye.items.spaces import Candidate, Space
from rye.trust.verify import Verified
from rye.workspace.workspace import Workspace

_RESERVED = ("success", "output", "instructions")


def run(call: Call) -> dict[str, Any]:
    """Answer a call of a knowledge entry or a directive.

    Returns:
        As `rye.executor.executor.run`. `data` of knowledge: `{"success", "output": the entry's text, "instructions", …header
        fields}`; of a directive: `{"success", "output": its instructions with the inputs filled in, "name", "version",
        "metadata", "inputs", "declared_inputs", "outputs", "unfilled"?}`. A long text is cut as tools' outputs are.
    """
    return answer(call, _serve)


def _serve(call: Call, _workspace: Workspace, response: dict[str, Any]) -> None:
    admission = Admission.of(call.project_path)
    candidate = admission.find(call.item_type, call.item_id)
    verified = admission.admit(candidate)
    data = _knowledge(call, candidate, verified) if call.item_type == "knowledge" else _directive(call, candidate, verified)
    response["item"] = describe(candidate, verified, str(data.get("version", "")))
    response["chain"] = [link(candidate, call.item_type, None, verified.digest)]
    if call.dry_run:
        response.update(status="validation_passed", data={"parameters": data.get("inputs", {})})
    else:
        response.update(status="success", data=data, ran=True)


def schema_of(item_id: str, project_path: str) -> dict[str, Any]:
    """Return a directive's inputs as a schema, by which words of a command line are typed; {} for one that is refused."""
    try:
        admission = Admission.of(project_path)
        verified = admission.admit(admission.find("directive", item_id))
        return directives.schema_of(parse.read_directive(verified, item_id).text)
    except RyeError:
        return {}


def shown(verified: Verified, text: str) -> str:
    """Return a verified item's text made safe for a model; the system's own text is returned unchanged."""
    return text if verified.key.role == "system" else safe_text.content(text)


def listable(verified: Verified, value: Any, most: int = 1_024) -> Any:
    """Return a value of a verified item's header as it may be listed."""
    if isinstance(value, dict):
        return {listable(verified, str(key)): listable(verified, part, most) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [listable(verified, part, most) for part in value]
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = str(value)
    return text if verified.key.role == "system" else safe_text.plain(text, most)


def _knowledge(call: Call, candidate: Candidate, verified: Verified) -> dict[str, Any]:
    if call.parameters:
        why = f"Knowledge takes no parameters; given: {', '.join(map(str, call.parameters))}."
        raise UsageError("invalid_parameters", why, "Execute it without.")
    entry = parse.read_knowledge(verified, candidate.item_id, candidate.suffix)
    header = {key: part for key, part in listable(verified, entry.header).items() if key not in _RESERVED}
    text, fields = _window(shown(verified, entry.body).strip("\n"), call)
    instructions = "Use this as context; it asks for nothing to be done."
    return {"success": True, "output": text, "instructions": instructions, **header, **fields}


def _directive(call: Call, candidate: Candidate, verified: Verified) -> dict[str, Any]:
    text = parse.read_directive(verified, candidate.item_id).text
    inputs = directives.check(text, call.parameters)
    filled, unfilled = directives.fill(text.instructions, inputs)
    window, fields = _window(shown(verified, filled), call)
    defaults = listable(verified, {name: value for name, value in inputs.items() if name not in call.parameters})
    return {
        "success": True,
        "output": window,
        "name": text.name,
        "version": text.version,
        "metadata": listable(verified, text.metadata),
        "inputs": {**inputs, **defaults},
        "declared_inputs": listable(verified, list(text.inputs)),
        "outputs": listable(verified, list(text.outputs)),
        **fields,
        **({"unfilled": unfilled} if unfilled else {}),
    }


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
    first = start_index(offset, total, "lines")
    budget = context.output_budget() - 300
    page = Page(budget)
    count = page.fill(shorten(line, budget // 4) for line in lines[first : None if limit is None else first + limit])
    if offset == 1 and count == total:
        return "\n".join(page.lines), {}
    cut = results.left_out(page.lines, count, first + count, total, "lines", lambda after: more.format(offset=after))
    return "\n".join(page.lines), {**cut, "total_lines": total, "offset": offset}


_TOOL = "rye/primary-tools/rye_load"


def load(
    item_type: str,
    item_id: str,
    project_path: str,
    source: str | None,
    destination: str | None,
    *,
    overwrite: bool = False,
    allow_downgrade: bool = False,
) -> dict[str, Any]:
    """Return an item's verified text, and copy the item if a destination is given; see `rye.api.load`."""
    with Workspace(project_path):
        admission = Admission.of(project_path)
        search_path = admission.search_path
        candidate = spaces.find(item_type, item_id, _from(search_path, source))
        verified = admission.admit(candidate)
        metadata = _metadata(verified, candidate)
    text = verified.body.decode("utf-8", "replace").strip("\n") + "\n"
    content = shown(verified, text)
    found: dict[str, Any] = {
        "status": "success",
        "type": item_type,
        "item_id": item_id,
        "content": content,
        "metadata": metadata,
        "path": names.show(os.fsencode(candidate.path)),
        "source": candidate.space,
        "item": describe(candidate, verified, str(metadata.get("version", ""))),
        "warnings": [],
    }
    if content != text:
        found["warnings"].append("Hidden characters or forged notices in the text are shown as marks; a copy has its bytes.")
    if destination is not None:
        if not allow_downgrade:
            # Imported only for a copy.
            from rye.items import versions
            from rye.trust import pins

            version = str(metadata.get("version") or "")
            space = next((one for one in search_path if one.name == destination), None)
            remedy = f"rye load {candidate.item_type} {candidate.item_id} … --overwrite --allow-downgrade"
            versions.refuse_lower(candidate, version, pins.load(), space, search_path, remedy)
        own = next(one for one in search_path if one.name == candidate.space)
        files = tool_files.read(parse.read_tool(verified, item_id, candidate.suffix), own) if item_type == "tool" else {}
        found.update(_copy(candidate, files, project_path, destination, found["warnings"], overwrite=overwrite))
    return found


def _from(search_path: Sequence[Space], source: str | None) -> Sequence[Space]:
    if source is None:
        return search_path
    known = [space for space in search_path if space.name == source]
    if source not in ("project", "user", "system") or not known:
        raise UsageError("bad_space", f"There is no space {source!r} here.", "Spaces are project, user and system.")
    return known


def _metadata(verified: Verified, candidate: Candidate) -> dict[str, Any]:
    """Return what is known of an item beside its text; an item that is not where it belongs is refused."""
    name = candidate.item_id.rpartition("/")[2]
    found: dict[str, Any] = {"name": name, "extension": candidate.suffix}
    item = parse.read(verified, candidate.item_type, candidate.item_id, candidate.suffix)
    if isinstance(item, parse.Knowledge):
        found |= {key: item.header[key] for key in ("title", "entry_type", "description", "tags") if key in item.header}
    else:
        found["description"] = item.description
    if isinstance(item, parse.Tool):
        found |= {"tool_type": item.tool_type, "executor_id": item.executor_id}
    listed: dict[str, Any] = listable(verified, {**found, "version": item.version})
    return listed


def _copy(
    candidate: Candidate,
    files: Mapping[str, bytes],
    project_path: str,
    destination: str,
    warnings: list[str],
    *,
    overwrite: bool,
) -> dict[str, Any]:
    """Copy the verified bytes, and a tool's other files, to the same id in another space.

    Where another file exists it is refused, unless `overwrite`.
    """
    if destination not in ("project", "user"):
        raise UsageError("bad_space", f"Nothing is copied to {destination!r}.", "Copy to project or user.")
    if destination == candidate.space:
        why = f"{candidate.item_id} is served from the {destination} space already."
        raise UsageError("same_space", why, "Give source, to copy another space's.")
    root = project_path if destination == "project" else os.fspath(user_dirs.user_space())
    folder, _ = spaces.type_folder(candidate.item_type)
    copy = Copy(f".ai/{folder}/{candidate.item_id}{candidate.suffix}", candidate.raw, candidate.item_type)
    others = [Copy(f".ai/{tool_files.folder_of(candidate.item_id)}/{path}", raw) for path, raw in files.items()]
    done = install([copy, *others], root, _TOOL, lambda _path, _old: overwrite)
    warnings += done.warnings
    if candidate.item_id.startswith(spaces.RESERVED):
        warnings.append(
            f"Ids under {spaces.RESERVED} are served by the system bundle; this copy is not, unless a person lets it "
            "(`rye trust approve --shadow`). To change a tool, copy it to an id of your own and sign it."
        )
    return {"copied_to": destination, "destination_path": done.paths[0], "replaced": done.replaced[0]}
