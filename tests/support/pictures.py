"""The pictures of README.md, made from what the commands print and from the tables of docs/figures.md.

python tests/support/pictures.py            make all of them; the pages of `rye review` need Chromium
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/pictures"
FIGURES = ROOT / "docs/figures.md"
FILES = {
    "shop.py": "TAX = 0.2\n\ndef total(prices):\n    return sum(prices)\n",
    "test_shop.py": "from shop import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
SESSION = (
    "rye read shop.py",
    "rye grep 'assert'",
    """rye edit_lines shop.py diff=false changes='[
  "b1f039|    return sum(prices) * (1 + TAX)",
  "test_shop.py:b8ff99|    assert total([1, 2]) == 3.6"]'""",
    "rye undo | tail -1",
)
THEMES = {
    "light": {
        "back": "#ffffff", "text": "#1f2328", "faint": "#59636e", "good": "#1a7f37", "bad": "#cf222e", "line": "#d1d9e0",
        "bar": "#0969da", "other": "#afb8c1",
    },
    "dark": {
        "back": "#0d1117", "text": "#e6edf3", "faint": "#9198a1", "good": "#3fb950", "bad": "#f85149", "line": "#3d444d",
        "bar": "#4493f8", "other": "#545d68",
    },
}  # fmt: skip
# ECMA-48's numbers for what `rye` prints in colour.
_COLOURS = {"2": "faint", "31": "bad", "32": "good", "36": "bar"}
_SIZE, _CELL, _LINE, _EDGE, _COLUMNS = 14, 8.43, 20, 16, 62


def drawn(width: int, height: int, body: list[str], theme: dict[str, str]) -> str:
    """Return an SVG with a frame."""
    frame = f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="{theme["back"]}" stroke="{theme["line"]}"/>'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-size="{_SIZE}" fill="{theme["text"]}"'
    return "\n".join([f"{begin}>", frame, *body, "</svg>\n"])


def run(line: str, folder: Path, **env: str) -> str:
    """Return what a line prints in the project of `folder`."""
    mine = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT / "runtime")}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder / "project", env={**mine, **env}, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def record(folder: Path) -> str:
    """Return what a terminal shows of the session, with colours, in an empty project made in `folder`."""
    for one in ("project/.git", "home", "bin"):
        (folder / one).mkdir(parents=True)
    for name, text in FILES.items():
        (folder / "project" / name).write_text(text)
    rye = folder / "bin/rye"
    rye.write_text(f'#!/bin/sh\nexec {sys.executable} -m rye "$@"\n')
    rye.chmod(0o755)
    return "".join(f"\x1b[36m$\x1b[0m {line}\n{run(line, folder, FORCE_COLOR='1')}" for line in SESSION)


def terminal(shown: str, theme: dict[str, str]) -> str:
    """Return a picture of a terminal's text."""
    lines = []
    for line in shown.splitlines():
        # A line of colour codes may be longer than what it shows.
        lines += re.findall(rf"(?:(?:\x1b\[[\d;]*m)*.(?:\x1b\[[\d;]*m)*){{1,{_COLUMNS}}}", line) or [""]
    body, style = ['<g font-family="ui-monospace,Menlo,Consolas,monospace">'], ""
    for at, line in enumerate(lines):
        parts = []
        for code, text in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
            style = theme.get(_COLOURS.get(code, ""), "") if code else style
            if text:
                # The width is said, so that columns stand below each other in any font.
                parts.append(f'<tspan fill="{style or theme["text"]}">{escape(text).replace(" ", chr(160))}</tspan>')
        cells = len(re.sub(r"\x1b\[[\d;]*m", "", line))
        if cells:
            body.append(
                f'<text x="{_EDGE}" y="{_EDGE + 14 + at * _LINE}" textLength="{cells * _CELL:.0f}">{"".join(parts)}</text>'
            )
    return drawn(int(_COLUMNS * _CELL) + 2 * _EDGE, len(lines) * _LINE + 2 * _EDGE, [*body, "</g>"], theme)


