"""The words in which tools, calls and results are put into prompts."""

from __future__ import annotations

import json

from pydantic import JsonValue

from dragoman.dialects.scanner import TextCall, Tools
from dragoman.messages.request import ToolSpec
from dragoman.wire.lowering import description

_TOOLS = """# Tools

You can call tools. Each line below describes one, with a JSON schema of its arguments:
<tools>
{tools}
</tools>

{how}

{example}

Call only tools from the list, with arguments that fit their schema. After your calls, stop: what they gave \
is in the next message. When you need no tool, just answer."""


def tool_section(tools: Tools, how: str, example: str) -> str:
    """The part of a system prompt that is about tools: the same bytes for the same tools."""
    return _TOOLS.format(
        tools="\n".join(compact(_declared(tool)) for tool in tools), how=how, example=example
    )


def compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def described(call: TextCall, *, id: bool = True) -> str:
    """A call as a JSON object that names it."""
    return compact(
        {**({"id": call.id} if id and call.id else {}), "name": call.name, "arguments": call.arguments}
    )


def enclosed(tag: str, text: str) -> str:
    """The text between two tags. It cannot end them itself, whatever a tool brought back."""
    harmless = text.replace(f"</{tag}", f"<\\/{tag}")
    return f"<{tag}>\n{harmless}\n</{tag}>"


def _declared(tool: ToolSpec) -> JsonValue:
    function: JsonValue = {
        "name": tool.name,
        "description": description(tool),
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
