"""The one place where code is compiled and run: a tool's verified text, in this process or in a confined one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rye.errors import ItemError, UsageError

if TYPE_CHECKING:
    from types import CodeType


def compiled(text: str, item_id: str) -> CodeType:
    """Compile a tool's text: a str, so that no encoding cookie is obeyed; no file is opened, so that no `.pyc` is.

    Raises:
        ItemError: `malformed_item`.
    """
    try:
        return compile(text, f"<{item_id}>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        # What parses need not compile: a `return` outside a function.
        raise ItemError("malformed_item", f"{item_id} is not valid Python: {err}.", "Correct it and sign it again.") from None


def call(code: CodeType, item_id: str, digest: str, parameters: dict[str, Any], root: str) -> Any:  # noqa: ANN401 - the tool's
    """Run the module anew and return what its `execute(params, project_path)` returns, awaited if it must be.

    Raises:
        UsageError: `no_entry_point`; and whatever the tool raises.
    """
    module = ModuleType(f"rye_tool_{digest[:16]}")
    # Dataclasses and pickles of a tool look their module up by name.
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)  # noqa: S102 - verified bytes, compiled above
    execute = getattr(module, "execute", None)
    if not callable(execute):
        raise UsageError("no_entry_point", f"{item_id} has no function execute().", "Define execute(params, project_path).")
    answer = execute(parameters, root)
    if hasattr(answer, "__await__"):
        import asyncio

        async def waited() -> Any:  # noqa: ANN401 - see above
            return await answer

        return asyncio.run(waited())
    return answer


class Crashed(Exception):  # noqa: N818 - it says what happened to the tool
    """What a tool in a process of its own raised: `kind` is the class's name, `trace` the traceback; both its own word."""

    def __init__(self, kind: str, trace: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.trace = trace
