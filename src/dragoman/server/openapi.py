"""Completes FastAPI's description of the API: how one signs in, and what an error looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "a key, or the token of the launch link"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "dragoman_XXXXXXXX",
        "description": "from the launch link",
    },
}


def complete_openapi(app: FastAPI, plain: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """To be put in the place of `app.openapi`."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(plain())
        return app.openapi_schema

    return openapi


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    schema.setdefault("components", {})["securitySchemes"] = _SECURITY
    schema["security"] = [{name: []} for name in _SECURITY]
    for operations in schema["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                content = response.get("content", {})
                if status >= "400" and "application/json" in content:
                    content["application/problem+json"] = content.pop("application/json")
    return schema
