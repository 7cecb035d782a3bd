"""G1-G5: a model writes a program that calls tools. Its calls are calls like any other."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Plugin, Runtime, TurnView, allow_once, client_tool, reject, stop, tool
from dragoman.messages import events as e
from dragoman.messages.fold import fold
from dragoman.messages.message import CallState, Message, ToolCall
from dragoman.messages.questions import allow_for_conversation, withhold
from dragoman.tools.tool import Tool
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.plugin import PlannedCall
from dragoman.wire.scripted import calls, says
from tests.runtimes import model_of, runtime_with


class House:
    """Tools that write down what they did."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.at_once = self.most = 0

        @tool
        async def note(n: int) -> int:
            """Note a number."""
            self.ran.append(n)
            return n * 10

        @tool(cancellable=True)
        async def slow(n: int, seconds: float = 0.05) -> int:
            """Take a moment."""
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.ran.append("stopped")
                raise
            finally:
                self.at_once -= 1
            self.ran.append(n)
            return n

        @tool
        async def danger(n: int) -> int:
            """Ask first."""
            self.ran.append(n)
            return n

        @tool
        async def fails(why: str) -> str:
            """Fail."""
            raise ValueError(why)

        @tool
        async def big(size: int) -> dict[str, str]:
            """Give a long value."""
            return {"text": "x" * size}

        @tool
        async def same(value: Any) -> Any:
            """Give it back."""
            return value

        self.tools: list[Tool] = [note, slow, danger, fails, big, same]

    def runtime(self, folder: Path, code: str, **options: Any) -> Runtime:
        def script(request: Any) -> Any:
            return says("end") if len(request.messages) > 1 else calls("run_program", code=code)

        allowed = ("note", "slow", "fails", "big", "same")
        given = {"tools": [*self.tools, "programs"], "allow": allowed, **options}
        return runtime_with(folder, script, **given)


async def _run(
    house: House, folder: Path, code: str, **options: Any
) -> tuple[ToolCall, tuple[ToolCall, ...]]:
    """The program's call and those it made, when its turn is over."""
    async with house.runtime(folder, code, **options) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        return _program(await _messages(turn))


def _program(messages: list[Message]) -> tuple[ToolCall, tuple[ToolCall, ...]]:
    message = next(message for message in messages if message.calls)
    assert [call.made_in for call in message.calls] == [None]
    return message.calls[0], message.inner


async def _messages(turn: TurnHandle) -> list[Message]:
    return [*(await turn.snapshot()).messages]


def _text(call: ToolCall) -> str:
    assert call.result is not None
    return call.result.text


async def _asked(turn: TurnHandle) -> Any:
    assert await turn.reached("waiting")
    return turn.questions[0]


# ── G1: checked first ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("await note(n=1)\nawait note(n='two')", 2),
        ("await note(n=1)\nawait note(m=2)", 2),
        ("await note(n=1)\nawait nothing()", 2),
        ("await note(n=1)\nfor x in\n", 2),
        ("await note(n=1)\nx = note(n=2) + 1", 2),
        ("await note(n=1)\n(await note(n=2)).upper()", 2),
    ],
)
async def test_g1_a_program_that_does_not_check_runs_nothing(tmp_path: Path, code: str, line: int) -> None:
    house = House()
    program, inner = await _run(house, tmp_path, code)
    assert program.state is CallState.FAILED
    assert f"program.py:{line}:" in _text(program) or f"line {line}" in _text(program)
    assert (inner, house.ran) == ((), [])


async def test_g1_the_model_is_shown_signatures_in_place_of_schemas(tmp_path: Path) -> None:
    async with House().runtime(tmp_path, "1") as runtime:
        await (await runtime.send("go")).result()
        [spec] = model_of(runtime).requests[0].tools
    assert spec.name == "run_program"
    assert 'async def slow(*, n: int, seconds: float = ...) -> int:\n  "Take a moment."' in spec.description
    assert spec.parameters["required"] == ["code"]


