"""The primitive `function`: a Python tool's function, in this process for the system's tools, in a confined worker for others.

`config.entry_point` names the function, `execute` where nothing is said. It takes `(params, project_path)`, returns a dict,
and may be `async`.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any

from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import ItemError
from rye.executor import run_code
from rye.executor.chain import Chain, Started, declared
from rye.items import parse
from rye.plain_class import Record, field

if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from rye.items.parse import Tool


class Plan(Record):
    """A tool's compiled module, the name of its function, its other files as base64 by path, and its limit of memory (bytes).

    The limit, 0 for none, holds a worker: this process, which the system's tools share, has none of its own. `kept` has the
    module of a tool of the system bundle: these keep nothing at its top level (tests/test_architecture.py), so it serves all
    calls of these very bytes.
    """

    code: CodeType
    entry_point: str
    files: dict[str, str]
    memory: int = 0
    kept: list[ModuleType] = field(factory=list)


def plan(chain: Chain) -> Plan:
    """Compile a tool. Errors as `rye.executor.chain.Primitive.plan`."""
    tool = chain.tool
    entry_point = declared(chain, "config", {"entry_point": str}).get("entry_point", "execute")
    files = {path: base64.b64encode(data).decode() for path, data in chain.files.items()}
    memory = int(chain.config.get("memory_mb") or 0) << 20
    return Plan(run_code.compiled(parse.text_of(tool.verified.body), tool.id), entry_point, files, memory)


def _runs_here(chain: Chain) -> bool:
    # Its other files stand in a folder of the worker's: this process imports nothing but what is installed.
    return chain.tool.verified.key.role == "system" and not chain.files


def foresee(chain: Chain, _plan: Plan, root: str) -> dict[str, Any] | None:
    """Return the confinement of a call, as `rye.executor.isolated.preview`; None in this process."""
    if _runs_here(chain):
        return None
    from rye.executor import isolated

    return isolated.preview(isolated.policy(chain.tool, root))


def start(chain: Chain, plan: Plan, parameters: dict[str, Any], root: str) -> Started:
    """Make a call ready. Errors as `rye.executor.isolated.worker_for`."""
    tool = chain.tool
    if "__requires__" in tool.metadata:
        _check_requirements(tool)
    if _runs_here(chain):
        kept = plan.kept if chain.links[0].candidate.space == "system" else None
        digest = tool.verified.digest
        return Started(partial(run_code.call, plan.code, tool.id, digest, parameters, root, plan.entry_point, "", kept), None)
    from rye.executor import isolated

    worker = isolated.worker_for(isolated.policy(tool, root))
    work = partial(isolated.call, worker, tool, parameters, plan.entry_point, plan.files, plan.memory)
    return Started(work, worker.reported)


def _check_requirements(tool: Tool) -> None:
    """Return if all distributions that a tool requires are installed where it runs.

    Raises:
        ItemError: `requirement_missing`, naming each, and the command that installs them; `malformed_item`.
    """
    import shlex

    wanted = tool.metadata["__requires__"] or ()
    if not isinstance(wanted, list | tuple) or not all(isinstance(one, str) for one in wanted):
        raise ItemError("malformed_item", f"{tool.id}: __requires__ must be a list of texts.", 'Write ["httpx>=0.28"].')
    missing = [(one, why) for one in wanted if (why := _why_not(one))]
    if missing:
        named = "; ".join(f"{plain(one, 100)} ({why})" for one, why in missing)
        command = shlex.join([user_dirs.python(), "-m", "pip", "install", *(plain(one, 100) for one, _ in missing)])
        raise ItemError("requirement_missing", f"{tool.id} requires {named}.", f"Run `{command}`.")


def _why_not(text: str) -> str:
    """Return why a requirement is not met; nothing where it is, or is not one here."""
    # Only for tools that require something: it reads the installed packages.
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import Requirement

    try:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            return ""
        found = version(requirement.name)
        return "" if requirement.specifier.contains(found, prereleases=True) else f"{plain(found, 40)} is installed"
    except PackageNotFoundError:
        return "not installed"
    except (ValueError, LookupError):
        # The requirement, its marker, or the version that is installed, is none that packages may have.
        return "which cannot be read"
