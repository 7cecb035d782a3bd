"""Define `/compact`, `/context`, `/queue` and `/trace`: the context's content, waiting messages, and
durations."""

from __future__ import annotations

import time
from contextlib import suppress

from rich.text import Text

from dragoman.cli.chat.session import Session
from dragoman.cli.commands.explain import show_waterfall
from dragoman.cli.terminal.text import one_line
from dragoman.errors import BadRequest, NotFound
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.steps.request_layers import ShareKind

_BAR = 20  # characters
_NAMED = 3
SHARES: dict[ShareKind, str] = {
    "prompt": "prompts",
    "tools": "descriptions of tools",
    "person": "what you said",
    "answers": "answers",
    "reasoning": "reasoning",
    "calls": "calls and results",
    "files": "files",
    "summary": "the summary",
}


async def compact(session: Session, argument: str) -> None:
    """Compact with the next message, because a model must write the summary, which is a request like any
    other."""
    if len(await session.here.messages()) < 2:
        raise BadRequest("The conversation has nothing to compact yet.")
    session.compact = True
    session.notify("the earlier messages are compacted when you send your next message; nothing is deleted")


async def queue(session: Session, argument: str) -> None:
    """Print the queue. `drop N` removes a message from it."""
    waiting = await session.runtime.store.queued(conversation=session.here.id)
    word, _, number = argument.partition(" ")
    if word == "drop" and number.isdecimal() and 1 <= int(number) <= len(waiting):
        dropped = waiting[int(number) - 1]
        await session.runtime.store.unqueue(dropped.turn)
        return session.notify(f"called off: {one_line(dropped.message.text, 100)}")
    if argument:
        raise BadRequest(f"Type /queue, or /queue drop N, with N from 1 to {len(waiting)}.")
    for place, one in enumerate(waiting, 1):
        session.console.print(Text(f"  {place}  {one_line(one.message.text, 100)}"))
    none = "nothing waits: Tab, while a turn runs, lets a line wait for its end"
    return session.notify(none) if not waiting else None


async def trace(session: Session, argument: str) -> None:
    """Print the timeline of the last turn: durations, and why each call ran."""
    show_waterfall(await (await _last_turn(session)).trace(), time.time())


async def context(session: Session, argument: str) -> None:
    """Print what filled the last request, largest first, and the main sources."""
    use = await (await _last_turn(session)).context()
    of = f" of {use.context:,} ({use.used / use.context:.0%})" if use.context else ""
    session.notify(f"{'' if use.counted else 'about '}{use.used:,} tokens{of} for {one_line(use.model)}")
    for kind, shares in use.by_kind():
        tokens = sum(share.tokens for share in shares)
        part = tokens / use.used
        bar = "█" * max(1, round(part * _BAR))
        names = ", ".join(one_line(share.name, 40) for share in shares[:_NAMED] if share.name)
        more = f" and {len(shares) - _NAMED} more" if len(shares) > _NAMED else ""
        line = f"  {tokens:>9,} {part:>5.0%}  {bar:<{_BAR}}  {SHARES[kind]}"
        session.console.print(Text.assemble(line, (f"  {names}{more}" if names else "", "dim")))


async def _last_turn(session: Session) -> TurnHandle:
    """Return the last turn. A forked or imported conversation has messages without turns."""
    turns = dict.fromkeys(
        message.turn for message in await session.here.messages() if message.turn is not None
    )
    for turn in reversed(turns):
        with suppress(NotFound):
            return session.here.turn((await session.runtime.store.turn(turn)).id)
    raise BadRequest("No messages yet.")