async def test_g1_a_function_can_still_be_called_by_itself(tmp_path: Path) -> None:
    house = House()
    script = [calls("note", n=4), says("end")]
    async with runtime_with(tmp_path, script, tools=[*house.tools, "programs"]) as runtime:
        await (await runtime.send("go")).result()
    assert house.ran == [4]


# ── G2: calls like any other ──────────────────────────────────────────────────────────────────────


async def test_g2_a_program_calls_tools_and_the_model_sees_what_it_prints_and_returns(tmp_path: Path) -> None:
    code = "total = 0\nfor n in range(3):\n    total += await note(n=n)\nprint('sum')\ntotal"
    house = House()
    async with house.runtime(tmp_path, code) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        program, inner = _program(await _messages(turn))
        requests = model_of(runtime).requests
    assert _text(program) == "sum\n30"
    assert [
        (call.tool, call.arguments, call.state.value, call.made_in and call.made_in.line) for call in inner
    ] == [("note", {"n": n}, "completed", 3) for n in range(3)]
    told = [part.tool for message in requests[1].messages for part in message.parts if part.type == "call"]
    assert told == ["run_program"]


async def test_g2_a_value_alone_is_structured(tmp_path: Path) -> None:
    program, _ = await _run(House(), tmp_path, "{'a': (1, 2)}")
    assert program.result is not None
    assert program.result.value == {"a": [1, 2]}


async def test_g2_the_question_is_about_the_inner_call_and_names_its_line(tmp_path: Path) -> None:
    house = House()
    async with house.runtime(tmp_path, "await note(n=1)\nx = await danger(n=2)\nx") as runtime:
        turn = await runtime.send("go")
        question = await _asked(turn)
        message = next(one for one in await _messages(turn) if one.calls)
        call = next(one for one in message.inner if one.id == question.call)
        assert (question.tool, call.made_in and call.made_in.line) == ("danger", 2)
        assert "Line 2 of the program calls it: x = await danger(n=2)" in question.text
        await turn.answer(question, allow_once(arguments={"n": 7}))
        await turn.result()
        program, inner = _program(await _messages(turn))
    assert house.ran == [1, 7]
    assert inner[1].original == {"n": 2}
    assert _text(program).startswith("danger: ")
    assert _text(program).endswith("\n7")


async def test_g2_a_grant_given_inside_holds_for_the_next_call(tmp_path: Path) -> None:
    house = House()
    async with house.runtime(tmp_path, "[await danger(n=n) for n in range(3)]") as runtime:
        turn = await runtime.send("go")
        await turn.answer(await _asked(turn), allow_for_conversation())
        await turn.result()
    assert house.ran == [0, 1, 2]


async def test_g2_a_limit_of_calls_counts_inner_ones(tmp_path: Path) -> None:
    code = "for n in range(6):\n    try:\n        await note(n=n)\n    except RuntimeError:\n        print(n)"
    house = House()
    program, inner = await _run(house, tmp_path, code, max_calls=4)
    assert house.ran == [0, 1, 2]
    assert [call.state.value for call in inner] == ["completed"] * 3 + ["skipped"] * 3
    assert _text(program) == "3\n4\n5\n"


async def test_g2_the_loop_guard_asks_within_a_program(tmp_path: Path) -> None:
    house = House()
    async with house.runtime(tmp_path, "for _ in range(5):\n    await note(n=1)") as runtime:
        turn = await runtime.send("go")
        question = await _asked(turn)
        assert question.kind == "loop"
        assert house.ran == [1, 1]
        await turn.cancel()


async def test_g2_p10_a_refused_call_that_comes_again_is_refused_by_itself(tmp_path: Path) -> None:
    code = "for _ in '1234':\n    try:\n        await danger(n=1)\n    except PermissionError:\n        pass"
    house = House()
    async with house.runtime(tmp_path, code) as runtime:
        turn = await runtime.send("go")
        await turn.answer(await _asked(turn), reject())
        await turn.result()
        _, inner = _program(await _messages(turn))
    assert [call.state.value for call in inner][:2] == ["rejected", "rejected"]
    assert house.ran == []


