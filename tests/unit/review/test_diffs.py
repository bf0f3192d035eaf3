"""What a change did, as its page shows it: lines with their numbers and colours, in every encoding, and in words what is no line."""

from __future__ import annotations

import html
import random
import re

import pytest

from rye.review import colours
from support.calling import call
from support.review_pages import calls_in, serving
from support.shell_calls import bash

SECTION = re.compile(r'<section class="file[^>]* aria-label="([^"]*)">(.*?)(?=<section class="file|</form>)', re.DOTALL)
ROW = re.compile(
    r'<span class="row ?(?:plus|minus)?"><span class="no">(\d*)</span><span class="no">(\d*)</span>'
    r'<span class="sign">(.)</span><span class="text">(.*?)</span>\n</span>',
    re.DOTALL,
)


class Shown:
    """One file of a page: its rows as `old/new sign text`, the notes, and the pieces that have a colour."""

    def __init__(self, text):
        found = ROW.findall(text)
        self.rows = [f"{old}/{new}{sign}{plain(line)}" for old, new, sign, line in found]
        self.changed = [row for row in self.rows if re.match(r"\d*/\d*[+−]", row)]
        self.notes = [plain(one) for one in re.findall(r'<p class="note">(.*?)</p>', text)]
        self.colours = re.findall(r'<span class="(\w)">([^<]*)</span>', text)


def plain(text):
    return html.unescape(re.sub(r"<[^>]*>", "", text))


@pytest.fixture
def newest(project, monkeypatch):
    """Return what the page of the newest call shows of each file."""
    # A busy machine is no lexer that hangs.
    monkeypatch.setattr(colours, "_SECONDS", 120.0)
    with serving(project) as pages, pages.client() as client:

        def shown():
            text = client.get(f"change/{calls_in(client.get('').text)[0]}").text
            return {html.unescape(path): Shown(part) for path, part in SECTION.findall(text)}

        yield shown


