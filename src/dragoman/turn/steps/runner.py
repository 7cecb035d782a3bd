"""Runs one turn: the flow from request to request, and the single ending that follows it in every case.

The flow is a separate task. A cancel stops the flow, or cuts short a hanging hook of the ending, and nothing
else. The ending runs once and is never cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from dragoman.errors import (
    ENDS_THE_PROGRAM,
    DragomanError,
    EngineError,
    Fenced,
    ProviderError,
    StoreUnavailable,
    TurnInterrupted,
)
from dragoman.messages.asked import call_asked
from dragoman.messages.events import Notice, TurnStart
from dragoman.messages.message import CallState
from dragoman.tools.execute import Outcome
from dragoman.trace_context import enter_trace
from dragoman.turn.acting_agent import hands_over, keep_agent
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.machine import State
from dragoman.turn.plugin import Cleanup
from dragoman.turn.services import Services
from dragoman.turn.steps.authority import load_givers
from dragoman.turn.steps.call import CallRun
from dragoman.turn.steps.calls import Settled, recover, run_calls
from dragoman.turn.steps.cancel import Wake, cancel_tasks
from dragoman.turn.steps.finalize import conclude, keep_what_came, one_error, torn_reply
from dragoman.turn.steps.prepare import (
    PreparedTurn,
    assemble,
    build_request,
    find_deps,
    hand_over,
    look_for_tools,
    offer_of,
    offer_to_calls,
    start_plugins,
)
from dragoman.turn.steps.rerun_call import copy_steps
from dragoman.turn.steps.slots import Lanes
from dragoman.turn.steps.stream import Streamed, stream

_log = logging.getLogger("dragoman.turn")
_ASKED_AGAIN = 3  # Maximum repeats of a step after a plugin fixed the cause of an error.
_DUE = frozenset({CallState.PENDING, CallState.RUNNING})  # Calls in other states wait for a user.
_GRACE = 5.0  # Maximum seconds for work that a cancel interrupts.

End: TypeAlias = Literal["completed", "cancelled", "error"]


class Runner:
    """Runs one turn in this process, from the state that its facts describe."""

    def __init__(
        self, services: Services, log: TurnLog, *, on_follow: Callable[[], None], wake: Wake
    ) -> None:
        # Agents stay fixed until the turn is over (T14).
        self.services = replace(services, agents={**services.agents})
        self.log = log
        self._wake = wake
        self.signals = Signals(log.id, log.store, on_cancel=self.cancel, on_follow=on_follow)
        self._lanes = Lanes(asyncio.Semaphore(services.concurrency), asyncio.Lock(), _DETACHED)
        self._flow: asyncio.Task[None] | None = None
        self._cleanups: list[Cleanup] = []
        self._cancelled = asyncio.Event()
        self._stopping = False

    def cancel(self, reason: str = "") -> None:
        """Stop the flow of the turn, which ends as cancelled. Return immediately."""
        if self.log.cancelled is None:
            self.log.cancelled, self.log.cancelled_by = reason, self.signals.cancelled_by
            self._cancelled.set()
            if self._flow is not None:
                self._flow.cancel()

    def stop(self) -> None:
        """Stop with the process. The turn does not end and resumes at the next start."""
        self._stopping = True
        if self._flow is not None:
            self._flow.cancel()

    async def run(self) -> None:
        """Run the turn to its end.

        Raise its error after storing it. A cancelled turn ends without an error.
        """
        try:
            await self._run()
        finally:
            self.signals.left.set()  # A tool that must not be stopped no longer waits for an answer.

    async def _run(self) -> None:
        enter_trace(self.log.trace)
        error: BaseException | None = None
        prepared: PreparedTurn | None = None
        try:
            self.services = await self.services.seen_by(self.log.sender)
            prepared = assemble(self.services, self.log, self.signals)
        except Exception as wrong:
            error = wrong
        else:
            error = await self._outcome(prepared)
        if isinstance(error, Fenced | TurnInterrupted) or _is_store_fault(error):
            if not isinstance(error, Fenced):
                self.log.count_draft()
            # The store was closed meanwhile, or is unreachable.
            with suppress(EngineError, StoreUnavailable):
                # Wait for records made while stopping, such as the usage of an interrupted reply.
                await self.log.stored()
            await self._clean_up()
            assert error is not None
            raise error
        self.services.inputs.pop(self.log.id, None)
        await self._end(prepared, error)

    # ── the flow ──────────────────────────────────────────────────────────────────────────────────

    async def _outcome(self, prepared: PreparedTurn) -> BaseException | None:
        """Return the error of the flow. None if it finished or was cancelled."""
        self._flow = flow = asyncio.create_task(self._run_steps(prepared), name=f"{self.log.id} flow")
        if self.log.cancelled is not None or self._stopping:
            flow.cancel()
        try:
            finished = await self._cut_short(flow, "the flow of the turn")
        except asyncio.CancelledError:  # The event loop is closing.
            flow.cancel()
            await self._clean_up()
            raise
        except ENDS_THE_PROGRAM:
            raise
        except BaseException as error:
            return error
        if finished or self.log.cancelled is not None:
            return None
        return TurnInterrupted(self.log.id) if self._stopping else EngineError("something cancelled the turn")

    async def _run_steps(self, prepared: PreparedTurn) -> None:
        log = self.log
        if log.resumed:  # A turn that started here receives its signals directly.
            await self.signals.collect()
        prepared.watch_events()
        log.publish(TurnStart(log.id, log.conversation.id, log.turn.message, log.resumed))
        for question in log.snapshot().questions:
            # Publish open requests for clients that follow a resumed turn. A running tool asks again if it
            # runs again. Otherwise, its request is obsolete.
            if log.turn.calls[question.call].state is not CallState.RUNNING:
                log.publish(call_asked(question))
        if log.resumed:
            await asyncio.sleep(0)  # Handle a cancel that arrived earlier before doing anything else.
        if log.conversation.parent is not None:
            prepared.givers.add(await load_givers(self.services, log.conversation))
        prepared.view.deps = await find_deps(prepared)
        if log.resumed:
            await keep_agent(self.services, log)
        await start_plugins(prepared, self._cleanups)
        await copy_steps(log, self.services.store)
        await self._steps(await hand_over(prepared))  # The copied steps may end with another agent.

    async def _steps(self, prepared: PreparedTurn) -> None:
        """Run step after step, starting in the middle of one if the turn was interrupted there."""
        turn = self.log.turn
        settled = Settled(prepared, again=turn.state is not State.FINALIZING or not turn.finished)
        if turn.replied and not turn.finished:
            await look_for_tools(prepared)
            due = [id for id, call in turn.calls.items() if call.state in _DUE and not call.client]
            offer = await offer_to_calls(prepared, offer_of(prepared), due)
            await recover(self.log, offer)
            reply = next((message for message in self.log.path if message.id == turn.reply), None)
            settled = await run_calls(Streamed(prepared, offer, reply), self._lanes)
        while settled.again:
            prepared = await hand_over(prepared)
            streamed = await self._ask_model(prepared)
            settled = await run_calls(streamed, self._lanes)

    async def _ask_model(self, prepared: PreparedTurn) -> Streamed:
        """Send one request and return its reply. Repeat it if a plugin fixed the cause of an error."""
        for _ in range(_ASKED_AGAIN):
            try:
                return await stream(await build_request(prepared))
            except ProviderError as error:
                if not await _repaired(prepared, error):
                    raise
                self.log.timing.failed(error, self.log.now())
        return await stream(await build_request(prepared))

    # ── the ending ────────────────────────────────────────────────────────────────────────────────

    async def _end(self, prepared: PreparedTurn | None, error: BaseException | None) -> None:
        """End the turn, once in every case. During a cancel, an error counts as part of the cancel."""
        end: End = "error" if error is not None else "completed"
        if self.log.cancelled is not None:
            end, error = "cancelled", None
        errors: list[BaseException] = [error] if error is not None else []
        if end != "completed":
            torn = torn_reply(self.log, end, error)
            if torn is not None and prepared is not None and self.log.draft_seen is None:
                errors += await self._hook(prepared.hooks.see_message(torn, prepared.view))
            if prepared is not None and end == "cancelled":
                errors += await self._hook(self._keep_decided(prepared))
            await keep_what_came(self.log, self.signals, end, torn)
        await cancel_tasks(self.services, self.log, self._wake)
        if prepared is not None and hands_over(self.log):
            with suppress(DragomanError):  # The other agent may be gone. Its next turn reports that.
                await keep_agent(self.services, self.log)
        if prepared is not None and end != "error":
            late = await self._on_turn_end(prepared)
            errors += late
            if late and end == "completed":
                end = "error"
        main = None if end != "error" or isinstance(error, ProviderError) else errors[0]
        if prepared is not None and isinstance(main, Exception):
            errors += await self._hook(_repaired(prepared, main))
        errors += await self._clean_up()
        if fault := next(filter(_is_store_fault, errors), None):
            raise fault  # The turn is not over: it resumes when the store is reachable.
        if self.log.cancelled is not None and end != "error":
            for each in errors:  # Errors after a cancel belong to the cancel.
                self.log.publish(Notice(str(each) or type(each).__name__, "error_after_cancel"))
            errors = []
        await conclude(self.log, self.signals, failure := one_error(errors))
        if failure is not None:
            raise failure

    async def _keep_decided(self, prepared: PreparedTurn) -> None:
        """Apply stored results and answers that arrived before the cancel."""
        await self.signals.collect()
        for id in self.log.turn.unsettled:
            await CallRun(prepared, offer_of(prepared), self._lanes, id).keep_decided()

    async def _on_turn_end(self, prepared: PreparedTurn) -> list[BaseException]:
        """Run the hooks in order, each once. After an error, the rest run only if the turn is cancelled."""
        errors: list[BaseException] = []
        for plugin in prepared.hooks.turn_end:
            errors += await self._hook(plugin.on_turn_end(prepared.view))
            if errors and self.log.cancelled is None:
                break
        return errors

    async def _clean_up(self) -> list[BaseException]:
        """Run every cleanup, the last one first, even if others fail. Return their errors."""
        errors: list[BaseException] = []
        while self._cleanups:
            try:
                done = self._cleanups.pop()()
            except ENDS_THE_PROGRAM:
                raise
            except BaseException as error:
                errors.append(error)
                continue
            if inspect.isawaitable(done):
                errors += await self._hook(done)
        return errors

    async def _hook(self, work: Awaitable[Any]) -> list[BaseException]:
        """Await the hook in a task that a cancel can cut short. Return its error."""
        try:
            await self._cut_short(asyncio.ensure_future(work), "a hook of the turn's end")
        except (asyncio.CancelledError, *ENDS_THE_PROGRAM):
            raise
        except BaseException as error:
            return [error]
        return []

    async def _cut_short(self, task: asyncio.Future[Any], name: str) -> bool:
        """Wait for a task. If the turn is cancelled, stop the task, or abandon it if it does not stop.

        Return False if it did not finish.
        """
        if not self._cancelled.is_set():
            cancelled = asyncio.ensure_future(self._cancelled.wait())
            await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            cancelled.cancel()
            # Cancel only once: a second cancel would interrupt the wait for a tool that is stopping.
            if not task.done() and not (isinstance(task, asyncio.Task) and task.cancelling()):
                task.cancel()
        if not task.done():
            await asyncio.wait({task}, timeout=_GRACE)
        if not task.done():
            _log.warning("turn %s: %s does not stop; continuing without it", self.log.id, name)
            task.add_done_callback(_ignore_error)
            return False
        if task.cancelled():
            return False
        task.result()
        return True


def _is_store_fault(error: BaseException | None) -> bool:
    """Return whether the store was unreachable. The turn then breaks off and resumes when a process reaches
    it (N4)."""
    return isinstance(error, StoreUnavailable) and error.retryable


async def _repaired(prepared: PreparedTurn, error: Exception) -> bool:
    """Return whether a plugin reports that it fixed the cause of an error."""
    for plugin in prepared.hooks.error:
        if await plugin.on_error(error, prepared.view):
            return True
    return False


def _ignore_error(task: asyncio.Future[Any]) -> None:
    """Ignore the task's error: the turn is over, so its writes are refused and no caller waits for it."""
    if not task.cancelled():
        task.exception()


_DETACHED: set[asyncio.Task[Outcome]] = set()  # Tools of all turns that must not be stopped.
