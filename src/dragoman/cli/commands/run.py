"""`dragoman run`: one turn from the command line, with its answer on standard output."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.cli.attachments import attach_file
from dragoman.cli.folder_trust import load_settings
from dragoman.cli.lookup import find_conversation
from dragoman.cli.model_choice import ChosenModel, choose_model, find_provider, unsuitable_groups
from dragoman.cli.terminal.errors import describe_error, exit_status
from dragoman.cli.terminal.follow import cancel_on_interrupt, question_in
from dragoman.cli.terminal.output import JsonOutput, TextOutput, TurnOutput, end_without_turn
from dragoman.cli.terminal.prompts import LinePrompts
from dragoman.config.build import build_runtime, catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, ConfigError, DragomanError, TurnBusy, TurnSetAside
from dragoman.messages import events as e
from dragoman.messages.endings import INCOMPLETE, REFUSED, WITHOUT_ANSWER
from dragoman.messages.parts import Part, Text
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.keys import Keys
from dragoman.providers.models import wire
from dragoman.runtime import Runtime
from dragoman.store.address import absolute_place
from dragoman.tools.custom import load_tools
from dragoman.turn.handles import ConversationHandle, TurnHandle
from dragoman.turn.machine import State

STATUS = {"completed": 0, "error": 1, "cancelled": 130}
FINISHED = {
    **dict.fromkeys(REFUSED, 3),
    **dict.fromkeys(INCOMPLETE, 4),
    **dict.fromkeys(WITHOUT_ANSWER, 5),
}
STDIN = "-"
UNNAMED = "server"  # the provider of a model that is named without one


@dataclass(slots=True, frozen=True, kw_only=True)
class RunFlags:
    """The flags of `dragoman run`. What they leave out, the settings say."""

    message: Sequence[str]
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    wire: str | None = None
    dialect: str = "auto"
    tools: Sequence[Path] = ()
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    attach: Sequence[Path] = ()
    agent: str | None = None
    mode: str | None = None
    system: str | None = None
    max_rounds: int | None = None
    conversation: str | None = None
    store: str | None = None
    forget: bool = False
    workspace: Path | None = None
    config: Path | None = None
    trust: bool = False
    as_json: bool = False


def run(flags: RunFlags) -> int:
    """One turn, to its end. Returns the exit status."""
    output: TurnOutput = JsonOutput(sys.stdout) if flags.as_json else TextOutput(sys.stdout)
    with redirect_stdout(sys.stderr):  # what a tool prints must not stand between our lines
        try:
            end = asyncio.run(_run(flags, _load_settings(flags), output))
            status = _status(end)
        except BrokenPipeError:
            raise  # whoever read along has gone: there is nobody to tell
        except (DragomanError, OSError, sqlite3.Error) as error:
            end, status = end_without_turn(describe_error(error)), exit_status(error)
        except KeyboardInterrupt:
            end, status = end_without_turn("interrupted", "cancelled"), STATUS["cancelled"]
    output.end(end)
    return status


def _status(end: e.TurnEnd) -> int:
    """By how the last reply ended, where the turn came to its end or a filter kept it from one."""
    if end.state == "completed" or end.finish in REFUSED:
        return FINISHED.get(end.finish, 0)
    return STATUS.get(end.state, 1)


async def _run(flags: RunFlags, settings: Settings, output: TurnOutput) -> e.TurnEnd:
    message, tools = _read_message(flags), load_tools(flags.tools)
    if not message.strip() and not flags.attach and not flags.conversation:
        raise ConfigError("the message is blank: say something, or attach a file")
    chosen = await _choose_model(flags, settings)
    chosen.models(None)  # a missing key is an error before anything is stored
    with _temporary_store(flags) as store:
        built = build_runtime(
            settings,
            model=chosen.models,
            tools=tools,
            without={"browser", *unsuitable_groups(settings, chosen)},
            store=store,
            allow=flags.allow,
            deny=flags.deny,
            adopts=False,  # what other programs left behind is not ours to go on with
        )
        for warning in built.warnings:
            print(f"· left out: {warning}", file=sys.stderr)
        async with chosen.models, built.runtime as runtime:
            files = [await attach_file(runtime.store, str(path)) for path in flags.attach]
            conversation = await _open_conversation(flags, runtime)
            said: list[Part] = [*([Text(message)] if message else []), *files]
            if not said:
                return await _follow(runtime, await _resume(runtime, conversation.id), output)
            try:
                turn = await conversation.send(said, agent=flags.agent)
            except TurnBusy as busy:
                await _close(runtime, busy)
                turn = await conversation.send(said, agent=flags.agent)
            except BadRequest:
                if flags.conversation is None:  # what was refused leaves nothing behind
                    await runtime.delete(conversation.id)
                raise
            return await _follow(runtime, turn, output)


# ── a turn that nobody runs ───────────────────────────────────────────────────────────────────────


async def _resume(runtime: Runtime, conversation: str) -> TurnHandle:
    for row in await runtime.store.live_turns(conversation):
        if await runtime.store.is_abandoned(row.id):
            print(f"· going on with turn {row.id}", file=sys.stderr)
            turn = runtime.turn(row.id)
            await turn.resume()
            return turn
    raise BadRequest(f"nothing was interrupted in conversation {conversation}: say something")


async def _close(runtime: Runtime, busy: TurnBusy) -> None:
    """End the turn that is in the way, if it was interrupted: what is said next is not to wait for it."""
    turn, row = runtime.turn(busy.turn), await runtime.store.turn(busy.turn)
    if not await runtime.store.is_abandoned(turn.id):
        raise busy
    if row.state == State.WAITING:
        raise BadRequest(
            f"turn {turn.id} waits for an answer: `dragoman questions` shows what it asks, and "
            f"`dragoman run --continue {row.conversation}` goes on with it"
        ) from busy
    await turn.cancel("it was interrupted, and something else was said")
    try:
        if await turn.resume():
            await turn.result()
    except TurnSetAside:
        await runtime.store.close_turn(turn.id)
    print(f"· closed turn {turn.id}, which was interrupted", file=sys.stderr)


async def _open_conversation(flags: RunFlags, runtime: Runtime) -> ConversationHandle:
    if flags.conversation is None:
        return await runtime.conversation()
    return await runtime.conversation((await find_conversation(runtime.store, flags.conversation)).id)


async def _follow(runtime: Runtime, turn: TurnHandle, output: TurnOutput) -> e.TurnEnd:
    prompts = LinePrompts(runtime, turn, terminal=sys.stdin is not None and sys.stdin.isatty())
    end: e.TurnEnd | None = None
    with cancel_on_interrupt(turn, once=True):
        async for event in turn.events():
            output.show(event)
            if (question := question_in(event)) is not None:
                prompts.ask(question)
            elif isinstance(event, e.CallStart) and event.client:
                prompts.decline(event)
            elif isinstance(event, e.TurnEnd):
                end = event
        await prompts.close()
    if end is None:  # the store could not be written, or another program took the turn over
        await turn.result()
        return end_without_turn("the turn went on elsewhere")
    return end


# ── what the command line means ───────────────────────────────────────────────────────────────────


def _read_message(flags: RunFlags) -> str:
    """The words of the command line; where one is `-`, or there are none, standard input in its place.
    Nothing, where an interrupted turn of a conversation is to go on."""
    if flags.conversation and not flags.message and (sys.stdin is None or sys.stdin.isatty()):
        return ""
    words = list(flags.message) or [STDIN]
    if STDIN not in words:
        return " ".join(words)
    at = words.index(STDIN)
    parts = (" ".join(words[:at]), _read_stdin(), " ".join(words[at + 1 :]))
    return "\n\n".join(part for part in parts if part)


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest("there is no message: write it behind the options, or send it to standard input")
    return sys.stdin.buffer.read().decode(errors="replace")


def _load_settings(flags: RunFlags) -> Settings:
    values = {
        "model": _model_name(flags),
        "mode": flags.mode,
        "system": flags.system,
        "limits.max_rounds": flags.max_rounds,
        "store": absolute_place(flags.store),
        "workspace": str(flags.workspace.resolve()) if flags.workspace else None,
    }
    return load_settings(flags.config, values, trust=flags.trust, asks=True)


@contextmanager
def _temporary_store(flags: RunFlags) -> Iterator[Path | None]:
    """A store for this turn alone; None where the one of the settings is to be used."""
    if not flags.forget:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "run.db"


def _model_name(flags: RunFlags) -> str | None:
    """The model, with a provider also where only an address is known."""
    if flags.model is None or flags.base_url is None or "/" in flags.model:
        return flags.model
    return f"{UNNAMED}/{flags.model}"


async def _choose_model(flags: RunFlags, settings: Settings) -> ChosenModel:
    catalog, keys = catalog_of(settings), Keys()
    named = settings.values.get("model")
    if flags.base_url is not None or flags.wire is not None:
        if named is None:
            raise ConfigError("--base-url and --wire are of a model: name it with --model")
        catalog = catalog.with_provider(_provider_at(flags, named, catalog))
    if flags.api_key:
        if named is None:
            raise ConfigError("--api-key is for a model: name it with --model")
        keys = Keys({find_provider(catalog, named).name: flags.api_key})
    chosen = await choose_model(
        settings, catalog=catalog, keys=keys, dialect=flags.dialect, progress=_show_progress
    )
    if named is None:
        print(f"· no model is named: taking {chosen.name} ({chosen.reason})", file=sys.stderr)
    if chosen.note:
        print(f"· {chosen.note}", file=sys.stderr)
    return chosen


def _provider_at(flags: RunFlags, name: str, catalog: Catalog) -> Provider:
    """The provider of a model, with the address and the wire of the flags.

    Who imitates OpenAI at an address of its own speaks Chat Completions, unless a wire is named, and is a
    server of which nothing is known: thoughts and calls may come in its text.
    """
    who = name.partition("/")[0]
    if flags.base_url is None:
        provider = find_provider(catalog, name)
    else:
        provider = catalog.providers.get(who) or Provider(who, who)
        if provider.wire == "openai_responses":
            provider = Provider(
                who,
                who,
                keys=provider.keys,
                prices=provider.prices,
                facts=provider.facts,
                models=provider.models,
                own=provider.own,
            )
        provider = replace(provider, base_url=flags.base_url, base_url_from=(), routes={}, local=True)
        if not flags.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"--base-url begins with http:// or https://, not {flags.base_url!r}")
    return replace(provider, wire=wire(flags.wire).name if flags.wire else provider.wire)


def _show_progress(done: int, size: int) -> None:
    if sys.stderr.isatty():
        print(f"\r· fetching the model: {100 * done // max(size, 1)} %", end="", file=sys.stderr, flush=True)
