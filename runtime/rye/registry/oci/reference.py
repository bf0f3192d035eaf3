"""References of registry items, and their repository and tag names.

A reference reads `[oci://host[:port][/prefix]//]namespace/category/name[:version][@sha256:…]`; without a prefix one slash
after the host is enough. The namespace is the first part of an item's id, and the name of its repository: small letters and
digits, with single marks between them.

A tag is `type--id--version`, such as `tool--my.text.report--1.2.0`: `/` becomes `.`; letters, digits, and one `-` or `_`
between two of them stand for themselves; all else, and `Z`, as `Zhh`. So it reads back in one way only. An id whose tag would
be longer than 128 characters is refused. A yanked version's mark has `yanked--` before its tag. Formats:
OCI distribution specification 1.1 (repositories, tags), OCI image specification 1.1 (`org.opencontainers.image.ref.name`, which
allows no two separators in a row but `--`).
"""

from __future__ import annotations

import re

from rye.errors import ItemError, UsageError
from rye.items import spaces
from rye.items.versions import is_version
from rye.plain_class import Record

TYPES = (*spaces.TYPES, "bundle")
"""The types of items in a registry."""

_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG_LENGTH = 128
_NAMESPACE_LENGTH = 200
YANKED_TAG = "yanked--"
_ESCAPED = re.compile(r"[^A-Ya-z0-9/]")


class Reference(Record):
    """What is asked of a registry.

    Attributes:
        item_type: one of `TYPES`.
        item_id: the item's id, or a bundle's.
        version: X.Y.Z; None for the highest that was not yanked.
        digest: `sha256:…` of the manifest; None for whatever the tag names.
        registry: `oci://host[/prefix]`; None for the default one.
    """

    item_type: str
    item_id: str
    version: str | None = None
    digest: str | None = None
    registry: str | None = None

    @property
    def namespace(self) -> str:
        """The first part of the id."""
        return self.item_id.partition("/")[0]

    def __str__(self) -> str:
        """Give the reference without the type, as it is typed."""
        text = self.item_id + (f":{self.version}" if self.version else "") + (f"@{self.digest}" if self.digest else "")
        return f"{self.registry}//{text}" if self.registry else text


def parse(text: str, item_type: str = "tool") -> Reference:
    """Read a reference.

    Raises:
        UsageError: `bad_reference`, `unknown_type`.
    """
    if item_type not in TYPES:
        raise UsageError("unknown_type", f"Unknown item type: {item_type}.", f"Use one of {', '.join(TYPES)}.")
    registry, rest = _registry(text)
    rest, at, digest = rest.partition("@")
    item_id, colon, version = rest.partition(":")
    if at and not _DIGEST.fullmatch(digest):
        raise _bad(text, "after @ comes sha256: and 64 hex digits")
    if colon and not is_version(version):
        raise _bad(text, "after the id's : comes a version X.Y.Z")
    check_item(item_type, item_id)
    return Reference(item_type, item_id, version or None, digest or None, registry)


def _registry(text: str) -> tuple[str | None, str]:
    if not text.startswith("oci://"):
        return None, text
    # `//` ends a registry's prefix; without it the host alone is the registry.
    before, double, rest = text[6:].partition("//")
    if not double:
        before, _, rest = text[6:].partition("/")
    if not before or not rest:
        raise _bad(text, "no item follows the host")
    return f"oci://{before}", rest


def check_item(item_type: str, item_id: str) -> None:
    """Raise UsageError `bad_reference` unless the text can be the id of something in a registry."""
    try:
        spaces.check_id(item_id)
    except ItemError as err:
        raise UsageError("bad_reference", err.message, _HINT) from None
    if "/" not in item_id and item_type != "bundle":
        raise _bad(item_id, "it has no namespace")
    if not is_namespace(item_id.partition("/")[0]):
        raise _bad(item_id, "a registry's namespace is of small letters and digits, with single marks between them")


def is_namespace(name: str) -> bool:
    """Tell whether a registry can have a namespace of this name: it is the name of a repository."""
    return len(name) <= _NAMESPACE_LENGTH and _REPOSITORY.fullmatch(name) is not None


def tag_of(item_type: str, item_id: str, version: str, *, yanked: bool = False) -> str:
    """Return the tag of a version, or of the mark that it was yanked. Raises UsageError: `bad_reference`, it is too long."""
    tag = f"{item_type}--{_escaped(item_id)}--{version}"
    if len(YANKED_TAG + tag) > _TAG_LENGTH:
        raise _bad(item_id, "it is too long for a registry's tag")
    return YANKED_TAG + tag if yanked else tag


def read_tag(tag: str) -> Reference | None:
    """Return what a tag names, or that which it marks as yanked; None for a tag that is not one of ours."""
    rest = tag.removeprefix(YANKED_TAG)
    item_type, _, name_and_version = rest.partition("--")
    name, _, version = name_and_version.rpartition("--")
    item_id = re.sub(r"Z([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), name.replace(".", "/"))
    # Only the one spelling that `tag_of` gives is ours.
    is_ours = item_type in TYPES and is_version(version) and name and _escaped(item_id) == name
    return Reference(item_type, item_id, version) if is_ours and len(YANKED_TAG + rest) <= _TAG_LENGTH else None


def _escaped(item_id: str) -> str:
    def stand_in(match: re.Match[str]) -> str:
        plain = match[0] in "-_" and re.fullmatch("[A-Za-z0-9].[A-Za-z0-9]", item_id[match.start() - 1 : match.end() + 1])
        return match[0] if plain and match.start() else f"Z{ord(match[0]):02x}"

    return _ESCAPED.sub(stand_in, item_id).replace("/", ".")


_HINT = "A reference reads [oci://host/]namespace/category/name[:version][@sha256:…], such as my/text/report:1.2.0."


def _bad(text: str, why: str) -> UsageError:
    return UsageError("bad_reference", f"Not a reference: {text[:200]!r}: {why}.", _HINT)
