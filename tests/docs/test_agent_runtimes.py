"""The snippets of the knowledge item run as they stand, with each framework's own code, against scripted model APIs on loopback.

`-m frameworks` makes an environment with the frameworks and this package (a minute, and the package registry). Without it the
snippets are held to their length only.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess

import pytest

import rye
from support.client_programs import python_with
from support.readme_blocks import ROOT, blocks
from support.scripted_api import scripted_api

ITEM = ROOT / ".ai/knowledge/rye/core/agent-runtimes.md"
TEXT = ITEM.read_text(encoding="utf-8")
SNIPPETS = {
    re.search(r"^(?:from|import) (?!rye)(\w+)", block.text, re.MULTILINE)[1]: block.text
    for block in blocks(TEXT)
    if block.language == "python"
}
PACKAGES = [
    *("openai>=2", "anthropic>=0.70", "google-genai>=1.40", "openai-agents>=0.4", "pydantic-ai-slim[openai]>=1.20"),
    *("langchain>=1", "langchain-openai>=1", "smolagents[openai]>=1.22"),
]
EDIT = {"line_id": "2", "new_content": "    return round(sum(prices), 2)"}
STEPS = [
    ("grep", {"pattern": "sum"}),
    ("edit_lines", {"file_path": "app.py", "changes": [EDIT]}),
    ("read", {"file_path": "none.py"}),
]
ANSWER = "It is rounded."


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """A Python that has the frameworks and this checkout."""
    return python_with("frameworks", tmp_path_factory.mktemp("frameworks"), "-e", str(ROOT), *PACKAGES)


def test_there_are_seven_snippets_of_five_to_fourteen_lines():
    assert list(SNIPPETS) == ["openai", "anthropic", "google", "agents", "pydantic_ai", "langchain", "smolagents"]
    for name, text in SNIPPETS.items():
        ast.parse(text)
        assert 5 <= len([line for line in text.splitlines() if line.strip()]) <= 14, name


@pytest.mark.frameworks
@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_edits_the_file_and_prints_the_answer(name, python, tmp_path):
    (tmp_path / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    # smolagents gives its answer by a tool of its own.
    steps = [*STEPS, ("final_answer", {"answer": ANSWER})] if name == "smolagents" else STEPS
    with scripted_api(steps, ANSWER) as api:
        env = {
            **os.environ,
            "OPENAI_BASE_URL": f"{api.url}/v1",
            "ANTHROPIC_BASE_URL": api.url,
            "GOOGLE_GEMINI_BASE_URL": api.url,
            **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "x"),
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "USER_SPACE": str(tmp_path / "user"),
            "NO_PROXY": "*",
        }
        for variable in ("PYTHONPATH", "GOOGLE_API_KEY"):
            env.pop(variable, None)
        done = subprocess.run(
            [python, "-c", SNIPPETS[name]], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert done.stdout.rstrip().endswith(ANSWER)
        assert (tmp_path / "app.py").read_text() == "def total(prices):\n    return round(sum(prices), 2)\n"
        found, edited, missing = api.results[:3]
    # Some interfaces take a result as JSON.
    assert "2\t    return sum(prices)" in found.replace("\\t", "\t")
    assert "[version" in edited
    assert "File not found: none.py" in missing


def test_the_item_can_be_found(project):
    found = rye.search("tools for an agent loop with openai", scope="knowledge", project_path=project)
    assert "rye/core/agent-runtimes" in [result["id"] for result in found["results"][:3]]
