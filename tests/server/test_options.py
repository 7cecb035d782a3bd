"""Check over HTTP which options a send, a rerun and a conversation accept, and how the API describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, tool
from dragoman.messages.request import Request
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of
from tests.server.site import Site, description, served

pytestmark = pytest.mark.slow


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Motto(Plugin):
    """Adds a line to every system prompt."""

    async def system_prompt(self, text: str, turn: Any) -> str:
        return f"{text}\nPer aspera."


OWN = {
    "model": "scripted/model",
    "agent": "cook",
    "mode": "off",
    "system": "Speak French.",
    "options": {"temperature": 0.5},
    "disable": ["motto"],
    "tools": {"tools": False},
    "dialect": "xml_tag",
}


async def answered(site: Site, path: str, body: dict[str, Any]) -> Request:
    """The request that this led to."""
    turn = (await site.post(path, body))["turn"]
    await site.until(f"/api/turns/{turn}/events", "turn.end")
    return model_of(site.runtime).requests[-1]


def is_own(request: Request) -> bool:
    return (
        "Speak French." in request.system
        and "You cook." in request.system
        and "Per aspera." not in request.system
        and request.options.get("temperature") == 0.5
        and not request.tools
        and request.dialect == "xml_tag"
    )


async def test_a_send_an_edit_and_a_rerun_take_all_that_a_turn_can_be_given(tmp_path: Path) -> None:
    """A rerun keeps every option that it is not given again (U5, T14)."""
    options: dict[str, Any] = {
        "tools": [add],
        "plugins": [Motto()],
        "agents": [Agent(name="cook", prompt="You cook.")],
    }
    async with served(tmp_path, lambda _: says("ok"), **options) as site:
        id = await site.conversation()
        plain = await answered(site, f"/api/conversations/{id}/turns", {"text": "hi"})
        assert (is_own(plain), "Per aspera." in plain.system, len(plain.tools) > 0) == (False, True, True)
        said, reply = (await site.get(f"/api/conversations/{id}/tree"))["messages"]
        for path, body in (
            (f"/api/conversations/{id}/turns", {"text": "again"}),
            (f"/api/messages/{said['id']}/edit", {"text": "hello"}),
            (f"/api/messages/{reply['id']}/rerun", {}),
        ):
            assert is_own(await answered(site, path, {**body, **OWN})), path
            assert not is_own(await answered(site, path, body)), path
        newest = (await site.get(f"/api/conversations/{id}/tree"))["messages"][-1]["id"]
        own = await answered(site, f"/api/conversations/{id}/turns", {"text": "own", **OWN})
        assert is_own(own)
        last = (await site.get(f"/api/conversations/{id}/tree"))["messages"][-1]
        assert last["id"] != newest
        assert is_own(await answered(site, f"/api/messages/{last['id']}/rerun", {}))
        warm = await answered(site, f"/api/messages/{last['id']}/rerun", {"options": {"temperature": 1}})
        assert (warm.options["temperature"], "Speak French." in warm.system) == (1, True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"mode": "sometimes"}, "'auto', 'ask', 'manual' or 'off'"),
        ({"disable": ["nobody"]}, "Unknown plugin nobody"),
        ({"tools": {"files": "off"}}, "valid boolean"),
        ({"agent": "nobody"}, "nobody"),
        ({"temperature": 1}, "Extra inputs"),
    ],
)
async def test_what_a_turn_cannot_be_given_is_refused_in_words(
    tmp_path: Path, body: dict[str, Any], words: str
) -> None:
    """T4, U5"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        refused = await site.ask("POST", f"/api/conversations/{id}/turns", {"text": "hi", **body})
        assert refused.status in (404, 422)
        assert words in refused.body["detail"]
        assert (await site.get(f"/api/conversations/{id}/tree"))["messages"] == []


async def test_a_conversation_sets_review_rounds_history_and_what_is_private(tmp_path: Path) -> None:
    """P5, T7, R3, U5"""
    script = [calls("add", a=1, b=2), says("Ada's sum is 3."), says("ok")]
    async with served(tmp_path, script, tools=[add]) as site:
        settings = {"review": "always", "max_rounds": 3, "history": 0, "private": {"name": "Ada"}}
        id = (await site.post("/api/conversations", {"settings": settings}))["id"]
        assert (await site.get(f"/api/conversations/{id}"))["settings"] == settings
        turn = await site.say("I am Ada", id)
        question = await site.question()
        assert question["kind"] == "review"
        await site.post(f"/api/questions/{question['id']}/answer", {"verdict": "release"})
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert "Ada" not in str(model_of(site.runtime).requests[0].messages)
        without = {"review": None, "private": None}
        changed = await site.ask("PATCH", f"/api/conversations/{id}", {"settings": without})
        assert changed.body["settings"] == {"max_rounds": 3, "history": 0}
        last = await answered(site, f"/api/conversations/{id}/turns", {"text": "and now?"})
        assert len(last.messages) == 1  # no earlier turn


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"review": "sometimes"}, "'never', 'on_error' or 'always'"),
    ({"review": {"shell": "sometimes"}}, "'never', 'on_error' or 'always'"),
    ({"review": {" ": "always"}}, "a pattern is a tool's name or permission"),
    ({"max_rounds": -1}, "greater than or equal to 0"),
    ({"history": "all"}, "valid integer"),
    ({"private": {"name": ""}}, "Each needs a name and a text"),
    ({"dialect": "sign"}, "Choose one of: auto, native, json_strict"),
    ({"revue": "always"}, "no setting 'revue'"),
]


async def test_what_a_conversation_cannot_be_given_is_refused_in_words(tmp_path: Path) -> None:
    """U5"""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        for settings, words in REFUSED:
            for method, path in (("PATCH", f"/api/conversations/{id}"), ("POST", "/api/conversations")):
                refused = await site.ask(method, path, {"settings": settings})
                assert (refused.status, words in refused.body["detail"]) == (422, True), refused.body
        assert len((await site.get("/api/conversations"))["items"]) == 1


def test_the_description_says_what_can_be_given() -> None:
    """Generated clients know these options (U5)."""
    schemas = description()["components"]["schemas"]
    settings = schemas["ConversationSettings"]
    assert set(settings["properties"]) == {
        "model",
        "agent",
        "mode",
        "system",
        "options",
        "tools",
        "review",
        "max_rounds",
        "continuations",
        "history",
        "private",
        "dialect",
        "workspace",
        "always_tools",
        "metadata",
    }
    assert settings["additionalProperties"] is False
    for body in ("NewTurn", "Edit", "Rerun"):
        assert set(OWN) <= set(schemas[body]["properties"]), body
    assert {"queued", "steering", "turns"} <= set(schemas["TreeView"]["properties"])


async def test_an_answer_is_held_to_a_schema_over_http(tmp_path: Path) -> None:
    """A reply that does not fit goes back to the model, whichever endpoint set the schema. An invalid schema
    is refused before anything is stored (R8)."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with served(tmp_path, [says("three"), says('{"n": 3}')]) as site:
        chat = (await site.post("/api/conversations", {}))["id"]
        path = f"/api/conversations/{chat}/turns"
        request = await answered(site, path, {"text": "go", "output_schema": schema, "history": 0})
        assert request.output is not None
        assert "no JSON value" in str(request.messages[-1].parts)
        wrong = await site.ask("POST", path, {"text": "go", "output_schema": {"type": "thing"}})
        assert wrong.status == 422
        assert "schema" in str(wrong.body)
