"""Read `{"name": …, "parameters": {…}}`, also several with `;` between them, in a list, or after a tag: Llama
3.

Without the tag, an object is a call if the reply begins with it and it has parameters and the name of a
tool. Other models write the same JSON after a token or between their own tags: all of those are read here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from keyword import iskeyword

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.grammar import Dialect, compact, name_in, tool_named
from dragoman.dialects.literals import Members, NotALiteral, PythonMachine, keywords, listed_calls, read_json
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
TOKENS = (  # before the JSON, with nothing after it
    "<|tool_call|>",  # Granite 3
    "[TOOL_CALLS]",  # xLAM
    "<|action_start|>",  # InternLM, with <|plugin|> after it
    "<|function_call|>",  # GigaChat 3, which has two forms
    "<|message_sep|>\n\nfunction call<|role_sep|>",
    "<|im_start|>assistant -> tool/function_call",  # HyperCLOVA X
)
TAGS = {  # around the JSON
    "<tool_call>": "</tool_call>",  # Hunyuan A13B, xLAM
    "<tool_calls>": "</tool_calls>",  # Jamba, Apriel
    "<TOOLCALL>": "</TOOLCALL>",  # Nemotron
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<function_call>": "</function_call>",  # Granite 20B
    "<tools>": "</tools>",  # Qwen 2.5, occasionally
}
PLUGIN = "<|plugin|>"
FUNCTOOLS = "functools"  # Phi 4 mini, FireFunction
HEADERS = ("function call<|role_sep|>", "-> tool/function_call")  # if the prompt has the rest

_BY_KEYS = {tags.open: tags for tags in (PLAIN, LONGCAT)}  # in which each argument may have a separate tag
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
        """Read other content after an opener of a call."""
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
    """Return whether it calls a tool, and does not describe one."""
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


# Python calls with plain values: `[name(a=1), other()]` of Llama 4 and LFM2, and those of OLMo 3.
#
# A list without a marker is a call if the reply begins with it and all its items are calls with named
# arguments. Calls without arguments, and malformed or truncated ones, count only if they name a tool.


PYTHON_TAGS = ("<|python_start|>", "<|python_tag|>", "<|tool_call_start|>")
PYTHON_ENDS = ("<|python_end|>", "<|tool_call_end|>", "<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>")

_PYTHON_GAP = r"\s{0,64}"
_FIRST_NAME = re.compile(r"\[\s*([\w.]+)")


class LlamaPythonic(Dialect):
    name = "llama_pythonic"
    how = (
        "To call tools, write a list of calls as in Python, and nothing else. Name every argument; values "
        "are strings, numbers, True, False, None, lists and dicts."
    )
    opens: tuple[str, ...] = PYTHON_TAGS
    drops: tuple[str, ...] = PYTHON_ENDS
    begins: tuple[Form, ...] = ((r"\[", _PYTHON_GAP, r"[A-Za-z_]", r"[\w.]{0,99}", _PYTHON_GAP, r"\("),)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener:
            yield from cursor.space()
            if not (yield from cursor.sees("[")):
                yield from cursor.until(*PYTHON_ENDS, *PYTHON_TAGS)
                return [self.bad(f"no list of calls stands behind {opener}")]
        machine = PythonMachine(lines=bool(opener))
        text = yield from cursor.value(machine)
        first = _FIRST_NAME.match(text)
        known = bool(opener) or (first is not None and tool_named(first[1], tools) is not None)
        if machine.state != "whole":
            if known:
                yield from cursor.until(*PYTHON_ENDS, *PYTHON_TAGS, "\n\n")
                why = "the reply ends before it does" if machine.state == "cut" else "it is not valid Python"
                return [self.bad(why, first[1] if first else "")]
            return None
        calls = listed_calls(text)
        if not opener and (yield from cursor.sees("(")):  # a Markdown link
            return None
        if calls is None:
            return [self.bad("it is not a list of calls", first[1] if first else "")] if known else None
        found = self.checked(calls)
        meant = known or all(isinstance(one, TextCall) and one.arguments for one in found)
        return found if meant else None

    def checked(self, calls: Sequence[tuple[str, ast.Call]]) -> list[FoundCall]:
        found: list[FoundCall] = []
        for name, call in calls:
            try:
                found.append(TextCall(name, keywords(call)))
            except NotALiteral as error:
                found.append(self.bad(str(error), name))
        return found

    def system(self, prompt: str, tools: Tools) -> str:
        return super().system(prompt, [replace(tool, name=_identifier(tool.name)) for tool in tools])

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f"[{', '.join(written_call(call) for call in calls)}]"


def _identifier(name: str) -> str:
    """Return a valid Python name. The tool lookup treats `-` and `_` as equal."""
    return re.sub(r"[^\w.]", "_", name)


def written_call(call: TextCall) -> str:
    named = [f"{key}={value!r}" for key, value in call.arguments.items() if _is_name(key)]
    others = {key: value for key, value in call.arguments.items() if not _is_name(key)}
    return f"{_identifier(call.name)}({', '.join([*named, *([f'**{others!r}'] if others else [])])})"


def _is_name(key: str) -> bool:
    return key.isidentifier() and not iskeyword(key)


OPEN, CLOSE = "<function_calls>", "</function_calls>"

_BEGINS = (r"[A-Za-z_]", r"[\w.]{0,99}", r"\s{0,64}", r"\(")
_ANY_NAME = re.compile(r"[\w.]+")


class Olmo(LlamaPythonic):
    name = "olmo"
    how = (
        f"To call tools, write the calls as in Python between {OPEN} and {CLOSE}, each in a line of its own. "
        "Name every argument; values are strings, numbers, True, False, None, lists and dicts."
    )
    opens = (OPEN,)
    drops = (CLOSE,)
    begins = ()

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        found: list[FoundCall] = []
        space = yield from cursor.space()
        if not (yield from cursor.sees(_BEGINS, "[")):
            return (yield from self.stray(cursor, OPEN, CLOSE))
        while (yield from cursor.sees(_BEGINS, "[")):
            machine = PythonMachine(lines=True)
            text = yield from cursor.value(machine)
            calls = listed_calls(text if text.startswith("[") else f"[{text}]")
            if machine.state != "whole" or calls is None:
                yield from cursor.until(CLOSE, OPEN)
                yield from cursor.accept(CLOSE)
                why = "the reply ends before it does" if machine.state == "cut" else "it is not valid Python"
                name = _ANY_NAME.search(text)
                return [*found, self.bad(why, name[0] if name else "")]
            found += self.checked(calls)
            space = yield from cursor.space()
        if (yield from self.closed(cursor, space, (CLOSE,), (OPEN,))):
            return found
        return [self.bad("something else stands behind it", found[-1].name)]

    def calls(self, calls: Sequence[TextCall]) -> str:
        written = "\n".join(map(written_call, calls))
        return f"{OPEN}{written}{CLOSE}"
