"""Make room when a conversation does not fit: clear old tool results first, then summarize the head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dragoman.conversation.tree import summary_of
from dragoman.conversation.window import Policy, window
from dragoman.errors import ConfigError, ContextOverflow, ProviderError
from dragoman.messages.endings import REFUSED
from dragoman.messages.message import Message, Part, Text, ToolCall, ToolResult, canonical
from dragoman.messages.request import Request, RequestMessage
from dragoman.messages.usage import Usage
from dragoman.sentences import sentence
from dragoman.turn.machine import State
from dragoman.turn.plugin import Appender, Plugin
from dragoman.turn.view import TurnView

CLEARED = "[An old result, cleared to make room.]"
_PROMPT = (
    "Sum up the conversation so far for yourself, so that you can go on without it: what the person wants, "
    "what was decided and found out, names, numbers and file paths that matter, what is still to be done."
)

_SO_FAR = "What came before, compacted:"
_MOST_PIECES = 20  # maximum number of parts of a head that does not fit into one request
_LONGEST = 2000  # maximum tokens of a summary
_CUT_REPLY = 2  # number of messages: the one that was cut off, and the request to continue it


class Compaction(Plugin):
    """Shrinks a request that would fill more than `threshold` of the model's context. None turns it off.

    The original messages stay in the tree. If the request still exceeds the model's context, the
    turn fails with the reason.
    """

    answers_only = True

    def __init__(
        self,
        threshold: float | None = 0.8,
        *,
        policy: Policy = "full",
        context: int | None = None,
        keep: int = 6,
        clear_after: int = 3,
    ) -> None:
        if threshold is not None and not 0 < threshold <= 1:
            raise ConfigError(
                f"The compaction threshold must be above 0 and at most 1, or None, not {threshold}."
            )
        self.threshold = threshold
        self.policy: Policy = policy  # the policy for earlier tool use, as in other plugins
        self.context = context  # tokens to assume if the model's context size is unknown
        self.keep = keep  # number of messages that are never summarized
        self.clear_after = clear_after  # number of messages whose results are never cleared

    async def on_after_request(self, reply: Message, turn: TurnView, append: Appender) -> None:
        """Continue a reply that filled the context when there is room again, once in a turn."""
        if reply.finish == "context" and reply.text and self._may_sum_up(turn):
            await append.and_request("Your reply was cut off. Go on exactly where it stopped.")

    async def on_before_request(self, request: Request, turn: TurnView) -> None:
        if not turn.talks or not turn.can_complete:
            return  # The request is not the conversation, or no model can summarize it.
        last = next((message for message in reversed(turn.messages) if message.role == "assistant"), None)
        if last is not None and last.finish == "context" and self._may_sum_up(turn):
            await self._sum_up(request, turn, "the context is full", _CUT_REPLY)
        if turn.compact and not any(summary_of(one) is not None for one in turn.messages):
            await self._sum_up(request, turn, "you asked for it", 1)
        elif turn.turn.state is State.COMPACTING:
            await self._sum_up(request, turn, "the program stopped while that was done", self.keep)
        limit = turn.context or self.context
        if self.threshold is None or limit is None or size(request) <= limit * self.threshold:
            return
        self._clear(request)
        if size(request) <= limit * self.threshold:
            return
        for keep in (self.keep, 1):
            if size(request) > limit * self.threshold and await self._sum_up(
                request, turn, "the context is nearly full", keep
            ):
                self._clear(request)
        if size(request) > limit:
            raise _does_not_fit()

    async def on_error(self, error: Exception, turn: TurnView) -> bool:
        """Summarize and retry when the provider refuses a request as too long, once in a turn."""
        if not isinstance(error, ContextOverflow) or not self._may_sum_up(turn):
            return False
        request = Request(turn.model, ())
        return await self._sum_up(request, turn, "the provider refused the request as too long", self.keep)

    def _may_sum_up(self, turn: TurnView) -> bool:
        """Allow one summary in a turn: if that does not help, retries would never end."""
        if self.threshold is None or not turn.talks or not turn.can_complete:
            return False
        return not any(summary_of(one) is not None for one in turn.messages)

    def _clear(self, request: Request) -> None:
        """Clear the results of older calls. The newest results stay."""
        last = len(request.messages) - self.clear_after
        request.messages = tuple(
            RequestMessage(said.role, tuple(map(_cleared, said.parts))) if place < last else said
            for place, said in enumerate(request.messages)
        )

    async def _sum_up(self, request: Request, turn: TurnView, reason: str, keep: int) -> bool:
        head, keeps_from = _split(turn.shown, keep)
        if not head:
            return False
        await turn.begin_compaction(reason)
        turn.notice(sentence("context.summing_up", reason=reason), "compaction")
        limit = turn.context or self.context
        longest = _LONGEST if limit is None else min(_LONGEST, limit // 8)
        reply: Message | None = None
        for piece in _pieces(_as_lines(head), limit, longest):
            if reply is not None:  # Count this reply's cost, whatever happens to the next request.
                await turn.count_summary(reply)
            text = f"{_SO_FAR}\n{reply.text}\n\n{piece}" if reply is not None else piece
            said = (RequestMessage("user", (Text(text),)), RequestMessage("user", (Text(_PROMPT),)))
            reply = await _summary(Request(turn.model, said, options={"max_tokens": longest}), turn)
            if not reply.text.strip() or reply.finish in REFUSED:
                await turn.count_summary(reply)
                raise ProviderError(sentence("context.no_summary"))
        assert reply is not None
        await turn.end_compaction(reply.text, keeps_from, reply.usage or Usage(), reply.model)
        request.messages = turn.window(self.policy)
        return True


def _does_not_fit() -> ProviderError:
    return ProviderError(
        sentence("context.full"),
        kind="context_overflow",
        hint=sentence("hint.new_conversation"),
    )


async def _summary(asked: Request, turn: TurnView) -> Message:
    """Return a summary by the small model, if it succeeds. Otherwise use the turn's model: the text can be
    too long for the small one."""
    if turn.has_small_model:
        try:
            return await turn.complete(replace(asked), purpose="summary")
        except ProviderError as error:
            turn.notice(sentence("context.by_other", model=turn.model, error=error), "compaction")
    return await turn.complete(asked, purpose="summary", own_model=True)


def size(request: Request) -> int:
    """Estimate the tokens of a request, well enough to notice a close limit."""
    texts = [request.system, *(canonical(tool.parameters) + tool.description for tool in request.tools)]
    texts += [_text_of(part) for said in request.messages for part in said.parts]
    return sum(_tokens(text) + 4 for text in texts)


def _tokens(text: str) -> int:
    """Estimate the tokens of a text. A token is four characters of English, or one of Chinese.

    Other scripts are in between: the more bytes a character has, the fewer of its sequences a tokenizer
    knows.
    """
    more = 0 if text.isascii() else len(text.encode("utf-8", "replace")) - len(text)
    return len(text) // 4 + more * 3 // 8


def _split(shown: Sequence[Message], keep: int) -> tuple[list[Message], str]:
    """Return the head to summarize, and the ID of the first message after it.

    If the path is short, or the head would only be a summary, everything but the last message is summarized.
    A call and its result are in one part, so no cut separates them.
    """
    summed = int(summary_of(shown[0]) is not None)
    cut = len(shown) - keep
    if cut <= summed:
        cut = len(shown) - 1
    return list(shown[: cut if cut > summed else 0]), shown[cut].id


def _as_lines(head: Sequence[Message]) -> list[str]:
    """Return the messages of the head as plain text. The model reads it but does not answer it, so calls in
    it need no tool definitions."""
    lines = []
    for said in window(head):
        texts = [_text_of(_cleared(part)) for part in said.parts]
        lines.append(f"{said.role}: " + "\n".join(text for text in texts if text))
    return lines


def _pieces(lines: Sequence[str], limit: int | None, longest: int) -> list[str]:
    """Return the parts that are summarized one after the other. One part suffices unless a model with a
    larger context wrote the text.

    A part is half of the context: the size is an estimate, the summary so far is included, and providers
    count the possible answer. No message is split, because a private value across a split could not be
    masked.
    """
    room = math.inf
    if limit is not None and sum(map(_tokens, (*lines, _PROMPT))) > limit - longest:
        room = limit / 2
    pieces: list[list[str]] = [[]]
    left = room
    for line in lines:
        if pieces[-1] and _tokens(line) > left:
            pieces.append([])
            left = room
        pieces[-1].append(line)
        left -= _tokens(line)
    if len(pieces) > _MOST_PIECES:
        raise _does_not_fit()
    return ["\n\n".join(piece) for piece in pieces]


def _cleared(part: Part) -> Part:
    if not isinstance(part, ToolCall) or part.result is None or len(part.result.text) <= len(CLEARED) * 4:
        return part
    return replace(part, result=ToolResult(CLEARED, note=part.result.note))


def _text_of(part: Part) -> str:
    match part:
        case ToolCall():
            result = part.result.text if part.result else ""
            return f"{part.tool}({canonical(part.arguments)}) → {part.state}: {result}"
        case _:
            return getattr(part, "text", "")
