"""Check /metrics: Prometheus can read it without a collector, and which other clients can."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.server.app import server
from dragoman.server.auth import Auth, key_hash
from dragoman.telemetry.registry import COST, TOKENS, Registry, prometheus_text
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, runtime_with
from tests.server.site import listening, served


def test_the_text_is_prometheus_own() -> None:
    """Buckets add up, names have their units, and label values are escaped (O1)."""
    meter = Registry()
    for tokens in (3, 100, 10**9):
        meter.record(TOKENS, tokens, (("gen_ai.request.model", 'a"b\n'),))
    meter.record(COST, 0.25, ())
    lines = prometheus_text(meter, {}).splitlines()
    assert "# TYPE gen_ai_client_token_usage_tokens histogram" in lines
    assert 'gen_ai_client_token_usage_tokens_bucket{gen_ai_request_model="a\\"b\\n",le="4"} 1' in lines
    assert 'gen_ai_client_token_usage_tokens_bucket{gen_ai_request_model="a\\"b\\n",le="+Inf"} 3' in lines
    assert 'gen_ai_client_token_usage_tokens_count{gen_ai_request_model="a\\"b\\n"} 3' in lines
    assert "dragoman_cost_usd_total 0.25" in lines


def test_names_that_somebody_makes_up_do_not_fill_the_memory() -> None:
    """O1"""
    meter = Registry()
    for number in range(2000):
        meter.record(COST, 1, (("model", str(number)),))
    lines = [
        line
        for line in prometheus_text(meter, {}).splitlines()
        if line.startswith("dragoman_cost_usd_total{")
    ]
    assert len(lines) == 501
    assert 'dragoman_cost_usd_total{model="_other"} 1500' in lines


@pytest.mark.slow
async def test_whoever_runs_the_server_reads_it_and_nobody_else(tmp_path: Path) -> None:
    """O1, U2"""
    script = [calls("add", a=1, b=2), says("3")]
    async with served(tmp_path, script, tools=[add]) as site:
        turn = await site.say("go")
        await site.runtime.turn(turn).result()
        text = (await site.get("/metrics")).decode()
        labels = '{gen_ai_tool_name="add",dragoman_call_state="completed"}'
        assert f"gen_ai_execute_tool_duration_seconds_count{labels} 1" in text
        assert "dragoman_turns_live 0" in text
        assert (await site.ask("GET", "/metrics", headers={"authorization": ""})).status == 401
        await site.runtime.store.add_person("ada", key_hash("ada's key"), 0.0)
        theirs = await site.ask("GET", "/metrics", headers={"authorization": "Bearer ada's key"})
        assert theirs.status == 403


@pytest.mark.slow
async def test_a_setting_opens_it_to_this_machine_or_closes_it(tmp_path: Path) -> None:
    """O1, U2: not to whom a proxy of this machine lets through."""
    import aiohttp

    async with runtime_with(tmp_path, [says("hi")]) as runtime, aiohttp.ClientSession() as http:
        for reach, status, forwarded in (("loopback", 200, 401), ("off", 404, 404)):
            app = server(runtime, Auth(runtime.store, b"s" * 32), metrics=reach)  # type: ignore[arg-type]
            async with listening(app) as url:
                async with http.get(f"{url}/metrics") as answer:
                    assert answer.status == status
                async with http.get(f"{url}/metrics", headers={"x-forwarded-for": "1.2.3.4"}) as answer:
                    assert answer.status == forwarded
