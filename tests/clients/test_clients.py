"""What programs that others wrote do with the server: each one lists, reads, edits, fails, is cut, falls silent and is ended.

`python -m pytest -m clients tests/clients` installs the programs from npm and PyPI into folders of their own, `RYE_CLIENTS` where
that names one, and takes some minutes. `PYTHONPATH=tests python tests/clients/test_clients.py --write` makes the tables of
docs/compatibility.md from a run of all; `--settings` only that of settings.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import client_programs
from support.client_programs import PROGRAMS, folder_of
from support.shell_calls import sleepers
from support.waiting import until

PAGE = Path(__file__).parents[2] / "docs/compatibility.md"
APP = "def total(prices):\n    return sum(prices)\n"
# By the address that the read gave, and by the text: the two forms that a model uses most.
EDIT = ["2|    return round(sum(prices), 2)", "find|def total(|def sum_of("]
TEN = ("read", "write", "edit_lines", "undo", "glob", "grep", "ls", "bash", "job", "rye_search")
STEPS = [
    ("read", {"file_path": "app.py"}),
    ("edit_lines", {"file_path": "app.py", "changes": EDIT}),
    # Two in a row: some agents give up at the second error.
    ("bash", {"command": "echo told; echo warned >&2; exit 3"}),
    ("bash", {"command": "exit 4"}),
    ("bash", {"command": "seq 1 60000"}),
    ("read", {"file_path": "none.py"}),
]
SILENT = ("bash", {"command": "sleep 66; echo woke"})
# What programs say of a call that did not come to its end.
WHY = re.compile(
    r"Timed out while waiting[^.]*\.[^.]*\.\d seconds|Request 'tools/call' timed out|Request timed out|timeout: \d+|Argument \w+ is required"
    r"|not running in a trusted directory|An error occurred while running the tool|AssertionError: \('\w+'|timed out"
)
ENTRY = re.compile(r"entry_id (\w+)\]")
SCENARIOS = ("list", "read", "edit", "undo", "failing command", "cut output", "refusal", "cancelled", "silent minute")


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    base = tmp_path_factory.getbasetemp() / "clients"

    def place(name):
        why = client_programs.install(name, folder_of(name, base))
        if why:
            pytest.skip(why)
        return folder_of(name, base)

    return place


def a_project(folder):
    project = folder / "work/project"
    (project / ".git").mkdir(parents=True)
    (project / "app.py").write_text(APP)
    return project


def plain(text):
    """Return a result without the escapes of programs that show JSON."""
    return text.replace("\\n", "\n").replace('\\"', '"').replace('\\"', '"').replace("\\t", "\t")


def judge_script(name, place, folder):
    """Play the script; return what is wrong, by scenario."""
    project = a_project(folder)
    run = client_programs.play(name, place, project, folder / "home", STEPS)
    results = [plain(text) for text in run.results] + [""] * len(STEPS)
    edited = (project / "app.py").read_text()
    entry = ENTRY.search(results[1])
    # Started anew: what one session did is taken back from another, as in clients that make a session for each call.
    step = ("undo", {"entry_id": entry[1]}) if entry else ("undo", {"list": True})
    undone = client_programs.play(name, place, project, folder / "home", [step])
    last = f"{run.code}: {run.printed[-600:]}"
    missing = [tool for tool in TEN if not any(offered.endswith(tool) for offered in run.offered)]
    faults = {
        "list": f"not offered: {missing}" if missing else "",
        "read": "" if "return sum(prices)" in results[0] else f"{results[0]!r} {last}",
        "edit": "" if "[version " in results[1] and _told(edited, "round(sum", "sum_of(") else f"{results[1]!r}",
        "undo": "" if entry and (project / "app.py").read_text() == APP else f"{undone.results} {undone.printed[-600:]}",
        "failing command": ""
        if _told(results[2], "told", "warned", "[exit code 3]") and "exit code 4" in results[3]
        else repr(results[2:4]),
        "cut output": "" if _told(results[4], "1\n2\n3\n", 'job(action="read", job_id="') else repr(results[4][-300:]),
        "refusal": "" if "File not found: none.py" in results[5] else repr(results[5]),
    }
    if run.code != 0 and not any(faults.values()):
        faults["refusal"] = f"the program ended with {last}"
    return faults


def _told(text, *parts):
    return all(part in text for part in parts)


def judge_silence(name, place, folder):
    """Let a command say nothing for more than a minute."""
    run = client_programs.play(name, place, a_project(folder), folder / "home", [SILENT])
    return {"silent minute": "" if run.results and "woke" in run.results[0] else f"{run.results} {run.printed[-600:]}"}


def at_defaults(name, place, folder):
    """Return what a read and a silent minute come to where nothing is set: `yes`, or what the program says."""
    said = []
    for number, (step, wanted) in enumerate(((("read", {"file_path": "app.py"}), "return sum"), (SILENT, "woke"))):
        run = client_programs.play(
            name, place, a_project(folder / str(number)), folder / f"home-{number}", [step], helped=False
        )
        text = plain(" ".join([*run.results, run.printed]))
        why = WHY.search(text)
        said.append("yes" if any(wanted in plain(one) for one in run.results) else f"no: `{why[0] if why else text[-90:]}`")
    return said


def judge_cancelling(name, place, folder):
    """End the program while a command runs: nothing of that may be left."""
    project = a_project(folder)
    seconds = f"3{int(os.urandom(3).hex(), 16)}"
    steps = [("bash", {"command": f"sleep {seconds} & touch begun; wait"})]
    run = client_programs.play(name, place, project, folder / "home", steps, interrupt=project / "begun")
    if not (project / "begun").exists():
        return {"cancelled": f"the command never began: {run.printed[-600:]}"}
    gone = until(lambda: not sleepers(seconds))
    return {"cancelled": "" if gone else f"{len(sleepers(seconds))} processes left"}


@pytest.mark.clients
@pytest.mark.parametrize("judge", [judge_script, judge_cancelling, judge_silence], ids=["script", "cancelled", "silence"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_can_do_with_the_server_what_it_is_for(name, judge, installed, tmp_path):
    faults = judge(name, installed(name), tmp_path)
    assert {scenario: fault for scenario, fault in faults.items() if fault} == {}


def test_the_page_has_a_row_for_each_program():
    page = PAGE.read_text(encoding="utf-8")
    for program in PROGRAMS.values():
        assert f"\n| {program.title} " in page, program.title
        assert not program.setting or f"| {program.title} | {program.setting} | {program.value} |" in page, program.title


def table(base):
    """Return the table's rows, from a run of all programs; scenarios of one program run one after another."""

    def row(name):
        place = folder_of(name, base)
        if why := client_programs.install(name, place):
            return f"| {PROGRAMS[name].title} | | {' | '.join([f'not run: {why}'] * len(SCENARIOS))} |"
        faults = {}
        for judge in (judge_script, judge_cancelling, judge_silence):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                faults |= judge(name, place, Path(folder))
        for scenario, fault in faults.items():
            if fault:
                print(f"{name}: {scenario}: {fault}", file=sys.stderr)
        cells = ["no" if faults.get(scenario, "not judged") else "yes" for scenario in SCENARIOS]
        return f"| {PROGRAMS[name].title} | {client_programs.version(name, place)} | {' | '.join(cells)} |"

    return in_order(row, PROGRAMS)


