"""Search: what is found, in which order, and that nothing unverified is."""

import json
import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

import rye
from rye.errors import UsageError
from rye.trust import decisions
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, trust_key


def entry_text(item_id, title, body, **header):
    lines = {"id": item_id.rpartition("/")[2], "title": title, "entry_type": "reference", "version": "1.0.0", **header}
    return f"```yaml\n{chr(10).join(f'{key}: {json.dumps(value)}' for key, value in lines.items())}\n```\n\n{body}\n".encode()


def put_entry(root, item_id, title, body="text", key=MINE, **header):
    trust_key()
    raw = signed(entry_text(item_id, title, body, **header), key, "knowledge", ".md")
    return put(root, f"knowledge/{item_id}.md", raw)


@pytest.fixture
def index(project):
    put_entry(
        project, "k/apples", "Growing apples", "Plant the tree in spring. Water it.", tags=["fruit", "garden"], version="1.2.0"
    )
    put_entry(
        project, "k/pears", "Growing pears", "The tree wants water, and much later a spring.", tags=["fruit"], version="1.10.0"
    )
    put_entry(project, "k/roses", "Pruning roses", "Cut them.", tags=["garden"], created_at="2026-01-05", author="Jo")
    put_tool(project, "my/water_garden", schema={"type": "object", "properties": {"litres": {"description": "How much"}}})
    return project


def found(project, text, **options):
    options.setdefault("space", "project")
    return [row["id"] for row in rye.search(text, project_path=project, **options)["results"]]


ONE = {"sort_by": "name", "limit": 1, "offset": 1}


@pytest.mark.parametrize(
    ("text", "options", "ids"),
    [
        *((text, {}, "k/apples") for text in ("apples AND tree", '"tree in spring"', "appl*", "grow ? apples AND grow")),
        *((text, {}, "k/pears") for text in ("*ears", "p*s AND growing", "((apples OR pears)) AND later")),
        *((f"growing {text}", {}, "k/pears") for text in ("AND NOT apples", "NOT apples", "AND NOT (apples OR roses)")),
        *((text, {}, "") for text in ('"tree in spring" AND pears', '"spring tree"', "nonsense", "n*nsense")),
        ("apples OR roses", {}, "k/apples k/roses"),
        ("roses OR pears later", {}, "k/pears k/roses"),
        ("NOT growing", {}, "k/roses my/water_garden"),
        ("grow", {}, "k/apples k/pears"),
        ("litres", {}, "my/water_garden"),
        # Typing errors are forgiven on demand alone.
        ("aples", {}, ""),
        ("aples", {"fuzzy": {"enabled": True, "max_distance": 1}}, "k/apples"),
        ("aples", {"fuzzy": {"enabled": False}}, ""),
        ("apxyes", {"fuzzy": {"max_distance": 1}}, ""),
        ("tree spring", {}, "k/apples k/pears"),
        ("tree spring", {"proximity": {"enabled": True, "max_distance": 2}}, "k/apples"),
        ("*", {"scope": "knowledge"}, "k/apples k/pears k/roses"),
        ("*", {"scope": "tool.my.*"}, "my/water_garden"),
        ("*", {"scope": "rye.search.knowledge.k.*", **ONE}, "k/pears"),
        ("*", {"sort_by": "date", "limit": 1}, "k/roses"),
        ("*", {"scope": "knowledge.k.apples"}, "k/apples"),
        ("*", {"scope": "knowledge.k.ap*"}, "k/apples"),
        ("*", {"scope": "knowledge.k.ap"}, ""),
        ("*", {"filters": {"tags": "garden"}}, "k/apples k/roses"),
        ("*", {"filters": {"tags": ["GARDEN", "x"], "author": "jo"}}, "k/roses"),
        ("*", {"filters": {"version": ">=1.10"}}, "k/pears"),
        ("*", {"filters": {"version": "<1.10", "type": "knowledge"}}, "k/apples k/roses"),
        ("*", {"filters": {"type": "!tool", "tags": "!garden"}}, "k/pears"),
        ("*", {"filters": {"date_from": "2026-01-01"}}, "k/roses"),
        ("*", {"filters": {"date_from": "2026-01-01", "date_to": "2026-01-04"}}, ""),
        ("*", {"filters": {"category": "my"}}, "my/water_garden"),
        ("*", {"filters": {"no-such-field": "x"}}, ""),
        ("water", {"fields": ["title", "body"]}, "k/apples k/pears"),
        ("water", {"fields": ["title"]}, ""),
        ("water", {"fields": []}, "k/apples k/pears my/water_garden"),
    ],
)
def test_what_is_found(index, text, options, ids):
    assert sorted(found(index, text, **options)) == ids.split()


