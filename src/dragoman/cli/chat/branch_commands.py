"""Define `/commands` to switch between versions, copies and conversations, and to undo file changes."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from dragoman.cli.chat.session import Session, Undone
from dragoman.cli.lookup import each_conversation, find_conversation
from dragoman.cli.terminal.cards import render_diff
from dragoman.cli.terminal.screen import print_messages
from dragoman.cli.terminal.text import count, one_line
from dragoman.conversation.tree import Conversation, Tree
from dragoman.errors import BadRequest, NotFound, RevertConflict
from dragoman.messages.message import Message
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.api.undo import FIRST_MESSAGE, Reverted
from dragoman.turn.facts import TurnStarted

LISTED = 20
_OWN_FOLDER = "folder"
_LINES = 400  # maximum lines of a diff
_FORCE = "force"


async def rerun(session: Session, model: str) -> TurnHandle:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("The conversation has no answer yet.")
    return await session.here.rerun(info.leaf, model=model or None)


async def edit(session: Session, argument: str) -> TurnHandle | None:
    last = await last_message(session)
    session.notify("your message as it shall be; Enter sends it")
    text = await session.keyboard.message(default=last.text)
    return await session.here.edit(last.id, text) if text.strip() else None


async def branches(session: Session, number: str) -> None:
    tree, info = await session.here.tree(), await session.here.info()
    tips = [message.id for message in tree if not tree.children(message.id)]
    if not number:
        for place, tip in enumerate(tips, 1):
            mark = "→" if tip == info.leaf else " "
            session.console.print(Text(f" {mark} {place}  {_summarize(tree, tip)}"))
        return
    if not number.isdecimal() or not 1 <= int(number) <= len(tips):
        raise BadRequest(f"Unknown branch {number!r}. Choose a number from 1 to {len(tips)}.")
    await session.here.move_to(tips[int(number) - 1])
    session.notify(f"on branch {number} of {len(tips)}")
    print_messages(session.console, (await session.here.messages())[-2:], reasoning=session.reasoning)


async def fork(session: Session, argument: str) -> None:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("The conversation is empty. Send a message before you fork it.")
    if argument.strip() not in ("", _OWN_FOLDER):
        raise BadRequest(f"Type /fork, or /fork {_OWN_FOLDER} to work in a copy of the workspace.")
    own = bool(argument.strip())
    session.chat = await session.runtime.fork(info.id, info.leaf, own_folder=own)
    where = " that works in a copy of the folder" if own else ""
    session.notify(f"this is {session.chat.id}, a copy{where}; {info.id} stays as it is")


async def new(session: Session, argument: str) -> None:
    session.start_new()
    session.notify("a new conversation")


async def list_conversations(session: Session, argument: str) -> None:
    left = LISTED
    async for conversation in each_conversation(session.runtime.store):
        mark = "→" if session.chat is not None and conversation.id == session.chat.id else " "
        when = datetime.fromtimestamp(conversation.updated).strftime("%Y-%m-%d %H:%M")
        title = one_line(conversation.title or "untitled", 60)
        session.console.print(Text(f" {mark} {conversation.id}  {when}  {title}"))
        left -= 1
        if not left:
            return session.notify("older ones: dragoman list --limit N")
    return None


async def open(session: Session, id: str) -> TurnHandle | None:
    if id:
        return await session.open((await find_conversation(session.runtime.store, id)).id)
    picked = await pick_conversation(session)
    return await session.open(picked.id) if picked is not None else None


async def last_here(session: Session) -> Conversation:
    """Return the conversation that was last used in the folder of this chat. Raises NotFound if there is
    none."""
    async for conversation in each_conversation(session.runtime.store):
        if await _is_here(session, conversation):
            return conversation
    raise NotFound(
        "conversation",
        "last",
        "This folder has no conversation. Run `dragoman chat --pick` to choose from all.",
    )


async def pick_conversation(session: Session) -> Conversation | None:
    """Return the conversation that the user selects by number. Those of this folder come first."""
    recent = []
    async for conversation in each_conversation(session.runtime.store):
        recent.append(conversation)
        if len(recent) == LISTED:
            break
    here = {one.id for one in recent if await _is_here(session, one)}
    recent.sort(key=lambda one: one.id not in here)
    if not recent:
        session.notify("The store has no conversations yet.")
        return None
    for number, one in enumerate(recent, 1):
        when = datetime.fromtimestamp(one.updated).strftime("%Y-%m-%d %H:%M")
        where = "" if one.id in here else "  (another folder)"
        title = one_line(one.title or "untitled", 60)
        session.console.print(Text(f" {number:>3}  {when}  {title}{where}"))
    while typed := await session.keyboard.line("a number, Enter for a new conversation: "):
        if typed.isdecimal() and 1 <= int(typed) <= len(recent):
            return recent[int(typed) - 1]
    return None


async def _is_here(session: Session, conversation: Conversation) -> bool:
    """Return whether the conversation's last turn worked in the folder of this chat."""
    main, runtime = session.runtime.services.workspaces.main, session.runtime
    rows = await runtime.store.turns(conversation.id)
    if main is None or not rows:
        return main is None
    started = next(iter(await runtime.turn(rows[-1].id).facts()), None)
    return isinstance(started, TurnStarted) and started.options.workspace == str(main.folder)


