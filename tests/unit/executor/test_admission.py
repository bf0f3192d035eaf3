"""The order of the gates, what is remembered, and unsigned tools, which a person alone may run."""

from __future__ import annotations

from pathlib import Path

import pytest

import rye
from rye.errors import RyeError, TrustError
from rye.executor import executor
from rye.executor.admission import Admission
from rye.items import bundles, parse, spaces
from rye.trust import verify
from rye.trust.signature import PrivateKey, form_of
from rye.trust.verify import TrustStore, render_key_document
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, tool_text, trust_key

pytestmark = pytest.mark.usefixtures("here")

RUNTIME = parse.FUNCTION_RUNTIME


def ground(project):
    return Admission(spaces.spaces(project))


def candidate(project, item_id="my/tool"):
    return spaces.find("tool", item_id, spaces.spaces(project))


def refused(project, item_id="my/tool", **options):
    with pytest.raises(RyeError) as caught:
        ground(project).tool(candidate(project, item_id), **options)
    return caught.value.code


def unsigned_run(project, item_id="my/tool"):
    return executor.run(executor.Call("tool", item_id, {}, str(project), allow_unsigned=True))


def test_the_gates_stand_in_order(project):
    """An item with all faults is refused for the first; each one mended brings the next to light."""
    trust_key()
    text = tool_text("my/tool", category="other", more="__requires_rye__ = '>=99'\n")
    place = "tools/my/tool.py"
    put(project, place, text)
    assert refused(project) == "unsigned"
    put(project, place, signed(text, STRANGER) + b"#")
    assert refused(project) == "tampered"
    put(project, place, signed(text, STRANGER))
    assert refused(project) == "untrusted_key"
    put(project, place, signed(text))
    assert refused(project) == "misplaced"
    put(project, place, signed(text.replace(b'"other"', b'"my"').replace(b'"rye/core', b'"no/core')))
    assert refused(project) == "runtime_missing"
    put(project, place, signed(text.replace(b'"other"', b'"my"')))
    assert refused(project) == "rye_too_old"
    put(project, place, signed(text.replace(b'"other"', b'"my"').replace(b"'>=99'", b"'new'")))
    assert refused(project) == "malformed_item"
    put(project, place, signed(text.replace(b'"other"', b'"my"').replace(b">=99", b">=0.1")))
    assert ground(project).tool(candidate(project)).tool.id == "my/tool"


def test_only_python_runs_and_a_refusal_names_the_runtime_that_is_missing(project):
    trust_key()
    yaml = f"version: 1.0.0\ntool_type: thing\nexecutor_id: {RUNTIME}\ncategory: my\ndescription: x\n".encode()
    for raw, named in ((yaml, RUNTIME), (yaml.replace(RUNTIME.encode(), b"null"), "thing")):
        put(project, "tools/my/tool.yaml", signed(raw, suffix=".yaml"))
        response = rye.execute("my/tool", project_path=project)
        assert (response["code"], named in response["error"], "not here" in response["error"]) == (
            "runtime_missing",
            True,
            False,
        )


@pytest.mark.parametrize("wanted", ["0.0", "<=9.9", "==0.1", ">=0.x", ">=", ">= 0.1", 1])
def test_what_a_tool_requires_is_of_one_form(project, wanted):
    put_tool(project, "my/tool", more=f"__requires_rye__ = {wanted!r}")
    assert refused(project) == "malformed_item"


