"""Loads YAML that others wrote: of bounded size and depth, and without aliases, which have no bounds."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sentences import sentence

LARGEST = 16_000  # characters
DEEPEST = 10
MOST_NODES = 2_000
MOST_BRACKETS = 200  # the scanner takes the square of their number to see that they are not closed
_LONG_NUMBER = re.compile(r"[-+]?[0-9a-fA-Fox_:.]{30,}")  # 1:1:1:… counts by sixties, and has no end either


def load_yaml(text: str) -> Any:
    """The value of the text. ValueError begins with a verb: "is no YAML: …", "uses an alias …"."""
    import yaml

    if len(text) > LARGEST:
        raise ValueError(sentence("yaml.too_long", most=LARGEST))
    if sum(map(text.count, "[{")) > MOST_BRACKETS:
        raise ValueError(f"is nested too deeply: more than {MOST_BRACKETS} brackets")
    try:
        fault = _find_fault(text)
        value = None if fault else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a month 99 is a ValueError
        raise ValueError(f"is no YAML: {' '.join(str(error).split())}") from error
    if fault:
        raise ValueError(fault)
    return value


def _find_fault(text: str) -> str | None:
    """What is refused, found before anything is built of the text: nothing has grown yet."""
    import yaml

    depth = nodes = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            return f"uses an alias (& or *) in line {line}: write the value out"
        if getattr(event, "tag", None) is not None:
            return f"uses a tag (!) in line {line}: write the value without it"
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
            return f"has too long a number in line {line}"
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST:
            return f"is nested too deeply: more than {DEEPEST} levels"
        if nodes > MOST_NODES:
            return f"has too many values: more than {MOST_NODES}"
    return None
