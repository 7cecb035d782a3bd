"""A message in, one turn with a real model out: its text as it streams, or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.cli.asking import Asking, question_in
from dragoman.cli.chosen import Chosen, choose
from dragoman.cli.files import attached
from dragoman.cli.ids import conversation_named
from dragoman.cli.interrupt import cancelled_by_interrupt
from dragoman.cli.little import too_much_for
from dragoman.cli.screen import Lines, Reading, Screen, not_begun
from dragoman.cli.trouble import told
from dragoman.config.build import build_runtime, catalog_of
from dragoman.config.settings import Settings, load
from dragoman.errors import BadRequest, ConfigError, DragomanError
from dragoman.messages import events as e
from dragoman.messages.parts import Text
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.keys import Keys
from dragoman.providers.models import wire
from dragoman.runtime import Runtime
from dragoman.tools.custom import load_tools
from dragoman.turn.handles import ConversationHandle, TurnHandle

STATUS = {"completed": 0, "error": 1, "cancelled": 130}
STDIN = "-"
ELSEWHERE = "server"  # who serves a model that is named without a provider


@dataclass(slots=True, frozen=True, kw_only=True)
class Order:
    """What a person wants done, as the command line says it. What it leaves out, the settings say."""

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
    store: Path | None = None
    forget: bool = False
    workspace: Path | None = None
    config: Path | None = None
    as_json: bool = False


def run(order: Order) -> int:
    """The turn, to its end. Returns the exit status: 0 completed, 1 error, 130 cancelled."""
    screen: Screen = Lines(sys.stdout) if order.as_json else Reading(sys.stdout)
    with redirect_stdout(sys.stderr):  # what a tool prints must not stand between our lines
        try:
            end = asyncio.run(_turn(order, screen))
        except BrokenPipeError:
            raise  # whoever read along has gone: there is nobody to tell
        except (DragomanError, OSError, sqlite3.Error) as error:
            end = not_begun(told(error))
        except KeyboardInterrupt:
            end = not_begun("interrupted", "cancelled")
    screen.end(end)
    return STATUS.get(end.state, 1)


async def _turn(order: Order, screen: Screen) -> e.TurnEnd:
    message, tools, settings = _message(order), load_tools(order.tools), _settings(order)
    chosen = await _chosen(order, settings)
    chosen.models(None)  # a missing key is told before anything is stored
    with _database(order) as store:
        house = build_runtime(
            settings,
            model=chosen.models,
            tools=tools,
            without={"browser", *too_much_for(settings, chosen)},
            store=store,
            allow=order.allow,
            deny=order.deny,
            adopts=False,  # what other programs left behind is not ours to go on with
        )
        for trouble in house.warnings:
            print(f"· left out: {trouble}", file=sys.stderr)
        async with chosen.models, house.runtime as runtime:
            files = [await attached(runtime.store, str(path)) for path in order.attach]
            chat = await _conversation(order, runtime)
            turn = await chat.send([Text(message), *files], agent=order.agent)
            return await _watched(runtime, turn, screen)


async def _conversation(order: Order, runtime: Runtime) -> ConversationHandle:
    if order.conversation is None:
        return await runtime.conversation()
    return await runtime.conversation((await conversation_named(runtime.store, order.conversation)).id)


async def _watched(runtime: Runtime, turn: TurnHandle, screen: Screen) -> e.TurnEnd:
    asking = Asking(runtime, turn, terminal=sys.stdin is not None and sys.stdin.isatty())
    end: e.TurnEnd | None = None
    with cancelled_by_interrupt(turn, once=True):
        async for event in turn.events():
            screen.show(event)
            if (question := question_in(event)) is not None:
                asking.ask(question)
            elif isinstance(event, e.CallStart) and event.client:
                asking.decline(event)
            elif isinstance(event, e.TurnEnd):
                end = event
        await asking.close()
    if end is None:  # the store could not be written, or another program took the turn over
        await turn.result()
        return not_begun("the turn went on elsewhere")
    return end


# ── what the command line means ───────────────────────────────────────────────────────────────────


def _message(order: Order) -> str:
    """The words of the command line; where one is `-`, or there are none, what comes in beside them."""
    words = list(order.message) or [STDIN]
    if STDIN not in words:
        return " ".join(words)
    at = words.index(STDIN)
    said = (" ".join(words[:at]), _read(), " ".join(words[at + 1 :]))
    return "\n\n".join(part for part in said if part)


def _read() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest("there is no message: write it behind the options, or send it to standard input")
    return sys.stdin.buffer.read().decode(errors="replace")


def _settings(order: Order) -> Settings:
    flags = {
        "model": _named(order),
        "mode": order.mode,
        "system": order.system,
        "limits.max_rounds": order.max_rounds,
        "store": str(order.store.absolute()) if order.store else None,
        "workspace": str(order.workspace.resolve()) if order.workspace else None,
    }
    return load(order.config, flags=flags)


@contextmanager
def _database(order: Order) -> Iterator[Path | None]:
    """None: where the settings say."""
    if not order.forget:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "run.db"


def _named(order: Order) -> str | None:
    """The model, with a provider also where only an address is known."""
    if order.model is None or order.base_url is None or "/" in order.model:
        return order.model
    return f"{ELSEWHERE}/{order.model}"


async def _chosen(order: Order, settings: Settings) -> Chosen:
    catalog, keys = catalog_of(settings), Keys()
    named = settings.values.get("model")
    if order.base_url is not None or order.wire is not None:
        if named is None:
            raise ConfigError("--base-url and --wire are of a model: name it with --model")
        catalog = catalog.with_provider(_elsewhere(order, named, catalog))
    if order.api_key:
        if named is None:
            raise ConfigError("--api-key is for a model: name it with --model")
        keys = Keys({catalog.find(named)[0].name: order.api_key})
    chosen = await choose(settings, catalog=catalog, keys=keys, dialect=order.dialect, progress=_progress)
    if named is None:
        print(f"· no model is named: taking {chosen.name} ({chosen.reason})", file=sys.stderr)
    if chosen.note:
        print(f"· {chosen.note}", file=sys.stderr)
    return chosen


def _elsewhere(order: Order, name: str, catalog: Catalog) -> Provider:
    """The provider of a model with the address and the wire that were named.

    Who imitates OpenAI at an address of its own speaks Chat Completions, unless it is said otherwise.
    """
    who = name.partition("/")[0]
    if order.base_url is None:
        provider, _ = catalog.find(name)
    else:
        provider = catalog.providers.get(who) or Provider(who, who)
        spoken = "openai_chat" if provider.wire == "openai_responses" else provider.wire
        provider = replace(provider, base_url=order.base_url, base_url_from=None, wire=spoken, local=True)
        if not order.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"--base-url begins with http:// or https://, not {order.base_url!r}")
    return replace(provider, wire=wire(order.wire).name if order.wire else provider.wire)


def _progress(done: int, size: int) -> None:
    if sys.stderr.isatty():
        print(f"\r· fetching the model: {100 * done // max(size, 1)} %", end="", file=sys.stderr, flush=True)
