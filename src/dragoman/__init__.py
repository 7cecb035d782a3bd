"""Dragoman: the runtime for conversations in which a language model calls tools."""

from dragoman.errors import (
    AlreadyAnswered,
    BadRequest,
    ConfigError,
    ContextOverflow,
    DragomanError,
    NotFound,
    ProviderError,
    ToolFailed,
    TurnBusy,
    TurnEnded,
)
from dragoman.messages.questions import (
    Answer,
    Question,
    Rule,
    allow_always,
    allow_for_conversation,
    allow_once,
    reject,
    release,
    reply,
    stop,
    withhold,
)
from dragoman.runtime import Runtime, run_sync
from dragoman.tools.tool import ToolContext, ToolOutput, client_tool, tool
from dragoman.tools.toolbox import Group
from dragoman.turn.plugin import Plugin
from dragoman.turn.view import TurnView
from dragoman.wire.scripted import ScriptedModel

__all__ = [
    "AlreadyAnswered",
    "Answer",
    "BadRequest",
    "ConfigError",
    "ContextOverflow",
    "DragomanError",
    "Group",
    "NotFound",
    "Plugin",
    "ProviderError",
    "Question",
    "Rule",
    "Runtime",
    "ScriptedModel",
    "ToolContext",
    "ToolFailed",
    "ToolOutput",
    "TurnBusy",
    "TurnEnded",
    "TurnView",
    "allow_always",
    "allow_for_conversation",
    "allow_once",
    "client_tool",
    "reject",
    "release",
    "reply",
    "run_sync",
    "stop",
    "tool",
    "withhold",
]
