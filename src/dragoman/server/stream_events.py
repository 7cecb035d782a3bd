"""The events of the live streams: those of a turn, and what only a stream tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from typing_extensions import TypeAliasType

from dragoman.messages.events import CallAsked, Event
from dragoman.messages.questions import Question
from dragoman.server.shapes import ConversationSummary, QueueView, TreeView


@dataclass(slots=True, kw_only=True)
class ConversationChanged(ConversationSummary):
    """A line of the person's list is new, or not what it was."""

    type: Literal["conversation.changed"] = "conversation.changed"


@dataclass(slots=True, kw_only=True)
class ConversationDeleted:
    id: str
    type: Literal["conversation.deleted"] = "conversation.deleted"


@dataclass(slots=True, kw_only=True)
class QueueChanged(QueueView):
    """What is queued in a conversation, or is to steer a turn there, is not what it was."""

    type: Literal["queue.changed"] = "queue.changed"


@dataclass(slots=True, kw_only=True)
class ListReset:
    """Changes of the list were missed: it is to be read again."""

    type: Literal["list.reset"] = "list.reset"


@dataclass(slots=True, kw_only=True)
class QuestionAsked(CallAsked):
    """In a conversation's stream the question comes whole, as `/questions/ID` has it."""

    whole: Question | None = None


class _NamesItsTurn:
    """For the description alone: a conversation's stream adds `turn` to the event (`publisher.py`)."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        turn = {"type": "object", "properties": {"turn": {"type": "string"}}, "required": ["turn"]}
        return {"allOf": [handler(core), turn]}


_IN_STREAM: Any = Union[tuple(QuestionAsked if event is CallAsked else event for event in get_args(Event))]  # noqa: UP007 - of a tuple

TurnEvent = TypeAliasType("TurnEvent", Annotated[Event, Field(discriminator="type")])
LiveEvent = TypeAliasType(
    "LiveEvent",
    Annotated[_IN_STREAM, Field(discriminator="type"), _NamesItsTurn()]
    | TreeView
    | QueueChanged
    | ConversationChanged
    | ConversationDeleted
    | ListReset,
)
