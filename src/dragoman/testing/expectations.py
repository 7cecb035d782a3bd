"""Assert what a turn has done, in words that read like the name of the test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

from dragoman.messages.message import CallState, ToolCall
from dragoman.turn.api.turn_handle import TurnResult

_DID_NOT_RUN = (CallState.REJECTED, CallState.SKIPPED)


class Expectation:
    """Assertions about a result. Each method raises AssertionError with all calls, or returns this object for
    the next."""

    def __init__(self, result: TurnResult[Any]) -> None:
        self.result = result
        self.calls: list[ToolCall] = [call for message in result.messages for call in message.calls]

    def called(self, tool: str, **arguments: object) -> Self:
        """The tool ran, at least once with these arguments. A pattern of `re` matches a string."""
        ran = [call for call in self._of(tool) if call.state not in _DID_NOT_RUN]
        if not any(_fits(call, arguments) for call in ran):
            self._fail(f"no call of {tool} with {arguments}" if arguments else f"{tool} was not called")
        return self

    def never_called(self, tool: str) -> Self:
        """The model did not call the tool."""
        if self._of(tool):
            self._fail(f"{tool} was called")
        return self

    def refused(self, tool: str) -> Self:
        """A user, a rule or a limit prevented the call."""
        if not any(call.state in _DID_NOT_RUN for call in self._of(tool)):
            self._fail(f"no call of {tool} was refused")
        return self

    def failed(self, tool: str, text: str = "") -> Self:
        """The tool ran, and failed with an error that contains this text."""
        failed = [call for call in self._of(tool) if call.state is CallState.FAILED]
        if not any(call.result is not None and text in call.result.text for call in failed):
            self._fail(f"no call of {tool} failed" + (f" with {text!r}" if text else ""))
        return self

    def called_in_order(self, *tools: str) -> Self:
        """These tools ran in this order. Other calls can come between them."""
        left = iter(call.tool for call in self.calls)
        if not all(tool in left for tool in tools):
            self._fail(f"{' → '.join(tools)} were not called in this order")
        return self

    def answered(self, text: str | re.Pattern[str]) -> Self:
        """The answer contains this text, or matches the pattern."""
        found = text in self.result.text if isinstance(text, str) else text.search(self.result.text)
        if not found:
            self._fail(f"{text!r} is not in the answer")
        return self

    def used_at_most(self, *, calls: int | None = None, tokens: int | None = None) -> Self:
        spent = self.result.usage.input + self.result.usage.output
        if calls is not None and len(self.calls) > calls:
            self._fail(f"{len(self.calls)} calls, not {calls} at most")
        if tokens is not None and spent > tokens:
            self._fail(f"{spent} tokens, not {tokens} at most")
        return self

    def _of(self, tool: str) -> Sequence[ToolCall]:
        return [call for call in self.calls if call.tool == tool]

    def _fail(self, what: str) -> None:
        lines = [f"  {call.tool}({_shown(call)}) {call.state}" for call in self.calls] or ["  no calls"]
        raise AssertionError("\n".join([what, *lines, f"  answer: {self.result.text!r}"]))


def expect(result: TurnResult[Any]) -> Expectation:
    return Expectation(result)


def _fits(call: ToolCall, wanted: dict[str, object]) -> bool:
    return all(name in call.arguments and _is(call.arguments[name], value) for name, value in wanted.items())


def _is(given: object, wanted: object) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(given, str) and wanted.search(given) is not None
    return given == wanted


def _shown(call: ToolCall) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
