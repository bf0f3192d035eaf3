"""The official MCP conformance suite: every scenario that applies passes, in each revision; docs/compatibility.md lists the others."""

from __future__ import annotations

import fcntl
import os

import pytest

from support import conformance_suite
from support.client_programs import folder_of
from support.mcp_peer import REVISIONS
from support.readme_blocks import ROOT

pytestmark = pytest.mark.slow

NO_QUESTIONS = "tools ask the client nothing: no sampling, elicitation or roots"
TEXT_ONLY = "a directive is text"
NOT_APPLICABLE = {
    "logging-set-level": "no log messages to clients; deprecated by the protocol",
    "tools-call-with-logging": "no log messages to clients; deprecated by the protocol",
    "tools-call-sampling": NO_QUESTIONS,
    "tools-call-elicitation": NO_QUESTIONS,
    "elicitation-sep1034-defaults": NO_QUESTIONS,
    "elicitation-sep1330-enums": NO_QUESTIONS,
    "json-schema-2020-12": "listed schemas are flat, for clients that read no references and combinations; calls are held to the whole one",
    "resources-read-binary": "resources are knowledge and outputs, which are text",
    "resources-subscribe": "resources are read anew at each call; no subscriptions",
    "resources-unsubscribe": "resources are read anew at each call; no subscriptions",
    "prompts-get-embedded-resource": TEXT_ONLY,
    "prompts-get-with-image": TEXT_ONLY,
    "sep-2640-skills-directory": "a skill is one file; directories are optional",
}
# By the beginning of their names.
NOT_APPLICABLE_FAMILIES = {
    "input-required-result-": NO_QUESTIONS,
    "tasks-": "the tasks extension is not offered: `bash` and `job` have background jobs",
}
# Recommendations (SHOULD) that are not followed, by check.
WARNINGS = {
    "server-sse-priming-event": "streams are not resumable: a call that lost its client is ended",
    "server-sse-retry-field": "streams are not resumable: a call that lost its client is ended",
}


def reason(scenario):
    """Return why a scenario does not apply; None where it does."""
    families = (why for start, why in NOT_APPLICABLE_FAMILIES.items() if scenario.startswith(start))
    return NOT_APPLICABLE.get(scenario) or next(families, None)


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """The command that runs the suite, installed once for a run, also when several processes share its tests."""
    base = tmp_path_factory.getbasetemp()
    folder = folder_of("conformance", base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = conformance_suite.install(folder)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_that_applies_passes(suite, project, tmp_path, revision):
    conformance_suite.put_items(project)
    of_revision, of_extensions = conformance_suite.scenarios(suite, revision)
    # Extensions are negotiated by the newest revision.
    names = of_revision + (of_extensions if revision == REVISIONS[-1] else [])
    wanted = [name for name in names if reason(name) is None]
    checks, problems = 0, []
    with conformance_suite.proxied(project) as url:
        # All in one process: most of the time of one is the start of Node.js.
        found = conformance_suite.run(suite, url, tmp_path / "all", "--suite", "all", "--spec-version", revision)
        for name in (one for one in wanted if one not in of_revision):
            found |= conformance_suite.run(suite, url, tmp_path / name, "--scenario", name)
    for name in wanted:
        for check, status, message in found[name]:
            # A check that needs a diagnostic tool which asks the client something.
            testable = not message.startswith("Not testable")
            checks += testable and status == "SUCCESS"
            if status not in ("SUCCESS", "INFO", "SKIPPED") and testable and check not in WARNINGS:
                problems.append((name, check, status, message))
    assert problems == []
    print(f"{revision}: {len(wanted)} scenarios, {checks} checks passed; {len(names) - len(wanted)} scenarios do not apply")
    row = f"| {revision} | {len(wanted)} | {len(wanted)} | {checks} | {len(names) - len(wanted)} |"
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    assert row in page, f"docs/compatibility.md should say\n{row}"


def test_the_page_gives_each_reason():
    page = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    for name, why in {**NOT_APPLICABLE, **NOT_APPLICABLE_FAMILIES, **WARNINGS}.items():
        assert f"`{name}" in page, name
        assert why in page, why
