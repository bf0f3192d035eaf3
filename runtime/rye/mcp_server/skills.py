"""Knowledge, directives and folders as skills, by the MCP extension `io.modelcontextprotocol/skills` (SEP-2640).

A skill is one file, `skill://knowledge/<folder of the id>/<name>/SKILL.md`, or with `directive`: the item's verified
text below the frontmatter that hosts show first. `_meta` has what the item's signer signed, so that a host can check it.
The folders are those of `rye skill list` that are signed by a key that counts or as they were added, as
`skill://folder/<name>/<file>`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from rye.errors import ItemError, RyeError
from rye.executor import texts
from rye.executor.admission import Admission
from rye.folders import skills as skill_folders
from rye.fs import atomic
from rye.items import directives, parse, spaces
from rye.trust.verify import Verified

EXTENSION: Final = "io.modelcontextprotocol/skills"
SCHEME: Final = "skill://"

_FILE: Final = "/SKILL.md"
_TYPES: Final = ("knowledge", "directive")
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 1_024


class _Skill(NamedTuple):
    uri: str
    item_id: str
    frontmatter: dict[str, str]
    text: str
    verified: Verified


def listed(project: str) -> list[dict[str, Any]]:
    """Return the skills whose items verify, as the extension lists them."""
    admission = Admission.of(project)
    found = []
    for uri, (item_type, item_id) in _uris(admission).items():
        # Of what does not verify nothing is shown; `rye verify` tells the user.
        with suppress(RyeError):
            found.append(_entry(_skill(uri, item_type, item_id, admission)))
    return [*found, *(_folder_entry(name, *one) for name, one in _folders(project).items())]


def _folders(project: str) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Return name -> (folder, its files with their digests) of the skills that verify; the project's before the user's."""
    store = spaces.trust_store(spaces.spaces(project))
    found: dict[str, tuple[str, Mapping[str, str]]] = {}
    for folder, _host, _scope in skill_folders.folders(project):
        row, files = skill_folders.verify(folder, store)
        # However loose the policy is, nothing that does not verify is served.
        good = row["verdict"] in skill_folders.GOOD["pinned"] and skill_folders.allowed(row, project)
        if good and not skill_folders.faults(folder):
            found.setdefault(os.path.basename(folder.rstrip("/")), (folder, files))
    return found


def _folder_entry(name: str, folder: str, files: Mapping[str, str]) -> dict[str, Any]:
    uri = f"{SCHEME}folder/{quote(name)}/"
    header = skill_folders.header_of(_folder_file(folder, files, "SKILL.md").decode())
    kinds = {64: "sha256", 128: "blake2b"}
    resources = [{"uri": uri + quote(one), "digest": f"{kinds[len(it)]}:{it}"} for one, it in sorted(files.items())]
    return {"uri": f"{uri}SKILL.md", "frontmatter": header, "resources": resources}


def _folder_file(folder: str, files: Mapping[str, str], name: str) -> bytes:
    """Return a file of a skill as it was found good."""
    data = atomic.read(os.path.join(folder, name)) if name in files else None
    if data is None or files[name] not in (sha256(data).hexdigest(), hashlib.blake2b(data).hexdigest()):
        raise ItemError("unknown_skill", f"There is no file {name[:200]} in the skill.", "skills/list names what there is.")
    return data


def _uris(admission: Admission) -> dict[str, tuple[str, str]]:
    """Return URI -> (type, id) of all items that could be skills. The URI's last folder is the skill's name."""
    found: dict[str, tuple[str, str]] = {}
    for item_type in _TYPES:
        for item_id in sorted({one[0] for one in spaces.served_items(item_type, admission.search_path)}):
            folder, slash, last = item_id.rpartition("/")
            name = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "skill"
            uri = f"{SCHEME}{item_type}/{quote(folder)}{slash}{name}{_FILE}"
            if uri in found:
                # `a_b` and `a-b`: the second one's name ends with a few digits of its id's digest.
                digits = sha256(item_id.encode()).hexdigest()[:8]
                uri = f"{SCHEME}{item_type}/{quote(folder)}{slash}{name[: _LONGEST_NAME - 9]}-{digits}{_FILE}"
            found[uri] = (item_type, item_id)
    return found


