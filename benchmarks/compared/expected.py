"""The ten programs, the answer that each must give, and notes on either side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    answer: str
    dragoman: str  # features that it has or lacks and that the line count does not show
    pydantic_ai: str


PROGRAMS = (
    Program(
        "chat_with_tools",
        "chat with tools",
        "It is 40.",
        "stores the conversation; a call needs a rule or your approval",
        "stores nothing; every tool can run",
    ),
    Program(
        "approval",
        "approval",
        "It is gone.",
        "the approval request is in the store: you answer it from any process, the web UI or the terminal",
        "the run ends with the open calls; your program stores them and asks the user",
    ),
    Program(
        "typed_answer",
        "typed answer",
        "Rome: 2748109",
        "validated by the schema; an invalid answer goes back to the model",
        "the same, plus functions as output and several output types as tools",
    ),
    Program(
        "streaming",
        "streaming to a terminal",
        "One word after the other, and nobody waits for the last one.",
        "a late reader, or one in another process, gets every event from the start",
        "one reader, in the process of the run; debouncing is built in",
    ),
    Program(
        "restart",
        "restart in the middle",
        "It is paid.",
        "built in: Dragoman stores each step before the next, and does not repeat a call that may have run",
        "by hand here: between two saves a tool can run twice. Temporal, DBOS or Prefect add "
        "this, with a separate server or database",
    ),
    Program(
        "sub_agents",
        "sub-agents",
        "The clerk has noted it.",
        "a built-in tool; the other agent has a separate conversation, rules "
        "and limits, and survives a crash",
        "a tool that runs the other agent; you pass the usage on to add it up",
    ),
    Program(
        "mcp_tools",
        "MCP",
        "It is 40.",
        "the runtime starts, restarts and asks about servers",
        "the program opens and closes them",
    ),
    Program(
        "failing_provider",
        "custom provider with failures",
        "I am here.",
        "waits and retries before it tries the next provider; stores which one answered",
        "tries the next provider immediately, after the retries of the provider's client",
    ),
    Program(
        "context_injection",
        "context injection",
        "The shop closes at six.",
        "a plugin, to which you can add other hooks of the turn",
        "a function with a decorator",
    ),
    Program(
        "testing",
        "tests of an agent",
        "It is 40.",
        "the test uses a real store, rules and approval requests; assertions name the calls",
        "`TestModel` calls every tool by itself, without a script",
    ),
)
