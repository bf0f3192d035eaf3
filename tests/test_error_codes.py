"""docs/error-codes.md lists every error code that the source raises. `python tests/test_error_codes.py --write` makes the page."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "error-codes.md"
CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
HEAD = """# Error codes

A refusal has a stable `code`, an `error` that says what went wrong and what to do next, and sometimes further fields. This page is
made from the source by `python tests/test_error_codes.py --write`. `…` stands for a value.

| code | error class, or how it is answered | made in | what it says |
|---|---|---|---|
"""


def _sources():
    yield from sorted((ROOT / "runtime/rye").rglob("*.py"))
    yield from sorted((ROOT / ".ai/tools").rglob("*.py"))


CONSTANTS = {
    match[1]: match[2]
    for path in _sources()
    for match in re.finditer(r"(?m)^_?([A-Z_]+)(?:: Final)? = \"([a-z]+(?:_[a-z]+)+)\"$", path.read_text(encoding="utf-8"))
}


def _text(node):
    """Return a message as it is written, with `…` for each value; "" where it is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return "…" if isinstance(node, ast.expr) else ""


def _raised(tree):
    """Yield (code, class, message) of every error that is made with a literal code; a message may have a name right before."""
    named = [
        (one.targets[0].id, one) for one in ast.walk(tree) if isinstance(one, ast.Assign) and hasattr(one.targets[0], "id")
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = (
            node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        )
        if name == "__init__" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            name = "RyeError"
        if not name.endswith("Error") or not node.args:
            continue
        message = node.args[1] if len(node.args) > 1 else None
        before = [one for name, one in named if name == getattr(message, "id", "") and 0 < node.lineno - one.lineno < 5]
        message = max(before, key=lambda one: one.lineno).value if before else message
        codes = [node.args[0]]
        while isinstance(codes[-1], ast.IfExp):
            choice = codes.pop()
            codes += [choice.body, choice.orelse]
        for code in codes:
            # A literal, a constant of that name, or a text with a value in it.
            said = CONSTANTS.get(getattr(code, "id", getattr(code, "attr", "")), _text(code))
            if CODE.fullmatch(said.replace("…", "x")) and said != "…":
                yield said, name, _text(message)


def _literals(node):
    """Return the codes that an expression can be: a literal, or one of two."""
    choices = _literals(node.body) + _literals(node.orelse) if isinstance(node, ast.IfExp) else [node]
    return [
        one for one in choices if isinstance(one, ast.Constant) and isinstance(one.value, str) and CODE.fullmatch(one.value)
    ]


def _first(names):
    return getattr(names.elts[0], "id", "") if names.elts else ""


def _answered(tree):
    """Yield (code, how, message) of every code that an answer has without an exception of that name: in `errors[]`, rows, results."""
    for node in ast.walk(tree):
        pair = None
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            at = 1 if name == "LintFinding" else 0
            if name == "add" and "problems" in ast.unparse(node.func):
                yield from ((one.value, "problem", _text(node.args[1])) for one in _literals(node.args[0]))
            elif len(node.args) > at + 1 and not name.endswith("Error") and name not in ("__init__", "add", "advice", "Verb"):
                pair = node.args[at], node.args[at + 1], "finding" if at else "problem"
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and _text(node.elts[1]).endswith((".", "…")):
            pair = *node.elts, "problem"
        elif isinstance(node, ast.Dict):
            fields = {getattr(key, "value", None): value for key, value in zip(node.keys, node.values, strict=True)}
            said = fields.get("error", fields.get("message"))
            if "code" in fields and said is not None:
                yield from ((one.value, "result", _text(said)) for one in _literals(fields["code"]))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and _first(node.targets[0]) == "code":
            pairs = [one.elts[0] for one in ast.walk(node.value) if isinstance(one, ast.Tuple)]
            yield from ((one.value, "result", "") for pair in pairs for one in _literals(pair) if "_" in one.value)
        elif isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["code"]:
            yield from ((one.value, "result", "") for one in _literals(node.value) if "_" in one.value)
        if pair is not None and " " in (message := _text(pair[1])):
            yield from ((one.value, pair[2], message) for one in _literals(pair[0]) if "_" in one.value)


@cache
def listed():
    """Return code -> (classes, packages, first message)."""
    found = defaultdict(lambda: (set(), set(), []))
    for path in _sources():
        inside = path.relative_to(ROOT / "runtime/rye") if "runtime" in path.parts else None
        place = inside.parts[0].removesuffix(".py") if inside else f"tool {path.stem}"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for code, name, message in [*_raised(tree), *_answered(tree)]:
            classes, places, messages = found[code]
            classes.add(name)
            places.add(place)
            messages.append(message)
    return found


def page():
    """Return the text of the page."""
    rows = []
    for code, (classes, places, messages) in sorted(listed().items()):
        said = next((one for one in sorted(messages, key=len, reverse=True) if one.strip("… ")), "")
        said = re.sub(r"\s+", " ", said).replace("|", "\\|").strip()
        rows.append(f"| `{code}` | {', '.join(sorted(classes))} | {', '.join(sorted(places))} | {said} |")
    return HEAD + "\n".join(rows) + "\n"


def test_the_page_lists_every_code():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_error_codes.py --write"


def test_control_a_new_code_is_seen():
    tree = ast.parse('raise EditError("no_such_line", f"{path} has no line {n}.", "Read it.")')
    assert list(_raised(tree)) == [("no_such_line", "EditError", "… has no line ….")]
    # Those in `errors[]` of a patch, in rows, and of a crash.
    answered = "no_lines unexpected_field unknown_operation newline_in_line expected_lines_differ missing_field"
    answered += " malformed_digest no_files tool_crashed unreadable missing_metadata text_not_found"
    assert {*answered.split()} <= listed().keys()
    assert len(listed()) > 100
    tree = ast.parse(
        'problems.add("not_so", said, patch)\nout.append(("no_way", f"{x} is none."))\nx = {"code": "no_go", "error": e}'
    )
    assert {code for code, _, _ in _answered(tree)} == {"not_so", "no_way", "no_go"}


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(page(), encoding="utf-8")