def entry(project: str, uri: str) -> dict[str, Any]:
    """Return one skill by the URI of its SKILL.md.

    Raises:
        RyeError: `unknown_skill`, and what verifying the item raises.
    """
    if (one := _in_folder(project, uri)) is not None:
        return _folder_entry(*one[:3])
    return _entry(_by_uri(project, uri))


def _in_folder(project: str, uri: str) -> tuple[str, str, Mapping[str, str], str] | None:
    """Return (name, folder, files, file) of a URI in a folder that verifies; None for another URI."""
    if not uri.startswith(f"{SCHEME}folder/"):
        return None
    name, _, file = unquote(uri.removeprefix(f"{SCHEME}folder/")).partition("/")
    found = _folders(project).get(name)
    return None if found is None else (name, *found, file)


def read(project: str, uri: str) -> dict[str, Any]:
    """Return a skill's file, whole, as the protocol's contents of a resource. Errors as `entry`."""
    if (one := _in_folder(project, uri)) is not None:
        data = _folder_file(*one[1:])
        try:
            return {"uri": uri, "mimeType": "text/markdown" if uri.endswith(".md") else "text/plain", "text": data.decode()}
        except UnicodeDecodeError:
            encoded = base64.b64encode(data).decode()
            return {"uri": uri, "mimeType": "application/octet-stream", "blob": encoded}
    return {"uri": uri, "mimeType": "text/markdown", "text": _by_uri(project, uri).text}


def _by_uri(project: str, uri: str) -> _Skill:
    admission = Admission.of(project)
    found = _uris(admission).get(uri)
    if found is None:
        raise ItemError("unknown_skill", f"There is no skill {uri[:200]}.", "skills/list names what there is.")
    return _skill(uri, *found, admission)


def _skill(uri: str, item_type: str, item_id: str, admission: Admission) -> _Skill:
    candidate = admission.find(item_type, item_id)
    verified = admission.admit(candidate)
    if item_type == "knowledge":
        found = parse.read_knowledge(verified, item_id, candidate.suffix)
        about, body = found.header.get("description") or found.header.get("title"), found.body
    else:
        text = parse.read_directive(verified, item_id).text
        about, body = text.metadata.get("description"), _instructions(text)
    frontmatter = {
        "name": uri.removesuffix(_FILE).rpartition("/")[2],
        "description": str(texts.listable(verified, about or item_id, _LONGEST_DESCRIPTION)),
    }
    # As JSON, which YAML contains: no text of an item can end its line or the header.
    header = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in frontmatter.items())
    shown = texts.shown(verified, body).strip("\n")
    return _Skill(uri, item_id, frontmatter, f"---\n{header}---\n\n{shown}\n", verified)


def _instructions(text: directives.DirectiveText) -> str:
    """Return a directive's instructions, with its defaults filled in and the other inputs named before them."""
    defaults = {one["name"]: one["default"] for one in text.inputs if "default" in one}
    asked = [
        f"- {one['name']} ({one['type']}{', required' if one['required'] else ''}): {one['description']}"
        for one in text.inputs
        if one["name"] not in defaults
    ]
    head = "Where `{input:NAME}` is written, put:\n" + "\n".join(asked) + "\n\n" if asked else ""
    return head + directives.fill(text.instructions, defaults)[0]


def _entry(skill: _Skill) -> dict[str, Any]:
    data = skill.text.encode()
    signature = skill.verified.signature
    return {
        "uri": skill.uri,
        "frontmatter": skill.frontmatter,
        "resources": [{"uri": skill.uri, "digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data)}],
        "_meta": {
            "rye/item_id": skill.item_id,
            "rye/digest": skill.verified.digest,
            "rye/signer": skill.verified.key.public.fingerprint,
            "rye/signature": base64.urlsafe_b64encode(signature.signature).decode(),
            "rye/signed_at": signature.timestamp,
        },
    }
