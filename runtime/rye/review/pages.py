"""The pages of `rye review` as HTML: made here whole, with every text escaped, so that they work without scripts, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import quote

PER_PAGE: Final = 200
"""So many changes are on one page of the list."""

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --soft: #59636e; --line: #c8ced6; --mark: #0b57d0;
  --plus: #dafbe1; --minus: #ffebe9; --chosen: #e8f0fe; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9ba5b0; --line: #3d444d;
  --mark: #8ab4f8; --plus: #12361d; --minus: #4c1517; --chosen: #1c2a41; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
a { color: var(--mark);
}
a:focus-visible, button:focus-visible, input:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
nav ul, .changes { list-style: none; padding: 0; } nav li { display: inline-block; margin-right: 1rem; }
.changes li { border-bottom: 1px solid var(--line); padding: .5rem;
}
.changes li:focus-within { background: var(--chosen); }
.about, time { color: var(--soft); } .undone { text-decoration: line-through; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .5rem;
}
pre span { display: block; white-space: pre-wrap; }
.plus { background: var(--plus); } .minus { background: var(--minus); } .hunk { color: var(--soft); }
button { font: inherit; padding: .25rem .75rem; border: 1px solid var(--line); border-radius: .25rem;
  color: var(--ink); background: var(--paper); }
form { display: inline;
}
table { border-collapse: collapse;
}
th, td { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid var(--line); }
.said { border-left: 4px solid var(--mark); padding-left: .75rem; }
"""
_SCRIPT: Final = """
const links = [...document.querySelectorAll('[data-item]')];
const at = () => links.indexOf(document.activeElement);
addEventListener('keydown', event => {
  if (event.target.matches('input') || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { j: at() + 1, k: Math.max(at() - 1, 0) }[event.key];
  if (to !== undefined && links.length) { links[Math.min(to, links.length - 1)].focus(); event.preventDefault(); }
  const target = { '/': 'search', u: 'undo', r: 'reviewed', b: 'back' }[event.key];
  const found = target && document.getElementById(target);
  if (found) { found.matches('input') ? found.focus() : found.click(); event.preventDefault(); }
});
const newest = document.body.dataset.newest;
if (newest !== undefined) setInterval(async () => {
  const answer = await fetch('/newest'); if (!answer.ok) return;
  const now = await answer.text();
  if (now !== newest) document.getElementById('news').hidden = false;
}, 2000);
"""


def page(title: str, body: str, *, nonce: str, newest: str | None = None) -> str:
    """Return a whole page. `nonce` lets its own style and script run, and no other."""
    mark = "" if newest is None else f' data-newest="{escape(newest)}"'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - rye review</title>'
        f'<meta name="viewport" content="width=device-width"><style nonce="{nonce}">{_STYLE}</style></head><body{mark}>'
        '<header><nav aria-label="pages"><ul><li><a href="/">Changes</a></li><li><a href="/jobs">Jobs</a></li>'
        '<li><a href="/tools">Tools</a></li><li><a href="/keys">Keys</a></li></ul></nav></header>'
        f'<main><h1>{escape(title)}</h1>{body}</main><script nonce="{nonce}">{_SCRIPT}</script></body></html>'
    )


def changes(found: Sequence[Mapping[str, Any]], reviewed: Iterable[str], wanted: str, first: int, total: int) -> str:
    """Return the list of changes from the number `first` (from 0) on."""
    seen = set(reviewed)
    rows = "".join(_change(one, reviewed=one["id"] in seen) for one in found)
    links = []
    for name, start in (("Newer", first - PER_PAGE), ("Older", first + PER_PAGE)):
        if 0 <= start < total or (name == "Newer" and first > 0):
            links.append(f'<a href="/?first={max(start, 0)}&amp;q={quote(wanted)}">{name}</a>')
    return (
        '<p id="news" class="said" role="status" hidden>There are newer changes. <a href="/">Show them</a></p>'
        f'<form method="get" action="/" role="search"><label for="search">Search </label><input id="search" name="q" '
        f'value="{escape(wanted)}"> <button>Search</button></form>'
        "<p class=about>Keys: j and k go down and up, Enter opens, / searches.</p>"
        f'<ol class="changes">{rows}</ol><p>{total:,} changes. {" ".join(links)}</p>'
    )


