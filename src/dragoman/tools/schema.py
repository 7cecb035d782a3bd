"""Derive the parameters of a tool from a function's signature: a JSON schema and a validator."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)

from dragoman.errors import ConfigError
from dragoman.messages.message import Arguments, json_text

# Read descriptions of a tool and its parameters from a docstring.


def summary(docstring: str) -> str:
    """Return the docstring without its parameter list: the tool's description for the model."""
    section = r"^(?:Args|Arguments|Parameters|Returns|Yields|Raises):[ \t]*$"
    line = r"^[ \t]*:(?:param|type|returns?|rtype|raises)\b"
    return re.split(f"{section}|{line}", docstring, flags=re.MULTILINE)[0].strip()


def descriptions(docstring: str) -> dict[str, str]:
    """Return the description of each parameter, from an `Args:` section or `:param name:` lines."""
    found = {**_in_section(docstring), **_in_lines(docstring)}
    return {name: " ".join(text.split()) for name, text in found.items()}


def _in_section(docstring: str) -> dict[str, str]:
    heading = r"^(?:Args|Arguments|Parameters):[ \t]*\n"
    section = re.search(heading + r"((?:[ \t]+\S.*\n?|[ \t]*\n)+)", docstring, re.MULTILINE)
    return _named(r"^(\w+)[ \t]*(?:\([^)\n]*\))?:", textwrap.dedent(section[1])) if section else {}


def _in_lines(docstring: str) -> dict[str, str]:
    found = _named(r"^[ \t]*:param[ \t]+(?:[^:\n]*[ \t])?(\w+):", docstring)
    return {name: re.split(r"\n[ \t]*(?::|\n)", text)[0] for name, text in found.items()}


def _named(name: str, text: str) -> dict[str, str]:
    """Return each text between two names, under the name before it."""
    pieces = re.split(name, text, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


_INDESCRIBABLE = (PydanticUserError, NameError)


class Parameters:
    """The parameters of a tool: the schema shown to a model, and the check that arguments must pass."""

    def __init__(self, tool: str, model: type[BaseModel]) -> None:
        self.model = model
        try:
            self.schema: dict[str, JsonValue] = _with_properties(plain_schema(model.model_json_schema()))
        except _INDESCRIBABLE as error:
            fields = {name: field.annotation for name, field in model.model_fields.items()}
            raise _indescribable(tool, fields, error) from error

    @cached_property
    def size(self) -> int:
        """The letters of the schema."""
        return len(json.dumps(self.schema, ensure_ascii=False))

    @property
    def names(self) -> list[str]:
        """The parameter names as a model writes them."""
        properties = self.schema["properties"]
        return list(properties) if isinstance(properties, dict) else []

    def validate(self, arguments: Arguments) -> BaseModel:
        """Return the arguments as the function takes them. Strict: raises ValidationError for any that do not
        fit."""
        return self.model.model_validate_json(json_text(arguments), strict=True)

    def default(self, name: str) -> Any:
        """Return a parameter's default. None if the parameter is required, or if None is the default."""
        for field_name, field in self.model.model_fields.items():
            if name == (field.alias or field_name) and not field.is_required():
                return field.get_default(call_default_factory=True, validated_data={})
        return None


def parameters_of(tool: str, signature: Iterable[inspect.Parameter], docstring: str) -> Parameters:
    """Return the parameters of a function, from its types and its docstring."""
    described = descriptions(docstring)
    fields: dict[str, Any] = {}
    for parameter in signature:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"Tool {tool!r}: parameter '{parameter}' must be an ordinary named parameter.")
        if parameter.annotation is parameter.empty:
            raise ConfigError(f"Tool {tool!r}: parameter {parameter.name!r} has no type.")
        default = ... if parameter.default is parameter.empty else parameter.default
        type = _described(parameter.name, parameter.annotation, described.get(parameter.name))
        fields[attribute(parameter.name)] = (type, default)
    # Build the model only when its schema is requested, so that one place handles types that pydantic cannot
    # describe.
    config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)
    return Parameters(tool, create_model(tool, __config__=config, **fields))


def signature_of(
    tool: str, function: Callable[..., Any], local: Mapping[str, Any]
) -> Iterator[inspect.Parameter]:
    """Yield the parameters with their resolved types, even if the annotations are strings."""
    known = getattr(inspect.unwrap(function), "__globals__", {})
    for parameter in inspect.signature(function).parameters.values():
        type = parameter.annotation
        if isinstance(type, str):
            try:
                type = eval(type, known, dict(local))
            except Exception as error:
                where = f"Tool {tool!r}: the type {type!r} of parameter {parameter.name!r}"
                raise ConfigError(f"{where} is unknown: {error}") from error
        yield parameter.replace(annotation=type)


def takes(parameter: inspect.Parameter, kind: type) -> bool:
    """Return whether a parameter has this type, optional or not."""
    named = (parameter.annotation, *get_args(parameter.annotation))
    return any(one is kind or get_origin(one) is kind for one in named)


def attribute(name: str) -> str:
    """Return the attribute of a pydantic model for a parameter: its name, unless pydantic uses that name
    itself."""
    return f"parameter_{name}" if name.startswith("_") or hasattr(BaseModel, name) else name


MOST_FAULTS = 20  # reported together: a model does not fix more of them in one attempt


def problems(error: ValidationError) -> str:
    """Describe what is wrong with the arguments, where, and what was expected, so that a model can
    fix them."""
    lines = []
    faults = error.errors()
    for fault in faults[:MOST_FAULTS]:
        where = ".".join(map(str, fault["loc"])) or "arguments"
        given = "" if fault["type"] == "missing" else f", got {_short(fault['input'])}"
        lines.append(f"{where}: {fault['msg']}{given}")
    if len(faults) > MOST_FAULTS:
        lines.append(f"… and {len(faults) - MOST_FAULTS} more")
    return "\n".join(lines)


def _described(name: str, type: Any, text: str | None) -> Any:
    """Return the type with the docstring's description. A description in the signature wins."""
    alias = name if attribute(name) != name else None
    base, *marks = get_args(type) if get_origin(type) is Annotated else (type,)
    return Annotated[base, Field(alias=alias, description=text or None), *marks]


def _indescribable(tool: str, types: Mapping[str, Any], error: Exception) -> ConfigError:
    for name, type in types.items():
        try:
            TypeAdapter(type).json_schema()
        except _INDESCRIBABLE as alone:
            parameter = repr(name.removeprefix("parameter_"))
            return ConfigError(
                f"Tool {tool!r}: pydantic cannot describe parameter {parameter}: {_line(alone)}"
            )
    return ConfigError(f"Tool {tool!r}: pydantic cannot describe its parameters: {_line(error)}")


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else text[:200] + "…"


_NAMED = ("properties", "$defs")  # objects whose keys are user-defined names
_GIVEN = ("default", "const", "enum", "examples")  # user-defined values, which stay unchanged


def plain_schema(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """Return the schema without pydantic's titles, which cost tokens and tell a model nothing."""

    def strip(node: Any, named: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                key: value if key in _GIVEN and not named else strip(value, key in _NAMED and not named)
                for key, value in node.items()
                if named or key != "title" or not isinstance(value, str)
            }
        if isinstance(node, list):
            return [strip(item) for item in node]
        return node

    stripped: dict[str, JsonValue] = strip(schema)
    return stripped


def _with_properties(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {**schema, "properties": schema.get("properties") or {}}