def test_items_with_most_of_the_plain_words_come_first(index):
    assert found(index, "how do I grow pears in my garden")[0] == "k/pears"
    assert found(index, "water garden")[0] == "my/water_garden"


MALFORMED = [
    *({"scope": scope} for scope in ("rye.file-system.*", "", "tool.*.x")),
    *({"limit": limit} for limit in (0, -1, 101)),
    *({"space": "mine"}, {"offset": -1}, {"sort_by": "luck"}, {"fields": ["color"]}),
    *({"fuzzy": {"max_distance": 9}}, {"proximity": {"max_distance": "x"}}),
]


@pytest.mark.parametrize("options", MALFORMED, ids=str)
def test_a_malformed_search_is_an_error(project, options):
    with pytest.raises(UsageError):
        rye.search("read", project_path=project, **options)


@pytest.mark.parametrize(
    ("texts", "position"),
    [
        (["AND", "OR", "NOT", "(", ")", "()", "(a", '"', '""', '"?"', "***", "?", "AND a", "NOT ?"], 1),
        (["a)b"], 2),
        (["a AND", "a OR OR b", 'a "b', "a AND OR b"], 3),
        (["a (NOT)"], 4),
        (["(" * 40 + "a" + ")" * 40], 34),
        (["", "  ", "\t\n", "a" * 1_001], None),
    ],
)
def test_a_malformed_query_is_refused_with_its_place_and_never_finds_everything(project, texts, position):
    for text in texts:
        with pytest.raises(UsageError) as caught:
            rye.search(text, project_path=project)
        assert position is None or (caught.value.code, caught.value.details) == ("bad_query", {"position": position}), text


def test_any_text_is_searched_or_refused(index):
    chance = random.Random(7)
    for _ in range(150):
        with suppress(UsageError):
            found(index, "".join(chance.choice('ab "()*?ANDORNOT') for _ in range(chance.randrange(40))))


@pytest.mark.parametrize(
    "text", ["a' OR 1=1 --", "NEAR(a b)", "title:read", "col{}:^x", "a + b", "-a", "tool.rye", "x\0y", "x\udcff", "ünïcode"]
)
def test_no_text_reaches_the_index_as_an_operator_of_its_own(project, text):
    assert rye.search(text, project_path=project)["search_type"] == "keyword"


def test_a_shadowed_item_appears_once_as_it_is_served(project, user_space):
    put_tool(user_space, "my/greeter", more="X = 1")
    put_tool(project, "my/greeter", more="X = 2")
    rows = rye.search("greeter", project_path=project)["results"]
    assert [(row["id"], row["source"]) for row in rows] == [("my/greeter", "project")]
    rows = rye.search("greeter", project_path=project, space="user")["results"]
    assert [(row["id"], row["source"]) for row in rows] == [("my/greeter", "user")]


