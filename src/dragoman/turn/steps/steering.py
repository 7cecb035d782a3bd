"""Takes in what a person says while a turn runs: it hangs on the branch, where the next request finds it."""

from __future__ import annotations

from dragoman.messages.events import MessageAdded
from dragoman.messages.ids import derived_id
from dragoman.messages.message import Message
from dragoman.store.codecs import MESSAGE
from dragoman.store.store import Change
from dragoman.turn.facts import Steered
from dragoman.turn.live.log import TurnLog
from dragoman.turn.live.signals import Signals


async def take_in_steering(log: TurnLog, signals: Signals) -> None:
    """Hang what came in on the turn's branch, where the next request finds it."""
    while signals.steering:
        received = signals.steering.pop(0)
        said = MESSAGE.from_json(received.value["message"])
        message = Message(
            derived_id("msg", log.id, "steer", received.signal),
            log.conversation.id,
            log.tip,
            "user",
            said.parts,
            turn=log.id,
            created=log.now(),
            metadata=said.metadata,
        )
        await log.record(Steered(message.id), change=Change(messages=[message], signals=[received.signal]))
        log.publish(MessageAdded(message))
