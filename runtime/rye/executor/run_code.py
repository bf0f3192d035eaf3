"""Compile and run a tool's verified text, in a thread of its own.

This is the only module that compiles or executes code. A thread takes the next call's work when its own has returned, because
starting a thread costs more than a small tool; a thread whose tool outlives its call is not shared. Work carries its own
context, so nothing of a call remains in a thread.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from _queue import SimpleQueue  # `queue` loads more, which takes time
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from rye.errors import ItemError, UsageError


def compiled(source: str, item_id: str) -> CodeType:
    """Compile a tool's text: encoding cookies are ignored, and no .pyc is read or written.

    Raises:
        ItemError: `malformed_item`.
    """
    try:
        return compile(source, f"<{item_id}>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        # What parses need not compile: a `return` outside a function.
        raise ItemError("malformed_item", f"{item_id} is not valid Python: {err}.", "Correct it and sign it again.") from None


def call(
    code: CodeType,
    item_id: str,
    digest: str,
    parameters: dict[str, Any],
    root: str,
    entry_point: str = "execute",
    folder: str = "",
    kept: list[ModuleType] | None = None,
) -> Any:
    """Run the module from its start and return what its function returns for (params, project_path), awaited if it must be.

    `folder` holds the tool's other files, where it has any. A tool whose module holds nothing of a call may give `kept`, where
    the module stays: its text is run at the first call only.

    Raises:
        UsageError: `no_entry_point`; and whatever the tool raises.
    """
    module = kept[0] if kept else _module(code, item_id, digest, folder)
    if kept is not None and not kept:
        kept.append(module)
    execute = getattr(module, entry_point, None)
    if not callable(execute):
        why = f"{item_id} has no function {entry_point}()."
        raise UsageError("no_entry_point", why, f"Define {entry_point}(params, project_path).")
    answer = execute(parameters, root)
    if hasattr(answer, "__await__"):
        import asyncio

        async def waited() -> Any:
            return await answer

        return asyncio.run(waited())
    return answer


def _module(code: CodeType, item_id: str, digest: str, folder: str) -> ModuleType:
    """Make a tool's module by running its text from the start: state at its top level is not seen by another call."""
    module = ModuleType(f"rye_tool_{digest[:16]}")
    if folder:
        # A tool of several files finds the others beside its own.
        module.__file__ = f"{folder}/{item_id.rpartition('/')[2]}.py"
    # Dataclasses and pickles of a tool look their module up by name.
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)  # noqa: S102 - verified bytes, compiled above
    return module


def checked(answer: Any, item_id: str) -> dict[str, Any]:
    """Return what a tool returned, if it is a result.

    Raises:
        ItemError: `bad_tool_result`: it is no dict, says neither `success` nor `error`, or no yes or no there, or is no JSON.
    """
    if not isinstance(answer, dict):
        wrong = f"{type(answer).__name__}, not a dict"
    elif not answer.keys() & {"success", "error"}:
        wrong = "a dict without success"
    elif not isinstance(answer.get("success", False), bool):
        wrong = "a dict whose success is neither True nor False"
    else:
        try:
            # A long text need not be serialised to be checked.
            plain = (str, bool, type(None))
            rest = {name: value for name, value in answer.items() if type(name) is not str or type(value) not in plain}
            json.dumps(rest, allow_nan=False)
            return answer
        except (TypeError, ValueError, RecursionError) as err:
            wrong = f"a dict that is no JSON ({type(err).__name__}: {err})"
    hint = 'Let it return {"success": True, "output": text}, or {"success": False, "error": text}, and sign it again.'
    raise ItemError("bad_tool_result", f"The function of {item_id} returned {wrong}.", hint)


class Crashed(Exception):  # noqa: N818 - it says what happened to the tool
    """What a tool in a process of its own raised: `kind` is the class's name, `trace` the traceback; both from the tool."""

    def __init__(self, kind: str, trace: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.trace = trace


_MOST_FREE = 8

_free: list[SimpleQueue[Callable[[], object]]] = []


def start(work: Callable[[], object]) -> None:
    """Run `work`, which handles its own failures, in a thread beside the caller's.

    Raises:
        RuntimeError: the system gives no thread.
    """
    is_new = False
    try:
        # `pop` and `append` of a list are atomic in CPython; no lock is needed here.
        given = _free.pop()
    except IndexError:
        given, is_new = SimpleQueue(), True
    # First: who is interrupted while a thread starts, by a signal, would leave one that waits for ever.
    given.put(work)
    if is_new:
        # Not the work itself, which the thread would keep as long as it lives.
        threading.Thread(target=_serve, args=(given,), name="rye-tool", daemon=True).start()


def _serve(given: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        work = given.get()
        work()
        # Otherwise the objects of the call would live until the next one.
        del work
        if len(_free) >= _MOST_FREE:
            return
        _free.append(given)


# Only the forking thread exists in a forked child.
os.register_at_fork(after_in_child=_free.clear)
