"""How much the tests that try many cases work through: a sample, unless the whole is asked for.

`make test` takes the same broad sample each time, and skips what is marked `long`; `make sweep` sets SWEEP,
and takes everything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WHOLE = bool(os.environ.get("SWEEP"))
EXAMPLES = 500 if WHOLE else 30  # of a property, where the test does not say


def some(cases: Sequence[T], every: int, first: int = 0) -> list[T]:
    """One in so many of them, from this one on; all of them in a sweep."""
    return list(cases if WHOLE else cases[first % every :: every])


def examples(count: int, whole: int | None = None) -> int:
    """For a property that takes long: so many examples of it; in a sweep, ten times as many, or `whole`."""
    return (whole or count * 10) if WHOLE else count
