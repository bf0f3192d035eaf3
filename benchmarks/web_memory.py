"""What a page costs `rye/web/webfetch` in time and memory: 30 shapes, each fetched by a fresh process that fetched a small page first.

Memory is the growth of the process's own peak; the child that converts HTML is stated beside it, less what it holds for an
empty page. Nothing here is a pass mark.

    python benchmarks/web_memory.py
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support import web_site

_ROW = "<tr><td>cell</td><td><a href='a/b?c=1'>link</a></td></tr>"
LARGE: dict[str, web_site.Page] = {
    "/big-table": (200, {"Content-Type": "text/html"}, f"<main><table>{_ROW * 30_000}</table></main>".encode()),
    "/big-code": (200, {"Content-Type": "text/html"}, b"<pre><code>" + b"x = [a | b]\n" * 150_000 + b"</code></pre>"),
    "/big-japanese": (
        200,
        {"Content-Type": "text/html; charset=shift_jis"},
        ("<p>" + "日本語の文章。" * 100 + "</p>").encode("cp932") * 1_000,
    ),
    "/json-deep": (200, {"Content-Type": "application/json"}, b"[" * 500 + b"0," * 400_000 + b"0" + b"]" * 500),
    "/json-wide": (200, {"Content-Type": "application/json"}, b"[" + b"{}," * 330_000 + b"{}]"),
    "/json-large": (200, {"Content-Type": "application/json"}, b"[" + b'{"a": "text"},' * 350_000 + b"{}]"),
    "/long-text": (200, {"Content-Type": "text/plain"}, "ä".encode() * 2_400_000),
}
PATHS = (
    "/article",
    "/no-main",
    "/one-article",
    "/two-articles",
    "/latin-1",
    "/shift-jis",
    "/meta",
    "/utf-16",
    "/undeclared",
    "/gzip",
    "/raw-deflate",
    "/json",
    "/plain",
    "/long-line",
    "/many-lines",
    "/deep",
    "/forged",
    "/chain",
    "/loop",
    "/to-metadata",
    "/huge",
    "/endless",
    "/drip",
    "/bomb",
    *LARGE,
)


def one(url: str, seconds: float) -> dict[str, object]:
    """Fetch a page in this process, after a small one; return what that took."""
    import rye

    def fetch(target: str) -> dict[str, object]:
        answer = rye.execute("rye/web/webfetch", {"url": target, "timeout": seconds}, project_path=os.getcwd())
        data: dict[str, object] = answer["data"]
        return data

    fetch(f"{url.rpartition('/')[0]}/no-main")
    before, child = _peaks()
    started = time.perf_counter()
    data = fetch(url)
    taken = time.perf_counter() - started
    after, converted = _peaks()
    result = data.get("code") or ("cut" if data.get("source_cut") else "whole")
    return {
        "result": result,
        "seconds": round(taken, 2),
        "mb": round(after - before, 1),
        "child_mb": round(converted - child, 1),
    }


def _peaks() -> tuple[float, float]:
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    )


def measured(seconds: float) -> dict[str, dict[str, object]]:
    """Fetch every page from a site on loopback, printing and returning what each took."""
    found: dict[str, dict[str, object]] = {}
    bomb = (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, web_site.bomb())
    with tempfile.TemporaryDirectory() as scratch, web_site.served({**LARGE, "/bomb": bomb}, web_site.STREAMS) as site:
        project, config = Path(scratch, "project"), Path(scratch, "user", ".ai", "config")
        (project / ".git").mkdir(parents=True)
        config.mkdir(parents=True)
        (config / "rye.yaml").write_text(f"web: {{allow_hosts: ['127.0.0.1:{site.port}']}}\n")
        env = {**os.environ, "USER_SPACE": str(Path(scratch, "user"))}
        for path in PATHS:
            command = [sys.executable, __file__, "--one", site.url + path, "--seconds", str(seconds)]
            done = subprocess.run(command, cwd=project, env=env, capture_output=True, check=True)
            found[path] = json.loads(done.stdout)
            print(f"{path:16} {json.dumps(found[path])}", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=5, help="time limit of a fetch (default 5)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one, asked.seconds)))
        return
    found = measured(asked.seconds)
    print(f"{len(found)} pages; most memory: {max(float(str(facts['mb'])) for facts in found.values())} MB")


if __name__ == "__main__":
    main()
