"""A turn in, its end out: the loop from request to request, and what happens when it is broken off."""

from __future__ import annotations

import asyncio

from dragoman.errors import Fenced, ProviderError
from dragoman.messages.events import Notice, TurnStart
from dragoman.tools.execute import Outcome
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals
from dragoman.turn.machine import State
from dragoman.turn.plugin import Cleanup, Hooks
from dragoman.turn.services import Services
from dragoman.turn.steps.ask import asked
from dragoman.turn.steps.call import Lanes
from dragoman.turn.steps.calls import Settled, run_calls
from dragoman.turn.steps.finalize import clean_up, conclude, end_hooks, keep_what_came, one_error
from dragoman.turn.steps.prepare import PreparedTurn, build_request, offer_of, prepare
from dragoman.turn.steps.recover import recover
from dragoman.turn.steps.stream import Streamed, stream

_ASKED_AGAIN = 3  # how often one step is asked again because a plugin mended the cause of an error


class Runner:
    """Runs one turn in this process, from wherever its facts say it stands."""

    def __init__(self, services: Services, log: TurnLog) -> None:
        self.services = services
        self.log = log
        self.signals = Signals(log.id, log.store, self.cancel)
        self._lanes = Lanes(asyncio.Semaphore(services.concurrency), asyncio.Lock(), _DETACHED)
        self._task: asyncio.Task[None] | None = None
        self.hooks: Hooks | None = None
        self._over = False  # too late to cancel: only the cleanups are left

    def cancel(self, reason: str = "") -> None:
        """Stop the flow of the turn. It ends as cancelled; this returns at once."""
        if self.log.cancelled is None and not self._over:
            self.log.cancelled = reason
            if self._task is not None:
                self._task.cancel()

    async def run(self) -> None:
        """To the end of the turn. Raises what made it fail, after it is stored. A cancelled turn has ended,
        not failed. Where the program itself is stopped, the turn stays as it is and goes on later."""
        self._task = asyncio.current_task()
        cleanups: list[Cleanup] = []
        errors: list[Exception] = []
        prepared: PreparedTurn | None = None
        try:
            await self.signals.collect()
            self.log.publish(
                TurnStart(self.log.id, self.log.conversation.id, self.log.turn.message, self.log.resumed)
            )
            self._ask_again()
            self._stop_if_cancelled()
            self.hooks = Hooks(self.services.plugins, self.log.turn.options.disabled)
            prepared = await prepare(self.services, self.log, self.signals, self.hooks, cleanups)
            await self._to_the_end(prepared)
            await end_hooks(prepared)
        except Fenced:
            await clean_up(cleanups)
            raise
        except (Exception, asyncio.CancelledError) as error:
            if self.log.cancelled is None and isinstance(error, asyncio.CancelledError):
                await clean_up(cleanups)  # the program stops; the turn does not
                raise
            errors += await self._broken_off(error, prepared)
        self._over = True
        errors += await clean_up(cleanups)
        if self.log.cancelled is not None:
            errors = self._counted_as_cancel(errors)
        await conclude(self.log, self.signals, failure := one_error(errors))
        if failure is not None:
            raise failure

    async def _to_the_end(self, prepared: PreparedTurn) -> None:
        """Step after step, beginning in the middle of one if that is where the turn stands."""
        turn = self.log.turn
        settled = Settled(prepared, again=turn.state is not State.FINALIZING or not turn.finished)
        if turn.replied and not turn.finished:
            await self.services.toolbox.ready()
            offer = offer_of(prepared)
            await recover(self.log, offer)
            reply = next((message for message in self.log.path if message.id == turn.reply), None)
            settled = await run_calls(Streamed(prepared, offer, reply), self._lanes)
        while settled.again:
            streamed = await self._asked(prepared)
            settled = await run_calls(streamed, self._lanes)

    async def _asked(self, prepared: PreparedTurn) -> Streamed:
        """One request and its reply; asked again where a plugin could mend what was wrong."""
        for _ in range(_ASKED_AGAIN):
            try:
                return await stream(await build_request(prepared))
            except ProviderError as error:
                if not await self._mended(prepared, error):
                    raise
        return await stream(await build_request(prepared))

    async def _mended(self, prepared: PreparedTurn, error: Exception) -> bool:
        for plugin in prepared.hooks.error:
            if await plugin.on_error(error, prepared.view):
                return True
        return False

    async def _broken_off(self, error: BaseException, prepared: PreparedTurn | None) -> list[Exception]:
        """The turn stops here: cancelled if somebody wanted that, whatever was raised; else failed."""
        if self.log.cancelled is None:
            assert isinstance(error, Exception)
            await keep_what_came(self.log, self.signals, "error", error)
            return [error, *await self._reported(error, prepared)]
        _swallow_cancel()
        await keep_what_came(self.log, self.signals, "cancelled")
        try:
            if prepared is not None:
                await end_hooks(prepared)
        except Exception as late:
            return [late]
        return []

    async def _reported(self, error: Exception, prepared: PreparedTurn | None) -> list[Exception]:
        """Let the plugins know, unless they were asked to mend it already."""
        try:
            if prepared is not None and not isinstance(error, ProviderError):
                await self._mended(prepared, error)
        except Exception as late:
            return [late]
        return []

    def _counted_as_cancel(self, errors: list[Exception]) -> list[Exception]:
        """Whatever is raised once a turn is cancelled belongs to the cancel: it is told, not raised."""
        for error in errors:
            self.log.publish(Notice(str(error) or type(error).__name__, "error_after_cancel"))
        return []

    def _ask_again(self) -> None:
        """Whoever follows a turn that was taken up hears of the questions it still asks."""
        for question in self.log.snapshot().questions:
            self.log.publish(asked(question))

    def _stop_if_cancelled(self) -> None:
        if self.log.cancelled is not None:
            raise asyncio.CancelledError


_DETACHED: set[asyncio.Task[Outcome]] = set()  # of all turns: tools that may not be stopped


def _swallow_cancel() -> None:
    """What comes now is the orderly end: the cancel that brought us here is used up."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
