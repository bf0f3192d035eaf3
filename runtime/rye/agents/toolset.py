"""Tools for an agent's loop: their schemas as its interface takes them, and calls by the names in these.

A loop gives a model `schemas(…)`, and the model's calls to `call(…)`, which always answers with text for the model: a call
that is wrong in any way is answered with what is wrong, never raised. Only what was listed can be called, and every call goes
the one way of `rye.execute`: verified anew, validated, confined.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rye import api
from rye.agents.discovery import LeftOut, listing
from rye.agents.model_text import Answer, Sessions
from rye.agents.offers import Offer
from rye.agents.provider_schemas import arguments_for_tool, render_all, tool_name
from rye.call.context import CallOptions, Cancellation
from rye.call.results import failure
from rye.call.safe_text import nearest
from rye.errors import RyeError, UsageError
from rye.plain_class import changed
from rye.workspace.workspace import identity_of, root_to_work_in

if TYPE_CHECKING:
    from pathlib import Path


class Toolset:
    """Some tools of a project, as they were listed when this was made.

    Attributes:
        offers: what is listed of each, sorted by id.
        left_out: what the categories hold beside them, with the reason.
    """

    def __init__(
        self,
        project_path: str | Path | None = None,
        categories: str | Iterable[str] | None = None,
        *,
        only: Iterable[str] | None = None,
    ) -> None:
        """List the tools.

        Args:
            project_path: the project root; None: that of the current folder, as for `rye.execute`.
            categories: such as `["rye/file-system"]`; None for every tool.
            only: names (`read`) or ids to choose among these.

        Raises:
            UsageError: `unknown_category`; `unknown_tool`, when `only` names one that is not there.
        """
        self._root = root_to_work_in(project_path)
        # Compared at each call: a folder that was swapped meanwhile is refused.
        self._identity = identity_of(self._root)
        # Its changes are recorded under this name, so that `undo` takes back this toolset's own.
        self._actor = f"toolset {os.urandom(4).hex()}"
        self._sessions = Sessions()
        found = listing(categories, project_path=self._root, known=True)
        offers = found.offers if only is None else _only_offers(found.offers, list(only))
        self.offers: tuple[Offer, ...] = tuple(offers)
        self.left_out: tuple[LeftOut, ...] = tuple(found.left_out)
        self._by_name = {offer.name: offer for offer in offers}

    @property
    def names(self) -> dict[str, str]:
        """Name -> item id of the tools that can be called."""
        return {name: offer.item_id for name, offer in self._by_name.items()}

    def schemas(self, format: str) -> list[dict[str, Any]]:
        """Return the tools as an interface takes them (`openai`, `anthropic`, `gemini`, `mcp`).

        Those that it has no way to express are left out.

        Raises:
            UsageError: `unknown_format`.
        """
        return render_all(self.offers, format)[0]

    def call(self, name: str, arguments: dict[str, Any] | str | None = None, *, options: CallOptions | None = None) -> str:
        """Run a tool as a model asked for it; return the text that the model is to read.

        Args:
            name: as in the schemas.
            arguments: an object, or its JSON text, as the interfaces give it.
            options: see `rye.execute`.
        """
        return _text(self.answer(name, arguments, options=options))

    async def acall(
        self, name: str, arguments: dict[str, Any] | str | None = None, *, options: CallOptions | None = None
    ) -> str:
        """Run a tool as `call` does, in a thread; cancelling the task ends what the tool started."""
        return _text(await self.aanswer(name, arguments, options=options))

    def answer(self, name: str, arguments: dict[str, Any] | str | None = None, *, options: CallOptions | None = None) -> Answer:
        """Run a tool as `call` does; return (text, is_error), for interfaces that have a place for both.

        A command that ended is no error, whatever its exit code.
        """
        return self._sessions.answer(self.respond(name, arguments, options=options))

    async def aanswer(
        self, name: str, arguments: dict[str, Any] | str | None = None, *, options: CallOptions | None = None
    ) -> Answer:
        """Run a tool as `answer` does, in a thread; cancelling the task ends what the tool started."""
        import asyncio

        call_options = options or CallOptions()
        cancellation = call_options.cancellation or Cancellation()
        call_options = changed(call_options, cancellation=cancellation)
        try:
            return await asyncio.to_thread(self.answer, name, arguments, options=call_options)
        except asyncio.CancelledError:
            # A thread cannot be stopped from outside: the tool's library looks at this.
            cancellation.cancel()
            raise

    def respond(
        self, name: str, arguments: dict[str, Any] | str | None = None, *, options: CallOptions | None = None
    ) -> dict[str, Any]:
        """Run a tool as `call` does; return the whole response, as `rye.execute` does."""
        try:
            offer = self._offer(name)
            raw = _object(arguments)
        except RyeError as err:
            refusal = {"data": failure(err), "error": str(err), "code": err.code}
            return {"status": "error", "type": "tool", "item_id": None, **refusal}
        # Before the executor validates: what the interface's schema forced on the model is undone first.
        parameters = arguments_for_tool(offer.parameters, raw)
        return api.execute(
            offer.item_id, parameters, project_path=self._root, options=self._named(options), reach=self._reaches
        )

    def _named(self, options: CallOptions | None) -> CallOptions:
        call_options = options or CallOptions()
        names = {offer.item_id: offer.name for offer in self.offers}
        actor = call_options.actor or self._actor
        offered = call_options.offered or names.get
        return changed(call_options, actor=actor, root=self._identity, agent_defaults=True, offered=offered)

    def _reaches(self, item_type: str, item_id: str) -> bool:
        """Tell whether the primary tools reach an item on behalf of a call: the listed tools, and texts, which do nothing."""
        return item_type != "tool" or any(offer.item_id == item_id for offer in self.offers)

    def _offer(self, name: object) -> Offer:
        if isinstance(name, str) and (meant := tool_name(name, self._by_name)) is not None:
            return self._by_name[meant]
        # Searches name a tool by its id.
        if (by_id := next((offer for offer in self.offers if offer.item_id == name), None)) is not None:
            return by_id
        close = nearest(str(name), self._by_name, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Tools: {', '.join(self._by_name)}."
        raise UsageError("unknown_tool", f"There is no tool {str(name)[:80]!r} here.", hint)


def toolset(
    project_path: str | Path | None = None, categories: str | Iterable[str] | None = None, *, only: Iterable[str] | None = None
) -> Toolset:
    """Return tools for an agent's loop; see `Toolset`."""
    return Toolset(project_path, categories, only=only)


def _text(answer: Answer) -> str:
    # A loop passes text alone on, so the text itself says that the call failed.
    return f"Error: {answer.text}" if answer.is_error else answer.text


def _object(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            # Some services send an empty text for a call without arguments.
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as err:
            raise UsageError("bad_arguments", f"The arguments are not JSON: {err}.", "Give one JSON object.") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise UsageError("bad_arguments", f"The arguments are {type(arguments).__name__}, no object.", "Give one JSON object.")
    return arguments


def _only_offers(offers: Sequence[Offer], only: list[str]) -> list[Offer]:
    known = {key for offer in offers for key in (offer.name, offer.item_id)}
    missing = [one for one in only if one not in known]
    if missing:
        close = nearest(missing[0], known, 1)
        hint = f"Did you mean {close[0]}?" if close else "`rye tools` lists what there is."
        raise UsageError("unknown_tool", f"There is no tool {missing[0][:80]!r} that can run here.", hint)
    return [offer for offer in offers if offer.name in only or offer.item_id in only]
