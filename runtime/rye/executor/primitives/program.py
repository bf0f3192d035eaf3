"""The primitive `subprocess`: a program in the sandbox, with the tool's parameters as data and its output as the result.

`config`, put together from all links of the chain:

    command, args        the program and its arguments; placeholders as in `rye.executor.primitives.templates`
    input_data           what it reads on standard input; all parameters as JSON where nothing is said
    parameter_env        a prefix: each parameter is also a variable of that name, a text as it is, all else as JSON
    output               `json`: it prints one JSON object, the result; `text`: what it prints is `output`;
                         `auto` tells by the first character
    exit_codes           {"3": "code_of_the_error"}; 0 alone is success
    cwd                  where it starts; the project's root where nothing is said
    timeout_seconds, max_timeout_seconds, memory_mb

`env_config.env` are variables, `env_config.interpreter` is looked for as in `rye.executor.primitives.interpreters`. Of the
tool and the files that it lists in `__files__` the verified bytes are written inside the sandbox, where they run. It has the
tool's permissions and no more, whoever signed it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rye.call import context, safe_text
from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import ItemError, RyeError
from rye.executor import isolated
from rye.executor.chain import Chain, Started, declared, malformed
from rye.executor.primitives import interpreters, templates
from rye.executor.primitives.templates import FOLDER, WHOLE
from rye.executor.worker import framed
from rye.executor.worker_pool import Worker, WorkerPolicy, pool
from rye.items import scripts, spaces
from rye.plain_class import Record, changed
from rye.process import run, terminal_text
from rye.process.output_files import Capture, StoredOutputs
from rye.sandbox import environment
from rye.trust.signature import is_script_suffix

if TYPE_CHECKING:
    from rye.items.parse import Tool

_OUTPUTS: Final = ("auto", "json", "text")
_CONFIG: Final = {
    **dict.fromkeys(("command", "output", "input_data", "parameter_env", "cwd"), str),
    "args": [str],
    "exit_codes": {"*": str},
}
_ENV_CONFIG: Final[dict[str, Any]] = {"env": {}, "interpreter": {"search": [{}]}}
_ANSWER_MAX = 16 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Within so many bytes an answer in JSON begins; of other text that was held back a terminal is shown so many.
_BEGIN = 1_024
_SHOWN = 50_000
_MEGABYTE = 1 << 20


class Plan(Record):
    """What a chain declares, checked once for all calls of a tool."""

    command: str
    args: tuple[str, ...]
    input_data: str
    parameter_env: str
    output: str
    exit_codes: dict[str, str]
    cwd: str
    memory: int
    env: dict[str, str]
    interpreter: dict[str, Any]
    files: dict[str, str]


def plan(chain: Chain) -> Plan:
    """Check what a chain declares. Errors as `rye.executor.chain.Primitive.plan`."""
    tool, config, env_config = chain.tool, declared(chain, "config", _CONFIG), declared(chain, "env_config", _ENV_CONFIG)
    command, args = config.get("command", ""), tuple(config.get("args", ()))
    output, codes = config.get("output", "auto"), config.get("exit_codes", {})
    env = {str(name): str(value) for name, value in env_config.get("env", {}).items()}
    for wish, holds in (
        ("config needs a command", command),
        (f"config.output must be one of {', '.join(_OUTPUTS)}", output in _OUTPUTS),
        ("config.exit_codes must give codes such as not_found to numbers", all(map(isolated.is_code, codes.values()))),
        ("env_config.env must give texts to names of variables", all(map(_NAME.match, env))),
    ):
        if not holds:
            raise malformed(tool.id, wish)
    templates.check(tool.id, command, args, tool.schema.get("properties", {}))
    data, prefix = config.get("input_data", f"{{{WHOLE}}}"), config.get("parameter_env", "")
    cwd = config.get("cwd", "{project_path}")
    memory, interpreter = int(config.get("memory_mb") or 0) * _MEGABYTE, env_config.get("interpreter", {})
    by_number = {str(number): code for number, code in codes.items()}
    return Plan(command, args, data, prefix, output, by_number, cwd, memory, env, interpreter, _files(chain))


def _files(chain: Chain) -> dict[str, str]:
    """Return the tool's files as base64 by their paths below its folder."""
    tool = chain.tool
    own = f"{tool.id.rpartition('/')[2]}{tool.suffix}"
    text = scripts.program_text(tool.verified) if is_script_suffix(tool.suffix) else tool.verified.body
    return {path: base64.b64encode(data).decode() for path, data in {**chain.files, own: text}.items()}


def foresee(chain: Chain, plan: Plan, root: str) -> dict[str, Any] | None:
    """Return the confinement of a call, as `rye.executor.isolated.preview`."""
    policy, _ = _policy(chain, plan, root)
    return isolated.preview(policy)


