"""Make the manual page of the wheel: what `rye help --man` prints, which needs the standard library alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    """Puts `man/man1/rye.1` beside the programs of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as the interface has it
        """Write the page into the folder of what is built."""
        if self.target_name != "wheel":
            return
        page = self._page()
        page.parent.mkdir(parents=True, exist_ok=True)
        printed = subprocess.run(
            [sys.executable, "-S", "-B", "-c", "from rye.cli.main import command; command()", "help", "--man"],
            env={**os.environ, "PYTHONPATH": os.path.join(self.root, "runtime"), "COLUMNS": "80"},
            check=True,
            stdout=subprocess.PIPE,
        )
        page.write_bytes(printed.stdout)
        build_data["shared_data"][str(page)] = "share/man/man1/rye.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - as above
        """Remove it: the wheel has it."""
        self._page().unlink(missing_ok=True)

    def _page(self) -> Path:
        return Path(self.directory, "rye.1")
