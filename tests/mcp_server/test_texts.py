"""Directives as prompts, knowledge and directives as skills, completion: over stdio, as a client sees them."""

from __future__ import annotations

import base64
import json
import re
import textwrap
from hashlib import sha256

import jsonschema_rs
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from support import in_process
from support.mcp_peer import REVISIONS, peer
from support.readme_blocks import ROOT
from support.signed_tools import put, signed, trust_key

NEWEST = REVISIONS[-1]
RELEASE = b"""\
<directive name="release" version="1.0.0">
  <metadata><description>Make a release</description><category>team/ops</category><author>x</author></metadata>
  <inputs>
    <input name="tag" type="string" required="true">the version's tag</input>
    <input name="count" type="integer" required="true" default="3">how often</input>
    <input name="push" type="boolean" required="false" default="false">whether to push</input>
    <input name="notes_file" type="string" required="false">where the notes are</input>
  </inputs>
Tag {input:tag}, {input:count} times, push: {input:push}. Notes: {input:notes_file?}
</directive>"""


@pytest.fixture
def place(project):
    """A project with a directive and a knowledge item that verify, and one of each that does not."""
    trust_key()
    put(project, "directives/team/ops/release.md", signed(RELEASE, item_type="directive", suffix=".md"))
    put(project, "directives/team/ops/bad.md", RELEASE)
    entry = (
        b'```yaml\nid: notes\ncategory: my\ntitle: Notes\nversion: "1.0.0"\ndescription: "What: it\\nsays"\n```\n\nRead me.\n'
    )
    put(project, "knowledge/my/notes.md", signed(entry, item_type="knowledge", suffix=".md"))
    put(project, "knowledge/my/bad.md", entry)
    (project / "docs").mkdir()
    (project / "docs/news.md").write_text("x\n")
    (project / "dock").mkdir()
    for folder in (project.parent / "pdf", project / ".agents/skills/bad"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Reads.\n---\n")
        (folder / "x.bin").write_bytes(b"\xff\0")
    assert in_process.rye("skill", "add", project.parent / "pdf", cwd=project).returncode == 0
    return project


@pytest.mark.parametrize("revision", REVISIONS)
def test_directives_are_prompts_with_arguments(place, revision):
    with peer(place, revision=revision) as server:
        assert "prompts" in server.hello["capabilities"]
        listed = {one["name"]: one for one in server.ask("prompts/list")["result"]["prompts"]}
        assert {"swe", "edit_by_line_id", "team__ops__release"} <= set(listed)
        assert not any("bad" in name for name in listed)
        release = listed["team__ops__release"]
        assert release["description"] == "Make a release"
        required = {one["name"]: one["required"] for one in release["arguments"]}
        assert required == {"tag": True, "count": False, "push": False, "notes_file": False}
        given = {"tag": "v1 {input:count}", "count": "2"}
        got = server.ask("prompts/get", {"name": "team__ops__release", "arguments": given})["result"]
        (message,) = got["messages"]
        assert message["role"] == "user"
        # What an argument says is never filled in itself.
        assert message["content"]["text"].startswith("Tag v1 {input:count}, 2 times, push: false.")
        for wrong, said in (
            ({"name": "team__ops__release"}, "tag"),
            ({"name": "team__ops__release", "arguments": {"tag": "v", "count": "many"}}, "count"),
            ({"name": "team__ops__release", "arguments": {"tag": "v", "other": "1"}}, "other"),
            ({"name": "team__ops__bad"}, "no signature"),
            ({"name": "nope"}, "swe"),
        ):
            error = server.ask("prompts/get", wrong)["error"]
            assert (error["code"], said in error["message"]) == (-32602, True), error


def test_arguments_are_completed(place):
    with peer(place) as server:
        assert "completions" in server.hello["capabilities"]

        def complete(argument, value, **reference):
            asked = {"ref": reference, "argument": {"name": argument, "value": value}}
            return server.ask("completion/complete", asked)["result"]["completion"]["values"]

        prompt = {"type": "ref/prompt", "name": "team__ops__release"}
        assert complete("push", "t", **prompt) == ["true"]
        assert complete("notes_file", "doc", **prompt) == ["dock/", "docs/"]
        assert complete("notes_file", "docs/n", **prompt) == ["docs/news.md"]
        assert complete("notes_file", "../", **prompt) == []
        assert complete("tag", "", **prompt) == []
        knowledge = {"type": "ref/resource", "uri": "rye://knowledge/{+id}{?offset}"}
        assert complete("id", "mcp-and", **knowledge) == ["rye/core/mcp-and-clients"]
        wrong = {"ref": {"type": "ref/prompt", "name": "no"}, "argument": {"name": "a", "value": ""}}
        assert "error" in server.ask("completion/complete", wrong)


def test_knowledge_and_directives_are_skills_whose_signature_a_host_can_check(place):
    with peer(place, revision=NEWEST) as server:
        assert server.hello["capabilities"]["extensions"] == {"io.modelcontextprotocol/skills": {}}
        listed = server.ask("skills/list")["result"]
        assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
        skills = {one["uri"]: one for one in listed["skills"]}
        assert skills["skill://knowledge/my/notes/SKILL.md"]["frontmatter"] == {"name": "notes", "description": "What: it says"}
        assert not any("/bad/" in uri for uri in skills)
        served = ("directive/team/ops/release", "knowledge/rye/core/mcp-and-clients", "folder/pdf")
        assert {f"skill://{one}/SKILL.md" for one in served} <= set(skills)
        names = [one["frontmatter"]["name"] for one in skills.values()]
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
        for uri, one in skills.items():
            assert server.ask("skills/get", {"uri": uri})["result"]["skill"] == one
            for file in one["resources"]:
                (content,) = server.ask("resources/read", {"uri": file["uri"]})["result"]["contents"]
                data = content["text"].encode() if "text" in content else base64.b64decode(content["blob"])
                assert (file["digest"], file.get("size", len(data))) == (f"sha256:{sha256(data).hexdigest()}", len(data))
            if uri == "skill://folder/pdf/SKILL.md":
                assert [file["uri"] for file in one["resources"]] == [uri, "skill://folder/pdf/x.bin"]
                continue
            head, name, about, end = content["text"].split("\n")[:4]
            assert (head, end) == ("---", "---")
            assert json.loads(name.removeprefix("name: ")) == one["frontmatter"]["name"]
            assert json.loads(about.removeprefix("description: ")) == one["frontmatter"]["description"]
        system = skills["skill://knowledge/rye/core/mcp-and-clients/SKILL.md"]["_meta"]
        signature = base64.urlsafe_b64decode(system["rye/signature"])
        document = (ROOT / ".ai/trusted_keys" / f"{system['rye/signer']}.toml").read_text(encoding="utf-8")
        key = load_pem_public_key(re.search("-----BEGIN.*END PUBLIC KEY-----\n", document, re.DOTALL)[0].encode())
        key.verify(signature, system["rye/digest"].encode())
        (content,) = server.ask("resources/read", {"uri": f"skill://{served[0]}/SKILL.md"})["result"]["contents"]
        for said in ("- tag (string, required): the version's tag", "Tag {input:tag}, 3 times, push: false."):
            assert said in content["text"]
        rows = {row["name"]: row for row in server.ask("resources/list")["result"]["resources"]}
        assert ("my/bad" in rows, rows["my/notes"]["title"]) == (False, "Notes")
        assert server.ask("resources/read", {"uri": rows["my/notes"]["uri"]})["result"]["contents"][0]["text"] == "Read me.\n"
        assert "error" in server.ask("resources/read", {"uri": "rye://knowledge/my/bad"})
        for unknown in ("knowledge/my/bad/SKILL.md", "knowledge/no/SKILL.md", "folder/bad/SKILL.md", "x"):
            wrong = f"skill://{unknown}"
            error = server.ask("skills/get", {"uri": wrong})["error"]
            assert (error["code"], error["data"]) == (-32602, {"uri": wrong})


def test_the_worked_example_is_made_of_calls_that_work(project):
    (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    with peer(project) as server:
        text = server.ask("prompts/get", {"name": "edit_by_line_id", "arguments": {"task": "Go on."}})["result"]["messages"][0]
        shown = text["content"]["text"]
        assert shown.endswith("Go on.")
        calls = re.findall(r"^ {7}(grep|edit_lines|bash|undo) (\{.*\})\n((?: {7}.*\n)*)", shown, re.MULTILINE)
        assert [name for name, _, _ in calls] == ["grep", "edit_lines", "edit_lines", "bash", "undo"]
        schemas = {one["name"]: one["inputSchema"] for one in server.ask("tools/list")["result"]["tools"]}
        for name, arguments, answer in calls:
            given = json.loads(arguments)
            # Some clients hold a call to the listed schema, in which a change is a string.
            jsonschema_rs.Draft202012Validator(schemas[name]).validate(given)
            assert server.text(name, **given).startswith(textwrap.dedent(answer).rstrip("\n"))
            if name == "edit_lines":
                assert "round" in (project / "app.py").read_text()
    # The last one took the last edit back.
    assert (project / "app.py").read_text() == "def total(prices):\n    return round(sum(prices), 2)\n"
