"""ARCHITECTURE.md names packages and modules that exist, and every package there is."""

from __future__ import annotations

import re

from support.readme_blocks import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
RUNTIME = ROOT / "runtime" / "rye"


def test_every_module_that_the_page_names_exists():
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py)`", PAGE))
    assert len(named) > 10
    assert [one for one in sorted(named) if not any((folder / one).is_file() for folder in (RUNTIME, ROOT))] == []


def test_every_package_stands_on_the_page():
    packages = {path.stem for path in RUNTIME.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    unlisted = {name for name in packages if f"`{name}`" not in PAGE} - {"__init__", "__main__", "_version"}
    assert unlisted == set()
