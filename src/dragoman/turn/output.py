"""Defines the type of an answer: the schema sent to the model, and the check that its text must pass.

    turn = await chat.send("…", output_type=Invoice)
    invoice = (await turn.result()).output

It accepts a pydantic model, a dataclass, a TypedDict and any other type that pydantic can describe. `Output`
adds what a type cannot express: custom checks, and the number of retries.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from json import JSONDecoder
from typing import Any, Generic, TypeAlias, cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypeVar

from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.boundary import is_finite
from dragoman.messages.request import OutputSpec
from dragoman.tools.json_schema import JsonParameters
from dragoman.tools.schema import plain_schema, problems

T = TypeVar("T", default=Any)

TYPED_OUTPUT = "typed_output"  # the plugin that enforces the type of answers
_WRAPPED = "value"  # Providers want an object, so other types are wrapped under this name.
_RETRIES = 3


class Unfit(ValueError):
    """The text does not fit the type. The message tells the model what to fix."""


class Output(Generic[T]):
    """An answer of this type. Dragoman calls each of `checks`, which can be async, with the value. If a check
    raises a ValueError or returns False, the model tries again, at most `retries` times. Dragoman ignores
    other return values."""

    def __init__(
        self, type: type[T], *, checks: Sequence[Callable[[T], object]] = (), retries: int = _RETRIES
    ) -> None:
        if retries < 0:
            raise ConfigError(f"'retries' must be a whole number of 0 or more, not {retries!r}.")
        self.type = type
        self.checks = tuple(checks)
        try:
            self._adapter: TypeAdapter[T] = TypeAdapter(type)
            schema = plain_schema(self._adapter.json_schema())
        except Exception as error:  # Pydantic raises various errors for values that are not types.
            why = str(error).split("\n", 1)[0] or error.__class__.__name__
            raise ConfigError(f"output_type: pydantic cannot describe {type!r}: {why}") from error
        wrapped = schema.get("type") != "object"
        self.spec = OutputSpec(_in_object(schema) if wrapped else schema, wrapped, retries)

    def __repr__(self) -> str:
        return f"Output({self.type!r})"

    async def check(self, text: str) -> T:
        """Return the value after every check. Raise Unfit if it is invalid or a check refuses it."""
        value = self.parse(text)
        for check in self.checks:
            try:
                made = check(value)
                made = await made if inspect.isawaitable(made) else made
                if made is False:
                    raise ValueError("it was not accepted")
            except ValueError as error:
                raise Unfit(str(error) or "it was not accepted") from error
        return value

    def parse(self, text: str) -> T:
        """Return the value in an answer, also from a code fence or between sentences."""
        value = self._read(text)
        try:
            # Validate as JSON: strict types then accept dates.
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            raise Unfit(problems(error)) from error
        except RecursionError as error:
            raise Unfit("it is nested too deeply") from error

    def parse_partial(self, text: str) -> T | None:
        """Return the value that has arrived so far, if it is already one."""
        try:
            value = _read_partial(text, wrapped=self.spec.wrapped)
            return self._adapter.validate_json(
                json.dumps(value), experimental_allow_partial="trailing-strings"
            )
        except ValueError:
            return None

    def _read(self, text: str) -> JsonValue:
        return read_answer(text, wrapped=self.spec.wrapped)


class SchemaOutput(Output[JsonValue]):
    """An answer that fits a JSON schema.

    Used if the caller has no Python type, or if the process that had it is gone.
    """

    def __init__(self, spec: OutputSpec) -> None:
        self.type = cast("type[JsonValue]", object)
        self.checks = ()
        self.spec = spec
        self._parameters = JsonParameters("answer", spec.schema)

    def parse(self, text: str) -> JsonValue:
        value = self._read(text)
        held: Any = {_WRAPPED: value} if self.spec.wrapped else value
        if not isinstance(held, dict):
            raise Unfit(f"a JSON object is wanted, not {json.dumps(value, ensure_ascii=False)[:200]}")
        try:
            self._parameters.validate(held)
        except ValidationError as error:
            raise Unfit(problems(error)) from error
        return value

    def parse_partial(self, text: str) -> JsonValue | None:
        try:
            return _read_partial(text, wrapped=self.spec.wrapped)
        except ValueError:
            return None


OutputType: TypeAlias = type[T] | Output[T]
"""A type, or an `Output`."""


def output_of(wanted: OutputType[T] | None) -> Output[T] | None:
    """Return the output type. None if plain text is wanted, which needs no schema."""
    if wanted is None or wanted is str:
        return None
    if isinstance(wanted, Output):
        return wanted
    return Output(wanted)


def spec_of_schema(schema: Mapping[str, Any], retries: int = _RETRIES) -> OutputSpec:
    """Return the spec of a user-written schema. Raise BadRequest if the schema is invalid."""
    wrapped = schema.get("type") != "object"
    spec = OutputSpec(_in_object(dict(schema)) if wrapped else dict(schema), wrapped, retries)
    try:
        JsonParameters("output_type", spec.schema)
    except ConfigError as error:
        raise BadRequest(str(error)) from error
    return spec


def read_answer(text: str, *, wrapped: bool) -> JsonValue:
    """Return the JSON value in a text: the whole text, or the first value in it. Raise Unfit if none is
    found."""
    value = _first_value(text)
    if wrapped and isinstance(value, dict) and value.keys() == {_WRAPPED}:
        return value[_WRAPPED]
    return value


def _read_partial(text: str, *, wrapped: bool) -> JsonValue:
    """Return the JSON value of an unfinished text. Raise ValueError if it is still undetermined."""
    start = next(iter(_starts(text)), None)
    if start is None:
        raise ValueError("no value has begun")
    value: JsonValue = from_json(text[start:].rstrip().removesuffix("```"), allow_partial="trailing-strings")
    if wrapped and value == {}:
        raise ValueError("its first name is still to come")
    if wrapped and isinstance(value, dict) and value.keys() == {_WRAPPED}:
        return value[_WRAPPED]
    return value


def _first_value(text: str) -> JsonValue:
    fault: Exception | None = None
    try:
        return _finite(_DECODER.decode(text))
    except (ValueError, RecursionError) as error:  # A model may nest values to any depth.
        fault = error
    for start in _starts(text):
        try:
            return _finite(_DECODER.raw_decode(text, start)[0])
        except (ValueError, RecursionError) as error:
            fault = error
    raise Unfit(f"it has no JSON value ({fault})" if text.strip() else "it is empty")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not valid JSON")


_DECODER = JSONDecoder(parse_constant=_refuse)


def _finite(value: JsonValue) -> JsonValue:
    if not is_finite(value):
        raise ValueError("it holds a number that is not finite")
    return value


_MOST_STARTS = 20  # Maximum number of braces tried as the start of a value.
_AT_LINE = re.compile(r"^[^\S\n]*([{\[])", re.MULTILINE)
_ANYWHERE = re.compile(r"[{\[]")


def _starts(text: str) -> Iterator[int]:
    """Yield where a JSON object or list may start: first at the start of a line, then anywhere."""
    found = chain((match.start(1) for match in _AT_LINE.finditer(text)), _braces(text))
    yield from islice(dict.fromkeys(islice(found, 2 * _MOST_STARTS)), _MOST_STARTS)


def _braces(text: str) -> Iterator[int]:
    return (match.start() for match in _ANYWHERE.finditer(text))


def _in_object(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Wrap a non-object schema as the only field of an object. Its definitions move to the top."""
    inner = {name: part for name, part in schema.items() if name != "$defs"}
    outer: dict[str, JsonValue] = {
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
    return outer | {"$defs": schema["$defs"]} if "$defs" in schema else outer
