"""A label for each tool that is a single token of the model, so that a choice is one token."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from dragoman.messages.request import ToolSpec
from dragoman.providers.local.examples import CHAT, examples_of

Tokenize: TypeAlias = Callable[[str], Awaitable[list[int]]]
SHORTEST = 3  # characters of a word that means something


@dataclass(slots=True, frozen=True)
class Label:
    word: str
    token: int


async def labels(tools: Sequence[ToolSpec], tokenize: Tokenize) -> dict[str, Label]:
    """A label for each tool by name, and for none of them. What their names share is no help."""
    lasts = [_parts(tool.name)[-1] for tool in tools]
    given = {CHAT: await _label("chat", tokenize) or Label("chat", -1)}
    taken = {given[CHAT].token}
    for tool in tools:
        shared = lasts.count(_parts(tool.name)[-1]) > 1
        for word in chain(_candidates(tool, shared), _letters()):
            label = await _label(word, tokenize)
            if label is not None and label.token not in taken:
                given[tool.name] = label
                taken.add(label.token)
                break
    return given


async def _label(word: str, tokenize: Tokenize) -> Label | None:
    found = await tokenize(f" {word}")
    return Label(word, found[0]) if len(found) == 1 else None


def _candidates(tool: ToolSpec, shared: bool) -> Iterator[str]:
    """The words that may stand for a tool, best first: of its name, then of its description."""
    first, *_, last = parts = [*_parts(tool.name)] * 2
    yield from (part for part in (first if shared else last, first, *parts) if len(part) >= SHORTEST)
    asked = {word for one in examples_of(tool) for word in _words(one.request)}
    about = [word for word in _words(tool.description) if len(word) >= SHORTEST]
    yield from (word for word in about if word in asked)
    yield from about


def _parts(name: str) -> list[str]:
    return _words(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("_", " ")) or [name]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def _letters() -> Iterator[str]:
    yield from "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    yield from map(str, range(100))
