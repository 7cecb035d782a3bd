"""gpt-oss: `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.

A reply is several messages, each with a header. What is in the channel `analysis` is reasoning; what is
addressed to a function is a call; all else is text. The recipient may stand in front of the channel too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.dialects.cursor import Cursor
from dragoman.dialects.grammar import Dialect
from dragoman.dialects.scanner import Reading, TextCall, Tools
from dragoman.dialects.wording import compact

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ENDS = ("<|call|>", "<|end|>", "<|return|>")

_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]+)")


class Harmony(Dialect):
    name = "harmony"
    how = (
        "Think in the channel `analysis`, answer in the channel `final`. To call a tool, write a message to "
        "`functions.` and the name of the tool in the channel `commentary`: its arguments as a JSON object."
    )
    begins = (("t", "o", "=", r"[\w.-]{1,99}", r"[^<\n]{0,40}", "<", r"\|"),)
    opens = turns = (START, CHANNEL, MESSAGE, *ENDS)

    def read(self, cursor: Cursor, opener: str, tools: Tools | None) -> Reading:
        if opener in ENDS or opener == MESSAGE:
            return "text"
        header, mark = yield from cursor.until(MESSAGE, START, *ENDS)
        header = opener + header
        yield from cursor.accept(MESSAGE, *ENDS)
        channel, to = _CHANNEL.search(header), _RECIPIENT.search(header)
        thinks = channel is not None and channel[1] == "analysis"
        if to is None or to[1] == "assistant" or (channel and channel[1] == "final"):
            return "reasoning" if thinks and mark == MESSAGE else "text"
        if mark != MESSAGE:
            return [self.bad(f"{MESSAGE} is missing", to[1])]
        space = yield from cursor.space()
        if thinks and not (yield from cursor.sees("{")):
            cursor.back(len(space))
            return "reasoning"
        return (yield from self.named(cursor, to[1], "", ENDS, (START, CHANNEL)))

    def calls(self, calls: Sequence[TextCall]) -> str:
        return f"{START}assistant".join(
            f"{CHANNEL}commentary to=functions.{call.name} <|constrain|>json"
            f"{MESSAGE}{compact(call.arguments)}{ENDS[0]}"
            for call in calls
        )
