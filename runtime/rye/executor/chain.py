"""The chain of a tool: the tool, the runtimes that it names, and the primitive that ends it; what the links declare together.

A runtime is a signed YAML item of the type `runtime` whose `executor_id` names the next link. The last link is a primitive:
code in this package, with an item of the system bundle that says which (`primitive: subprocess`). Nothing here knows a
runtime by name.

What the links declare is put together from the primitive to the tool: a link nearer to the tool overrides a key of `config` and
`env_config`. Three things can only become less: `max_timeout_seconds` and `memory_mb` are the lowest of all links, and a tool
has of its permissions those that every link with `permissions` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rye.call.safe_text import plain
from rye.config import layers
from rye.errors import ItemError, UsageError
from rye.items import parse, scripts
from rye.items.parse import Tool
from rye.items.scripts import MOST_LINKS
from rye.items.spaces import Candidate
from rye.plain_class import Record, changed, field
from rye.trust.signature import is_script_suffix

if TYPE_CHECKING:
    from typing import Protocol

PRIMITIVES: Final = {
    "function": "rye.executor.primitives.function",
    "subprocess": "rye.executor.primitives.program",
    "http": "rye.executor.primitives.http_request",
    "mcp": "rye.executor.primitives.mcp_call",
}
"""The name of each primitive, as its item says it in `primitive`, and the module that is its code; see `Primitive`."""

_MOST: Final = 1_000_000_000
_LOWEST: Final = ("max_timeout_seconds", "memory_mb")
_KNOWN_TYPES: Final = ("runtime", "primitive")


class Link(Record):
    """One item of a chain: its bytes as they were read, and what they say once they were verified."""

    candidate: Candidate
    tool: Tool


class Chain(Record):
    """A whole chain.

    Attributes:
        tool: its first link, with the permissions that the chain leaves it.
        links: all links; the tool first.
        report: the links as responses and lockfiles list them.
        primitive: the name of the primitive.
        config: `config` of all links, see the module's text.
        env_config: `env_config` of all links.
        files: content of the tool's other files by path below its folder, as its signed text names them.
    """

    tool: Tool
    links: tuple[Link, ...]
    report: tuple[dict[str, Any], ...]
    primitive: str
    config: dict[str, Any]
    env_config: dict[str, Any]
    files: dict[str, bytes] = field(factory=dict)


class Started(Record):
    """A call that may begin: what runs it, in a thread of its own; where it is confined (None: in this process); warnings."""

    work: Callable[[], Any]
    isolation: dict[str, Any] | None
    warnings: tuple[str, ...] = ()


if TYPE_CHECKING:
    # Making a protocol takes a cold command a millisecond, and only annotations name this one.
    class Primitive(Protocol):
        """What the module of a primitive defines. It answers like a tool, and raises `RyeError` for what it refuses."""

        def plan(self, chain: Chain) -> Any:
            """Return what every call of a tool needs, made once.

            Raises:
                ItemError: the tool, or what its chain declares, cannot be run.
            """

        def foresee(self, chain: Chain, plan: Any, root: str) -> dict[str, Any] | None:
            """Return the confinement of a call without starting anything, as `Started.isolation`."""

        def start(self, chain: Chain, plan: Any, parameters: dict[str, Any], root: str) -> Started:
            """Make a call ready."""


def link(candidate: Candidate, tool_type: str, executor_id: str | None, digest: str) -> dict[str, Any]:
    """Return an item as one link of a chain is listed."""
    return {
        "item_id": candidate.item_id,
        "space": candidate.space,
        "tool_type": plain(tool_type),
        "executor_id": executor_id,
        "integrity": digest,
    }


def _mend(named_by: Link) -> str:
    key = "__executor_id__" if named_by.tool.suffix == ".py" else "executor_id"
    return f"Give {named_by.tool.id} another {key}, and sign it again."


def missing(named_by: Link, err: ItemError) -> ItemError:
    """Return the refusal of a chain whose next link is not found."""
    tool = named_by.tool
    return ItemError(
        "runtime_missing",
        f"{tool.id} names the runtime {plain(str(tool.executor_id))}, which is in none of its spaces.",
        scripts.ten_lines(tool.suffix, tool.verified.raw)
        if is_script_suffix(tool.suffix) and not err.details.get("nearest")
        else f"{err.hint} {_mend(named_by)}".strip(),
        nearest=err.details.get("nearest", []),
    )


def assemble(links: Sequence[Link]) -> Chain:
    """Return the chain that verified links are.

    Raises:
        ItemError: `not_executable`, the first is no tool; `runtime_missing`, it names no runtime, or none that takes such a
            file; `chain_loop`; `chain_too_long`; `wrong_link`, one is no runtime; `no_primitive`, the last is none;
            `malformed_item`.
    """
    _check_order(links)
    tool, behind = links[0].tool, [one.tool for one in links[1:]]
    name = _primitive(links[-1])
    config, env_config = _together(links, "config"), _together(links, "env_config")
    for key in _LOWEST:
        limits = [one.metadata["config"][key] for one in behind if key in _part(one, "config")]
        if limits or config.get(key):
            config[key] = min(_number(tool.id, key, limit) for limit in limits or [config[key]])
    scripts.refuse_unfit(tool.id, tool.suffix, tool.verified.raw, tool.executor_id, [one.metadata for one in behind])
    allowed = changed(tool, permissions=_permissions(tool, behind))
    report = tuple(link(one.candidate, one.tool.tool_type, one.tool.executor_id, one.tool.verified.digest) for one in links)
    return Chain(allowed, tuple(links), report, name, config, env_config)


def _check_order(links: Sequence[Link]) -> None:
    """Refuse links in an order that is not allowed."""
    tool = links[0].tool
    if tool.tool_type in _KNOWN_TYPES:
        what = f"{tool.id} is a {tool.tool_type}: it runs tools, and is none itself."
        raise ItemError("not_executable", what, "Execute a tool that names it.")
    if len(links) == 1:
        raise ItemError(
            "runtime_missing",
            f"{tool.id} is of the type {plain(tool.tool_type) or 'none'} and names no runtime.",
            "Give it an executor_id (`rye search runtime` finds them), and sign it again."
            + (f" {scripts.ten_lines(tool.suffix, tool.verified.raw)}" if is_script_suffix(tool.suffix) else ""),
        )
    ids = [one.tool.id for one in links]
    for at in range(1, len(links)):
        last, named_by = links[at].tool, links[at - 1]
        shown = " -> ".join(ids[: at + 1])
        if last.id in ids[:at]:
            raise ItemError("chain_loop", f"The chain of {tool.id} comes back to {last.id}: {shown}.", _mend(named_by))
        if last.tool_type not in _KNOWN_TYPES:
            raise ItemError(
                "wrong_link",
                f"{named_by.tool.id} names {last.id} as its executor, which is of the type {plain(last.tool_type) or 'none'} "
                "and no runtime.",
                _mend(named_by),
            )
        if at == MOST_LINKS:
            raise ItemError("chain_too_long", f"The chain of {tool.id} has more than {at} links: {shown}.", _mend(named_by))


def _primitive(last: Link) -> str:
    """Return the name of the primitive that a link is; only the system bundle says which items are primitives."""
    tool, name = last.tool, last.tool.metadata.get("primitive")
    own = tool.verified.key.role == "system" and last.candidate.space == "system"
    if tool.tool_type != "primitive" or not own or name not in PRIMITIVES:
        why = f"The chain ends in {tool.id} ({last.candidate.space}), which is no primitive of the system bundle."
        raise ItemError("no_primitive", why, "Let it end in one of rye/core/primitives, and sign it again.")
    return str(name)


def _together(links: Sequence[Link], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # From the primitive to the tool, so that what is nearer to the tool comes last and stays.
    for one in reversed(links):
        found = layers.merged(found, _part(one.tool, name))
    return found


def malformed(item_id: str, why: str) -> ItemError:
    """Return the refusal of a chain that says what it may not."""
    return ItemError("malformed_item", f"The chain of {item_id}: {why}.", "Correct it and sign it again.")


def declared(chain: Chain, part: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Return `config` or `env_config` of a chain, which must have a shape as `rye.config.layers` describes them.

    Raises:
        ItemError: `malformed_item`.
    """
    try:
        found: dict[str, Any] = layers.shaped(getattr(chain, part), shape, part, "")
    except UsageError as err:
        raise malformed(chain.tool.id, err.message.rstrip(".")) from None
    return found


