"""Check an edit with a language server: which diagnostics are new, and which are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rye.call.results import call_text
from rye.errors import RyeError
from rye.lsp import queries

if TYPE_CHECKING:
    Rows = list[dict[str, Any]]

_SECONDS = 30.0
_SHOWN = 20


def checked(project_path: str, file_path: str, edit: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of an edit with `check`: `{"available", "server", "broken", "mended", "errors"}`.

    `broken` and `mended` are diagnostics as `queries.diagnosed` returns them; one that only moved is in neither. If no
    server can check it, the edit is made all the same, and `check` is `{"available": false, "reason", "code"}`.
    Errors are the edit's.
    """
    before = _rows(project_path, file_path, missing_is_empty=True)
    result = edit()
    if not result.get("success") or result.get("dry_run"):
        return result
    after = _rows(project_path, file_path) if isinstance(before, list) else before
    if isinstance(after, RyeError) or isinstance(before, RyeError):
        err = after if isinstance(after, RyeError) else before
        assert isinstance(err, RyeError)  # one of them is
        result["check"] = {"available": False, "reason": str(err), "code": err.code}
        result["output"] += f"\n\nNot checked: {err}"
        return result
    path = str(result.get("file_path", file_path))
    broken, mended = _without(after, before), _without(before, after)
    errors = sum(row["severity"] == "error" for row in after)
    result["check"] = {"available": True, "broken": broken, "mended": mended, "errors": errors}
    result["output"] += "\n\n" + "\n".join(_printed(path, broken, mended, errors))
    return result


def _rows(project_path: str, file_path: str, *, missing_is_empty: bool = False) -> Rows | RyeError:
    try:
        with queries.known(project_path, file_path) as (project, path):
            return queries.diagnosed(project, path, _SECONDS)
    except RyeError as err:
        return [] if missing_is_empty and err.code == "file_not_found" else err


def _without(rows: Rows, others: Rows) -> Rows:
    """Return the diagnostics that have no equal among others; lines do not count."""
    unmatched = Counter(map(_key, others))
    out = []
    for row in rows:
        if unmatched[_key(row)]:
            unmatched[_key(row)] -= 1
        else:
            out.append(row)
    return out


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["severity"], row["code"], row["message"]


def _printed(path: str, broken: Rows, mended: Rows, errors: int) -> list[str]:
    lines = [f"Check: {len(broken)} new, {len(mended)} mended, {errors} error{'' if errors == 1 else 's'} now."]
    lines += [f"new: {queries.described(path, row)}" for row in broken[:_SHOWN]]
    if len(broken) > _SHOWN:
        lines.append(f"({len(broken) - _SHOWN} more: {call_text('lsp', file_path=path)})")
    # The line of a mended one may be gone.
    return lines + [f"mended: {row['severity']}: {' '.join(row['message'].split())}" for row in mended[:_SHOWN]]
