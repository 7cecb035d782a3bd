"""C8: what a server learns from a person: an answer that fits, a visit, or that nobody answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from pydantic import JsonValue

from dragoman.errors import ToolFailed
from dragoman.tools.mcp.elicitation import DO_NOT, LET, NOT_OPENED, OPENED, Elicitation
from tests.tools.bench import Bench

NOT_TOLD: Any = None  # a server need not say which call it asks for
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "day": {"default": "today"}, "x": 1}}
FORM = types.ElicitRequestFormParams(message="Who?", requested_schema=SCHEMA)


def page(url: str = "https://example.com/pay") -> types.ElicitRequestURLParams:
    return types.ElicitRequestURLParams(message="Pay.", url=url, elicitation_id="1")


@pytest.mark.parametrize(
    ("asked", "answer", "action", "content"),
    [
        (FORM, {"name": "Ada"}, "accept", {"name": "Ada", "day": "today"}),
        (FORM, {"name": "Ada", "day": "Monday"}, "accept", {"name": "Ada", "day": "Monday"}),
        (FORM, "Ada", "decline", None),
        (page(), OPENED, "accept", None),
        (page(), NOT_OPENED, "decline", None),
    ],
)
async def test_an_answer_is_passed_on(asked: Any, answer: JsonValue, action: str, content: Any) -> None:
    """Fields that were left empty have their defaults."""
    bench, elicitation = Bench(answers=[answer]), Elicitation("it", None)
    with elicitation.serving(bench.context()):
        found = await elicitation.elicit(NOT_TOLD, asked)
    assert isinstance(found, types.ElicitResult)
    assert (found.action, found.content) == (action, content)
    after = await elicitation.elicit(NOT_TOLD, asked)  # the call is over
    assert isinstance(after, types.ElicitResult)
    assert after.action == "cancel"


async def test_an_answer_that_does_not_fit_the_protocol_is_an_error() -> None:
    bench, elicitation = Bench(answers=[{"name": {"first": "Ada"}}]), Elicitation("it", None)
    with elicitation.serving(bench.context()):
        found = await elicitation.elicit(NOT_TOLD, FORM)
    assert isinstance(found, types.ErrorData)
    assert (found.code, found.message[:24]) == (types.INVALID_PARAMS, "the answer does not fit:")


async def test_who_refuses_or_is_not_there_declines() -> None:
    async def refuse(*_: object, **__: object) -> JsonValue:
        raise ToolFailed("nobody is there")

    elicitation = Elicitation("it", None)
    with elicitation.serving(replace(Bench().context(), ask=refuse)):
        found = await elicitation.elicit(NOT_TOLD, FORM)
        assert not await elicitation.visit_all([page()])
        sampled = await elicitation.sample(NOT_TOLD, sampling())
    assert isinstance(found, types.ElicitResult)
    assert found.action == "decline"
    assert isinstance(sampled, types.ErrorData)
    assert "did not let the server ask" in sampled.message


@pytest.mark.parametrize(
    ("answers", "pages", "visited"),
    [
        ([OPENED, OPENED], [page(), page()], True),
        ([OPENED, NOT_OPENED], [page(), page()], False),
        ([NOT_OPENED], [page(), page()], False),
        ([], [], False),
        ([], [page("file:///etc/passwd")], False),
    ],
)
async def test_a_call_goes_on_after_every_visit(answers: list[JsonValue], pages: Any, visited: bool) -> None:
    bench, elicitation = Bench(answers=answers), Elicitation("it", None)
    with elicitation.serving(bench.context()):
        assert await elicitation.visit_all(pages) is visited
    assert bench.answers == []
    assert not await elicitation.visit_all([page()])  # the call is over


async def test_its_roots_are_the_workspace_if_there_is_one(tmp_path: Path) -> None:
    none, some = [await Elicitation("it", one).roots(NOT_TOLD) for one in (None, tmp_path)]
    assert none == types.ListRootsResult(roots=[])
    assert isinstance(some, types.ListRootsResult)
    assert [(str(one.uri), one.name) for one in some.roots] == [(tmp_path.as_uri(), tmp_path.name)]


def sampling(*blocks: Any, **more: Any) -> types.CreateMessageRequestParams:
    content = [types.TextContent(text="Hello?"), *blocks]
    message = types.SamplingMessage(role="user", content=content)
    return types.CreateMessageRequestParams(messages=[message], max_tokens=7, **more)


@pytest.mark.parametrize(
    ("asked", "answer", "said"),
    [
        (sampling(system_prompt="Be brief."), LET, "you said 'Hello?', at most 7"),
        (sampling(types.TextContent(text="You?")), LET, "you said 'Hello?\\nYou?', at most 7"),
        (sampling(), DO_NOT, "the person did not let the server ask the model"),
        (
            sampling(types.ImageContent(data="AAAA", mime_type="image/png")),
            None,
            "this client samples only texts",
        ),
        (sampling(tools=[types.Tool(name="t", input_schema={})]), None, "this client samples only texts"),
    ],
)
async def test_the_model_is_asked_for_texts_alone(asked: Any, answer: JsonValue, said: str) -> None:
    bench, elicitation = Bench(answers=[answer] if answer else []), Elicitation("it", None)
    with elicitation.serving(bench.context()):
        found = await elicitation.sample(NOT_TOLD, asked)
    if isinstance(found, types.CreateMessageResult):
        assert isinstance(found.content, types.TextContent)
        assert (found.content.text, found.role, found.model) == (said, "assistant", "dragoman")
    else:
        assert isinstance(found, types.ErrorData)
        assert found.message.startswith(said)
    assert bench.answers == []
