"""The library without `await`: the whole of it, also where an event loop runs already."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import Agent, Plugin, Runtime, ScriptedModel, SyncRuntime, allow_once, reject, run_sync, tool
from dragoman.errors import BadRequest, ConfigError, NotFound, ProviderError
from dragoman.messages.events import Event
from dragoman.messages.message import File, Text
from dragoman.store.sqlite import SqliteStore
from dragoman.sync import SyncConversation, SyncTurn
from dragoman.sync.loop_thread import LoopThread
from dragoman.tools.tool import client_tool
from dragoman.turn.api.conversation_handle import ConversationHandle
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import calls, fails, says
from tests.patience import PATIENCE
from tests.runtimes import add


def test_a_conversation_without_a_loop(tmp_path: Path) -> None:
    """Sends, events, a question and its answer, versions, search, export."""
    script = [calls("add", a=1, b=2), says("It is 3."), says("Three."), says("Hi."), says("[1, 2]")]
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel(script), tools=[add]) as runtime:
        chat = runtime.conversation(system="Be brief.")
        turn = chat.send("add")
        seen = []
        for event in turn.events():
            seen.append(event.type)
            if event.type == "call.asked":
                assert [question.id for question in runtime.questions()] == [event.question]
                turn.answer(event.question, allow_once())
        assert turn.result().text == "It is 3."
        assert seen[-1] == "turn.end"
        answer = chat.messages()[-1]
        assert chat.rerun(answer.id).result().text == "Three."
        assert chat.edit(chat.messages()[0].id, "hello").result().text == "Hi."
        assert runtime.send("list", output_type=list[int]).result().output == [1, 2]
        assert runtime.search("Three")
        assert "It is 3." in str(runtime.export(chat.id))
        chat.rename("Sums")
        assert chat.info().title == "Sums"
        runtime.delete(chat.id)
        with pytest.raises(NotFound):
            runtime.conversation(chat.id)


def test_files_are_sent_and_read(tmp_path: Path) -> None:
    """This covers files of a message. A missing blob is an error, and so is a path in place of bytes (M2)."""
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("Two lines.")])) as runtime:
        notes = runtime.put_file(b"milk\nbread\n", "text/plain", "notes.txt")
        chat = runtime.conversation()
        assert chat.send([Text("How long is it?"), notes]).result().text == "Two lines."
        (file,) = chat.messages()[0].files
        assert (file.name, file.size, runtime.read_file(file)) == ("notes.txt", 11, b"milk\nbread\n")
        with pytest.raises(NotFound):
            runtime.read_file(File("image/png", url="https://example.org/a.png"))
        path: Any = "notes.txt"
        with pytest.raises(BadRequest, match="data is bytes"):
            runtime.put_file(path, "text/plain")


def test_what_is_raised_inside_is_raised_here(tmp_path: Path) -> None:
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([fails("no")])) as runtime:
        with pytest.raises(ProviderError, match="no"):
            runtime.send("go").result()
        with pytest.raises(BadRequest):
            runtime.send("")
    assert not [thread for thread in threading.enumerate() if thread.name == "dragoman"]


def test_a_runtime_that_cannot_be_made_leaves_no_thread(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([]), max_rounds=-1)
    assert not [thread for thread in threading.enumerate() if thread.name == "dragoman"]


def test_an_open_house_is_not_opened_once_more(tmp_path: Path) -> None:
    """Nor closed for who opened it."""
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("hello")])) as runtime:
        with pytest.raises(ConfigError, match="already open"), runtime:
            pass
        assert runtime.send("hi").result().text == "hello"


def test_who_stops_reading_can_still_ask_for_the_result(tmp_path: Path) -> None:
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("a long answer")])) as runtime:
        turn = runtime.send("go")
        for event in turn.events():
            if event.type == "text.delta":
                break
        assert turn.result().text == "a long answer"


async def test_in_a_notebook_a_loop_runs_already(tmp_path: Path) -> None:
    model = ScriptedModel([says("Hi.")])
    assert run_sync("Hello", model=model, store=tmp_path / "chat.db").text == "Hi."


def test_a_turn_goes_on_in_the_next_program(tmp_path: Path) -> None:
    """S1"""
    with SyncRuntime(
        tmp_path / "chat.db", model=ScriptedModel([calls("add", a=1, b=2)]), tools=[add]
    ) as runtime:
        turn = runtime.send("add")
        assert turn.reached("waiting")
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("No then.")]), tools=[add]) as runtime:
        (question,) = runtime.questions()
        runtime.answer(question.id, reject("not today"))
        assert runtime.turn(turn.id).result().text == "No then."


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_sub_agent_asks_is_answered_for_one_question_too(tmp_path: Path, depth: int) -> None:
    """In a task, and in the task of a task, no user is present, so the call does not run (P1)."""
    ran = []

    @tool
    def danger(x: str) -> str:
        """Do something dangerous."""
        ran.append(x)
        return "done"

    tasks = [calls("task", agent="w", request="do it") for _ in range(depth)]
    model = ScriptedModel([*tasks, calls("danger", x="1"), *(says(f"answer {i}") for i in range(depth + 1))])
    result = run_sync(
        "go", model=model, store=tmp_path / "a.db", tools=[danger], agents=[Agent(name="w")], allow=["task"]
    )
    assert result.text == f"answer {depth}"
    assert ran == []


class Nothing(BaseModel):
    """No arguments."""


def test_a_call_that_a_client_would_run_fails_where_there_is_none(tmp_path: Path) -> None:
    locate = client_tool("locate", "Where the person is.", Nothing)
    model = ScriptedModel([calls("locate"), says("I do not know.")])
    result = run_sync("where?", model=model, store=tmp_path / "a.db", tools=[locate], allow=["*"])
    assert result.text == "I do not know."


class Meddler(Plugin):
    """Calls the runtime that waits for it."""

    runtime: SyncRuntime
    wrong: Exception | None = None

    def on_event(self, event: Event, turn: TurnView) -> None:
        if event.type == "turn.end":
            try:
                self.runtime.questions()
            except BadRequest as error:
                self.wrong = error


def test_a_call_from_its_own_thread_is_an_error_and_no_deadlock(tmp_path: Path) -> None:
    """In a hook, and in an async tool: both run where the answer would have to come from."""
    meddler = Meddler()

    @tool
    async def meddle() -> str:
        """Ask the runtime."""
        with pytest.raises(BadRequest, match="its own thread"):
            list(meddler.runtime.turn("turn_x").events())
        with pytest.raises(BadRequest, match="its own thread"):
            meddler.runtime.__exit__(None, None, None)
        return "refused"

    model = ScriptedModel([calls("meddle"), says("Hi.")])
    with SyncRuntime(
        tmp_path / "chat.db", model=model, tools=[meddle], allow=["*"], plugins=[meddler]
    ) as runtime:
        meddler.runtime = runtime
        result = runtime.send("go").result()
        (call,) = [call for message in result.messages for call in message.calls]
        assert (call.state, call.result and call.result.text) == ("completed", "refused")
    assert "its own thread" in str(meddler.wrong)


@pytest.mark.filterwarnings("error")
def test_a_closed_runtime_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An iterator that is dropped afterwards prints nothing, and one that is read raises the same error."""
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("a long answer")])) as runtime:
        turn = runtime.send("go")
        dropped, read = turn.events(), turn.events()
        assert next(dropped).type == next(read).type
        turn.result()
    with pytest.raises(BadRequest, match="closed"):
        runtime.send("x")
    with pytest.raises(BadRequest, match="closed"):
        turn.result()
    with pytest.raises(BadRequest, match="closed"):
        next(read)
    del dropped, read
    gc.collect()
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_told_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    """The child has no thread that would answer. It leaves the parent's resources alone."""
    told, tell = os.pipe()
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel([says("Hi.")])) as runtime:
        read = runtime.send("go").events()
        next(read)
        if (child := os.fork()) == 0:
            signal.alarm(int(PATIENCE))  # ends it where it would wait
            try:
                runtime.questions()
            except BadRequest as error:
                os.write(tell, str(error).encode())
            del read
            runtime.__exit__(None, None, None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        os.close(tell)
        with os.fdopen(told) as words:
            assert "a forked child makes one of its own" in words.read()
        assert [event.type for event in read][-1] == "turn.end"


class Slow(SqliteStore):
    """A store that opens or closes only when released."""

    def __init__(self, path: Path, slow: str) -> None:
        super().__init__(path)
        self.slow, self.is_slow, self.go_on = slow, threading.Event(), threading.Event()

    async def open(self) -> None:
        await super().open()
        await self._pause("open")

    async def close(self) -> None:
        await self._pause("close")
        await super().close()

    async def _pause(self, where: str) -> None:
        if where == self.slow:
            self.is_slow.set()
            await asyncio.to_thread(self.go_on.wait)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Restore Ctrl-C, also if the tests run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("slow", ["open", "close"])
def test_ctrl_c_while_it_opens_or_closes_leaves_nothing_behind(tmp_path: Path, slow: str) -> None:
    """In a notebook, the process continues: no other process could take turns that it seems to run."""
    store, before = Slow(tmp_path / "chat.db", slow), threading.enumerate()

    def interrupt() -> None:
        store.is_slow.wait(PATIENCE)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if slow == "open":
            store.go_on.set()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt), SyncRuntime(store, model=ScriptedModel([])):
        pass
    store.go_on.set()
    end = time.monotonic() + PATIENCE
    while set(threading.enumerate()) - set(before):  # one that is just starting cannot be joined
        assert time.monotonic() < end
        time.sleep(0.01)


