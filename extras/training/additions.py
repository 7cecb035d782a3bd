"""Add to the content of requests: optional parameters by their names, and very short orders.

Real tools have more optional parameters than phrases can be written for. Users mostly mention them by the
parameter's name and a value: ", limit 5", "with symbols", "format: csv". Each is an argument of one call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from training.scene import Scene, Value
from training.values import make_value

if TYPE_CHECKING:
    from training.tools import Offered, Parameter

_NEVER = frozenset(
    (
        *("quoted", "text", "code", "lines", "address", "point", "range"),
        *("list", "longpath", "url", "key"),
    )
)
_JOINTS = {
    "en": (
        *(", {} {}", ", {} {}", " with {} {}", ", {}: {}", " and {} {}"),
        *(", {} = {}", ", {} should be {}", " ({} {})"),
    ),
    "de": (", {} {}", " mit {} {}", ", {}: {}", " und {} {}"),
    "zh": ("，{}{}", "，{}：{}", "，{}是{}"),
}
_YES = {
    "en": (", {}", " with {}", ", {}: yes", ", {} please"),
    "de": (" mit {}", ", {}: ja"),
    "zh": ("，{}：是", "，要{}"),
}
_NO = {
    "en": (" without {}", ", no {}", ", {}: no", ", not {}"),
    "de": (" ohne {}", ", {}: nein"),
    "zh": ("，不要{}", "，{}：否"),
}
_NAMELESS = re.compile(r"^(?:arg|p)\d+$")


def with_more(scene: Scene, tool: Offered, request: str, values: dict[str, Value]) -> str:
    """Return the request with one or two more of the tool's optional parameters, with their values."""
    assert tool.idea is not None
    left = [one for one in tool.idea.parameters if _can_be_added(one, tool, values)]
    if not left:
        return request
    text, ending = request.rstrip("?？.!。"), "?" if request.endswith("?") else ""
    for parameter in scene.chance.sample(left, min(len(left), scene.chance.choice([1, 1, 1, 2]))):
        first = parameter.names[0]
        label = _label(scene, tool, first)
        if not label:
            continue
        value = make_value(scene, parameter.kind, tool.abouts[first])
        if any(value.written == other.written for other in values.values()) and parameter.kind != "bool":
            continue
        if parameter.kind == "bool":
            said = scene.pick((_YES if value.written else _NO)[scene.language]).format(label)
        else:
            said = scene.pick(_JOINTS[scene.language]).format(label, value.spoken)
        values[first] = value
        text += said
    return text + (ending if scene.maybe(0.5) else "")


def telegram(scene: Scene, tool: Offered) -> tuple[str, dict[str, Value]] | None:
    """Return a few words: the tool's name, and the values one after the other."""
    assert tool.idea is not None
    head = re.sub(r"[_.-]+", " ", scene.pick(tool.idea.names)).strip()
    values: dict[str, Value] = {}
    said: list[str] = []
    for parameter in tool.idea.parameters:
        first = parameter.names[0]
        if not parameter.required and (scene.maybe(0.6) or not _can_be_added(parameter, tool, values)):
            continue
        value = make_value(scene, parameter.kind, tool.abouts.get(first, ""))
        label = _label(scene, tool, first)
        if parameter.kind == "bool":
            if not label:
                return None
            said.append(label if value.written else f"no {label}")
        else:
            named = label and (not parameter.required or scene.maybe(0.35))
            said.append(f"{label} {value.spoken}" if named else value.spoken)
        values[first] = value
    if not said or any(one[-1:] == "\n" or "\n" in one for one in said):
        return None
    joint = scene.pick([", ", ", ", " ", "; "])
    return f"{head}{scene.pick([': ', ' ', ' - ', ', '])}{joint.join(said)}", values


def _can_be_added(parameter: Parameter, tool: Offered, values: dict[str, Value]) -> bool:
    first = parameter.names[0]
    known = first in tool.called and first not in values
    return known and not parameter.required and parameter.kind.split(" ")[0] not in _NEVER


def _label(scene: Scene, tool: Offered, first: str) -> str:
    """Return the words for a parameter of a user who has read its description; "" if it has no name."""
    spelled = tool.called[first]
    if _NAMELESS.match(spelled) or not re.search(r"[a-z]", spelled.lower()):
        return ""
    if scene.maybe(0.15):
        return spelled
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", spelled).lower().replace("_", " ")
    return words.removeprefix("is ").removeprefix("input ").removesuffix(" value").strip()
