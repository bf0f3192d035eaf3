"""What the swe searches in contents share: quoted patterns are plain text, and every match is printed on one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rye.call import results
from rye.filesearch import content_search
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern
from rye.line_ids.addresses import form_of, one_view
from rye.line_ids.render import Hit, Seen

_QUOTES = ("'", '"')


def search(
    project_path: str, tool: str, params: dict[str, Any], schema: Mapping[str, Any], path: str, form: str
) -> dict[str, Any]:
    """Return a swe tool's result for a search in contents.

    Args:
        project_path: the project.
        tool: the tool's name, for the call that continues.
        params: its parameters, with defaults.
        schema: its CONFIG_SCHEMA.
        path: the folder or file to search.
        form: how a match is printed, with `{path}`, `{line}` and `{text}`.

    Raises:
        UsageError, WorkspaceError: as `content_search.opened`.
    """
    text, quoted = _unquoted(params["pattern"])
    query = content_search.ContentQuery(
        Pattern(text, params["ignore_case"], params["literal"] or quoted),
        path,
        params.get("include"),
        **filesearch_tree.scope(params),
    )

    named = form_of(params["line_ids"])

    def printed(path: str, hit: Hit, seen: Seen, _at: int) -> list[str]:
        row = one_view(seen.rows[hit.line], named)
        return [form.format(path=path, line=hit.line, text=row.mark + content_search.around(hit, row))]

    with content_search.opened(project_path, query) as found:
        end = found.show(0, printed, named)
        count, total, notices = len(found.matches), found.total, found.notices()
        cut = results.left_out(notices, count, end, total, "matches", results.next_call(tool, params, schema))
        facts = {"matches": found.matches, "count": count, "total": total, "notices": notices}
        return filesearch_tree.answer(found.tree, [*found.page.lines, *notices], cut, **facts)


def _unquoted(pattern: str) -> tuple[str, bool]:
    """Return a pattern without the quotes it is wrapped in, and whether there were any: it is plain text then."""
    # A lone quote, or two with nothing between them, is a pattern itself.
    quoted = len(pattern) > 2 and pattern[0] in _QUOTES and pattern[-1] == pattern[0]
    return (pattern[1:-1], True) if quoted else (pattern, False)
