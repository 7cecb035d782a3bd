"""Example requests that show what each tool is for, and the search for those nearest to a request."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.messages.parts import Arguments
from dragoman.messages.request import ToolSpec, example_of

CHAT = ""  # the tool of a request for which none is right

CHATS = (
    "Hello",
    "What is the capital of France?",
    "Thanks a lot!",
    "Tell me a story about a dragon",
    "What is your name?",
    "How does a bicycle work?",
    "Good morning, how do you do?",
    "Write a poem about spring",
    "Who was Mozart?",
    "Why do cats purr?",
    "Give me an idea for dinner",
    "What can you do?",
)


@dataclass(slots=True, frozen=True)
class ToolExample:
    """A request, the tool that is right for it, and how it is called."""

    request: str
    tool: str
    arguments: Arguments | None = None


def examples_of(tool: ToolSpec) -> list[ToolExample]:
    """A tool's examples that hold a request. One without any is shown by the first sentence about it."""
    examples = [example_of(one) for one in tool.examples]
    found = [ToolExample(one.request, tool.name, one.arguments) for one in examples if one.request]
    about = tool.description.partition(". ")[0].partition("\n")[0].strip(" .")
    return found or [ToolExample(about or tool.name.replace("_", " "), tool.name)]


def chats() -> list[ToolExample]:
    return [ToolExample(request, CHAT) for request in CHATS]


class Nearness:
    """How much a request is like each of some others: by words and pieces of words, the rare ones first.

    Numbers, paths and addresses count as what they are, not by what they say.
    """

    def __init__(self, known: Sequence[ToolExample]) -> None:
        self._known = known
        self._features = [_features(one.request) for one in known]
        self._often = Counter(feature for features in self._features for feature in features)

    def nearest(self, request: str, count: int) -> list[ToolExample]:
        """The nearest, the very nearest last: small models heed most what they read last."""
        asked = _features(request)
        order = sorted(range(len(self._known)), key=lambda at: self._like(asked, self._features[at]))
        return [self._known[at] for at in order[-count:]] if count else []

    def _like(self, one: set[str], other: set[str]) -> float:
        lengths = math.sqrt(self._weight(one) * self._weight(other))
        return self._weight(one & other) / lengths if lengths else 0.0

    def _weight(self, features: set[str]) -> float:
        return sum(math.log((len(self._known) + 1) / (self._often[one] + 0.5)) ** 2 for one in features)


def _features(text: str) -> set[str]:
    plain = re.sub(r"https?://\S+", " <url> ", text)
    plain = re.sub(r"[\w.-]+/[\w./-]*|\b[\w-]+\.[a-z]\w{0,4}\b", " <path> ", plain)
    plain = re.sub(r"\d+(\.\d+)?", " <number> ", plain).lower()
    words = re.findall(r"<\w+>|\w+|[^\w\s]", plain)
    pieces = {word[at : at + 4] for word in words if len(word) > 4 for at in range(len(word) - 3)}
    return {*words, *pieces}
