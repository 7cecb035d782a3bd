"""How often passwords may be tried: by one address, by all that guessed wrong, and by all that did not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.server.addresses import counted_address

_REMEMBERED = 10_000  # addresses and people of which wrong tries are remembered


@dataclass(slots=True, frozen=True)
class TryRate:
    """So many at once, then so many a second."""

    burst: float
    rate: float


ONE = TryRate(5, 1 / 5)  # one address, or one person
GUESSERS = TryRate(20, 5)  # all addresses that have guessed wrong, together
NEWCOMERS = TryRate(100, 20)  # all others together
LONGEST = 5.0  # seconds that a try waits for its turn; who would wait longer is sent away


class TooManyTries(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"wait {seconds:.0f} seconds")
        self.seconds = seconds


class Guesses:
    """Wrong tries cost; right ones cost nothing.

    Who guesses wrong is slowed, and shares what is left with others who do. So a person who comes from
    another address, or with a browser that has signed in before, gets in while somebody guesses.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ones: dict[str, _Bucket] = {}  # the longest unused first
        self._guessers = _Bucket(GUESSERS, clock())
        self._newcomers = _Bucket(NEWCOMERS, clock())

    def begin(self, address: str, known: str | None = None) -> Try:
        """A try. It may be looked at after `wait` seconds; TooManyTries where that is too long.

        `known` is who has signed in with this browser before: they have a count of their own, whatever others
        guess at the same address. It is the person's and not the browser's: nobody can collect browsers.
        """
        now = self._clock()
        who = f"person {known}" if known is not None else counted_address(address)
        one = self._ones.pop(who, None)
        slowed = one is not None and one.level(now) < ONE.burst
        one = one if one is not None and slowed else _Bucket(ONE, now)
        self._ones[who] = one
        while len(self._ones) > _REMEMBERED:
            del self._ones[next(iter(self._ones))]
        if (wait := one.wait(now)) > 0:
            raise TooManyTries(wait)
        shared = [] if known is not None else [self._guessers if slowed else self._newcomers]
        wait = max((bucket.wait(now) for bucket in shared), default=0.0)
        if wait > LONGEST:
            raise TooManyTries(wait)
        buckets = [one, *shared]
        for bucket in buckets:
            bucket.take(now)
        return Try(wait, tuple(buckets))


class Try:
    """One try that may be made."""

    def __init__(self, wait: float, buckets: tuple[_Bucket, ...]) -> None:
        self.wait = wait
        self._buckets = buckets

    def was_right(self) -> None:
        for bucket in self._buckets:
            bucket.give_back()


class _Bucket:
    """Tokens that come back with time. Below nought are those that are promised already."""

    def __init__(self, pace: TryRate, now: float) -> None:
        self._pace = pace
        self._level, self._at = pace.burst, now

    def level(self, now: float) -> float:
        grown = (now - self._at) * self._pace.rate
        self._level, self._at = min(self._pace.burst, self._level + max(0.0, grown)), now
        return self._level

    def wait(self, now: float) -> float:
        return max(0.0, (1 - self.level(now)) / self._pace.rate)

    def take(self, now: float) -> None:
        self._level = self.level(now) - 1

    def give_back(self) -> None:
        self._level = min(self._pace.burst, self._level + 1)
