"""List the models that `dragoman models get` offers, and how each would run on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic_core import from_json

from dragoman.providers.local.server import available_cores, can_serve

Fit: TypeAlias = Literal["gpu", "memory", "slow", "no"]
"""Where a model would run: on the GPU, in memory, in memory but slowly, or not at all."""

_WORKING = 1.5e9  # bytes in addition to the weights: the context, and working memory
_SHARE = 0.8  # of the memory: the system and other programs need the rest
_QUICK = 4.0  # billions of active parameters that any processor computes quickly enough
_SECONDS = 20.0


@dataclass(slots=True, frozen=True)
class ModelOffer:
    """A model with its published data."""

    model: str  # as `models get` takes it
    title: str
    maker: str
    size: float  # GB
    active: float
    license: str
    claim: str
    source: str


@dataclass(slots=True, frozen=True)
class Hardware:
    """The hardware for models: bytes of memory, cores, and the memory of GPUs as llama.cpp reports them."""

    memory: int
    cores: int
    gpus: tuple[tuple[str, int], ...] = ()

    def fit(self, size: float, active: float | None = None) -> Fit:
        """Return how a file of this size would run."""
        needed = size + _WORKING
        if self.gpus and needed <= sum(memory for _, memory in self.gpus):
            return "gpu"
        if needed > self.memory * _SHARE:
            return "no"
        return "slow" if active is not None and active > max(_QUICK, self.cores) else "memory"


def offers() -> tuple[str, list[ModelOffer]]:
    """Return the day on which the list was checked, and the models, from small to large."""
    data = tomllib.loads(Path(__file__).with_name("offers.toml").read_text(encoding="utf-8"))
    return data["checked"], [ModelOffer(**one) for one in data["offers"]]


def recommended(listed: Sequence[ModelOffer], machine: Hardware) -> ModelOffer | None:
    """Return the largest that runs well here."""
    good = [one for one in listed if machine.fit(one.size * 1e9, one.active) in ("gpu", "memory")]
    return good[-1] if good else None


_known: Hardware | None = None


async def this_machine() -> Hardware:
    """Ask llama.cpp once, in a child process, if it is installed: it would load drivers into this process."""
    global _known  # noqa: PLW0603 - one machine, one memory of it
    if _known is None:
        _known = await _ask_llama()
    return _known


async def _ask_llama() -> Hardware:
    cores, memory = available_cores(), _memory()
    if not can_serve():
        return Hardware(memory, cores)
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "dragoman.providers.local.child"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            answer, _ = await child.communicate(b'{"devices": true}\n')
        found = from_json(answer)["devices"]
        gpus = tuple((str(one["name"]), int(one["memory"])) for one in found)
    except (TimeoutError, ValueError, KeyError, TypeError):  # a driver that hangs counts as no GPU
        gpus = ()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return Hardware(memory, cores, gpus)


def _memory() -> int:
    """Return the bytes that this process can use, including a container's limit."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits, default=8 << 30)
