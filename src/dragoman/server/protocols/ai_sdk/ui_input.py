"""Parse the input of `useChat`: the messages as it shows them. The last one contains what is new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from dragoman.errors import BadRequest
from dragoman.messages.questions import Mode
from dragoman.messages.request import ToolSpec
from dragoman.server.protocols.threads import Loose, WithContent, unreadable
from dragoman.turn.facts import TurnOptions
from dragoman.turn.send import turn_options


class Approval(Loose):
    id: str = ""
    approved: bool | None = None
    reason: str | None = None


class UIPart(Loose):
    """A part of any kind. `type` and `state` determine which fields apply."""

    type: Annotated[str, Field(max_length=200)]
    text: str = ""
    url: str = ""
    media_type: Annotated[str, Field(alias="mediaType", max_length=200)] = ""
    filename: Annotated[str | None, Field(max_length=255)] = None
    call: Annotated[str, Field(alias="toolCallId")] = ""
    tool: Annotated[str, Field(alias="toolName")] = ""
    state: str = ""
    input: JsonValue = None
    data: JsonValue = None
    id: str | None = None
    output: JsonValue = None
    error: Annotated[str, Field(alias="errorText")] = ""
    approval: Approval | None = None

    @property
    def settled(self) -> bool:
        """Whether a call has its result."""
        return self.state in ("output-available", "output-error", "output-denied")


KEPT = "ai-sdk.message"  # the key in a message's metadata for data that only the client reads


class UIMessage(WithContent):
    id: str = ""
    metadata: JsonValue = None
    role: Literal["system", "user", "assistant"]
    parts: Annotated[list[UIPart], Field(max_length=10_000, default_factory=list)]

    @property
    def calls(self) -> Iterator[UIPart]:
        return (part for part in self.parts if part.call and part.type.startswith(("tool-", "dynamic-tool")))

    @property
    def kept(self) -> dict[str, JsonValue]:
        """The data parts and metadata. The client gets them back, and the model does not see them."""
        data: JsonValue = [
            {"type": part.type, "data": part.data, **({"id": part.id} if part.id is not None else {})}
            for part in self.parts
            if part.type.startswith("data-")
        ]
        about: dict[str, JsonValue] = {"metadata": self.metadata, "data": data}
        found: JsonValue = {name: value for name, value in about.items() if value}
        return {KEPT: found} if found else {}

    @property
    def texts(self) -> Iterator[str]:
        """Yield the texts of a system message. Raises BadRequest for other parts."""
        for part in self.parts:
            if part.type != "text":
                raise unreadable(part.type)
            yield part.text


class ClientTool(Loose):
    """A tool as assistant-ui describes it, or with the SDK's field name for the schema."""

    description: str = ""
    parameters: dict[str, JsonValue] | None = None
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="inputSchema")] = None


class UIChatBody(WithContent):
    """The fields of `DefaultChatTransport`, and those that an application can add by its `body` option."""

    id: str
    messages: Annotated[list[UIMessage], Field(max_length=10_000, default_factory=list)]
    last: Annotated[UIMessage | None, Field(alias="message")] = None
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message: Annotated[str | None, Field(alias="messageId")] = None
    model: str | None = None
    agent: str | None = None
    mode: Mode | None = None
    system: str | None = None
    options: Annotated[dict[str, JsonValue], Field(default_factory=dict)]
    tools: Annotated[dict[str, ClientTool], Field(max_length=512, default_factory=dict)]
    _starts_over: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def _with_last(self) -> Self:
        if self.last is not None:
            self._starts_over = "messages" in self.model_fields_set
            self.messages = [*self.messages, self.last]
        if not self.messages:
            raise BadRequest("The request has no message.")
        return self

    @property
    def continues(self) -> bool:
        """Whether the request continues the server's chat: it contains a single message.

        An edited message names the one that it replaces. `messages: []` together with a `message` starts
        over.
        """
        alone = len(self.messages) == 1 and self.trigger == "submit-message" and self.message is None
        return alone and not self._starts_over

    @property
    def gone_on_with(self) -> UIMessage | None:
        """The answer that this request has input for: the last message, or the one that it names."""
        if self.trigger != "submit-message":
            return None
        named = [one for one in self.messages if one.id == self.message] or self.messages[-1:]
        return named[-1] if named[-1].role == "assistant" else None

    def turn_options(self) -> TurnOptions:
        brought = [
            ToolSpec(name, tool.description, tool.parameters or tool.schema_ or {})
            for name, tool in self.tools.items()
        ]
        said = [text for message in self.messages if message.role == "system" for text in message.texts]
        system = "\n\n".join(text for text in (self.system, *said) if text) or None
        return turn_options(
            model=self.model,
            agent=self.agent,
            mode=self.mode,
            system=system,
            options=self.options,
            client_tools=brought,
        )
