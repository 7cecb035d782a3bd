"""Check logs: one line for each outcome, as text or JSON, with turn and conversation, without secrets or
contents."""

from __future__ import annotations

import io
import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import ProviderError, tool
from dragoman.errors import ConfigError
from dragoman.telemetry.logs import configure_logs
from dragoman.trace_context import context_of_turn, within
from dragoman.wire.scripted import calls, fails, says
from tests.cli.program import program
from tests.runtimes import runtime_with
from tests.telemetry.collector import collecting, telemetry

KEY = "sk-live-0123456789abcdef"


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    names = ("", "dragoman", "dragoman.turn", "dragoman.store")
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)


async def _lines(folder: Path, form: Any, *levels: str, script: Any = None) -> list[str]:
    stream = io.StringIO()
    configure_logs(form, levels, stream)
    lines = script or [calls("delete", path=f"/srv/{KEY}"), says("The file is gone.")]
    ticks = itertools.count(1_800_000_000.0, 0.12345)
    async with runtime_with(folder, lines, tools=[delete], clock=lambda: next(ticks)) as runtime:
        turn = await runtime.send("Please remove the report.")
        try:
            await turn.result()
        except ProviderError:
            pass
    return stream.getvalue().splitlines()


async def test_each_outcome_is_one_json_line_with_its_turn(tmp_path: Path) -> None:
    """O2"""
    call, turn = (json.loads(line) for line in await _lines(tmp_path, "json"))
    assert (call["message"], call["tool"], call["state"]) == ("call completed", "delete", "completed")
    assert (turn["message"], turn["state"], turn["steps"], turn["calls"]) == (
        "turn completed",
        "completed",
        2,
        1,
    )
    assert (turn["input_tokens"], turn["output_tokens"]) == (20, 10)
    for seconds in (call["seconds"], turn["seconds"]):
        assert 0.123 <= seconds == round(seconds, 3)
    assert "cost" not in turn  # not known, which is not free
    assert call["turn"] == turn["turn"]
    assert call["conversation"] == turn["conversation"]
    assert turn["logger"] == "dragoman.turn"


async def test_as_text_it_says_the_same(tmp_path: Path) -> None:
    """O2"""
    call, turn = await _lines(tmp_path, "text")
    assert " INFO turn: call completed (" in call
    assert "state completed" in turn


@pytest.mark.parametrize("form", ["text", "json"])
async def test_neither_contents_nor_secrets_are_logged(tmp_path: Path, form: str) -> None:
    """O2, U2"""
    script = [
        calls("delete", path=f"/srv/{KEY}"),
        fails(ProviderError(f"bad key {KEY} for 'remove the report'")),
    ]
    whole = "\n".join(await _lines(tmp_path, form, script=script))
    assert "turn error" in whole
    for word in ("remove the report", "/srv/", "is gone", KEY):
        assert word not in whole


@pytest.mark.slow
async def test_lines_name_the_trace_they_belong_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line leads its reader to the spans (O1, O2)."""
    stream = io.StringIO()
    configure_logs("json", (), stream)
    async with collecting(monkeypatch) as collector:
        script = [calls("delete", path="a"), says("ok")]
        async with runtime_with(tmp_path, script, tools=[delete], telemetry=telemetry()) as runtime:
            await (await runtime.send("go")).result()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    ours = [line for line in lines if line["logger"] == "dragoman.turn"]
    assert {line["trace_id"] for line in ours} == {collector.one("invoke_agent").trace_id.hex()}
    assert len(ours) == 2


def test_as_text_a_line_names_its_trace_too() -> None:
    """O2"""
    stream = io.StringIO()
    configure_logs("text", (), stream)
    context = context_of_turn("turn_1", None)
    with within(context):
        logging.getLogger("dragoman.turn").info("turn completed", extra={"turn": "turn_1"})
    assert stream.getvalue().endswith(f"turn completed (turn turn_1, trace {context.trace})\n")


async def test_levels_are_set_by_room(tmp_path: Path) -> None:
    """O2"""
    assert await _lines(tmp_path, "json", "turn=warning") == []
    assert await _lines(tmp_path, None, "error") == []


def test_what_goes_wrong_is_logged_without_the_key() -> None:
    """O2, U2: in the message, and in what is under the error."""
    stream = io.StringIO()
    configure_logs("json", (), stream)
    try:
        raise ValueError(f"Authorization: Bearer {KEY}")
    except ValueError:
        logging.getLogger("dragoman.server").exception(
            "it said %s", KEY, extra={"url": f"https://x/?key={KEY}"}
        )
    line = json.loads(stream.getvalue())
    assert "ValueError" in line["exception"]
    assert KEY not in stream.getvalue()


@pytest.mark.parametrize("wrong", ["loud", "kitchen=info", "store=loud"])
def test_a_level_or_room_that_is_none_is_said(wrong: str) -> None:
    """O2"""
    with pytest.raises(ConfigError, match="--log-level"):
        configure_logs("text", [wrong])


@pytest.mark.slow
async def test_the_command_line_takes_it(tmp_path: Path) -> None:
    """O2: on standard error, so that the answer stands alone."""
    wrong = await program("run", "--log", "xml", "hello", folder=tmp_path)
    assert (wrong.status, "text or json" in wrong.err) == (2, True)
