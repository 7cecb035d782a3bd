"""Simulate how many workers a load needs, how long turns wait, and the effect of limits per user: a seeded
simulation of the queue, checked against the formula if one exists. `--write FILE` replaces its tables in
the docs.

It models the queue: the oldest turn takes a slot. A turn that meets a limit is retried a second later,
after those that arrived meanwhile.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodes import replace_part

SEED = 7
RUNS = 16
TURNS = 40_000  # of which the first tenth does not count: it starts with an empty system
MEAN = 20.0  # seconds that a turn runs: mostly the model's
AGAIN = 1.0  # seconds until a turn that met a limit is retried
_BEGIN, _END = "<!-- simulation: written by benchmarks/simulate.py -->", "<!-- end of simulation -->"

Service = Callable[[random.Random], float]


def exponential(chance: random.Random) -> float:
    return chance.expovariate(1 / MEAN)


def lognormal(chance: random.Random) -> float:
    """Most turns are short, and some take many minutes: the same mean, a deviation of twice that."""
    sigma = math.sqrt(math.log(1 + 2**2))
    return chance.lognormvariate(math.log(MEAN) - sigma**2 / 2, sigma)


@dataclass(slots=True, frozen=True)
class Turn:
    """A turn that has arrived."""

    at: float
    person: str
    seconds: float


def arrivals(rate: float, turns: int, service: Service, chance: random.Random) -> list[Turn]:
    """Arrivals of users who act independently."""
    at, found = 0.0, []
    for number in range(turns):
        at += chance.expovariate(rate)
        found.append(Turn(at, f"person {number % 5000}", service(chance)))
    return found


def waits(turns: list[Turn], places: int, limit: int | None = None) -> list[tuple[Turn, float]]:
    """Return how long each turn waits for its slot."""
    coming = [(turn.at, number, turn) for number, turn in enumerate(turns)]
    heapq.heapify(coming)
    ending: list[tuple[float, str]] = []
    waiting: deque[Turn] = deque()
    running: Counter[str] = Counter()
    found: list[tuple[Turn, float]] = []
    tries = len(turns)
    while coming or waiting:
        if coming and (not ending or coming[0][0] <= ending[0][0]):
            now, _, turn = heapq.heappop(coming)
            waiting.append(turn)
        else:
            now, person = heapq.heappop(ending)
            running[person] -= 1
        while waiting and len(ending) < places:
            turn = waiting.popleft()
            if limit is not None and running[turn.person] >= limit:
                tries += 1
                heapq.heappush(coming, (now + AGAIN, tries, turn))
                continue
            running[turn.person] += 1
            heapq.heappush(ending, (now + turn.seconds, turn.person))
            found.append((turn, now - turn.at))
    return found


def erlang_c(rate: float, places: int) -> float:
    """Return the mean wait by the formula, for exponential service times without limits."""
    load, blocked = rate * MEAN, 1.0
    for n in range(1, places + 1):  # Erlang B, by its recursion: the sums themselves overflow
        blocked = load * blocked / (n + load * blocked)
    delayed = blocked / (1 - load / places * (1 - blocked))
    return delayed * MEAN / (places - load)


def _mean(found: list[float]) -> float:
    return sum(found) / len(found)


def _quantile(found: list[float], part: float) -> float:
    return sorted(found)[int(len(found) * part)]


def _many(rate: float, places: int, service: Service) -> list[float]:
    """Average several runs, because a nearly full system is affected by a busy hour for long."""
    found: list[float] = []
    for run in range(RUNS):
        turns = arrivals(rate, TURNS, service, random.Random(SEED + run))
        found += [wait for turn, wait in waits(turns, places) if turn.at > turns[TURNS // 10].at]
    return found


def sizes() -> str:
    """Return the slots for a rate of arrivals, at several loads."""
    lines = [
        "| turns/s | slots | busy | wait by formula | simulated | if turns vary more | its p99 |",
        "|---|---|---|---|---|---|---|",
    ]
    for rate, busy in ((1.6, 0.95), (1.6, 0.8), (16.0, 0.95), (16.0, 0.8)):
        places = math.ceil(rate * MEAN / busy)
        found = [_many(rate, places, service) for service in (exponential, lognormal)]
        lines.append(
            f"| {rate:g} | {places:,} | {rate * MEAN / places:.0%} | {erlang_c(rate, places):.2f} s "
            f"| {_mean(found[0]):.2f} s | {_mean(found[1]):.2f} s | {_quantile(found[1], 0.99):.1f} s |"
        )
    return "\n".join(lines)


def limits() -> str:
    """One user's program sends very many turns at the same time, while others chat as usual."""
    lines = [
        "| per_person | wait of others, mean | p99 | wait of the user with the script, mean |",
        "|---|---|---|---|",
    ]
    for limit in (None, 32, 8, 4):
        chance = random.Random(SEED)
        people = arrivals(1.6, 4000, lognormal, chance)
        program = [Turn(600.0, "program", lognormal(chance)) for _ in range(400)]
        found = waits(sorted([*people, *program], key=lambda turn: turn.at), 48, limit)
        during = [wait for turn, wait in found if turn.person != "program" and 600 <= turn.at < 1200]
        own = [wait for turn, wait in found if turn.person == "program"]
        lines.append(
            f"| {limit or 'none'} | {_mean(during):.1f} s | {_quantile(during, 0.99):.0f} s "
            f"| {_mean(own):,.0f} s |"
        )
    return "\n".join(lines)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    words.add_argument("--write", type=Path, help="a file with tables of these")
    wanted = words.parse_args()
    text = (
        f"Turns take {MEAN:g} seconds on average and arrive at random:\n\n{sizes()}\n\n"
        "With 48 slots and 1.6 turns per second, one user sends 400 turns at "
        "the same time. In the ten minutes "
        f"after that, the others wait:\n\n{limits()}"
    )
    print(text)
    if wanted.write is not None:
        replace_part(wanted.write, _BEGIN, text, _END)


if __name__ == "__main__":
    main()
