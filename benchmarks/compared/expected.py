"""The ten programs, what each must answer, and what is worth knowing of either side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    answer: str
    dragoman: str  # what it has, or lacks, that the lines do not show
    pydantic_ai: str


PROGRAMS = (
    Program(
        "chat_with_tools",
        "chat with tools",
        "It is 40.",
        "the conversation is stored; a call needs a rule, or a person",
        "nothing is stored; every tool may run",
    ),
    Program(
        "approval",
        "approval",
        "It is gone.",
        "the question is in the store: any process, the page or the terminal may answer it",
        "the run ends with the open calls; storing them and asking somebody is the program's part",
    ),
    Program(
        "typed_answer",
        "typed answer",
        "Rome: 2748109",
        "held to the schema, sent back where it does not fit",
        "the same; also functions as output, and several output types as tools",
    ),
    Program(
        "streaming",
        "streaming to a terminal",
        "One word after the other, and nobody waits for the last one.",
        "whoever comes late, or from another process, gets every event from the beginning",
        "one reader, in the process that runs it; debouncing is built in",
    ),
    Program(
        "restart",
        "restart in the middle",
        "It is paid.",
        "built in: each step is stored before the next begins, and a call that may have run is not run twice",
        "by hand here: between two saves a tool may run twice. Temporal, DBOS or Prefect do it, with a "
        "server or a database of their own",
    ),
    Program(
        "sub_agents",
        "sub-agents",
        "The clerk has noted it.",
        "the tool is there; the other agent has its own conversation, rules and limits, and outlives a crash",
        "a tool that runs the other agent; usage is added up where it is handed on",
    ),
    Program(
        "mcp_tools",
        "MCP",
        "It is 40.",
        "servers are started, started again and asked about by the runtime",
        "the program opens and closes them",
    ),
    Program(
        "failing_provider",
        "custom provider with failures",
        "I am here.",
        "waits and tries again before the next one is asked; who answered is stored",
        "the next one is asked at once, after what the client of the provider retries by itself",
    ),
    Program(
        "context_injection",
        "context injection",
        "The shop closes at six.",
        "a plugin, which other hooks of the turn can be added to",
        "a function with a decorator",
    ),
    Program(
        "testing",
        "tests of an agent",
        "It is 40.",
        "the store, rules and questions of the test are real; words for what was called",
        "`TestModel` calls every tool by itself, without a script",
    ),
)
