"""The OpenAPI description: what FastAPI writes, corrected where the API is more exact than FastAPI knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from dragoman.server.shapes import Problem

_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "a key, or the token of the launch link"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "dragoman_XXXXXXXX",
        "description": "from the launch link",
    },
}
_COMPONENT = "#/components/schemas/"


def describe(app: FastAPI, plain: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """To be put in the place of `app.openapi`."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _corrected(plain())
        return app.openapi_schema

    return openapi


def _corrected(schema: dict[str, Any]) -> dict[str, Any]:
    """With how one signs in, what an error looks like, what a stream is made of, and what is always there."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _SECURITY
    problem = TypeAdapter(Problem).json_schema(mode="serialization")
    components["schemas"] = dict(sorted({**components["schemas"], "Problem": problem}.items()))
    schema["security"] = [{name: []} for name in _SECURITY]
    for operations in schema["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                _correct_content(status, response.get("content", {}))
    sent = set(_used(_bodies(schema), components["schemas"]))
    for name, component in components["schemas"].items():
        _drop_titles(component)
        if name not in sent and name != "Problem":  # which leaves `errors` out where there are none
            _require_all(component)
    return schema


def _correct_content(status: str, content: dict[str, Any]) -> None:
    if status >= "400" and "application/json" in content:
        content["application/problem+json"] = content.pop("application/json")
    if "text/event-stream" in content and "application/json" in content:
        event = content.pop("application/json")["schema"]
        content["text/event-stream"] = {"schema": {"type": "string"}, "itemSchema": event}  # as OpenAPI 3.2


def _require_all(component: dict[str, Any]) -> None:
    """A value that we send has all its properties; a default only means that nobody had to give one. Only the
    codes of sentences are left out where there are none."""
    if component.get("properties"):
        component["required"] = [name for name in component["properties"] if name != "said"]


def _drop_titles(component: dict[str, Any]) -> None:
    """Those that only repeat a property's name."""
    for property in component.get("properties", {}).values():
        property.pop("title", None)


def _bodies(schema: dict[str, Any]) -> list[Any]:
    return [
        operation["requestBody"]
        for operations in schema["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]


def _used(part: object, components: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The components a part of the description refers to, and those that they refer to."""
    match part:
        case {"$ref": str(ref)}:
            name = ref.removeprefix(_COMPONENT)
            if name not in seen:
                yield name
                yield from _used(components[name], components, seen | {name})
        case dict():
            for inner in part.values():
                yield from _used(inner, components, seen)
        case list():
            for inner in part:
                yield from _used(inner, components, seen)
