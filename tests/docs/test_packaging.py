"""What is shipped: the wheel, the sdist and an editable install each built, installed and run."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import rye
from rye.trust import signature
from rye.trust import verify as trust_verify

RUNTIME = Path(rye.__file__).parent
ROOT = RUNTIME.parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SHIPPED = ("tools", "knowledge", "directives", "config", "trusted_keys", "bundles")
IMPORTED_AS = {"pyyaml": "yaml"}


def run(*words, cwd=None, env=None, check=True):
    """Run a process without this one's PYTHONPATH."""
    base = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**base, **(env or {})}, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def build(source, out, kind):
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", out, source)
    (built,) = out.iterdir()
    return built


def wheel_content(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


def in_git(*folders):
    listed = run("git", "ls-files", "-z", "--", *folders, cwd=ROOT).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).exists()}


def environment(folder):
    """Make an environment of its own that sees the dependencies installed here, but no rye."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    import yaml

    # A .pth names a folder; the .pth files in that folder, and so an editable rye, are not followed.
    (site / "dependencies.pth").write_text(f"{Path(yaml.__file__).parents[1]}\n", encoding="utf-8")
    return folder / "bin/python"


def install(python, *what):
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", "--no-index", *what)


def try_out(python, project):
    """Verify, list, read and edit with an installed rye; return where it lies."""
    command = python.parent / "rye"
    user = {"USER_SPACE": str(project / "user")}
    (project / "a.txt").write_bytes(b"one\ntwo\n")
    rows = json.loads(run(command, "verify", "--all", "--json", cwd=project, env=user).stdout)
    assert {row["verdict"] for row in rows} == {"valid"}
    assert {row["owner"] for row in rows} == {"rye"}
    assert {"rye/file-system/read", "rye/core/runtimes/python_function_runtime"} <= {row["item_id"] for row in rows}
    read = run(command, "execute", "rye/file-system/read", "file_path=a.txt", cwd=project, env=user).stdout
    line_id = re.match(r"\[LID:([0-9a-f]{6})\] one\n", read)[1]
    changes = json.dumps([{"line_id": line_id, "new_content": "1"}])
    run(command, "execute", "rye/file-system/edit_lines", "file_path=a.txt", f"changes={changes}", cwd=project, env=user)
    assert (project / "a.txt").read_bytes() == b"1\ntwo\n"
    as_module = run(python, "-m", "rye", "--version", cwd=project, env=user).stdout
    assert as_module == run(command, "--version", cwd=project, env=user).stdout == f"rye {rye.__version__}\n"
    (project / "json.py").write_text("raise SystemExit('hostile')\n", encoding="utf-8")
    run(command, "tools", cwd=project, env=user)
    return Path(run(python, "-c", "import rye; print(rye.__file__)", cwd="/", env=user).stdout.strip())


# --- what is inside ---


def test_what_the_package_imports_is_what_it_depends_on():
    declared = {re.match(r"[\w.-]+", text)[0].lower() for text in PROJECT["dependencies"]}
    extras = {re.match(r"[\w.-]+", text)[0].lower() for group in PROJECT["optional-dependencies"].values() for text in group}
    known = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in declared | extras}
    for path in RUNTIME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                assert top in known or top in ("rye", "_sha2", "_sha256") or top in sys.stdlib_module_names, (
                    f"{path} imports {name}"
                )


def test_the_wheel_holds_the_package_and_the_bundle_as_they_are_in_git(wheel):
    assert wheel.name.startswith(f"rye_workspace-{rye.__version__}-")
    content = wheel_content(wheel)
    expected = {name.replace("runtime/", "", 1) for name in in_git("runtime/rye")}
    expected |= {f"rye/{name}" for name in in_git(*(f".ai/{folder}" for folder in SHIPPED))}
    unversioned = {f"rye/{path.relative_to(RUNTIME).as_posix()}" for path in RUNTIME.rglob("*.py")}
    inside = {name for name in content if ".dist-info/" not in name and ".data/" not in name}
    # A module that is not in git yet is no fault of the build.
    assert inside - unversioned == expected - unversioned
    assert expected <= inside
    for name in inside:
        source = ROOT / (name.removeprefix("rye/") if name.startswith("rye/.ai/") else f"runtime/{name}")
        assert content[name] == source.read_bytes(), name
    assert any(name.endswith("licenses/LICENSE") for name in content)
    # Where `man` looks beside a `bin` on the path.
    (page,) = [name for name in content if ".data/" in name]
    assert page.endswith(".data/data/share/man/man1/rye.1")
    printed = subprocess.run(
        [sys.executable, "-m", "rye", "help", "--man"], env={**os.environ, "COLUMNS": "80"}, capture_output=True, check=True
    )
    assert content[page] == printed.stdout


def test_the_sdist_builds_the_same_wheel_and_nothing_private_or_derived_is_shipped(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        # Python 3.11.2, which Debian 12 has, knows no filter.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    content = wheel_content(wheel)
    private = r"private_key|__pycache__|\.pyc$|/cache/|\.env|\.git/"
    assert not [name for name in [*names, *content] if re.search(private, name)]
    assert not any(b"PRIVATE KEY-----\n" in data for data in content.values())
    (source,) = tmp_path.iterdir()
    again = build(source, tmp_path / "again", "wheel")
    assert again.name == wheel.name
    assert wheel_content(again) == content
    assert {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"} <= {name.partition("/")[2] for name in names}


# --- installed ---


@pytest.mark.slow
def test_the_wheel_installs_and_runs_until_its_bundle_is_changed(wheel, project, tmp_path):
    python = environment(tmp_path / "venv")
    assert run(python, "-c", "import rye.api", check=False, cwd="/").returncode != 0, "control: no rye is there before"
    install(python, wheel)
    home = try_out(python, project)
    assert home.is_relative_to(tmp_path / "venv")
    tool = home.parent / ".ai/tools/rye/file-system/read.py"
    tool.write_bytes(tool.read_bytes().replace(b"1.0.0", b"1.0.1"))
    words = (python.parent / "rye", "execute", "rye/file-system/read", "file_path=a.txt")
    done = run(*words, cwd=project, check=False, env={"USER_SPACE": str(project / "user")})
    assert (done.returncode, done.stdout) == (3, "")


@pytest.mark.slow
def test_a_release_lists_every_file_and_verify_names_the_one_that_differs(project, tmp_path):
    source = tmp_path / "source"
    for name in in_git("."):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    # A key of the test's own takes the place of RYE's: it signs the items, the manifest and the list.
    key, pem = signature.PrivateKey(os.urandom(32)), tmp_path / "key.pem"
    pem.write_bytes(key.pem)
    (source / ".ai/trusted_keys" / f"{key.public.fingerprint}.toml").write_bytes(
        trust_verify.render_key_document(key.public, "rye")
    )
    pinned = source / "runtime/rye/trust/verify.py"
    pinned.write_text(pinned.read_text().replace(trust_verify.SYSTEM_KEY_DIGEST, key.public.digest))
    at_source = {"PYTHONPATH": str(source / "runtime"), "USER_SPACE": str(project / "user")}
    unlisted = run(sys.executable, "-m", "rye", "verify", "--all", cwd=project, env=at_source, check=False)
    assert "is not checked: this is no release" in unlisted.stderr
    for words in (
        ("sign", "--all", "--space", "system"),
        ("bundle", "create", "--type", "system", "--folder", f"{source}/.ai"),
    ):
        run(sys.executable, "-m", "rye", *words, "--key", pem, cwd=project, env=at_source)
    out, me = tmp_path / "out", ("-c", "user.name=a", "-c", "user.email=a@b")
    release = (sys.executable, ROOT / ".ci/release.py", "--key", pem, "--clone", source, "--offline", "--out")
    for words in (("init", "-q"), ("add", "-A"), (*me, "commit", "-qm", "all")):
        run("git", *words, cwd=source)
    (source / "README.md").write_text("changed")
    uncommitted = run(*release, tmp_path / "none", check=False)
    assert (uncommitted.returncode, "README.md" in uncommitted.stderr) == (1, True)
    run("git", "checkout", "-q", "README.md", cwd=source)
    assert "Now a person does the rest" in run(*release, out).stdout
    (built,) = out.glob("*.whl")
    assert {path.name for path in out.iterdir()} == {
        built.name, f"rye_workspace-{rye.__version__}.tar.gz", "release.yaml", "sbom.cdx.json", "SHA256SUMS"
    }  # fmt: skip
    run("sha256sum", "--check", "SHA256SUMS", cwd=out)
    sbom = json.loads((out / "sbom.cdx.json").read_text())
    needed = {re.match(r"[\w.-]+", text)[0].lower() for text in PROJECT["dependencies"]}
    assert needed <= {one["name"] for one in sbom["components"]}
    assert {ref for one in sbom["dependencies"] for ref in one["dependsOn"]} <= {one["bom-ref"] for one in sbom["components"]}
    python = environment(tmp_path / "venv")
    install(python, built)
    (package,) = (tmp_path / "venv").glob("lib/python3*/site-packages/rye")

    def verify():
        words = (python.parent / "rye", "verify", "--all", "--space", "system", "--json")
        done = run(*words, cwd=project, env={"USER_SPACE": str(project / "user")}, check=False)
        return done.returncode, {row["target"]: row["verdict"] for row in json.loads(done.stdout) if row["type"] == "package"}

    code, (whole,) = verify()[0], verify()[1].items()
    assert (code, whole[1]) == (0, "valid")
    assert whole[0].startswith("package rye (")
    file = package / "fs/names.py"
    original = file.read_bytes()
    file.write_bytes(original[:-1] + b" ")
    assert verify() == (3, {"rye/fs/names.py": "tampered"})
    file.write_bytes(original)
    (package / "fs/more.py").write_text("")
    (package / ".ai/config/extra.yaml").write_text("")
    (package / "py.typed").unlink()
    bad = {"rye/fs/more.py", "rye/.ai/config/extra.yaml", "rye/py.typed"}
    assert verify() == (3, dict.fromkeys(bad, "tampered"))
    listed = package / ".ai/bundles/rye/release.yaml"
    listed.write_bytes(listed.read_bytes().replace(b"fs/names.py", b"fs/nameZ.py"))
    assert verify() == (3, {"bundles/rye/release.yaml": "tampered"})


@pytest.mark.slow
def test_an_editable_install_runs_from_the_checkout(project, tmp_path):
    python = environment(tmp_path / "venv")
    install(python, "--no-build-isolation", "--editable", ROOT)
    assert try_out(python, project) == RUNTIME / "__init__.py"