def start(chain: Chain, plan: Plan, parameters: dict[str, Any], root: str) -> Started:
    """Make a call ready: find the program, put its words together, and take what waits in a sandbox to become it.

    Raises:
        ItemError: `interpreter_missing`.
        UsageError: `option_like_value`, `bad_value`; and errors as `rye.executor.isolated.worker_for`.
    """
    message, worker, note = waiting(chain, plan, parameters, root)
    return Started(partial(_call, worker, chain.tool, plan, message), worker.reported, note)


def waiting(chain: Chain, plan: Plan, parameters: dict[str, Any], root: str) -> tuple[dict[str, Any], Worker, tuple[str, ...]]:
    """Return what makes a waiting process the program, the process, and warnings. Errors as `start`."""
    policy, found = _policy(chain, plan, root)
    message = _message(chain, plan, parameters, policy, found)
    worker = isolated.worker_for(policy)
    if found is not None:
        if found.where == "project" and worker.reported["kind"] == "none":
            pool.done(worker)
            why = f"The project's {found.path} runs only in a sandbox, and none holds here."
            raise ItemError("interpreter_missing", why, "Install bubblewrap.")
        worker.reported["interpreter"] = found.path
    note = (found.note,) if found is not None and found.note else ()
    return message, worker, note


def _policy(chain: Chain, plan: Plan, root: str) -> tuple[WorkerPolicy, interpreters.Found | None]:
    policy = changed(isolated.policy(chain.tool, root), serves="program")
    if not plan.interpreter:
        return policy, None
    allowed = policy.mode != "off" and "read" in policy.permissions
    found = interpreters.find(chain.tool.id, plan.interpreter, policy.root, own_allowed=allowed)
    return changed(policy, extra_read=found.shows), found


def _message(
    chain: Chain, plan: Plan, parameters: dict[str, Any], policy: WorkerPolicy, found: interpreters.Found | None
) -> dict[str, Any]:
    """Return what the waiting process gets; see `rye.executor.worker`."""
    tool, root = chain.tool, policy.root
    known = tool.schema.get("properties", {})
    given = {name: templates.text_of(tool.id, name, value) for name, value in parameters.items()}
    whole = json.dumps(parameters, ensure_ascii=True)
    values = {
        "tool_path": f"{FOLDER}/{tool.id.rpartition('/')[2]}{tool.suffix}",
        **dict.fromkeys(("tool_dir", "tool_parent", "anchor_path"), FOLDER),
        "project_path": root,
        "system_space": spaces.system_folder(),
        "user_space": str(user_dirs.user_space()),
    }
    data = {**{name: text for name, text in given.items() if name not in values}, WHOLE: whole}
    absent = [name for name in known if name not in given and name not in values]
    variables = environment.allowed_variables(os.environ)
    if found is not None:
        variables[str(plan.interpreter.get("var", "INTERPRETER"))] = found.path
    # What is filled into a variable is no template any more: they are filled once, each from what was there before it.
    env = {name: templates.fill(value, values, variables) for name, value in plan.env.items()}
    variables |= env
    command = templates.fill(plan.command, values, variables)
    program = command if command.startswith(FOLDER) else interpreters.on_path(command, root)
    # A project's own interpreter was approved; by its name alone it would not count.
    if not program and found is not None and command == found.path:
        program = command
    if not program:
        why = f"{tool.id} needs the program {plain(command)}, which is not here."
        raise ItemError("interpreter_missing", why, "Install it.")
    if plan.parameter_env:
        env |= {f"{plan.parameter_env}{name}": text for name, text in given.items() if _NAME.match(name)}
    return {
        "files": plan.files,
        "folder": None,
        "argv": [program, *templates.arguments(plan.args, values, data, absent, variables)],
        "env": {**env, "PATH": ":".join(interpreters.search_path(root)) or os.defpath},
        "input": base64.b64encode(templates.fill(plan.input_data, {**values, **data}, variables).encode()).decode(),
        "cwd": templates.fill(plan.cwd, values, variables),
        "limits": {"RLIMIT_DATA": [plan.memory, plan.memory]} if plan.memory else {},
        "programs": "run" in policy.permissions,
    }


