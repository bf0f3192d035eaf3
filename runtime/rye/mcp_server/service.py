"""What an MCP server answers, in the protocol's JSON: for one project and one selection, whoever carries the messages.

The parameters of a request come as the protocol has them, already held to their kinds. What cannot be answered is a
`ProtocolError`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from rye import api
from rye.agents.model_text import Sessions
from rye.agents.provider_schemas import arguments_for_tool
from rye.call.context import CallOptions, Cancellation
from rye.call.results import failure
from rye.errors import RyeError, WorkspaceError
from rye.executor.executor import Call
from rye.mcp_server import prompts, resources, skills
from rye.mcp_server.calls import Calls, Request, ResultWriter
from rye.mcp_server.listing import EXECUTE, SEARCH, OfferedTools, Selection, switch_for
from rye.mcp_server.protocol import FRESH, INVALID_PARAMS, Done, Peer, ProtocolError, Report
from rye.plain_class import changed
from rye.workspace.workspace import Workspace, identity_of

_RESOURCE_NOT_FOUND: Final = -32002
# What holds for these arguments alone.
_NOT_CACHED: Final = ("prompts/get", "completion/complete")
_REFERENCES: Final = {"ref/prompt": "name", "ref/resource": "uri"}


class Service:
    """What the server's answers are made of, for one project and one selection."""

    def __init__(self, project: str, selection: Selection, refusal: RyeError | None = None) -> None:
        """Serve a project; with a `refusal` each call is answered with it, which clients show."""
        self.project = project
        self._refusal = refusal
        self.selection = selection
        # Device and inode at the start: another folder moved to this path later is not served.
        self._identity = identity_of(project)
        self.listing = OfferedTools(project, selection)
        self.calls = Calls(
            self._execute, ResultWriter(partial(resources.store, project), selection.structured, Sessions()), self._identity
        )
        # Of each method the member of its result, and what makes that; without a name the members themselves.
        self._answers: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
            "tools/list": ("tools", lambda _: self.listing.tools()),
            "resources/list": ("resources", lambda _: resources.listed(project)),
            "resources/templates/list": ("resourceTemplates", lambda _: resources.TEMPLATES),
            "resources/read": (
                "contents",
                lambda asked: [(skills if asked["uri"].startswith(skills.SCHEME) else resources).read(project, asked["uri"])],
            ),
            "prompts/list": ("prompts", lambda _: prompts.listed(project)),
            "prompts/get": ("", lambda asked: prompts.filled(project, asked["name"], asked.get("arguments") or {})),
            "completion/complete": ("completion", lambda asked: _completed(project, asked["ref"], asked["argument"])),
            "skills/list": ("skills", lambda _: skills.listed(project)),
            "skills/get": ("skill", lambda asked: skills.entry(project, asked["uri"])),
        }

    def answer(self, method: str, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Return the result of a request that looks at what there is: any but `tools/call`.

        Raises:
            ProtocolError: what the caller is told in place of a result.
        """
        name, made_of = self._answers[method]
        try:
            found = self._look(made_of, params)
        except RyeError as err:
            raise _refused(err, method, params.get("uri"), peer.revision) from None
        head = {"resultType": "complete"} if method in _NOT_CACHED else FRESH
        return {**head, **({name: found} if name else found)}

    def look(self, method: str, params: dict[str, Any], peer: Peer, done: Done) -> None:
        """Answer such a request in this thread."""
        try:
            found = self.answer(method, params, peer)
        except BaseException as err:  # noqa: BLE001 - whoever waits is to know
            done(None, err)
        else:
            done(found, None)

    def call(self, params: dict[str, Any], peer: Peer, report: Report | None, cancellation: Cancellation, done: Done) -> None:
        """Run `tools/call` in this thread, as `Calls.run` does.

        What fails inside a tool is a result with `isError`; an unknown name is a protocol error.
        """
        try:
            request = self._request(params["name"], params.get("arguments") or {}, peer)
        except BaseException as err:  # noqa: BLE001 - whoever waits is to know
            done(None, err)
        else:
            self.calls.run(request, cancellation, done, report)

    def _execute(self, item_id: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        if self._refusal is not None:
            refused = self._refusal
            return {"status": "error", "error": str(refused), "code": refused.code, "data": failure(refused)}
        if item_id == SEARCH:
            options = changed(options, offered=self._name_of)
        reach = self.selection.reaches if self.selection.meta else None
        response = api.answer(Call("tool", item_id, arguments, self.project, False, False, options, reach))
        if item_id == SEARCH and response["status"] == "success":
            missing = [row["id"] for row in response["data"]["results"] if row.get("offered") is False]
            response["data"]["output"] += f"\n[not offered by this server: {switch_for(missing)}]" if missing else ""
        return response

    def _name_of(self, item_id: str) -> str | None:
        """Return the name by which a client of this server calls a tool; None for one that is not offered."""
        offered = self.listing.by_id(item_id)
        return offered.tool["name"] if offered is not None else item_id if self.selection.chooses(item_id) else None

    def _look(self, function: Callable[..., Any], *args: Any) -> Any:
        """Ask for what the project's folder holds; another folder at its path is refused."""
        try:
            with Workspace(self.project) as workspace:
                workspace.hold_to(self._identity)
                return function(*args)
        except WorkspaceError as err:
            raise ProtocolError(str(err)) from None

    def _request(self, name: str, given: dict[str, Any], peer: Peer) -> Request:
        # The last listing first; a tool installed since then costs one new listing.
        offered = self.listing.known(name) or self._look(self.listing.find, name) or self.listing.by_id(name)
        if offered is None:
            hint = self._look(self.listing.elsewhere, name) or self.listing.near(name)
            raise ProtocolError(f"Unknown tool: {name!r}. {hint}")
        item_id = offered.offer.item_id
        arguments = arguments_for_tool(offered.offer.parameters, given)
        # Of rye_execute it is the tool that it executes.
        runs = (item_id == EXECUTE and self.listing.by_id(str(arguments.get("item_id")))) or offered
        return Request(item_id, arguments, runs.offer.item_id, runs.repeatable, peer.actor)


def _completed(project: str, reference: dict[str, Any], argument: dict[str, Any]) -> dict[str, Any]:
    named = _REFERENCES.get(reference["type"])
    if named is None or not isinstance(reference.get(named), str):
        raise ProtocolError('Invalid parameters: "ref" must be a ref/prompt with a name, or a ref/resource with a uri.')
    return prompts.completed(project, reference, argument["name"], argument["value"])


def _refused(err: RyeError, method: str, uri: str | None, revision: str) -> ProtocolError:
    """Return a refusal as a client is told it; revisions before 2026 have a code of their own for a resource not there."""
    missing = err.code in ("unknown_resource", "unknown_skill", "item_not_found", "bad_item_id", "job_not_found")
    code = _RESOURCE_NOT_FOUND if method == "resources/read" and missing and revision < "2026" else INVALID_PARAMS
    # The hint is for a shell; here the search is a tool.
    return ProtocolError(str(err).replace("`rye search`", "rye_search"), code, None if uri is None else {"uri": uri})
