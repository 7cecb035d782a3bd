"""`/compact`, `/queue` and `/trace`: makes this conversation shorter, shows what waits and what took long."""

from __future__ import annotations

import time

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.commands.waterfall import show_waterfall
from dragoman.cli.terminal.text import one_line
from dragoman.errors import BadRequest
from dragoman.plugins.compaction import Compaction


async def compact(session: Session, argument: str) -> None:
    """With the next message: a model has to write the summary, and that is a request like another."""
    plugins = session.runtime.services.plugins
    found = next((plugin for plugin in plugins if isinstance(plugin, Compaction)), None)
    if found is None:
        raise BadRequest("nothing here can sum up: the plugin was replaced by another")
    if len(await session.here.messages()) < 2:
        raise BadRequest("there is nothing to sum up yet")
    found.want(session.here.id)
    session.notify("what came before is summed up first when you send your next message; nothing is deleted")


async def queue(session: Session, argument: str) -> None:
    """What waits; with `drop N`, without this one."""
    waiting = await session.runtime.store.queued(conversation=session.here.id)
    word, _, number = argument.partition(" ")
    if word == "drop" and number.isdecimal() and 1 <= int(number) <= len(waiting):
        dropped = waiting[int(number) - 1]
        await session.runtime.store.unqueue(dropped.turn)
        return session.notify(f"called off: {one_line(dropped.message.text, 100)}")
    if argument:
        raise BadRequest(f"say /queue, or /queue drop N, with N from 1 to {len(waiting)}")
    for place, one in enumerate(waiting, 1):
        session.console.print(Text(f"  {place}  {one_line(one.message.text, 100)}"))
    none = "nothing waits: Tab, while a turn runs, lets a line wait for its end"
    return session.notify(none) if not waiting else None


async def trace(session: Session, argument: str) -> None:
    """Of the last turn: what took how long, and why each call ran."""
    turns = [message.turn for message in await session.here.messages() if message.turn is not None]
    if not turns:
        raise BadRequest("nothing was said here yet")
    show_waterfall(await session.here.turn(turns[-1]).trace(), time.time())