def table(heading: str) -> list[dict[str, str]]:
    """Return the rows of the table in docs/figures.md whose first line begins so, by their headings."""
    text = FIGURES.read_text(encoding="utf-8")
    found = text[text.index(heading) :].split("\n\n")[0].replace("**", "").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in found]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def chart(title: str, notes: list[str], bars: list[tuple[str, list[tuple[float, str, str]]]], theme: dict[str, str]) -> str:
    """Return a chart: for each bar its name, and parts as (share of the width, colour, text)."""
    width, left = 480, 130
    body = [f'<g font-family="system-ui,sans-serif"><text x="16" y="28" font-weight="600">{escape(title)}</text>']
    for at, (name, parts) in enumerate(bars):
        y, x = 44 + at * 38, float(left)
        body.append(f'<text x="{left - 10}" y="{y + 19}" text-anchor="end">{escape(name)}</text>')
        for share, colour, text in parts:
            wide = share * (width - left - 20)
            body.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="28" fill="{theme[colour]}"/>')
            if text:
                ink = theme["text"] if colour == "other" else "#ffffff" if theme is THEMES["light"] else "#0d1117"
                body.append(f'<text x="{x + 6:.1f}" y="{y + 19}" fill="{ink}">{escape(text)}</text>')
            x += wide
    end = 44 + len(bars) * 38
    body += [
        f'<text x="16" y="{end + 16 + at * 17}" font-size="12" fill="{theme["faint"]}">{escape(note)}</text>'
        for at, note in enumerate(notes)
    ]
    return drawn(width, end + 17 * len(notes) + 12, [*body, "</g>"], theme)


def edits(theme: dict[str, str]) -> str:
    """Return the chart of 1,000 hard changes, made by each editor."""
    bars = []
    names = {"rye": "these tools", "fs": "MCP filesystem", "exact": "exact strings"}
    for row in table("| editor | exact | refused | silent | not expressible | exact of expressible |\n"):
        exact, silent = (float(row[name].rstrip("%")) / 100 for name in ("exact", "silent"))
        wrong = [(silent, "bad", f"{silent:.0%}")] if silent else []
        bars.append((names[row["editor"]], [(exact, "bar", f"{exact:.0%} exact"), (1 - exact - silent, "other", ""), *wrong]))
    notes = [
        "Blue: byte for byte what was asked for. Grey: refused, or not possible.",
        "Red: called done, while the file is another.",
    ]
    return chart("1,000 changes made hard for editors", notes, bars, theme)


def price(theme: dict[str, str]) -> str:
    """Return the chart of what recorded sessions cost."""
    (row,) = [one for one in table("| price | against Claude Code as recorded") if one["price"].startswith("whole sessions")]
    ours = [float(one) for one in row["against Claude Code as recorded"].split(" / ")]
    bars = [("as recorded", [(1.0, "other", "100%")])]
    bars += [
        ("these tools", [(one, "bar", f"{one:.0%} ({name})")])
        for one, name in zip(ours, ("GPT's tokens", "an older Claude's"), strict=True)
    ]
    notes = ["136 sessions of Claude Code, replayed: the price is tokens read +", "tokens answered + 5 x tokens written."]
    return chart("What a recorded session costs", notes, bars, theme)


def svgs(folder: Path) -> dict[str, str]:
    """Return the pictures that need no browser, by their names."""
    shown = record(folder)
    made = {"terminal": lambda theme: terminal(shown, theme), "edits": edits, "price": price}
    return {f"{name}-{mode}.svg": make(theme) for name, make in made.items() for mode, theme in THEMES.items()}


def review(folder: Path) -> None:
    """Take pictures of the page of `rye review` that shows the session's edit."""
    from support.browsers import Chromium
    from support.review_pages import serving

    run(SESSION[2], folder)
    change = json.loads(run("rye log --limit 1 --json", folder))[0]["id"]
    with serving(folder / "project") as served:
        (folder / "profile").mkdir()
        browser = Chromium(folder / "profile")
        try:
            for mode in THEMES:
                page = browser.page(width=800, height=600, dark=mode == "dark")
                if mode == "light":
                    page.goto(served.review.app.address)
                page.goto(f"{served.base}/change/{change}")
                bottoms = "[...document.querySelectorAll('main *')].map(one => one.getBoundingClientRect().bottom)"
                page.size(800, page.eval(f"Math.max(...{bottoms}) + 16 | 0"))
                page.picture(FOLDER / f"review-{mode}.png")
        finally:
            browser.close()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made_in:
        for file, picture in svgs(Path(made_in)).items():
            (FOLDER / file).write_text(picture, encoding="utf-8")
        os.environ["HOME"] = f"{made_in}/home"
        review(Path(made_in))
