"""The functions of the package and the shapes of their answers: execute, search, load, sign, verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rye.call.context import CallOptions
from rye.errors import UsageError
from rye.executor.executor import Call, run
from rye.fs import stamps
from rye.items import spaces
from rye.workspace.workspace import find_root, root_to_work_in

if TYPE_CHECKING:
    from pathlib import Path

    from rye.items.targets import Target

_NOTHING_ASKED = CallOptions()


def execute(
    item_id: str,
    parameters: dict[str, Any] | None = None,
    *,
    item_type: str = "tool",
    project_path: str | Path | None = None,
    dry_run: bool = False,
    options: CallOptions | None = None,
    reach: Callable[[str, str], bool] | None = None,
) -> dict[str, Any]:
    """Run a tool, read knowledge or fill in a directive, and return the response; it raises only for a malformed call.

    The response is that of `rye.executor.executor.run`, for knowledge and directives that of `rye.executor.texts.run`.

    Args:
        item_id: such as `rye/file-system/read`.
        parameters: as the item's CONFIG_SCHEMA says; never templated or expanded.
        item_type: `tool`, `knowledge` or `directive`.
        project_path: the project root; paths in parameters are below it. None: that of the current folder, which is the
            nearest ancestor with `.git`, or with an `.ai` that holds more than `cache`, else the folder itself.
        dry_run: do everything except run.
        options: what the caller asks for: less output, output as it comes, cancellation, whose call it is.
        reach: tells by type and id what the primary tools may reach on behalf of this call; None for everything.

    Raises:
        UsageError: `bad_call`, when an argument is of the wrong type; `no_project`, when none is named in a home.
    """
    root = root_to_work_in(project_path) if isinstance(project_path, str | os.PathLike | None) else None
    # Here and not deeper: the executor answers with results, but a wrong type is the caller's bug.
    if not (isinstance(item_id, str) and isinstance(item_type, str) and isinstance(root, str)) or "\0" in root:
        raise UsageError(
            "bad_call",
            "item_id and item_type must be text, and project_path a path.",
            'Call rye.execute("rye/file-system/read", {…}, project_path=".").',
        )
    given = {} if parameters is None else parameters
    return answer(Call(item_type, item_id, given, root, dry_run, False, options or _NOTHING_ASKED, reach))


def _root(named: str | Path | None) -> str:
    return find_root() if named is None else os.fspath(named)


def answer(call: Call) -> dict[str, Any]:
    """Answer a call of any item type; see `execute`."""
    if call.item_type in ("knowledge", "directive"):
        from rye.executor import texts as executor_texts

        return executor_texts.run(call)
    return run(call)


def search(
    query: str,
    scope: str | None = None,
    *,
    project_path: str | Path | None = None,
    space: str = "all",
    limit: int = 10,
    offset: int = 0,
    sort_by: str = "score",
    fields: Sequence[str] | None = None,
    filters: Mapping[str, Any] | None = None,
    fuzzy: Mapping[str, Any] | None = None,
    proximity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Search the verified items of a project's spaces, the best first; a shadowed item does not appear.

    Args:
        query: words, "phrases", wild* words, AND, OR, NOT (in capitals) and parentheses; `*` for everything. Of bare words not
            every one need be found: items with most of them come first.
        scope: an item type and a place, such as `tool.rye.file-system.*` or `knowledge`; None for every type.
        project_path: the project root; None: as for `execute`.
        space: `project`, `user`, `system`, or `all`.
        limit: most results, 1 to 100.
        offset: how many to leave out first.
        sort_by: `score`, `name` or `date` (created_at, newest first).
        fields: those to search, of title, name, description, category, tags, body; None for all.
        filters: what fields of an item must be; see `rye.catalog.search`.
        fuzzy: `{"enabled": true, "max_distance": 1 to 3}`: bare words may be misspelt.
        proximity: `{"enabled": true, "max_distance": 5}`: bare words must be near to one another.

    Returns:
        `{"results": [{"type", "id", "name", "title", "description", "preview", "category", "source", "path", "score",
        "metadata", "signed", "integrity", "signer", "owner"}], "total", "query", "scope", "space", "limit", "offset",
        "search_type", "long_form"?, "unverified"?}`: `long_form` has the `type`, `id` and whole `text` of the item whose id the
        query is, or of the tool whose name it is; `unverified` counts, by verdict, the items that were not searched.

    Raises:
        UsageError: `bad_query`, showing the place; `bad_scope`, `bad_search`, `search_unavailable`.
    """
    from rye.catalog import search as catalog_search

    wanted = catalog_search.SearchRequest(query, scope, space, limit, offset, sort_by, fields, filters, fuzzy, proximity)
    return catalog_search.search(wanted, _root(project_path))


