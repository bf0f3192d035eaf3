"""Notebooks: read shows cells by address, edit_lines takes their text, and the file stays a notebook, byte for byte elsewhere."""

import json
import random
import re

import pytest

from support.calling import call, done, refused
from support.harness import times

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def code(source, *outputs, **more):
    return {"cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": [*outputs], "source": source, **more}


def markdown(source, **more):
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def printed(text):
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def pictured():
    return {"data": {"image/png": PNG, "text/plain": ["<Figure>"]}, "metadata": {}, "output_type": "display_data"}


def put(project, *cells, indent=1, minor=5, name="n.ipynb"):
    """Write a notebook as Jupyter does."""
    whole = {"cells": [*cells], "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": minor}
    (project / name).write_text(json.dumps(whole, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def ends(project):
    """Return the addresses of each cell's first and last line."""
    return re.findall(r"lines (\d+\w*)-(\d+\w*)\]", read(project))


def sources(project):
    return ["".join(cell["source"]) for cell in json.loads((project / "n.ipynb").read_bytes())["cells"]]


def read(project, **params):
    return done("read", project, file_path="n.ipynb", line_ids="short", **params)["output"]


def at(output, text):
    """Return the address of the line that was shown with this text."""
    (found,) = [line.partition("\t")[0] for line in output.split("\n") if line.partition("\t")[1:] == ("\t", text)]
    return found


def edit(project, *changes, **params):
    params = {"changes": [*changes], "line_ids": "short", "diff": False, **params}
    return done("edit_lines", project, file_path="n.ipynb", **params)["output"]


def test_cells_are_shown_with_their_text_and_what_they_printed(project):
    put(
        project,
        markdown(["# Title\n", "\n", "text"]),
        code(["import sys\n", 'x = "a\\"b\\u00e9é"\n', "print(x)"], printed("hello\nworld\n"), pictured()),
        code([]),
    )
    data = done("read", project, file_path="n.ipynb", line_ids="short")
    shown = data["output"]
    texts = [line.partition("\t")[2] for line in shown.split("\n") if "\t" in line]
    assert texts == ["# Title", "", "text", "import sys", 'x = "a\\"b\\u00e9é"', "print(x)", ""]
    assert "[output]\nhello\nworld\n[image/png]" in shown
    assert [part["data"] for part in data["media"]] == [PNG]
    raw = (project / "n.ipynb").read_text(encoding="utf-8").split("\n")
    # Until an edit the address of a line is its number in the file.
    for line in shown.split("\n"):
        if re.match(r"\d+\t.", line):
            number, _, text = line.partition("\t")
            assert json.loads(raw[int(number) - 1].strip().rstrip(",")).rstrip("\n") == text
    assert data["cells"] == 3
    first, last = re.search(r"cell 2, code, lines (\d+)-(\d+)\]", shown).groups()
    assert (raw[int(first) - 1].strip(), raw[int(last) - 1].strip()) == ("{", "},")


def test_the_answer_and_refusals_show_text_too(project):
    put(project, code(["a = 1\n", "b = 2"]))
    shown = read(project)
    assert edit(project, f"{at(shown, 'b = 2')}|b = 3").startswith(f"{at(shown, 'b = 2')} -> ")
    refused("text_not_found", "edit_lines", project, file_path="n.ipynb", changes=[{"find": "b = 9", "replace": "c"}])
    (project / "n.ipynb").write_text((project / "n.ipynb").read_text().replace("b = 3", "b = 4"))
    change = f"{at(shown, 'a = 1')}-{at(shown, 'b = 2')} delete"
    more = {"changes": [change], "line_ids": "short", "on_stale": "rebase"}
    assert "\tb = 4" in refused("invalid_line_id", "edit_lines", project, file_path="n.ipynb", **more)


def test_grep_shows_what_read_shows_and_an_edit_can_follow(project):
    put(project, markdown(["# Title\n", "text"]), code(["x = 1\n", "total = 'x'\n", "print(total)"], printed("total 3\n")))
    for _ in range(2):
        found = done("grep", project, pattern="total", include="*.ipynb", line_ids="short")["output"]
        texts = [line.partition("\t")[2].strip() for line in found.split("\n")[1:]]
        assert texts == ['"total 3\\n"', "total = 'x'", "print(total)"]
    edit(project, f"{at(found, 'print(total)')}|print(2 * total)")
    assert sources(project)[1] == "x = 1\ntotal = 'x'\nprint(2 * total)"
    # Control: the JSON of the file, where IDs name its lines.
    assert '"print(2 * total)"' in done("grep", project, pattern="total", include="*.ipynb")["output"]


def test_a_mark_behind_the_last_line_that_is_shown_adds_a_cell(project):
    put(project, code(["a = 1\n", "b = 2"]), markdown(["text"]))
    shown = read(project)
    b, text = at(shown, "b = 2"), at(shown, "text")
    edit(project, f"{b}|b = 3\n# %%\nc = 3", f"{text}|other", f"{text}+|# %% [markdown]\nend")
    assert sources(project) == ["a = 1\nb = 3", "c = 3", "other", "end"]
    # What is behind it may go in the same call.
    edit(project, f"{at(read(project), 'other')}+|# %%\nnew", f"{'-'.join(ends(project)[-1])} delete")
    edit(project, f"{ends(project)[1][1]}+|d = 4", f"{ends(project)[2][0]}-{ends(project)[3][1]} delete")
    # Control: before the last line it is text.
    edit(project, f"{at(read(project), 'a = 1')}+|# %%")
    edit(project, "end+|# %%\nlast", "+start|# %% [markdown]\ntop")
    assert sources(project) == ["top", "a = 1\n# %%\nb = 3", "c = 3", "d = 4", "last"]


def test_cells_are_added_deleted_moved_and_copied(project):
    put(project, markdown(["one"]), code(["two"]), code(["three"], id="t"))
    cells = ends(project)
    edit(project, f"{cells[0][1]}+|new = 1\nmore = 2")
    assert sources(project) == ["one", "new = 1\nmore = 2", "two", "three"]
    edit(project, f"{cells[2][1]}+|# %% [markdown]\n# Title\n\ntext\n# %%\n{{'last': 1}}\n\n")
    assert sources(project)[-3:] == ["three", "# Title\n\ntext", "{'last': 1}"]
    whole = json.loads((project / "n.ipynb").read_bytes())
    assert [cell["cell_type"] for cell in whole["cells"]] == ["markdown", "code", "code", "code", "markdown", "code"]
    assert all(re.fullmatch("[0-9a-f]{8}", cell["id"]) for cell in (whole["cells"][1], *whole["cells"][4:]))
    assert (project / "n.ipynb").read_text(encoding="utf-8") == json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    cells = ["-".join(one) for one in ends(project)]
    edit(project, f"{cells[4].partition('-')[0]}-{cells[5].partition('-')[2]} delete", f"{cells[0]} delete")
    assert sources(project) == ["new = 1\nmore = 2", "two", "three"]
    # A cell in JSON, as somebody wrote it: it is laid out as the others, which keep their addresses.
    edit(project, f'{ends(project)[-1][1]}+|{{"cell_type": "raw", "metadata": {{}}, "source": ["r"]}}')
    edit(project, f"{'-'.join(ends(project)[-1])} delete")
    # Half of a character can be in JSON as an escape only.
    edit(project, f'{ends(project)[-1][1]}+|{{"cell_type": "raw", "metadata": {{}}, "source": ["\\ud83d"]}}')
    assert sources(project)[-1] == "\ud83d"
    edit(project, f"{'-'.join(ends(project)[-1])} delete")
    (first, last), _, (_, end) = ends(project)
    edit(project, f"{first}-{last} move after {end}")
    assert sources(project) == ["two", "three", "new = 1\nmore = 2"]
    _, (first, last), (_, end) = ends(project)
    edit(project, f"{first}-{last} copy after {end}")
    assert sources(project) == ["two", "three", "new = 1\nmore = 2", "three"]
    assert re.findall('"id": "(t?)', (project / "n.ipynb").read_text()) == ["t", "", ""]


def test_lines_move_between_cells_and_into_other_files(project):
    put(project, code(["a = 1\n", "b = 2"]), code(["c = 3"]))
    (project / "m.py").write_text("z = 0\n")
    done("read", project, file_path="m.py", line_ids="short")
    shown = read(project)
    edit(project, f"{at(shown, 'b = 2')} move after {at(shown, 'c = 3')}", f"{at(shown, 'a = 1')} copy after m.py:1")
    assert (sources(project), (project / "m.py").read_text()) == (["a = 1", "c = 3\nb = 2"], "z = 0\na = 1\n")


@pytest.mark.parametrize(("newline", "indent"), [("\n", 1), ("\r\n", 1), ("\n", "\t"), ("\n", 4)])
def test_the_files_own_line_ends_and_indentation_are_kept(project, newline, indent):
    put(project, code(["a = 1\n", "b = 2"]), code([]), indent=indent)
    path = project / "n.ipynb"
    path.write_bytes(path.read_bytes().replace(b"\n", newline.encode()))
    shown, (_, (_, end)) = read(project), ends(project)
    empty = at(shown.partition("cell 2")[2], "")
    edit(project, f"{at(shown, 'b = 2')}+|c = 3", f"{empty}|d = 4", f"{end}+|# %% [markdown]\ntext")
    assert sources(project) == ["a = 1\nb = 2\nc = 3", "d = 4", "text"]
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(newline.encode())
    whole = json.dumps(json.loads(data), indent=indent, ensure_ascii=False) + "\n"
    assert data == whole.encode().replace(b"\n", newline.encode())


def test_json_for_a_cells_line_is_refused_and_found_text_is_replaced(project):
    put(project, code(["a = 1\n", "b = 2\n", "c = 3"]))
    shown = read(project)
    for given in ('    "b = 9\\n",', '    "b = 9\\n",\n    "x\\n",'):
        changes = [f"{at(shown, 'b = 2')}|{given}"]
        error = refused("notebook_json", "edit_lines", project, file_path="n.ipynb", changes=changes, line_ids="short")
        assert "b = 9" in error
    # Python that looks alike is text.
    edit(project, f'{at(shown, "b = 2")}|f(\n    "b",\n)')
    assert sources(project) == ['a = 1\nf(\n    "b",\n)\nc = 3']
    edit(project, {"find": '"b",\n)\nc = 3', "replace": '"q")'})
    assert sources(project) == ['a = 1\nf(\n    "q")']


def test_what_would_break_the_notebook_is_refused_whatever_the_guard(project):
    put(project, code(["a = 1"]), code(["b = 2"]))
    before = (project / "n.ipynb").read_bytes()
    (first, last), _ = ends(project)
    for change in (f"{first}|x", f"{first} delete", f"{last}|oops"):
        refused("notebook_broken", "edit_lines", project, file_path="n.ipynb", changes=[change], line_ids="short")
    assert (project / "n.ipynb").read_bytes() == before
    # The JSON itself can be read and edited.
    put(project, code(["a = 1"]))
    edit(project, f'{at(read(project, notebook="json"), """    "a = 1" """[:-1])}|    "a = 2"', notebook="json")
    assert sources(project) == ["a = 2"]


@pytest.mark.parametrize("indent", [None, 0])
def test_a_notebook_on_one_line_is_shown_and_says_why_it_has_no_addresses(project, indent):
    put(project, code(["a = 1\n", "b = 2"]), code("c = 3\nd = 4"), indent=indent)
    shown = read(project)
    assert ("a = 1" in shown, "c = 3\nd = 4\n" in shown, "lines without addresses" in shown) == (True, True, True)


@pytest.mark.parametrize(
    "content",
    [
        *(
            "{}",
            "[]",
            "not json",
            '{"cells": 3, "nbformat": 4}',
            '{"cells": [3], "nbformat": 4}',
            '{"cells": [], "nbformat": 3}',
            '{"cells": [], "nbformat": 4, "nbformat_minor": {}}',
            *(f'{{"cells": [{{"outputs": {one}}}], "nbformat": 4}}' for one in ("true", '"text"', "[3]")),
        ),
        # Valid JSON, of which nobody can say which lines are the cells.
        '{"cells": [{"cell_type": "code", "source": ["x"]}], "cells": [], "nbformat": 4}',
        '{"cells": [{"source": ["x"]}, {"source": ["y"]}], "cells": [{"source": ["z"]}], "nbformat": 4}',
        '{"cells": [{"source": ["x"]}], "\\u0063ells": [{"source": ["y"]}], "nbformat": 4}',
        '{"nbformat": 4, "cells": [{"cell_type": "code",\n"source": [\n"x"\n],\n"\\u0073ource": [\n"y"\n]}]}',
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["x"], "source": []}]}',
    ],
)
def test_what_is_no_notebook_is_shown_as_it_stands(project, content):
    (project / "n.ipynb").write_text(f"{content}\n")
    shown = read(project)
    assert (all(line in shown for line in content.split("\n")), "cell 1" in shown) == (True, False)
    data = done("edit_lines", project, file_path="n.ipynb", changes=[{"find": content, "replace": f" {content}"}])
    assert data["changes_applied"] == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"nbformat": 4, "cells": [\n{"cell_type": "code",\n"sourc\\u0065": [\n "x"]}]}\n',
        '{"\\u0063ells": [{"cell_type": "code", "source": ["x"]}], "nbformat": 4}',
        # As some programs lay JSON out: short lists on one line, an empty one on two, a comma before what it parts.
        '{\n  "nbformat": 4,\n  "cells": [\n    {\n      "cell_type": "code",\n      "source": ["x"]\n    }\n  ]\n}\n',
        '{\n"nbformat": 4,\n"cells": [\n{\n"outputs": [\n],\n"source": [\n"x"\n]\n}\n]\n}\n',
        '{\n"nbformat": 4\n, "cells": [\n{\n"source": [\n"x"\n]\n}\n]\n}\n',
    ],
)
def test_a_notebook_of_another_layout_is_shown_without_addresses_and_edited_as_json(project, content):
    (project / "n.ipynb").write_text(content)
    shown = read(project)
    assert ("[cell 1, " in shown, "\nx\n[lines without addresses" in shown, "\t" in shown) == (True, True, False)
    refused("notebook_broken", "edit_lines", project, file_path="n.ipynb", changes=["end+|# %%\ny"])
    edit(project, {"find": '"x"', "replace": '"y"'})
    assert (project / "n.ipynb").read_text() == content.replace('"x"', '"y"')


