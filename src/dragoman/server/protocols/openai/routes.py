"""All routes of OpenAI's API, and the answer to what is none of them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from dragoman.server.protocols.openai import chat, models, responses
from dragoman.server.protocols.openai.errors import OpenAIRoute, error_response

PREFIX = "/v1"

router = APIRouter(prefix=PREFIX, include_in_schema=False)
for noun in (chat, models, responses):
    router.include_router(noun.router)

rest = APIRouter(prefix=PREFIX, route_class=OpenAIRoute, include_in_schema=False)


@rest.api_route("/{path:path}", methods=["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def unknown(request: Request, path: str) -> Response:
    return error_response(
        404, f"unknown request URL: {request.method} {request.url.path}", code="unknown_url"
    )


router.routes.extend(rest.routes)  # behind all others
