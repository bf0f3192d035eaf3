"""What this machine lacks, as marks: a test that needs it is skipped, and says what to install."""

from __future__ import annotations

import shutil

import pytest

from rye.sandbox import sandbox

WHY_NO_BUBBLEWRAP = sandbox.layers()["bubblewrap"]
"""Empty where bubblewrap works."""

needs_bubblewrap = pytest.mark.skipif(
    bool(WHY_NO_BUBBLEWRAP),
    reason=f"{WHY_NO_BUBBLEWRAP or 'bubblewrap works'}; only bubblewrap protects this (Debian package bubblewrap)",
)


def needs_programs(*names: str) -> pytest.MarkDecorator:
    """Skip where one of the programs is not installed, naming those that are missing."""
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)} (Debian packages of that name)")
