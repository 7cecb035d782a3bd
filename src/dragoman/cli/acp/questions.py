"""Show a turn's approval requests in the editor until they are answered there or by another client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dragoman.cli.acp.jsonrpc import RpcError
from dragoman.cli.acp.updates import TurnUpdates, whole_contents
from dragoman.cli.terminal.follow import Tasks, prompt_until_settled
from dragoman.errors import AlreadyAnswered, BadRequest, TurnEnded
from dragoman.messages.asked import approval_text
from dragoman.messages.questions import Answer, Question, reject, reply
from dragoman.runtime import Runtime
from dragoman.tools.approval import choices_for
from dragoman.visible_text import visible

_BY = "editor"
_OWN_WORDS = "words"
_NO_FORM = "this editor has no way to ask for a text"


def permission_request(
    session: str, question: Question, tool_call: dict[str, Any], contents: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the parameters of `session/request_permission`. `contents` are the changes as diffs of the
    editor. If given, they replace the text of the diff."""
    words = approval_text(replace(question, diff="") if contents else question)
    return {
        "sessionId": session,
        "toolCall": {
            **tool_call,
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": words}}, *contents],
        },
        "options": [
            {"optionId": id, "name": choice.name, "kind": choice.kind}
            for id, choice in choices_for(question).items()
        ],
    }


class EditorQuestions(Tasks):
    """Shows the approval requests of one turn. Each runs in a separate task while the turn's events
    continue."""

    def __init__(
        self,
        runtime: Runtime,
        session: str,
        ask: Callable[[str, dict[str, Any]], Coroutine[Any, Any, Any]],
        updates: TurnUpdates,
        *,
        forms: bool,
        cancel: Callable[[], Coroutine[Any, Any, object]],
    ) -> None:
        """`forms` tells whether the editor can ask for text. `cancel` stops the turn if the user does not
        answer."""
        super().__init__()
        self._runtime = runtime
        self._session = session
        self._ask = ask
        self._updates = updates
        self._forms = forms
        self._cancel = cancel

    def ask(self, question: str) -> None:
        self.start(self._settle(question))

    async def _settle(self, id: str) -> None:
        question = await self._runtime.store.question(id)
        if question.open:
            # The editor has disconnected. When the session is loaded, the request is shown again.
            with suppress(ConnectionError):
                await prompt_until_settled(self._runtime, question, self._prompt(question))

    async def _prompt(self, question: Question) -> None:
        try:
            answer = await self._answer(question)
        except RpcError as error:
            answer = reject(f"the editor could not ask: {error.message}")
            if question.kind == "review":
                answer = replace(answer, verdict="withhold")
        if answer is None:
            await self._cancel()
            return
        try:
            await self._runtime.answer(question.id, replace(answer, hash=question.hash, by=_BY))
        except (AlreadyAnswered, TurnEnded):
            return  # Another client answered first, or the request is closed.
        # The form is invalid, so the request is rejected with the reason, which the model reads.
        except BadRequest as error:
            await self._runtime.answer(question.id, reject(str(error)))

    async def _answer(self, question: Question) -> Answer | None:
        """Return the user's answer, or None if the user dismissed the request."""
        choices = choices_for(question)
        if not choices:
            return await self._fill_form(question)
        call = self._updates.tool_call(question.call, question.tool, question.arguments)
        contents = whole_contents(question.diff, self._updates.folder) if question.told else []
        request = permission_request(self._session, question, call, contents)
        if question.free and self._forms:
            own = {"optionId": _OWN_WORDS, "name": "In your own words", "kind": "allow_once"}
            request["options"].insert(len(question.choices), own)
        chosen = await self._ask("session/request_permission", request)
        outcome = chosen.get("outcome") if isinstance(chosen, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            return None
        if outcome.get("optionId") == _OWN_WORDS and question.free and self._forms:
            return await self._fill_form(question)
        choice = choices.get(str(outcome.get("optionId")))
        if choice is None:
            raise RpcError(
                0, f"The client chose option {outcome.get('optionId')!r}, which Dragoman did not offer."
            )
        return choice.answer

    async def _fill_form(self, question: Question) -> Answer | None:
        if not self._forms:
            return reject(_NO_FORM)
        alone = not question.schema
        schema = question.schema or {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "Answer"}},
            "required": ["answer"],
        }
        params = {
            "sessionId": self._session,
            "toolCallId": self._updates.tool_call(question.call, question.tool, None)["toolCallId"],
            "mode": "form",
            "message": visible(question.text),
            "requestedSchema": schema,
        }
        filled = await self._ask("elicitation/create", params)
        content = filled.get("content") if isinstance(filled, dict) else None
        match filled.get("action") if isinstance(filled, dict) else None:
            case "accept" if isinstance(content, dict):
                return reply(content.get("answer") if alone else content)
            case "decline":
                return reject()
            case _:
                return None
