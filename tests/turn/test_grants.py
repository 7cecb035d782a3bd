"""An answer leaves a grant: for which user, in which folder, and which other questions it settles."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from dragoman import Plugin, Rule, TurnView, allow_always, allow_for_conversation, tool
from dragoman.messages.questions import Action, Answer
from dragoman.turn.api.approvals import CoveredCalls, calls_covered_by
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import calls, says
from tests.patience import PATIENCE
from tests.runtimes import only_call, runtime_with


@tool(permission="files.delete", pattern="path")
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@pytest.mark.parametrize("answer", [allow_for_conversation(), allow_always()])
async def test_an_answer_that_covers_a_sibling_answers_it_too(tmp_path: Path, answer: Answer) -> None:
    """A sibling that the new grant covers no longer waits for approval (P3, P7)."""
    script = [calls("delete", path="a") + calls("delete", path="a") + calls("delete", path="b"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, answer)
        (left,) = await runtime.questions()
        assert left.arguments == {"path": "b"}


@pytest.mark.parametrize(
    "change",
    ["UPDATE facts SET body = '{' WHERE turn = ?", "DELETE FROM facts WHERE turn = ?"],
    ids=["cannot be read", "is being deleted"],
)
async def test_what_waits_elsewhere_does_not_spoil_an_answer(tmp_path: Path, change: str) -> None:
    """The answer is stored, and a turn that its rule could settle but does not stays unchanged (P3 × S1)."""
    script = [*[calls("delete", path="a")] * 3, says("ok"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=()) as runtime:
        spoilt, last, turn = [await runtime.send("go") for _ in range(3)]
        for each in (spoilt, last, turn):
            assert await each.reached("waiting")
        with closing(sqlite3.connect(tmp_path / "chat.db")) as db, db:
            db.execute(change, [spoilt.id])
        await turn.answer(turn.question, allow_always())
        assert [(await each.result()).text for each in (turn, last)] == ["ok", "ok"]
        assert [question.turn for question in await runtime.questions()] == [spoilt.id]


@pytest.mark.parametrize("action", ["allow", "deny"])
async def test_a_rule_that_is_given_while_a_call_is_about_to_be_asked_about_settles_it(
    tmp_path: Path, action: Action
) -> None:
    """P3, P9: in another process, which finds no question yet that it could answer."""

    class Grants(Plugin):
        async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
            async with runtime_with(tmp_path, [], tools=[delete], adopts=False) as other:
                await other.commands.grant(Rule("files.*", "*", action), allow_always(), user=None, owner="")

    script = [calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), plugins=[Grants()]) as runtime:
        turn = await runtime.send("go")
        result = await asyncio.wait_for(turn.result(), PATIENCE)
    assert only_call(result).state == ("completed" if action == "allow" else "rejected")


async def test_always_holds_in_the_folder_where_it_was_said(tmp_path: Path) -> None:
    """P3: the same name is another file in another folder."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    script = [calls("delete", path="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), workspace=here) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_always())
        await turn.result()
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), workspace=here) as runtime:
        assert (await (await runtime.send("go")).result()).text == "ok"
    async with runtime_with(tmp_path, script, tools=[delete], allow=(), workspace=elsewhere) as runtime:
        assert await (await runtime.send("go")).reached("waiting")


def _called(*made: tuple[str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return a conversation to import, with one reply that made these calls."""
    done: dict[str, JsonValue] = {"type": "call", "state": "completed", "result": {"text": ""}}
    parts: list[JsonValue] = [
        {**done, "id": f"c{n}", "tool": tool, "arguments": arguments}
        for n, (tool, arguments) in enumerate(made)
    ]
    message: dict[str, JsonValue] = {"id": "m", "conversation": "x", "parent": None, "role": "assistant"}
    messages: list[JsonValue] = [{**message, "parts": parts}]
    return {"format": "dragoman.conversation/1", "conversation": {"id": "x"}, "messages": messages}


async def test_a_preview_of_a_rule_shows_the_calls_it_would_have_covered(tmp_path: Path) -> None:
    """Unknown tools and arguments that never fitted do not count. Equal calls are shown once (P11)."""

    @tool(pattern=lambda given: [str(given["on"])])
    def shred(on: str) -> str:
        """Shred a disk."""
        return on

    paths = [f"{n}/x" for n in range(30)]
    some = [("gone", {}), ("shred", {}), *[("delete", {"path": path}) for path in ("a", "b/x", *paths, "a")]]
    async with runtime_with(tmp_path, [], tools=[delete, shred], allow=()) as runtime:
        await runtime.import_conversation(_called(*some), user="ada")  # type: ignore[arg-type]

        async def found(pattern: str, action: Action = "allow", user: str | None = None) -> CoveredCalls:
            rule = Rule("files.delete", pattern, action)
            return await calls_covered_by(runtime.services, [rule], user=user)

        one = await found("a", "deny")
        assert (one.looked_at, one.covered, one.waiting) == (33, 2, ())
        assert [(call.tool, call.patterns) for call in one.calls] == [("delete", ("a",))]
        assert (await found("a", user="bob")).looked_at == 0
        many = await found("*/x")
        assert many.covered == 31
        assert [call.patterns[0] for call in many.calls] == paths[:9:-1]  # the newest first
        large = [("delete", {"path": str(n)}) for n in range(970)]
        await runtime.import_conversation(_called(*large))  # type: ignore[arg-type]
        assert (await found("*")).looked_at == 1000
        for _ in range(19):
            await runtime.conversation()
        assert (await found("*")).looked_at == 970  # of the 20 latest conversations


async def test_a_preview_of_a_rule_shows_the_calls_it_would_settle(tmp_path: Path) -> None:
    """A rule settles no question with another reason, and holds in the folder of its question (P3 × P11)."""
    main, site = tmp_path / "main", tmp_path / "site"
    script = [calls("delete", path="a")] * 4 + [calls("delete", path="b")]
    where: list[dict[str, Any]] = [{}, {}, {"workspace": "site"}, {"mode": "manual"}, {}]
    for folder in (main, site):
        folder.mkdir()
    async with runtime_with(
        tmp_path, script, tools=[delete], allow=(), workspace=main, workspaces={"site": site}
    ) as runtime:
        asked, rule = [], Rule("files.delete", "a", "allow")
        for settings in where:
            turn = await (await runtime.conversation(**settings)).send("go")
            assert await turn.reached("waiting")
            asked.append(await runtime.store.question(turn.question))

        async def settled(question: str | None) -> set[str]:
            found = await calls_covered_by(runtime.services, [rule], user=None, question=question)
            return {call.call for call in found.waiting}

        assert await settled(None) == {asked[0].call, asked[1].call}
        assert await settled(asked[0].id) == {asked[1].call}
        assert await settled(asked[2].id) == set()
        assert await settled(asked[4].id) == {asked[0].call, asked[1].call}