async def test_g2_a_client_tool_within_a_program_waits_for_its_client(tmp_path: Path) -> None:
    house = House()
    where = client_tool("where", "Ask the client.", {"type": "object", "properties": {}})
    options = {"tools": [*house.tools, where, "programs"], "allow": ("*",)}
    async with house.runtime(tmp_path, "await where()", **options) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        [call] = [one for message in await _messages(turn) for one in message.inner]
        await turn.deliver(call.id, "here")
        await turn.result()
        program, _ = _program(await _messages(turn))
    assert _text(program) == "here"


async def test_g2_a_withheld_result_does_not_reach_the_program(tmp_path: Path) -> None:
    code = "try:\n    await note(n=1)\nexcept PermissionError as error:\n    print('withheld')"
    async with House().runtime(tmp_path, code, review={"note": "always"}) as runtime:
        turn = await runtime.send("go")
        await turn.answer(await _asked(turn), withhold())
        await turn.result()
        program, _ = _program(await _messages(turn))
    assert _text(program) == "withheld\n"


async def test_g2_events_fold_into_what_is_stored(tmp_path: Path) -> None:
    code = "import asyncio\nawait asyncio.gather(note(n=1), fails(why='x'))"
    async with House().runtime(tmp_path, code) as runtime:
        turn = await runtime.send("go")
        events = [event async for event in turn.events()]
        stored = [one for one in await _messages(turn) if one.role == "assistant"]
    folded = fold(events, (await turn.snapshot()).conversation, turn.id)
    assert [one.inner for one in folded] == [one.inner for one in stored]
    made = [event for event in events if isinstance(event, e.InnerCallMade)]
    assert [(one.tool, one.made_in.line) for one in made] == [("note", 2), ("fails", 2)]


async def test_g2_an_error_of_a_plugin_at_an_inner_call_ends_the_program(tmp_path: Path) -> None:
    """H8"""

    class Broken(Plugin):
        async def before_tool(self, call: PlannedCall, turn: TurnView) -> None:
            if call.name == "note":
                raise ValueError("no")

    house = House()
    program, inner = await _run(house, tmp_path, "await note(n=1)", plugins=[Broken()])
    assert (_text(program), house.ran) == ("run_program failed: ValueError: no", [])
    assert [one.state for one in inner] == [CallState.CANCELLED]


# ── G4: exceptions, stop, gather ──────────────────────────────────────────────────────────────────


async def test_g4_calls_in_gather_run_at_the_same_time(tmp_path: Path) -> None:
    house = House()
    program, _ = await _run(
        house, tmp_path, "import asyncio\nawait asyncio.gather(*[slow(n=n) for n in range(3)])"
    )
    assert house.most == 3
    assert program.result is not None
    assert program.result.value == [0, 1, 2]


async def test_g4_one_slot_is_enough_for_a_program(tmp_path: Path) -> None:
    house = House()
    code = "import asyncio\nawait asyncio.gather(slow(n=1), slow(n=2))"
    program, _ = await _run(house, tmp_path, code, concurrency=1)
    assert (program.state, house.most) == (CallState.COMPLETED, 1)


async def test_g4_refused_and_failed_calls_are_exceptions(tmp_path: Path) -> None:
    code = (
        "try:\n    await danger(n=1)\nexcept PermissionError as error:\n    print('refused', error)\n"
        "try:\n    await fails(why='bad')\nexcept RuntimeError as error:\n    print('failed', error)"
    )
    async with House().runtime(tmp_path, code) as runtime:
        turn = await runtime.send("go")
        await turn.answer(await _asked(turn), reject("not now"))
        await turn.result()
        program, _ = _program(await _messages(turn))
    assert "refused A person did not let this call run. They said: not now" in _text(program)
    assert "failed fails failed: ValueError: bad" in _text(program)


