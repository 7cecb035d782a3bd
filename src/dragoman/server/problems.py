"""Answers errors with problem details (RFC 9457): a sentence to act on, and no path of the server."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import PydanticSerializationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from dragoman.errors import AlreadyAnswered, BadRequest, ConfigError, NotFound, TurnBusy, TurnEnded
from dragoman.messages.ids import new_id

log = logging.getLogger("dragoman.server")
_PATH = re.compile(r"(?<![\w/:.])(?:/[\w.@+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")


def problem(
    status: int, detail: str, *, headers: dict[str, str] | None = None, **more: object
) -> JSONResponse:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(
        {**body, **more}, status, media_type="application/problem+json", headers=headers or {}
    )


def install(app: FastAPI) -> None:
    """What is raised in a route becomes a problem."""
    app.add_exception_handler(BadRequest, _refused)
    app.add_exception_handler(ConfigError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(UnicodeEncodeError, _lone_surrogate)
    app.add_exception_handler(PydanticSerializationError, _lone_surrogate)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: BadRequest | ConfigError) -> int:
    match error:
        case NotFound():
            return 404
        case TurnBusy() | TurnEnded() | AlreadyAnswered():
            return 409
        case _:
            return 422


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest | ConfigError)
    return problem(status_of(error), without_paths(str(error)))


def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [
        {"at": ".".join(str(step) for step in fault["loc"]), "what": fault["msg"]} for fault in error.errors()
    ]
    first = f"{faults[0]['at']}: {faults[0]['what']}" if faults else "the request cannot be read"
    return problem(422, first, errors=faults)


def _lone_surrogate(request: Request, error: Exception) -> Response:
    return problem(422, "a text holds half a character (a lone surrogate), which cannot be stored")


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))


def _unexpected(request: Request, error: Exception) -> Response:
    """The reason goes into the server's log, under a number that the client is told."""
    number = new_id("err")
    log.error("%s: %s %s", number, request.method, request.url.path, exc_info=error)
    return problem(500, f"something went wrong here that should not. The server's log has it as {number}.")


def without_paths(text: str) -> str:
    """Files of the server by their names alone."""
    return _PATH.sub(lambda found: Path(found.group().rstrip("/")).name, text)
