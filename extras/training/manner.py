"""Rephrase a request in one of users' manners: text to be copied stays unchanged."""

from __future__ import annotations

import re

from training.material import manner as M
from training.scene import Scene

_NO_ORDERS = frozenset(
    (
        *(
            "what",
            "what's",
            "whats",
            "how",
            "how's",
            "is",
            "are",
            "do",
            "does",
            "did",
            "who",
            "who's",
            "when",
            "where",
        ),
        *(
            "which",
            "can",
            "could",
            "any",
            "anything",
            "i",
            "i'm",
            "i've",
            "i'd",
            "i'll",
            "we",
            "we're",
            "my",
            "the",
        ),
        *(
            "a",
            "an",
            "there's",
            "there",
            "it's",
            "it",
            "has",
            "have",
            "will",
            "should",
            "that",
            "this",
            "if",
            "not",
        ),
        *("no", "was", "status", "new"),
    )
)


def say(scene: Scene, request: str, kept: str, *, open_end: bool = False) -> str:
    """`kept` has the values of the request. After an open end, nothing follows."""
    language = scene.language
    text = request
    word = request.split(" ", maxsplit=1)[0].strip("\"',.:;?!“„")
    valued = word in kept or any(sign.isdigit() for sign in word)  # the request begins with a value
    asks = request.endswith(("?", "？")) or valued or word.lower() in _NO_ORDERS
    if not asks and scene.maybe(0.3):
        pattern = scene.pick(M.POLITE[language])
        if open_end and not pattern.endswith(("{}", "{low}")):
            pattern = "{}"
        if pattern.endswith("{}, please.") or pattern.startswith("{}"):
            text = text.rstrip(".!") if not open_end else text
        text = pattern.replace("{low}", lowered(text)).replace("{}", text)
    if (language == "en" and scene.maybe(0.12)) or (language == "de" and scene.maybe(0.08)):
        text = _slipped(scene, text, kept)
    if scene.maybe(0.14):
        before = scene.pick(M.BEFORE[language])
        joint = "" if language == "zh" else " "
        low = not valued and (before[-1] in ",:" or before.islower())
        text = before + joint + (lowered(text) if low else text)
        valued = False
    if scene.maybe(0.12) and not open_end:
        after = scene.pick(M.AFTER[language])
        ended = text[-1] in ".!?？。！"
        if language == "zh":
            text = f"{text}{'' if ended else '，'}{after}"
        else:
            text = f"{text}{'' if ended or after[0].islower() else '.'} {after}"
    if language == "en" and not valued and scene.maybe(0.22):
        text = lowered(text)
    if scene.maybe(0.15) and not open_end:
        text = text.rstrip("?.!？。")
    return text


def lowered(text: str) -> str:
    first = text.split(" ", maxsplit=1)[0]
    return text[:1].lower() + text[1:] if not first.isupper() or len(first) == 1 else text


def _slipped(scene: Scene, text: str, kept: str) -> str:
    """Mistype one or two words, none of them part of a value."""
    found = [
        wrong
        for wrong in M.SLIPS[scene.language]
        if wrong.strip() not in kept
        and re.search(
            rf"(?<!\w){re.escape(wrong)}(?!\w)" if wrong[-1] != " " else re.escape(" " + wrong), text
        )
    ]
    for wrong in scene.chance.sample(found, min(len(found), scene.chance.choice([1, 1, 2]))):
        slip = M.SLIPS[scene.language][wrong]
        if wrong.endswith(" "):
            text = text.replace(" " + wrong, " " + slip, 1)
        else:
            text = re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", slip, text, count=1)
    return text