async def test_g4_what_is_not_caught_ends_the_program_with_its_line(tmp_path: Path) -> None:
    house = House()
    program, _ = await _run(
        house, tmp_path, "await note(n=1)\nprint('before')\nawait fails(why='bad')\nawait note(n=2)"
    )
    assert program.state is CallState.FAILED
    assert _text(program).startswith("before\n")
    assert 'File "program.py", line 3' in _text(program)
    assert "The program made 2 calls until then" in _text(program)
    assert house.ran == [1]


@pytest.mark.parametrize("how", ["stop", "on_reject"])
async def test_g4_stop_ends_a_program_that_catches_everything(tmp_path: Path, how: str) -> None:
    code = "for n in range(3):\n    try:\n        await danger(n=n)\n    except BaseException:\n        pass"
    house = House()
    options = {"on_reject": "stop"} if how == "on_reject" else {}
    async with house.runtime(tmp_path, code, **options) as runtime:
        turn = await runtime.send("go")
        await turn.answer(await _asked(turn), stop() if how == "stop" else reject())
        await turn.result()
        program, inner = _program(await _messages(turn))
    assert (program.state, len(inner), house.ran) == (CallState.FAILED, 1, [])


async def test_g4_a_cancel_stops_the_calls_of_a_program(tmp_path: Path) -> None:
    house = House()
    code = "import asyncio\nawait asyncio.gather(slow(n=1, seconds=60), danger(n=2))"
    async with house.runtime(tmp_path, code) as runtime:
        turn = await runtime.send("go")
        await turn.asked().__anext__()
        await turn.cancel()
        assert await turn.reached("cancelled")
        program, inner = _program(await _messages(turn))
    assert house.ran == ["stopped"]
    assert {call.state for call in (program, *inner)} == {CallState.CANCELLED}


async def test_g4_a_call_that_nobody_waits_for_ends_with_the_program(tmp_path: Path) -> None:
    house = House()
    calls = "await asyncio.gather(slow(n=1, seconds=60), fails(why='x'))"
    code = f"import asyncio\ntry:\n    {calls}\nexcept RuntimeError:\n    pass\n1"
    program, inner = await _run(house, tmp_path, code)
    assert program.state is CallState.COMPLETED
    assert [call.state.value for call in inner] == ["cancelled", "failed"]
    assert house.ran == ["stopped"]


# ── G5: bounds ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("await note(n=1)\nwhile True: pass", "TimeoutError"),
        ("await note(n=1)\nx = 'a'\nwhile True: x = x + x", "MemoryError"),
        ("await note(n=1)\ndef f(n: int) -> int:\n    return f(n + 1)\nf(0)", "RecursionError"),
        ("value = [await note(n=1)]\nfor n in range(99_999): value = [value]\nvalue", "nested too deeply"),
    ],
)
async def test_g5_time_memory_and_depth_are_bounded(tmp_path: Path, code: str, says: str) -> None:
    program, inner = await _run(House(), tmp_path, code)
    assert program.state is CallState.FAILED
    assert says in _text(program)
    assert [call.state.value for call in inner] == ["completed"]


async def test_g5_calls_are_bounded(tmp_path: Path) -> None:
    house = House()
    program, inner = await _run(house, tmp_path, "for n in range(600):\n    await note(n=n)")
    assert "500 calls, and this one needs more" in _text(program)
    assert "made 500 calls until then" in _text(program)
    assert len(inner) == len(house.ran) == 500


async def test_g5_output_is_bounded_and_c9_shows_a_part(tmp_path: Path) -> None:
    code = "for i in range(100_000):\n    print('x' * 100)"
    program, _ = await _run(House(), tmp_path, code)
    assert program.result is not None
    assert program.result.blob is not None
    assert len(_text(program)) < 60_000
    assert "more characters were printed" in _text(program)


async def test_g5_values_of_megabytes_reach_the_program_whole(tmp_path: Path) -> None:
    code = "value = await big(size=2_000_000)\n[len(value['text']), await note(n=1)]"
    program, inner = await _run(House(), tmp_path, code)
    assert program.result is not None
    assert program.result.value == [2_000_000, 10]
    assert len(_text(inner[0])) < 60_000


