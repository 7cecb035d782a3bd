"""`{"name": …, "parameters": {…}}`, also several with `;` between them, in a list, or behind a tag: Llama 3.

Without the tag, an object is a call if it has a name and parameters, or if it can be nothing else than a call
of a tool there is (`loose_json.py`); any other is text. Other models write the same JSON behind a token or
between tags of their own: all of those are read here.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor, Form
from dragoman.dialects.elements import read_inside
from dragoman.dialects.function_tag import FUNCTION, FUNCTION_END, read_function
from dragoman.dialects.grammar import Dialect, name_in
from dragoman.dialects.json_text import Members, read_json
from dragoman.dialects.loose_json import is_schema, loose_calls
from dragoman.dialects.python_calls import CALL, read_python_calls
from dragoman.dialects.scanner import FoundCall, Reading, TextCall, Tools
from dragoman.dialects.tool_call_tag import LONGCAT, PLAIN, read_tool_call
from dragoman.dialects.wording import compact

TAG = "<|python_tag|>"
ENDS = ("<|eom_id|>", "<|eot_id|>")
TOKENS = (  # in front of the JSON, and nothing behind it
    "<|tool_call|>",  # Granite 3
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
_LISTED_CALL: Form = (r"\[", *_GAP, *CALL)
LISTED: Form = (*FUNCTOOLS, *_GAP, r"[{\[]")


class LlamaJson(Dialect):
    name = "llama_json"
    how = (
        "To call a tool, write a JSON object with its name and its parameters, and nothing else; for several "
        "calls, several objects with a semicolon between them."
    )
    opens: tuple[str, ...] = (TAG, *TOKENS, *TAGS, FUNCTION)
    drops: tuple[str, ...] = (
        *ENDS,
        *("<|action_end|>", "<|/tool_call|>", "<|message_sep|>", "<|im_start|>assistant"),
        *TAGS.values(),
        FUNCTION_END,
    )
    begins: tuple[Form, ...] = (LISTED, *HEADERS)
    bare = (r"[{\[]", *_GAP, r"\{?", *_GAP, '"')
    sure = (*bare, *'name"', *_GAP, ":", *_GAP, '"', r'[^"\n]{1,99}', '"', *_GAP, ",", *_GAP, '"', "[pa]")

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener == FUNCTION:
            return (yield from read_function(self, cursor, tools, wrapped=False))
        marked = opener or (yield from cursor.accept(FUNCTOOLS, *HEADERS))
        yield from cursor.space()
        if (yield from cursor.accept(PLUGIN)):
            yield from cursor.space()
        if opener in TAGS and (yield from cursor.sees(CALL, _LISTED_CALL)):
            return (yield from self._python(cursor, opener, tools))
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
            loose = None if payload.flaw else loose_calls(payload.text, tools)
            if not payload.certain and loose is None:
                cursor.back(cursor.taken - before if found else payload.swallowed)
                return found or None
            if payload.flaw:
                yield from cursor.until(*ENDS, *self.opens, *TAGS.values(), "\n\n", "```")
                yield from cursor.accept(*filter(None, (TAGS.get(opener),)))
                return [*found, self.bad(payload.flaw, name_in(payload.text))]
            calls = self.entries(payload) if loose is None else loose
            if not marked and any(isinstance(one, TextCall) and is_schema(one.arguments) for one in calls):
                cursor.back(cursor.taken - before if found else 0)
                return found or None
            found += calls

    def _python(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Calls as Python has them between the tags: Nemotron, which was trained on both."""
        start = cursor.taken
        listed = yield from cursor.accept("[")
        yield from cursor.space()
        found = yield from read_python_calls(self, cursor, tools, certain=True)
        yield from cursor.space()
        if listed and (yield from cursor.accept("]")):
            yield from cursor.space()
        if not (yield from cursor.accept(TAGS[opener])) and cursor.at < len(cursor.text):
            return (yield from self.stray(cursor, opener, TAGS[opener], start))
        return found

    def _without_json(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        """Something else stands behind what opens a call."""
        if opener in _BY_KEYS:
            return (yield from read_tool_call(self, cursor, _BY_KEYS[opener], tools, lone_name=False))
        if opener in TAGS and (found := (yield from read_inside(self, cursor, opener, tools))) is not None:
            return found
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


def _is_call(members: Members) -> bool:
    given = members.get("parameters") or members.get("arguments") or ""
    if members.get("name") == '"':
        return given in ("{", '"', "n")
    return members.get("type") == '"' and members.get("function") == "{"
