"""Asks stored turns again, as `dragoman eval run --turn` does."""

from __future__ import annotations

from typing import Any

from dragoman import Runtime
from dragoman.evaluation import CaseRun, case_of_turn, run


async def asked_again(runtime: Runtime, turn: str, model: str, **more: Any) -> CaseRun:
    """The answer of this model to a case of this turn."""
    case = await case_of_turn(runtime, turn)
    (answer,) = (await run([case], models=[model], like=runtime, **more)).runs
    return answer
