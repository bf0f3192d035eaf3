"""Tools in any language: suffix, comment marker and first line of a script are what its signed runtime declares.

A runtime lists `suffixes`, the `comment` in which the header stands (without it `#`), and what the first line may begin with
(`after`, without it nothing). Marker and first line lie outside of what a tool's signature covers, so whoever runs a script
compares them with the runtime's text. Lint and sign do so before, with runtimes as they stand there, signed or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import ItemError, RyeError
from rye.items import parse, spaces
from rye.items.spaces import Space
from rye.trust.signature import beginning, is_script_suffix
from rye.trust.verify import Verified

MOST_LINKS: Final = 10
"""How many links a chain may have, the tool and the primitive included."""

# For a hint alone: what a runtime declares counts.
_USUAL: Final = {"--": "lua sql hs", "//": "php ts go js mjs cjs", ";": "scm lisp clj el"}


def refuse_unfit(item_id: str, suffix: str, raw: bytes, executor_id: object, runtimes: Sequence[Mapping[str, Any]]) -> None:
    """Raise ItemError `runtime_missing` unless a tool's runtime and those behind it, the nearest first, take its file."""
    listed = [one for one in runtimes if "suffixes" in one]
    taken = [one for one in listed[0]["suffixes"] if all(one in other["suffixes"] for other in listed)] if listed else []
    script = is_script_suffix(suffix)
    if suffix not in taken and (listed or script):
        what = f"runs {', '.join(map(plain, taken)) or 'no'} files only" if listed else "lists no suffixes"
        hint = "Write the tool in a file of that kind, or name another runtime." if listed else ten_lines(suffix, raw)
        raise ItemError("runtime_missing", f"{item_id} is a {suffix} file, and {plain(str(executor_id))} {what}.", hint)
    if not script:
        return
    first, marker = beginning(raw) or ("", "")
    comment, after = listed[0].get("comment", "#"), listed[0].get("after", "")
    if marker not in ("", comment):
        raise _unlike(item_id, f"its header stands behind {marker}, where the runtime of {suffix} files says {comment}")
    if first and not (first == after or (after == "#!" and first.startswith("#!") and _program(first) in _programs(listed[0]))):
        allowed = f"says {after}" if after else "allows none (`after`)"
        raise _unlike(item_id, f"its first line is {plain(first, 80)}, where the runtime of {suffix} files {allowed}")


def _unlike(item_id: str, why: str) -> ItemError:
    return ItemError("runtime_missing", f"{item_id}: {why}.", "Write it so, or correct the runtime; then sign again.")


def _program(first: str) -> str:
    """Return the name of the program that a first line names."""
    found = re.match(r"#! ?\S*/(\S+)(?: (?:-S )?(\S+))?", first)
    return "" if found is None else (found[2] or "") if found[1] == "env" else found[1]


def _programs(runtime: Mapping[str, Any]) -> set[str]:
    """Return the names of the programs that a runtime starts."""
    env_config, config = runtime.get("env_config"), runtime.get("config")
    text = f"{env_config.get('interpreter') if isinstance(env_config, dict) else ''} {config}"
    return {name.rpartition("/")[2] for name in re.findall(r"'([\w./+-]+)'", text)}


def marker_of(suffix: str, raw: bytes = b"") -> str:
    """Return the comment marker that a script has, or that is usual in its language."""
    found = beginning(raw)
    return found[1] if found else next((mark for mark, names in _USUAL.items() if suffix[1:].lower() in names.split()), "#")


def ten_lines(suffix: str, raw: bytes = b"") -> str:
    """Return the sentence that says how to write a runtime for the files of a suffix, of which one is given."""
    name = suffix[1:].lower()
    first, marker = (beginning(raw) or ("", ""))[0], marker_of(suffix, raw)
    after = "<?php" if first.startswith("<?php") or name == "php" else "#!"
    option = "-f, " if name in ("awk", "jq") else ""
    return (
        f"To run {suffix} files, write .ai/tools/my/runtimes/{name}.yaml with these ten lines (as here, or one below the "
        "other without the outer braces) and sign it: "
        f'{{version: "1.0.0", tool_type: runtime, executor_id: rye/core/primitives/subprocess, category: my/runtimes, '
        f'description: Runs a signed {name} script, suffixes: ["{suffix}"], comment: "{marker}", after: "{after}", '
        f"env_config: {{interpreter: {{var: {name.upper()}, search: [{{path: [{name}]}}]}}}}, "
        f'config: {{command: "${{{name.upper()}}}", args: [{option}"{{tool_path}}"], parameter_env: PARAM_}}}}.'
    )


def check(item_id: str, suffix: str, raw: bytes, search_path: Sequence[Space]) -> None:
    """Hold a script that is being written to the runtime that it names.

    Raises:
        ItemError: `runtime_missing`, `malformed_item`.
    """
    if not is_script_suffix(suffix):
        return
    text = parse.header(raw, suffix)
    executor_id = parse.yaml_mapping(text).get("executor_id") if text is not None else None
    runtimes: list[Mapping[str, Any]] = []
    named = executor_id
    while isinstance(named, str) and len(runtimes) < MOST_LINKS:
        found = text_of(named, search_path)
        if found is None:
            break
        if why := parse.wrong_claim(named, found):
            raise ItemError("malformed_item", f"{named}: {why}.", "Correct it, then sign it again.")
        runtimes.append(found)
        named = found.get("executor_id")
    if not runtimes:
        known = takers(suffix, search_path)
        what = "names no runtime" if executor_id is None else f"names the runtime {plain(str(executor_id))}, which is not there"
        hint = f"Begin it with a header that has executor_id: {known[0]}." if known else ten_lines(suffix, raw)
        close = spaces.similar_ids(str(executor_id), (one for one, _, _ in spaces.served_items("tool", search_path)))
        hint = f"Did you mean {' or '.join(close)}? {hint}" if executor_id is not None and close else hint
        raise ItemError("runtime_missing", f"{item_id} is a {suffix} file that {what}.", hint)
    refuse_unfit(item_id, suffix, raw, executor_id, runtimes)


def text_of(item_id: str, search_path: Sequence[Space]) -> Mapping[str, Any] | None:
    """Return what a YAML item says, signed or not; None where there is none."""
    try:
        found = spaces.find("tool", item_id, search_path)
        return parse.yaml_mapping(found.raw.decode()) if found.suffix in (".yaml", ".yml") else None
    except (RyeError, UnicodeDecodeError):
        return None


def takers(suffix: str, search_path: Sequence[Space]) -> list[str]:
    """Return the ids of the runtimes that list a suffix, those of the nearest space first."""
    listed = (one for space in search_path for one in spaces.items_in(space, "tool"))
    ids = dict.fromkeys(item_id for item_id, path in listed if path.suffix in (".yaml", ".yml"))
    # By the space's own reader: a project can have a pipe of such a name, or a link to a file without end.
    texts = ((one, text_of(one, search_path) or {}) for one in ids)
    runtimes = ((one, text) for one, text in texts if text.get("tool_type") == "runtime" and not parse.wrong_claim(one, text))
    return [one for one, text in runtimes if suffix in text.get("suffixes", ())]


def program_text(verified: Verified) -> bytes:
    """Return a script as its program reads it, each line with the number that it has in the file.

    The first line comes from the fixed list of `after`, where the program needs it; what else is not covered is left blank.
    """
    above = verified.raw[: len(verified.raw) - len(verified.body)]
    first = b"<?php" if above.startswith(b"<?php\n") else b""
    return first + b"\n" * above.count(b"\n") + verified.body
