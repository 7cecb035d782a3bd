"""Make invisible characters visible, so that users approve exactly what they read (P14).

Every client shows texts to approve, review or release through `visible`. The web UI has the same function in
`web/src/calls/visible.ts`. `tests/visible_text.json` checks both against one table.
"""

from __future__ import annotations

import json
import re
import unicodedata

# Controls except tab and line feed, direction marks, joiners, fillers, variation selectors, tags, and private
# characters. These are all that Unicode calls default-ignorable, format, control, separator or private use.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
# Words of these scripts need the characters that join or separate letters.
_JOINED = frozenset(
    "ARABIC BENGALI DEVANAGARI GUJARATI GURMUKHI KANNADA MALAYALAM SINHALA TAMIL TELUGU".split()  # noqa: SIM905
)


def visible(text: str) -> str:
    """Return the text with each invisible character replaced by its number in JSON notation. JSON keeps its
    value.

    Tabs and line feeds stay, and so do invisible characters that are part of an emoji or of a word in some
    scripts.
    """
    return _UNSEEN.sub(lambda found: found[0] if _belongs(text, found.start()) else _written(found[0]), text)


def _belongs(text: str, place: int) -> bool:
    sign, before, after = text[place], text[max(0, place - 2) : place], text[place + 1 : place + 2]
    if sign == "\ufe0f":
        return _is_picture(before[-1:])
    if sign == "\u200d" and _is_picture(after):
        return _is_picture(before.removesuffix("\ufe0f")[-1:])
    return sign in "\u200c\u200d" and _is_joined(before[-1:]) and _is_joined(after)


def _is_picture(sign: str) -> bool:
    """Return whether the character is an emoji or the skin tone after one."""
    return sign != "" and (unicodedata.category(sign) == "So" or "\U0001f3fb" <= sign <= "\U0001f3ff")


def _is_joined(sign: str) -> bool:
    return sign != "" and unicodedata.name(sign, "").partition(" ")[0] in _JOINED


def _written(sign: str) -> str:
    return json.dumps(sign)[1:-1] if ord(sign) > 0x7F else f"\\u{ord(sign):04x}"