def in_order(row, names):
    # The minutes of silence pass side by side.
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(row, names))


def settings_table(base):
    """Return the rows of what is to be set in which program, with what it does where nothing is set."""

    def row(name):
        program, place = PROGRAMS[name], folder_of(name, base)
        said = ["not run", "not run"]
        if not client_programs.install(name, place):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                said = at_defaults(name, place, Path(folder))
        return f"| {program.title} | {program.setting} | {program.value} | {' | '.join(said)} |"

    return in_order(row, [name for name in PROGRAMS if PROGRAMS[name].setting])


def put(page, mark, head, rows):
    """Return the page with a table between its marks."""
    before, _, rest = page.partition(f"<!-- {mark} -->\n")
    after = rest.partition("<!-- end -->\n")[2]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
    return f"{before}<!-- {mark} -->\n" + "\n".join(lines) + f"\n<!-- end -->\n{after}"


def main():
    base = Path(os.environ.get("RYE_CLIENTS") or tempfile.mkdtemp())
    page = PAGE.read_text(encoding="utf-8")
    if "--settings" not in sys.argv:
        page = put(page, "clients", ("program", "version", *SCENARIOS), table(base))
    head = ("client", "setting", "value", "a read at its defaults", "a silent minute at its defaults")
    page = put(page, "settings", head, settings_table(base))
    print(page)
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
