"""A message in, one turn with a real model out: its text as it streams, or every event as a line of JSON."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.cli.asking import Asking
from dragoman.cli.catalog import catalog_of
from dragoman.cli.screen import Lines, Reading, Screen, not_begun
from dragoman.errors import BadRequest, ConfigError, DragomanError
from dragoman.messages import events as e
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.discover import discover
from dragoman.providers.keys import Keys
from dragoman.providers.models import Models, wire
from dragoman.runtime import Runtime
from dragoman.store.blobs import Blobs
from dragoman.store.sqlite import SqliteStore
from dragoman.tools.custom import load_tools
from dragoman.turn.handles import TurnHandle

STATUS = {"completed": 0, "error": 1, "cancelled": 130}
ELSEWHERE = "server"  # who serves a model that is named without a provider


@dataclass(slots=True, frozen=True, kw_only=True)
class Order:
    """What a person wants done, as the command line says it."""

    message: str | None
    model: str | None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    wire: str | None = None
    dialect: str = "auto"
    tools: Sequence[Path] = ()
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    system: str = ""
    max_rounds: int = 10
    store: Path | None = None
    config: Path | None = None
    as_json: bool = False


def run(order: Order) -> int:
    """The turn, to its end. Returns the exit status: 0 completed, 1 error, 130 cancelled."""
    screen: Screen = Lines(sys.stdout) if order.as_json else Reading(sys.stdout)
    with redirect_stdout(sys.stderr):  # what a tool prints must not stand between our lines
        try:
            end = asyncio.run(_turn(order, screen))
        except DragomanError as error:
            end = not_begun(str(error))
        except KeyboardInterrupt:
            end = not_begun("interrupted", "cancelled")
    screen.end(end)
    return STATUS.get(end.state, 1)


async def _turn(order: Order, screen: Screen) -> e.TurnEnd:
    message, tools = _message(order), load_tools(order.tools)
    with _database(order) as path:
        store = SqliteStore(path)
        models = await _models(order, Blobs(store.files / "blobs"))
        house = Runtime(
            store,
            model=models,
            tools=tools,
            allow=order.allow,
            deny=order.deny,
            system=order.system,
            max_rounds=order.max_rounds,
        )
        async with models, house as runtime:
            return await _watched(await runtime.send(message), screen)


async def _watched(turn: TurnHandle, screen: Screen) -> e.TurnEnd:
    asking = Asking(turn, terminal=sys.stdin is not None and sys.stdin.isatty())
    end = not_begun("the turn went on elsewhere")
    with _cancelled_by_interrupt(turn):
        async for event in turn.events():
            screen.show(event)
            if isinstance(event, e.CallAsked):
                asking.ask(event)
            elif isinstance(event, e.CallStart) and event.client:
                asking.decline(event)
            elif isinstance(event, e.TurnEnd):
                end = event
        await asking.close()
    return end


@contextmanager
def _cancelled_by_interrupt(turn: TurnHandle) -> Iterator[None]:
    """Ctrl-C ends the turn in order; pressed twice, it ends the program."""
    loop = asyncio.get_running_loop()
    cancelling: list[asyncio.Task[bool]] = []

    def cancel() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        cancelling.append(loop.create_task(turn.cancel("interrupted at the keyboard")))

    try:
        loop.add_signal_handler(signal.SIGINT, cancel)
    except NotImplementedError:  # Windows: there Ctrl-C ends the program
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


# ── what the command line means ───────────────────────────────────────────────────────────────────


def _message(order: Order) -> str:
    if order.message is not None and order.message != "-":
        return order.message
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest("there is no message: write it behind the options, or send it to standard input")
    return sys.stdin.buffer.read().decode(errors="replace")


@contextmanager
def _database(order: Order) -> Iterator[Path]:
    if order.store is not None:
        yield order.store
    else:
        with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
            yield Path(folder) / "run.db"


async def _models(order: Order, blobs: Blobs) -> Models:
    catalog = catalog_of(order.config)
    name = order.model or await _running_here()
    given = {}
    if order.base_url is not None or order.wire is not None:
        name, provider = _elsewhere(order, name, catalog)
        catalog = catalog.with_provider(provider)
    if order.api_key:
        given[catalog.find(name)[0].name] = order.api_key
    return Models(name, catalog=catalog, keys=Keys(given), dialect=order.dialect, load=blobs.get)


def _elsewhere(order: Order, name: str, catalog: Catalog) -> tuple[str, Provider]:
    """The provider of a model with the address and the wire that were named.

    Who imitates OpenAI at an address of its own speaks Chat Completions, unless it is said otherwise.
    """
    who, slash, _ = name.partition("/")
    name, who = (name, who) if slash else (f"{ELSEWHERE}/{name}", ELSEWHERE)
    if order.base_url is None:
        provider, _ = catalog.find(name)
    else:
        provider = catalog.providers.get(who) or Provider(who, who)
        spoken = "openai_chat" if provider.wire == "openai_responses" else provider.wire
        provider = replace(provider, base_url=order.base_url, base_url_from=None, wire=spoken, local=True)
        if not order.base_url.startswith(("http://", "https://")):
            raise ConfigError(f"--base-url begins with http:// or https://, not {order.base_url!r}")
    return name, replace(provider, wire=wire(order.wire).name if order.wire else provider.wire)


async def _running_here() -> str:
    """The first model of a server on this machine, for who names none."""
    for server in await discover():
        for model in server.models:
            print(f"· no model is named: taking {server.provider}/{model}", file=sys.stderr)
            return f"{server.provider}/{model}"
    raise ConfigError("no model is named, and no local server runs: say --model PROVIDER/MODEL")
