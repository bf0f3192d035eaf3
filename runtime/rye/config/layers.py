"""Settings files of `.ai/config`, from the system bundle, the user's space and the project; each layer by itself.

Whoever reads them decides what a project may say: a project's file comes from whoever wrote the repository.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rye.config import settings, user_dirs, yaml_files
from rye.plain_class import Record


class Layers(Record):
    """The mappings of one settings file, which readers leave as they are; {} where a layer has none."""

    system: dict[str, Any]
    user: dict[str, Any]
    project: dict[str, Any]

    @property
    def own(self) -> dict[str, Any]:
        """Return what the system and the user say, the user's values win."""
        return merged(self.system, self.user)


def load(root: str, name: str) -> Layers:
    """Return the layers of `.ai/config/<name>`.

    Raises:
        UsageError: `bad_config`, when a file is not a YAML mapping, or has another shape than `rye.config.yaml_files` says.
    """
    system = _bundled(name)
    user = user_file(name)
    read = [(settings.read(system), str(system)), (settings.read(user), str(user)), settings.of_project(root, name)]
    return Layers(*(yaml_files.checked(name, settings.mapping_of(data, where), where) for data, where in read))


def user_file(name: str) -> Path:
    """Return where the user's own file of this name lies."""
    return Path(user_dirs.user_ai()) / "config" / name


def merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return two mappings as one: mappings are merged, anything else is replaced."""
    both = {name: merged(under[name], value) if _both(under.get(name), value) else value for name, value in over.items()}
    return {**under, **both}


def _both(one: object, other: object) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _bundled(name: str) -> Path:
    """Return the system bundle's file: beside the installed package, or in a checkout at its top."""
    package = Path(__file__).resolve().parents[1]
    installed = package / ".ai"
    return (installed if installed.is_dir() else package.parents[1] / ".ai") / "config" / name
