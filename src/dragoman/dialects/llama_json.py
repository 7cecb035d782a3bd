"""`{"name": …, "parameters": {…}}`, also several with `;` between them, in a list, or behind a tag: Llama 3.

Without the tag, an object is a call if it has a name and parameters, or if it has nothing but the name of a
tool there is; any other is text.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect, name_in, tool_named
from dragoman.dialects.json_text import Members, read_json
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.wording import compact
from dragoman.wire.arguments import parse_arguments

TAG = "<|python_tag|>"
ENDS = ("<|eom_id|>", "<|eot_id|>")
AROUND = (  # what Granite, xLAM, Hunyuan A13B, Jamba, LongCat, InternLM 2 and GigaChat 3 have around it
    *("<|tool_call|>", "<tool_call>", "</tool_call>", "<tool_calls>", "</tool_calls>"),
    *("<longcat_tool_call>", "</longcat_tool_call>", "<|action_start|><|plugin|>", "<|action_end|>"),
    *("<|message_sep|>\n\nfunction call<|role_sep|>", "<|function_call|>"),
)

_GAP = (r"\s{0,64}",)


class LlamaJson(Dialect):
    name = "llama_json"
    how = (
        "To call a tool, write a JSON object with its name and its parameters, and nothing else; for several "
        "calls, several objects with a semicolon between them."
    )
    opens = (TAG,)
    drops = (*ENDS, *AROUND)
    bare = (r"[{\[]", *_GAP, r"\{?", *_GAP, '"')
    sure = (*bare, *'name"', *_GAP, ":", *_GAP, '"', r'[^"\n]{1,99}', '"', *_GAP, ",", *_GAP, '"', "[pa]")

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        yield from cursor.space()
        if not (yield from cursor.sees("{", "[")):
            yield from cursor.until(*ENDS, TAG)
            return [self.bad(f"no JSON object stands behind {TAG}")]
        found: list[FoundCall] = []
        while True:
            before = cursor.taken
            if found:
                yield from cursor.space()
                yield from cursor.accept(";")
                yield from cursor.space()
                if not (yield from cursor.sees("{", "[")):
                    cursor.back(cursor.taken - before)
                    return found
            payload = yield from read_json(cursor, None if opener and not found else _is_call)
            if not payload.certain and (payload.flaw or not _only_names(payload.text, tools)):
                cursor.back(cursor.taken - before if found else payload.swallowed)
                return found or None
            if payload.flaw:
                yield from cursor.until(*ENDS, TAG, "\n\n", "```")
                return [*found, self.bad(payload.flaw, name_in(payload.text))]
            found += self.entries(payload)

    def calls(self, calls: Sequence[TextCall]) -> str:
        return "; ".join(compact({"name": call.name, "parameters": call.arguments}) for call in calls)


def _is_call(members: Members) -> bool:
    given = members.get("parameters") or members.get("arguments") or ""
    if members.get("name") == '"':
        return given in ("{", '"', "n")
    return members.get("type") == '"' and members.get("function") == "{"


def _only_names(text: str, tools: Tools | None) -> bool:
    value = parse_arguments(text) or {}
    name = value.get("name")
    return value.keys() <= {"name", "type", "id"} and isinstance(name, str) and bool(tool_named(name, tools))