def _part(tool: Tool, name: str) -> dict[str, Any]:
    # A Python tool's constants of any name are its own; only YAML and headers declare for the chain.
    part = tool.metadata.get(name, {}) if tool.suffix != ".py" else {}
    if not isinstance(part, dict):
        raise malformed(tool.id, f"{name} must be a mapping")
    return part


def _number(item_id: str, key: str, value: object) -> float:
    # As one comparison, which NaN fails as well.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        raise malformed(item_id, f"{key} must be a number above 0, of at most {_MOST:,}")
    return value


def _permissions(tool: Tool, behind: Iterable[Tool]) -> tuple[str, ...]:
    """Return what a tool declares, less what a link does not list: a runtime narrows, and never widens."""
    listed = [one.permissions for one in behind if one.metadata.get(parse.PERMISSIONS_KEY) is not None]
    return tuple(one for one in tool.permissions if all(one in allowed for allowed in listed))


def time_limit(chain: Chain) -> float:
    """Return how long a call may take (seconds): what the tool declares or its runtime sets, within what every link allows.

    Raises:
        ItemError: `malformed_item`.
    """
    config, declared = chain.config, chain.tool.metadata.get("__timeout__")
    wanted = config.get("timeout_seconds", config.get("timeout", 300)) if declared is None else declared
    return float(min(_number(chain.tool.id, "timeout", wanted), config.get("max_timeout_seconds") or 3600))
