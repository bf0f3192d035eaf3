"""Tool -> runtime -> primitive: each link is found, verified, obeyed and reported."""

import pytest

from support.calling import response as call
from support.signed_tools import FUNCTION_RUNTIME, OK, put_tool, put_yaml

FUNCTION = "rye/core/primitives/function"


def runtime(root, item_id, executor_id, **more):
    return put_yaml(root, item_id, executor_id, tool_type="runtime", **more)


def tool(root, item_id, runtime_id, body=OK, **options):
    return put_tool(root, item_id, body, runtime=runtime_id, **options)


def test_a_runtime_of_ones_own_is_obeyed_and_the_whole_chain_is_reported(project, user_space):
    runtime(user_space, "my/runtimes/main", FUNCTION_RUNTIME, config={"entry_point": "main"})
    tool(project, "my/tool", "my/runtimes/main", name="main")
    answer = call(project)
    assert answer["status"] == "success", answer
    chain = [(link["item_id"], link["space"]) for link in answer["chain"]]
    assert chain == [("my/tool", "project"), ("my/runtimes/main", "user"), (FUNCTION_RUNTIME, "system"), (FUNCTION, "system")]
    tool(project, "my/other", "my/runtimes/main", name="execute")
    assert call(project, "my/other")["code"] == "no_entry_point"


def test_the_time_limit_is_what_is_declared_within_what_every_link_allows(project):
    runtime(project, "my/runtimes/short", FUNCTION_RUNTIME, config={"timeout_seconds": 2, "max_timeout_seconds": 4})
    # A runtime cannot allow more than the link behind it.
    runtime(project, "my/runtimes/long", "my/runtimes/short", config={"max_timeout_seconds": 9000})
    left = 'from rye.toolkit import deadline\nreturn {"success": True, "left": deadline().remaining()}'
    for declared, runtime_id, seconds in ((None, "short", 2), (3, "short", 3), (60, "short", 4), (8000, "long", 4)):
        tool(project, "my/tool", f"my/runtimes/{runtime_id}", left, more=f"__timeout__ = {declared}")
        assert 0 < call(project)["data"]["left"] - (seconds - 1) <= 1, (declared, runtime_id)


@pytest.mark.parametrize(
    ("declared", "listed", "left"),
    [
        (["read", "run"], ["read", "write"], ["read"]),
        (["write", "network"], [], []),
        ([], ["read", "write", "network", "run"], []),
        (["read"], None, ["read"]),
    ],
)
def test_a_runtime_narrows_permissions_and_never_widens_them(project, declared, listed, left):
    runtime(project, "my/runtimes/held", FUNCTION_RUNTIME, **({} if listed is None else {"permissions": listed}))
    tool(project, "my/tool", "my/runtimes/held", more=f"__permissions__ = {declared!r}")
    assert call(project)["isolation"]["permissions"] == left


@pytest.mark.parametrize(
    "body", ["x = bytearray(300 << 20)", "__import__('resource').setrlimit(8, (-1, -1))\nx = bytearray(300 << 20)"]
)
def test_a_runtime_bounds_the_memory_of_a_python_tool(project, body):
    runtime(project, "my/runtimes/small", FUNCTION_RUNTIME, config={"memory_mb": 200})
    limited = f"import resource\nresource.RLIMIT_DATA\n{body}\n{OK}".replace("setrlimit(8", "setrlimit(resource.RLIMIT_DATA")
    tool(project, "my/tool", "my/runtimes/small", limited)
    answer = call(project)
    assert answer["status"] == "error"
    assert answer["code"] == ("memory_limit" if "setrlimit" not in body else "tool_crashed"), answer
    if answer["code"] == "memory_limit":
        assert "200 MB" in answer["error"]
    # The controls: less memory, and the same tool without the bound.
    tool(project, "my/tool", "my/runtimes/small", f"x = bytearray(50 << 20)\n{OK}")
    assert call(project)["status"] == "success"
    tool(project, "my/tool", FUNCTION_RUNTIME, f"x = bytearray(300 << 20)\n{OK}")
    assert call(project)["status"] == "success"
