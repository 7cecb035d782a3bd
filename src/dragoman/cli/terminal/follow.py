"""Follow a turn at a terminal. Signals cancel it, and another client can answer its approval requests
first."""

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

POLL = 0.2  # seconds between checks for changes by other processes
# Signals other than Ctrl-C that end a program. Windows lacks some of them.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Tasks:
    """Background tasks, referenced until their end so that they are not lost."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()
        await self.wait()


class Interrupts:
    """Handles a signal that ends the program: it cancels the turn, if there is one.

    Without a turn, it cancels the program's work. The second signal ends the program as usual.
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
                continue  # The signal is ignored, as with nohup, and must not end the program.
            with suppress(NotImplementedError, ValueError):  # Windows, or not the main thread
                self._loop.add_signal_handler(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._signals:
            with suppress(NotImplementedError, ValueError):
                self._loop.remove_signal_handler(number)

    def watch(self, turn: TurnHandle) -> None:
        """Cancel this turn on the next signal."""
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
    """Call `act` on Ctrl-C instead of ending the program."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    acting = Tasks()
    try:
        loop.add_signal_handler(signal.SIGINT, lambda: acting.start(act()))
    except NotImplementedError:  # On Windows, Ctrl-C ends the program.
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


class TurnQuestions(Tasks):
    """Settles the approval requests of one turn in order while its events continue."""

    def __init__(self, turn: TurnHandle, settle: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        super().__init__()
        self._turn = turn
        self._settle = settle
        self._asking = asyncio.Lock()

    def ask(self, question: str) -> None:
        self.start(self._settle_next(question))

    def decline(self, event: e.CallStart) -> None:
        """Fail a call that a client must run, because there is none."""
        why = f"{event.tool} runs in a client, and there is none here"
        self.start(self._turn.deliver(event.call, why, failed=True))

    async def idle(self) -> None:
        """Wait until no prompt is shown, because other output would look like its answer."""
        async with self._asking:
            pass

    async def _settle_next(self, question: str) -> None:
        async with self._asking:
            await self._settle(question)


async def prompt_until_settled(
    runtime: Runtime, question: Question, prompt: Coroutine[Any, Any, None]
) -> str | None:
    """Run `prompt` until it ends or another client settles the approval request.

    Returns None if the prompt ended or raised. Otherwise, returns how the request was settled.
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
