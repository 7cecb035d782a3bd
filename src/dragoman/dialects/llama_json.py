"""`{"name": …, "parameters": {…}}`, also several with `;` between them, in a list, or behind a tag: Llama 3.

Without the tag, an object is a call if the reply begins with it and it has parameters and the name of a tool.
Other models write the same JSON after a token or between their own tags: all of those are read here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.grammar import Dialect, compact, name_in, tool_named
from dragoman.dialects.literals import Members, read_json
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.tool_call_tag import (
    FUNCTION,
    FUNCTION_END,
    LONGCAT,
    PLAIN,
    read_function,
    read_tool_call,
)

TAG = "<|python_tag|>"
ENDS = ("<|eom_id|>", "<|eot_id|>")
TOKENS = (  # in front of the JSON, and nothing behind it
    "<|tool_call|>",  # Granite 3
    "[TOOL_CALLS]",  # xLAM
    "<|action_start|>",  # InternLM, with <|plugin|> behind it
    "<|function_call|>",  # GigaChat 3, which has two ways
    "<|message_sep|>\n\nfunction call<|role_sep|>",
    "<|im_start|>assistant -> tool/function_call",  # HyperCLOVA X
)
TAGS = {  # around the JSON
    "<tool_call>": "</tool_call>",  # Hunyuan A13B, xLAM
    "<tool_calls>": "</tool_calls>",  # Jamba, Apriel
    "<TOOLCALL>": "</TOOLCALL>",  # Nemotron
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<function_call>": "</function_call>",  # Granite 20B
    "<tools>": "</tools>",  # Qwen 2.5, now and then
}
PLUGIN = "<|plugin|>"
FUNCTOOLS = "functools"  # Phi 4 mini, FireFunction
HEADERS = ("function call<|role_sep|>", "-> tool/function_call")  # where the prompt has the rest

_BY_KEYS = {tags.open: tags for tags in (PLAIN, LONGCAT)}  # where each argument may have a tag of its own
_GAP = (r"\s{0,64}",)
LISTED: Form = (*FUNCTOOLS, *_GAP, r"[{\[]")


class LlamaJson(Dialect):
    name = "llama_json"
    how = (
        "To call a tool, write a JSON object with its name and its parameters, and nothing else; for several "
        "calls, several objects with a semicolon between them."
    )
    opens: tuple[str, ...] = (TAG, FUNCTION)
    drops: tuple[str, ...] = (*ENDS, FUNCTION_END)
    begins: tuple[Form, ...] = ((r"[{\[]", *_GAP, r"\{?", *_GAP, '"'),)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == FUNCTION:
            return (yield from read_function(self, cursor, tools, tags=self.name != "llama_json"))
        marked = opener or (yield from cursor.accept(FUNCTOOLS, *HEADERS))
        yield from cursor.space()
        if (yield from cursor.accept(PLUGIN)):
            yield from cursor.space()
        if not (yield from cursor.sees("{", "[")):
            return (yield from self._without_json(cursor, opener, tools))
        found: list[FoundCall] = []
        while True:
            before = cursor.taken
            if found:
                yield from cursor.space()
                yield from cursor.accept(";", ",")
                yield from cursor.space()
                if not (yield from cursor.sees("{", "[")):
                    if not (opener in TAGS and (yield from cursor.accept(TAGS[opener]))):
                        cursor.back(cursor.taken - before)
                    return found
            payload = yield from read_json(cursor, None if marked and not found else _is_call)
            if not payload.certain:
                cursor.back(cursor.taken - before if found else payload.swallowed)
                return found or None
            if payload.flaw:
                yield from cursor.until(*ENDS, *self.opens, *TAGS.values(), "\n\n", "```")
                yield from cursor.accept(*filter(None, (TAGS.get(opener),)))
                return [*found, self.bad(payload.flaw, name_in(payload.text))]
            calls = self.entries(payload)
            if not marked and tools and not all(_is_meant(one, tools) for one in calls):
                cursor.back(cursor.taken - before if found else 0)
                return found or None
            found += calls if marked else [replace(one, raw=payload.text) for one in calls]

    def _without_json(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Something else stands behind what opens a call."""
        if opener in _BY_KEYS:
            return (yield from read_tool_call(self, cursor, _BY_KEYS[opener], tools, lone_name=False))
        if opener in TOKENS or (yield from cursor.sees(*self.opens)):
            return []
        if opener in TAGS:
            if (yield from cursor.accept(TAGS[opener])):
                return []
            return (yield from self.stray(cursor, opener, TAGS[opener]))
        yield from cursor.until(*ENDS, TAG)
        return [self.bad(f"no JSON object stands behind {TAG}")]

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "; ".join(compact({"name": call.name, "parameters": call.arguments}) for call in calls)


def _is_meant(one: FoundCall, tools: Tools) -> bool:
    """Whether it calls a tool, and does not describe one."""
    described = isinstance(one, TextCall) and {"type", "properties"} <= one.arguments.keys()
    return not described and tool_named(one.name, tools) is not None


def _is_call(members: Members) -> bool:
    given = members.get("parameters") or members.get("arguments") or ""
    if members.get("name") == '"':
        return given in ("{", '"', "n")
    return members.get("type") == '"' and members.get("function") == "{"


FROM, RECIPIENT, CONTENT, PROMPT = "<|from|>assistant", "<|recipient|>", "<|content|>", ">>>"
STOPS = ("<|stop|>", FROM, RECIPIENT, PROMPT)

_NAME = re.compile(r"[\w.:/-]{1,99}")
_EVERYBODY = "all"


class JsonTags(LlamaJson):
    """The same JSON after a token or between tags: Granite, xLAM, Jamba, Phi 4 mini, Nemotron and others."""

    name = "json_tags"
    opens = (*LlamaJson.opens, *TOKENS, *TAGS)
    drops = (
        *LlamaJson.drops,
        *("<|action_end|>", "<|/tool_call|>", "<|message_sep|>", "<|im_start|>assistant", *TAGS.values()),
    )
    begins = (LISTED, *HEADERS, *LlamaJson.begins)


class Functionary(LlamaJson):
    name = "functionary"
    opens = (*LlamaJson.opens, RECIPIENT, PROMPT)
    drops = (*LlamaJson.drops, FROM, CONTENT, "<|stop|>")

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener not in (RECIPIENT, PROMPT):
            return (yield from super().read(cursor, opener, tools))
        name, _ = yield from cursor.until("\n", CONTENT, "{", "<")
        yield from cursor.space()
        content = yield from cursor.accept(CONTENT)
        if not _NAME.fullmatch(name.strip()) or not (content or opener == PROMPT):
            return None
        if name.strip() == _EVERYBODY:
            return []
        yield from cursor.space()
        if not content and not (tool_named(name, tools) and (yield from cursor.sees("{"))):
            return None
        return (yield from self.named(cursor, name, "", (), STOPS))
