"""Real source releases, from PyPI through pip and from Debian through apt-get, unpacked and never built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Small, pure, old enough to have habits of many hands; none carries a build backend of its own.
PYPI = {
    "attrs": ("21.4.0", "22.2.0", "23.1.0"),
    "chardet": ("3.0.4", "4.0.0", "5.0.0"),
    "click": ("8.0.4", "8.1.3", "8.1.7"),
    "docutils": ("0.17.1", "0.18.1", "0.19"),
    "feedparser": ("6.0.8", "6.0.10"),
    "html5lib": ("1.0.1", "1.1"),
    "Pygments": ("2.14.0", "2.15.1", "2.16.1"),
    "pyserial": ("3.4", "3.5"),
    "pytz": ("2021.3", "2022.7", "2023.3"),
    "requests": ("2.27.1", "2.28.2", "2.31.0"),
    "Werkzeug": ("2.0.3", "2.2.3", "2.3.7"),
    "xlrd": ("1.2.0", "2.0.1"),
}
DEBIAN = ("bc", "debconf", "hello", "init-system-helpers", "less", "mawk", "nano", "rsync")
DEBIAN_SUITES = ("bookworm", "trixie")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unfetched(Exception):
    """A source that cannot be had here; the message is the reason."""


def pypi_releases(cache: Path) -> Iterator[tuple[str, list[Path] | str]]:
    """Yield each package with its unpacked releases in order, or with the reason why there are none."""
    for name, versions in PYPI.items():
        try:
            yield name, [_pypi_release(cache, name, version) for version in versions]
        except Unfetched as reason:
            yield name, str(reason)


def debian_releases(cache: Path) -> Iterator[tuple[str, list[Path] | str]]:
    """Yield each Debian source with its version in every suite, or the reason why there are none."""
    try:
        apt = _PrivateApt(cache / "apt")
    except Unfetched as reason:
        yield "Debian", str(reason)
        return
    for name in DEBIAN:
        try:
            yield name, [_debian_release(cache, apt, name, suite) for suite in DEBIAN_SUITES]
        except Unfetched as reason:
            yield name, str(reason)


def _pypi_release(cache: Path, name: str, version: str) -> Path:
    kept = cache / "pypi" / f"{name}-{version}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            shutil.move(_unpacked_by_pip(cache, Path(folder), f"{name}=={version}"), kept)
    return kept


def _unpacked_by_pip(cache: Path, folder: Path, requirement: str) -> Path:
    """Have pip download and unpack a release in an interpreter that has no build backend.

    So pip stops before any code of the release could run, and `--no-clean` leaves what it unpacked.
    """
    bare = cache / "bare"
    if not bare.exists():
        venv.create(bare, with_pip=False)
    command = [sys.executable, "-m", "pip", "--python", str(bare / "bin" / "python"), "download", "--quiet"]
    command += ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--no-clean"]
    command += ["--dest", str(folder / "out"), requirement]
    done = _run(command, folder, TMPDIR=str(folder))
    found = [marker.parent for marker in folder.glob("pip-*/*/PKG-INFO")]
    if not found:
        raise Unfetched(f"pip brought no {requirement}: {_last_line(done.stderr)}")
    return found[0]


def _debian_release(cache: Path, apt: _PrivateApt, name: str, suite: str) -> Path:
    kept = cache / "debian" / f"{name}-{suite}"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            archive = apt.source(Path(folder), name, suite)
            unpacked = Path(folder) / "unpacked"
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
            shutil.move(unpacked, kept)
    return kept


class _PrivateApt:
    """apt-get with source lists of its own, so that the machine's need not be changed."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("apt-get"):
            raise Unfetched("no apt-get")
        self._folder = folder
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        archive = self._archive()
        rows = (f"deb-src [signed-by={_KEYRING}] {archive} {suite} main\n" for suite in DEBIAN_SUITES)
        (folder / "sources.list").write_text("".join(rows), "utf-8")
        done = _run(self._command("apt-get", "update"), folder)
        if done.returncode:
            raise Unfetched(f"apt-get update failed: {_last_line(done.stderr)}")

    def source(self, into: Path, name: str, suite: str) -> Path:
        """Download a source and return its archive: the original's, or a native package's only one."""
        arguments = ("source", "--download-only", "-q", "--only-source", f"{name}/{suite}")
        done = _run(self._command("apt-get", *arguments), into)
        archives = [path for path in sorted(into.glob("*.tar.*")) if path.suffix in {".gz", ".xz", ".bz2"}]
        found = [path for path in archives if ".debian." not in path.name]
        if not found:
            raise Unfetched(f"apt-get source brought no {name}/{suite}: {_last_line(done.stderr)}")
        return found[0]

    def _command(self, program: str, *arguments: str) -> list[str]:
        settings = {
            "Dir::Etc::SourceList": self._folder / "sources.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": self._folder / "lists",
            "Dir::Cache": self._folder / "cache",
            # The folder belongs to whoever runs this, not to apt's own user.
            "APT::Sandbox::User": "root",
        }
        return [program, *(f"-o{key}={value}" for key, value in settings.items()), *arguments]

    @staticmethod
    def _archive() -> str:
        """Return the Debian archive that this machine is set to use."""
        done = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], Path.cwd())
        archives = [line for line in done.stdout.splitlines() if line.rstrip("/").endswith("/debian")]
        if not archives or not Path(_KEYRING).exists():
            raise Unfetched("no Debian archive among apt's sources, or no keyring for it")
        return archives[0]


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no message")[:200]