def load(
    item_type: str,
    item_id: str,
    *,
    project_path: str | Path | None = None,
    source: str | None = None,
    destination: str | None = None,
    overwrite: bool = False,
    allow_downgrade: bool = False,
) -> dict[str, Any]:
    """Return an item's verified text; with a destination, copy the item to it, byte for byte, signature included.

    Args:
        item_type: `tool`, `knowledge` or `directive`.
        item_id: such as `rye/file-system/read`.
        project_path: the project root; None: as for `execute`.
        source: `project`, `user` or `system`; None for the first space that serves the id.
        destination: `project` or `user`; None for no copy.
        overwrite: let the copy replace another file.
        allow_downgrade: let the copy have a lower version than the item that is there, is locked there, or was seen before.

    Returns:
        `{"status": "success", "type", "item_id", "content", "metadata": {"name", "extension", "version", …}, "path",
        "source", "item": {"space", "version", "digest", "signer", "owner"}, "warnings"}`, with a destination also
        `"copied_to", "destination_path", "replaced"` (the SHA-256 of the file that was there, None for none).

    Raises:
        ItemError: `item_not_found`, `malformed_item`; `destination_exists`, nothing was copied.
        TrustError: its `code` is the verdict; `downgrade`, nothing was copied. UsageError: `bad_space`, `same_space`.
        WorkspaceError: what the system refuses.
    """
    from rye.executor import texts as executor_texts

    return executor_texts.load(
        item_type, item_id, _root(project_path), source, destination, overwrite=overwrite, allow_downgrade=allow_downgrade
    )


def verify(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path | None = None,
    space: str | None = None,
    trust: Sequence[str | Path] = (),
    everything: bool = False,
) -> list[dict[str, Any]]:
    """Return the verdict on each file.

    Args:
        targets: item ids; files, folders and globs, from the current directory.
        project_path: the project root, whose spaces serve ids and whose trusted keys count.
        space: `project`, `user` or `system`: ids and `everything` come from this one only.
        trust: key documents that count for this call, with authority over all ids of the files, those under `rye/` included.
        everything: every item of the spaces, in place of targets; of a release also every file of the package `rye`.

    Returns:
        Rows as `rye.items.sign_verify.verify` yields them, of `rye.items.release_list.rows` last.

    Raises:
        ItemError: a target names nothing.
        UsageError: `bad_targets`, `bad_space`, `bad_key_document`, and those of `rye.items.targets.resolve`.
    """
    from rye.items import release_list, sign_verify
    from rye.trust import keys

    search_path = spaces.spaces(_root(project_path))
    store = spaces.trust_store(search_path, keys.named_documents(trust))
    rows = list(sign_verify.verify(_targets(targets, _only(search_path, space), everything), store))
    # The list of the package's files belongs to the system space alone.
    return [*rows, *release_list.rows(store)] if everything and space in (None, "system") else rows


def sign(
    targets: str | Path | Sequence[str | Path] = (),
    *,
    project_path: str | Path | None = None,
    key: str | Path | None = None,
    everything: bool = False,
    space: str | None = None,
) -> list[dict[str, Any]]:
    """Sign files in place and return what became of each; what is wrong with the call itself is raised before any is signed.

    Args:
        targets: as for `verify`.
        project_path: as for `verify`.
        key: a private key file; else that of RYE_SIGNING_KEY, else `${USER_SPACE:-~}/.ai/keys/private_key.pem`.
        everything: every item of the project's own `.ai`, or of `space`. Not of all spaces: what a user has from others
            would silently become their own.
        space: as for `verify`.

    Returns:
        Rows as `rye.items.sign_verify.sign` yields them.

    Raises:
        RyeError: `key_not_found`, `key_unreadable`, and those of `verify`.
        TrustError: `bad_key`.
    """
    from rye.items import sign_verify
    from rye.trust import keys

    root = _root(project_path)
    search_path = _only(spaces.spaces(root), space)
    if everything and space is None:
        # By identity, since a link may make the user's folder the project's.
        own = stamps.identity(os.path.join(root, ".ai"))
        search_path = [one for one in search_path if own is not None and stamps.identity(one.folder) == own]
    return list(sign_verify.sign(_targets(targets, search_path, everything), keys.signing_key(key), root))


def _targets(given: str | Path | Sequence[str | Path], search_path: Sequence[spaces.Space], everything: bool) -> list[Target]:
    from rye.items import targets

    texts = [os.fspath(one) for one in ([given] if isinstance(given, str | os.PathLike) else given)]
    # Neither, too: an empty list from a script must not come to mean everything.
    if bool(texts) == everything:
        raise UsageError(
            "bad_targets",
            "Give targets, or ask for every item; not both, not neither.",
            "Name item ids, files, folders or globs, or give --all.",
        )
    return targets.all_targets(search_path) if everything else targets.resolve(texts, search_path)


def _only(search_path: Sequence[spaces.Space], name: str | None) -> list[spaces.Space]:
    known = [space.name for space in search_path]
    if name is None or name in known:
        return [space for space in search_path if name in (None, space.name)]
    raise UsageError("bad_space", f"There is no space {name!r} here.", f"Spaces here: {', '.join(known)}.")