async def _numbers() -> AsyncIterator[int]:
    yield 1
    yield 2


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


def test_what_is_read_may_be_dropped_by_who_holds_what_the_loop_wants(loop: LoopThread) -> None:
    """As the lock of a log handler: the collector of garbage runs in any line."""
    wanted, waits = threading.Lock(), threading.Event()

    async def wants() -> None:
        waits.set()
        with wanted:
            pass

    items = loop.iterate(_numbers())
    next(items)
    with wanted:
        other = threading.Thread(target=lambda: loop.run(wants()))
        other.start()
        assert waits.wait(PATIENCE)
        dropping = threading.Thread(target=items.close, daemon=True)
        dropping.start()
        dropping.join(PATIENCE)
        assert not dropping.is_alive()
    other.join()


def test_what_is_read_may_be_dropped_while_something_is_started(loop: LoopThread) -> None:
    items = loop.iterate(_numbers())
    next(items)

    def drop(frame: FrameType, kind: str, argument: object) -> None:
        if frame.f_code.co_name == "run_coroutine_threadsafe":
            sys.setprofile(None)
            items.close()

    def start() -> None:
        sys.setprofile(drop)
        assert next(loop.iterate(_numbers())) == 1

    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    starting.join(PATIENCE)
    assert not starting.is_alive()


