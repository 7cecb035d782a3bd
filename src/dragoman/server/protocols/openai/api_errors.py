"""Format errors as OpenAI does: an object with message, type, param and code, and a fitting HTTP status."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import PydanticSerializationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import (
    AlreadyAnswered,
    DragomanError,
    Forbidden,
    KeyReused,
    NotFound,
    ProviderError,
    StoreUnavailable,
    TurnBusy,
    TurnEnded,
    TurnQuarantined,
)
from dragoman.messages.ids import new_id
from dragoman.server.problems import detail_of, without_paths

log = logging.getLogger("dragoman.server")

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_CODES = {401: "invalid_api_key", 404: "not_found", 413: "request_too_large", 429: "rate_limit_exceeded"}
_SOON, _LATER = "1", "30"  # seconds until the client may retry
# By default, the SDKs retry requests that failed with 409, 429 or 5xx.
NEVER_AGAIN = {"x-should-retry": "false"}


class ApiRefusal(Exception):
    """A request that cannot be fulfilled. `param` names the invalid field."""

    def __init__(
        self, message: str, param: str | None = None, *, status: int = 400, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.status = status
        self.code = code


def not_offered(param: str, what: str) -> ApiRefusal:
    return ApiRefusal(what, param, code="unsupported_parameter")


def error_body(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": param, "code": code or _CODES.get(status)}


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON. A lone surrogate, which a model or a user can have sent, is replaced."""
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(data, status, headers or {}, media_type="application/json")


def error_response(
    status: int,
    message: str,
    param: str | None = None,
    *,
    code: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    return json_response({"error": error_body(status, message, param, code)}, status, headers)


def response_to(error: DragomanError) -> Response:
    """Return the response for an expected error."""
    detail = without_paths(str(error))
    match error:
        case NotFound(noun="model" | "agent"):
            return error_response(404, detail, "model", code="model_not_found")
        case NotFound():
            return error_response(404, detail)
        case Forbidden():
            return error_response(403, detail, headers=NEVER_AGAIN)
        case KeyReused():
            return error_response(422, detail, code="idempotency_key_reused", headers=NEVER_AGAIN)
        case TurnBusy():
            return error_response(409, detail, code="turn_busy", headers={"retry-after": _SOON})
        case TurnEnded() | AlreadyAnswered() | TurnQuarantined():
            return error_response(409, detail, headers=NEVER_AGAIN)
        case StoreUnavailable(retryable=retryable):
            again = _SOON if retryable else _LATER
            return error_response(503, detail, code="unavailable", headers={"retry-after": again})
        case ProviderError():
            return error_response(502, detail, code=error.kind, headers=NEVER_AGAIN)
        case _:
            return error_response(400, detail)


class OpenAIRoute(APIRoute):
    """A route that formats all of its errors as OpenAI does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await _answered(handle, request)

        return handled


async def _answered(handle: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    try:
        return await handle(request)
    except ApiRefusal as error:
        return error_response(error.status, error.message, error.param, code=error.code)
    except RequestValidationError as error:
        return _malformed(error)
    except (UnicodeEncodeError, PydanticSerializationError):
        return error_response(400, "A string has a lone surrogate, which Dragoman cannot store.")
    except HTTPException as error:
        return error_response(error.status_code, detail_of(error), headers=dict(error.headers or {}))
    except DragomanError as error:
        return response_to(error)
    except Exception as error:
        number = new_id("err")
        log.error("%s: %s %s", number, request.method, request.url.path, exc_info=error)
        message = f"something went wrong here that should not. The server's log has it as {number}."
        return error_response(500, message, headers=NEVER_AGAIN)


def _malformed(error: RequestValidationError) -> Response:
    """Return the deepest error. If a field accepts a string or a list, this is the error for the kind that
    was sent."""
    faults = error.errors() or [{"loc": (), "msg": "it cannot be read", "type": ""}]
    steps, fault = max(((_steps(fault, error.body), fault) for fault in faults), key=lambda one: len(one[0]))
    param = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    if fault["type"] == "extra_forbidden":
        unknown = f"unrecognized request argument supplied: {param}"
        return error_response(400, unknown, param, code="unknown_parameter")
    missing, where = fault["type"] == "missing", param or "the body"
    message = f"you must provide {where}" if missing else f"invalid value for {where}: {fault['msg']}"
    code = "missing_required_parameter" if missing else "invalid_value"
    return error_response(400, message, param or None, code=code)


def _steps(fault: Mapping[str, Any], body: Any) -> list[str | int]:
    """Return the place of an error as SDK users write it, such as `messages[0].content`. Validation also
    names the types that it tried on the way."""
    source, *steps = fault["loc"] or ("body",)
    if source != "body":
        return steps
    found: list[str | int] = []
    for step in steps:
        if (isinstance(body, dict) and step in body) or (isinstance(body, list) and isinstance(step, int)):
            found.append(step)
            body = body[step]
    return [*found, steps[-1]] if steps and fault["type"] == "missing" else found
