"""A tool that is not, bit for bit, the one signed for its id does not run.

The system bundle and the runtime are copied; a child process runs from the copy, and holds all that follows. There every tool takes the
place of every other, and bits of the tools and of the bundle's manifest are flipped one at a time. Controls: the signature alone
accepts a tool in another's place, and the genuine file is admitted by the very call that must refuse its mutants.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

if __name__ != "__main__":
    import pytest

import rye
from rye.items import spaces
from rye.trust import signature, verify

ROOT = Path(__file__).parents[2]
READ = "rye/file-system/read"
# The runtime that READ names; others are called by their own ids, which verifies them before it says that they run nothing.
RUNTIME = "rye/core/runtimes/python_function_runtime"
TIMESTAMP = re.compile(rb"rye:signed:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ):")


def called(item_id: str) -> str:
    """Call a tool, or for a runtime the tool that it runs; return the verdict that refused it, or how far it came."""
    item_id, parameters = (READ, {"file_path": "README.md"}) if item_id == RUNTIME else (item_id, {})
    response = rye.execute(item_id, parameters, project_path=".")
    if response["status"] == "error" and not response["metadata"]["ran"] and response["code"] in verify.VERDICTS:
        return response["code"]
    return "ran" if response["metadata"]["ran"] or response["code"] == "invalid_parameters" else "admitted"


def swap(files: dict[Path, bytes], store: verify.TrustStore) -> None:
    """Put every tool in every other's place: as that very file, and as the only file of that id."""
    for place, genuine in files.items():
        _, item_id = spaces.locate(place)
        assert called(item_id) in ("ran", "admitted"), place
        place.unlink()
        for source, raw in files.items():
            for target in {place, place.with_suffix(source.suffix)} if source != place else ():
                about = f"{source} as {target}"
                target.write_bytes(raw)
                (row,) = rye.verify([target])
                # Of another kind of file the text may already be unreadable as an item; either way it is not valid.
                assert row["verdict"] == "misplaced" or (row["verdict"] == "malformed" and source.suffix != target.suffix), (
                    about
                )
                # The control: its signature is good.
                verify.verify(raw, signature.form_of("tool", target.suffix), store)
                assert called(item_id) != "ran", about
                target.unlink()
        place.write_bytes(genuine)


def flip(files: dict[Path, bytes], count: int, dice: random.Random) -> None:
    """Flip bits, one at a time, but for those of timestamps, which no signature covers."""
    for path in dice.choices([*files], k=count):
        raw = files[path]
        start, end = TIMESTAMP.search(raw).span(1)
        bit = dice.choice([one for one in range(len(raw) * 8) if not start <= one // 8 < end])
        mutant = bytearray(raw)
        mutant[bit // 8] ^= 1 << bit % 8
        path.write_bytes(mutant)
        item_id = READ if path.name == "manifest.yaml" else spaces.locate(path)[1]
        assert called(item_id) in verify.VERDICTS, f"{path} bit {bit}"
        path.write_bytes(raw)
        assert called(item_id) in ("ran", "admitted"), f"{path} mended"


def in_a_copy(folder: Path, what: str) -> None:
    """Copy runtime and bundle to `folder`, and do it there."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runtime/rye", folder / "runtime/rye", ignore=ignored)
    shutil.copytree(ROOT / ".ai", folder / ".ai", ignore=ignored)
    (folder / "project/.git").mkdir(parents=True)
    (folder / "project/README.md").write_text("# Title\n")
    env = os.environ | {"PYTHONPATH": str(folder / "runtime"), "USER_SPACE": str(folder / "home")}
    done = subprocess.run([sys.executable, __file__, what, folder], env=env, cwd=folder / "project", capture_output=True, text=True, check=False)  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    place = Path(sys.argv[2])
    tools = sorted(path for path in (place / ".ai/tools").rglob("*") if path.suffix in (".py", ".yaml") and path.name[0] != "_")
    assert len(tools) >= 5
    contents = {path: path.read_bytes() for path in tools}
    # The bundle's key is the only one that counts.
    keys = verify.TrustStore.build([], [path.read_bytes() for path in (place / ".ai/trusted_keys").iterdir()])
    if sys.argv[1] == "swap":
        swap(contents, keys)
    else:
        seed = random.randrange(1 << 32)
        print("seed", seed)
        manifest = place / ".ai/bundles/rye/manifest.yaml"
        flip(
            {**contents, manifest: manifest.read_bytes()}, 150 * int(os.environ.get("RYE_TEST_TIMES", "1")), random.Random(seed)
        )
else:

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ["swap", "flip"])
    def test_a_tool_in_anothers_place_or_with_a_flipped_bit_does_not_run(tmp_path, what):
        in_a_copy(tmp_path, what)
