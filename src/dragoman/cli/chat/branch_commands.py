"""`/commands` that move about: to another version of a message, to a copy, to another conversation."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.lookup import each_conversation, find_conversation
from dragoman.cli.terminal.text import one_line
from dragoman.cli.terminal.transcript import print_messages
from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest
from dragoman.messages.message import Message
from dragoman.turn.api.turn_handle import TurnHandle

LISTED = 20
_OWN_FOLDER = "folder"


async def rerun(session: Session, model: str) -> TurnHandle:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("there is no answer yet")
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
        raise BadRequest(f"there is no branch {number!r}: there are 1 to {len(tips)}")
    await session.here.move_to(tips[int(number) - 1])
    session.notify(f"on branch {number} of {len(tips)}")
    print_messages(session.console, (await session.here.messages())[-2:], thoughts=session.thoughts)


async def fork(session: Session, argument: str) -> None:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("there is nothing to copy yet")
    if argument.strip() not in ("", _OWN_FOLDER):
        raise BadRequest(f"say /fork, or /fork {_OWN_FOLDER}: then it works in a copy of the workspace")
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
    if not id:
        raise BadRequest("which one? /list shows them")
    return await session.open((await find_conversation(session.runtime.store, id)).id)


async def last_message(session: Session) -> Message:
    """The person's last one on this branch."""
    for message in reversed(await session.here.messages()):
        if message.role == "user" and message.author is None:
            return message
    raise BadRequest("you have not said anything yet")


def _summarize(tree: Tree, tip: str) -> str:
    """The person's last message on a branch, and how the answer begins."""
    path = tree.path(tip)
    message = next((one.text for one in reversed(path) if one.role == "user" and one.author is None), "")
    answer = path[-1].text if path[-1].role == "assistant" else ""
    return f"{one_line(message, 40)} — {one_line(answer, 50) or 'no answer'}"
