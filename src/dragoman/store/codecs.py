"""Defines the JSON form of messages, calls, results and questions, wherever they are stored or sent."""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.messages.codec import Codec
from dragoman.messages.message import Message, ToolCall, ToolResult
from dragoman.messages.questions import Answer, Question
from dragoman.messages.usage import Usage

MESSAGE: Codec[Message] = Codec(Message)
CALL: Codec[ToolCall] = Codec(ToolCall)
RESULT: Codec[ToolResult] = Codec(ToolResult)
QUESTION: Codec[Question] = Codec(Question)
ANSWER: Codec[Answer] = Codec(Answer)
USAGE: Codec[Usage] = Codec(Usage)
JSON: Codec[dict[str, JsonValue]] = Codec(dict[str, JsonValue])
