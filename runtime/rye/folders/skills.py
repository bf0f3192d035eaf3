"""Skills: folders with a SKILL.md, added to where agents' hosts look, with what was added pinned in the user's space.

A skill is as github.com/agentskills describes it; its program `skills-ref` says what is valid. What was added is kept with
the registries' pins.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from rye.call.safe_text import plain
from rye.config import settings
from rye.errors import ItemError, TrustError
from rye.folders import signing, tree
from rye.fs import atomic, strict_yaml
from rye.journal import own_files
from rye.journal.own_files import OwnFile
from rye.trust import pins
from rye.trust.verify import TrustStore

HOSTS: Final = {"agents": ".agents/skills", "claude-code": ".claude/skills"}
"""Where hosts look, below a project and below the home: Claude Code, and those that share `.agents`."""
GOOD: Final = {"signed": ("valid",), "pinned": ("valid", "pinned"), "none": ("valid", "pinned", "unsigned", "unknown_signer")}
"""The verdicts that the user's setting `skills.require` lets pass."""

_FIELDS: Final = {"name", "description", "license", "allowed-tools", "metadata", "compatibility"}
_MOST_BYTES: Final = 64 << 20
_MOST_ENTRIES: Final = 10_000
_MOST_HEADER: Final = 16 << 10
_TOOL: Final = "rye/cli/skill"
# Starts that take what they run from the network, in no version that was looked at. Bounded: a skill's author writes the text.
_FETCHES: Final = (
    r"\b(?:npx|bunx|pnpx|npm exec|(?:pnpm|yarn) dlx)\b(?!.{0,200}@\d+\.\d+\.\d+\b)",
    r"\b(?:uvx|uv tool run|pipx run)\b(?!.{0,200}(?:==|@)\d)",
    r"\bgit\+(?:https?|ssh|git):",
    r"\b(?:curl|wget)\b[^\n;]{0,300}\|\s{0,9}(?:sudo\s{1,9})?(?:\S{0,99}/)?(?:ba|da|z)?sh\b",
    r"\b(?:ba|da|z)?sh\b[^\n;]{0,99}(?:<\(|\$\(|`)\s{0,9}(?:curl|wget)\b",
)


