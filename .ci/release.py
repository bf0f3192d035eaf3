"""Make a release of what is committed: wheel, sdist, signed file list and SBOM; and try it in a fresh environment.

python .ci/release.py --key KEY.pem --out FOLDER

Nothing of the clone is changed, and nothing is published: the last lines say what a person must do. It needs the extra `dev`.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

NAME = "rye-workspace"
# Prints the SBOM's parts: the distributions that an installed package needs, without its extras.
PARTS = """
import importlib.metadata as metadata, json, re, sys
plain = lambda name: re.sub(r"[-_.]+", "-", name).lower()
found, left = {}, [sys.argv[1]]
while left:
    name = plain(left.pop())
    if name in found:
        continue
    try:
        one = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        continue
    needs = [plain(re.match(r"[\\w.-]+", text)[0]) for text in one.requires or () if "extra ==" not in text.partition(";")[2]]
    expression, text = one.metadata.get("License-Expression"), (one.metadata.get("License") or "").split("\\n")[0][:80]
    found[name] = {"version": one.version, "needs": needs, "expression": expression, "license": text}
    left += needs
print(json.dumps(found))
"""


def run(*words: object, cwd: Path, **env: str) -> str:
    """Run a program and return what it prints; what fails is shown, and ends the release."""
    base = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "USER_SPACE", "VIRTUAL_ENV")}
    done = subprocess.run([str(one) for one in words], cwd=cwd, env=base | env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(source: Path, key: Path, out: Path) -> tuple[Path, Path]:
    """Sign the list of the package's files and build; return wheel and sdist."""
    at_source = {"PYTHONPATH": str(source / "runtime"), "USER_SPACE": str(source.parent / "user")}
    run(sys.executable, "-m", "rye", "bundle", "release", "--key", key.resolve(), cwd=source, **at_source)
    # The wheel is made of the sdist, so both are tried.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=source)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def tried(wheel: Path, place: Path, *, offline: bool) -> dict[str, dict[str, object]]:
    """Install the wheel into a fresh environment, do the main job, verify and uninstall; return the SBOM's parts."""
    run(sys.executable, "-m", "venv", *(["--without-pip"] if offline else []), place / "venv", cwd=place)
    python = place / "venv/bin/python"
    (site,) = (place / "venv").glob("lib/python3*/site-packages")
    if offline:
        import yaml

        (site / "dependencies.pth").write_text(f"{Path(yaml.__file__).parents[1]}\n")
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    run(*pip, "install", *(["--no-deps", "--no-index"] if offline else []), wheel, cwd=place)
    project, user = place / "project", {"USER_SPACE": str(place / "home"), "HOME": str(place / "home")}
    (project / ".git").mkdir(parents=True)
    (project / "a.txt").write_text("one\ntwo\n")
    rye = place / "venv/bin/rye"
    line_id = re.match(r"\[LID:(\w+)\] one", run(rye, "read", "a.txt", cwd=project, **user))
    assert line_id is not None
    run(rye, "edit_lines", "a.txt", f"{line_id[1]}|ONE", cwd=project, **user)
    assert (project / "a.txt").read_text() == "ONE\ntwo\n"
    run(rye, "undo", cwd=project, **user)
    assert (project / "a.txt").read_text() == "one\ntwo\n"
    assert run(rye, "bash", "cat a.txt", cwd=project, **user) == "one\ntwo\n"
    rows = json.loads(run(rye, "verify", "--all", "--json", cwd=project, **user))
    assert {row["verdict"] for row in rows} == {"valid"}
    assert [row["type"] for row in rows].count("package") == 1, "the signed list of the package's files is missing"
    parts: dict[str, dict[str, object]] = json.loads(run(python, "-c", PARTS, NAME, cwd=place))
    assert "pip uninstall" in run(rye, "uninstall", cwd=project, **user)
    run(*pip, "uninstall", "--yes", NAME, cwd=place)
    left = [path for path in (place / "venv").rglob("*rye*") if path.suffix not in (".pyc", "") or path.name == "rye"]
    assert not left, f"left behind: {left}"
    return parts


def sbom(parts: dict[str, dict[str, object]], wheel: Path) -> dict[str, object]:
    """Return a CycloneDX document of what the wheel needs, without its extras."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    refs = {
        name: f"pkg:pypi/{name}@{part['version']}" if name != NAME else f"{NAME}@{part['version']}"
        for name, part in parts.items()
    }

    def component(name: str) -> dict[str, object]:
        part = parts[name]
        said = (
            {"expression": part["expression"]}
            if part["expression"]
            else {"license": {"name": part["license"] or "see its metadata"}}
        )
        one = {"type": "library", "bom-ref": refs[name], "name": name, "version": part["version"], "licenses": [said]}
        return one | (
            {"purl": refs[name]} if name != NAME else {"type": "application", "hashes": [{"alg": "SHA-256", "content": digest}]}
        )

    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "component": component(NAME)},
        "components": [component(name) for name in sorted(parts) if name != NAME],
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted({refs[one] for one in part["needs"] if one in refs})}
            for name, part in sorted(parts.items())
        ],
    }


def main() -> None:
    """Make it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", type=Path, required=True, help="the private key of the system bundle")
    parser.add_argument("--out", type=Path, required=True, help="a new folder for the files")
    parser.add_argument("--clone", type=Path, default=Path(__file__).parents[1], help="of which commit (default: this one's)")
    parser.add_argument("--offline", action="store_true", help="take the dependencies of this environment")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    if changed := run("git", "status", "--porcelain", "--untracked-files=no", cwd=args.clone):
        sys.exit(f"Commit these first: a release is what is committed.\n{changed}")
    with tempfile.TemporaryDirectory() as made:
        source = Path(made, "source")
        run("git", "clone", "--quiet", "--no-hardlinks", args.clone.resolve(), source, cwd=Path(made))
        wheel, sdist = built(source, args.key, args.out.resolve())
        (args.out / "sbom.cdx.json").write_text(
            json.dumps(sbom(tried(wheel, Path(made), offline=args.offline), wheel), indent=2) + "\n"
        )
        (args.out / "release.yaml").write_bytes((source / ".ai/bundles/rye/release.yaml").read_bytes())
    files = [wheel.name, sdist.name, "release.yaml", "sbom.cdx.json"]
    sums = "".join(f"{hashlib.sha256((args.out / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    (args.out / "SHA256SUMS").write_text(sums)
    version = wheel.name.split("-")[1]
    commit = run("git", "rev-parse", "HEAD", cwd=args.clone).strip()
    print(f"""{sums}
Built of {commit};
installed, used, verified and uninstalled in a fresh environment. Now a person does the rest:
  1. Read CHANGELOG.md, and give the section Unreleased the version {version} and a date.
  2. Run .ci/run and .ci/nightly of that commit.
  3. git tag -s v{version} && git push --tags; put the files of {args.out} beside the tag.
     The next version stands in runtime/rye/_version.py alone.
  4. Before anything is uploaded to a package index: register the name {NAME} there, in the hands of more
     than one person, with two factors. Until then every page installs from the clone: anyone could take the name.""")


if __name__ == "__main__":
    main()
