"""RYE workspace tools: signed tools for coding agents, and the small runtime that verifies, validates, confines and runs them.

Public names are loaded when first used, so that `import rye` costs nothing.
"""

from __future__ import annotations

from rye._version import __version__

# As `typing` has it, which takes time to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye import fleet
    from rye.agents.discovery import tools
    from rye.agents.toolset import toolset
    from rye.api import execute, load, search, sign, verify
    from rye.errors import RyeError

__all__ = ["RyeError", "__version__", "execute", "fleet", "load", "search", "sign", "tools", "toolset", "verify"]

_HOMES = dict.fromkeys(("execute", "load", "search", "sign", "verify"), "api") | {
    "tools": "agents.discovery",
    "toolset": "agents.toolset",
    "fleet": "fleet",
    "RyeError": "errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rye' has no attribute {name!r}")
    from importlib import import_module

    if name == "fleet":
        # A package, which has public names of its own.
        return import_module("rye.fleet")
    # The next use finds the name in the module and does not call this function.
    found = globals()[name] = getattr(import_module(f"rye.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
