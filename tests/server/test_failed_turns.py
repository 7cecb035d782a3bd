"""Check that every reader of a failed turn sees the failure, also after later messages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Plugin, Runtime, TurnView
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys
from dragoman.wire.scripted import says
from tests.loopback import Stream, delta, loopback, sse
from tests.server.site import Site, served, serving

pytestmark = pytest.mark.slow


async def shown(site: Site, conversation: str) -> list[tuple[str, list[str]]]:
    """Who, and what: of an error its kind of part."""
    messages = (await site.get(f"/api/conversations/{conversation}/tree"))["messages"]
    return [
        (message["role"], [part.get("text") or part["type"] for part in message["parts"]])
        for message in messages
    ]


async def end_of(site: Site, turn: str) -> Any:
    return (await site.until(f"/api/turns/{turn}/events", "turn.end"))[-1].data


async def test_the_error_stands_after_what_was_said_meanwhile(tmp_path: Path) -> None:
    """The error is at the end of the branch, and a retry starts from there (T8 × T13)."""
    steered = asyncio.Event()
    torn = Stream((sse(delta(content="Hal")), steered), "dies")
    async with loopback(torn, says("Here.")) as provider:
        known = Provider("acme", "Acme", provider.url, local=True)
        models = Models(
            "acme/model", catalog=load_catalog().with_provider(known), keys=Keys(use_keyring=False)
        )
        async with (
            models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
            serving(tmp_path, runtime) as site,
        ):
            id = await site.conversation()
            turn = await site.say("go", id)
            await site.until(f"/api/turns/{turn}/events", "text.delta")
            await site.post(f"/api/turns/{turn}/steer", {"text": "hurry"})
            steered.set()
            assert (await end_of(site, turn))["state"] == "error"
            before = [
                ("user", ["go"]),
                ("assistant", ["Hal", "error"]),
                ("user", ["hurry"]),
                ("assistant", ["error"]),
            ]
            assert await shown(site, id) == before
            *_, failed = (await site.get(f"/api/conversations/{id}/tree"))["messages"]
            again = (await site.post(f"/api/messages/{failed['id']}/rerun"))["turn"]
            assert (await end_of(site, again))["state"] == "completed"
            assert await shown(site, id) == [*before, ("assistant", ["Here."])]


class Broken(Plugin):
    """A plugin that fails before the first request."""

    async def on_turn_start(self, turn: TurnView) -> None:
        raise OSError("no such disk")


async def test_a_turn_that_failed_before_its_first_request_says_so(tmp_path: Path) -> None:
    """T8 × H1"""
    async with served(tmp_path, [says("never")], plugins=[Broken()]) as site:
        id = await site.conversation()
        turn = await site.say("go", id)
        assert "no such disk" in (await end_of(site, turn))["error"]
        assert await shown(site, id) == [("user", ["go"]), ("assistant", ["error"])]


class Late(Plugin):
    """A plugin that fails after the reply is complete."""

    async def on_turn_end(self, turn: TurnView) -> None:
        raise OSError("no such disk")


async def test_what_was_said_before_a_late_failure_is_the_answer(tmp_path: Path) -> None:
    """The error comes after the answer and is not part of it (T8 × H7)."""
    async with served(tmp_path, [says("All done.")], plugins=[Late()]) as site:
        id = await site.conversation()
        ended = await end_of(site, await site.say("go", id))
        assert (ended["state"], ended["text"]) == ("error", "All done.")
        assert await shown(site, id) == [
            ("user", ["go"]),
            ("assistant", ["All done."]),
            ("assistant", ["error"]),
        ]
