"""Settings in, a conversation at the terminal out, until the person leaves."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from dragoman.cli.chat.commands import COMMANDS, Quit, obey
from dragoman.cli.chat.completing import Completing
from dragoman.cli.chat.keyboard import Interrupted, Keyboard, Left, unheard
from dragoman.cli.chat.session import Session
from dragoman.cli.chat.view import Fetching
from dragoman.cli.chosen import Chosen, choose
from dragoman.cli.ids import conversation_named
from dragoman.cli.little import too_much_for
from dragoman.cli.plain import plain
from dragoman.cli.trouble import told
from dragoman.config.build import Built, build_runtime
from dragoman.config.settings import Settings, data_folder
from dragoman.errors import ConfigError, DragomanError, EngineError
from dragoman.messages.questions import MODES
from dragoman.runtime import Runtime
from dragoman.turn.handles import TurnHandle


@dataclass(slots=True, frozen=True, kw_only=True)
class Wanted:
    """What the command line says beside the settings."""

    conversation: str | None = None
    agent: str | None = None
    thoughts: bool = False


def chat(settings: Settings, wanted: Wanted) -> None:
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise ConfigError("a chat needs a terminal: without one, use `dragoman run`")
    with unheard():
        asyncio.run(_chat(settings, wanted))


async def _chat(settings: Settings, wanted: Wanted) -> None:
    console = Console(highlight=False)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: _tell_beside(console, context))
    fetching = Fetching()
    chosen = await choose(settings, progress=fetching)
    house = build_runtime(settings, model=chosen.models, without={"browser", *too_much_for(settings, chosen)})
    async with chosen.models, house.runtime as runtime:
        keyboard = Keyboard(_completing(runtime, chosen), data_folder() / "history")
        session = Session(runtime, console, keyboard, chosen, fetching)
        session.thoughts = wanted.thoughts
        turn = await _begun(session, house, wanted)
        try:
            await _talk(session, turn)
        except (Left, Interrupted, Quit):
            pass
        if session.chat is not None:
            session.tell(f"dragoman chat {session.chat.id} goes on here")


def _tell_beside(console: Console, context: dict[str, Any]) -> None:
    """What failed while nobody waited for it, such as a write to a full disk: a line, and not a trace."""
    error = context.get("exception")
    said = told(error) if isinstance(error, Exception) else str(context.get("message"))
    console.print(Text(f"· {plain(said)}", "red"))


async def _begun(session: Session, house: Built, wanted: Wanted) -> TurnHandle | None:
    """What there is to say at the start. The turn that goes on, if one does."""
    store = session.runtime.store
    known = await conversation_named(store, wanted.conversation) if wanted.conversation is not None else None
    model = str(known.settings.get("model") or "") if known is not None else ""
    if not model:
        session.runtime.services.model(None)  # a missing key is told before anything is said
    _greet(session, house, model or session.chosen.name)
    turn = await session.open(known.id) if known is not None else None
    if wanted.agent is not None:
        session.runtime.services.agent(wanted.agent)
        await session.change(agent=wanted.agent)
    return turn


def _greet(session: Session, house: Built, model: str) -> None:
    chosen = session.chosen
    reason = f" ({chosen.reason})" if model == chosen.name else ""
    session.console.print(Text.assemble(("Dragoman", "bold"), f" · {plain(model)}", (reason, "dim")))
    if chosen.note and model == chosen.name:
        session.tell(chosen.note, "yellow")
    for trouble in house.warnings:
        session.tell(f"left out: {trouble}", "red")
    session.tell("/help lists the commands; Ctrl-C stops a turn, Ctrl-D leaves")


async def _talk(session: Session, turn: TurnHandle | None) -> None:
    while True:
        try:
            if turn is not None:
                await session.follow(turn)
            turn = await _next(session)
        except (Left, Interrupted, EngineError):
            raise
        except DragomanError as error:
            turn = None
            session.tell(str(error), "red")
        except (OSError, sqlite3.Error) as error:  # a full disk and the like: what was said is still there
            turn = None
            session.tell(told(error), "red")


async def _next(session: Session) -> TurnHandle | None:
    said = await session.keyboard.message()
    if not said.strip():
        return None
    if not said.startswith("/"):
        return await session.say(said.strip())
    try:
        return await obey(session, said.strip())
    except Interrupted:
        return None  # out of the command, not of the program


def _completing(runtime: Runtime, chosen: Chosen) -> Completing:
    def groups() -> Iterable[str]:
        for group in runtime.services.toolbox.groups:
            yield from (f"{group.name} on", f"{group.name} off")

    return Completing(
        {name: command.told for name, command in COMMANDS.items()},
        {
            "model": lambda: _models(chosen),
            "rerun": lambda: _models(chosen),
            "agent": lambda: [*runtime.services.agents, "none"],
            "mode": lambda: MODES,
            "tools": groups,
        },
    )


def _models(chosen: Chosen) -> list[str]:
    """Those with a name of their own, and those that are used now."""
    known = [
        f"{provider.name}/{model}"
        for provider in chosen.models.catalog.providers.values()
        for model in provider.models
        if "*" not in model and "?" not in model
    ]
    return [chosen.name, *(name for name in known if name != chosen.name)]
