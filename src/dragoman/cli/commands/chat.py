"""Run `dragoman chat`: open the runtime, greet, and handle messages until the user leaves."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.text import Text

from dragoman.cli.chat.branch_commands import last_here, pick_conversation
from dragoman.cli.chat.session import Session
from dragoman.cli.chat.shell_line import run_line
from dragoman.cli.chat.slash_commands import COMMANDS, ChatCompleter, Quit, run_command
from dragoman.cli.first_model import ask_for_model
from dragoman.cli.flags.chat import ChatFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.interrupted import interrupted_conversations
from dragoman.cli.lookup import find_conversation
from dragoman.cli.model_choice import ChosenModel, choose_model, prepared_ahead
from dragoman.cli.terminal.follow import ENDING, Interrupts
from dragoman.cli.terminal.forms import InputClosed, Interrupted
from dragoman.cli.terminal.keyboard import Keyboard, mute_typing
from dragoman.cli.terminal.screen import DownloadProgress
from dragoman.cli.terminal.text import describe_error, one_line, plain
from dragoman.config.build import Built, build_runtime
from dragoman.config.project_prompt import Template, templates
from dragoman.config.settings import Settings, data_folder
from dragoman.errors import ConfigError, DragomanError, EngineError, NotFound
from dragoman.messages.questions import MODES
from dragoman.providers.listing import list_models
from dragoman.providers.local.box import PROVIDER
from dragoman.providers.sign_in import reach
from dragoman.runtime import Runtime
from dragoman.turn.api.turn_handle import TurnHandle


def chat(flags: ChatFlags) -> None:
    values = {"model": flags.model, "mode": flags.mode, "system": flags.system}
    settings = settings_for(flags, values)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise ConfigError("`dragoman chat` needs a terminal. Without one, use `dragoman run`.")
    asyncio.run(ask_for_model(settings, flags))
    with mute_typing():
        try:
            asyncio.run(_run(settings, flags))
        except asyncio.CancelledError:  # A signal ended the program.
            raise KeyboardInterrupt from None


async def _run(settings: Settings, flags: ChatFlags) -> None:
    """Run the chat. A signal that ends the program restores the terminal and leaves the turn to be
    resumed."""
    with Interrupts(*ENDING):
        await _chat(settings, flags)


async def _chat(settings: Settings, flags: ChatFlags) -> None:
    console = Console(highlight=False)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: _report_failure(console, context))
    download = DownloadProgress()
    chosen = await choose_model(settings, progress=download)
    without = {"browser"}
    built = build_runtime(
        settings,
        model=chosen.models,
        without=without,
        allow=flags.allow or (),
        deny=flags.deny or (),
        adopts=False,  # Turns that other programs left are resumed only when their conversation is opened.
    )
    async with chosen.models, built.runtime as runtime, prepared_ahead(chosen, runtime):
        listed: list[str] = []
        runtime.background.run("asking for models", lambda: _list_models(chosen, listed))
        own = templates(settings)
        keyboard = Keyboard(_completer(runtime, chosen, own, listed), data_folder() / "history")
        session = Session(runtime, console, keyboard, chosen, download)
        session.reasoning, session.templates = flags.reasoning, own
        turn = await _begin(session, built, flags)
        try:
            await _talk(session, turn)
        except (InputClosed, Interrupted, Quit):
            pass
        if session.chat is not None:
            session.notify(f"dragoman chat {session.chat.id} continues here")


def _report_failure(console: Console, context: dict[str, Any]) -> None:
    """Print an error of background work as one line, for example a failed write to a full disk."""
    error = context.get("exception")
    text = describe_error(error) if isinstance(error, Exception) else str(context.get("message"))
    console.print(Text(f"· {plain(text)}", "red"))


async def _begin(session: Session, built: Built, flags: ChatFlags) -> TurnHandle | None:
    """Greet, and open the named conversation. Returns the running turn in it, if any."""
    store = session.runtime.store
    known = await find_conversation(store, flags.conversation) if flags.conversation is not None else None
    if known is None and flags.last:
        known = await last_here(session)
    elif known is None and flags.pick:
        known = await pick_conversation(session)
    own = known.settings if known is not None else {}
    model = str(own.get("model") or "") if flags.model is None else ""
    if not model:
        # A missing key must raise an error before the user types anything.
        session.runtime.services.model(None)
    _greet(session, built, model or session.chosen.name)
    await _tell_of_others(session, known.id if known is not None else None)
    turn = await session.open(known.id) if known is not None else None
    if own or flags.agent is not None:  # Flags override the settings of the conversation or its agent.
        if flags.model is not None:
            await session.change(model=flags.model)
        if flags.mode is not None:
            await session.change(mode=flags.mode)
    if flags.agent is not None:
        session.runtime.services.agent(flags.agent)
        await session.change(agent=flags.agent)
    return turn


async def _tell_of_others(session: Session, opened: str | None) -> None:
    """Notify the user of interrupted turns in other conversations. They are not resumed unasked, because that
    can cost money."""
    others = await interrupted_conversations(session.runtime.store) - {opened}
    if len(others) == 1:
        session.notify(
            f"A turn in another conversation was interrupted. Run `dragoman resume {others.pop()}`."
        )
    elif others:
        session.notify(f"Turns in {len(others)} other conversations were interrupted. Run `dragoman list`.")


def _greet(session: Session, built: Built, model: str) -> None:
    chosen = session.chosen
    reason = f" ({chosen.reason})" if model == chosen.name else ""
    session.console.print(Text.assemble(("Dragoman", "bold"), f" · {plain(model)}", (reason, "dim")))
    if chosen.note and model == chosen.name:
        session.notify(chosen.note, "yellow")
    for warning in built.warnings:
        session.notify(f"left out: {warning}", "red")
    if built.prompt is not None:
        session.notify(f"{built.prompt.file.name} of this folder is part of the prompt")
    for name in session.templates:
        if name in COMMANDS:
            session.notify(f"Left out {session.templates[name].file}: /{name} is a built-in command.", "red")
    session.notify("Type /help to list commands. Ctrl-C stops a turn, Ctrl-D quits.")


async def _talk(session: Session, turn: TurnHandle | None) -> None:
    while True:
        try:
            while turn is not None:
                await session.follow(turn)
                turn = await session.next_turn(turn)
            turn = await _read_message(session)
        except (InputClosed, Interrupted, EngineError):
            raise
        except DragomanError as error:
            turn = None
            session.notify(str(error), "red")
        except (OSError, sqlite3.Error) as error:  # For example, the disk is full. The chat continues.
            turn = None
            session.notify(describe_error(error), "red")


async def _read_message(session: Session) -> TurnHandle | None:
    """Send a message or run a command. Returns the turn that it started, if any."""
    status = await _read_status(session)
    draft, session.draft = session.draft, ""
    text = await session.keyboard.message(draft, status=status)
    if not text.strip():
        return None
    if text.startswith("!"):
        await run_line(session, text[1:].strip())
        return None
    if not text.startswith("/"):
        session.draft = text  # If sending fails, the prompt shows the text again.
        turn = await session.send(text.strip())
        session.draft = ""
        return turn
    try:
        return await run_command(session, text.strip())
    except Interrupted:
        return None  # This ends the command, not the program.


async def _read_status(session: Session) -> Callable[[int], str] | None:
    """Return the status line for the prompt. If the store cannot be read, there is none, but the user can
    still type."""
    try:
        if session.chat is not None and not await _is_there(session.runtime, session.chat.id):
            session.chat = None
            session.notify("This conversation was deleted. Your next message begins a new one.", "yellow")
        return (await session.read_status()).line
    except EngineError:
        raise
    except (DragomanError, OSError, sqlite3.Error) as error:
        session.notify(describe_error(error), "red")
        return None


async def _is_there(runtime: Runtime, conversation: str) -> bool:
    try:
        await runtime.store.conversation(conversation)
    except NotFound:
        return False
    return True


def _completer(
    runtime: Runtime, chosen: ChosenModel, own: Mapping[str, Template], listed: Sequence[str]
) -> ChatCompleter:
    def groups() -> Iterable[str]:
        for group in runtime.services.toolbox.groups:
            yield from (f"{group.name} on", f"{group.name} off")

    return ChatCompleter(
        {
            **{name: one_line(template.help, 60) for name, template in own.items()},
            **{name: command.help for name, command in COMMANDS.items()},
        },
        {
            "model": lambda: _models(chosen, listed),
            "rerun": lambda: _models(chosen, listed),
            "agent": lambda: [*runtime.services.agents, "none"],
            "mode": lambda: MODES,
            "tools": groups,
        },
    )


async def _list_models(chosen: ChosenModel, found: list[str]) -> None:
    """Add the models that the provider lists, for completion. The request runs in the background."""
    with suppress(DragomanError):
        provider, _ = chosen.models.catalog.find(chosen.name)
        endpoint = reach(provider, chosen.models.keys)
        if provider.name != PROVIDER:
            theirs = await list_models(chosen.models.client, endpoint)
            found += [f"{provider.name}/{model.id}" for model in theirs]


def _models(chosen: ChosenModel, listed: Sequence[str]) -> list[str]:
    """Return the current model, those that the server lists, and those with a name in the catalog."""
    known = [
        f"{provider.name}/{model}"
        for provider in chosen.models.catalog.providers.values()
        for model in provider.models
        if "*" not in model and "?" not in model
    ]
    return list(dict.fromkeys([chosen.name, *listed, *known]))