def _change(one: Mapping[str, Any], *, reviewed: bool) -> str:
    state = " undone" if one["undone_by"] else ""
    notes = [one["actor"] or "a person or an unnamed program", *(["reviewed"] if reviewed else [])]
    notes += [f"undoes {one['undoes']}"] if one["undoes"] else []
    return (
        f'<li><a data-item class="name{state}" href="/change/{escape(one["id"])}">{escape(one["name"])}</a> '
        f'<span class="about">{escape(one["tool"])}, {escape(", ".join(notes))}</span> <time>{escape(one["time"])}</time></li>'
    )


def change(one: Mapping[str, Any], diff: Sequence[str], token: str, *, reviewed: bool, said: str) -> str:
    """Return one change: what it was, the buttons, and its diff."""
    buttons = _button("/undo", token, {"id": one["id"]}, "Take it back", name="undo") if not one["undone_by"] else ""
    if len(one["files"]) > 1 and not one["undone_by"]:
        each = "".join(
            f"<li>{escape(path)} {_button('/undo', token, {'id': one['id'], 'path': path}, f'Take back {path}')}</li>"
            for path in one["files"][:PER_PAGE]
        )
        buttons += f"<ul>{each}</ul>"
    mark = "Not reviewed after all" if reviewed else "Mark as reviewed"
    buttons += _button("/reviewed", token, {"id": one["id"]}, mark, name="reviewed")
    note = f'<p class="said" role="status">{escape(said)}</p>' if said else ""
    undone = f"<p>It was undone by {_link(one['undone_by'])}.</p>" if one["undone_by"] else ""
    undoes = f"<p>It undoes {_link(one['undoes'])}.</p>" if one["undoes"] else ""
    about = f"<p><code>{escape(one['about'])}</code></p>" if one["about"] else ""
    return (
        f'{note}<p><a id="back" href="/">All changes</a></p><p class="about">{escape(one["tool"])} by '
        f"{escape(one['actor'] or 'a person or an unnamed program')}, {escape(one['time'])}, +{one['added']} -{one['removed']}"
        f"</p>{about}{undone}{undoes}<p>{buttons}</p><p class=about>Keys: u takes back, r marks, b goes back.</p>"
        f'<pre tabindex="0" aria-label="diff">{"".join(map(_diff_line, diff))}</pre>'
    )


def _link(entry_id: str) -> str:
    return f'<a href="/change/{escape(entry_id)}">{escape(entry_id)}</a>'


def _button(action: str, token: str, values: Mapping[str, str], label: str, name: str = "") -> str:
    hidden = "".join(
        f'<input type="hidden" name="{key}" value="{escape(value)}">' for key, value in {**values, "token": token}.items()
    )
    mark = f' id="{name}"' if name else ""
    return f'<form method="post" action="{action}">{hidden}<button{mark}>{escape(label)}</button></form> '


def _diff_line(line: str) -> str:
    kind = {"+": "plus", "-": "minus", "@": "hunk"}.get(line[:1], "")
    return f'<span class="{kind}">{escape(line) or " "}</span>'


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """Return a table; a cell is HTML already."""
    if not rows:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def job_row(job: Mapping[str, Any], token: str) -> list[str]:
    """Return the cells of a job; one that runs can be ended."""
    end = _button("/jobs/end", token, {"id": job["job_id"]}, "End it") if job["status"] == "running" else ""
    link = f'<a data-item href="/jobs/{escape(job["job_id"])}">{escape(job["job_id"])}</a>'
    return [link, escape(job["status"]), f"<code>{escape(job['command'])}</code>", escape(job["started"]), end]


def output(text: str) -> str:
    """Return a job's output."""
    return f'<p><a id="back" href="/jobs">All jobs</a></p><pre tabindex="0">{escape(text)}</pre>'