def test_a_reserved_id_of_the_system_needs_the_systems_key(project, tmp_path, monkeypatch):
    """A good manifest and a good signature of another key that counts: still not the system's."""
    folder = tmp_path / "bundle"
    put(folder, "tools/rye/tool.py", signed(tool_text("rye/tool"), STRANGER))
    for item_id in (RUNTIME, "rye/core/primitives/function"):
        shipped = Path(spaces.system_folder(), f"tools/{item_id}.yaml").read_bytes().partition(b"\n")[2]
        put(folder, f"tools/{item_id}.yaml", signed(shipped, suffix=".yaml"))
    put(folder, "trusted_keys/k.toml", render_key_document(MINE.public, "rye"))
    system = spaces.Space("system", str(folder / ".ai"))
    facts = {"id": "rye"}
    put(folder, "bundles/rye/manifest.yaml", signed(bundles.compose(system, facts), suffix=".yaml"))
    monkeypatch.setattr(verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    monkeypatch.setattr(spaces, "system_folder", lambda: folder / ".ai")
    trust_key(STRANGER)
    assert refused(project, "rye/tool") == "reserved_id"
    # Control: signed by that key it is the system's.
    put(folder, "tools/rye/tool.py", signed(tool_text("rye/tool")))
    put(folder, "bundles/rye/manifest.yaml", signed(bundles.compose(system, facts), suffix=".yaml"))
    assert ground(project).tool(candidate(project, "rye/tool")).tool.verified.key.role == "system"
    # A manifest of a key that nobody trusts: no document that lies beside it is recommended.
    stranger = PrivateKey(b"s" * 32)
    put(folder, f"trusted_keys/{stranger.public.fingerprint}.toml", render_key_document(stranger.public, "rye"))
    put(folder, "bundles/rye/manifest.yaml", signed(bundles.compose(system, facts), stranger, suffix=".yaml"))
    with pytest.raises(TrustError) as caught:
        ground(project).tool(candidate(project, "rye/tool"))
    assert (caught.value.code, str(folder) in caught.value.hint) == ("untrusted_key", False)
    # Without its manifest the bundle serves nothing.
    (folder / ".ai/bundles/rye/manifest.yaml").unlink()
    assert refused(project, "rye/tool") == "unsigned"
    with pytest.raises(TrustError):
        ground(project).admit(candidate(project, "rye/tool"))


# --- unsigned tools under construction ---


def test_an_unsigned_tool_runs_only_when_a_person_said_so_and_the_result_says_it(project):
    put(project, "tools/my/tool.py", tool_text("my/tool"))
    assert rye.execute("my/tool", project_path=project)["code"] == "unsigned"
    response = unsigned_run(project)
    assert response["status"] == "success"
    assert response["item"]["owner"] == "nobody"
    assert any("my/tool is unsigned" in warning for warning in response["warnings"])
    # Having run so once makes it no better for the next call.
    assert rye.execute("my/tool", project_path=project)["code"] == "unsigned"


def test_in_python_no_call_allows_it(project):
    put(project, "tools/my/tool.py", tool_text("my/tool"))
    with pytest.raises(TypeError):
        rye.execute("my/tool", project_path=project, allow_unsigned=True)


def test_it_is_for_unsigned_files_alone_and_for_ones_own_spaces(project, tmp_path, monkeypatch):
    trust_key()
    for raw, code in (
        (signed(tool_text("my/tool")) + b"#", "tampered"),
        (signed(tool_text("my/tool"), STRANGER), "untrusted_key"),
        (signed(tool_text("my/tool")).replace(b"\n", b" \n", 1), "malformed"),
        (tool_text("my/tool", category="other"), "misplaced"),
        (tool_text("my/tool").replace(b"__version__", b"version"), "malformed_item"),
        (b"\xff" + tool_text("my/tool"), "malformed_item"),
        (b"\0" + tool_text("my/tool"), "malformed_item"),
    ):
        put(project, "tools/my/tool.py", raw)
        assert unsigned_run(project)["code"] == code
    put(project, "tools/rye/tool.py", tool_text("rye/tool"))
    assert unsigned_run(project, "rye/tool")["code"] == "reserved_id"
    folder = tmp_path / "bundle"
    put(folder, "tools/rye/tool.py", tool_text("rye/tool"))
    monkeypatch.setattr(spaces, "system_folder", lambda: folder / ".ai")
    assert unsigned_run(project, "rye/tool")["code"] == "unsigned"


def test_a_signed_tool_runs_as_ever_when_unsigned_ones_are_allowed(project):
    put_tool(project, "my/tool")
    response = unsigned_run(project)
    assert response["status"] == "success"
    assert "warnings" not in response


def test_what_is_made_of_an_unsigned_file_can_not_be_had_from_a_signed_one():
    form = form_of("tool", ".py")
    nobody = verify.unsafe_unsigned(tool_text("my/tool"), form)
    assert (nobody.key.role, nobody.key.owner) == ("unsigned", "nobody")
    assert nobody.raw == nobody.body == tool_text("my/tool")
    for raw in (signed(tool_text("my/tool")), signed(tool_text("my/tool")) + b"#", signed(tool_text("my/tool"))[2:] + b"#"):
        with pytest.raises(TrustError):
            verify.unsafe_unsigned(raw, form)


def test_nobodys_key_never_counts():
    """A document for the key that stands for no signer, and a line that names it, prove nothing."""
    nobody = verify.unsafe_unsigned(b"x = 1\n", form_of("tool", ".py")).key
    store = TrustStore.build([], [], [render_key_document(nobody.public, "nobody")])
    assert store.keys == ()
    assert TrustStore(keys=(nobody,)).digest != TrustStore().digest
    raw = signed(b"x = 1\n").replace(MINE.public.fingerprint.encode(), nobody.public.fingerprint.encode(), 1)
    with pytest.raises(TrustError) as caught:
        verify.verify(raw, form_of("tool", ".py"), TrustStore(keys=(nobody,)))
    assert caught.value.code == "untrusted_key"
