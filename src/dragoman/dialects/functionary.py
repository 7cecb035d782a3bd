"""`<|recipient|>NAME<|content|>{…}`, or `>>>NAME` and the arguments in the next line: Functionary.

What is addressed to `all` is text. Version 3.1 writes `<function=NAME>{…}</function>`, as Llama 3.1 does.
"""

from __future__ import annotations

import re

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import tool_named
from dragoman.dialects.llama_json import LlamaJson
from dragoman.dialects.scanner import Reading, Tools

FROM, RECIPIENT, CONTENT, PROMPT = "<|from|>assistant", "<|recipient|>", "<|content|>", ">>>"
STOPS = ("<|stop|>", FROM, RECIPIENT, PROMPT)

_NAME = re.compile(r"[\w.:/-]{1,99}")
_EVERYBODY = "all"


class Functionary(LlamaJson):
    name = "functionary"
    opens = (*LlamaJson.opens, RECIPIENT, PROMPT)
    drops = (*LlamaJson.drops, FROM, CONTENT, "<|stop|>")

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener not in (RECIPIENT, PROMPT):
            return (yield from super().read(cursor, opener, tools))
        alone = cursor.fresh
        name, _ = yield from cursor.until("\n", CONTENT, "{", "<")
        yield from cursor.space()
        content = yield from cursor.accept(CONTENT)
        if not _NAME.fullmatch(name.strip()) or not (content or (opener == PROMPT and alone)):
            return None
        if name.strip() == _EVERYBODY:
            return []
        yield from cursor.space()
        if not content and not (tool_named(name, tools) and (yield from cursor.sees("{"))):
            return None
        return (yield from self.named(cursor, name, "", (), STOPS))
