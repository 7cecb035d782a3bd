"""Answer errors with problem details (RFC 9457): a sentence to act on, without paths of the server."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import PydanticSerializationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from dragoman.errors import (
    AlreadyAnswered,
    BadRequest,
    ConfigError,
    DragomanError,
    Forbidden,
    NotFound,
    RevertConflict,
    StoreUnavailable,
    TurnBusy,
    TurnEnded,
    TurnQuarantined,
    Unreadable,
)
from dragoman.messages.ids import new_id
from dragoman.redaction import redact_text
from dragoman.sentences import Sentence, said_of, sentence

log = logging.getLogger("dragoman.server")
SHARED = "/api/shared/"  # path prefix of shared links, followed by their token
_PATH = re.compile(r"(?<![\w/:.])(?:/[\w.@+-]+){2,}/?|[A-Za-z]:\\[^\s'\"]+")
# Retry after this many seconds, if the store was busy or needs repair.
_SOON, _LATER = 1, 30


def problem(
    status: int, detail: str, *, headers: dict[str, str] | None = None, **more: object
) -> JSONResponse:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    body |= said_of(detail)
    return JSONResponse(
        {**body, **more}, status, media_type="application/problem+json", headers=headers or {}
    )


def path_for_logs(request: Request) -> str:
    """Return the path without a link's token: readers of a log must not gain access by it."""
    before, shared, _ = request.url.path.partition(SHARED)
    return f"{before}{shared}…" if shared else before


def install(app: FastAPI) -> None:
    """Turn exceptions of routes into problem details."""
    for kind in (BadRequest, ConfigError, Unreadable, StoreUnavailable, TurnQuarantined):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(UnicodeEncodeError, _lone_surrogate)
    app.add_exception_handler(PydanticSerializationError, _lone_surrogate)
    app.add_exception_handler(Exception, _unexpected)


def problem_of(error: DragomanError) -> JSONResponse:
    """Return the response for an expected error."""
    detail = without_paths(str(error))
    match error:
        case NotFound():
            return problem(404, detail)
        case Forbidden():
            return problem(403, detail)
        case RevertConflict(conflicts=conflicts):
            listed = [{"path": path, "why": why} for path, why in conflicts]
            return problem(409, detail, conflicts=listed)
        case TurnBusy() | TurnEnded() | AlreadyAnswered():
            return problem(409, detail)
        case TurnQuarantined():
            return problem(409, sentence("turn.quarantined_ways", detail=detail))
        case Unreadable(noun="conversation", id=id):
            ways = {"export": f"/api/conversations/{id}/raw", "delete": f"/api/conversations/{id}"}
            return problem(422, sentence("store.unreadable_ways", detail=detail), ways=ways)
        case Unreadable():
            return problem(422, sentence("store.unreadable_part", detail=detail))
        case StoreUnavailable(retryable=retryable):
            headers = {"retry-after": str(_SOON if retryable else _LATER)}
            return problem(503, detail, headers=headers, hint=without_paths(error.hint))
        case _:
            return problem(422, detail)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DragomanError)
    if isinstance(error, StoreUnavailable | Unreadable):
        log.warning("%s %s: %s", request.method, path_for_logs(request), error)
    return problem_of(error)


def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [
        {"at": ".".join(str(step) for step in fault["loc"]), "what": fault["msg"]} for fault in error.errors()
    ]
    first = (
        sentence("request.wrong", at=faults[0]["at"], what=faults[0]["what"])
        if faults
        else sentence("request.unreadable")
    )
    return problem(422, first, errors=faults)


def _lone_surrogate(request: Request, error: Exception) -> Response:
    return problem(422, sentence("request.half_character"))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, detail_of(error), headers=dict(error.headers or {}))


def detail_of(error: HTTPException) -> str:
    """Return the error text. FastAPI only reports that a body cannot be read, so the cause replaces
    its text."""
    match error.__cause__:
        case UnicodeDecodeError():
            return sentence("request.no_utf8")
        case RecursionError():
            return sentence("request.too_deep")
        case _:
            return str(error.detail)


def _left(request: Request, error: Exception) -> Response:
    """Return a response that the client does not see, because it disconnected during an upload."""
    return problem(400, sentence("request.broke_off"))


def _unexpected(request: Request, error: Exception) -> Response:
    """Log the error under a number, and return a problem with that number."""
    number = new_id("err")
    log.error("%s: %s %s", number, request.method, path_for_logs(request), exc_info=error)
    return problem(500, sentence("request.failed", number=number))


def without_paths(text: str) -> str:
    """Return the text with file names instead of paths, and without passwords and keys."""
    if isinstance(text, Sentence):
        return text.mapped(without_paths)
    text = redact_text(text)
    return _PATH.sub(lambda found: Path(found.group().rstrip("/")).name, text)
