"""Following a turn at a terminal: Ctrl-C cancels it, and another client may answer its questions first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from dragoman.cli.terminal.text import one_line
from dragoman.messages import events as e
from dragoman.messages.questions import Question
from dragoman.runtime import Runtime
from dragoman.turn.handles import TurnHandle

POLL = 0.2  # seconds between looks at what another process may change


@contextmanager
def cancel_on_interrupt(turn: TurnHandle, *, once: bool = False) -> Iterator[None]:
    """Ctrl-C cancels the turn and the program goes on. With `once`, a second Ctrl-C ends the program."""
    loop = asyncio.get_running_loop()
    cancelling: set[asyncio.Task[bool]] = set()

    def cancel() -> None:
        if once:
            loop.remove_signal_handler(signal.SIGINT)
        task = loop.create_task(turn.cancel("interrupted at the keyboard"))
        cancelling.add(task)
        task.add_done_callback(cancelling.discard)

    try:
        loop.add_signal_handler(signal.SIGINT, cancel)
    except NotImplementedError:  # Windows: there Ctrl-C ends the program
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def question_in(event: e.Event) -> str | None:
    """The id of what a person is asked, also by a call that works in a conversation of its own."""
    match event:
        case e.CallAsked(question=question):
            return question
        case e.CallProgress(value={"asks": str(question)}):
            return question
        case _:
            return None


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
    return question.closed or "nobody need answer any more"