async def unfold(session: Session, argument: str) -> None:
    """Print the full cards of the last turn's calls that are shown on one line each."""
    if not session.folded:
        raise BadRequest("The last turn has no call whose output was shortened to one line.")
    for card in session.folded:
        session.console.print(card)


async def last_message(session: Session) -> Message:
    """Return the user's last message on this branch. Raises BadRequest if there is none."""
    for message in reversed(await session.here.messages()):
        if message.role == "user" and message.author is None:
            return message
    raise BadRequest("You have not sent a message yet.")


def _summarize(tree: Tree, tip: str) -> str:
    """Return the user's last message on a branch, and the beginning of the answer."""
    path = tree.path(tip)
    message = next((one.text for one in reversed(path) if one.role == "user" and one.author is None), "")
    answer = path[-1].text if path[-1].role == "assistant" else ""
    return f"{one_line(message, 40)} — {one_line(answer, 50) or 'no answer'}"


async def undo(session: Session, argument: str) -> None:
    """Revert files and conversation to before the user's last message."""
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
    """Redo the last undo. Returns the turn to follow, if the conversation that it leads back to has one
    running."""
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
        raise BadRequest("Type /diff for the last turn, or /diff all for the whole conversation.")
    if argument:
        found = await session.here.diff()
    else:
        turns = [message.turn for message in await session.here.messages() if message.turn is not None]
        if not turns:
            raise BadRequest("No messages yet.")
        found = await session.here.turn(turns[-1]).diff()
    for note in found.notes:
        session.notify(note)
    if not found.files:
        return session.notify("The turn changed no files.")
    return session.console.print(render_diff(found.text, _LINES))


def _forced(argument: str) -> bool:
    if argument not in ("", _FORCE):
        raise BadRequest(f"Unknown argument {argument!r}. The only one is {_FORCE}.")
    return argument == _FORCE


def _tell(session: Session, done: Reverted) -> None:
    for note in done.notes:
        if note != FIRST_MESSAGE:  # A new conversation begins in this case.
            session.notify(note)
    if done.paths:
        session.notify(f"{count(len(done.paths), 'file')} changed: {one_line(', '.join(done.paths), 300)}")


def _tell_conflicts(session: Session, error: RevertConflict, command: str) -> None:
    session.notify("Undo would lose later changes, so no file changed.", "yellow")
    for path, why in error.conflicts[:20]:
        session.notify(f"{path}: {why}", "yellow")
    session.notify(f"{command} does it anyway")
