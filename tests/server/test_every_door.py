"""Send hostile values through every entry point and check that the store can be read, exported and
deleted."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from pydantic import BaseModel

from dragoman import Plugin, Runtime, client_tool, tool
from dragoman.messages.fold import Appending
from dragoman.messages.questions import Rule
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.tools.mcp.source import McpSource
from dragoman.turn.view import TurnView
from tests.loopback import Body, Reply, call_piece, delta, loopback, stream
from tests.patience import PATIENCE
from tests.server.hostile_values import hostile
from tests.server.site import Answer, Site, serving
from tests.sweeps import examples
from tests.tools.mcp.rig import raw

pytestmark = pytest.mark.slow

# One value for each entry point. `make fuzz` tries ten thousand.
VALUES = int(os.environ.get("DRAGOMAN_FUZZ", examples(21, 480)))
SEED = int(os.environ.get("DRAGOMAN_FUZZ_SEED", "1"))
AT_ONCE = 8

_now: dict[str, str] = {}  # by the message that names it: the value that a turn is to meet


def value_of(said: str) -> str:
    return _now[re.findall(r"value-\d+", said)[0]]


def answer(body: Body) -> Reply:
    """Return a call or an odd reply, as the last message asks."""
    texts = [str(message.get("content")) for message in body["messages"] if message["role"] == "user"]
    said = next((text for text in reversed(texts) if "value-" in text), "")
    if not said or body["messages"][-1]["role"] == "tool" or "tools" not in body:
        return stream(delta(content="done"))
    value = value_of(said)
    match said.partition(" ")[0]:
        case "arguments":
            return stream(call_piece("say", f'{{"it":{value}}}', index=0, id="c"), finish="tool_calls")
        case "raw":  # no JSON, where JSON should be
            return stream(call_piece("say", value, index=0, id="c"), finish="tool_calls")
        case "usage":
            frame = f'data: {{"choices":[],"usage":{{"prompt_tokens":{value},"completion_tokens":1}}}}\n\n'
            return stream(delta(content="hi"), frame.encode())
        case "text":
            frame = f'data: {{"choices":[{{"index":0,"delta":{{"content":{value}}}}}]}}\n\n'
            return stream(frame.encode(), delta(content="."))
        case "field":
            frame = f'data: {{"choices":[{{"index":0,"delta":{{"citations":{value}}}}}]}}\n\n'
            return stream(frame.encode(), delta(content="."))
        case "mcp":
            arguments = json.dumps({"text": value})
            return stream(call_piece("it_echo", arguments, index=0, id="c"), finish="tool_calls")
        case name if name in ("give", "report", "client", "ask"):
            arguments = json.dumps({"name": said})
            return stream(call_piece(name, arguments, index=0, id="c"), finish="tool_calls")
    return stream(delta(content="hello"))


@tool
def say(it: Any) -> str:
    """Say it."""
    return repr(it)


@tool
def give(name: str) -> Any:
    """Return a value."""
    return json.loads(value_of(name))


@tool
def report(name: str) -> Any:
    """Report a value on the way."""
    yield json.loads(value_of(name))
    return "done"


@tool(permission="asks")
def ask(name: str) -> str:
    """Needs a person."""
    return "asked"


class Named(BaseModel):
    name: str


class Marks(Plugin):
    """A plugin that puts a value into the metadata of each appended message."""

    async def on_message_append(self, appending: Appending, turn: TurnView) -> None:
        said = turn.path[-1].text if turn.path else ""
        if said.startswith("plugin ") and "value-" in said:
            appending.message.metadata["it"] = json.loads(value_of(said))


@asynccontextmanager
async def door(folder: Path, url: str) -> AsyncIterator[Site]:
    catalog = load_catalog().with_provider(Provider("acme", "Acme", url, local=True))
    keys = Keys(environment={}, use_keyring=False)
    source = McpSource("it", raw("value", timeout=2.0), patience=PATIENCE)
    async with (
        Models("acme/model", catalog=catalog, keys=keys) as models,
        Runtime(
            folder / "chat.db",
            model=models,
            tools=[say, give, report, ask, client_tool("client", "Runs in the client.", Named), source],
            plugins=[Marks()],
            rules=[Rule("*", "*", "allow"), Rule("asks", "*", "ask")],
        ) as runtime,
        serving(folder, runtime) as site,
    ):
        yield site


# ── the doors ─────────────────────────────────────────────────────────────────────────────────────


async def converse(site: Site, how: str, value: str, **more: str) -> None:
    """Run a turn with the value to its end, with any outcome."""
    name = f"value-{len(_now)}"
    _now[name] = value
    fields = "".join(f',"{key}":{text}' for key, text in more.items())
    id = (await fine(site, "POST", "/api/conversations", "{}")).body["id"]
    begun = await fine(site, "POST", f"/api/conversations/{id}/turns", f'{{"text":"{how} {name}"{fields}}}')
    if begun.status != 202:
        return
    turn = begun.body["turn"]
    async with in_time(how, value):
        while (await fine(site, "GET", f"/api/turns/{turn}")).body["live"]:
            for question in (await fine(site, "GET", f"/api/questions?conversation={id}")).body["items"]:
                await fine(site, "POST", f"/api/questions/{question['id']}/answer", decided(value))
                await fine(site, "POST", f"/api/questions/{question['id']}/answer", '{"verdict":"allow"}')
            if how == "client":
                await deliver(site, id, value)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def in_time(how: str, value: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    except TimeoutError as error:
        raise AssertionError(f"a turn hangs: {how}, {value[:300]}") from error


def decided(value: str) -> str:
    return f'{{"verdict":"allow","arguments":{{"name":{value}}},"value":{value},"reason":"x"}}'


async def deliver(site: Site, conversation: str, value: str) -> None:
    tree = (await fine(site, "GET", f"/api/conversations/{conversation}/tree")).body
    for part in (part for message in tree["messages"] for part in message["parts"]):
        if part["type"] == "call" and part["state"] == "running":
            await fine(site, "POST", f"/api/calls/{part['id']}/result", f'{{"value":{value}}}')
            await fine(site, "POST", f"/api/calls/{part['id']}/result", '{"text":"else"}')


async def settings(site: Site, value: str) -> None:
    id = (await fine(site, "POST", "/api/conversations", "{}")).body["id"]
    for name in ("options", "system", "private", "tools", "max_rounds", "model"):
        body = f'{{"settings":{{"{name}":{value}}}}}'
        await fine(site, "PATCH", f"/api/conversations/{id}", body)
        await fine(site, "POST", "/api/conversations", body)
    await fine(site, "PATCH", f"/api/conversations/{id}", f'{{"settings":{{"options":{{"a":{value}}}}}}}')
    await fine(site, "PATCH", f"/api/conversations/{id}", f'{{"title":{value}}}')


async def ask_as_openai(site: Site, value: str) -> None:
    """Send the value through the OpenAI API: as the message, as history and as feedback on it."""
    chat, responses = '{"model":"acme/model","messages":', '{"model":"acme/model","input":'
    before = f'{{"role":"assistant","content":{value}}},{{"role":"user","content":"go on"}}'
    for path, body in (
        ("chat/completions", f'{chat}[{{"role":"user","content":{value}}}]}}'),
        ("chat/completions", f'{chat}[{{"role":"user","content":"x"}},{before}]}}'),
        ("responses", f'{responses}{value},"metadata":{{"a":{value}}}}}'),
        ("responses", f'{responses}"x","instructions":{value},"temperature":{value}}}'),
        ("responses", f'{responses}[{{"type":"function_call_output","call_id":{value},"output":{value}}}]}}'),
    ):
        await fine(site, "POST", f"/v1/{path}", body)


async def bring(site: Site, value: str, random: Random) -> None:
    """An export with one of its values replaced."""
    whole = json.dumps(EXPORT)
    first, last = random.choice([found.span() for found in re.finditer(VALUE, whole)])
    imported = await fine(site, "POST", "/api/import", whole[:first] + value + whole[last:])
    if imported.status == 201:
        id = imported.body["id"]
        begun = await fine(site, "POST", f"/api/conversations/{id}/turns", '{"text":"go on"}')
        if begun.status == 202:
            await ended(site, begun.body["turn"])


async def speak(site: Site, path: str, request: Any, value: str, random: Random) -> None:
    """Send a request of a foreign protocol with one of its values replaced. Cancel turns that wait for a
    client that does not return."""
    whole = json.dumps(request).replace("NAME", str(random.random()))
    first, last = random.choice([found.span() for found in re.finditer(VALUE, whole)])
    async with in_time(path, value):
        await fine(site, "POST", path, whole[:first] + value + whole[last:])


async def call_off(site: Site) -> None:
    for row in await site.runtime.store.live_turns():
        await fine(site, "POST", f"/api/turns/{row.id}/cancel", "{}")
        await ended(site, row.id)


async def ended(site: Site, turn: str) -> None:
    async with in_time("import", ""):
        while (await fine(site, "GET", f"/api/turns/{turn}")).body["live"]:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.01)


async def fine(site: Site, method: str, path: str, body: str | None = None) -> Answer:
    """Return the answer after checking that it is not a server error."""
    sent = None if body is None else body.encode("utf-8", "surrogatepass")
    try:
        answered = await site.ask(method, path, sent)
    except aiohttp.ServerDisconnectedError:  # an idle connection that the server gave up at this very moment
        answered = await site.ask(method, path, sent)
    assert answered.status < 500, (answered.status, method, path, (body or "")[:300], answered.body)
    return answered


VALUE = r'(?<=: )("[^"]*"|[\d.]+|null|true|false|\{\}|\[\])'  # of JSON, one that holds no other
EXPORT: dict[str, Any] = {}
AI_SDK: dict[str, Any] = {
    "id": "NAME",
    "messages": [
        {"id": "a", "role": "user", "parts": [{"type": "text", "text": "hello"}]},
        {"id": "b", "role": "assistant", "parts": [{"type": "text", "text": "hello to you"}]},
        {
            "id": "c",
            "role": "user",
            "parts": [
                {"type": "text", "text": "and?"},
                {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGVsbG8="},
            ],
        },
    ],
    "trigger": "submit-message",
    "messageId": None,
    "system": "be brief",
    "options": {"temperature": 0.5},
    "tools": {"where": {"description": "where", "parameters": {"type": "object", "properties": {}}}},
}
AG_UI: dict[str, Any] = {
    "threadId": "NAME",
    "runId": "run",
    "messages": [
        {"id": "a", "role": "user", "content": "hello"},
        {"id": "b", "role": "assistant", "content": "hello to you"},
        {"id": "c", "role": "user", "content": [{"type": "text", "text": "and?"}]},
    ],
    "tools": [{"name": "where", "description": "where", "parameters": {"type": "object"}}],
    "context": [{"description": "place", "value": "Rome"}],
    "resume": [],
}
TURNS = ("arguments", "raw", "usage", "text", "field", "mcp", "give", "report", "client", "ask", "plugin")


def doors(site: Site, random: Random) -> list[Callable[[str], Awaitable[None]]]:
    met: list[Callable[[str], Awaitable[None]]] = [
        lambda value, how=how: converse(site, how, value)  # type: ignore[misc]  # a default binds it
        for how in TURNS
    ]
    return [
        *met,
        lambda value: converse(site, "options", value, options=f'{{"a":{value}}}'),
        lambda value: converse(
            site, "options", value, output_schema=f'{{"type":"object","properties":{{"a":{value}}}}}'
        ),
        lambda value: converse(site, "parts", value, parts=f'[{{"type":"text","text":{value}}}]'),
        lambda value: converse(site, "switches", value, tools=value, system=value),
        lambda value: converse(
            site,
            "options",
            value,
            client_tools=f'[{{"name":"where","description":"where","parameters":{value}}}]',
        ),
        lambda value: settings(site, value),
        lambda value: ask_as_openai(site, value),
        lambda value: bring(site, value, random),
        lambda value: speak(site, "/api/ai-sdk/chat", AI_SDK, value, random),
        lambda value: speak(site, "/api/ag-ui", AG_UI, value, random),
    ]


# ── and after ─────────────────────────────────────────────────────────────────────────────────────


async def listed(site: Site) -> list[str]:
    ids: list[str] = []
    before = ""
    while True:
        page = (await fine(site, "GET", f"/api/conversations?limit=100{before}")).body
        ids += [one["id"] for one in page["items"]]
        if not page.get("next"):
            return ids
        before = f"&before={page['next']}"


async def read_and_delete(site: Site, id: str) -> None:
    tree = await fine(site, "GET", f"/api/conversations/{id}/tree")
    assert tree.status == 200
    assert tree.body["turns"] == []  # none is stuck
    assert (await fine(site, "GET", f"/api/conversations/{id}/export?format=markdown")).status == 200
    exported = await fine(site, "GET", f"/api/conversations/{id}/export?format=json")
    assert exported.status == 200
    again = await fine(site, "POST", "/api/import", json.dumps(exported.body))
    assert again.status == 201, again.body
    for one in (id, again.body["id"]):
        assert (await fine(site, "DELETE", f"/api/conversations/{one}")).status == 204


async def test_hostile_values_through_every_door_leave_a_store_that_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No value causes a server error or a turn that hangs. After a restart, everything can be listed, opened,
    exported, imported and deleted (S1, S3, U2)."""
    random = Random(SEED)
    async with loopback(answer) as model:
        async with door(tmp_path, model.url) as site:
            id = await site.conversation()
            await ended(site, await site.say("hello", id))
            EXPORT.update(await site.get(f"/api/conversations/{id}/export?format=json"))
            ways = doors(site, random)
            work = iter([(ways[place % len(ways)], hostile(random)) for place in range(VALUES)])

            async def worker() -> None:
                for way, value in work:
                    await way(value)

            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(worker())
            await call_off(site)
        async with door(tmp_path, model.url) as site:
            ids = await listed(site)
            assert len(ids) > VALUES // 2
            assert (await fine(site, "GET", "/api/usage")).status == 200
            assert (await fine(site, "GET", "/api/conversations?search=value")).status == 200
            for one in ids:
                await read_and_delete(site, one)
            assert await listed(site) == []
    own = [record for record in caplog.records if record.name.startswith("dragoman")]
    assert [record.getMessage() for record in own if record.levelno >= logging.ERROR] == []
