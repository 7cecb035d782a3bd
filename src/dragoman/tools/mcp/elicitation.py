"""Answer what an MCP server requests during a call: questions to the user, roots, and model output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext
from pydantic import JsonValue, ValidationError

from dragoman.errors import ToolFailed
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage
from dragoman.tools.tool import ToolContext
from dragoman.web_address import web_address

OPENED, NOT_OPENED = "I have done what it asks there", "I will not open it"
LET, DO_NOT = "Let it ask the model", "Do not"

_CALL: ContextVar[ToolContext | None] = ContextVar("dragoman_mcp_call", default=None)


class Elicitation:
    """Connects one server's requests with the users whose calls it serves.

    No user is asked outside a call.
    """

    def __init__(self, server: str, workspace: Path | None) -> None:
        self._server = server
        self._workspace = workspace
        self._calls: list[ToolContext] = []
        # the calls for which the server asked the model
        self._sampling: list[tuple[ToolContext, anyio.CancelScope]] = []

    @contextmanager
    def serving(self, context: ToolContext) -> Iterator[None]:
        """Requests that arrive while this call runs can belong to it. Model requests for the call end with
        it."""
        token = _CALL.set(context)
        self._calls.append(context)
        try:
            yield
        finally:
            self._calls.remove(context)
            _CALL.reset(token)
            for call, scope in self._sampling:
                if call is context:
                    scope.cancel()

    def _call(self) -> ToolContext | None:
        """Return the call that a question belongs to: as the connection says, otherwise the latest one.

        None if it could be another user's call: no user sees or answers a question meant for someone else.
        """
        known = _CALL.get()
        if known in self._calls:
            return known
        people = {call.user for call in self._calls}
        return self._calls[-1] if len(people) == 1 else None

    def tell(self, progress: JsonValue) -> None:
        """Show progress to the user of the call."""
        if (call := self._call()) is not None:
            call.progress(progress)

    # ── elicitation ───────────────────────────────────────────────────────────────────────────────

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        call = self._call()
        if call is None:
            return types.ElicitResult(action="cancel")
        try:
            if isinstance(params, types.ElicitRequestURLParams):
                return await self._visit(call, params)
            return await self._form(call, params)
        except ToolFailed:
            return types.ElicitResult(action="decline")
        except ValidationError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"the answer does not fit: {error}")

    async def _form(self, call: ToolContext, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        schema = params.requested_schema
        answer = await call.ask(f"{self._server} asks: {params.message}", schema=schema)
        if not isinstance(answer, dict):
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={**_defaults(schema), **answer})

    async def _visit(self, call: ToolContext, params: types.ElicitRequestURLParams) -> types.ElicitResult:
        """Ask the user to open an address. Dragoman does not see what happens there."""
        parts = web_address(params.url)
        if parts is None:
            return types.ElicitResult(action="decline")
        asked = f"{self._server} asks you to open a page at {parts.hostname}"
        text = f"{asked}: {params.message}\n{params.url}"
        answer = await call.ask(text, choices=(OPENED, NOT_OPENED))
        return types.ElicitResult(action="accept" if answer == OPENED else "decline")

    async def visit_all(self, elicitations: list[types.ElicitRequestURLParams]) -> bool:
        """Ask for these visits, if a call cannot continue before its user has opened the addresses."""
        call = self._call()
        if call is None or not elicitations:
            return False
        for params in elicitations:
            try:
                if (await self._visit(call, params)).action != "accept":
                    return False
            except ToolFailed:
                return False
        return True

    # ── off by default ────────────────────────────────────────────────────────────────────────────

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult | types.ErrorData:
        if self._workspace is None:
            return types.ListRootsResult(roots=[])
        root = types.Root.model_validate(
            {"uri": self._workspace.resolve().as_uri(), "name": self._workspace.name}
        )
        return types.ListRootsResult(roots=[root])

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Return one model answer to a text, if the user lets the server ask."""
        call, texts = self._call(), _texts(params)
        if call is None or texts is None or params.tools:
            what = "only texts, without tools, and only while one of its calls runs"
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"this client samples {what}")
        system = [("system", params.system_prompt)] if params.system_prompt else []
        asked = "\n\n".join(f"{role}: {text}" for role, text in [*system, *texts])
        question = f"{self._server} wants to ask the model:\n{asked}"
        try:
            answer = await call.ask(question, choices=(LET, DO_NOT))
        except ToolFailed:
            answer = DO_NOT
        if answer != LET:
            return types.ErrorData(code=-1, message="the person did not let the server ask the model")
        with anyio.CancelScope() as scope:
            self._sampling.append((call, scope))
            try:
                reply = await call.complete(_request(params, texts))
            finally:
                self._sampling = [one for one in self._sampling if one[1] is not scope]
        if scope.cancelled_caught:
            return types.ErrorData(code=-1, message="the call that it asked the model for is over")
        content = types.TextContent(type="text", text=reply.text)
        return types.CreateMessageResult(role="assistant", content=content, model=reply.model or "dragoman")


def _defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of fields that the user left empty."""
    properties = schema.get("properties", {})
    described = properties.items() if isinstance(properties, dict) else ()
    return {
        name: field["default"] for name, field in described if isinstance(field, dict) and "default" in field
    }


def _request(params: types.CreateMessageRequestParams, texts: list[tuple[str, str]]) -> Request:
    messages = [
        RequestMessage("user" if role == "user" else "assistant", (Text(text),)) for role, text in texts
    ]
    options: dict[str, JsonValue] = {"max_tokens": params.max_tokens}
    return Request("", tuple(messages), system=params.system_prompt or "", options=options)


def _texts(params: types.CreateMessageRequestParams) -> list[tuple[str, str]] | None:
    texts: list[tuple[str, str]] = []
    for message in params.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        if not all(isinstance(block, types.TextContent) for block in blocks):
            return None
        texts.append((message.role, "\n".join(b.text for b in blocks if isinstance(b, types.TextContent))))
    return texts
