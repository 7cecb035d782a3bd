"""`<tool_call><function=NAME><parameter=KEY>value</parameter>…</function></tool_call>`: Qwen3-Coder.

The outer tag is often missing, at least the opening one.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.function_tag import (
    CLOSE,
    FUNCTION,
    FUNCTION_END,
    OPEN,
    PARAMETER,
    PARAMETER_END,
    read_function,
)
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.tool_call_tag import PLAIN, read_tool_call
from dragoman.dialects.wording import compact, enclosed

SEED = ("<seed:tool_call>", "</seed:tool_call>")  # Seed-OSS has these around a call
SEED_THOUGHT = ("<seed:think>", "</seed:think>")


class QwenCoder(Dialect):
    name = "qwen_coder"
    how = (
        "To call a tool, write its name and each argument between tags, as below; for several calls, "
        "several of these. Write values as they are, without quotes; lists and objects as JSON."
    )
    opens = (OPEN, FUNCTION, SEED_THOUGHT[0])
    drops = (CLOSE, FUNCTION_END, *SEED, SEED_THOUGHT[1])
    thoughts = MappingProxyType(dict([SEED_THOUGHT]))

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == OPEN:
            return (yield from read_tool_call(self, cursor, PLAIN, tools, lone_name=False))
        return (yield from read_function(self, cursor, tools, wrapped=False))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "\n".join(_written(call) for call in calls)

    def result(self, id: str, tool: str, text: str) -> str:
        return enclosed("tool_response", text)


def _written(call: TextCall) -> str:
    parameters = "".join(
        f"{PARAMETER}{key}>\n{value if isinstance(value, str) else compact(value)}\n{PARAMETER_END}\n"
        for key, value in call.arguments.items()
    )
    return f"{OPEN}\n{FUNCTION}{call.name}>\n{parameters}{FUNCTION_END}\n{CLOSE}"