@pytest.mark.parametrize(
    ("waits", "awaits"),
    [(SyncTurn, TurnHandle), (SyncConversation, ConversationHandle), (SyncRuntime, Runtime)],
)
def test_nothing_of_the_library_is_missing(waits: type, awaits: type) -> None:
    """`subscribe` alone is: its listeners would run in the other thread."""
    public = {name for name in vars(awaits) if not name.startswith("_")}
    assert public - {*vars(waits)} <= {"subscribe"}


def test_versions_have_types_and_dependencies_too(tmp_path: Path) -> None:
    """A conversation can be imported from its export, too."""
    script = [says("[1]"), says("[2]"), says("[3]")]
    with SyncRuntime(tmp_path / "chat.db", model=ScriptedModel(script)) as runtime:
        chat = runtime.conversation()
        chat.send("one", output_type=list[int]).result()
        question, answer = chat.messages()
        again = chat.rerun(answer.id, output_type=list[int], deps="x").result()
        edited = chat.edit(question.id, "three", output_type=list[int], deps="x")
        assert (again.output, edited.result().output) == ([2], [3])
        assert edited.facts()
        assert edited.request().options == ()
        assert not edited.resume()
        copy = runtime.import_conversation(runtime.export(chat.id))
        assert [message.text for message in copy.messages()] == ["three", "[3]"]
