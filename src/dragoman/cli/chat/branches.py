"""`/commands` that move about: versions of what was said, copies, and other conversations."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from dragoman.cli.chat.past import show_messages
from dragoman.cli.chat.session import Session
from dragoman.cli.ids import all_conversations, conversation_named
from dragoman.cli.plain import one_line
from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest
from dragoman.messages.message import Message
from dragoman.turn.handles import TurnHandle

LISTED = 20


async def rerun(session: Session, said: str) -> TurnHandle:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("there is no answer yet")
    return await session.here.rerun(info.leaf, model=said or None)


async def edit(session: Session, said: str) -> TurnHandle | None:
    last = await _last_said(session)
    session.tell("your message as it shall be; Enter sends it")
    text = await session.keyboard.message(default=last.text)
    return await session.here.edit(last.id, text) if text.strip() else None


async def undo(session: Session, said: str) -> None:
    last = await _last_said(session)
    if last.parent is None:
        session.tell(f"that was the beginning: a new conversation. The old one is {session.here.id}")
        settings = await session.settings()
        session.begin_anew()
        return await session.change(**settings)
    await session.runtime.store.set_leaf(session.here.id, last.parent, 0.0)
    return session.tell(f"back before “{one_line(last.text, 60)}”; /branches leads there again")


async def branches(session: Session, said: str) -> None:
    tree, info = await session.here.tree(), await session.here.info()
    tips = [message.id for message in tree if not tree.children(message.id)]
    if not said:
        for number, tip in enumerate(tips, 1):
            mark = "→" if tip == info.leaf else " "
            session.console.print(Text(f" {mark} {number}  {_summary(tree, tip)}"))
        return
    if not said.isdecimal() or not 1 <= int(said) <= len(tips):
        raise BadRequest(f"there is no branch {said!r}: there are 1 to {len(tips)}")
    await session.here.move_to(tips[int(said) - 1])
    session.tell(f"on branch {said} of {len(tips)}")
    show_messages(session.console, (await session.here.messages())[-2:], thoughts=session.thoughts)


async def fork(session: Session, said: str) -> None:
    info = await session.here.info()
    if info.leaf is None:
        raise BadRequest("there is nothing to copy yet")
    session.chat = await session.runtime.fork(info.id, info.leaf)
    session.tell(f"this is {session.chat.id}, a copy; {info.id} stays as it is")


async def new(session: Session, said: str) -> None:
    session.begin_anew()
    session.tell("a new conversation")


async def list_conversations(session: Session, said: str) -> None:
    left = LISTED
    async for conversation in all_conversations(session.runtime.store):
        mark = "→" if session.chat is not None and conversation.id == session.chat.id else " "
        when = datetime.fromtimestamp(conversation.updated).strftime("%Y-%m-%d %H:%M")
        title = one_line(conversation.title or "untitled", 60)
        session.console.print(Text(f" {mark} {conversation.id}  {when}  {title}"))
        left -= 1
        if not left:
            return session.tell("older ones: dragoman list --limit N")
    return None


async def open(session: Session, said: str) -> TurnHandle | None:
    if not said:
        raise BadRequest("which one? /list shows them")
    return await session.open((await conversation_named(session.runtime.store, said)).id)


async def _last_said(session: Session) -> Message:
    """By the person, on this branch."""
    for message in reversed(await session.here.messages()):
        if message.role == "user" and message.author is None:
            return message
    raise BadRequest("you have not said anything yet")


def _summary(tree: Tree, tip: str) -> str:
    """What the person said last on a branch, and how the answer begins."""
    path = tree.path(tip)
    said = next((one.text for one in reversed(path) if one.role == "user" and one.author is None), "")
    answer = path[-1].text if path[-1].role == "assistant" else ""
    return f"{one_line(said, 40)} — {one_line(answer, 50) or 'no answer'}"
