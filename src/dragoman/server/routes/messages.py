"""Routes to make new versions of messages and answers."""

from __future__ import annotations

from dragoman.server import bodies, shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Key, Person, TheContext

router = api_router("turns")


@router.post("/messages/{id}/edit", status_code=202)
async def edit(
    context: TheContext, person: Person, id: str, body: bodies.Edit, key: Key = None
) -> shapes.Begun:
    """A new version of what a person said, and its answer. The old one stays."""
    old = await context.message(id, person)
    await context.check_files(body.content(), person)
    if (before := await context.begun_with(key, person)) is not None:
        return before
    options, back = body.turn_options(), context.runtime.way_back
    async with back.reverted(back.revert_message(id, files_only=True) if body.revert_files else None):
        turn = await context.runtime.commands.edit(id, body.content(), options=options, key=key)
    context.publisher.changed(old.conversation)
    return await context.begun(turn)


@router.post("/messages/{id}/rerun", status_code=202)
async def rerun(
    context: TheContext,
    person: Person,
    id: str,
    body: bodies.Rerun = bodies.Rerun(),  # noqa: B008 - nobody changes it
    key: Key = None,
) -> shapes.Begun:
    """A new version of an answer."""
    old = await context.message(id, person)
    if (before := await context.begun_with(key, person)) is not None:
        return before
    options, back = body.turn_options(), context.runtime.way_back
    async with back.reverted(back.revert_answers(id) if body.revert_files else None):
        turn = await context.runtime.commands.rerun(id, options=options, beside=body.beside, key=key)
    context.publisher.changed(old.conversation)
    return await context.begun(turn)
