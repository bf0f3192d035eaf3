"""What an MCP server answers, in the protocol's JSON: for one project and one selection, whoever carries the messages.

The parameters of a request come as the protocol has them, already held to its schema. What cannot be answered is `Refused`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from typing import Any, Final

from rye import api
from rye.agents.model_text import Sessions
from rye.call.context import CallOptions
from rye.errors import RyeError, WorkspaceError
from rye.executor.executor import Call
from rye.mcp_server import prompts, resources, skills
from rye.mcp_server.calls import Calls, Request
from rye.mcp_server.listing import EXECUTE, SEARCH, Listing, Offered, Selection, switch_for
from rye.mcp_server.messages import FRESH, INVALID_PARAMS, Peer, Refused, Reporter
from rye.mcp_server.results import Results
from rye.plain_class import changed
from rye.workspace.workspace import Workspace, identity_of

_RESOURCE_NOT_FOUND: Final = -32002


class Service:
    """What the server's answers are made of, for one project and one selection."""

    def __init__(self, project: str, selection: Selection) -> None:
        self.project = project
        self.selection = selection
        # Device and inode at the start: another folder moved to this path later is not served.
        self._identity = identity_of(project)
        self.listing = Listing(project, selection)
        self.calls = Calls(self._execute, Results(partial(resources.store, project), selection.structured, Sessions()))
        self._answers: dict[str, Callable[[dict[str, Any], Peer], Awaitable[dict[str, Any]]]] = {
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "skills/list": self._list_skills,
            "skills/get": self._get_skill,
        }

    async def answer(self, method: str, params: dict[str, Any], peer: Peer, report: Reporter | None = None) -> dict[str, Any]:
        """Return the result of a request: of `tools/call`, or of one that looks at what there is.

        `report` sends progress notifications of a call, where its caller asked for them.

        Raises:
            Refused: what the caller is told in place of a result.
        """
        if method == "tools/call":
            return await self._call_tool(params, peer, report)
        return await self._answers[method](params, peer)

    def _execute(self, item_id: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        call = Call("tool", item_id, arguments, self.project, options=changed(options, root=self._identity))
        response = api.answer(call, self.selection.reaches if self.selection.meta else None)
        if item_id == SEARCH and response["status"] == "success":
            note = self.selection.note_of(response["data"]["results"])
            response["data"]["output"] += f"\n{note}" if note else ""
        return response

    async def _look(self, function: Callable[..., Any], *args: Any) -> Any:
        """Ask for what the project's folder holds, in a thread; another folder at its path is refused."""
        import anyio.to_thread

        def confined() -> Any:
            with Workspace(self.project) as workspace:
                workspace.hold_to(self._identity)
                return function(*args)

        try:
            return await anyio.to_thread.run_sync(confined)
        except WorkspaceError as err:
            raise Refused(str(err)) from None

    async def _list_tools(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        return {**FRESH, "tools": await self._look(self.listing.tools)}

    async def _call_tool(self, params: dict[str, Any], peer: Peer, report: Reporter | None) -> dict[str, Any]:
        """What fails inside a tool is a result with `isError`; an unknown name is a protocol error."""
        name = params["name"]
        # The last listing first; a tool installed since then costs one new listing.
        offered = self.listing.known(name) or await self._look(self.listing.find, name)
        if offered is None:
            near = self.listing.near(name)
            hint = f"Did you mean {', '.join(near)}?" if near else "tools/list names what there is."
            item_id = await self._look(self.listing.elsewhere, name)
            if item_id is not None:
                hint = f"{item_id} is installed, but this server does not offer it. {switch_for([item_id])}"
            raise Refused(f"Unknown tool: {name!r}. {hint}")
        return await self.calls.result(self._request(offered, params.get("arguments") or {}, peer, report))

    def _request(self, offered: Offered, given: dict[str, Any], peer: Peer, report: Reporter | None) -> Request:
        arguments = offered.arguments(given)
        runs = self._runs(offered, arguments)
        return Request(offered.item_id, arguments, runs.item_id, runs.repeatable, report, peer.actor)

    def request_of(self, name: str, given: dict[str, Any], peer: Peer, report: Reporter | None) -> Request | None:
        """Return the call of a tool that was listed before; None for another."""
        offered = self.listing.known(name)
        return None if offered is None else self._request(offered, given, peer, report)

    def _runs(self, offered: Offered, arguments: dict[str, Any]) -> Offered:
        """Return the tool that a call comes to: of rye_execute, the one that it executes."""
        if offered.item_id != EXECUTE:
            return offered
        return self.listing.by_id(str(arguments.get("item_id"))) or offered

    async def _list_resources(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        return {**FRESH, "resources": await self._look(resources.listed, self.project)}

    async def _list_templates(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        return {**FRESH, "resourceTemplates": resources.TEMPLATES}

    async def _read_resource(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        uri = params["uri"]
        try:
            source = skills.read if uri.startswith(skills.SCHEME) else resources.read
            return {**FRESH, "contents": [await self._look(source, self.project, uri)]}
        except RyeError as err:
            raise _unread(err, uri, peer.revision) from None

    async def _list_prompts(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        return {**FRESH, "prompts": await self._look(prompts.listed, self.project)}

    async def _get_prompt(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        try:
            filled = await self._look(prompts.filled, self.project, params["name"], params.get("arguments") or {})
        except RyeError as err:
            raise Refused(str(err)) from None
        return {"resultType": "complete", **filled}

    async def _complete(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        argument = params["argument"]
        asked = (self.project, params["ref"], argument["name"], argument["value"])
        try:
            return {"resultType": "complete", "completion": await self._look(prompts.completed, *asked)}
        except RyeError as err:
            raise Refused(str(err)) from None

    async def _list_skills(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        return {**FRESH, "skills": await self._look(skills.listed, self.project)}

    async def _get_skill(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG002
        try:
            return {**FRESH, "skill": await self._look(skills.entry, self.project, params["uri"])}
        except RyeError as err:
            raise Refused(str(err), data={"uri": params["uri"]}) from None


def _unread(err: RyeError, uri: str, revision: str) -> Refused:
    """Return the error for a resource that cannot be read; revisions before 2026 have a code of their own for one not there."""
    missing = err.code in ("unknown_resource", "unknown_skill", "item_not_found", "bad_item_id", "job_not_found")
    code = _RESOURCE_NOT_FOUND if missing and revision < "2026" else INVALID_PARAMS
    # The hint is for a shell; here the search is a tool.
    return Refused(str(err).replace("`rye search`", "rye_search"), code, {"uri": uri})


def actor_of(name: str | None, session: str) -> str:
    """Return what the journal calls a client: its name as it gave it, and its session."""
    # The client names itself: only plain characters of it go into the journal.
    plain = re.sub(r"[^\w.@+-]+", " ", name)[:40].strip() if name else ""
    return f"{plain or 'mcp'} {session}"


def session_of(secret: str) -> str:
    """Return what may be told of a session's ID: the ID itself lets its holder speak for the session."""
    return sha256(secret.encode()).hexdigest()[:8]
