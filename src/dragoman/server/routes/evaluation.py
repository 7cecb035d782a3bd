"""Define routes to rate answers, and to read the reports of evaluations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import Depends
from fastapi import Path as InPath
from starlette.exceptions import HTTPException

from dragoman.background import in_thread
from dragoman.conversation.sharing import Right
from dragoman.conversation.tree import LOCAL
from dragoman.errors import NotFound
from dragoman.evaluation.case import FOLDER, RUNS
from dragoman.evaluation.report import Report, find_report, reports_in
from dragoman.sentences import sentence
from dragoman.server import bodies, shapes
from dragoman.server.context import TheContext, api_router
from dragoman.store.store import Rating

router = api_router("evaluation")
T = TypeVar("T")
ReportName = Annotated[str, InPath(pattern=r"^[^/\\.][^/\\]{0,99}$", examples=["20261118-090000"])]


@router.put("/turns/{id}/rating")
async def rate(context: TheContext, id: str, body: bodies.NewRating) -> shapes.RatingView:
    """Rate an answer. `dragoman eval add --rated bad` turns bad ones into cases."""
    await context.turn(id, Right.READ)
    now = context.runtime.services.clock()
    await context.runtime.store.rate(Rating(id, context.person, body.value, body.note, now))
    return shapes.RatingView(id, body.value, body.note)


@router.delete("/turns/{id}/rating", status_code=204)
async def remove_rating(context: TheContext, id: str) -> None:
    """Remove your rating."""
    await context.turn(id, Right.READ)
    await context.runtime.store.remove_rating(id, context.person)


@router.get("/conversations/{id}/ratings")
async def ratings(context: TheContext, id: str) -> list[shapes.RatingView]:
    """Return your ratings of the answers of a conversation."""
    await context.check(id, Right.READ)
    found = await context.runtime.store.ratings(id)
    return [shapes.RatingView(one.turn, one.value, one.note) for one in found if one.user == context.person]


# ── reports ───────────────────────────────────────────────────────────────────────────────────────


def _runs_of(context: TheContext) -> Path:
    """Return the folder with the workspace's runs. Only the admin can read it, because cases contain
    conversations of all users. Raises HTTPException 403 otherwise."""
    if context.person != LOCAL:
        raise HTTPException(403, sentence("evaluation.not_yours"))
    workspace = context.runtime.services.workspaces.main
    return (workspace.folder if workspace is not None else Path()) / FOLDER / RUNS


Runs = Annotated[Path, Depends(_runs_of)]


async def _read(work: Callable[[], T]) -> T:
    """Run in a thread: reports can be long, and other requests must not wait for them."""
    return await in_thread(work)


def _lines(folder: Path) -> list[shapes.EvaluationLine]:
    return [
        shapes.EvaluationLine(file.stem, file.stat().st_mtime, file.stat().st_size)
        for file in reversed(reports_in(folder))
    ]


def _load(folder: Path, name: str) -> Report:
    try:
        return Report.load(find_report(folder, name))
    except NotFound:
        raise NotFound("report", name) from None


@router.get("/evaluations")
async def evaluations(runs: Runs) -> list[shapes.EvaluationLine]:
    """List the runs in the workspace folder `evals`, latest first. Admin only."""
    return await _read(partial(_lines, runs))


@router.get("/evaluations/{name}")
async def evaluation(runs: Runs, name: ReportName) -> shapes.EvaluationView:
    """Return the passes of each case and variant, and what improved or worsened compared with the
    recording."""
    return await _read(lambda: shapes.EvaluationView.of(_load(runs, name)))


@router.get("/evaluations/{name}/cases/{case:path}")
async def evaluated_case(runs: Runs, name: ReportName, case: str) -> shapes.EvaluatedCase:
    """Return one case in full: the recorded answer and all others."""

    def read() -> shapes.EvaluatedCase:
        report = _load(runs, name)
        if case not in {one.id for one in report.cases}:
            raise NotFound("case", case)
        return shapes.EvaluatedCase.of(report, case)

    return await _read(read)
