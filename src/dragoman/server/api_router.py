"""What all routes of the API have in common: where they are, and how they refuse."""

from __future__ import annotations

from fastapi import APIRouter

# By its name: with a model, FastAPI would build a validator of it for every route.
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_REFUSALS: dict[int | str, dict[str, object]] = {
    status: {"description": meaning, "content": _PROBLEM}
    for status, meaning in (
        (400, "The body cannot be read"),
        (401, "Nobody has signed in"),
        (403, "Another page asked"),
        (404, "There is no such thing, or it is somebody else's"),
        (409, "Somebody was faster, or the turn is busy or over, or cannot go on here"),
        (413, "Too much"),
        (415, "No JSON"),
        (421, "Not a name of this server"),
        (422, "It cannot be done as asked, or cannot be read; `detail` says why"),
        (503, "The store cannot be used now; `detail` says why, and `Retry-After` when to try again"),
    )
}


def api_router(tag: str, below: str = "") -> APIRouter:
    """The routes of one noun."""
    return APIRouter(prefix=f"/api{below}", tags=[tag], responses=_REFUSALS)
