"""A program consists of its facts, and the next process that opens the store resumes or ends it (G3)."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman import Runtime, allow_once, tool
from dragoman.messages.message import CallState, Message
from dragoman.turn.facts import FACT, CallsMade, CallStarted
from dragoman.wire.scripted import Line, calls, says
from tests.fleet import Fleet, node
from tests.loopback import Body, Reply, loopback
from tests.patience import PATIENCE
from tests.postgres import postgres_of
from tests.runtimes import runtime_with

TOOLS = '''
from dragoman import ToolContext, tool

@tool
def note(n: int, context: ToolContext) -> int:
    """Note a number."""
    with open(context.workspace / "effects", "a") as file:
        file.write(f"{n}\\n")
    return n

@tool
def danger(n: int, context: ToolContext) -> int:
    """Ask first."""
    with open(context.workspace / "effects", "a") as file:
        file.write(f"{n}\\n")
    return n
'''
FIVE = """\
total = 0
for n in range(5):
    total += await (danger(n=n) if n == 2 else note(n=n))
total
"""


@pytest.mark.slow
async def test_g3_killed_while_it_waits_a_program_is_answered_at_another_process(
    tmp_path: Path, engine: str
) -> None:
    """Five calls, of which the third asks: each has its effect once."""

    def play(body: Body) -> Reply:
        last = body["messages"][-1]
        return (
            says(f"It is {last['content']}.") if last["role"] == "tool" else calls("run_program", code=FIVE)
        )

    store = postgres_of(tmp_path) or str(tmp_path / "chat.db")
    async with loopback(play) as model, asyncio.timeout(PATIENCE):
        fleet = Fleet(tmp_path, store, model.url, more='allow = ["note"]', tools=TOOLS)
        async with node(fleet) as first:
            id = (await first.post("/api/conversations", {"settings": {"tools": {"programs": True}}}))["id"]
            turn = (await first.post(f"/api/conversations/{id}/turns", {"text": "go"}))["turn"]
            async for kind, _ in first.follow(id):
                if kind == "call.asked":
                    break
            await first.process.end(signal.SIGKILL)
            async with node(fleet) as second:
                [question] = (await second.get("/api/questions"))["items"]
                assert question["tool"] == "danger"
                assert "Line 3 of the program" in question["text"]
                assert (fleet.work / "effects").read_text() == "0\n1\n"
                await second.post(f"/api/questions/{question['id']}/answer", {"verdict": "allow"})
                while (await second.get(f"/api/turns/{turn}"))["state"] != "completed":  # noqa: ASYNC110 - another process moves it
                    await asyncio.sleep(0.05)
                messages = (await second.get(f"/api/conversations/{id}/tree"))["messages"]
    assert messages[-1]["parts"][0]["text"] == "It is 10."
    assert (fleet.work / "effects").read_text() == "0\n1\n2\n3\n4\n"


# ── in one process after the other ────────────────────────────────────────────────────────────────


class Counting:
    """Tools that note what they did, and a model that writes one program."""

    def __init__(self, folder: Path, code: str) -> None:
        self.ran: list[int] = []
        self._folder, self._code = folder, code

    def runtime(self) -> Runtime:
        @tool
        async def note(n: int) -> int:
            """Note a number."""
            self.ran.append(n)
            return n

        @tool
        async def danger(n: int) -> int:
            """Ask first."""
            self.ran.append(n)
            return n

        def script(request: Any) -> Line:
            return says("end") if len(request.messages) > 1 else calls("run_program", code=self._code)

        tools = [note, danger, "programs"]
        return runtime_with(self._folder, script, tools=tools, allow=["note"])

    async def wait(self) -> str:
        """The turn of a program that asks, in a process that ends then."""
        async with self.runtime() as runtime:
            turn = await runtime.send("go")
            assert await turn.reached("waiting")
            return turn.id

    async def go_on(self, turn: str) -> Message:
        """Answer yes in the next process, and return the reply that holds the program."""
        async with self.runtime() as runtime:
            handle = runtime.turn(turn)
            for question in (await handle.snapshot()).questions:
                await handle.answer(question, allow_once())
            await handle.result()
            return next(one for one in (await handle.snapshot()).messages if one.calls)

    def change(self, sql: str, *values: object) -> None:
        with closing(sqlite3.connect(self._folder / "chat.db")) as db, db:
            assert db.execute(sql, values).rowcount == 1


async def test_g3_a_rerun_that_takes_another_path_ends_with_an_error_and_runs_nothing(tmp_path: Path) -> None:
    """The stored program was changed, so its first call is not the recorded one."""
    house = Counting(tmp_path, "await note(n=1)\nawait danger(n=2)\nawait note(n=3)")
    turn = await house.wait()
    house.change("UPDATE calls SET body = replace(body, 'n=1', 'n=7') WHERE tool = 'run_program'")
    reply = await house.go_on(turn)
    [program] = reply.calls
    assert program.state is CallState.FAILED
    assert program.result is not None
    assert "took another path in line 1" in program.result.text
    assert [call.state.value for call in reply.inner] == ["completed", "cancelled"]
    assert house.ran == [1]


async def test_g3_a_rerun_that_forgets_a_call_ends_with_an_error(tmp_path: Path) -> None:
    house = Counting(tmp_path, "await note(n=1)\nawait danger(n=2)")
    turn = await house.wait()
    house.change("UPDATE calls SET body = replace(body, 'await danger(n=2)', '5') WHERE tool = 'run_program'")
    reply = await house.go_on(turn)
    assert reply.calls[0].state is CallState.FAILED
    assert house.ran == [1]


async def test_g3_clock_and_randomness_are_the_same_in_a_rerun(tmp_path: Path) -> None:
    code = (
        "import random, time, datetime\n"
        "x = random.randint(0, 10**9) + int(time.time() * 10**6) + datetime.datetime.now().microsecond\n"
        "y = await note(n=x)\nawait danger(n=x + y + len({'a', 'b'}) + hash('c') % 100)"
    )
    house = Counting(tmp_path, code)
    turn = await house.wait()
    reply = await house.go_on(turn)
    assert reply.calls[0].state is CallState.COMPLETED
    assert len(house.ran) == 2


async def test_g3_results_are_handed_in_by_the_order_of_their_facts(tmp_path: Path) -> None:
    """The program's next step depends on which call ended first, before the crash and after it."""
    code = (
        "import asyncio\norder: list[int] = []\n"
        "async def one(n: int):\n    order.append(await (slow(n=n) if n == 1 else note(n=n)))\n"
        "await asyncio.gather(one(1), one(2), one(3))\n"
        "await danger(n=int(''.join(str(n) for n in order)))"
    )
    gate = asyncio.Event()

    @tool
    async def slow(n: int) -> int:
        """End last."""
        await gate.wait()
        return n

    def runtime() -> Runtime:
        @tool
        async def note(n: int) -> int:
            """Note a number."""
            if n == 3:
                gate.set()
            return n

        @tool
        async def danger(n: int) -> int:
            """Ask first."""
            return n

        def script(request: Any) -> Line:
            return says("end") if len(request.messages) > 1 else calls("run_program", code=code)

        return runtime_with(tmp_path, script, tools=[slow, note, danger, "programs"], allow=["note", "slow"])

    async with runtime() as first:
        turn = await first.send("go")
        assert await turn.reached("waiting")
        asked = turn.questions[0].arguments
        assert asked in ({"n": 231}, {"n": 321})
    async with runtime() as second:
        again = second.turn(turn.id)
        [question] = (await again.snapshot()).questions
        await again.answer(question, allow_once())
        assert (await again.result()).text == "end"
        message = next(one for one in (await again.snapshot()).messages if one.calls)
        assert message.calls[0].result is not None
        assert message.calls[0].result.text == str(asked["n"])


