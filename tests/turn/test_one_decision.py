"""One function decides whether a call can run: at first, after an edit, during the call, and when it
repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    ToolContext,
    allow_always,
    allow_once,
    reject,
    stop,
    tool,
)
from dragoman.messages.message import CallState
from dragoman.messages.questions import Rule
from dragoman.tools.builtin import files_group
from dragoman.wire.scripted import Script, calls, says
from tests.runtimes import calls_of, model_of, only_call, runtime_with
from tests.turn.deploying import Careful, by_place, deployer, waiting

# ── edit × deny ───────────────────────────────────────────────────────────────────────────────────


async def test_edited_arguments_do_not_pass_a_denial(tmp_path: Path) -> None:
    """A denied edit does not run, whether allowed once or always, and leaves no grant (P9)."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("12345")
    (tmp_path / "a.txt").write_text("a")
    for answer in (
        allow_once({"path": "secrets/key.txt"}),
        replace(allow_always(), arguments={"path": "./secrets//key.txt"}),
    ):
        async with runtime_with(
            tmp_path,
            [calls("read_file", path="a.txt"), says("done")],
            tools=[files_group()],
            allow=(),
            deny=["files.*:secrets/*"],
            workspace=tmp_path,
        ) as runtime:
            turn = await waiting(runtime)
            await turn.answer(turn.question, answer)
            call = only_call(await turn.result())
            assert call.state is CallState.REJECTED
            assert call.result is not None
            assert "12345" not in call.result.text
            assert await runtime.grants() == []


async def test_edited_arguments_do_not_pass_the_bounds_or_a_plugin(tmp_path: Path) -> None:
    """P9"""
    ran: list[str] = []
    bounds = [Rule("deploy", "vault", "deny")]
    for place in ("vault", "moon"):
        async with runtime_with(
            tmp_path,
            [calls("deploy", where="staging"), says("done")],
            tools=[deployer(ran)],
            allow=(),
            bounds=bounds,
            plugins=[Careful()],
        ) as runtime:
            turn = await waiting(runtime)
            await turn.answer(turn.question, allow_once({"where": place}))
            assert only_call(await turn.result()).state is CallState.REJECTED
    assert ran == []


async def test_what_a_plugin_asks_about_the_edited_call_is_asked(tmp_path: Path) -> None:
    """A plugin's question about the edited arguments reaches the user, because the user did not approve
    them (P9)."""
    ran: list[str] = []
    async with runtime_with(
        tmp_path,
        [calls("deploy", where="staging"), says("done")],
        tools=[deployer(ran)],
        allow=(),
        plugins=[Careful()],
    ) as runtime:
        turn = await waiting(runtime)
        first = turn.question
        await turn.answer(first, allow_once({"where": "production"}))
        async for event in turn.events():
            if event.type == "call.asked" and event.question != first:
                break
        (question,) = turn.questions
        assert (question.because, question.arguments) == ("plugin", {"where": "production"})
        assert "PRODUCTION" in question.text
        assert ran == []
        await turn.answer(question, allow_once())
        assert only_call(await turn.result()).state is CallState.COMPLETED
    assert ran == ["production"]


async def test_a_grant_made_with_edited_arguments_is_for_what_ran(tmp_path: Path) -> None:
    """P9"""
    ran: list[str] = []
    async with runtime_with(
        tmp_path, [calls("deploy", where="a"), says("done")], tools=[deployer(ran)], allow=()
    ) as runtime:
        turn = await waiting(runtime)
        await turn.answer(turn.question, replace(allow_always(), arguments={"where": "b"}))
        await turn.result()
        assert [grant.rule for grant in await runtime.grants()] == [Rule("deploy", "b", "allow")]
    assert ran == ["b"]


async def test_a_rule_that_denies_by_now_is_kept_when_the_answer_comes(tmp_path: Path) -> None:
    """A denial that is newer than the approval request still refuses the call (P9)."""
    ran: list[str] = []
    script: Script = [calls("deploy", where="a"), says("done")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=()) as first:
        turn = await waiting(first)
        question = turn.question
    async with runtime_with(tmp_path, [says("done")], tools=[deployer(ran)], deny=["deploy:a"]) as second:
        await second.answer(question, allow_once())
        assert only_call(await second.turn(turn.id).result()).state is CallState.REJECTED
    assert ran == []