def folders(project: str, host: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield (folder, host, `project` or `user`) of the skills that lie where hosts look."""
    for scope, top in (("project", project), ("user", os.path.expanduser("~"))):
        for name, place in HOSTS.items():
            if host in (None, name):
                for path in sorted(Path(top, place).glob("*/")):
                    yield str(path), name, scope


def header_of(text: str) -> dict[str, Any]:
    """Return the header of a SKILL.md, whose values are texts.

    Raises:
        ValueError: it has none, or one that hosts read differently.
    """
    import yaml

    parts = text.replace("\r\n", "\n").split("---", 2)
    if len(parts) != 3 or parts[0]:
        raise ValueError("it does not begin with a header between two lines of ---")
    if len(parts[1]) > _MOST_HEADER:
        raise ValueError(f"its header has more than {_MOST_HEADER:,} characters")
    try:
        # Each value is a text and stands there once: that is the YAML that hosts agree on.
        strict_yaml.read(parts[1])
        if any(getattr(event, "flow_style", False) for event in yaml.parse(parts[1])):
            raise strict_yaml.YamlError("has a list or mapping in brackets")
        header = yaml.load(parts[1], yaml.BaseLoader)  # noqa: S506  # it makes nothing but texts
    except (ValueError, yaml.YAMLError, RecursionError) as err:
        raise ValueError(f"its header {err}") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no mapping")  # noqa: TRY004  # a fault of the text, like the others
    return header


def faults(folder: str, *, moved: bool = False) -> list[str]:
    """Return why a folder is no valid skill, in sentences; none for a valid one. What is `moved` gets its name for a folder."""
    try:
        header = header_of(atomic.read_regular(os.path.join(folder, "SKILL.md"), 1 << 20)[0].decode())
    except (OSError, ValueError) as err:
        return [f"SKILL.md cannot be read: {plain(str(err), 200)}."]
    found = [f"The field {plain(str(one), 60)} is none of a skill's." for one in sorted(set(header) - _FIELDS)]
    name, about, needs = header.get("name"), header.get("description"), header.get("compatibility", "")
    normal = unicodedata.normalize("NFKC", name.strip()) if isinstance(name, str) else ""
    good = 0 < len(normal) <= 64 and normal == normal.lower() and all(one.isalnum() or one == "-" for one in normal)
    if not good or "--" in normal or normal.strip("-") != normal:
        found.append("Its name is not 1 to 64 small letters, digits and single hyphens between them.")
    elif not moved and normal != unicodedata.normalize("NFKC", os.path.basename(os.path.realpath(folder))):
        found.append(f"Its name is {normal}, its folder's {plain(os.path.basename(folder), 100)}.")
    if not isinstance(about, str) or not about.strip() or len(about) > 1_024:
        found.append("Its description is missing, or longer than 1,024 characters.")
    if not isinstance(needs, str) or len(needs) > 500:
        found.append("Its compatibility is no text, or longer than 500 characters.")
    return found


def fetches(folder: str) -> list[str]:
    """Return what starts a program from the network at launch, as `file:line: text`: in scripts, hooks and MCP entries."""
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 20 or path.name == signing.SIGNATURE:
            continue
        text = path.read_text("utf-8", "replace")
        # An entry of a client has program and arguments on lines of their own.
        joined = re.sub(r'("\s*:|[\s"\[\]{},])+', " ", text) if path.suffix == ".json" else None
        for number, line in [(1, joined)] if joined is not None else enumerate(text.splitlines(), 1):
            for pattern in _FETCHES:
                if match := re.search(pattern, line[:100_000]):
                    shown = plain(line[match.start() :], 100)
                    found.append(f"{path.relative_to(folder)}:{number}: {shown}")
                    break
    return found


def verify(folder: str, store: TrustStore) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return what `rye.folders.signing.verify` does, with the verdicts `pinned` and `changed` for what was added unsigned.

    Raises:
        TrustError: `trust_store_unreadable`.
    """
    row, files = signing.verify(folder, store)
    if row["verdict"] == "valid" and "SKILL.md" not in files:
        row |= {"verdict": "unsigned", "hint": "Its signature leaves SKILL.md out. Ask its author to sign it whole."}
    pinned = pins.load().skills.get(os.path.realpath(folder))
    if pinned is not None and row["verdict"] in ("unsigned", "unknown_signer"):
        try:
            found = dict(tree.read(folder).digests)
        except (OSError, TrustError) as err:
            return row | {"verdict": "changed", "hint": str(err)}, {}
        if found == pinned:
            return row | {"verdict": "pinned", "hint": None}, pinned
        hint = f"{signing.differences(pinned, found)} Remove it, review it and add it again."
        return row | {"verdict": "changed", "hint": hint.replace("that were signed", "that were added")}, {}
    return row, files


def allowed(row: dict[str, Any], project: str) -> bool:
    """Tell whether the user's policy lets a skill with this row be used."""
    return row["verdict"] in GOOD[str(settings.Settings().tightened("skills.require", project))]


def add(source: str, project: str, store: TrustStore, *, host: str = "agents", user: bool = False) -> dict[str, Any]:
    """Copy a skill to where a host looks, byte for byte and without `.git`, and pin it.

    Args:
        source: a folder, or a ZIP file with one skill at its top or in one folder.
        project: the project that gets it, where `user` is not set.
        store: whose signatures count.
        host: one of `HOSTS`.
        user: put it below the home, for all projects.

    Returns:
        The row of `verify` for what was added, with `path` and `fetches`.

    Raises:
        ItemError: `bad_skill`, with every fault; `skill_exists`. TrustError: `skill_refused`, with the verdict.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rye-skill-") as unpacked:
        if os.path.isfile(source):
            source = _unpacked(source, unpacked)
        source = os.path.realpath(source)
        if not os.path.isfile(os.path.join(source, "SKILL.md")):
            what = "has no SKILL.md" if os.path.isdir(source) else "is no folder and no ZIP file"
            raise ItemError("bad_skill", f"{plain(source, 200)} {what}.", "Name the folder, or the ZIP file, of one skill.")
        if wrong := faults(source, moved=True):
            raise ItemError("bad_skill", f"This is no valid skill. {' '.join(wrong)}", "Ask its author to correct it.")
        row = signing.verify(source, store, pins_signer=False)[0]
        if row["verdict"] not in GOOD["none"] or (row["verdict"] != "valid" and not allowed({"verdict": "pinned"}, project)):
            hint = row["hint"] or "The setting skills.require asks for a signature that you trust."
            raise TrustError("skill_refused", f"The skill was not added: {row['verdict']}.", hint)
        # A repository that came with it would have programs of its own started by whoever uses git there.
        digests = {one: digest for one, digest in tree.read(source).digests.items() if ".git" not in one.lower().split("/")}
        files, room = dict[str, bytes](), _MOST_BYTES
        for one, digest in digests.items():
            files[one] = atomic.read_regular(os.path.join(source, one), room + 1)[0]
            room -= len(files[one])
            if room < 0:
                raise ItemError("bad_skill", f"It has more than {_MOST_BYTES >> 20} MiB.", "Ask its author for a smaller one.")
            if sha256(files[one]).hexdigest() != digest:
                # Read anew by its path, which a program may have made a link to anything meanwhile.
                raise ItemError("bad_skill", f"{plain(one, 200)} changed while it was read.", "Add it again.")
        top = os.path.expanduser("~") if user else os.path.realpath(project)
        name = unicodedata.normalize("NFKC", header_of(files["SKILL.md"].decode())["name"].strip())
        target = os.path.join(top, HOSTS[host], name)
        if os.path.lexists(target):
            hint = f"Run `rye skill remove {name}` first."
            raise ItemError("skill_exists", f"{target} is there already.", hint)
        modes = {one: 0o755 if os.stat(Path(source, one)).st_mode & stat.S_IXUSR else 0o644 for one in files}
        written = [OwnFile(os.path.join(target, one), data, modes[one]) for one, data in files.items()]
        own_files.write(written, _TOOL, [] if user else [project])
    _pin(target, dict(tree.read(target).digests))
    return verify(target, store)[0] | {"path": target, "fetches": fetches(target)}


def remove(name: str, project: str, *, host: str | None = None, user: bool | None = None) -> list[str]:
    """Delete a skill's files where hosts look, recorded in the project like any change; return the folders.

    Raises:
        ItemError: `no_skill`.
    """
    removed = []
    for path, _host, scope in folders(project, host):
        if os.path.basename(path) == name and user in (None, scope == "user"):
            inner = sorted(one for one in Path(path).rglob("*") if not one.is_dir() or one.is_symlink())
            own_files.write([OwnFile(str(one), None) for one in inner], _TOOL, [] if scope == "user" else [project])
            for folder, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            _pin(path, None)
            removed.append(path)
    if not removed:
        raise ItemError("no_skill", f"There is no skill {plain(name, 100)}.", "`rye skill list` names those that are.")
    return removed


def _unpacked(path: str, into: str) -> str:
    """Unpack a ZIP file of one skill, and return its folder."""
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise BadZipFile(f"it has more than {_MOST_BYTES >> 20} MiB")
        with ZipFile(path) as archive:
            entries = archive.infolist()
            kinds = {stat.S_IFMT(one.external_attr >> 16) for one in entries}
            names = [one.filename for one in entries]
            odd = {"", ".", ".."}
            inside = not any("\\" in name or odd & set(name.removesuffix("/").split("/")) for name in names)
            if not inside or len(set(names)) != len(names) or kinds - {0, stat.S_IFREG, stat.S_IFDIR}:
                raise BadZipFile("it has links, a name twice, or names that lead out")
            if len(entries) > _MOST_ENTRIES or sum(one.file_size for one in entries) > _MOST_BYTES:
                raise BadZipFile(f"it has more than {_MOST_ENTRIES:,} entries, or {_MOST_BYTES >> 20} MiB")
            tops = {name.split("/")[0] for name in names}
            if {one.compress_type for one in entries} - {ZIP_STORED, ZIP_DEFLATED}:
                # Of these alone zipfile unpacks no more at a time than it was asked for.
                raise BadZipFile("it is compressed in another way than by deflate")
            # Never the archive's own name, which may lead out.
            below = into if "SKILL.md" not in names else os.path.join(into, "skill")
            # Of each entry as much as it says, whatever it unpacks to.
            archive.extractall(below)
            for one in entries:
                if one.external_attr >> 16 & stat.S_IXUSR and not one.is_dir():
                    Path(below, one.filename).chmod(0o755)
    except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as err:
        why, system = str(err), isinstance(err, OSError) and err.strerror
        hint = "Make it readable, or free the disk." if system else "Fetch it again."
        raise ItemError("bad_skill", f"{path} cannot be unpacked: {plain(system or why, 200)}.", hint) from None
    if below == into and len(tops) != 1:
        raise ItemError("bad_skill", f"{path} holds no SKILL.md at its top, and not one folder.", "Pack one skill.")
    return below if below != into else os.path.join(into, *tops)


def _pin(path: str, files: dict[str, str] | None) -> None:
    """Keep what a skill's files are, or forget it."""
    with pins.changing() as known:
        known.skills.pop(os.path.realpath(path), None)
        if files is not None:
            known.skills[os.path.realpath(path)] = files
