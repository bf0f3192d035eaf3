"""A tool that is not, bit for bit, the one signed for its id does not run.

The system bundle and the runtime are copied; a child process runs from the copy. There every tool takes the place of every
other, and bits of the tools and of the bundle's manifest are flipped one at a time, unsigned timestamps included. Each has its
control: the signature alone accepts a tool in another's place, and another timestamp; and the genuine file is admitted by the
very call that must refuse its mutants. The bundle's manifest alone would refuse them all, so the layers below it are asked too:
the place that a text names, and the signature.

`python tests/attacks/test_item_swaps.py all` (or a number, and a SEED) flips that many bits and prints the counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = "rye/file-system/read"
# The runtime that READ names; others are called by their own ids, which verifies them before it says that they run nothing.
RUNTIME = "rye/core/runtimes/python_function_runtime"
TIMESTAMP = re.compile(rb"rye:signed:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ):")


def in_a_copy(folder: Path, what: str, *words: object) -> dict:
    """Copy runtime and bundle to `folder` and return what `what` finds there."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runtime/rye", folder / "runtime/rye", ignore=ignored)
    shutil.copytree(ROOT / ".ai", folder / ".ai", ignore=ignored)
    (folder / "project/.git").mkdir(parents=True)
    (folder / "project/README.md").write_text("# Title\n")
    env = os.environ | {"PYTHONPATH": str(folder / "runtime"), "USER_SPACE": str(folder / "home")}
    command = [sys.executable, __file__, "--child", what, str(folder), *map(str, words)]
    done = subprocess.run(command, env=env, cwd=folder / "project", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tool_files(folder: Path) -> list[Path]:
    tools = folder / ".ai/tools"
    return sorted(path for path in tools.rglob("*") if path.suffix in (".py", ".yaml") and not path.name.startswith("_"))


def key_store(folder: Path):
    """Return the bundle's key as the only one that counts."""
    from rye.trust import verify

    return verify.TrustStore.build([], [path.read_bytes() for path in (folder / ".ai/trusted_keys").iterdir()])


def call(item_id: str) -> str | None:
    """Call a tool, or for a runtime the tool that it runs; return the verdict that refused it, None if it was let through."""
    import rye
    from rye.trust.verify import VERDICTS

    item_id, parameters = (READ, {"file_path": "README.md"}) if item_id == RUNTIME else (item_id, {})
    response = rye.execute(item_id, parameters, project_path=".")
    refused = response["status"] == "error" and not response["metadata"]["ran"] and response["code"] in VERDICTS
    return response["code"] if refused else None


def swaps(folder: Path) -> dict:
    """Put every tool in every other's place: as that very file, and as the only file of that id."""
    import rye
    from rye.errors import RyeError
    from rye.items import parse, spaces
    from rye.trust import signature, verify

    store = key_store(folder)
    files = {path: path.read_bytes() for path in tool_files(folder)}
    found: dict = {
        "files": len(files),
        "own": [],
        "same": Counter(),
        "other": Counter(),
        "signature": 0,
        "placed": [],
        "run": [],
    }
    for place, genuine in files.items():
        _, item_id = spaces.locate(place)
        for source, raw in files.items():
            for target in {place, place.with_suffix(source.suffix)}:
                place.unlink()
                target.write_bytes(raw)
                (row,) = rye.verify([target])
                if source == place:
                    found["own"].append([row["verdict"], call(item_id)])
                else:
                    found["same" if source.suffix == target.suffix else "other"][row["verdict"]] += 1
                    verified = verify.verify(raw, signature.form_of("tool", target.suffix), store)
                    found["signature"] += 1
                    with contextlib.suppress(RyeError):
                        parse.read(verified, "tool", item_id, target.suffix)
                        found["placed"].append(f"{source} as {target}")
                    found["run"] += [f"{source} as {target}"] if _ran(item_id) else []
                target.unlink()
                place.write_bytes(genuine)
    return found


def _ran(item_id: str) -> bool:
    """Tell whether a call reached the tool's parameters or went on from there."""
    import rye

    item_id, parameters = (READ, {"file_path": "README.md"}) if item_id == RUNTIME else (item_id, {})
    response = rye.execute(item_id, parameters, project_path=".")
    return response["metadata"]["ran"] or response["code"] == "invalid_parameters"


def flips(folder: Path, count: str, seed: str) -> dict:
    """Flip bits of the bundle, one at a time, `count` of them or `all`; a fifth of a sample are bits of timestamps."""
    from rye.errors import TrustError
    from rye.items import spaces
    from rye.trust import signature, verify

    store = key_store(folder)
    files = {path: path.read_bytes() for path in tool_files(folder)}
    genuine = {str(path): call(spaces.locate(path)[1]) for path in files}
    manifest = folder / ".ai/bundles/rye/manifest.yaml"
    files[manifest] = manifest.read_bytes()
    signed_bits, times = [], []
    for path, raw in files.items():
        start, end = TIMESTAMP.search(raw).span(1)
        for bit in range(len(raw) * 8):
            (times if start <= bit // 8 < end else signed_bits).append((path, bit))
    bits = signed_bits + times
    dice = random.Random(int(seed))
    timed = len(times) if count == "all" else min(int(count) // 5 or 1, len(times))
    rest = len(signed_bits) if count == "all" else min(int(count) - timed, len(signed_bits))
    chosen = dice.sample(signed_bits, rest) + dice.sample(times, timed)
    unsigned, named = set(times), dict.fromkeys(files, READ)
    named |= {path: spaces.locate(path)[1] for path in files if path != manifest}
    verdicts: Counter = Counter()
    run, by_signature, exempted = [], Counter(), 0
    for path, bit in chosen:
        mutant = bytearray(files[path])
        mutant[bit // 8] ^= 1 << bit % 8
        path.write_bytes(mutant)
        verdict = call(named[path])
        verdicts[verdict] += 1
        # The manifest's own timestamp is beyond any list; it is shown nowhere.
        exempt = path == manifest and (path, bit) in unsigned
        exempted += exempt
        run += [f"{path} bit {bit}"] if verdict is None and not exempt else []
        try:
            verify.verify(bytes(mutant), signature.form_of("tool", path.suffix), store)
            by_signature["another time" if (path, bit) in unsigned else "valid"] += 1
        except TrustError as err:
            by_signature[err.code] += 1
        path.write_bytes(files[path])
    again = {str(path): call(named[path]) for path in files}
    counts = {"bits": len(bits), "flipped": len(chosen), "times": timed, "exempt": exempted}
    counts |= {"verdicts": verdicts, "by_signature": by_signature}
    return counts | {"genuine": genuine, "again": again, "run": run}


@pytest.mark.slow
def test_a_tool_in_the_place_of_another_is_misplaced_and_does_not_run(tmp_path):
    found = in_a_copy(tmp_path, "swaps")
    files = found["files"]
    assert files >= 5
    assert found["own"] == [["valid", None]] * files
    # Of another kind of file the text may already be unreadable as an item; either way it is not valid.
    assert set(found["same"]) == {"misplaced"}
    assert set(found["other"]) <= {"misplaced", "malformed"}
    assert sum(found["same"].values()) >= files * (files - 1)
    # Control: a reader who asks only for a good signature takes every one of them.
    assert found["signature"] == sum(found["same"].values()) + sum(found["other"].values())
    assert found["placed"] == found["run"] == []


@pytest.mark.slow
def test_a_tool_with_a_flipped_bit_does_not_run(tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    found = in_a_copy(tmp_path, "flips", os.environ.get("RYE_BIT_FLIPS", "300"), seed)
    assert found["flipped"] > 0
    assert found["run"] == []
    assert found["by_signature"].get("valid", 0) == 0
    # Control: without the manifest another timestamp would pass.
    assert found["by_signature"]["another time"] > 0
    assert sum(found["by_signature"].values()) == found["flipped"]
    assert set(found["genuine"].values()) == set(found["again"].values()) == {None}


if __name__ == "__main__":
    asked, place, *rest = sys.argv[2:]
    print(json.dumps({"swaps": swaps, "flips": flips}[asked](Path(place), *rest)))