# ── something new on the way ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("grep", {"pattern": "12345"}),
        ("grep", {"pattern": "12345", "path": "secrets"}),
        ("glob", {"pattern": "**"}),
        ("glob", {"pattern": "*", "path": "secrets"}),
        ("list_directory", {"path": "secrets"}),
        ("list_directory", {"path": "./secrets/"}),
    ],
)
@pytest.mark.parametrize("rule", ["deny", "ask"])
async def test_a_search_shows_nothing_that_a_rule_keeps_back(
    tmp_path: Path, name: str, arguments: dict[str, Any], rule: str
) -> None:
    """Each file counts by its path in the workspace, wherever the search started (P9)."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.txt").write_text("12345\n")
    (tmp_path / "open.txt").write_text("12345\n")
    options: dict[str, Any] = {rule: ["files.read:secrets/*"]}
    async with runtime_with(
        tmp_path,
        [calls(name, **arguments), says("done")],
        tools=[files_group()],
        allow=["files.read"],
        workspace=tmp_path,
        **options,
    ) as runtime:
        call = only_call(await (await runtime.send("go")).result())
    assert call.state is CallState.COMPLETED
    assert call.result is not None
    assert "key.txt" not in call.result.text
    assert ("open.txt" in call.result.text) is ("path" not in arguments)


async def test_a_tool_that_meets_something_new_asks_for_it(tmp_path: Path) -> None:
    """A tool that needs a new permission continues if a rule allows it and fails if one denies it. Otherwise
    the user decides, with an option for always (P9)."""
    met: list[str] = []

    @tool(pattern="start")
    async def walk(start: str, way: list[str], context: ToolContext) -> str:
        """Walk."""
        for place in way:
            await context.require_permission(place, f"Continue to {place}?")
            met.append(place)
        return "there"

    script = [
        calls("walk", start="home", way=["wood", "hill"]),
        says("x"),
        calls("walk", start="home", way=["hill", "cave"]),
        says("x"),
    ]
    rules: dict[str, Any] = {"allow": ["walk:home", "walk:wood"], "deny": ["walk:cave"]}
    async with runtime_with(tmp_path, script, tools=[walk], **rules) as runtime:
        turn = await waiting(runtime)
        (asked,) = turn.questions
        assert (asked.because, asked.rules) == ("rule", (Rule("walk", "hill", "allow"),))
        assert asked.text.startswith("Continue to hill?")
        await turn.answer(asked, allow_always())
        assert only_call(await turn.result()).state is CallState.COMPLETED
        call = only_call(await (await runtime.send("again")).result())
        assert call.state is CallState.FAILED
        assert call.result is not None
        assert "forbids walk on cave" in call.result.text
    assert met == ["wood", "hill", "hill"]


async def test_a_tool_that_meets_the_same_twice_asks_once(tmp_path: Path) -> None:
    """A user who allowed it once does not see a second approval request (P9)."""

    @tool(pattern="start")
    async def walk(start: str, context: ToolContext) -> str:
        """Walk."""
        for _ in range(3):
            await context.require_permission("hill")
        return "there"

    script = [calls("walk", start="home"), says("x")]
    async with runtime_with(tmp_path, script, tools=[walk], allow=["walk:home"]) as runtime:
        turn = await waiting(runtime)
        await turn.answer(turn.question, allow_once())
        assert only_call(await turn.result()).state is CallState.COMPLETED
        told = [event.type async for event in turn.events()]
        assert (told.count("call.asked"), told.count("call.answered")) == (1, 1)


# ── refused again and again ───────────────────────────────────────────────────────────────────────


async def test_a_refused_call_that_comes_again_is_refused_by_itself_and_then_closes_the_turn(
    tmp_path: Path,
) -> None:
    """Dragoman asks the user once and then refuses the repetition (P10)."""
    ran: list[str] = []
    script = [*[calls("deploy", where="a")] * 9, says("never reached")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=()) as runtime:
        turn = await waiting(runtime)
        await turn.answer(turn.question, reject("no"))
        result = await turn.result()
        requests = model_of(runtime).requests
    states = [call.state for call in calls_of(result.messages)]
    assert states == ["rejected", "rejected", "skipped", "skipped"]
    assert [bool(request.tools) for request in requests] == [True, True, True, False]
    texts = [call.result.text for call in calls_of(result.messages) if call.result is not None]
    assert "refused with exactly these arguments" in texts[1]
    assert ran == []


async def test_a_refused_call_is_refused_by_itself_in_another_version_of_the_answer(tmp_path: Path) -> None:
    """P10 x T10"""
    ran: list[str] = []
    script = [says("no idea"), *[calls("deploy", where="a")] * 2, says("ok")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=()) as runtime:
        chat = await runtime.conversation()
        await (await chat.send("go")).result()
        turn = await chat.rerun((await chat.messages())[-1].id)
        async for asked in turn.asked():
            await turn.answer(asked, reject())
        result = await turn.result()
    assert [call.state for call in calls_of(result.messages)] == ["rejected", "rejected"]


async def test_a_person_who_says_something_after_a_refusal_is_asked_again(tmp_path: Path) -> None:
    """A user who sends a message after a refusal can have changed their mind, so the call needs approval
    again. The message itself allows nothing (P10 × T13)."""
    ran: list[str] = []
    script = [calls("deploy", where="a"), calls("deploy", where="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=()) as runtime:
        turn = await waiting(runtime)
        first = turn.question
        await turn.steer("A slip: do it, please.")
        await turn.answer(first, reject())
        async for asked in turn.asked():
            await turn.answer(asked, allow_once())
        result = await turn.result()
    assert [call.state for call in calls_of(result.messages)] == ["rejected", "completed"]
    assert ran == ["a"]


async def test_a_call_with_other_arguments_is_not_the_one_that_was_refused(tmp_path: Path) -> None:
    """P10"""
    ran: list[str] = []
    script = [calls("deploy", where="a"), calls("deploy", where="b"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=["deploy:b"]) as runtime:
        turn = await waiting(runtime)
        await turn.answer(turn.question, reject())
        await turn.result()
    assert ran == ["b"]


async def test_reject_and_stop_ends_the_calls_of_the_turn(tmp_path: Path) -> None:
    """The other waiting calls end, and the model writes its answer without tools (P10)."""
    ran: list[str] = []
    script = [calls("deploy", where="a") + calls("deploy", where="b"), says("then not")]
    async with runtime_with(tmp_path, script, tools=[deployer(ran)], allow=()) as runtime:
        turn = await waiting(runtime)
        await turn.answer(by_place(turn)["a"], stop("enough"))
        result = await turn.result()
        assert await runtime.questions() == []
        assert [bool(request.tools) for request in model_of(runtime).requests] == [True, False]
    assert [call.state for call in calls_of(result.messages)] == ["rejected", "skipped"]
    assert (ran, result.text) == ([], "then not")
