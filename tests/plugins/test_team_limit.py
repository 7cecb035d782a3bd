"""Check the daily limit that the members of a team share (T7, O3)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman import ProviderError
from dragoman.errors import ConfigError
from dragoman.messages.usage import Usage
from dragoman.plugins.limits import Team
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with
from tests.server.oidc_scene import Browser, provider
from tests.server.site import served


async def test_members_share_a_limit_and_others_are_not_touched(tmp_path: Path) -> None:
    """Usage of one member reduces the rest for the others (T7, O3)."""
    teams = {"lab": Team(members=frozenset({"ada", "bob"}), max_daily_cost=1.0)}
    reply = says("hi", usage=Usage(60, 40, cost=0.6))
    async with runtime_with(tmp_path, lambda request: reply, teams=teams) as runtime:

        async def say(person: str) -> str:
            conversation = await runtime.conversation(user=person)
            return (await (await conversation.send("go")).result()).text

        assert [await say(person) for person in ("ada", "bob", "eve", "eve")] == ["hi"] * 4
        for person in ("ada", "bob"):
            with pytest.raises(ProviderError, match=r"\$1 a day of team lab"):
                await say(person)
        assert await say("eve") == "hi"


@pytest.mark.slow
async def test_the_groups_of_a_provider_are_those_of_the_last_sign_in(tmp_path: Path) -> None:
    """Groups that are not teams are not stored (V4, O3)."""
    teams = {"lab": Team(max_daily_tokens=10), "ops": Team()}
    reply = says("hi", usage=Usage(60, 40))
    async with (
        provider() as there,
        served(tmp_path, lambda request: reply, teams=teams, oidc=there.settings(admin_group="ops")) as site,
    ):
        there.claims = {"groups": ["lab", "others"]}
        ada = Browser(site)
        await ada.sign_in(there)
        store = site.runtime.store
        assert [await store.members_of(name) for name in ("lab", "ops", "others")] == [{"ada"}, set(), set()]
        conversation = (await ada.ask("POST", "/api/conversations", {})).body["id"]
        for outcome in ("completed", "error"):
            path = f"/api/conversations/{conversation}/turns"
            turn = (await ada.ask("POST", path, {"text": "go"})).body["turn"]
            while (await store.turn(turn)).live:  # noqa: ASYNC110 - its runner tells the store
                await asyncio.sleep(0.01)
            assert (await store.turn(turn)).state == outcome
        assert (await ada.ask("GET", "/api/usage", params={"team": "lab"})).status == 403
        there.claims = {"groups": ["ops"]}
        await ada.sign_in(there)
        assert [await store.members_of(name) for name in ("lab", "ops")] == [set(), {"ada"}]
        for name, replies in (("ops", [1]), ("lab", [])):
            used = await ada.ask("GET", "/api/usage", params={"team": name, "by": "person"})
            assert [one["replies"] for one in used.body["rows"]] == replies
        assert (await ada.ask("GET", "/api/usage", params={"team": "others"})).status == 404


async def test_a_limit_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Team 'lab': max_daily_cost is a number above 0"):
        runtime_with(tmp_path, [], teams={"lab": Team(max_daily_cost=-1.0)})