@pytest.fixture
def run(project, newest):
    def ran(command):
        assert bash(project, command)["success"]
        return newest()

    (project / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    bash(project, "true")
    return ran


def test_a_commands_lines_have_their_numbers_and_what_is_around_them(run):
    shown = run("sed -i '2s/.*/two/; 8d' a.txt")["a.txt"]
    around = ["3/3 3", "4/4 4", "5/5 5"]
    assert shown.rows == ["1/1 1", "2/−2", "/2+two", *around, "6/6 6", "7/7 7", "8/−8", "9/8 9"]


def test_files_that_come_and_go_modes_and_line_ends_are_said(run):
    shown = run("printf 'x\\ny' > new.txt; rm a.txt; mkdir d; ln -s a.txt link; printf '\\0\\1' > bin")
    assert (shown["new.txt"].rows, shown["new.txt"].notes) == (["/1+x", "/2+y"], ["The file was made."])
    assert (len(shown["a.txt"].changed), shown["a.txt"].notes) == (9, ["The file was deleted."])
    assert shown["link"].notes == ["nothing -> a link to a.txt"]
    assert "a directory" in shown["d"].notes[0]
    assert "a file of 2 bytes" in shown["bin"].notes[0]
    shown = run("chmod 700 new.txt; sed -i '1s/$/\\r/' new.txt")["new.txt"]
    assert (shown.changed, shown.notes) == (["1/−x  [line end: LF]", "/1+x  [line end: CR LF]"], ["mode 644 -> 700"])
    assert run("printf '\\n' >> new.txt")["new.txt"].changed == ["2/−y  [no line end]", "/2+y"]


def test_an_edits_lines_have_what_is_around_them_also_later(project, run, newest):
    assert call("edit_lines", project, file_path="a.txt", changes=[{"find": "5", "replace": "B"}])["success"]
    expected = ["2/2 2", "3/3 3", "4/4 4", "5/−5", "/5+B", "6/6 6", "7/7 7", "8/8 8"]
    assert newest()["a.txt"].rows == expected
    with serving(project) as pages, pages.client() as client:
        name = calls_in(client.get("").text)[0]
        bash(project, "sed -i 1d a.txt")
        ((_, part),) = SECTION.findall(client.get(f"change/{name}").text)
        assert Shown(part).rows == expected


@pytest.mark.parametrize("code", ["utf-16", "latin-1", "utf-8-sig", "shift_jis"])
def test_edits_in_other_encodings_are_text(project, newest, code):
    text = "eins\nzwei \u00fc\n" if code != "shift_jis" else "eins\nzwei \u3042\u3044\u3046\u3048\u304a\u304b\u304d\n"
    (project / "a.txt").write_bytes(text.encode(code))
    call("read", project, file_path="a.txt")
    assert call("edit_lines", project, file_path="a.txt", changes=[{"find": "eins", "replace": "one"}])["success"]
    assert newest()["a.txt"].changed == ["1/−eins", "/1+one"]
    call("write", project, file_path="a.txt", content="quite other\n")
    assert "/1+quite other" in newest()["a.txt"].changed


NAMES = ("a.py", "b.html", "c.rs", "d.json", "e.sh", "Makefile", "f.md", "g.txt")


def test_the_rows_of_two_texts_turn_one_into_the_other_and_colours_change_no_text(project, newest):
    chance = random.Random(3)
    lines = ("a", "b", "", "def f(x):", '"""', "# <b>&", "{", "\tif", "\x1b[1m", "é\u202e", "<!--", "'")
    sides = {}
    for at in range(48):
        name, old = f"{at}/{NAMES[at % len(NAMES)]}", [chance.choice(lines) for _ in range(chance.randrange(12))]
        new = [chance.choice(lines) if chance.random() < 0.3 else line for line in old] + chance.choices(lines, k=at % 3)
        sides[name] = old, new
        for folder, side in ((project, old), (project / "new", new)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("\n".join(side) + "\n" * (bool(side) and (not side[-1] or chance.random() < 0.8)))
    bash(project, "true")
    bash(project, "cp -r new/* .")
    shown = newest()
    assert len(shown) > 30
    for name, file in shown.items():
        before, after = (["", *map(visible, side)] for side in sides[name])
        gone, came = set(), set()
        for row in file.rows:
            old, new, sign, text = re.fullmatch(r"(?s)(\d*)/(\d*)([ +−])(.*)", row).groups()
            text = text.partition("  [")[0]
            assert not old or before[int(old)] == text, (name, file.rows)
            assert not new or after[int(new)] == text, (name, file.rows)
            gone |= {int(old)} if sign == "−" else set()
            came |= {int(new)} if sign == "+" else set()
        left = [line for at, line in enumerate(before) if at not in gone]
        assert left == [line for at, line in enumerate(after) if at not in came], name
    assert any(file.colours for file in shown.values())


def visible(line):
    return line.replace("\x1b", "U+001B").replace("\u202e", "U+202E")


def test_python_has_colours_and_unknown_names_and_large_texts_have_none(run):
    many = "for n in 1 2 3; do echo 'def f(x): # why' > $n.py; done; cp 1.py c.unknown; head -c 3000 /dev/zero | tr '\\0' x >> 2.py"
    shown = run(f'printf \'def f():\\n    """doc\\n    """\\n\' > doc.py; {many}; seq 60000 >> 3.py')
    assert ("k", "def") in shown["1.py"].colours
    # A text of several lines is one on each of them.
    assert [piece for kind, piece in shown["doc.py"].colours if kind == "s"][-1].strip() == "&#34;&#34;&#34;"
    assert [shown[name].colours for name in ("c.unknown", "2.py", "3.py")] == [[]] * 3


SLOW = """
import json, sys, time
for line in sys.stdin:
    name, text = json.loads(line)
    time.sleep(600 if "HANG" in text else 0)
    print(json.dumps([[["k", one]] for one in text.split("\\n")]), flush=True)
"""


def test_a_lexer_that_hangs_is_ended_and_only_what_comes_after_it_stays_plain(run, newest, monkeypatch):
    monkeypatch.setattr(colours, "_PROGRAM", SLOW)
    monkeypatch.setattr(colours, "_SECONDS", 2.0)
    shown = run("echo x > a.py; echo HANG > b.py; echo y > c.py")
    assert [bool(shown[name].colours) for name in ("a.py", "b.py", "c.py")] == [True, False, False]
    # Remembered: it is not tried again, which would hold the next page as long. Without Pygments nothing new has colours.
    monkeypatch.setattr(colours, "_PROGRAM", "import sys; sys.exit(3)")
    assert newest()["a.py"].colours
    assert run("echo z > z.py")["z.py"].colours == []
