"""The body of a chat completion's request, and what it brings."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue

from dragoman.server.protocols.openai.bodies import (
    MANY,
    AnswerFormat,
    AnswerOptions,
    AnyContent,
    Function,
    Lenient,
    Refusals,
    read_content,
    refuse,
    text_alone,
)
from dragoman.server.protocols.openai.brought import (
    AssistantEntry,
    Brought,
    BroughtCall,
    CallOutput,
    UserEntry,
)
from dragoman.server.protocols.openai.errors import ApiRefusal


class PromptMessage(Lenient):
    role: Literal["system", "developer"]
    content: AnyContent


class UserMessage(Lenient):
    role: Literal["user"]
    content: AnyContent


class CalledFunction(Function):
    arguments: str = ""


class MadeCall(Lenient):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class AssistantMessage(Lenient):
    role: Literal["assistant"]
    content: AnyContent | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[MadeCall] | None, Field(max_length=MANY)] = None


class ToolMessage(Lenient):
    role: Literal["tool"]
    tool_call_id: str
    content: AnyContent


ChatMessage: TypeAlias = Annotated[
    PromptMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class StreamOptions(Lenient):
    include_usage: bool | None = None


_REFUSALS: Refusals = (
    ("n", lambda n: n != 1, "one answer is given to a request: n is 1"),
    ("logprobs", bool, "log probabilities are not given"),
    ("top_logprobs", bool, "log probabilities are not given"),
    ("logit_bias", bool, "logit_bias is not taken"),
    ("modalities", lambda kinds: kinds != ["text"], "answers are text alone"),
    ("audio", bool, "answers are text alone"),
    ("prediction", bool, "predicted outputs are not taken"),
    ("functions", bool, "functions are old: send them as tools"),
    ("function_call", bool, "function_call is old: send tool_choice"),
    ("web_search_options", bool, "the search of a provider is not offered: an agent has tools of its own"),
    ("moderation", bool, "moderation is not offered"),
)


class ChatBody(AnswerOptions):
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MANY)]
    stream_options: StreamOptions | None = None
    response_format: AnswerFormat | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    # what is refused
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: JsonValue = None
    modalities: list[str] | None = None
    audio: JsonValue = None
    prediction: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    web_search_options: JsonValue = None
    moderation: JsonValue = None

    def request_options(self) -> dict[str, JsonValue]:
        refuse(self, _REFUSALS)
        stop: JsonValue = [self.stop] if isinstance(self.stop, str) else [*self.stop] if self.stop else None
        return self.options(
            {
                "max_tokens": self.max_completion_tokens or self.max_tokens,
                "presence_penalty": self.presence_penalty or None,  # 0 is what it is without it
                "frequency_penalty": self.frequency_penalty or None,
                "seed": self.seed,
                "stop": stop,
                "reasoning_effort": self.reasoning_effort,
                "verbosity": self.verbosity,
            }
        )

    def brought(self, limit: int) -> Brought:
        """`limit`: of one file, in bytes."""
        found = Brought()
        for at, message in enumerate(self.messages):
            param = f"messages[{at}].content"
            match message:
                case PromptMessage(content=content):
                    found.system.append(text_alone(content, param))
                case UserMessage(content=content):
                    found.add(UserEntry(read_content(content, param, limit)))
                case ToolMessage(content=content, tool_call_id=call):
                    found.add(CallOutput(call, read_content(content, param, limit)))
                case AssistantMessage():
                    text = text_alone(message.content, param) or message.refusal or ""
                    calls = [_call(call) for call in message.tool_calls or ()]
                    found.add(AssistantEntry((text,) if text else (), tuple(calls)))
        if not found.outputs and not found.sent:
            what = "the last message is a user's, or the results of the calls before it"
            raise ApiRefusal(what, "messages", code="invalid_value")
        return found


def _call(made: MadeCall) -> BroughtCall:
    return BroughtCall(made.id, made.function.name, made.function.arguments)