def test_a_notebook_of_colab_is_edited_as_cells(project):
    cell = {"cell_type": "code", "source": ["a = 1\n", "b = 2"]}
    cell |= {"metadata": {"id": "x"}, "execution_count": None, "outputs": []}
    whole = {"nbformat": 4, "nbformat_minor": 0, "metadata": {"colab": {"provenance": []}}}
    whole["cells"] = [cell, {**cell, "source": []}]
    # It writes no newline at the end, and escapes what HTML takes for its own.
    (project / "n.ipynb").write_text(json.dumps(whole, indent=2).replace("a = 1", "a \\u003c 1"))
    shown = read(project)
    edit(project, f"{at(shown, 'b = 2')}|c = 3", f"{at(shown, '')}|d = 4", f"{at(shown, 'a < 1')}+|<")
    assert sources(project) == ["a < 1\n<\nc = 3", "d = 4"]
    cell["source"], whole["cells"][1]["source"] = ["a = 1\n", "<\n", "c = 3"], ["d = 4"]
    assert (project / "n.ipynb").read_text() == json.dumps(whole, indent=2).replace("a = 1", "a \\u003c 1")


def test_a_range_of_lines_ends_where_it_was_asked_to(project):
    put(project, *(code([f"line {cell}.{line}\n" for line in range(5)]) for cell in range(6)))
    raw = (project / "n.ipynb").read_text().splitlines()
    first = next(number for number, line in enumerate(raw, 1) if "line 1.3" in line)
    last = next(number for number, line in enumerate(raw, 1) if "line 3.1" in line)
    data = done("read", project, file_path=f"n.ipynb:{first}-{last}", line_ids="short")
    numbers = [int(line.partition("\t")[0]) for line in data["output"].split("\n") if "\t" in line]
    assert (numbers[0], numbers[-1]) == (first, last)
    assert (f"; {len(raw)} lines]" in data["output"], "omitted" in data["output"]) == (True, False)
    assert data["next_offset"] == last + 1


