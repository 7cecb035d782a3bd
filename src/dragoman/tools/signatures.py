"""Turn tools into Python signatures from their JSON schemas, for a model to read and a type checker
to use."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_origin

from dragoman.messages.request import ToolSpec
from dragoman.tools.tool import Tool

_PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}
_RETURNS = {str: "str", int: "int", float: "float", bool: "bool", list: "list[Any]", dict: "dict[str, Any]"}
_BY_NAME = {kind.__name__: name for kind, name in _RETURNS.items()}
_DEEPEST = 6  # levels of a schema: below that, any value is accepted

# The interpreter knows these, but its type checker does not.
_MISSING = """\
from typing import Any, Literal
class PermissionError(OSError): ...
class FileNotFoundError(OSError): ...
def map(function: Any, *iterables: Any) -> Any: ...
def filter(function: Any, iterable: Any) -> Any: ...
def getattr(target: Any, name: str, *default: Any) -> Any: ...
def hasattr(target: Any, name: str) -> bool: ...
def format(value: Any, spec: str = ...) -> str: ...
"""


def function_names(tools: Iterable[str]) -> dict[str, str]:
    """Return the functions of these tools.

    Characters that Python does not allow in names become underscores.
    """
    names: dict[str, str] = {}
    for tool in tools:
        name = re.sub(r"\W|^(?=\d)", "_", tool)
        while name in names or keyword.iskeyword(name):
            name += "_"
        names[name] = tool
    return names


def stubs(names: Mapping[str, str], tools: Mapping[str, Tool]) -> str:
    """Return stubs for the type checker."""
    lines = (f"{_head(name, tools[tool].spec(tool), tools[tool])} ..." for name, tool in names.items())
    return _MISSING + "\n".join(lines) + "\n"


def signatures(specs: Iterable[ToolSpec], tools: Mapping[str, Tool]) -> str:
    """Return signatures for the model, with descriptions and parameters, in place of the schemas."""
    known = {spec.name: spec for spec in specs}
    return "\n".join(_told(name, known[tool], tools[tool]) for name, tool in function_names(known).items())


def _told(name: str, spec: ToolSpec, tool: Tool) -> str:
    described = [
        f"{parameter}: {schema['description']}"
        for parameter, schema in _properties(spec).items()
        if isinstance(schema, dict) and schema.get("description")
    ]
    text = "\n".join([spec.description.strip(), *described]).replace("\n", "\n  ")
    return f'{_head(name, spec, tool)}\n  "{text}"' if text else f"{_head(name, spec, tool)} ..."


def _properties(spec: ToolSpec) -> Mapping[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _head(name: str, spec: ToolSpec, tool: Tool) -> str:
    schema: Mapping[str, Any] = spec.parameters
    required, defs = set(schema.get("required", ())), schema.get("$defs", {})
    every = _properties(spec)
    named = [one for one in every if one.isidentifier() and not keyword.iskeyword(one)]
    parameters = [
        f"{one}: {_type(every[one], defs)}{'' if one in required else ' = ...'}"
        for one in sorted(named, key=lambda one: one not in required)
    ]
    if parameters:
        parameters.insert(0, "*")
    if len(named) < len(every) or schema.get("additionalProperties") not in (None, False):
        parameters.append("**more: Any")
    return f"async def {name}({', '.join(parameters)}) -> {_returned(tool)}:"


def _returned(tool: Tool) -> str:
    """Return the return annotation, if it is simple enough to be valid for JSON, too."""
    if not inspect.isroutine(tool.function):
        return "Any"
    said = inspect.signature(tool.function).return_annotation
    if isinstance(said, str):
        return _BY_NAME.get(said.partition("[")[0], "Any") if "|" not in said else "Any"
    return _RETURNS.get(get_origin(said) or said, "Any")


def _type(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> str:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "Any"
    if isinstance(name := schema.get("$ref"), str):
        return _type(defs.get(name.rpartition("/")[2]), defs, depth + 1)
    words = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(words, list):
        plain = all(isinstance(word, str | int | None) for word in words)
        return f"Literal[{', '.join(map(repr, words))}]" if plain and words else "Any"
    for word in ("anyOf", "oneOf"):
        if isinstance(kinds := schema.get(word), list):
            return " | ".join(dict.fromkeys(_type(one, defs, depth + 1) for one in kinds)) or "Any"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_PLAIN.get(str(one), "Any") for one in kind) or "Any"
    if kind == "array":
        return f"list[{_type(schema.get('items'), defs, depth + 1)}]"
    if kind == "object" and isinstance(values := schema.get("additionalProperties"), dict):
        return f"dict[str, {_type(values, defs, depth + 1)}]"
    return _PLAIN.get(str(kind), "Any")
