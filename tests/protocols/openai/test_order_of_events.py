"""Our Responses stream has the events of the vendor's own, in its order.

The recordings are not part of the project: `DRAGOMAN_RECORDINGS` names the folder they are in.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, ScriptedModel
from dragoman.messages.events import Event
from dragoman.messages.request import Request
from dragoman.wire import openai_responses
from tests.protocols.openai.callers import MODEL, client_of
from tests.runtimes import with_tables
from tests.server.site import serving
from tests.wire.replies import decode

pytestmark = pytest.mark.slow
_URL = {"type": "url_citation"}
OURS = ("message", "function_call", "reasoning")  # other items belong to tools that the vendor runs


class Replay(ScriptedModel):
    """Answers with the events of a recorded reply."""

    def __init__(self, events: Sequence[Event]) -> None:
        super().__init__([])
        self.events = events

    async def stream(self, request: Request, reply: str) -> AsyncGenerator[Sequence[Event], None]:
        await asyncio.sleep(0.2)  # its reader listens by then: one that comes late gets whole texts
        for event in self.events:
            await asyncio.sleep(0)
            yield (event,)


def recordings() -> list[Any]:
    folder = os.environ.get("DRAGOMAN_RECORDINGS")
    if not folder:
        reason = "DRAGOMAN_RECORDINGS is not set: there are no recordings of live providers here"
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason))]
    paths = sorted(Path(folder).glob("openai_responses-api_openai_com-*.json"))
    found = [json.loads(path.read_text()) for path in paths]
    return [pytest.param(one, id=one["name"]) for one in found if one["expect"]["error"] is None]


def order(events: Iterable[dict[str, Any]]) -> list[str]:
    """Return the types of item events that both streams have.

    Consecutive deltas count once. A reasoning item without a summary is left out, since none of it is shown,
    and so are sources without an address.
    """
    told = [one for one in events if one.get("annotation", _URL)["type"] == _URL["type"]]
    done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    kept = {item["id"] for item in done if item["type"] in OURS and item.get("summary", True)}
    types = [
        one["type"].removeprefix("response.")
        for one in told
        if "output_index" not in one or (one.get("item_id") or one["item"]["id"]) in kept
    ]
    return [type for type, _ in groupby(types)]


@pytest.mark.parametrize("recording", recordings())
async def test_a_stream_has_the_vendors_events_in_its_order(
    recording: dict[str, Any], tmp_path: Path
) -> None:
    """F2"""
    theirs = [json.loads(line[6:]) for line in recording["sse"].splitlines() if line.startswith("data: {")]
    model = Replay(decode(openai_responses.WIRE(), [recording["sse"].encode()]).events)
    tools = [tool for tool in recording["request"].get("tools", ()) if tool["type"] == "function"]
    runtime = Runtime(with_tables(tmp_path / "chat.db"), model=model, allow=["*"])
    async with runtime, serving(tmp_path, runtime) as site, client_of(site) as ai:
        stream = await ai.responses.create(model=MODEL, input="Go", tools=tools, stream=True)
        ours = [event.model_dump() async for event in stream]
    assert order(ours) == order(theirs)
    opened = [one["item"]["id"] for one in ours if one["type"] == "response.output_item.added"]
    placed = [(one.get("item_id") or one["item"]["id"], one) for one in ours if "output_index" in one]
    assert [one["output_index"] for _, one in placed] == [opened.index(id) for id, _ in placed]
