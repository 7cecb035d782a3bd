"""A function's signature in, a JSON schema and a validator out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PydanticUserError, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError

from dragoman.errors import ConfigError
from dragoman.messages.parts import Arguments, canonical


class Parameters:
    """What a tool takes: the schema a model is shown, and the check its arguments must pass."""

    def __init__(self, tool: str, model: type[BaseModel]) -> None:
        self.model = model
        try:
            self.schema: dict[str, JsonValue] = _plain(model.model_json_schema())
        except PydanticUserError as error:
            raise ConfigError(f"tool {tool}: its parameters have no JSON schema: {error}") from error

    def validate(self, arguments: Arguments) -> BaseModel:
        """The arguments as the function wants them. Strict: what does not fit is a ValidationError."""
        return self.model.model_validate_json(canonical(arguments), strict=True)


def parameters_of(
    tool: str, function: Callable[..., Any], local: Mapping[str, Any], skip: type
) -> Parameters:
    """The parameters of a function, less the one that takes the context (of type `skip`)."""
    try:
        signature = inspect.signature(function, eval_str=True, locals=dict(local))
    except NameError as error:
        raise ConfigError(f"tool {tool}: {error.name!r} in its signature is not known here") from error
    described = descriptions(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.annotation is skip:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"tool {tool}: parameter {parameter} must be an ordinary named one")
        if parameter.annotation is parameter.empty:
            raise ConfigError(f"tool {tool}: parameter {parameter.name!r} has no type")
        default = ... if parameter.default is parameter.empty else parameter.default
        text = described.get(parameter.name)
        fields[parameter.name] = (parameter.annotation, Field(default, description=text) if text else default)
    try:
        model = create_model(tool, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError) as error:
        why = str(error).split("\n", 1)[0]
        raise ConfigError(f"tool {tool}: pydantic cannot describe its parameters: {why}") from error
    return Parameters(tool, model)


def context_name(function: Callable[..., Any], local: Mapping[str, Any], context: type) -> str | None:
    """The name of the parameter that wants the context, if there is one."""
    signature = inspect.signature(function, eval_str=True, locals=dict(local))
    return next((p.name for p in signature.parameters.values() if p.annotation is context), None)


def descriptions(docstring: str) -> dict[str, str]:
    """What a docstring says of each parameter: an `Args:` section, or `:param name:` lines."""
    found = dict(re.findall(r"^\s*:param\s+(?:[\w\[\], |]+\s)?(\w+):\s*(.+)$", docstring, re.MULTILINE))
    section = re.search(
        r"^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+.*\n?|\s*\n)+)", docstring, re.MULTILINE
    )
    if section:
        for name, text in re.findall(r"^[ \t]+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$", section[1], re.MULTILINE):
            found.setdefault(name, text.strip())
    return found


def summary(docstring: str) -> str:
    """The docstring less its parameter list: what a model is told the tool is for."""
    return re.split(r"^(?:Args|Arguments|Parameters|Returns|Raises):\s*$|^\s*:param ", docstring, flags=re.M)[
        0
    ].strip()


def problems(error: ValidationError) -> str:
    """What is wrong with the arguments, where, and what was expected, for a model to mend."""
    lines = []
    for fault in error.errors(include_url=False):
        where = ".".join(map(str, fault["loc"])) or "arguments"
        given = "" if fault["type"] == "missing" else f", got {canonical(_short(fault['input']))}"
        lines.append(f"{where}: {fault['msg']}{given}")
    return "\n".join(lines)


def _short(value: Any) -> JsonValue:
    text = canonical(value)
    return value if len(text) <= 200 else text[:200] + "…"


def _plain(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """Without pydantic's titles, which cost tokens and tell a model nothing."""

    def strip(node: Any, named: bool = False) -> Any:
        if isinstance(node, dict):
            return {
                key: strip(value, key in ("properties", "$defs"))
                for key, value in node.items()
                if named or key != "title" or not isinstance(value, str)
            }
        if isinstance(node, list):
            return [strip(item) for item in node]
        return node

    stripped: dict[str, JsonValue] = strip(schema)
    stripped.setdefault("properties", {})
    return stripped