def test_nothing_of_an_unverified_item_is_searched_or_shown(index):
    put(index, "knowledge/k/secret.md", entry_text("k/secret", "Forbidden mangoes", "mangoes"))
    put(index, "knowledge/k/alien.md", signed(entry_text("k/alien", "Alien mangoes", "mangoes"), STRANGER, "knowledge", ".md"))
    bad = put_entry(index, "k/changed", "Mangoes")
    bad.write_bytes(bad.read_bytes() + b"mangoes\n")
    put(index, "tools/my/data.json", b"{}")
    answer = rye.search("mangoes", project_path=index)
    assert answer["results"] == []
    assert answer["unverified"] == {"malformed": 1, "tampered": 1, "unsigned": 1, "untrusted_key": 1}
    everything = json.dumps(rye.search("*", project_path=index, limit=100))
    assert ("angoes" in everything, "k/secret" in everything) == (False, False)


def test_a_result_says_where_it_is_from_and_who_signed_it(index):
    row = rye.search("apples", project_path=index)["results"][0]
    assert (row["type"], row["source"], row["signed"], row["owner"]) == ("knowledge", "project", True, "tester")
    assert (row["signer"], row["preview"]) == (MINE.public.fingerprint, "Plant the tree in spring. Water it.")
    assert (0 < row["score"] <= 1, row["metadata"]["tags"]) == (True, ["fruit", "garden"])
    # Of a tool it is text, not the signature.
    row = rye.search("water_garden", project_path=index)["results"][0]
    assert (row["preview"], row["description"]) == ("A tool made for a test.", "Made for a test")


@pytest.mark.parametrize(("name", "count", "most_missed"), [("search_questions", 40, 2), ("search_questions_later", 60, 5)])
def test_a_newcomer_finds_the_right_item_among_the_first_three(project, name, count, most_missed):
    questions = json.loads(Path(__file__).with_name(f"{name}.json").read_text())
    missed = []
    for one in questions:
        rows = rye.search(one["question"], project_path=project, space="system", limit=3)["results"]
        first = [f"{row['type']} {row['id']}" for row in rows]
        if not set(first) & set(one["answers"]):
            missed.append((one["question"], first))
    print(f"{name}: {count - len(missed)} of {count}")
    assert len(questions) == count
    assert len(missed) <= most_missed, missed


def test_a_search_is_never_stale(project):
    path = put_entry(project, "k/one", "On apples", "apples")
    put_entry(project, "k/two", "On plums", "plums")
    for _ in range(2):
        assert found(project, "apples") == ["k/one"]
    other = put_entry(project, "k/three", "On apples")
    assert sorted(found(project, "apples")) == ["k/one", "k/three"]
    other.unlink()
    info = path.stat()
    put_entry(project, "k/one", "On grapes", "grapes")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert (found(project, "apples"), found(project, "grapes")) == ([], ["k/one"])
    path.write_bytes(path.read_bytes().replace(b"grapes\n", b"lemons\n"))
    answer = rye.search("lemons", project_path=project, space="project")
    assert (answer["results"], answer["unverified"]) == ([], {"tampered": 1})
    # A decision alone changes it, too.
    decisions.revoke(MINE.public.digest)
    answer = rye.search("plums", project_path=project, space="project")
    assert (answer["results"], sum(answer["unverified"].values())) == ([], 2)


@pytest.mark.parametrize("how", ["score", "name", "date"])
def test_pages_together_are_the_whole_answer_in_order(project, how):
    dates = ["2026-01-05", "2025-12-31", "2026-01-05", "2024-02-29", "2026-01-05"]
    for number, date in enumerate(dates):
        put_entry(project, f"k/e{number}", "Growing" if number % 2 else "Other", "apples", created_at=date)
    whole = found(project, "growing apples", sort_by=how)
    pages = [found(project, "growing apples", sort_by=how, limit=2, offset=at) for at in (0, 2, 4)]
    assert [one for page in pages for one in page] == whole
    by_date = sorted(range(5), key=lambda at: (dates[at], -at), reverse=True)
    places = {"score": (1, 3, 0, 2, 4), "name": range(5), "date": by_date}[how]
    assert whole == [f"k/e{at}" for at in places]
