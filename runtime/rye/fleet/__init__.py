"""Calls in many workspaces, on many processes; loaded when first used, like the names of `rye`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rye.fleet.adapter import run_workspace
    from rye.fleet.driver import run

__all__ = ["run", "run_workspace"]

_HOMES = {"run": "driver", "run_workspace": "adapter"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rye.fleet' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"rye.fleet.{_HOMES[name]}"), name)
    return found
