"""Run `dragoman cancel`, `steer` and `queue`: control a turn that another program runs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import JsonValue

from dragoman.cli.flags.turns import CancelFlags, QueueFlags, SteerFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.interrupted import cancel_turn
from dragoman.cli.lookup import LAST, find_conversation, match_id, open_store
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.tables import print_table
from dragoman.cli.terminal.text import one_line, print_json
from dragoman.config.build import build_runtime, store_of
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, DragomanError
from dragoman.runtime import Runtime
from dragoman.store.store import Queued, Store
from dragoman.turn.live.loading import needs_of

_TURN = "turn_"
_BEFORE = "the turn before it"


@asynccontextmanager
async def _open_whole(settings: Settings) -> AsyncIterator[Runtime]:
    """Open a runtime of these settings with model and tools. It does not start turns by itself."""
    async with open_store(settings):
        pass  # raises an error if the store does not exist
    chosen = await choose_model(settings)
    without = {"browser"}
    built = build_runtime(settings, model=chosen.models, without=without, adopts=False)
    async with chosen.models, built.runtime as runtime:
        yield runtime


async def _find_live(store: Store, name: str) -> str:
    """Return the turn of this ID, or the running one of this conversation."""
    if name.startswith(_TURN):
        waiting = [one.turn for one in await store.queued()]
        return match_id("turn", name, [*(row.id for row in await store.live_turns()), *waiting])
    if name == LAST:
        live = await store.live_turns()
        outer = [row for row in live if (await store.conversation(row.conversation)).parent is None]
        if outer:
            return outer[-1].id
    conversation = await find_conversation(store, name)
    live = await store.live_turns(conversation.id)
    if not live:
        title = one_line(conversation.title or "untitled", 60)
        raise BadRequest(f"No turn is running in {conversation.id} ({title}).")
    return live[-1].id


async def cancel(flags: CancelFlags) -> None:
    """Cancel a turn. If no process runs it, it is ended here."""
    settings = settings_for(flags)

    async def stop(runtime: Runtime) -> str:
        turn = await _find_live(runtime.store, flags.turn)
        if not await cancel_turn(runtime, turn, flags.reason):
            raise BadRequest(f"Turn {turn} is already over.")
        return turn

    try:
        async with _open_whole(settings) as runtime:
            stopped = await stop(runtime)
    except BadRequest:
        raise
    # Without a model, or with tools that cannot be loaded, the turn can still be cancelled.
    except DragomanError:
        async with open_store(settings) as runtime:
            stopped = await stop(runtime)
    print(f"cancelled {stopped}")


async def steer(flags: SteerFlags) -> None:
    async with open_store(settings_for(flags)) as runtime:
        turn = await _find_live(runtime.store, flags.turn)
        if await runtime.store.is_abandoned(turn):
            where = (await runtime.store.turn(turn)).conversation
            raise BadRequest(f"Turn {turn} is not running. Resume it first: `dragoman resume {where}`.")
        await runtime.turn(turn).steer(" ".join(flags.message))
    print(f"{turn} reads it before its next step")


async def queue(flags: QueueFlags) -> None:
    if flags.drop is not None:
        await _drop_queued(flags.drop, settings_for(flags, asks=False))
    elif flags.conversation is not None and flags.message:
        await _add_to_queue(flags.conversation, " ".join(flags.message), settings_for(flags))
    else:
        await _list_queue(flags.conversation, settings_for(flags, asks=False), as_json=flags.json)


async def _add_to_queue(name: str, message: str, settings: Settings) -> None:
    async with _open_whole(settings) as runtime:
        turn = await _find_live(runtime.store, name)
        row = await runtime.store.turn(turn)
        if await runtime.store.is_abandoned(turn) and row.state != "waiting":
            at_once = f"Send the message with `dragoman run --continue {row.conversation} MESSAGE`."
            raise BadRequest(f"Turn {turn} is not running. {at_once}")
        chat = await runtime.conversation(row.conversation)
        queued = await chat.send(message, queue=True)
        if runtime.bus.here(queued.id) is None:
            print(f"{queued.id} begins when {turn} is over")
            return
        answer = (await queued.result()).text  # The previous turn has just ended, so the queued one ran here.
        print(f"Turn {turn} is over. Answer to {queued.id}:\n\n{answer}")


async def _list_queue(name: str | None, settings: Settings, *, as_json: bool) -> None:
    found: list[tuple[Queued, str]] = []
    if name is not None or store_of(settings).is_there:
        async with open_store(settings) as runtime:
            where = (await find_conversation(runtime.store, name)).id if name is not None else None
            may_begin = await runtime.store.queue(where)
            queued = await runtime.store.queued(conversation=where)
            found = [(one, needs_of(one) if one.turn in may_begin else _BEFORE) for one in queued]
    if as_json:
        rows: list[JsonValue] = [
            {"turn": one.turn, "conversation": one.conversation, "text": one.message.text, "waits_for": why}
            for one, why in found
        ]
        print_json(rows, indent=2)
        return
    print_table(
        ("turn", "conversation", "message", "waits for"),
        [(one.turn, one.conversation, one_line(one.message.text, 80), why) for one, why in found],
    )
    if not found:
        print("Nothing waits for its turn.", file=sys.stderr)


async def _drop_queued(turn: str, settings: Settings) -> None:
    async with open_store(settings) as runtime:
        id = match_id("queued turn", turn, [one.turn for one in await runtime.store.queued()])
        if not await runtime.store.unqueue(id):
            raise BadRequest(f"Turn {id} has begun. Run `dragoman cancel {id}` to stop it.")
    print(f"called off {id}")
