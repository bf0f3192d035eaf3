"""Check an edit with a language server: which diagnostics are new, and which are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rye.call.results import call_text
from rye.edits.change_forms import touched
from rye.errors import RyeError
from rye.line_ids import addresses
from rye.lsp import queries

_Row = dict[str, Any]
if TYPE_CHECKING:
    Rows = list[_Row]

_SECONDS = 30.0
_SHOWN = 20
_FILES = 10


def checked(
    project_path: str,
    file_path: str,
    edit: Callable[[], dict[str, Any]],
    changes: Sequence[Any] | None = None,
    line_ids: str = "lid",
) -> dict[str, Any]:
    """Return the result of an edit with `check`: `{"available", "broken", "mended", "errors", "not_checked"?}`.

    `broken` and `mended` are diagnostics as `queries.diagnosed` returns them, each with its `file_path`; one that only moved is
    in neither. `not_checked` says why of each file that no server checked; the edit is made all the same. Where none was,
    `check` is `{"available": false, "reason", "code", "not_checked"}`. Errors are the edit's.

    Args:
        project_path: the project.
        file_path: the file of the changes that name none.
        edit: makes the edit.
        changes: as `edit_files` takes them, where there can be other files.
        line_ids: how the answer names lines, as the parameter of `edit_lines`.
    """
    form = addresses.form_of(line_ids)
    paths = {file_path: file_path} if changes is None else touched([*changes], file_path)
    why: dict[str, str] = {}
    for path, now in paths.items():
        if now not in (path, None):
            # A server may take a moment to know a file under its new name, and finds nothing in it until then.
            why[str(now)] = f"it was renamed; {_ask(str(now))}"
    others = [path for path, now in paths.items() if now in (path, None)]
    why |= dict.fromkeys(others[_FILES:], f"only {_FILES} files are checked in one call.")
    before = {path: _rows(project_path, path, form, may_miss=True) for path in others[:_FILES]}
    result = edit()
    if not result.get("success") or result.get("dry_run"):
        return result
    broken, mended = list[_Row](), list[_Row]()
    errors, count, refused = 0, 0, list[RyeError]()
    for path, was in before.items():
        old = [] if was is None else was
        # A file that is deleted has nothing to check.
        new = old if isinstance(old, RyeError) else [] if paths[path] is None else _rows(project_path, path, form) or []
        if isinstance(old, RyeError) or isinstance(new, RyeError):
            refused += [one for one in (new,) if isinstance(one, RyeError)]
            why[path] = str(new)
            continue
        if was is None and not new:
            why[path] = f"it is new, and a server may not know it yet; {_ask(path)}"
            continue
        count += 1
        broken += [{"file_path": path, **row} for row in _without(new, old)]
        mended += [{"file_path": path, **row} for row in _without(old, new)]
        errors += sum(row["severity"] == "error" for row in new)
    lines = [f"{path} not checked: {reason}" for path, reason in why.items()]
    if count:
        result["check"] = {"available": True, "broken": broken, "mended": mended, "errors": errors}
        lines = _printed(broken, mended, errors, form) + lines
    else:
        code = refused[0].code if refused else "not_checked"
        result["check"] = {"available": False, "reason": next(iter(why.values()), ""), "code": code}
    result["check"] |= {"not_checked": why} if why else {}
    result["output"] += "\n\n" + "\n".join(lines)
    return result


def _ask(path: str) -> str:
    return f"{call_text('lsp', file_path=path)} shows what it has now."


def _rows(project_path: str, file_path: str, form: str, *, may_miss: bool = False) -> Rows | RyeError | None:
    """Return a file's diagnostics, or why there are none; with `may_miss` None for a file that does not exist."""
    try:
        with queries.open_for_query(project_path, file_path, _SECONDS) as (project, path):
            project.form = form
            return queries.diagnosed(project, path, _SECONDS)
    except RyeError as err:
        return None if may_miss and err.code == "file_not_found" else err


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


def _printed(broken: Rows, mended: Rows, errors: int, form: str) -> list[str]:
    lines = [f"Check: {len(broken)} new, {len(mended)} mended, {errors} error{'' if errors == 1 else 's'} now."]
    lines += [f"new: {queries.described(row['file_path'], row, form)}" for row in broken[:_SHOWN]]
    if len(broken) > _SHOWN:
        lines.append(f"({len(broken) - _SHOWN} more: {call_text('lsp', file_path=broken[_SHOWN]['file_path'])})")
    # The line of a mended one may be gone.
    return lines + [f"mended: {row['severity']}: {' '.join(row['message'].split())}" for row in mended[:_SHOWN]]
