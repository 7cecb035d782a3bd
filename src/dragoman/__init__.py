"""Dragoman: a runtime for conversations in which a language model calls tools.

Each public name is imported on first use, so `import dragoman` itself costs almost nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.errors import (
        AlreadyAnswered,
        BadRequest,
        ConfigError,
        ContextOverflow,
        DragomanError,
        KeyReused,
        NotFound,
        OutputInvalid,
        ProviderError,
        StoreUnavailable,
        ToolFailed,
        TurnBusy,
        TurnEnded,
        TurnInterrupted,
        TurnQuarantined,
        Unanswered,
        Unreadable,
    )
    from dragoman.messages.questions import (
        Answer,
        Question,
        Rule,
        allow_always,
        allow_for_an_hour,
        allow_for_conversation,
        allow_once,
        reject,
        release,
        reply,
        stop,
        withhold,
    )
    from dragoman.messages.request import ToolSpec
    from dragoman.providers.compatible import (
        AnthropicCompatible,
        GeminiCompatible,
        OpenAICompatible,
        ResponsesCompatible,
    )
    from dragoman.runtime import Runtime
    from dragoman.sync import SyncRuntime, run_sync
    from dragoman.tools.skills import Skills
    from dragoman.tools.tool import ToolContext, ToolOutput, client_tool, tool
    from dragoman.tools.toolbox import Group, Source
    from dragoman.turn.agent import Agent, Limits
    from dragoman.turn.output import Output
    from dragoman.turn.plugin import Plugin
    from dragoman.turn.view import TurnView
    from dragoman.wire.scripted import ScriptedModel
    from dragoman.workspace.workspaces import Workspace

_HOME = {
    "Agent": "dragoman.turn.agent",
    "AlreadyAnswered": "dragoman.errors",
    "Answer": "dragoman.messages.questions",
    "AnthropicCompatible": "dragoman.providers.compatible",
    "BadRequest": "dragoman.errors",
    "ConfigError": "dragoman.errors",
    "ContextOverflow": "dragoman.errors",
    "DragomanError": "dragoman.errors",
    "GeminiCompatible": "dragoman.providers.compatible",
    "Group": "dragoman.tools.toolbox",
    "KeyReused": "dragoman.errors",
    "Limits": "dragoman.turn.agent",
    "NotFound": "dragoman.errors",
    "OpenAICompatible": "dragoman.providers.compatible",
    "Output": "dragoman.turn.output",
    "OutputInvalid": "dragoman.errors",
    "Plugin": "dragoman.turn.plugin",
    "ProviderError": "dragoman.errors",
    "Question": "dragoman.messages.questions",
    "ResponsesCompatible": "dragoman.providers.compatible",
    "Rule": "dragoman.messages.questions",
    "Runtime": "dragoman.runtime",
    "ScriptedModel": "dragoman.wire.scripted",
    "Skills": "dragoman.tools.skills",
    "Source": "dragoman.tools.toolbox",
    "StoreUnavailable": "dragoman.errors",
    "SyncRuntime": "dragoman.sync",
    "ToolContext": "dragoman.tools.tool",
    "ToolFailed": "dragoman.errors",
    "ToolOutput": "dragoman.tools.tool",
    "ToolSpec": "dragoman.messages.request",
    "TurnBusy": "dragoman.errors",
    "Unanswered": "dragoman.errors",
    "TurnEnded": "dragoman.errors",
    "TurnInterrupted": "dragoman.errors",
    "TurnQuarantined": "dragoman.errors",
    "TurnView": "dragoman.turn.view",
    "Unreadable": "dragoman.errors",
    "Workspace": "dragoman.workspace.workspaces",
    "allow_always": "dragoman.messages.questions",
    "allow_for_an_hour": "dragoman.messages.questions",
    "allow_for_conversation": "dragoman.messages.questions",
    "allow_once": "dragoman.messages.questions",
    "client_tool": "dragoman.tools.tool",
    "reject": "dragoman.messages.questions",
    "release": "dragoman.messages.questions",
    "reply": "dragoman.messages.questions",
    "run_sync": "dragoman.sync",
    "stop": "dragoman.messages.questions",
    "tool": "dragoman.tools.tool",
    "withhold": "dragoman.messages.questions",
}

__all__ = [
    "Agent",
    "AlreadyAnswered",
    "Answer",
    "AnthropicCompatible",
    "BadRequest",
    "ConfigError",
    "ContextOverflow",
    "DragomanError",
    "GeminiCompatible",
    "Group",
    "KeyReused",
    "Limits",
    "NotFound",
    "OpenAICompatible",
    "Output",
    "OutputInvalid",
    "Plugin",
    "ProviderError",
    "Question",
    "ResponsesCompatible",
    "Rule",
    "Runtime",
    "ScriptedModel",
    "Skills",
    "Source",
    "StoreUnavailable",
    "SyncRuntime",
    "ToolContext",
    "ToolFailed",
    "ToolOutput",
    "ToolSpec",
    "TurnBusy",
    "TurnEnded",
    "TurnInterrupted",
    "TurnQuarantined",
    "TurnView",
    "Unanswered",
    "Unreadable",
    "Workspace",
    "allow_always",
    "allow_for_an_hour",
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


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
