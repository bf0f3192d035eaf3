"""The text of PDF documents, page by page, by the library of the extra `pdf`, in a child process of limited time and memory.

A document may come from anywhere, and parsing it can take as long as its author likes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

# The child imports this module by itself: only what it needs there is imported above.
MIME: Final = "application/pdf"
_MOST: Final = 200_000_000
_SECONDS: Final = 30.0
_MEMORY: Final = 2 << 30
_MAX_PAGE: Final = 1 << 20
_NOTICE: Final = 200


def pdf_pages(project_path: str, path: str, first: int, count: int, budget: int) -> dict[str, Any] | None:
    """Return pages of a PDF as a tool's result: `[page 1 of 3]` and its text, for as many pages as fit. None for another file.

    Args:
        project_path: the project root.
        path: the file, confined as every path.
        first: the first page, from 1; a negative one counts from the end.
        count: most pages.
        budget: bytes of the result's text.

    Raises:
        UsageError: `bad_offset`, behind the last page.
        WorkspaceError: `pdf_not_read`: the library is missing, or the document is encrypted, broken or too much for it; as
            `Workspace.file`.
    """
    from rye.call import context
    from rye.call.results import call_text, cut_notice, ok
    from rye.errors import UsageError
    from rye.workspace.workspace import Workspace

    with Workspace(project_path) as ws, ws.file(path) as file:
        if os.pread(file.fd, 5, 0) != b"%PDF-":
            return None
        size, shown = file.stat.st_size, file.shown
        seconds = min(_SECONDS, context.deadline().remaining())
        answers = _run_reader(ws.fd, file.fd, {"first": first, "count": count, "budget": budget}, seconds, size)
    head: dict[str, Any] = answers[0] if answers else {"error": "it could not be read in time, or takes too much memory"}
    if "error" in head:
        raise _refused(shown, size, head["error"])
    total, pages = head["pages"], [one for one in answers[1:] if "text" in one]
    start = first if first > 0 else max(total + first + 1, 1)
    if start > total:
        hint = f"Use an offset from 1 to {total}, which counts pages; a negative one counts from the end."
        raise UsageError("bad_offset", f"offset {first} is past the end: {shown} has {total} page(s).", hint)
    lines, budget_left, at = list[str](), budget - _NOTICE - 2 * len(path.encode("utf-8", "replace")), start
    for page in pages:
        text = page["text"] or "[no text here: a picture, perhaps. `pdftoppm -r 80 -png` makes one that read shows]"
        fitting = _fitting(f"[page {at} of {total}]\n{text}", budget_left, whole=bool(lines))
        if not fitting:
            break
        lines.append(fitting)
        budget_left -= len(fitting.encode("utf-8", "replace")) + 1
        at += 1
    if at <= total:
        lines.append(cut_notice(at - start, total, "pages", call_text("read", file_path=path, offset=at), total - at + 1))
    following = {"next_offset": at} if at <= total else {}
    facts = {"file_path": shown, "mime_type": MIME, "bytes": size, "total_pages": total, "offset": start}
    return ok("\n".join(lines), **facts, truncated=at <= total, **following)


def _fitting(text: str, budget: int, *, whole: bool) -> str:
    """Return a page's text where it fits; the first page of an answer is cut instead."""
    data = text.encode("utf-8", "replace")
    if len(data) <= budget:
        return text
    return "" if whole else f"{data[: max(budget - _NOTICE, 0)].decode('utf-8', 'ignore')}\n[the rest of this page is left out]"


def _run_reader(folder: int, fd: int, task: dict[str, Any], seconds: float, size: int) -> list[dict[str, Any]]:
    """Return what the child says: `{"pages"}` or `{"error"}`, then `{"text"}` of each page."""
    from rye.process.child import Child, own_module

    if size > _MOST:
        return [{"error": f"it has {size:,} bytes; {_MOST:,} are read at most"}]
    command = own_module("rye.web.pdf_text", json.dumps({**task, "fd": fd}), (fd,), libraries=True)
    with Child(command, folder, seconds, _MEMORY) as child:
        output = b"".join(child.blocks())
        child.end()
    # What is complete counts: it may have been ended within a page.
    return [json.loads(line) for line in output.split(b"\n")[:-1]]


def _refused(shown: str, size: int, why: str) -> Exception:
    from rye.errors import WorkspaceError

    hint = "`pdftotext FILE -` in bash prints its text, where that is installed."
    if why == "missing":
        why = "the library that reads PDFs is not installed"
        hint = f"`{sys.executable} -m pip install pypdf` installs it. {hint}"
    return WorkspaceError("pdf_not_read", f"{shown} (PDF document, {size:,} bytes) cannot be shown: {why}.", hint)


def main(task: str) -> int:
    """Print what `_run_reader` returns, in the child process."""
    request = json.loads(task)
    for message in _read(request["fd"], request["first"], request["count"], request["budget"]):
        sys.stdout.write(f"{json.dumps(message)}\n")
        sys.stdout.flush()
    return 0


def _read(fd: int, first: int, count: int, budget: int) -> Iterator[dict[str, Any]]:
    try:
        import pypdf
    except ImportError:
        yield {"error": "missing"}
        return
    try:
        with os.fdopen(os.dup(fd), "rb") as file:
            file.seek(0)
            document = pypdf.PdfReader(file)
            # Many are encrypted with an empty password, which only forbids to print or copy.
            if document.is_encrypted and not document.decrypt(""):
                yield {"error": "it is encrypted"}
                return
            total = len(document.pages)
            start = first - 1 if first > 0 else max(total + first, 0)
            yield {"pages": total}
            for at in range(start, min(start + count, total)):
                try:
                    text = document.pages[at].extract_text()[:_MAX_PAGE]
                except Exception as err:  # noqa: BLE001 - see below; the other pages may be whole
                    yield {"text": f"[this page cannot be read: it is broken ({type(err).__name__}: {err})]"[:_MAX_PAGE]}
                    continue
                text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
                yield {"text": text}
                budget -= len(text.encode("utf-8", "replace"))
                if budget < 0:
                    return
    except Exception as err:  # noqa: BLE001 - a broken document fails anywhere in the library
        yield {"error": f"it is broken ({type(err).__name__}: {err})"}
