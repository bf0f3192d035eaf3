"""The house's functions and the shapes of their answers: execute, sign, verify."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye import spaces
from rye.errors import UsageError
from rye.executor import Call, run
from rye.toolkit.output import NO_DOOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rye.targets import Target
    from rye.toolkit.output import Door


def execute(
    item_id: str,
    parameters: dict[str, Any] | None = None,
    *,
    item_type: str = "tool",
    project_path: str | Path = ".",
    dry_run: bool = False,
    door: Door | None = None,
) -> dict[str, Any]:
    """Run an item and return the response (see `rye.executor.run`); it raises only for a malformed call.

    Args:
        item_id: such as `rye/file-system/read`.
        parameters: as the item's CONFIG_SCHEMA says; never templated or expanded.
        item_type: `tool`.
        project_path: the project root; paths in parameters are below it.
        dry_run: do everything except run.
        door: what the caller's door asks for: less output, output as it comes, cancellation.

    Raises:
        UsageError: `bad_call`, when an argument is of the wrong type.
    """
    root = os.fspath(project_path) if isinstance(project_path, str | os.PathLike) else None
    if not (isinstance(item_id, str) and isinstance(item_type, str) and isinstance(root, str)) or "\0" in root:
        raise UsageError(
            "bad_call",
            "item_id and item_type must be text, and project_path a path.",
            'Call rye.execute("rye/file-system/read", {…}, project_path=".").',
        )
    given = {} if parameters is None else parameters
    return run(Call(item_type, item_id, given, root, dry_run, door=door or NO_DOOR))


def verify(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path = ".",
    space: str | None = None,
    trust: Sequence[str | Path] = (),
    everything: bool = False,
) -> list[dict[str, Any]]:
    """Return the verdict on each file; see `verify_iter`."""
    return list(verify_iter(targets, project_path=project_path, space=space, trust=trust, everything=everything))


def verify_iter(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path = ".",
    space: str | None = None,
    trust: Sequence[str | Path] = (),
    everything: bool = False,
) -> Iterator[dict[str, Any]]:
    """Give the verdicts one by one; what is wrong with the call itself is raised at once.

    Args:
        targets: item ids; files, folders and globs, from the current directory.
        project_path: the project root, whose spaces serve ids and whose trusted keys count.
        space: `project`, `user` or `system`: ids and `everything` come from this one only.
        trust: key documents that count for this call.
        everything: every item of the spaces, in place of targets.

    Returns:
        Rows as `rye.attest.verify` yields them.

    Raises:
        ItemError: a target names nothing.
        UsageError: `bad_targets`, `bad_space`, `bad_key_document`, and those of `rye.targets.resolve`.
    """
    from rye import attest, keyring

    among = spaces.spaces(project_path)
    store = spaces.trust_store(among, keyring.named_documents(trust))
    return attest.verify(_targets(targets, _only(among, space), everything), store)


def sign(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path = ".",
    key: str | Path | None = None,
    everything: bool = False,
    space: str | None = None,
) -> list[dict[str, Any]]:
    """Sign files in place and return what became of each; see `sign_iter`."""
    return list(sign_iter(targets, project_path=project_path, key=key, everything=everything, space=space))


def sign_iter(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path = ".",
    key: str | Path | None = None,
    everything: bool = False,
    space: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Sign the files one by one as the rows are taken; what is wrong with the call itself is raised at once.

    Args:
        targets: as for `verify_iter`.
        project_path: as for `verify_iter`.
        key: a private key file; else that of RYE_SIGNING_KEY, else `${USER_SPACE:-~}/.ai/keys/private_key.pem`.
        everything: every item of the project's own `.ai`, or of `space`. Not of all spaces: what a user has from others
            would silently become their own.
        space: as for `verify_iter`.

    Returns:
        Rows as `rye.attest.sign` yields them.

    Raises:
        RyeError: `key_not_found`, `key_unreadable`, and those of `verify_iter`.
        TrustError: `bad_key`.
    """
    from rye import attest, keyring

    among = _only(spaces.spaces(project_path), space)
    if everything and space is None:
        own = Path(project_path) / ".ai"
        among = [one for one in among if own.exists() and one.folder.exists() and one.folder.samefile(own)]
    return attest.sign(_targets(targets, among, everything), keyring.signing_key(key))


def _targets(given: str | Path | Sequence[str | Path], among: Sequence[spaces.Space], everything: bool) -> list[Target]:
    from rye import targets

    texts = [os.fspath(one) for one in ([given] if isinstance(given, str | os.PathLike) else given)]
    if bool(texts) == everything:
        raise UsageError(
            "bad_targets", "Give targets, or ask for every item; not both, not neither.",
            "Name item ids, files, folders or globs, or give --all.",
        )  # fmt: skip
    return targets.every(among) if everything else targets.resolve(texts, among)


def _only(among: Sequence[spaces.Space], name: str | None) -> list[spaces.Space]:
    known = [space.name for space in among]
    if name is None or name in known:
        return [space for space in among if name in (None, space.name)]
    if name in ("project", "user", "system"):
        stands = known[0] if name == "project" else "system"
        raise UsageError("bad_space", f"The {name} space is the {stands} space here.", f"Use {stands}.")
    raise UsageError("bad_space", f"There is no space {name!r}.", "Spaces are project, user and system.")