def _call(worker: Worker, tool: Tool, plan: Plan, message: dict[str, Any]) -> dict[str, Any]:
    """Have the waiting process become the program; return its result."""
    limit = context.deadline()
    limit.when_expired(worker.kill)
    kind = worker.report["kind"]
    # Where no sandbox gives a folder that ends with the program, this process makes one and removes it.
    folder = tempfile.mkdtemp(prefix="rye-tool-") if kind == "none" else None
    stored = StoredOutputs(worker.policy.root)
    stdout = _Kept(partial(stored.create, "stdout"), plan.output)
    stderr = Capture(partial(stored.create, "stderr"))
    try:
        worker.send(framed({**message, "folder": folder, "filter": kind != "none"}))
        outcome = run.watch(worker.tree, {worker.printed: stdout, worker.errors: stderr}, limit.remaining())
        # Before it becomes the program it writes one line there, and nobody else can.
        said = worker.read([worker.answers], 0).get(worker.answers, b"").decode("utf-8", "replace")
    finally:
        isolated.finish(worker)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    if outcome.why != "exited":
        raise isolated.killed(limit)
    if "failed " in said or not said:
        why = safe_text.plain(said.partition("failed ")[2].strip()) or isolated.last_words(stderr.complete or b"")
        what = f"The program of {tool.id} could not be started: {why}."
        raise RyeError("isolation_failed", what, "Give less in one call, or look at what its chain declares.")
    result = _result(tool, plan, outcome, stdout, stderr, stored.id)
    cleaned: dict[str, Any] = safe_text.clean(result)
    if stdout.is_held:
        _report(stdout, cleaned)
    return cleaned


def _report(stdout: _Kept, result: dict[str, Any]) -> None:
    """Give a caller who watches what was held back: the text of an answer in JSON, or all of what was none."""
    if _object(stdout) is None:
        context.report_bytes(1, bytes(stdout.answer))
        context.report(terminal_text.plain(bytes(stdout.answer[:_SHOWN])))
    elif text := str(result["output"]):
        text = text if text.endswith("\n") else f"{text}\n"
        context.report_bytes(1, text.encode("utf-8", "replace"))
        context.report(text)


class _Kept(Capture):
    """A capture that also keeps a whole answer, as far as one is accepted.

    What may be an answer in JSON is held back: who watches gets its text, as every other caller does.
    """

    def __init__(self, create: Any, form: str) -> None:
        super().__init__(create)
        self.answer = bytearray()
        self.is_held = form != "text"

    def feed(self, block: bytes) -> None:
        if len(self.answer) <= _ANSWER_MAX:
            self.answer += block
        super().feed(block)

    def to_report(self, block: bytes) -> bytes:
        if not self.is_held:
            return block
        self.is_held = len(self.answer) <= _ANSWER_MAX and bytes(self.answer[:_BEGIN]).lstrip()[:1] in (b"", b"{")
        return b"" if self.is_held else bytes(self.answer)


def _result(tool: Tool, plan: Plan, outcome: run.Outcome, stdout: _Kept, stderr: Capture, output_id: str) -> dict[str, Any]:
    """Return the result of a program that ended by itself.

    Raises:
        RyeError: `bad_tool_result`.
    """
    found = _object(stdout) if plan.output != "text" else None
    if plan.output == "json" and found is None and outcome.exit_code == 0:
        why = "more than 16 MB" if len(stdout.answer) > _ANSWER_MAX else "no JSON object"
        what = f"{tool.id} printed {why} on its standard output."
        raise RyeError("bad_tool_result", what, "Report it to the tool's owner; its log goes to stderr.")
    budget = context.output_budget()
    errors, errors_cut = stderr.shown(budget // 4, output_id, "stderr")
    result: dict[str, Any] = {"exit_code": outcome.exit_code}
    if found is None:
        text, cut = stdout.shown(budget - len(errors.encode()), output_id, "stdout")
        result |= {"output": text, "truncated": cut or errors_cut}
    else:
        result |= found
        result.setdefault("output", "" if "error" in found else json.dumps(found, ensure_ascii=False))
    if errors:
        result["stderr"] = errors
    if outcome.exit_code == 0:
        success = True if found is None else found.get("success", True)
        if not isinstance(success, bool):
            why = f"{tool.id} printed an object whose success is neither true nor false. Report it to the tool's owner."
            result |= {"error": why, "code": "bad_tool_result"}
        return {**result, "success": success is True, **_said_error(found)}
    code = plan.exit_codes.get(str(outcome.exit_code), "command_failed")
    declared = _said_error(found)
    if not declared:
        last = isolated.last_words((errors.strip() or str(result["output"])).encode())
        declared = {
            "error": f"{tool.id} {run.ending(outcome)}. {f'Its last message: {last}' if last else 'It printed nothing.'}"
        }
    return {**result, "code": code, **declared, "success": False}


def _object(stdout: _Kept) -> dict[str, Any] | None:
    """Return the JSON object that was printed; None where it is none."""
    if len(stdout.answer) > _ANSWER_MAX or not bytes(stdout.answer[:_BEGIN]).lstrip().startswith(b"{"):
        return None
    found = safe_text.of_json(bytes(stdout.answer))
    return safe_text.encodable(found) if isinstance(found, dict) else None


def _said_error(found: dict[str, Any] | None) -> dict[str, Any]:
    """Return `error` and `code` as the program stated them, in the form that ours have."""
    if found is None or not isinstance(found.get("error"), str):
        return {}
    code = found.get("code")
    return {"error": found["error"], "code": code if isolated.is_code(code) else "tool_failed"}