def test_outputs_are_bounded(project):
    error = {"ename": "ValueError", "evalue": "bad \x1b[31mred\x1b[0m", "output_type": "error", "traceback": ["x" * 300_000]}
    long = printed("".join(f"line {n}\n" for n in range(5_000)))
    put(project, code(["a"], long), code(["b"], error), code(["c"], *[pictured()] * 9))
    data = done("read", project, file_path="n.ipynb", line_ids="short", more=["./n.ipynb"])
    assert data["output"].count("[cells: ") == 1
    assert "line 9\n[… 4980 lines of output left out …]\nline 4990\n" in data["output"]
    assert ("ValueError: bad red" in data["output"], "xxx" in data["output"], len(data["media"])) == (True, False, 8)
    assert not done("edit_lines", project, file_path="n.ipynb", changes=[f"{at(read(project), 'a')}|A"])["warnings"]


def test_a_long_notebook_is_read_a_window_at_a_time(project):
    put(project, *[code([f"x{cell}_{line} = {line}\n" for line in range(400)]) for cell in range(20)])
    seen, offset = [], 1
    while offset is not None:
        data = done("read", project, file_path="n.ipynb", line_ids="short", offset=offset)
        assert len(data["output"].encode()) <= 51_200
        seen += [line.partition("\t")[2] for line in data["output"].split("\n") if "\t" in line]
        offset = data.get("next_offset")
    assert seen == [f"x{cell}_{line} = {line}" for cell in range(20) for line in range(400)]
    edit(project, re.search(r"cell 20, code, lines (\d+-\d+)", data["output"])[1] + " delete")


