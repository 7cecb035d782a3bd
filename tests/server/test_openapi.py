"""Check that the API matches its description for any request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from starlette.routing import Route

from dragoman import tool
from dragoman.conversation.sharing import Member
from dragoman.messages.events import Event
from dragoman.server.app import routes
from dragoman.server.shapes import SETTINGS
from dragoman.tools.builtin import BUILTIN
from dragoman.wire.scripted import calls, says, thinks
from tests.server.site import Received, description, served

pytestmark = pytest.mark.slow

# Events that no turn publishes.
_BESIDES = {
    "snapshot",
    "conversation.changed",
    "conversation.deleted",
    "list.reset",
    "queue.changed",
    "presence",
}


async def test_nothing_that_is_sent_makes_the_server_fail(tmp_path: Path) -> None:
    """Each operation, with requests that fit its description and with some that do not."""
    from tests.server.any_request import try_everything

    async with served(tmp_path, [says("x")], tools=[BUILTIN["basics"]()]) as site:
        id = await site.conversation()
        turn = await site.say("hi", id)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        message = (await site.get(f"/api/conversations/{id}/tree"))["messages"][0]["id"]
        known = {"conversations": id, "turns": turn, "messages": message}
        tried = await asyncio.to_thread(try_everything, site, known)
    assert tried > 30


async def test_the_description_passes_the_published_validator(tmp_path: Path) -> None:
    """F3: that of the version that it says it is of."""
    from openapi_spec_validator import OpenAPIV32SpecValidator

    async with served(tmp_path, []) as site:
        described = await site.get("/api/openapi.json")
    assert described["openapi"].startswith("3.2.")
    OpenAPIV32SpecValidator(described).validate()


def test_every_refusal_is_described_as_a_problem() -> None:
    """Also of a route that answers with plain text."""
    operations = [one for path in description()["paths"].values() for one in path.values()]
    answers = [answer for one in operations for answer in one["responses"].items()]
    kinds = {kind for status, answer in answers if status >= "400" for kind in answer.get("content", ())}
    assert kinds == {"application/problem+json"}


def test_no_property_has_a_title_that_repeats_its_name() -> None:
    schemas = description()["components"]["schemas"].values()
    properties = [one for schema in schemas for one in schema.get("properties", {}).values()]
    assert len(properties) > 100
    assert not [one for one in properties if "title" in one]


def test_what_the_server_sends_has_every_property_and_what_it_takes_need_not() -> None:
    """Only a sentence without a code leaves its code out, and a problem its errors (F3)."""
    schemas = description()["components"]["schemas"]
    sent = schemas["CurrentModel"]
    assert {*sent["required"]} == sent["properties"].keys() - {"said"} == {"name", "note", "reason"}
    assert schemas["ToolCall"]["required"] == [*schemas["ToolCall"]["properties"]]
    assert "required" not in schemas["ConversationChange"]
    assert "errors" in schemas["Problem"]["properties"].keys() - {*schemas["Problem"]["required"]}
    assert "type" in schemas["TurnStart"]["required"]


def test_no_router_is_included_in_another() -> None:
    """FastAPI would build all validators once more, at the first request."""
    assert all(isinstance(route, Route) for route in routes().routes)


def test_every_event_is_described_under_its_type() -> None:
    """E1"""
    schemas = description()["components"]["schemas"]
    of_turns = {event.__dataclass_fields__["type"].default for event in get_args(Event)}
    assert set(schemas["TurnEvent"]["discriminator"]["mapping"]) == of_turns
    in_turns, *besides = schemas["LiveEvent"]["anyOf"]
    assert set(in_turns["allOf"][0]["discriminator"]["mapping"]) == of_turns
    names = [each["$ref"].rpartition("/")[2] for each in besides]
    assert {schemas[name]["properties"]["type"]["const"] for name in names} == _BESIDES
    streams = [
        description()["paths"][path]["get"]["responses"]["200"]["content"]
        for path in ("/api/events", "/api/turns/{id}/events")
    ]
    assert streams == [
        {
            "text/event-stream": {
                "schema": {"type": "string"},
                "itemSchema": {"$ref": f"#/components/schemas/{name}"},
            }
        }
        for name in ("LiveEvent", "TurnEvent")
    ]


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def test_what_the_streams_tell_fits_the_description(tmp_path: Path) -> None:
    """E1: every event has all that the description says is in it."""
    script = [thinks("hm") + says("let me see") + calls("add", a=1, b=2), says("3")]
    async with served(tmp_path, script, tools=[add], allow=[]) as site:
        served_description = await site.get("/api/openapi.json")
        id = await site.conversation()
        async with (
            site.events("/api/events", "other:5") as of_list,
            site.events(f"/api/conversations/{id}/events") as of_conversation,
        ):
            told = [await anext(of_conversation)]  # the snapshot is taken, so later events are not in it
            await site.runtime.store.set_member(id, Member("ada", "reads"))
            await site.post(f"/api/conversations/{id}/typing")
            told += await _up_to(of_conversation, "presence")
            turn = await site.say("go", id)
            asked = await site.question()
            later = await site.say("and then", id, queue=True)
            told += await _up_to(of_conversation, "queue.changed")
            await site.post(f"/api/turns/{later}/cancel", {})
            await site.post(f"/api/questions/{asked['id']}/answer", {"verdict": "allow", "scope": "hour"})
            told += await _up_to(of_conversation, "turn.end")
            of_turn = await site.until(f"/api/turns/{turn}/events", "turn.end")
            await site.ask("DELETE", f"/api/conversations/{id}")
            told += await _up_to(of_list, "conversation.deleted")
    assert {*_BESIDES, "message.added", "call.asked", "reasoning.end"} < {event.type for event in told}
    _check(told, served_description, "LiveEvent")
    _check(of_turn, served_description, "TurnEvent")


async def _up_to(events: AsyncIterator[Received], type: str) -> list[Received]:
    told = []
    async for event in events:
        told.append(event)
        if event.type == type:
            break
    return told


def _check(told: list[Received], description: dict[str, Any], name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
    for event in told:
        assert event.data["type"] == event.type
        Draft202012Validator(schema).validate(event.data)


async def test_the_settings_described_are_those_a_conversation_takes(tmp_path: Path) -> None:
    """R1"""
    async with served(tmp_path, [says("x")]) as site:
        refused = await site.ask("POST", "/api/conversations", {"settings": {"colour": "red"}})
    assert refused.body["detail"].rpartition("Settings: ")[2].split(", ") == list(SETTINGS)
