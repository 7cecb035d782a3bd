"""Following a turn at a terminal: signals cancel it, and another client may answer its questions first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dragoman.cli.terminal.text import one_line
from dragoman.messages import events as e
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.turn.api.turn_handle import TurnHandle

POLL = 0.2  # seconds between looks at what another process may change
# What asks a program to end, beside Ctrl-C. Windows has not all of them.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Tasks:
    """Work that goes on beside what is followed: held, so that it is not lost before its end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Nobody needs it any more."""
        for task in self._tasks:
            task.cancel()
        await self.wait()


class Interrupts:
    """What a signal that wants the program to end does: it cancels the turn, once there is one.

    Without a turn it ends what the program is doing. The second signal ends the program as usual.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self._signals = signals
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._turn: TurnHandle | None = None
        self._cancelling = Tasks()

    def __enter__(self) -> Interrupts:
        for number in self._signals:
            if number in ENDING and signal.getsignal(number) is signal.SIG_IGN:
                continue  # as under nohup: it is not to end then
            with suppress(NotImplementedError, ValueError):  # Windows, or not the main thread
                self._loop.add_signal_handler(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._signals:
            with suppress(NotImplementedError, ValueError):
                self._loop.remove_signal_handler(number)

    def watch(self, turn: TurnHandle) -> None:
        """From now on it is this turn that is cancelled."""
        self._turn = turn

    def _interrupt(self) -> None:
        self.__exit__()
        if self._turn is None:
            if self._task is not None:
                self._task.cancel()
            return
        self._cancelling.start(self._turn.cancel("interrupted"))


@contextmanager
def on_interrupt(act: Callable[[], Coroutine[Any, Any, object]]) -> Iterator[None]:
    """Ctrl-C does this, and the program goes on."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    acting = Tasks()
    try:
        loop.add_signal_handler(signal.SIGINT, lambda: acting.start(act()))
    except NotImplementedError:  # Windows: there Ctrl-C ends the program
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


class TurnQuestions(Tasks):
    """Has the questions of one turn settled, one after another, while its events go on."""

    def __init__(self, turn: TurnHandle, settle: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        super().__init__()
        self._turn = turn
        self._settle = settle
        self._asking = asyncio.Lock()

    def ask(self, question: str) -> None:
        self.start(self._settle_next(question))

    def decline(self, event: e.CallStart) -> None:
        """Fail a call that a client is to run, as there is none."""
        why = f"{event.tool} runs in a client, and there is none here"
        self.start(self._turn.deliver(event.call, why, failed=True))

    async def idle(self) -> None:
        """Wait until no question stands at the prompt, where what is printed would look like its answer."""
        async with self._asking:
            pass

    async def _settle_next(self, question: str) -> None:
        async with self._asking:
            await self._settle(question)


async def prompt_until_settled(
    runtime: Runtime, question: Question, prompt: Coroutine[Any, Any, None]
) -> str | None:
    """Run `prompt` until it ends or the question is settled by another client, whichever comes first.

    None where the prompt ended, or raised; else how the question was settled meanwhile.
    """
    prompting = asyncio.create_task(prompt)
    watching = asyncio.create_task(_watch(runtime, question.id))
    try:
        await asyncio.wait({prompting, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        prompting.cancel()
        await asyncio.gather(prompting, watching, return_exceptions=True)
    if not prompting.cancelled():
        prompting.result()
        return None
    await runtime.driver.wake(question.turn)
    return _describe_settled(await runtime.store.question(question.id))


async def _watch(runtime: Runtime, id: str) -> None:
    while (await runtime.store.question(id)).open:  # noqa: ASYNC110 - it happens in a file
        await asyncio.sleep(POLL)


def _describe_settled(question: Question) -> str:
    if question.answer is not None:
        by = f" by {one_line(question.answer.by)}" if question.answer.by else ""
        return f"{question.answer.verdict}, answered elsewhere{by}"
    return question.closed or "the request is closed"
