"""Routes to see calls and their whole output, and to deliver the result of one that a client ran."""

from __future__ import annotations

from starlette.responses import PlainTextResponse

from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import CallState, ToolCall, ToolResult, canonical
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Person, TheContext
from dragoman.turn.facts import CallChange

router = api_router("turns")


@router.get("/calls/{id}")
async def call(context: TheContext, person: Person, id: str) -> ToolCall:
    return await context.call(id, person)


@router.get("/calls/{id}/output", response_class=PlainTextResponse)
async def output(context: TheContext, person: Person, id: str) -> str:
    """The whole of what a call gave, where the model was shown only its head and tail."""
    found = await context.call(id, person)
    if found.result is None or found.state is CallState.WITHHELD:
        raise NotFound("output of call", id)
    if found.result.blob is None:
        return found.result.text
    return (await context.runtime.store.blob(found.result.blob)).decode()


@router.post("/calls/{id}/rerun", status_code=202)
async def rerun(
    context: TheContext,
    person: Person,
    id: str,
    body: bodies.RerunCall = bodies.RerunCall(),  # noqa: B008 - nobody changes it
) -> shapes.Begun:
    """A new version of the answer that holds this call, which goes on from there."""
    await context.call(id, person)
    change = CallChange(id, body.arguments, body.result)
    back = context.runtime.way_back
    async with back.reverted(back.revert_call(id, files_only=True) if body.revert_files else None):
        turn = await context.runtime.commands.rerun_call(change, options=body.turn_options())
    context.publisher.changed((await context.runtime.store.turn(turn)).conversation)
    return await context.begun(turn)


@router.post("/calls/{id}/result", status_code=202)
async def deliver(context: TheContext, person: Person, id: str, body: bodies.Result) -> shapes.Done:
    """The result of a call that the client ran. The first one counts."""
    await context.call(id, person)
    if not body.model_fields_set & {"text", "value"}:
        raise BadRequest(sentence("result.neither"))
    text = body.text if body.text is not None else canonical(body.value)
    await context.runtime.commands.deliver(id, ToolResult(text, value=body.value), failed=body.failed)
    return shapes.Done()