async def test_g5_arguments_that_are_no_json_are_type_errors(tmp_path: Path) -> None:
    code = (
        "for value in ({1, 2}, b'x', float('nan'), lambda: 1, 'x' * 2_000_000):\n"
        "    try:\n        await same(value=value)\n        print('taken')\n"
        "    except (TypeError, ValueError) as error:\n        print(type(error).__name__)"
    )
    program, inner = await _run(House(), tmp_path, code)
    assert "taken" not in _text(program).splitlines()[:3] + _text(program).splitlines()[4:]
    assert len(inner) <= 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_g5_a_dead_worker_is_an_error_for_the_model(tmp_path: Path) -> None:
    """Killed while a call runs: the next thing the program does finds it dead."""
    house, killed = House(), list[int]()

    @tool
    async def kill() -> str:
        """Kill the worker."""
        for child in _children():
            killed.append(child)
            os.kill(child, signal.SIGKILL)
        return "killed"

    options = {"tools": [*house.tools, kill, "programs"], "allow": ("*",)}
    async with house.runtime(tmp_path, "await kill()\nawait note(n=1)", **options) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        program, _ = _program(await _messages(turn))
        assert killed
        assert program.state is CallState.FAILED
        assert "The process of the program died" in _text(program)
        assert house.ran == []


# ── G6: on and off ────────────────────────────────────────────────────────────────────────────────


def _offered(runtime: Runtime) -> bool:
    return any(spec.name == "run_program" for spec in model_of(runtime).requests[-1].tools)


async def test_g6_off_by_default_and_on_for_a_send_a_conversation_or_an_agent(tmp_path: Path) -> None:
    agents = [Agent(name="coder", tools=("tools", "programs")), Agent(name="plain", tools=("tools",))]
    async with runtime_with(tmp_path, lambda _: says("ok"), tools=House().tools, agents=agents) as runtime:
        await (await runtime.send("hi")).result()
        assert not _offered(runtime)
        await (await runtime.send("hi", tools={"programs": True})).result()
        assert _offered(runtime)
        chat = await runtime.conversation(tools={"programs": True})
        await (await chat.send("hi")).result()
        assert _offered(runtime)
        await (await chat.send("hi", tools={"programs": False})).result()
        assert not _offered(runtime)
        await (await runtime.send("hi", agent="coder")).result()
        assert _offered(runtime)
        await (await runtime.send("hi", agent="plain")).result()
        assert not _offered(runtime)


async def test_g6_where_every_call_is_asked_about_so_is_the_program(tmp_path: Path) -> None:
    """P8: on for one message, in mode `ask`: the question shows the whole program."""
    house = House()
    script = [calls("run_program", code="await note(n=1)"), says("end")]
    async with runtime_with(tmp_path, script, tools=house.tools) as runtime:
        turn = await runtime.send("go", tools={"programs": True}, mode="ask")
        for name in ("run_program", "note"):
            question = await _asked(turn)
            assert question.tool == name
            await turn.answer(question, allow_once())
        await turn.result()
    assert house.ran == [1]


async def test_g6_off_it_imports_nothing(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\nfrom dragoman import Runtime, ScriptedModel\n"
        "from dragoman.wire.scripted import says\n"
        "async def main():\n"
        "    model = ScriptedModel([says('x')])\n"
        "    async with Runtime(sys.argv[1], model=model, tools=['basics']) as runtime:\n"
        "        await (await runtime.send('hi')).result()\n"
        "asyncio.run(main())\nprint('pydantic_monty' in sys.modules)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path / "a.db"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out.decode().strip() == "False"


def _children() -> list[int]:
    """Processes that this one started, of which Monty's workers are the only ones here."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, fields = stat.read_text().rpartition(")")
            if fields.split()[1] == str(os.getpid()) and "monty" in name:
                found.append(int(stat.parent.name))
    return found
