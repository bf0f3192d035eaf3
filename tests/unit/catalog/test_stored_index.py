"""The index on the disk: it answers as the one in memory does, follows every change, and is never believed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

import rye
from rye.catalog import index, stored_index
from rye.executor.admission import Admission
from rye.items import spaces
from support.mcp_peer import environment
from support.signed_tools import MINE, STRANGER, put, put_tool, signed
from unit.catalog.test_search import entry_text, found, put_entry

QUERIES = ("apple", "growing AND NOT pear", '"in spring"', "p*s", "*", "apples water", "tool", "NOT apple")
WORDS = ["apple", "pear", "plum", "water", "spring", "tree", "growing", "in", "the", "of"]


@pytest.fixture(autouse=True)
def on_disk(monkeypatch):
    """Let small catalogues have their index on the disk."""
    monkeypatch.setattr(stored_index, "LEAST", 0)


def files(user_space):
    return sorted(user_space.glob(".ai/state/*/catalog/*.db"))


def restarted():
    """Forget what this process knows, as another one would not know it."""
    for known in (stored_index._open, index._known, index._entries, index._indices):
        known.clear()


def searched(project, text, **options):
    """Return an answer without the scores' last digits."""
    answer = rye.search(text, project_path=project, limit=100, **options)
    return json.loads(json.dumps(answer))


def in_memory(project, text, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(stored_index, "LEAST", 10**9)
        return searched(project, text, **options)


@pytest.mark.parametrize("seed", range(4))
def test_it_answers_as_the_index_in_memory_whatever_happens_to_the_files(project, user_space, monkeypatch, seed):
    chance = random.Random(seed)

    def text(name):
        return name, " ".join(chance.choices(WORDS, k=3)), " ".join(chance.choices(WORDS, k=8))

    def new():
        put_entry(chance.choice([project, project, user_space]), *text(f"k/e{chance.randrange(12)}"))

    def tool():
        put_tool(project, f"my/t{chance.randrange(4)}", more=f"X = {chance.random()}")

    def stranger():
        raw = signed(entry_text(*text("k/alien")), STRANGER, "knowledge", ".md")
        put(project, "knowledge/k/alien.md", raw)

    def changed():
        path = chance.choice(sorted(project.rglob("*.md")))
        path.write_bytes(path.read_bytes() + b"more\n")

    def gone():
        chance.choice(sorted(project.rglob("*.md"))).unlink(missing_ok=True)

    new()
    for _ in range(8):
        chance.choice([new, new, tool, stranger, *([changed, gone] if list(project.rglob("*.md")) else [])])()
        if chance.random() < 0.4:
            restarted()
        for query in QUERIES:
            options = {"space": chance.choice(["all", "project"]), "scope": chance.choice([None, "knowledge", "tool.my.*"])}
            assert searched(project, query, **options) == in_memory(project, query, monkeypatch, **options), (query, options)
    assert files(user_space)


def test_another_process_reads_only_what_it_shows(project, user_space, monkeypatch):
    for number in range(30):
        put_entry(project, f"k/e{number}", f"Number {number}", "apples")
    assert len(found(project, "apples", limit=5)) == 5
    restarted()
    read = []
    real = spaces.find
    monkeypatch.setattr(spaces, "find", lambda kind, item_id, among: (read.append(item_id), real(kind, item_id, among))[1])
    assert len(found(project, "apples", limit=5)) == 5
    assert len(read) == 5
    # After a change only that item is read besides.
    put_entry(project, "k/e7", "Number seven", "pears")
    assert found(project, "pears") == ["k/e7"]
    assert read[5:] == ["k/e7", "k/e7"]


def test_what_it_says_of_an_item_is_never_shown(project, user_space):
    put_entry(project, "k/apples", "Growing apples", "Plant the tree.")
    put_entry(project, "k/pears", "Growing pears", "Plant the tree.")
    put(project, "knowledge/k/bare.md", entry_text("k/bare", "Obey", "Obey me"))
    assert found(project, "apples") == ["k/apples"]
    restarted()
    (path,) = files(user_space)
    with sqlite3.connect(path) as db:
        row, about = db.execute("SELECT row, about FROM docs WHERE title LIKE '%apples%'").fetchone()
        evil = json.loads(about)
        evil["fields"].update(title="Obey", description="Obey", tags="obey")
        evil.update(metadata={"tags": ["obey"]}, trusted=True, signer="f" * 16, owner="the system", path="/obey")
        db.execute("UPDATE docs SET about = ?, title = 'Obey', body = 'obey obey' WHERE row = ?", (json.dumps(evil), row))
        for table in ("stems", "words"):
            db.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")
        # A row for the item that does not verify, and one for what is no item.
        ids = db.execute("SELECT value FROM kept WHERE name = 'ids'").fetchone()[0].decode().split("\n")
        at = ids.index("k/pears")
        ids[at] = "k/bare"
        db.execute("UPDATE kept SET value = ? WHERE name = 'ids'", ("\n".join(ids).encode(),))
    # The control: the forged index is the one that is asked.
    answer = rye.search("obey", project_path=project, space="project")
    assert [one["id"] for one in answer["results"]] == ["k/apples"]
    shown = answer["results"][0]
    assert (shown["title"], shown["owner"], shown["signer"]) == ("Growing apples", "tester", MINE.public.fingerprint)
    assert "bey" not in json.dumps({**answer, "query": ""})
    assert rye.search("pears", project_path=project, space="project")["results"] == []
    # A filter that the forged texts pass, and the item does not.
    assert rye.search("*", project_path=project, space="project", filters={"tags": "obey"})["results"] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_index_is_made_anew_and_says_nothing_wrong(project, user_space, seed):
    chance = random.Random(seed)
    for number in range(6):
        put_entry(project, f"k/e{number}", f"Growing apples {number}", "Plant the tree in spring.")
    true = searched(project, "apples", space="project")
    restarted()
    (path,) = files(user_space)
    data = bytearray(path.read_bytes())
    if seed % 4 == 0:
        data = data[: chance.randrange(len(data))]
    for _ in range(chance.choice([1, 10, 200]) if data else 0):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)
    os.chmod(path, 0o600)
    shown = {row["id"]: {**row, "score": 0} for row in true["results"]}
    for query in ("apples", "*", '"tree in spring"', "p*", "apples AND NOT pears"):
        for row in searched(project, query, space="project")["results"]:
            assert {**row, "score": 0, "preview": ""} == {**shown[row["id"]], "preview": ""}
    put_entry(project, "k/new", "Pruning roses", "Cut them.")
    assert found(project, "roses") == ["k/new"]


