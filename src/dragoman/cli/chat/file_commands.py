"""`/undo`, `/redo` and `/diff`: what was done to the files here, and back again."""

from __future__ import annotations

from dragoman.cli.chat.branch_commands import last_message
from dragoman.cli.chat.session import Session, Undone
from dragoman.cli.terminal.diffs import render_diff
from dragoman.cli.terminal.text import count, one_line
from dragoman.errors import BadRequest, RevertConflict
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.api.way_back import FIRST_MESSAGE, Reverted

_LINES = 400  # of a diff
_FORCE = "force"


async def undo(session: Session, argument: str) -> None:
    """To before what the person said last: files and conversation."""
    last = await last_message(session)
    try:
        done = await session.here.revert_to(last.id, force=_forced(argument))
    except RevertConflict as error:
        return _tell_conflicts(session, error, "/undo force")
    _tell(session, done)
    if last.parent is None:
        left, settings = session.here.id, await session.settings()
        session.notify(f"that was the first message: this is a new conversation; /redo goes back to {left}")
        session.start_new()
        session.undone = Undone(left, recorded=done.turn is not None)
        return await session.change(**settings)
    return session.notify(f"back before “{one_line(last.text, 60)}”; /redo or /branches lead there again")


async def redo(session: Session, argument: str) -> TurnHandle | None:
    """Returns the turn that is to be followed, if the conversation it leads back to has one under way."""
    undone, force = session.undone, _forced(argument)
    if undone is None or undone.recorded:
        chat = await session.runtime.conversation(undone.conversation) if undone else session.here
        try:
            _tell(session, await chat.redo(force=force))
        except RevertConflict as error:
            _tell_conflicts(session, error, "/redo force")
            return None
    session.notify("as it was before the undo")
    return await session.open(undone.conversation) if undone else None


async def diff(session: Session, argument: str) -> None:
    if argument not in ("", "all"):
        raise BadRequest("/diff shows the last turn, /diff all the whole conversation")
    if argument:
        found = await session.here.diff()
    else:
        turns = [message.turn for message in await session.here.messages() if message.turn is not None]
        if not turns:
            raise BadRequest("nothing was said here yet")
        found = await session.here.turn(turns[-1]).diff()
    for note in found.notes:
        session.notify(note)
    if not found.files:
        return session.notify("nothing was done to the files")
    return session.console.print(render_diff(found.text, _LINES))


def _forced(argument: str) -> bool:
    if argument not in ("", _FORCE):
        raise BadRequest(f"{argument!r}: only the word {_FORCE} can stand here")
    return argument == _FORCE


def _tell(session: Session, done: Reverted) -> None:
    for note in done.notes:
        if note != FIRST_MESSAGE:  # here a new conversation begins
            session.notify(note)
    if done.paths:
        session.notify(f"{count(len(done.paths), 'file')} changed: {one_line(', '.join(done.paths), 300)}")


def _tell_conflicts(session: Session, error: RevertConflict, command: str) -> None:
    session.notify("nothing was changed: this would lose what others did", "yellow")
    for path, why in error.conflicts[:20]:
        session.notify(f"{path}: {why}", "yellow")
    session.notify(f"{command} does it all the same")
