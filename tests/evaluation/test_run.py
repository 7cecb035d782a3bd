"""Q2: a stored turn on another model, with the results it had, simulated ones, or tools in a cage."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, Runtime, ScriptedModel, tool
from dragoman.errors import BadRequest, ConfigError, NotFound
from dragoman.evaluation import Case, Expected, ExpectedCall, Rubric, case_of_turn, run
from dragoman.evaluation.case import CaseMessage, CaseTool
from dragoman.evaluation.evaluate import Estimate
from dragoman.evaluation.expected import MadeCall
from dragoman.messages.events import Event
from dragoman.messages.message import File, Text, ToolCall
from dragoman.messages.questions import Rule, allow_once
from dragoman.messages.request import Request, ToolSpec
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models
from dragoman.tools.cage.bubblewrap import why_none
from dragoman.tools.toolbox import Group
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import Line, Script, calls, fails, says
from tests.evaluation.again import asked_again
from tests.loopback import loopback
from tests.wire.endings.replies import chat

RAN: list[str] = []
NO_CAGE = why_none() if sys.platform == "linux" else "there is no bubblewrap here"
needs_cage = pytest.mark.skipif(bool(NO_CAGE), reason=NO_CAGE)


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    RAN.append(city)
    return f"sunny in {city}"


@tool
def rain(city: str) -> str:
    """Whether it rains."""
    raise ValueError("no data")


def _models(**scripts: Script) -> Callable[[str | None], ScriptedModel]:
    made = {name: ScriptedModel(script, name=name) for name, script in scripts.items()}

    def find(name: str | None) -> ScriptedModel:
        if name is not None and name not in made:
            raise NotFound("model", name)
        return made[name or "first"]

    return find


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def _turn(runtime: Runtime) -> str:
    chat = await runtime.conversation(system="Be brief.")
    await (await chat.send("Hello")).result()
    turn = await chat.send("Weather in Rome and Oslo?")
    await turn.result()
    return turn.id


FIRST = [says("Hi."), calls("weather", city="Rome") + calls("weather", city="Oslo"), says("Sunny.")]


async def test_a_turn_gets_the_results_it_had(tmp_path: Path) -> None:
    """By their arguments, in whatever order. Nothing runs, and the store of the chats gets nothing."""
    other = [calls("weather", city="Oslo"), calls("weather", city="Rome"), says("Sun everywhere.")]
    find = _models(first=FIRST, other=other)
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        stored = len(await runtime.store.turns((await runtime.store.turn(turn)).conversation))
        RAN.clear()
        again = await asked_again(runtime, turn, "other")
        assert RAN == []
        assert again.passed
        assert again.answered.text == "Sun everywhere."
        assert [call.result for call in again.answered.calls] == ["sunny in Oslo", "sunny in Rome"]
        request = find("other").requests[0]
        assert "Be brief." in request.system
        assert [m.parts[0].text for m in request.messages] == ["Hello", "Hi.", "Weather in Rome and Oslo?"]  # type: ignore[union-attr]
        assert len(await runtime.store.turns((await runtime.store.turn(turn)).conversation)) == stored


async def test_a_call_that_was_never_recorded_fails_is_simulated_or_is_asked_about(tmp_path: Path) -> None:
    """The identity of a call is its tool and arguments: another city gets no result of Rome."""

    def other(request: Request) -> Line:
        if request.messages[-1].role == "user":
            return calls("weather", city="Bergen")
        return says(f"It says: {request.messages[-1].parts[0].result.text}")  # type: ignore[union-attr]

    async def person(case: Case, tool: ToolSpec, call: MadeCall) -> str:
        assert (tool.name, call.arguments) == ("weather", {"city": "Bergen"})
        return "rain, says a person"

    find = _models(first=FIRST, other=other, judge=[says("rain, says a model")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        RAN.clear()
        failed = await asked_again(runtime, turn, "other")
        assert "no result is recorded for weather" in str(failed.reasons)
        assert "No result is recorded" in failed.answered.text
        simulated = await asked_again(runtime, turn, "other", unrecorded="simulate", judge="judge")
        assert simulated.answered.text == "It says: rain, says a model"
        assert simulated.answered.calls[0].simulated
        assert "sunny in Rome" in str(find("judge").requests[0].messages)
        asked = await asked_again(runtime, turn, "other", unrecorded="ask", answering=person)
        assert asked.answered.text == "It says: rain, says a person"
        with pytest.raises(ConfigError, match="--judge"):
            await asked_again(runtime, turn, "other", unrecorded="simulate")

        async def nobody(case: Case, tool: ToolSpec, call: MadeCall) -> str:
            raise BadRequest("You gave no result.")

        ways: Any = {"unrecorded": "ask", "folder": tmp_path / "runs"}
        unasked = await asked_again(runtime, turn, "other", answering=nobody, **ways)
        assert unasked.answered.error == "You gave no result."
        asked = await asked_again(runtime, turn, "other", answering=person, **ways)  # it was not stored
        assert asked.answered.text == "It says: rain, says a person"
        assert RAN == []


async def test_equal_calls_get_their_results_in_order_and_no_more(tmp_path: Path) -> None:
    RAN.clear()
    first = [
        calls("rain", city="Rome") + calls("weather", city="Rome"),
        says("!"),
    ]
    other = [calls("weather", city="Rome") for _ in range(2)]
    find = _models(first=first, other=[*other, calls("rain", city="Rome"), says("?")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather, rain], allow=["*"]) as runtime:
        turn = await runtime.send("Rain?")
        await turn.result()
        again = await asked_again(runtime, turn.id, "other")
    made = again.answered.calls
    assert [(call.unrecorded, call.failed) for call in made] == [
        (False, False),
        (True, False),
        (False, True),  # a failure is a result, too
    ]


async def test_two_runs_at_the_same_time_ask_for_each_answer_once(tmp_path: Path) -> None:
    """Q2: one waits for what the other asks."""
    wanted = Expected(contains=("Yes",))
    found = [Case(f"case {n}", (CaseMessage("user", f"Say {n}"),), wanted) for n in range(6)]
    model = ScriptedModel(lambda _: says("Yes."))
    runs = [run(found, models={"one": model}, folder=tmp_path, name=name) for name in ("a", "b")]
    reports = await asyncio.gather(*runs)
    assert len(model.requests) == len(found)
    assert all(report.meets(1.0) for report in reports)


async def test_a_model_that_fails_is_a_failed_answer_and_is_asked_again(tmp_path: Path) -> None:
    find = _models(first=FIRST, other=[fails("out of order"), *FIRST[1:]])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        failed = await asked_again(runtime, turn, "other", folder=tmp_path / "runs")
        assert "out of order" in failed.answered.error
        assert failed.passed is False
        assert (await asked_again(runtime, turn, "other", folder=tmp_path / "runs")).passed
        with pytest.raises(NotFound):
            await asked_again(runtime, turn, "nobody")


async def test_a_case_can_begin_at_any_reply_of_a_turn(tmp_path: Path) -> None:
    """A case can end at any message. Earlier replies are given and cost nothing (Q1)."""
    find = _models(first=FIRST, other=[says("Sun everywhere.")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather], allow=["*"]) as runtime:
        turn = await _turn(runtime)
        row = await runtime.store.turn(turn)
        last = (await runtime.store.messages(row.conversation))[0][-1]
        case = await case_of_turn(runtime, turn, message=last.id)
        RAN.clear()
        (answer,) = (await run([case], models=["other"], like=runtime)).runs
    assert RAN == []
    assert answer.passed, answer.reasons
    assert answer.answered.text == "Sun everywhere."
    assert [call.tool for call in answer.answered.calls] == ["weather", "weather"]
    assert (answer.answered.input, answer.answered.model) == (10, "other")
    (request,) = find("other").requests
    assert [
        call.result.text for call in request.messages[-1].parts if isinstance(call, ToolCall) and call.result
    ] == [
        "sunny in Rome",
        "sunny in Oslo",
    ]


async def test_a_turn_that_runs_is_no_case(tmp_path: Path) -> None:
    find = _models(first=[calls("weather", city="Rome")])
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather]) as runtime:
        turn = await runtime.send("Weather?")
        assert await turn.reached("waiting")
        with pytest.raises(BadRequest, match="still running"):
            await case_of_turn(runtime, turn.id)
        await turn.cancel()


async def test_a_case_of_calls_alone_ends_with_them(tmp_path: Path) -> None:
    """The calls get no results, and the model receives one request."""
    model = ScriptedModel([calls("weather", city="Rome") + calls("weather", city="Oslo")])
    wanted = Expected(
        exactly=(ExpectedCall("weather", {"city": "Rome"}), ExpectedCall("weather", {"city": "Oslo"}))
    )
    tools = (CaseTool("weather", "The weather", {"properties": {"city": {"type": "string"}}}),)
    case = Case("calls", (CaseMessage("user", "Weather?"),), wanted, tools=tools, only_calls=True)
    (answer,) = (await run([case], models={"one": model})).runs
    assert answer.passed, answer.reasons
    assert len(model.requests) == 1


async def test_file_tools_run_in_a_folder_of_the_case_and_others_do_not(tmp_path: Path) -> None:
    """Tools with effects do not run by accident: a tool without a folder or cage answers from the
    recording."""
    script = [
        calls("write_file", path="b.txt", text="new"),
        calls("read_file", path="a.txt") + calls("weather", city="Rome"),
        says("Read."),
    ]
    case = Case(
        "files",
        (CaseMessage("user", "Read a.txt"),),
        tools=("files", CaseTool("weather", "", {"properties": {"city": {"type": "string"}}})),
        files={"a.txt": "from the case"},
    )
    (answer,) = (await run([case], models={"one": ScriptedModel(script)}, tools="cage")).runs
    wrote, read, other = answer.answered.calls
    assert not wrote.failed
    assert "from the case" in str(read.result)
    assert other.unrecorded
    outside = replace(case, files={"../x": ""})
    with pytest.raises(ConfigError, match="outside its folder"):
        await run([outside], models={"one": ScriptedModel(script)}, tools="cage")


async def test_only_built_in_tools_run_in_the_cage(tmp_path: Path) -> None:
    """A group of other tools can have the name of a built-in one, in the settings and in a case."""
    RAN.clear()
    files = CaseTool("send", "", {"properties": {"to": {"type": "string"}}}, group="files")
    script = [calls("send", to="x") + calls("read_file", path="a.txt"), says("Done.")]
    case = Case("one", (CaseMessage("user", "Go"),), tools=(files, "files"), files={"a.txt": "from the case"})
    like = Runtime(tmp_path / "chat.db", model=ScriptedModel([]), tools=[Group("files", (weather,))])
    (answer,) = (await run([case], models={"one": ScriptedModel(script)}, like=like, tools="cage")).runs
    sent, read = answer.answered.calls
    assert sent.unrecorded
    assert "from the case" in str(read.result)
    other = replace(case, tools=("files.weather",))
    with pytest.raises(ConfigError, match=r"files.weather"):
        await run([other], models={"one": ScriptedModel([])}, like=like, tools="cage")
    assert RAN == []


@needs_cage
async def test_the_shell_of_a_case_runs_in_the_cage(tmp_path: Path) -> None:
    """K1: it reads the files of the case, and writes nowhere else."""
    outside = tmp_path / "outside"
    script = [calls("shell", command=f"cat a.txt; touch {outside}"), says("Done.")]
    case = Case("one", (CaseMessage("user", "Go"),), tools=("shell",), files={"a.txt": "from the case"})
    (answer,) = (await run([case], models={"one": ScriptedModel(script)}, tools="cage")).runs
    assert "from the case" in str(answer.answered.calls[0].result)
    assert not outside.exists()


@pytest.mark.parametrize("kind", ["prompt", "tool", "model", "limit"])
async def test_what_determines_an_answer_is_asked_again_if_it_changes(tmp_path: Path, kind: str) -> None:
    """Cached by content: the expectations are not part of it."""
    script = [calls("weather", city="Rome"), says("Sunny.")]
    case = Case("one", (CaseMessage("user", "Weather?"),), tools=("tools",))

    async def requests(expect: Expected, **changed: str) -> int:
        @tool(name="weather", description=changed.get("tool", "The weather."))
        def other(city: str) -> str:
            raise AssertionError

        name = changed.get("model", "one")
        model = ScriptedModel([*script], name=name)
        limit = 5 if "limit" in changed else 10
        options: dict[str, Any] = {"system": changed.get("prompt", ""), "max_rounds": limit}
        like = Runtime(tmp_path / "chat.db", model=model, tools=[other], **options)
        await run([replace(case, expect=expect)], models={name: model}, like=like, folder=tmp_path / "runs")
        return len(model.requests)

    assert await requests(Expected()) == 2
    assert await requests(Expected(contains=("Rain",))) == 0
    assert await requests(Expected(), **{kind: "changed"}) == 2


async def test_a_run_stops_at_its_cost_and_says_so(tmp_path: Path) -> None:
    """A limit cannot be enforced with an unknown price (Q2)."""
    table = tmp_path / "catalog.toml"
    found = [
        Case(f"case {n}", (CaseMessage("user", f"Say {n}"),), Expected(contains=("Yes",))) for n in range(4)
    ]
    async with loopback(says("Yes.")) as server:
        table.write_text(
            f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n'
            "[providers.acme.models]\n"
            "paid = { unit_prices = { million_input = 0.0, million_output = 100000.0 } }\n"
        )
        async with Models("acme/paid", catalog=load_catalog(table)) as models:
            like = Runtime(tmp_path / "chat.db", model=models)
            estimates: list[Estimate] = []
            report = await run(
                found,
                models=["acme/paid"],
                like=like,
                max_cost=0.6,
                concurrency=1,
                on_estimate=estimates.append,
            )
    assert estimates[0].cost is not None
    assert estimates[0].cost > 2
    assert [one.skipped for one in report.runs] == ["", "", "cost limit", "cost limit"]
    assert report.cost(report.variants[0]) == pytest.approx(1.0)
    assert not report.meets(0.0)
    assert "Not asked: 2 of 4. The cost limit was reached." in report.markdown()
    model = ScriptedModel([says("Yes.")])
    with pytest.raises(ConfigError, match="price"):
        await run(found, models={"one": model}, max_cost=1.0)
    assert not model.requests


class Counting(Plugin):
    """Brings a tool, and has a state."""

    tools = (weather,)

    def __init__(self) -> None:
        self.turns = 0

    def on_event(self, event: Event, turn: TurnView) -> None:
        self.turns += event.type == "turn.end"


@pytest.mark.parametrize("of_conversation", [False, True])
async def test_a_case_has_the_agent_of_the_turn(tmp_path: Path, of_conversation: bool) -> None:
    """A1: that of the send, or of the conversation, with its prompt, tools, options and rules."""
    clerk = Agent(
        name="clerk",
        prompt="You are a clerk.",
        tools=("tools.weather",),
        options={"temperature": 0.5},
        rules=(Rule("*", "*", "deny"), Rule("weather", "*", "ask")),
    )
    other = [calls("weather", city="Rome"), says("Sun.")]
    find = _models(first=[calls("weather", city="Rome"), says("Sunny.")], other=other)
    async with Runtime(tmp_path / "chat.db", model=find, tools=[weather, rain], agents=[clerk]) as runtime:
        talk = await runtime.conversation()
        await talk.change(agent="clerk" if of_conversation else None)
        turn = await talk.send("Weather in Rome?", agent=None if of_conversation else "clerk")
        assert await turn.reached("waiting")
        await turn.answer(turn.question, allow_once())
        await turn.result()
        RAN.clear()
        again = await asked_again(runtime, turn.id, "other")
    before, after = find("first").requests[0], find("other").requests[0]
    assert (before.system, before.options, before.tools) == (after.system, after.options, after.tools)
    assert "You are a clerk." in after.system
    assert [call.failed for call in again.answered.calls] == [False]
    assert RAN == []


@pytest.mark.parametrize("what", ["agent", "judge", "price of the judge"])
async def test_what_a_run_lacks_is_told_before_anything_is_asked(tmp_path: Path, what: str) -> None:
    expect = Expected(rubrics=(Rubric("Is it polite?", model="nobody" if what == "judge" else None),))
    agent = "nobody" if what == "agent" else None
    case = Case("one", (CaseMessage("user", "Hi"),), expect, agent=agent)
    model, judge = ScriptedModel([says("Hi.")], name="one"), ScriptedModel([], name="judge")
    with pytest.raises((ConfigError, NotFound), match="price" if "price" in what else "nobody"):
        await run([case], models={"one": model}, judge=judge, max_cost=1.0 if "price" in what else None)
    assert model.requests == []


async def test_a_task_has_the_result_it_had(tmp_path: Path) -> None:
    """The other agent is not requested again (A3)."""
    first = [calls("task", agent="w", request="do"), says("It was done."), says("Done.")]
    find = _models(first=first, other=[calls("task", agent="w", request="do"), says("Fine.")])
    async with Runtime(tmp_path / "chat.db", model=find, agents=[Agent(name="w")], allow=["*"]) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        again = await asked_again(runtime, turn.id, "other")
    assert [call.result for call in again.answered.calls] == ["It was done."]
    assert (again.passed, again.answered.text) == (True, "Fine.")


async def test_what_the_send_said_of_its_turn_holds_again(tmp_path: Path) -> None:
    """This covers omitted parts, how calls are made, and options that override the conversation (S9)."""
    counting = Counting()
    find = _models(first=[says("Hi."), says("Sunny.")], other=[says("Sun.")])
    async with Runtime(tmp_path / "chat.db", model=find, plugins=[counting], allow=["*"]) as runtime:
        conversation = await runtime.conversation()
        await (await conversation.send("Hello")).result()
        turn = await conversation.send(
            "I am Ada", disable=["counting", "titles"], history=0, private={"name": "Ada"}, dialect="xml_tag"
        )
        await turn.result()
        before = counting.turns
        await asked_again(runtime, turn.id, "other")
        assert counting.turns == before
    first, again = find("first").requests[-1], find("other").requests[0]
    assert [message.parts for message in again.messages] == [message.parts for message in first.messages]
    assert "Ada" not in str(again.messages)
    assert again.dialect == first.dialect == "xml_tag"


async def test_a_run_leaves_nothing_in_the_models_of_the_runtime(tmp_path: Path) -> None:
    """Later, attachments are read only from the runtime's own store."""
    table = tmp_path / "catalog.toml"
    async with loopback(*(chat("Seen.") for _ in range(4))) as server:
        table.write_text(f'[providers.acme]\nbase_url = "{server.url}"\nlocal = true\n')
        async with (
            Models("acme/x", catalog=load_catalog(table)) as models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
        ):
            blob = await runtime.store.put_blob(b"one")
            turn = await runtime.send([Text("Look"), File("text/plain", blob=blob, name="a.txt")])
            await turn.result()
            for _ in range(2):
                assert (await asked_again(runtime, turn.id, "acme/x")).answered.text == "Seen."
            other = await runtime.store.put_blob(b"two")
            look = await runtime.send([Text("Look"), File("text/plain", blob=other, name="b.txt")])
            assert (await look.result()).text == "Seen."
        assert "two" in str(server.bodies[-1])
