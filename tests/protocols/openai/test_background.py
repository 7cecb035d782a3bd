"""Responses that run in the background: read, followed from any event on, and cancelled, by the stock SDK."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman import tool
from dragoman.wire.scripted import calls, says
from tests.later import Later
from tests.patience import PATIENCE, eventually
from tests.protocols.openai.callers import MODEL, called, client_of, conversations, waiting
from tests.server.site import served

if TYPE_CHECKING:
    import openai
    from openai.types import responses
else:
    openai, responses = Later("openai"), Later("openai.types.responses")

pytestmark = pytest.mark.slow

STORY = "Once upon a time there was a dragoman. " * 5


async def ended(client: openai.AsyncOpenAI, id: str) -> responses.Response:
    async with asyncio.timeout(PATIENCE):
        while (read := await client.responses.retrieve(id)).status in ("queued", "in_progress"):  # noqa: ASYNC110 - over HTTP, by asking
            await asyncio.sleep(0.01)
    return read


async def test_one_in_the_background_is_polled(tmp_path: Path) -> None:
    """No client needs to listen (F2)."""
    gate = asyncio.Event()
    async with called(tmp_path, [calls("wait"), says(STORY)], tools=[waiting(gate)]) as (client, _):
        begun = await client.responses.create(model=MODEL, input="A story", background=True)
        assert (begun.status, begun.background) == ("in_progress", True)
        with pytest.raises(openai.ConflictError):
            await client.responses.create(model=MODEL, input="Go on", previous_response_id=begun.id)
        gate.set()
        assert (await ended(client, begun.id)).output_text == STORY


async def test_its_stream_may_be_left_and_followed_from_any_event_on(tmp_path: Path) -> None:
    """The remaining events are the same while it runs, and the final event contains everything (F2, S3)."""
    gate = asyncio.Event()
    script = [says(STORY) + calls("wait"), says("The end.")]
    async with called(tmp_path, script, tools=[waiting(gate)]) as (client, _):
        stream = await client.responses.create(model=MODEL, input="A story", background=True, stream=True)
        heard: list[Any] = []
        async for event in stream:
            heard.append(event)
            if event.type == "response.output_item.done":
                break
        await stream.close()
        id, seen = heard[0].response.id, heard[:7]
        async for event in await client.responses.retrieve(id, stream=True, starting_after=6):
            seen.append(event)
            gate.set()
        assert seen[: len(heard)] == heard
        assert [event.sequence_number for event in seen] == [*range(len(seen))]
        deltas = [event.delta for event in seen if event.type == "response.output_text.delta"]
        assert "".join(deltas) == f"{STORY}The end."
        late = await client.responses.retrieve(id, stream=True, starting_after=seen[-2].sequence_number)
        (last,) = [event async for event in late]
        assert last.type == "response.completed"
        assert last.response.output_text == f"{STORY}The end."


async def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    """A listening client sees no error, and resumes at the restarted server (S3 × F2)."""
    gate = asyncio.Event()
    wait = waiting(gate)

    async with called(tmp_path, [says("Wait. ") + calls("wait")], tools=[wait]) as (client, _):
        stream = await client.responses.create(model=MODEL, input="Wait", background=True, stream=True)
        seen: list[Any] = []
        async for event in stream:
            seen.append(event)
            if event.type == "response.output_item.done":
                break
        id = seen[0].response.id
    gate.set()
    async with called(tmp_path, [says("It is over.")], tools=[wait]) as (client, _):
        after = seen[-1].sequence_number
        rest = await client.responses.retrieve(id, stream=True, starting_after=after)
        events = [event async for event in rest]
        assert events[-1].type == "response.completed"
        assert events[-1].response.output_text == "Wait. It is over."
        assert all(event.sequence_number > after for event in events)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_server_that_stops_cancels_nothing(tmp_path: Path, *, streamed: bool) -> None:
    """The caller did not disconnect, so the turn resumes with the server (S3 × F2)."""
    gate = asyncio.Event()
    wait = waiting(gate)

    async with AsyncExitStack() as stack:
        async with served(tmp_path, [calls("wait")], tools=[wait]) as site:
            client = await stack.enter_async_context(client_of(site))
            asking = asyncio.create_task(_hear(client, streamed=streamed))
            await eventually(lambda: any(live.log.turn.calls for live in site.runtime.bus.turns()))
            (live,) = site.runtime.bus.turns()
            await live.log.stored()
        await asyncio.gather(asking, return_exceptions=True)
        assert streamed or isinstance(asking.exception(), openai.InternalServerError)
    gate.set()
    async with called(tmp_path, [says("It is over.")], tools=[wait]) as (client, _):
        read = await ended(client, live.log.id.replace("turn_", "resp_"))
        assert (read.status, read.output_text) == ("completed", "It is over.")


async def _hear(client: openai.AsyncOpenAI, *, streamed: bool) -> None:
    if not streamed:
        await client.responses.create(model=MODEL, input="Wait")
        return
    async for _ in await client.responses.create(model=MODEL, input="Wait", stream=True):
        pass


async def test_it_can_be_cancelled(tmp_path: Path) -> None:
    """This also works while it waits for a person, and its text stays (F2, T6)."""

    @tool(permission="danger")
    def wipe() -> str:
        "Wipe it."
        return "wiped"

    async with called(
        tmp_path, lambda _: says("I will.") + calls("wipe"), tools=[wipe], allow=(), ask=["danger"]
    ) as (client, site):
        begun = await client.responses.create(model=MODEL, input="Wipe it", background=True)
        await site.question()
        cancelled = await client.responses.cancel(begun.id)
        assert (cancelled.status, cancelled.output_text) == ("cancelled", "I will.")
        again = await client.responses.cancel(begun.id)
        assert again.status == "cancelled"


async def test_one_in_the_foreground_ends_with_its_caller(tmp_path: Path) -> None:
    """A response that is only read continues (F2, T6)."""
    wait = waiting(asyncio.Event())
    async with called(tmp_path, [calls("wait")], tools=[wait]) as (client, _):
        stream = await client.responses.create(model=MODEL, input="A story", stream=True)
        created = await anext(aiter(stream))
        assert created.type == "response.created"
        watching = await client.responses.retrieve(created.response.id, stream=True)
        await anext(aiter(watching))
        await watching.close()
        assert (await client.responses.retrieve(created.response.id)).status == "in_progress"
        await stream.close()
        assert (await ended(client, created.response.id)).status == "cancelled"


async def test_what_is_somebody_elses_is_not_there(tmp_path: Path) -> None:
    """U2"""
    async with called(tmp_path, [says("Hello!"), calls("where")]) as (client, site):
        theirs = await site.runtime.conversation(user="ada")
        turn = await theirs.send("Hi")
        await turn.result()
        id = turn.id.replace("turn_", "resp_")
        for asking in (
            client.responses.retrieve(id),
            client.responses.retrieve(f"{id}_0000"),
            client.responses.retrieve("resp_../x"),
            client.responses.cancel(id),
            client.responses.delete(id),
            client.responses.create(model=MODEL, input="Go on", previous_response_id=id),
            client.responses.create(model=MODEL, input="Go on", conversation=theirs.id),
        ):
            with pytest.raises(openai.NotFoundError):
                await asking
        assert await conversations(site) == [theirs.id]
