"""`__requires__` of a Python tool: the distributions that it imports, checked before it runs."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from rye.call.safe_text import plain
from rye.errors import ItemError

if TYPE_CHECKING:
    from rye.items.parse import Tool


def check(tool: Tool) -> None:
    """Return if all that a tool requires is installed where it runs.

    Raises:
        ItemError: `requirement_missing`, naming each, and the command that installs them; `malformed_item`.
    """
    declared = tool.metadata.get("__requires__", ())
    if not declared:
        return
    if not isinstance(declared, list | tuple) or not all(isinstance(one, str) for one in declared):
        raise ItemError("malformed_item", f"{tool.id}: __requires__ must be a list of texts.", 'Write ["httpx>=0.28"].')
    missing = [(one, why) for one in declared if (why := _why_not(one))]
    if not missing:
        return
    named = "; ".join(f"{plain(one, 100)} ({why})" for one, why in missing)
    command = shlex.join([sys.executable, "-m", "pip", "install", *(plain(one, 100) for one, _ in missing)])
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
    except ValueError:
        # The requirement, or the version that is installed, is none that packages may have.
        return "which cannot be read"
