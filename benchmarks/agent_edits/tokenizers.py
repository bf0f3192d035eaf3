"""Counts tokens in two real tokenizers, each in a process of its own: o200k (OpenAI) and the one that Anthropic published.

They are no dependency of this project. `install` puts both into a folder: npm's `gpt-tokenizer`, and PyPI's `anthropic==0.38`,
the last release that ships `tokenizer.json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NODE = """
const {countTokens, encode} = require("gpt-tokenizer/cjs/encoding/o200k_base");
const options = {allowedSpecial: new Set(), disallowedSpecial: new Set()};
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const texts = JSON.parse(line);
  console.log(JSON.stringify(texts.map((text) => encode(text, options).length)));
});
"""
_PYTHON = """
import json, os, sys
import importlib.util
from tokenizers import Tokenizer
folder = os.path.dirname(importlib.util.find_spec("anthropic").origin)
found = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
for line in sys.stdin:
    print(json.dumps([len(one) for one in found.encode_batch(json.loads(line))]), flush=True)
"""
NAMES = ("o200k", "anthropic-0.38")


class Missing(Exception):
    """A tokenizer is not there; the message says how to get it."""


class Tokenizers:
    """Both tokenizers; a text's counts are remembered."""

    def __init__(self, folder: Path) -> None:
        """Start both.

        Raises:
            Missing: when the folder lacks one of them.
        """
        python = folder / "env/bin/python"
        if not python.exists() or not (folder / "node_modules/gpt-tokenizer").exists():
            raise Missing(
                f"There are no tokenizers in {folder}. Run `python benchmarks/agent_edits --install --tokenizers {folder}` "
                "(needs node, npm and the package registries), or give --bytes to count bytes of UTF-8 in their place."
            )
        commands = (["node", "-e", _NODE], [str(python), "-c", _PYTHON])
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", cwd=folder)
            for command in commands
        ]
        self._known: dict[str, tuple[int, ...]] = {}

    def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return for each text its tokens in each tokenizer."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), 64):
            batch = new[start : start + 64]
            counted = [_asked(process, batch) for process in self._processes]
            self._known |= {text: counts for text, *counts in zip(batch, *counted, strict=True)}  # type: ignore[misc]
        return [tuple(self._known[text]) for text in texts]

    def close(self) -> None:
        """End both."""
        for process in self._processes:
            process.stdin.close()
            process.wait()


class Bytes:
    """Counts bytes of UTF-8 where there is no tokenizer."""

    def count(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return for each text its bytes, once for each tokenizer that is missing."""
        return [(len(text.encode("utf-8", "replace")),) * len(NAMES) for text in texts]

    def close(self) -> None:
        """Nothing runs."""


def _asked(process: subprocess.Popen[str], texts: list[str]) -> list[int]:
    # Escaped, so that a line separator in a text does not end the line.
    process.stdin.write(json.dumps([text.encode("utf-8", "replace").decode() for text in texts]) + "\n")
    process.stdin.flush()
    found: list[int] = json.loads(process.stdout.readline())
    return found


def install(folder: Path) -> None:
    """Install both from their registries."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "gpt-tokenizer@3"], check=True)
    venv.create(folder / "env", with_pip=True)
    subprocess.run([str(folder / "env/bin/python"), "-m", "pip", "install", "-q", "anthropic==0.38"], check=True)
    print(f"Both tokenizers are in {folder}.", file=sys.stderr)
