"""What `table.py` needs to measure growth: thousands of signed items, and the memory of processes."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

from rye.trust import signature
from rye.trust import verify as trust_verify

SEED = 20
# Each is in about one of ten entries.
_WORDS = tuple(
    f"{one}{two}"
    for one in ["ba", "co", "du", "fe", "gi", "ho", "ju", "ka", "lo", "mi", "nu", "pa", "ro"]
    for two in ["rin", "tel", "mar", "son", "dak", "ply", "wex", "gor", "hum", "jit"]
)
_TOOL = '''"""Count what item {number} has.

Requires: a text.
Returns: output.
"""

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "{category}"
__tool_description__ = "Count item {number}"

CONFIG_SCHEMA = {{
    "type": "object",
    "properties": {{"text": {{"type": "string", "description": "What to count"}}, "least": {{"type": "integer", "default": 3}}}},
    "required": ["text"],
    "additionalProperties": False,
}}


def execute(params, project_path):
    return {{"success": True, "output": str(len(params["text"]))}}
'''


def _key() -> signature.PrivateKey:
    """Return a key that the user trusts."""
    key = signature.PrivateKey(bytes(range(32)))
    keys = Path(os.environ["USER_SPACE"], ".ai/trusted_keys")
    keys.mkdir(parents=True, exist_ok=True)
    (keys / f"{key.public.fingerprint}.toml").write_bytes(trust_verify.render_key_document(key.public, "bench"))
    return key


def put_tools(project: Path, count: int) -> None:
    """Write signed tools into a project, 100 in each category."""
    key, form = _key(), signature.form_of("tool", ".py")
    for number in range(count):
        category = f"my/part{number // 100:03}"
        folder = project / ".ai/tools" / category
        folder.mkdir(parents=True, exist_ok=True)
        text = _TOOL.format(number=number, category=category)
        (folder / f"tool{number}.py").write_bytes(signature.sign(text.encode(), form, key, timestamp="2026-01-02T03:04:05Z"))


def put_entries(project: Path, count: int) -> None:
    """Write signed knowledge entries into a project."""
    key, form, chance = _key(), signature.form_of("knowledge", ".md"), random.Random(SEED)
    for number in range(count):
        folder = project / f".ai/knowledge/my/part{number // 1000:03}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"```yaml\nid: entry{number}\ntitle: Number {number}\n```\n\n{' '.join(chance.choices(_WORDS, k=20))}\n"
        (folder / f"entry{number}.md").write_bytes(signature.sign(text.encode(), form, key, timestamp="2026-01-02T03:04:05Z"))


def looked(project: Path) -> int:
    """Ask the times of every item file of a project, as a plain program would; return how many there are."""
    count = 0
    for here, _, names in os.walk(project / ".ai"):
        for name in names:
            os.stat(f"{here}/{name}")
            count += 1
    return count


def memory(pids: list[int]) -> tuple[float, float]:
    """Return the resident memory of processes together, and with shared pages counted once among their users (MB)."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in pids]
    found = [[int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1]) / 1024 for text in texts] for name in ("Rss", "Pss")]
    return sum(found[0]), sum(found[1])
