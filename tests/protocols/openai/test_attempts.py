"""Requests that an SDK of OpenAI's sends again of its own accord."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.wire.scripted import calls, says
from tests.patience import eventually
from tests.protocols.openai.callers import MODEL, called, client_of, conversations, result, user, waiting
from tests.server.site import served

if TYPE_CHECKING:
    from openai import AsyncOpenAI

pytestmark = pytest.mark.slow
AGAIN = {"x-stainless-retry-count": "1"}


async def create(client: Any, api: str, **more: Any) -> str:
    """The text of the answer."""
    if api == "chat":
        reply = await client.chat.completions.create(model=MODEL, messages=[user("Wait")], **more)
        return str(reply.choices[0].message.content)
    return str((await client.responses.create(model=MODEL, input="Wait", **more)).output_text)


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_what_is_sent_again_after_a_restart_is_answered_by_the_turn_that_it_began(
    tmp_path: Path, api: str
) -> None:
    """S3 × F2: while it runs, and when it is over; who asks the same without being an SDK asks anew."""
    gate = asyncio.Event()
    wait = waiting(gate)

    async with AsyncExitStack() as stack:
        async with served(tmp_path, [calls("wait")], tools=[wait]) as site:
            first = client_of(site)
            lost = asyncio.create_task(create(await stack.enter_async_context(first), api))
            await eventually(lambda: any(live.log.turn.calls for live in site.runtime.bus.turns()))
            (live,) = site.runtime.bus.turns()
            await live.log.stored()
        await asyncio.gather(lost, return_exceptions=True)
    async with called(tmp_path, [says("Waited."), says("Anew.")], tools=[wait]) as (client, site):
        again = asyncio.create_task(create(client, api, extra_headers=AGAIN))
        gate.set()
        assert await again == "Waited."
        assert await create(client, api, extra_headers=AGAIN) == "Waited."
        assert len(await conversations(site)) == 1
        assert await create(client, api) == "Anew."
        assert len(await conversations(site)) == 2


async def test_so_is_a_history_of_another_program_that_ends_with_its_own_results(tmp_path: Path) -> None:
    """S3 × F2: the answer alone is told, and none of what the caller brought."""
    gate = asyncio.Event()
    wait = waiting(gate)
    made = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    called_before: Any = {"role": "assistant", "content": "I look.", "tool_calls": [made]}
    brought = [user("Weather?"), called_before, result("call_1", "sunny")]

    async def ask(client: AsyncOpenAI, **more: Any) -> str:
        reply = await client.chat.completions.create(model=MODEL, messages=brought, **more)
        return str(reply.choices[0].message.content)

    async with AsyncExitStack() as stack:
        async with served(tmp_path, [calls("wait")], tools=[wait]) as site:
            first = client_of(site)
            lost = asyncio.create_task(ask(await stack.enter_async_context(first)))
            await eventually(lambda: any(live.log.turn.calls for live in site.runtime.bus.turns()))
            (live,) = site.runtime.bus.turns()
            await live.log.stored()
        await asyncio.gather(lost, return_exceptions=True)
    async with called(tmp_path, [says("Waited.")], tools=[wait]) as (client, site):
        again = asyncio.create_task(ask(client, extra_headers=AGAIN))
        gate.set()
        assert await again == "Waited."
        assert await ask(client, extra_headers=AGAIN) == "Waited."
        assert len(await conversations(site)) == 1


async def test_what_was_cancelled_or_never_arrived_is_begun_when_it_is_sent_again(tmp_path: Path) -> None:
    """T6 × F2: who hung up has cancelled it, and who is refused has begun nothing."""
    gate = asyncio.Event()
    script = [calls("wait"), says("Anew."), says("And anew.")]
    async with called(tmp_path, script, tools=[waiting(gate)]) as (client, site):
        lost = asyncio.create_task(create(client, "chat"))
        await eventually(lambda: any(live.log.turn.calls for live in site.runtime.bus.turns()))
        lost.cancel()
        await eventually(lambda: not [*site.runtime.bus.turns()])
        assert await create(client, "chat", extra_headers=AGAIN) == "Anew."
        assert await create(client, "chat", extra_headers=AGAIN) == "And anew."
