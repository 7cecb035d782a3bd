"""`todo`: a list that a model keeps for itself."""

from __future__ import annotations

from dragoman.messages.message import CallState
from dragoman.tools.builtin.basics import todo
from tests.tools.bench import run, text_of


async def test_the_list_comes_back_with_its_states() -> None:
    outcome = await run(
        todo, items=[{"text": "read", "state": "done"}, {"text": "write", "state": "doing"}, {"text": "rest"}]
    )
    assert outcome.result.text == "[x] read\n[~] write\n[ ] rest"
    assert outcome.result.title == "1 of 3 done"
    assert outcome.result.metadata["items"][2] == {"text": "rest", "state": "open"}  # type: ignore[index]


async def test_an_empty_list_says_so() -> None:
    assert await text_of(todo, items=[]) == "The list is empty."


async def test_a_state_that_is_none_is_explained() -> None:
    outcome = await run(todo, items=[{"text": "read", "state": "finished"}])
    assert outcome.state is CallState.FAILED
    assert "'open', 'doing' or 'done'" in outcome.result.text
