"""Routes to see what turns did to the files of the workspace, and to take it back."""

from __future__ import annotations

from dragoman.server import bodies, shapes
from dragoman.server.api_router import api_router
from dragoman.server.context import Context, Person, TheContext
from dragoman.turn.api.way_back import Reverted, WorkspaceDiff

router = api_router("files")
_REVERT = bodies.Revert()
_REDO = bodies.Redo()


@router.get("/turns/{id}/diff")
async def diff_of_turn(context: TheContext, person: Person, id: str) -> shapes.DiffView:
    """What its calls did to the files so far, and what of that could not be recorded."""
    await context.turn(id, person)
    return _view(await context.runtime.way_back.diff_turn(id))


@router.get("/messages/{id}/diff")
async def diff_of_message(context: TheContext, person: Person, id: str) -> shapes.DiffView:
    """What the calls of a reply did to the files: one step of its turn."""
    await context.message(id, person)
    return _view(await context.runtime.way_back.diff_message(id))


@router.get("/calls/{id}/diff")
async def diff_of_call(context: TheContext, person: Person, id: str) -> shapes.DiffView:
    """What a call did to the files, with those that ran at the same time."""
    await context.call(id, person)
    return _view(await context.runtime.way_back.diff_call(id))


@router.get("/conversations/{id}/diff")
async def diff_of_conversation(context: TheContext, person: Person, id: str) -> shapes.DiffView:
    """What all its turns did to the files, less what was taken back."""
    await context.check_owner(id, person)
    return _view(await context.runtime.way_back.diff_conversation(id))


@router.post("/turns/{id}/revert")
async def revert_turn(
    context: TheContext, person: Person, id: str, body: bodies.Revert = _REVERT
) -> shapes.RevertView:
    """Go back to before this turn: what it and those after it did to the files is taken back, whole or not at
    all, and the conversation goes back before its message, which stays as a branch. 409 where one of them
    still runs, and, with `conflicts`, where somebody changed one of the files since."""
    await context.turn(id, person)
    back = context.runtime.way_back
    return _done(context, await back.revert_turn(id, files_only=body.files_only, force=body.force))


@router.post("/messages/{id}/revert")
async def revert_message(
    context: TheContext, person: Person, id: str, body: bodies.Revert = _REVERT
) -> shapes.RevertView:
    """The same to before a message: a person's, or a reply."""
    await context.message(id, person)
    back = context.runtime.way_back
    return _done(context, await back.revert_message(id, files_only=body.files_only, force=body.force))


@router.post("/calls/{id}/revert")
async def revert_call(
    context: TheContext, person: Person, id: str, body: bodies.Revert = _REVERT
) -> shapes.RevertView:
    """The same to before a call; the conversation goes back before the reply that holds it."""
    await context.call(id, person)
    back = context.runtime.way_back
    return _done(context, await back.revert_call(id, files_only=body.files_only, force=body.force))


@router.post("/conversations/{id}/redo")
async def redo(context: TheContext, person: Person, id: str, body: bodies.Redo = _REDO) -> shapes.RevertView:
    """Take the last revert of a conversation back."""
    await context.check_owner(id, person)
    return _done(context, await context.runtime.way_back.redo(id, force=body.force))


def _view(diff: WorkspaceDiff) -> shapes.DiffView:
    return shapes.DiffView(diff.files, diff.notes, diff.taken_back)


def _done(context: Context, done: Reverted) -> shapes.RevertView:
    context.publisher.changed(done.conversation)
    return shapes.RevertView(done.paths, done.notes, done.leaf, done.moved)
