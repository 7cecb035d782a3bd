"""Check requests that an OpenAI SDK repeats by itself."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman import tool
from dragoman.wire.scripted import calls, says
from tests.later import Later
from tests.patience import eventually
from tests.protocols.openai.callers import MODEL, called, client_of, conversations, result, user, waiting
from tests.server.site import served

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI
else:
    openai = Later("openai")

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
    """This holds while the turn runs and when it is over. The same request without the header of an SDK
    starts a new turn (S3 × F2)."""
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
    """The response contains only the answer, and nothing that the caller sent (S3 × F2)."""
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


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_retry_joins_a_turn_that_was_cancelled(tmp_path: Path, api: str) -> None:
    """The client that disconnected has cancelled the turn, and no tool runs twice for the retry. The same
    request, counted as the first, begins a new turn (T6 × T14: retry x cancelled turn)."""
    ran: list[str] = []
    gate = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        ran.append("wait")
        await gate.wait()
        return "waited"

    async with called(tmp_path, [calls("wait"), says("Anew.")], tools=[wait]) as (client, site):
        lost = asyncio.create_task(create(client, api))
        await eventually(lambda: bool(ran))
        lost.cancel()
        await eventually(lambda: not [*site.runtime.bus.turns()])
        gate.set()
        if api == "chat":
            with pytest.raises(openai.ConflictError, match="cancelled"):
                await create(client, api, extra_headers=AGAIN)
        else:
            joined = await client.responses.create(model=MODEL, input="Wait", extra_headers=AGAIN)
            assert joined.status == "cancelled"
        assert len(await conversations(site)) == 1
        assert await create(client, api) == "Anew."
    assert ran == ["wait"]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_idempotency_key_is_for_one_request(tmp_path: Path, api: str) -> None:
    """Two requests at the same moment begin one turn, and another body is refused in OpenAI's own form."""
    key = {"Idempotency-Key": "one"}
    async with called(tmp_path, [says("Once."), says("Twice.")]) as (client, site):
        both = await asyncio.gather(*(create(client, api, extra_headers=key) for _ in range(2)))
        assert both == ["Once.", "Once."]
        assert len(await conversations(site)) == 1
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await create(client, api, temperature=0.5, extra_headers=key)
        assert refused.value.code == "idempotency_key_reused"
        assert await create(client, api) == "Twice."


async def test_who_does_not_count_joins_within_a_minute(tmp_path: Path) -> None:
    """A client without the header that SDKs count in: the same body again is a retry, later it is not."""
    now = [time.time()]
    script = [says("one"), says("two")]
    body = {"model": MODEL, "messages": [user("Hello")]}
    async with served(tmp_path, script, clock=lambda: now[0]) as site:
        texts = []
        for pause in (0, 59, 2):
            now[0] += pause
            reply = await site.ask("POST", "/v1/chat/completions", body)
            texts.append(reply.body["choices"][0]["message"]["content"])
    assert texts == ["one", "one", "two"]
