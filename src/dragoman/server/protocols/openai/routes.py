"""Collect the routes of OpenAI's API: models, answers, files, and an error for unknown paths."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from dragoman.errors import NotFound
from dragoman.server.context import Context, TheContext
from dragoman.server.protocols.openai import chat, conversation_items, files, responses
from dragoman.server.protocols.openai.api_errors import OpenAIRoute, error_response
from dragoman.server.routes.models import models

models_router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)


@models_router.get("/models")
async def list_models(context: TheContext) -> dict[str, Any]:
    return {"object": "list", "data": await _all(context)}


@models_router.get("/models/{id:path}")
async def one_model(context: TheContext, id: str) -> dict[str, Any]:
    for model in await _all(context):
        if model["id"] == id:
            return model
    raise NotFound("model", id)


async def _all(context: Context) -> list[dict[str, Any]]:
    agents = [_model(name, "dragoman") for name in (await context.services()).agents]
    listed = await models(context)
    return agents + [_model(view.name, view.provider or "dragoman") for view in listed.items if view.ready]


def _model(id: str, owner: str) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": 0, "owned_by": owner}


PREFIX = "/v1"

router = APIRouter(prefix=PREFIX, include_in_schema=False)
for answers in (chat.router, models_router, responses.router, conversation_items.router, files.router):
    router.include_router(answers)

rest = APIRouter(prefix=PREFIX, route_class=OpenAIRoute, include_in_schema=False)


@rest.api_route("/{path:path}", methods=["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def unknown(request: Request, path: str) -> Response:
    return error_response(
        404, f"unknown request URL: {request.method} {request.url.path}", code="unknown_url"
    )


router.routes.extend(rest.routes)  # after all other routes
