"""An author's session at a terminal, for four runtimes: `rye new tool`, a first right answer, and what usual mistakes say.

The commands are typed as a person types them. What `rye lint` says of each mistake is tried in unit/authoring/test_lint.
"""

import json
import shutil

import pytest

from support.oci_server import answering
from support.shell_calls import configure
from support.terminal import typed

SUFFIXES = {"python": ".py", "bash": ".sh", "node": ".js", "http": ".yaml"}


@pytest.fixture(scope="module")
def site():
    """What the example of an HTTP tool asks, on loopback."""

    def answer(method, path, headers, body):
        if path == "/pypi/requests/json":
            return 200, {}, json.dumps({"info": {"version": "2.3.4", "summary": "S"}}).encode()
        return 404, {}, b'{"message": "Not Found"}'

    with answering(answer) as (where, _):
        yield where.removeprefix("oci://")


class Session:
    """A person who writes the tool `my/KIND/count` in a project."""

    def __init__(self, kind, project, user_space, site):
        self.kind, self.project, self.site = kind, project, site
        self.item = f"my/{kind}/count"
        self.file = project / f".ai/tools/{self.item}{SUFFIXES[kind]}"
        self.argument, self.right = ("requests", "2.3.4") if kind == "http" else ("a.txt", "2 lines, 3 words")
        (project / ".git").mkdir()
        (project / "a.txt").write_text("one two\nthree\n")
        configure(user_space, f"web: {{allow_hosts: [{site!r}]}}\n")

    def type(self, *words):
        """Type a command; return its exit code and what the terminal showed."""
        return typed(*words, cwd=self.project)

    def begin(self):
        """Make the tool and the key; return the text of the tool."""
        assert self.type("new", "tool", self.item, "--runtime", self.kind)[0] == 0
        assert self.type("keys", "generate")[0] == 0
        if self.kind == "http":
            self.file.write_text(self.file.read_text().replace("https://pypi.org", f"http://{self.site}"))
        return self.file.read_text()

    def tried(self, text, wanted=("lint", "sign", "call")):
        """Write the tool's text, then lint, sign and call it, where that is wanted; return what each said, and its exit code."""
        self.file.write_text(text)
        lines = {"lint": ("lint", self.item), "sign": ("sign", self.item), "call": (self.item, self.argument)}
        return {step: self.type(*words) for step, words in lines.items() if step in wanted}


@pytest.fixture(params=SUFFIXES)
def session(request, project, user_space, site):
    if request.param == "node" and shutil.which("node") is None:
        pytest.skip("needs node (Debian package nodejs)")
    return Session(request.param, project, user_space, site)


# By which runtimes a mistake is made, what it makes of which text ({} is the runtime), which command says what of it.
ALL_BUT_PYTHON = "bash node http"
OTHER_CATEGORY = ["its category is 'my/other', and its folder", "'my/{}'"]
NO_RUNTIME = ["names the runtime", "Did you mean rye/core/runtimes/"]
BAD_SCHEMA = ["CONFIG_SCHEMA is not usable: at properties.", "'strng' is no type; there are array"]
MISTAKES = [
    ("http", "permissions: [network]", "permissions: []", "call", ["permission", "sign it again"]),
    ("python", '"my/{}"', '"my/other"', "sign", OTHER_CATEGORY),
    (ALL_BUT_PYTHON, "category: my/{}", "category: my/other", "sign", OTHER_CATEGORY),
    ("python http", "_runtime", "_runtim", "call", NO_RUNTIME),
    ("bash node", "_runtime", "_runtim", "sign", NO_RUNTIME),
    ("python", '"type": "string"', '"type": "strng"', "sign", BAD_SCHEMA),
    (ALL_BUT_PYTHON, "type: string", "type: strng", "sign", BAD_SCHEMA),
    ("python", "__tool_description__ =", "__tool_descripton__ =", "sign", ["description"]),
    (ALL_BUT_PYTHON, "description:", "descripton:", "sign", ["description"]),
    ("python", "-> dict:", "-> dict", "sign", ["not valid Python: expected ':' (line"]),
    (ALL_BUT_PYTHON, "version: ", "version: [", "sign", ["YAML"]),
]


@pytest.mark.slow
def test_three_commands_lead_to_a_first_right_answer_and_each_mistake_is_named(session):
    good = session.begin()
    # Before it is signed the call names the very command that is missing.
    code, said = session.type(session.item, session.argument)
    assert (code, f"run `rye sign {session.item}`" in said) == (3, True), said
    code, said = session.type("execute", "--allow-unsigned", session.item, session.argument)
    assert (code, session.right in said) == (0, True), said
    found = session.tried(good)
    assert [code for code, _ in found.values()] == [0, 0, 0], found
    assert found["call"][1].strip() == session.right
    for kinds, right, wrong, where, told in MISTAKES:
        if session.kind not in kinds.split():
            continue
        text = good.replace(right.format(session.kind), wrong, 1)
        assert text != good, right
        # What is called was signed.
        code, said = session.tried(text, ("sign", where))[where]
        assert (code == 0) <= (where == "sign"), (wrong, said)
        assert [word for word in told if word.format(session.kind) not in " ".join(said.split())] == [], (wrong, said)
        # No traceback of our own, no bare name of an event.
        assert ("rye/cli" in said, "tool_crashed\n" in said) == (False, False)
    # A change behind the signature is noticed.
    session.tried(good)
    session.file.write_text(good.replace("executor_id", "executor_id ", 1))
    assert f"run `rye sign {session.item}`" in session.type(session.item, session.argument)[1]
