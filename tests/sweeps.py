"""How much the tests that try many cases work through: a sample, unless the whole is asked for.

`make test` takes the same broad sample each time; `make sweep` sets SWEEP, and takes everything.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WHOLE = bool(os.environ.get("SWEEP"))
EXAMPLES = 500 if WHOLE else 30  # of a property, where the test does not say


def some(cases: Sequence[T], every: int) -> list[T]:
    """One in so many of them, from the first on; all of them in a sweep."""
    return list(cases if WHOLE else cases[::every])


def examples(count: int) -> int:
    """For a property that takes long: so many examples of it, and ten times as many in a sweep."""
    return count * 10 if WHOLE else count
