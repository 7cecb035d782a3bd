"""Routes to list what can answer: the agents by their names, and the models that are ready."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from dragoman.errors import NotFound
from dragoman.server.context import Context, Person, TheContext
from dragoman.server.protocols.openai.errors import OpenAIRoute
from dragoman.server.routes import models as every_model

router = APIRouter(route_class=OpenAIRoute, include_in_schema=False)


@router.get("/models")
async def list_models(context: TheContext, person: Person) -> dict[str, Any]:
    return {"object": "list", "data": await _all(context, person)}


@router.get("/models/{id:path}")
async def one_model(context: TheContext, person: Person, id: str) -> dict[str, Any]:
    for model in await _all(context, person):
        if model["id"] == id:
            return model
    raise NotFound("model", id)


async def _all(context: Context, person: str) -> list[dict[str, Any]]:
    agents = [_model(name, "dragoman") for name in context.runtime.services.agents]
    listed = await every_model.models(context, person)
    return agents + [_model(view.name, view.provider or "dragoman") for view in listed.items if view.ready]


def _model(id: str, owner: str) -> dict[str, Any]:
    return {"id": id, "object": "model", "created": 0, "owned_by": owner}
