"""Signed folders and skills beside the programs of others: model-signing 1.1.1, skills-ref, and Claude Code behind the gate.

`RYE_TEST_TIMES=10` makes 200 folders.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rye.folders import signing
from rye.trust import verify
from support import client_programs
from support.harness import times
from support.in_process import rye
from support.scripted_api import scripted_api
from support.signed_tools import key_pair

DRIVER = Path(__file__).parents[1] / "support/client_drivers/others_folders.py"
NAMES = (
    *("a b", "ü", "x:y", "q'", "n\nl", "\\back", "*star", "[br]", "..x", "...", "-dash", "日本", "a.b", "a", "A", "\u200bz"),
    *(".hidden", ".gitignore", ".git", "name.sig", "{}", "%41", "~", "$x", "tab\t", ".github"),
)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Ask the driver, which runs in an environment of its own."""
    packages = ("model-signing==1.1.1", "pyopenssl", "skills-ref")
    python = client_programs.python_with("model-signing", tmp_path_factory.mktemp("env"), *packages)
    with subprocess.Popen([python, DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:

        def ask(**request):
            driver.stdin.write(json.dumps(request) + "\n")
            driver.stdin.flush()
            return json.loads(driver.stdout.readline())

        yield ask
        driver.stdin.close()


def fill(rng, top, count):
    """Make files, folders and links of odd names below a folder."""
    folders, files = [top], []
    for _ in range(rng.randint(0, count // 5 + 1)):
        path = os.path.join(rng.choice(folders), rng.choice(NAMES) + str(rng.randint(0, 9)) * rng.randint(0, 1))
        if not os.path.lexists(path):
            os.mkdir(path)
            folders.append(path)
    for number in range(count):
        path = os.path.join(rng.choice(folders), rng.choice(NAMES) + str(number) * (rng.random() < 0.8))
        if not os.path.lexists(path):
            Path(path).write_bytes(rng.randbytes(rng.choice([0, 1, 1_000, 300_000]) if count < 500 else 10))
            files.append(path)
    if rng.random() < 0.3:
        for number in range(rng.randint(1, 4)):
            target = rng.choice([*files, *folders, "/etc/hostname", "nowhere"])
            os.symlink(target, os.path.join(rng.choice(folders), f"link{number}"))
    return [os.path.relpath(one, top) for one in (*files, *folders[1:])]


@pytest.mark.frameworks
def test_model_signing_and_rye_agree(theirs, tmp_path):
    rng, seen, wrong = random.Random(7), Counter(), []
    keys = [key_pair(tmp_path, curve, curve) for curve in ("P-256", "P-384", "P-521")]
    for number in range(times(20)):
        folder = tmp_path / f"f{number}"
        folder.mkdir()
        paths = fill(rng, str(folder), rng.choice([1, 2, 5, 20, 100]) if number % 20 else rng.choice([500, 2_000]))
        private, public = map(str, rng.choice(keys))
        signature = str(folder / "oms.sig" if rng.random() < 0.5 else tmp_path / f"{number}.sig")
        ignore = rng.sample(paths, min(len(paths), rng.randint(0, 2)))
        how = {"folder": str(folder), "signature": signature, "links": rng.random() < 0.6}
        algorithm = rng.choice(["sha256", "sha256", "blake2"])
        they_refuse = theirs(do="sign", key=private, ignore=ignore, algorithm=algorithm, **how)
        if not they_refuse:
            row = signing.verify(str(folder), verify.TrustStore(), key=public, signature=signature)[0]
            no = theirs(do="verify", key=public, algorithm=algorithm, **how)
            # The specification refuses a folder without files; they sign it.
            empty = "it lists no files" in str(row["hint"])
            seen["theirs", row["verdict"]] += not empty
            wrong += [("theirs", number, row, no)] * (not empty and (row["verdict"] == "valid") == bool(no))
            os.unlink(signature)
        row = signing.sign(str(folder), "/", key=private, signature=signature, ignore=ignore, links=how["links"])
        if row["status"] == "signed":
            no = theirs(do="verify", key=public, algorithm="sha256", **how)
            seen["ours", "valid" if not no else "refused"] += 1
            wrong += [("ours", number, row, no)] * bool(no)
            # The control: both see a change.
            Path(folder, "one more").write_text("")
            assert theirs(do="verify", key=public, algorithm="sha256", **how)
            assert signing.verify(str(folder), verify.TrustStore(), key=public, signature=signature)[0]["verdict"] == "tampered"
        elif not they_refuse:
            wrong += [("not signed", number, row)] * ("holds no file" not in row["error"])
        shutil.rmtree(folder)
    print(dict(seen))
    assert not wrong, wrong[:3]
    assert seen["theirs", "valid"]
    assert seen["ours", "valid"]


HEADERS = (
    *("name: pdf\ndescription: x", "name: pdf", "description: x", "name: pdf\ndescription: ''", "name: PDF\ndescription: x"),
    *("name: -pdf\ndescription: x", "name: pd--f\ndescription: x", "name: p_df\ndescription: x", "name: other\ndescription: x"),
    *("name: pdf: x", "", "- a", "name: 1\ndescription: x", "name: &a pdf\ndescription: *a", "name: [a"),
    *("name: pdf\nname: pdf\ndescription: x", "name: !!str pdf\ndescription: x"),
    *(f"name: pdf\ndescription: {one}" for one in ("x\nversion: 1", "x\nlicense: MIT", "[x]", "x\nmetadata:\n  a: b", "yes")),
    *(f"name: pdf\ndescription: {one}" for one in ("x\nallowed-tools: Bash Read", "x" * 1_024, "x" * 1_025)),
    *(f"name: pdf\ndescription: {one}" for one in ("x\ncompatibility: " + "x" * 501, ">\n  long\n  text")),
)


@pytest.mark.frameworks
def test_skills_ref_and_rye_agree(theirs, project):
    folder = project / ".agents/skills/pdf"
    folder.mkdir(parents=True)
    texts = [f"---\n{one}\n---\n\nBody.\n" for one in HEADERS] + ["", "no header", "---\nname: pdf\n", " ---\nname: pdf\n---\n"]
    wrong = []
    for text in texts:
        (folder / "SKILL.md").write_text(text)
        they = theirs(do="validate", folder=str(folder))
        (row,) = json.loads(rye("skill", "list", "--json", cwd=project).stdout)
        wrong += [(text[:80], they, row["faults"])] * (bool(they) != bool(row["faults"]))
    assert not wrong, wrong


@pytest.mark.clients
@pytest.mark.parametrize("gated", [True, False], ids=["behind the gate", "control"])
def test_claude_code_refuses_an_unsigned_and_a_changed_skill(tmp_path, gated):
    place = client_programs.folder_of("claude-code", tmp_path / "clients")
    if why := client_programs.install("claude-code", place):
        pytest.skip(why)
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "NO_PROXY": "*", "DISABLE_AUTOUPDATER": "1"}
    for name in ("good", "swapped", "brought"):
        source = tmp_path / "source" / name if name != "brought" else project / ".claude/skills/brought"
        source.mkdir(parents=True)
        (source / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Skill {name}.\n---\n\nThe text of {name}.\n")
        words = ["skill", "add", str(source), "--for", "claude-code"]
        if name != "brought":
            subprocess.run([sys.executable, "-m", "rye", *words], cwd=project, env=env, check=True, capture_output=True)
    with (project / ".claude/skills/swapped/SKILL.md").open("a") as file:
        file.write("More.\n")
    if gated:
        words = ["mcp", "install", "--client", "claude-code", "--gate", "--scope", "project"]
        subprocess.run([sys.executable, "-m", "rye", *words], cwd=project, env=env, check=True, capture_output=True)
    with scripted_api([("Skill", {"skill": name}) for name in ("brought", "swapped", "good")], "done") as api:
        env |= {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "x"}
        words = [str(place / "node_modules/.bin/claude"), "-p", "Use the skills.", "--allowedTools", "Skill"]
        done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr
        sent = json.dumps([body for _, body in api.requests])
    reached = {name: f"The text of {name}" in sent for name in ("brought", "swapped", "good")}
    assert reached == {"brought": not gated, "swapped": not gated, "good": True}
    if gated:
        assert ["is refused by rye" in one for one in api.results] == [True, True, False]
