"""Check the API mounted in another application, with that application's login and path (U5)."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from fastapi import FastAPI

from dragoman.server.app import api, everybody_is_local
from dragoman.server.shapes import CurrentModel
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with
from tests.server.site import listening

pytestmark = pytest.mark.slow


async def test_the_api_works_where_it_is_mounted(tmp_path: Path) -> None:
    """U5"""
    outer, model = FastAPI(), CurrentModel("scripted/model", "a note")
    async with runtime_with(tmp_path, [says("hello")]) as runtime:
        outer.mount("/chat", api(runtime, who=everybody_is_local(), model=model))
        async with listening(outer) as url, aiohttp.ClientSession(f"{url}/chat/") as http:
            async with http.post("api/conversations", json={}) as made:
                id = (await made.json())["id"]
            async with http.post(f"api/conversations/{id}/turns", json={"text": "hi"}) as begun:
                turn = (await begun.json())["turn"]
            async with http.get(f"api/turns/{turn}/events") as events:
                assert "turn.end" in await events.text()
            async with http.get("api/me") as me:
                known = await me.json()
                assert (known["user"], known["model"]["note"]) == ("local", "a note")
