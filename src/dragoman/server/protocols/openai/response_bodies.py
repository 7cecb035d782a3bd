"""The body of a request for a response, and what it brings."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, JsonValue, Tag

from dragoman.server.protocols.openai.bodies import (
    MANY,
    AnswerFormat,
    AnswerOptions,
    AnyContent,
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


class MessageItem(Lenient):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: AnyContent


class FunctionCallItem(Lenient):
    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str


class OutputItem(Lenient):
    type: Literal["function_call_output"]
    call_id: str
    output: AnyContent


class ReasoningItem(Lenient):
    """Sent back by callers who tell the whole history: models get their own thoughts from the store."""

    type: Literal["reasoning"]


def _type(item: Any) -> str | None:
    given = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", None)
    return given if isinstance(given, str) else None


InputItem: TypeAlias = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[OutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(
        _type,
        custom_error_type="item_type",
        custom_error_message="items are of type message, function_call, function_call_output or reasoning",
    ),
]


class TextSettings(Lenient):
    format: AnswerFormat | None = None
    verbosity: str | None = None


class ReasoningSettings(Lenient):
    effort: str | None = None
    summary: str | None = None


class ConversationName(Lenient):
    id: str


_REFUSALS: Refusals = (
    ("include", bool, "nothing can be included besides what is there"),
    ("max_tool_calls", bool, "the limits of calls are the agent's"),
    ("prompt", bool, "prompts by id are not known here"),
    ("top_logprobs", bool, "log probabilities are not given"),
    ("truncation", lambda how: how != "disabled", "a history that is too long is summed up, not truncated"),
    ("context_management", bool, "a history that is too long is summed up here"),
    ("moderation", bool, "moderation is not offered"),
)


class ResponseBody(AnswerOptions):
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=MANY)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    background: bool | None = None
    max_output_tokens: int | None = None
    text: TextSettings | None = None
    reasoning: ReasoningSettings | None = None
    stream_options: JsonValue = None
    # what is refused
    include: JsonValue = None
    max_tool_calls: JsonValue = None
    prompt: JsonValue = None
    top_logprobs: JsonValue = None
    truncation: str | None = None
    context_management: JsonValue = None
    moderation: JsonValue = None

    def request_options(self) -> dict[str, JsonValue]:
        refuse(self, _REFUSALS)
        if self.previous_response_id and self.conversation:
            what = "previous_response_id and conversation both say where to go on: send one of them"
            raise ApiRefusal(what, "conversation", code="mutually_exclusive_parameters")
        thinking = self.reasoning or ReasoningSettings()
        return self.options(
            {
                "max_tokens": self.max_output_tokens,
                "reasoning_effort": thinking.effort,
                "reasoning_summary": thinking.summary,
                "verbosity": self.text.verbosity if self.text else None,
            }
        )

    @property
    def conversation_id(self) -> str | None:
        named = self.conversation
        return named.id if isinstance(named, ConversationName) else named

    def brought(self, limit: int) -> Brought:
        """`limit`: of one file, in bytes."""
        found = Brought([self.instructions] if self.instructions else [])
        items = [MessageItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        for at, item in enumerate(items):
            param = f"input[{at}]"
            match item:
                case MessageItem(role="user", content=content):
                    found.add(UserEntry(read_content(content, param, limit)))
                case MessageItem(role="assistant", content=content):
                    found.add(AssistantEntry((text_alone(content, param),)))
                case MessageItem(content=content):
                    found.system.append(text_alone(content, param))
                case FunctionCallItem(call_id=call, name=name, arguments=arguments):
                    found.add(AssistantEntry(calls=(BroughtCall(call, name, arguments),)))
                case OutputItem(call_id=call, output=output):
                    found.add(CallOutput(call, read_content(output, param, limit)))
                case _:
                    pass
        if not found.outputs and not found.sent:
            what = "the input ends with a user's message, or the outputs of calls"
            raise ApiRefusal(what, "input", code="invalid_value")
        return found
