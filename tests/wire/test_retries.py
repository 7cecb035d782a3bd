"""The wait for a busy provider is visible, and a user can cancel it (R6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dragoman import Runtime
from dragoman.messages.events import Event, StepRetry, TextDelta
from dragoman.messages.fold import fold
from dragoman.messages.message import Text
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.http_client.client import HttpClient, Retry
from dragoman.wire.scripted import collect_reply, says
from tests.loopback import Answer, loopback, stream
from tests.runtimes import events_of

KEY = "sk-acme-0123456789"
BUSY = Answer(503, {"error": {"message": "we are busy"}})
QUICK = Retry(first_wait=0.001)
PATIENT = 60  # seconds that no test lasts


def models_at(url: str, retry: Retry = QUICK) -> Models:
    catalog = load_catalog().with_provider(Provider("acme", "Acme", url))
    client = HttpClient(retry=retry, random=lambda: 1.0)
    return Models("acme/model", catalog=catalog, keys=Keys({"acme": KEY}, environment={}), client=client)


def retries_in(events: list[Event]) -> list[StepRetry]:
    return [event for event in events if isinstance(event, StepRetry)]


async def test_r6_three_refusals_are_three_events_and_then_the_answer(tmp_path: Path) -> None:
    """An event before each wait gives the next attempt, its time and the reason (R6)."""
    async with (
        loopback(BUSY, BUSY, BUSY, says("Here I am.")) as server,
        models_at(server.url) as models,
        Runtime(tmp_path / "chat.db", model=models) as runtime,
    ):
        turn = await runtime.send("Hello?")
        events = await events_of(turn)
        result = await turn.result()

    retries = retries_in(events)
    assert [(one.attempt, one.attempts, one.seconds) for one in retries] == [
        (2, 4, 0.001),
        (3, 4, 0.002),
        (4, 4, 0.004),
    ]
    assert {(one.reason, one.status, one.type) for one in retries} == {("we are busy", 503, "step.retry")}
    assert result.text == "Here I am."
    kinds = [event.type for event in events]
    assert kinds.index("step.start") < kinds.index("step.retry") < kinds.index("text.start")
    assert [message.parts for message in fold(events)] == [(Text("Here I am."),)]


async def test_r6_a_wait_that_is_shown_can_be_cancelled(tmp_path: Path) -> None:
    """A user need not wait for the end (R6, T6)."""
    busy = Answer(503, {"error": {"message": "we are busy"}}, {"Retry-After": str(PATIENT)})
    async with (
        loopback(busy) as server,
        models_at(server.url, Retry()) as models,
        Runtime(tmp_path / "chat.db", model=models) as runtime,
    ):
        turn = await runtime.send("Hello?")
        async with asyncio.timeout(PATIENT / 2):
            async for event in turn.events():
                if event.type == "step.retry":
                    assert event.seconds >= PATIENT
                    await turn.cancel()
            assert (await turn.result()).state == "cancelled"
    assert len(server.bodies) == 1


async def test_r6_a_request_beside_the_conversation_can_say_that_it_waits() -> None:
    """A title or a summary has no separate turn, so its caller receives the wait (R6)."""
    waits: list[StepRetry] = []
    async with loopback(BUSY, says("A title")) as server, models_at(server.url) as models:
        request = Request("acme/model", (RequestMessage("user", (Text("A title, please."),)),))
        reply = await collect_reply(models(), request, on_retry=waits.append)
    assert (reply.text, [one.reason for one in waits]) == ("A title", ["we are busy"])


async def test_r6_the_reason_of_a_retry_does_not_show_the_key() -> None:
    leak = Answer(503, {"error": {"message": f"no room for {KEY}"}})
    async with loopback(leak, says("yes")) as server, models_at(server.url) as models:
        request = Request("acme/model", (RequestMessage("user", (Text("Hello?"),)),))
        events = [event async for batch in models().stream(request, "msg_1") for event in batch]
    assert [one.reason for one in retries_in(events)] == ["no room for ‹key›"]


async def test_r6_a_server_that_was_busy_and_then_refuses_tools_is_asked_in_a_dialect() -> None:
    """A retry starts no reply, so Dragoman can still send the request in another form (R6, D1)."""
    no_tools = Answer(400, {"error": {"message": "model does not support tools"}})
    tool = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {}})
    request = Request("acme/model", (RequestMessage("user", (Text("Hello?"),)),), tools=(tool,))
    async with loopback(BUSY, no_tools, says("yes")) as server, models_at(server.url) as models:
        events = [event async for batch in models().stream(request, "msg_1") for event in batch]
    assert len(retries_in(events)) == 1
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "yes"
    assert "tools" not in server.bodies[-1]


async def test_r6_a_stream_that_ends_after_a_providers_own_fields_is_asked_again() -> None:
    """A provider's own fields do not start the reply (R6, H4)."""
    unfinished = stream({"type": "response.new_thing", "detail": 1}, finish=None, done=False)
    done = stream(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
        {"type": "response.completed", "response": {"status": "completed"}},
        finish=None,
        done=False,
    )
    async with loopback(unfinished, done) as server:
        provider = Provider("acme", "Acme", server.url, wire="openai_responses")
        catalog = load_catalog().with_provider(provider)
        keys = Keys({"acme": KEY}, environment={})
        async with Models("acme/m", catalog=catalog, keys=keys, client=HttpClient(retry=QUICK)) as models:
            request = Request("acme/m", (RequestMessage("user", (Text("Hello?"),)),))
            events = [event async for batch in models().stream(request, "msg_1") for event in batch]
    assert [event.type for event in events][:2] == ["provider.data", "step.retry"]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hi"