async def test_g3_nothing_of_the_interpreter_is_stored(tmp_path: Path) -> None:
    """No memory image: the facts of a waiting program are its calls and their fingerprints."""
    house = Counting(tmp_path, "text = 'x' * 1_000_000\nawait note(n=1)\nawait danger(n=len(text))")
    await house.wait()
    with closing(sqlite3.connect(tmp_path / "chat.db")) as db:
        held = db.execute("SELECT count(*) FROM calls WHERE held IS NOT NULL").fetchone()
        facts = [FACT.load(body) for (body,) in db.execute("SELECT body FROM facts ORDER BY seq")]
        sizes = db.execute("SELECT max(length(body)) FROM facts").fetchone()
    assert held == (0,)
    assert sizes[0] < 5_000
    assert [type(fact) for fact in facts].count(CallsMade) == 2
    assert [type(fact) for fact in facts].count(CallStarted) == 2


@pytest.mark.slow
async def test_g5_more_programs_wait_than_there_are_workers(tmp_path: Path) -> None:
    """One that waits for a person gives its worker to the next."""
    house = Counting(tmp_path, "await danger(n=1)\nawait note(n=2)")
    async with house.runtime() as runtime, asyncio.timeout(PATIENCE):
        turns = [await runtime.send("go") for _ in range(10)]
        for turn in turns:
            assert await turn.reached("waiting")
        for turn in turns:
            await turn.answer(turn.questions[0], allow_once())
        assert {(await turn.result()).text for turn in turns} == {"end"}
    assert sorted(house.ran) == [1] * 10 + [2] * 10
