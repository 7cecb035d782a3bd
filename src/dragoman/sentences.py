"""Sentences for people, each with a code and values: a client says them in its own language.

    raise BadRequest(sentence("tags.too_many", most=MOST_TAGS))

A `Sentence` is the English text (`english.py`), and knows what it was made of. `str(error)` is the sentence
an error was raised with, code and all. An f-string is text alone: a sentence goes into another as a value of
it. CONTRIBUTING.md says which sentences need a code, and `tests/server/test_codes.py` sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field, JsonValue

from dragoman.english import ENGLISH

Value: TypeAlias = "str | int | float | list[str]"  # of which a text may be a sentence


class Sentence(str):
    """English, with the code and the values that it was made from."""

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Value]

    def __new__(cls, text: str, code: str = "", values: Mapping[str, Value] | None = None) -> Sentence:
        made = super().__new__(cls, text)
        made.code, made.values = code, dict(values or {})
        return made

    def __str__(self) -> str:
        return self  # so that `str(error)` keeps it

    def mapped(self, change: Callable[[str], str]) -> str:
        """With a change made to its text, and to its values where that comes to the same: else it is a text
        alone, so that no value shows what the text hides."""
        text, values = change(_plain(self)), {name: _mapped(one, change) for name, one in self.values.items()}
        if text == self and values == self.values:
            return self
        shown = {name: " ".join(one) if isinstance(one, list) else one for name, one in values.items()}
        try:
            same = ENGLISH[self.code].format(**shown) == text
        except (KeyError, ValueError):  # stored by a version that said it in another way
            same = False
        return Sentence(text, self.code, values) if same else text


def sentence(code: str, /, **values: object) -> Sentence:
    """By its code, with the values that its English names."""
    kept = {name: _kept(value) for name, value in values.items()}
    return Sentence(ENGLISH[code].format(**values), code, kept)


def worded(text: str) -> str:
    """A text of one of our own tables, where a code may stand in its place."""
    return sentence(text) if text in ENGLISH else text


def together(sentences: Sequence[str]) -> str:
    """One after the other."""
    return (
        Sentence(" ".join(sentences), "together", {"all": [*sentences]})
        if len(sentences) != 1
        else sentences[0]
    )


def _kept(value: object) -> Value:
    if isinstance(value, Sentence | int | float):
        return value
    text = str(value)  # of an error the sentence that it was raised with
    return text if isinstance(text, Sentence) else text.encode("utf-8", "backslashreplace").decode()


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    match value:
        case Sentence():
            return value.mapped(change)
        case str():
            return change(value)
        case list():
            return [one.mapped(change) if isinstance(one, Sentence) else change(one) for one in value]
        case _:
            return value


def _plain(text: str) -> str:
    return str.__str__(text)


# ── stored and sent ───────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, frozen=True)
class Said:
    """A sentence as it is stored and sent. A value that is a sentence is an object like this one."""

    code: str
    text: str
    values: dict[str, JsonValue]


SaidFields: TypeAlias = Annotated[dict[str, Said] | None, Field(exclude_if=lambda said: not said)]
"""By the name of the field that holds the text, and only where that has a code."""


class Spoken:
    """A dataclass whose texts may be sentences, and which says so in a field of its own:

        said: SaidFields = field(default=None, compare=False)

    The codes are taken from the texts. Texts that were stored get theirs back.
    """

    __slots__ = ()
    said: SaidFields

    def __post_init__(self) -> None:
        known: dict[str, Said] = self.said or {}
        said: dict[str, Said] = {}
        slots: tuple[str, ...] = type(self).__slots__
        for name in slots:
            text = getattr(self, name)
            if isinstance(text, Sentence):
                said[name] = Said(text.code, _plain(text), _sent(text.values))
            elif name in known and known[name].text == text:
                said[name] = known[name]
                object.__setattr__(self, name, heard(known[name]))
        if (said or None) != self.said:
            object.__setattr__(self, "said", said or None)


def heard(said: Said) -> Sentence:
    """The sentence again."""
    return Sentence(said.text, said.code, {name: _received(one) for name, one in said.values.items()})


def said_of(text: str) -> dict[str, JsonValue]:
    """The code and the values that go with a text; nothing where it has none."""
    return {"code": text.code, "values": _sent(text.values)} if isinstance(text, Sentence) else {}


def _received(value: JsonValue) -> Value:
    match value:
        case {"code": str(code), "text": str(text), "values": dict(values)}:
            return heard(Said(code, text, values))
        case str() | int() | float():
            return value
        case list():
            return [str(_received(one)) for one in value]
        case _:
            return str(value)


def _sent(values: Mapping[str, Value]) -> dict[str, JsonValue]:
    return {name: _sent_value(one) for name, one in values.items()}


def _sent_value(value: Value) -> JsonValue:
    match value:
        case Sentence():
            return {"code": value.code, "text": _plain(value), "values": _sent(value.values)}
        case list():
            return [_sent_value(one) for one in value]
        case _:
            return value