TEXTS = ["a = 1", "", "    x", 'print("q")', "é \\u0041 \\n", "# %%", "\t", '"', "}", "]", '"x\\n",', "  [", "b\x1b[0m"]


def run_model(project, seed):
    """Edit cells at random, and compare with lists of lines; all that is no text of a cell stays."""
    rnd = random.Random(seed)
    cells = [[rnd.choice(TEXTS) for _ in range(rnd.randint(0, 5))] for _ in range(rnd.randint(1, 4))]
    written = [[f"{line}\n" for line in cell[:-1]] + cell[-1:] for cell in cells]
    made = [rnd.choice([code, markdown])(cell, id=f"c{at}") for at, cell in enumerate(written)]
    put(project, *made, indent=rnd.choice([1, 2, 4]))
    model = [cell or [""] for cell in cells]
    for _ in range(8):
        shown = read(project)
        parts = re.split(r"^\[cell \d+, .*\]$", shown, flags=re.MULTILINE)[1:]
        addressed = [re.findall(r"^(\d+\w*)\t", part, flags=re.MULTILINE) for part in parts]
        assert [len(names) for names in addressed] == [len(cell) for cell in model], (seed, shown, model)
        number = rnd.randrange(len(model))
        cell, names = model[number], addressed[number]
        low = rnd.randrange(len(cell))
        high = rnd.randint(low, len(cell) - 1)
        new = [rnd.choice(TEXTS) for _ in range(rnd.randint(1, 3))]
        what = rnd.choice(["replace", "insert", "before", "delete"])
        if "# %%" in new and {"insert": low, "replace": high}.get(what) == len(cell) - 1:
            # That is a new cell.
            continue
        new = [] if what == "delete" else new
        if what in ("replace", "delete"):
            change, start, stop = {"start_line_id": names[low], "end_line_id": names[high]}, low, high + 1
        else:
            start = stop = low + (what == "insert")
            change = {f"{'after' if what == 'insert' else 'before'}_line_id": names[low]}
        change, wanted = {**change, "new_content": new}, [*cell[:start], *new, *cell[stop:]]
        answer = call("edit_lines", project, file_path="n.ipynb", changes=[change], line_ids="short")
        if answer.get("code") in ("no_change", "notebook_json"):
            continue
        assert answer["success"], (seed, answer)
        model[number] = wanted or [""]
        content = json.loads((project / "n.ipynb").read_bytes())
        assert ["".join(one["source"]).split("\n") for one in content["cells"]] == model, (seed, change)
        stripped = [{**one, "source": []} for one in content["cells"]]
        assert stripped == [{**one, "source": []} for one in made], seed
        assert [part for one in content["cells"] for part in one["source"][:-1] if not part.endswith("\n")] == [], seed


@pytest.mark.parametrize("seed", range(times(12)))
def test_random_edits_of_cells(project, seed):
    run_model(project, seed)
