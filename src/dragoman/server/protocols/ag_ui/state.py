"""The state that a thread shares with its client: what the client brings, and what the model changes in it.

The client brings its state with each run, and it is stored with the turn. The model changes it by a call of
`update_state`, which is the client's own tool as far as permissions go; its result is delivered by whoever
writes the client's stream. So the state of a thread can be told from its turns, also after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from dragoman.errors import BadRequest
from dragoman.messages.boundary import check_json
from dragoman.messages.message import Arguments, CallState, Message, canonical
from dragoman.messages.request import ToolSpec
from dragoman.server.context import Context
from dragoman.turn.facts import options_in

UPDATE_STATE = "update_state"
_LONGEST = 100_000  # characters
_SPEC = ToolSpec(
    UPDATE_STATE,
    "Change the application's state, which the person sees. Say only what changes.",
    {
        "type": "object",
        "properties": {
            "changes": {
                "type": "object",
                "description": "New values by key. Objects are merged, lists replaced; null removes a key.",
            }
        },
        "required": ["changes"],
    },
)


def state_tool(state: JsonValue, taken: Iterable[str]) -> list[ToolSpec]:
    """The tool that changes the state, where the client has one, and no tool of this name."""
    return [_SPEC] if state and isinstance(state, dict) and UPDATE_STATE not in taken else []


def check_state(state: JsonValue) -> None:
    """BadRequest for what cannot be stored, or is more than a model can read."""
    check_json(state, "the state")
    if state and len(canonical(state)) > _LONGEST:
        raise BadRequest(f"the state is too long: {_LONGEST // 1000} kB of JSON are what a model reads of it")


def describe_state(state: JsonValue) -> str:
    """For the model."""
    return f"The application's state, as the client has it: {canonical(state)}" if state else ""


async def state_in(context: Context, conversation: str | None) -> JsonValue:
    """The state that a thread had last. None where it never had one."""
    turns = await context.runtime.store.turns(conversation) if conversation is not None else []
    for turn in reversed(turns):
        state = options_in(await context.runtime.store.facts(turn.id)).state
        if state is not None:
            return changed_by((await context.runtime.turn(turn.id).snapshot()).messages, state)
    return None


def changed_by(messages: Iterable[Message], state: JsonValue) -> JsonValue:
    """The state after the calls in these messages."""
    for message in messages:
        for call in message.calls:
            if call.tool == UPDATE_STATE and call.state is CallState.COMPLETED:
                state = merged(state, changes_in(call.arguments))
    return state


def changes_in(arguments: Arguments) -> JsonValue:
    changes = arguments.get("changes")
    return changes if isinstance(changes, dict) else {}


def merged(state: JsonValue, changes: JsonValue) -> JsonValue:
    """The state with the changes in it, as a JSON Merge Patch (RFC 7386) has it."""
    if not isinstance(changes, dict):
        return changes
    after = dict(state) if isinstance(state, dict) else {}
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = merged(after.get(key), value)
    return after


def difference(before: JsonValue, after: JsonValue, path: str = "") -> Iterator[dict[str, JsonValue]]:
    """The operations of a JSON Patch (RFC 6902) that lead from one state to the other."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if canonical(before) != canonical(after):
            yield {"op": "replace", "path": path, "value": after}
        return
    for key in before.keys() | after.keys():
        inner = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": inner}
        elif key not in before:
            yield {"op": "add", "path": inner, "value": after[key]}
        else:
            yield from difference(before[key], after[key], inner)
