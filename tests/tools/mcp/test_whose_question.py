"""U2: only the user whose call it is receives a question of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest

from dragoman.tools.mcp.elicitation import LET, Elicitation
from dragoman.tools.tool import ToolContext
from tests.tools.bench import Bench

NOT_TOLD: Any = None  # over standard input and output, older servers do not say which call they ask for
FORM = types.ElicitRequestFormParams(message="Your name?", requested_schema={"type": "object"})
SAMPLE = types.CreateMessageRequestParams(
    messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hm?"))],
    max_tokens=5,
)


async def _questions(people: Sequence[str]) -> list[int]:
    """How many each of these gets, while a call of each runs, in the order in which these began."""
    elicitation, over = Elicitation("it", None), asyncio.Event()
    benches = [Bench(answers=[{"name": "x"}, LET]) for _ in people]

    async def call(context: ToolContext) -> None:
        with elicitation.serving(context):
            await over.wait()

    async with asyncio.TaskGroup() as group:
        for person, bench in zip(people, benches, strict=True):
            group.create_task(call(replace(bench.context(), user=person, call=f"call of {person}")))
            await asyncio.sleep(0)
        await elicitation.elicit(NOT_TOLD, FORM)
        await elicitation.sample(NOT_TOLD, SAMPLE)
        over.set()
    return [len(bench.questions) for bench in benches]


@pytest.mark.parametrize(
    ("people", "asked"), [(["ada"], [2]), (["ada", "ada"], [0, 2]), (["ada", "bob"], [0, 0])]
)
async def test_nobody_is_asked_what_may_be_for_somebody_else(people: list[str], asked: list[int]) -> None:
    """U2 x elicitation, sampling: of one person's calls, the one that began last."""
    assert await _questions(people) == asked


async def test_the_host_that_is_named_is_the_one_that_a_browser_would_open() -> None:
    """Text in a server's address that looks like a reference in the settings is not one (U2 x
    elicitation)."""
    bench, elicitation = Bench(answers=[]), Elicitation("it", None)
    for url in ("https://${@evil.example/}@bank.example/", "https://${HOST}/pay"):
        params = types.ElicitRequestURLParams(message="Pay.", url=url, elicitation_id="1")
        with elicitation.serving(bench.context()):
            answer = await elicitation.elicit(NOT_TOLD, params)
        assert isinstance(answer, types.ElicitResult)
        assert (answer.action, bench.questions) == ("decline", [])
