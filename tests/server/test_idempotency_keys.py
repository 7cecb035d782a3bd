"""`Idempotency-Key`: a request that comes again joins the turn it began, in each protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.wire.scripted import says
from tests.patience import eventually
from tests.server.site import Site, served

pytestmark = pytest.mark.slow
KEY = {"idempotency-key": "k"}
SCRIPT = [says("one"), says("two"), says("three")]


async def test_a_send_an_edit_and_a_rerun_are_begun_once(tmp_path: Path) -> None:
    """The key also holds for two requests at the same moment. Another body or another address is refused (T4
    and T10)."""
    async with served(tmp_path, SCRIPT) as site:
        chat = (await site.ask("POST", "/api/conversations", {})).body["id"]
        paths: list[tuple[str, dict[str, Any]]] = [(f"/api/conversations/{chat}/turns", {"text": "Hi"})]
        for number, name in enumerate(("send", "edit", "rerun"), 1):
            path, body = paths[-1]
            asked = [site.ask("POST", path, body, headers={"idempotency-key": name}) for _ in range(2)]
            both = await asyncio.gather(*asked)
            assert [one.status for one in both] == [202, 202], both
            assert both[0].body["turn"] == both[1].body["turn"]
            await eventually(lambda: not [*site.runtime.bus.turns()])
            assert (await site.ask("POST", path, body, headers={"idempotency-key": name})).body == both[
                0
            ].body
            assert len(await site.runtime.store.turns(chat)) == number
            other = await site.ask("POST", path, {**body, "system": "x"}, headers={"idempotency-key": name})
            assert (other.status, other.body["code"]) == (422, "key.reused")
            assert "Another send used" in other.body["detail"]
            message = both[0].body["message"]
            paths.append((f"/api/messages/{message}/{'edit' if number == 1 else 'rerun'}", {"text": "Ho"}))
            if number == 2:
                paths[-1] = (paths[-1][0], {})


def _ai_sdk(text: str) -> dict[str, Any]:
    said = {"id": f"m-{text}", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": "chat", "trigger": "submit-message", "messages": [said]}


def _ag_ui(text: str) -> dict[str, Any]:
    said = {"id": f"m-{text}", "role": "user", "content": text}
    return {"threadId": "chat", "runId": f"run-{text}", "messages": [said], "tools": [], "context": []}


async def _text(site: Site, path: str, body: dict[str, Any]) -> tuple[int, str]:
    answer = await site.ask("POST", path, body, headers=KEY)
    return answer.status, str(answer.body)


@pytest.mark.parametrize(("path", "body"), [("/api/ai-sdk/chat", _ai_sdk), ("/api/ag-ui", _ag_ui)])
async def test_foreign_protocols_join_by_the_key(tmp_path: Path, path: str, body: Any) -> None:
    """The key also finds a cancelled turn, which would otherwise start again (F1)."""
    async with served(tmp_path, [says("one"), says("two")]) as site:
        status, first = await _text(site, path, body("Hi"))
        assert (status, "one" in first) == (200, True), first
        status, again = await _text(site, path, body("Hi"))
        assert (status, "one" in again) == (200, True), again
        assert len(await site.runtime.store.turns((await site.runtime.conversations())[0].id)) == 1
        status, other = await _text(site, path, body("Ho"))
        assert (status, "Another send used" in other) == (422, True), other
