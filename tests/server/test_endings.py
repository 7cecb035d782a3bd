"""Check over the API how replies end and which files are accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from tests.loopback import Script, loopback
from tests.server.site import Site, serving
from tests.wire.endings.replies import blocked, gemini

pytestmark = pytest.mark.slow

RAW = {"content-type": "application/octet-stream"}


@asynccontextmanager
async def site_of(folder: Path, *script: Script) -> AsyncIterator[Site]:
    async with loopback(*script) as provider:
        known = Provider("acme", "Acme", provider.url, wire="gemini", local=True)
        models = Models(
            "acme/model",
            catalog=load_catalog().with_provider(known),
            keys=Keys(use_keyring=False),
        )
        async with (
            models,
            Runtime(folder / "chat.db", model=models) as runtime,
            serving(folder, runtime) as site,
        ):
            yield site


async def talk(site: Site, said: Any) -> str:
    id: str = (await site.post("/api/conversations", {}))["id"]
    turn = (await site.post(f"/api/conversations/{id}/turns", said))["turn"]
    received = await site.until(f"/api/turns/{turn}/events", "turn.end")
    assert received[-1].data["finish"]
    return id


async def test_how_a_reply_ended_is_shown_also_after_export_and_import(tmp_path: Path) -> None:
    """T8, S1: with the provider's own word for it."""
    async with site_of(tmp_path, gemini("Half", "SAFETY")) as site:
        id = await talk(site, {"text": "Hi"})
        copy = await site.post("/api/import", await site.get(f"/api/conversations/{id}/export"))
        for one in (id, copy["id"]):
            (_, reply) = (await site.get(f"/api/conversations/{one}/tree"))["messages"]
            assert (reply["finish"], reply["metadata"]["reason"]) == ("safety", "SAFETY")
            text = await site.get(f"/api/conversations/{one}/export?format=markdown")
            assert b"safety filter" in text


async def test_a_question_that_was_not_even_read_has_a_reply_that_says_so(tmp_path: Path) -> None:
    """T8: it has no parts, and is there after a reload and an import."""
    async with site_of(tmp_path, blocked("JAILBREAK")) as site:
        id = await talk(site, {"text": "Hi"})
        copy = await site.post("/api/import", await site.get(f"/api/conversations/{id}/export"))
        for one in (id, copy["id"]):
            (_, reply) = (await site.get(f"/api/conversations/{one}/tree"))["messages"]
            assert (reply["finish"], reply["parts"]) == ("safety", [])


async def test_a_file_that_cannot_be_taken_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """The server answers 422 and stores nothing (M2)."""
    async with site_of(tmp_path, gemini("Hello.")) as site:
        part = await site.post("/api/files?type=image/bmp&name=cat.bmp", b"BM", headers=RAW)
        id = (await site.post("/api/conversations", {}))["id"]
        answer = await site.ask("POST", f"/api/conversations/{id}/turns", {"parts": [part]})
        assert answer.status == 422
        assert "PNG or JPEG" in answer.body["detail"]
        assert (await site.get(f"/api/conversations/{id}/tree"))["messages"] == []


async def test_a_conversation_says_how_often_a_cut_reply_goes_on(tmp_path: Path) -> None:
    """H10"""
    async with site_of(tmp_path, gemini("and ", "MAX_TOKENS")) as site:
        id = (await site.post("/api/conversations", {"settings": {"continuations": 1}}))["id"]
        turn = (await site.post(f"/api/conversations/{id}/turns", {"text": "Go"}))["turn"]
        received = await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (received[-1].data["text"], received[-1].data["finish"]) == ("and and ", "length")
