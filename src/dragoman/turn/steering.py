"""What a person says while a turn runs in, messages on the tree out."""

from __future__ import annotations

from dragoman.messages.events import MessageAdded
from dragoman.messages.ids import derived_id
from dragoman.messages.message import Message
from dragoman.messages.parts import Part
from dragoman.store.rows import MESSAGE
from dragoman.store.store import Change
from dragoman.turn.facts import Steered
from dragoman.turn.log import TurnLog
from dragoman.turn.mailbox import Mailbox


async def take_in_steering(log: TurnLog, mail: Mailbox) -> None:
    """Hang what came in on the turn's branch, where the next request finds it."""
    while mail.steering:
        letter = mail.steering.pop(0)
        message = Message(
            derived_id("msg", log.id, "steer", letter.letter),
            log.conversation.id,
            log.tip,
            "user",
            _parts(letter.value["message"]),
            turn=log.id,
            created=log.now(),
        )
        await log.record(Steered(message.id), change=Change(messages=[message], letters=[letter.letter]))
        log.publish(MessageAdded(message))


def _parts(body: object) -> tuple[Part, ...]:
    return MESSAGE.from_json(body).parts
