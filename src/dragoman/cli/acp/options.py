"""What can be chosen for a session in an editor: who decides about calls, the model, and the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from dragoman.cli.acp.folders import OpenWorkspace
from dragoman.errors import BadRequest
from dragoman.messages.questions import MODES

_MODES = {
    "auto": ("Auto", "The rules decide which calls run, and which you are asked about"),
    "ask": ("Ask", "You are asked about every call"),
    "manual": ("Manual", "You run each call yourself"),
    "off": ("No tools", "The model calls nothing"),
}


def session_state(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> dict[str, Any]:
    """The mode in the protocol's older form and, with all else, as options."""
    modes = [{"id": one, "name": _MODES[one][0], "description": _MODES[one][1]} for one in MODES]
    return {
        "modes": {"currentModeId": _mode(workspace, settings), "availableModes": modes},
        "configOptions": _options(workspace, settings),
    }


def check_choice(
    workspace: OpenWorkspace, settings: Mapping[str, JsonValue], option: str, value: str
) -> None:
    """BadRequest where there is no such option, or no such value of it."""
    offered = {one["id"]: one for one in _options(workspace, settings)}
    if option not in offered:
        raise BadRequest(f"there is no option {option!r}: there are {', '.join(offered)}")
    if option == "model":
        workspace.runtime.services.model(value)  # NotFound, or a missing key, before it is stored
    elif value not in [one["value"] for one in offered[option]["options"]]:
        raise BadRequest(f"{option} cannot be {value!r}")


def _mode(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> str:
    return str(settings.get("mode") or workspace.runtime.services.mode)


def _options(workspace: OpenWorkspace, settings: Mapping[str, JsonValue]) -> list[dict[str, Any]]:
    model, agents = settings.get("model"), workspace.runtime.services.agents
    current = model if isinstance(model, str) else workspace.chosen.name
    found = [
        _select("mode", "Mode", _mode(workspace, settings), [(one, *_MODES[one]) for one in MODES]),
        _select("model", "Model", current, [(one, one) for one in workspace.models(current)]),
    ]
    if agents:
        chosen = str(settings.get("agent") or "")
        named = [(agent.name, agent.name, agent.description) for agent in agents.values()]
        found.append(_select("agent", "Agent", chosen, [("", "None"), *named]))
    return found


def _select(id: str, name: str, current: str, options: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    offered = [
        {"value": one[0], "name": one[1], **({"description": one[2]} if len(one) > 2 and one[2] else {})}
        for one in options
    ]
    category = {"category": id} if id in ("mode", "model") else {}
    return {"id": id, "name": name, "type": "select", **category, "currentValue": current, "options": offered}
