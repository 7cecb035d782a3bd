"""Ratings of answers, and reports of runs, over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import ScriptedModel
from dragoman.evaluation import case_of_turn, run
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import says
from tests.server.site import served

pytestmark = pytest.mark.slow
ADA = {"authorization": "Bearer hers"}


async def test_a_person_rates_an_answer_changes_their_mind_and_takes_it_back(tmp_path: Path) -> None:
    """Q1"""
    async with served(tmp_path, [says("About 400.")]) as site:
        turn = await site.say("17 * 23?")
        await site.runtime.turn(turn).result()
        conversation = (await site.runtime.store.turn(turn)).conversation
        path = f"/api/turns/{turn}/rating"
        for rating in ({"value": "good"}, {"value": "bad", "note": "not exact"}):
            assert (await site.ask("PUT", path, rating)).status == 200
        (shown,) = await site.get(f"/api/conversations/{conversation}/ratings")
        assert shown == {"turn": turn, "value": "bad", "note": "not exact"}
        assert (await site.ask("PUT", path, {"value": "awful"})).status == 422
        assert (await site.ask("DELETE", path)).status == 204
        assert await site.runtime.store.ratings() == []


async def test_the_admin_reads_the_runs_of_the_workspace_and_nobody_else(tmp_path: Path) -> None:
    """Q3, V1: a report holds conversations of all users."""
    work = tmp_path / "work"
    work.mkdir()
    async with served(tmp_path, [says("About 400.")], workspace=work) as site:
        turn = await site.say("17 * 23?")
        await site.runtime.turn(turn).result()
        case = await case_of_turn(site.runtime, turn)
        models = {"same": ScriptedModel([says("About 400.")]), "other": ScriptedModel([says("391")])}
        await run([case], models=models, folder=work / "evals" / "runs", name="first")
        (line,) = await site.get("/api/evaluations")
        assert line["name"] == "first"
        shown = await site.get("/api/evaluations/first")
        assert [one["variant"] for one in shown["variants"]] == ["same", "other"]
        assert shown["cases"][0]["total"] == [1, 1]
        full = await site.get(f"/api/evaluations/first/cases/{case.id}")
        assert full["recorded"]["answered"]["text"] == "About 400."
        assert [one["answered"]["text"] for one in full["answers"]] == ["About 400.", "391"]
        for place in ("second", "first/cases/none", "..%2F..%2Fwork"):
            assert (await site.ask("GET", f"/api/evaluations/{place}")).status in {404, 422}
        await site.runtime.store.add_person("ada", key_hash("hers"), 0.0)
        for place in ("", "/first", f"/first/cases/{case.id}"):
            refused = await site.ask("GET", f"/api/evaluations{place}", headers=ADA)
            assert (refused.status, refused.body["code"]) == (403, "evaluation.not_yours")
