"""RYE workspace tools: signed tools for coding agents, and the small runtime that verifies, validates, confines and runs them.

Public names are loaded when first used, so that `import rye` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rye.api import execute, load, search, sign, verify
    from rye.discovery import tools
    from rye.errors import RyeError
    from rye.toolsets import toolset

__version__ = "0.1.0"
__all__ = ["RyeError", "__version__", "execute", "load", "search", "sign", "tools", "toolset", "verify"]

_HOMES = dict.fromkeys(("execute", "load", "search", "sign", "verify"), "api") | {
    "tools": "discovery",
    "toolset": "toolsets",
    "RyeError": "errors",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the module's own names, typed above
    if name not in _HOMES:
        raise AttributeError(f"module 'rye' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rye.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
