"""Choose how many cases the large tests try: a sample, or all of them in a sweep.

`make test` takes the same broad sample each time, and skips tests marked `long`. `make sweep` sets SWEEP, and
takes everything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WHOLE = bool(os.environ.get("SWEEP"))
EXAMPLES = 500 if WHOLE else 30  # of a property, unless the test sets a number


def some(cases: Sequence[T], every: int, first: int = 0) -> list[T]:
    """Return every n-th case, starting with this one. In a sweep, return all cases."""
    return list(cases if WHOLE else cases[first % every :: every])


def examples(count: int, whole: int | None = None) -> int:
    """Return the number of examples for a slow property: `count`, or in a sweep ten times as many, or
    `whole`."""
    return (whole or count * 10) if WHOLE else count
