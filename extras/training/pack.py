"""Pack conversations for training: several that begin with the same tools share them, and are processed once.

A pack has a fixed length. Each token has its position in its own conversation, and the number of its part:
the system message that several conversations begin with, or one of these.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training.generate import Piece, conversations
from training.tokenizer import load_tokenizer

PER_JOB = 32  # packs that a worker makes at a time
MOST_PARTS = 64  # a system message and its conversations: their parts are numbered from a multiple of this

SMALLEST = 120  # tokens that must be left for conversations after a system message
ROOMY = 700  # tokens in which another system message fits

_Pieces: TypeAlias = list[tuple[list[int], bool]]
_worker: dict[str, Tokenizer] = {}


class Job(NamedTuple):
    base: str
    seed: int
    packs: int
    longest: int
    public: str = (
        ""  # a file that `public.py` generated, and the share of conversations about its tools
    )
    part: float = 0.0


@dataclass(slots=True, frozen=True)
class Packed:
    """Tokens, which of them are learned, their positions, and their parts."""

    ids: NDArray[np.int32]
    learnt: NDArray[np.bool_]
    positions: NDArray[np.int16]
    parts: NDArray[np.int16]


@dataclass(slots=True)
class _Pack:
    """A pack that is being filled."""

    ids: list[int] = field(default_factory=list)
    learnt: list[bool] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)

    def add(self, pieces: _Pieces, begin: int, part: int) -> None:
        for ids, learnt in pieces:
            self.ids += ids
            self.learnt += [learnt] * len(ids)
            self.positions += range(begin, begin + len(ids))
            self.parts += [part] * len(ids)
            begin += len(ids)

    def add_group(self, head: _Pieces, others: Iterator[_Pieces], wanted: int, longest: int) -> None:
        """A system message with so many conversations, or more where nothing else would fit after them."""
        group = self.parts[-1] // MOST_PARTS + 1 if self.parts else 0
        size = _size(head)
        self.add(head, 0, group * MOST_PARTS)
        for at, pieces in enumerate(islice(others, MOST_PARTS - 1), 1):
            room = longest - len(self.ids)
            if _size(pieces) > room or (at > wanted and room > ROOMY):
                break
            self.add(pieces, size, group * MOST_PARTS + at)

    def finished(self, longest: int) -> Packed:
        rest = longest - len(self.ids)
        # the empty rest is a separate part
        last = (self.parts[-1] // MOST_PARTS + 1) * MOST_PARTS if self.parts else 0
        return Packed(
            np.array(self.ids + [0] * rest, dtype=np.int32),
            np.array(self.learnt + [False] * rest, dtype=np.bool_),
            np.array(self.positions + [0] * rest, dtype=np.int16),
            np.array(self.parts + [last] * rest, dtype=np.int16),
        )


def make_packs(job: Job) -> list[Packed]:
    """In a worker: packs of one seed."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if job.base not in _worker:
        _worker[job.base] = load_tokenizer(Path(job.base))
    tokenizer, chance = _worker[job.base], random.Random(job.seed)
    packs: list[Packed] = []
    pack = _Pack()
    while len(packs) < job.packs:
        first, others = conversations(chance, public=job.public, part=job.part)
        head = encode(tokenizer, [first])
        if _size(head) + SMALLEST > job.longest:
            continue  # so many tools leave no room
        if len(pack.ids) + _size(head) + SMALLEST > job.longest:
            packs.append(pack.finished(job.longest))
            pack = _Pack()
        wanted = chance.randint(3, 8)
        texts = (encode(tokenizer, pieces) for pieces in others)
        pack.add_group(head, texts, wanted, job.longest)
    return packs


def encode(tokenizer: Tokenizer, pieces: list[Piece]) -> _Pieces:
    encoded = tokenizer.encode_batch([piece.text for piece in pieces], add_special_tokens=False)
    return [(one.ids, piece.learnt) for piece, one in zip(pieces, encoded, strict=True)]


def _size(pieces: _Pieces) -> int:
    return sum(len(ids) for ids, _ in pieces)