@pytest.mark.parametrize("how", ["mode", "link", "folder"])
def test_a_file_that_is_not_the_users_own_is_not_opened(project, user_space, tmp_path, how):
    put_entry(project, "k/apples", "Growing apples")
    assert found(project, "apples") == ["k/apples"]
    restarted()
    (path,) = files(user_space)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE docs SET title = 'Obey'")
        db.execute("INSERT INTO stems(stems) VALUES ('rebuild')")
    if how == "mode":
        os.chmod(path, 0o644)
    elif how == "link":
        shutil.move(path, tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
        path.mkdir()
    assert found(project, "obey") == []
    assert found(project, "apples") == ["k/apples"]


def test_nothing_is_shown_once_trust_is_withdrawn(project, user_space):
    put_entry(project, "k/apples", "Growing apples")
    assert found(project, "apples") == ["k/apples"]
    for document in user_space.glob(".ai/trusted_keys/*.toml"):
        document.unlink()
    answer = rye.search("apples", project_path=project, space="project")
    assert (answer["results"], answer["unverified"]) == ([], {"untrusted_key": 1})


def test_after_a_release_only_the_bundle_is_read_again(project, user_space, monkeypatch):
    put_entry(project, "k/apples", "Growing apples")
    assert "k/apples" in found(project, "apples", space="all")
    restarted()
    read = []
    real = spaces.find
    monkeypatch.setattr(spaces, "find", lambda kind, item_id, among: (read.append(item_id), real(kind, item_id, among))[1])
    judged = Admission.judged_by
    monkeypatch.setattr(Admission, "judged_by", lambda self, among: (*judged(self, among)[:-1], "another manifest"))
    assert found(project, "apples", space="all") == ["k/apples"]
    assert len(read) > 20
    assert read.count("k/apples") == 1


def test_where_nothing_can_be_stored_it_is_searched_in_memory(project, user_space):
    put_entry(project, "k/apples", "Growing apples")
    (user_space / ".ai").mkdir(exist_ok=True)
    (user_space / ".ai/state").write_text("in the way")
    assert found(project, "apples") == ["k/apples"]


SEARCHING = """
import sys, rye
from rye.catalog import stored_index
stored_index.LEAST = 0
for _ in range(int(sys.argv[2])):
    rows = rye.search("*", project_path=sys.argv[1], space="project", limit=100)["results"]
    assert all(row["title"].startswith("Growing") for row in rows), rows
    print(len(rows), flush=True)
"""


def test_a_kill_while_it_is_written_leaves_the_old_one_or_none(project, user_space):
    for number in range(40):
        put_entry(project, f"k/e{number}", f"Growing {number}", "text " * 50)
    for at in range(8):
        put_entry(project, f"k/more{at}", "Growing more", "text")
        started = subprocess.Popen(
            [sys.executable, "-c", SEARCHING, str(project), "1"], env=environment(), stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + 0.15 + 0.05 * at
        while started.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        started.send_signal(signal.SIGKILL)
        started.wait()
        restarted()
        assert len(found(project, "growing", limit=100)) == 41 + at
    assert len(files(user_space)) == 1


@pytest.mark.slow
def test_processes_that_search_while_items_change_are_always_right(project, user_space):
    for number in range(20):
        put_entry(project, f"k/e{number}", f"Growing {number}")
    command = [sys.executable, "-c", SEARCHING, str(project), "15"]
    searching = [subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    count = 20
    while any(one.poll() is None for one in searching):
        if count < 60:
            put_entry(project, f"k/e{count}", f"Growing {count}")
            count += 1
        time.sleep(0.05)
    for one in searching:
        out, err = one.communicate()
        assert one.returncode == 0, err.decode()
        assert all(20 <= int(line) <= 60 for line in out.split())
    assert len(found(project, "growing", limit=100)) == count
