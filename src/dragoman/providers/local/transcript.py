"""Write a request as the prompt of the bundled model: its tools, and as much of the conversation as fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from dragoman.messages.message import CallState, Summary, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage, ToolSpec
from dragoman.providers.local.prompt import END, OPEN, SAY, call_line, message, system_text, tool_line
from dragoman.wire.lowering import asked_arguments, result_text

# The adapter was trained with twelve. If there are more, the most relevant to the request are used.
MOST_TOOLS = 16
TOOL_TOKENS = 1800  # of the context, for the tools
TALK_TOKENS = 1500  # and for the conversation
LONGEST_REQUEST = 3000  # characters
LONGEST_RESULT = 1500  # characters of a result that the model reads
LONGEST_SYSTEM = 300  # characters: it cannot follow a longer system prompt


def render(request: Request, today: date) -> str:
    """Return the whole prompt, up to the point where the model continues."""
    extra = " ".join(request.system.split()) if len(request.system) <= LONGEST_SYSTEM else ""
    head = system_text(tool_lines(offered_tools(request)), today=today, extra=extra)
    return head + "".join(_recent(request.messages)) + OPEN


def tool_lines(tools: Sequence[ToolSpec]) -> list[str]:
    return [tool_line(tool.name, tool.description, tool.parameters) for tool in tools]


def offered_tools(request: Request) -> Sequence[ToolSpec]:
    """Return all tools if they fit, in their order, or else those that share most words with the request."""
    tools = request.tools
    sizes = {tool.name: token_estimate(line) for tool, line in zip(tools, tool_lines(tools), strict=True)}
    if len(tools) <= MOST_TOOLS and sum(sizes.values()) <= TOOL_TOKENS:
        return tools
    asked = _word_beginnings(last_request(request))
    by_likeness = sorted(
        tools,
        key=lambda tool: (
            tool.name == request.tool_choice,
            len(asked & _word_beginnings(f"{tool.name.replace('_', ' ')} {tool.description}")),
        ),
        reverse=True,
    )
    chosen, room = set[str](), TOOL_TOKENS
    for tool in by_likeness[:MOST_TOOLS]:
        room -= sizes[tool.name]
        if room >= 0 or not chosen:
            chosen.add(tool.name)
    return [tool for tool in tools if tool.name in chosen]


def last_request(request: Request) -> str:
    """Return the user's latest text."""
    for sent in reversed(request.messages):
        if sent.role == "user" and (text := text_of(sent)):
            return text
    return ""


def calls_since_request(request: Request) -> list[ToolCall]:
    """Return the settled calls made for the latest request."""
    found: list[ToolCall] = []
    for sent in reversed(request.messages):
        if sent.role == "user":
            break
        found[:0] = [part for part in sent.parts if isinstance(part, ToolCall) and part.state.settled]
    return found


def text_of(sent: RequestMessage) -> str:
    texts = [part.text for part in sent.parts if isinstance(part, Text | Summary)]
    return "\n\n".join(text for text in texts if text.strip())


def shown_result(call: ToolCall) -> str:
    """Return a result for people, without the note, which is for a model."""
    bare = call if call.result is None else replace(call, result=replace(call.result, note=None))
    text = result_text(bare)
    return text if call.state is CallState.COMPLETED else f"{call.tool} {_outcome(call)}: {text}"


def token_estimate(text: str) -> int:
    """Estimate the tokens of a text. The model's vocabulary is English: other letters cost more."""
    plain = sum(character.isascii() for character in text)
    return plain // 3 + 5 * (len(text) - plain) // 2 + 1


def _recent(messages: Sequence[RequestMessage]) -> list[str]:
    """Return the end of the conversation: everything from the latest request on, and before that
    what fits."""
    rendered = [_message(sent) for sent in messages]
    last = max((at for at, sent in enumerate(messages) if sent.role == "user"), default=0)
    room = TALK_TOKENS - sum(token_estimate(text) for text in rendered[last:])
    begin = last
    for at in range(last - 1, -1, -1):
        room -= token_estimate(rendered[at])
        if room < 0:
            break
        if messages[at].role == "user":
            begin = at
    return rendered[begin:]


def _message(sent: RequestMessage) -> str:
    if sent.role == "user":
        return message("user", _middle_cut(text_of(sent), LONGEST_REQUEST))
    blocks: list[str] = []
    calls: list[ToolCall] = []
    for part in sent.parts:
        if isinstance(part, ToolCall) and part.state.settled:
            calls.append(part)
        elif isinstance(part, Text | Summary) and part.text.strip():
            blocks += [*_calls(calls), message("assistant", f"{SAY} {' '.join(part.text.split())}")]
            calls = []
    return "".join([*blocks, *_calls(calls)])


def _calls(calls: Sequence[ToolCall]) -> list[str]:
    if not calls:
        return []
    written = "\n".join(call_line(call.tool, asked_arguments(call)) for call in calls)
    return [message("assistant", written), *(message("tool", _result(call)) for call in calls)]


def _result(call: ToolCall) -> str:
    text = _middle_cut(result_text(call), LONGEST_RESULT)
    return text if call.state is CallState.COMPLETED else f"{_outcome(call)}: {text}"


def _outcome(call: ToolCall) -> str:
    return "failed" if call.state is CallState.FAILED else f"brought no result ({call.state.value})"


def _middle_cut(text: str, longest: int) -> str:
    # Text from a user or a page must not end the message.
    text = text.replace(END, "").replace("<|im_start|>", "")
    if len(text) <= longest:
        return text
    head, tail = text[: longest * 3 // 4], text[-longest // 4 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} more characters …]\n{tail}"


def _word_beginnings(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"\w{3,}", text.lower())}
