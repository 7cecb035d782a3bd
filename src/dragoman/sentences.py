"""Define sentences for users, each with a code and values, so that a client can translate them.

    raise BadRequest(sentence("tags.too_many", most=MOST_TAGS))

A `Sentence` is the English text (`english.py`) and remembers its code and values. `str(error)` is the
sentence that an error was raised with, including the code. An f-string is only text: insert a sentence into
another as a value. CONTRIBUTING.md says which sentences need a code, and `tests/server/test_codes.py` checks
that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import Field, JsonValue

from dragoman.english import ENGLISH

Value: TypeAlias = "str | int | float | list[str]"  # Each string can be a sentence.


class Sentence(str):
    """An English text with its code and values."""

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Value]

    def __new__(cls, text: str, code: str = "", values: Mapping[str, Value] | None = None) -> Sentence:
        made = super().__new__(cls, text)
        made.code, made.values = code, dict(values or {})
        return made

    def __str__(self) -> str:
        return self  # so that `str(error)` keeps the code

    def mapped(self, change: Callable[[str], str]) -> str:
        """Return the sentence with `change` applied to its text and values.

        If the changed values do not yield the changed text, return only the text, so that no value reveals
        what it hides.
        """
        text, values = change(_plain(self)), {name: _mapped(one, change) for name, one in self.values.items()}
        if text == self and values == self.values:
            return self
        shown = {name: " ".join(one) if isinstance(one, list) else one for name, one in values.items()}
        try:
            same = ENGLISH[self.code].format(**shown) == text
        except (KeyError, ValueError):  # An earlier version with a different wording stored the sentence.
            same = False
        return Sentence(text, self.code, values) if same else text


def sentence(code: str, /, **values: object) -> Sentence:
    """Return the sentence of a code, with the values that its English text names."""
    kept = {name: _kept(value) for name, value in values.items()}
    return Sentence(ENGLISH[code].format(**values), code, kept)


def worded(text: str) -> str:
    """Return a text of a table in Dragoman. A code is replaced by its sentence."""
    return sentence(text) if text in ENGLISH else text


def together(sentences: Sequence[str]) -> str:
    """Return the sentences joined into one."""
    return (
        Sentence(" ".join(sentences), "together", {"all": [*sentences]})
        if len(sentences) != 1
        else sentences[0]
    )


def _kept(value: object) -> Value:
    if isinstance(value, Sentence | int | float):
        return value
    text = str(value)  # For an error, this is the sentence that it was raised with.
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
    """A sentence as it is stored and sent. A value that is a sentence has the same form."""

    code: str
    text: str
    values: dict[str, JsonValue]


SaidFields: TypeAlias = Annotated[dict[str, Said] | None, Field(exclude_if=lambda said: not said)]
"""Sentences with a code, by the name of the field that contains the text."""


class Spoken:
    """A base of dataclasses whose strings can be sentences. They declare this field:

        said: SaidFields = field(default=None, compare=False)

    It is filled with the codes of the strings. Stored strings become sentences again.
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
    """Return the sentence that was stored or sent."""
    return Sentence(said.text, said.code, {name: _received(one) for name, one in said.values.items()})


def said_of(text: str) -> dict[str, JsonValue]:
    """Return the code and the values of a text, or nothing if it has no code."""
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
