"""Refuses a message that its model could do nothing with, before anything is stored (M2)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pydantic import JsonValue

from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, ConfigError, DragomanError, NotFound
from dragoman.messages.media import CHAT, type_of
from dragoman.messages.message import File, Message, Part
from dragoman.sentences import sentence
from dragoman.store.store import Store
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.turn.services import Services
from dragoman.wire.media.selection import earlier_parts
from dragoman.wire.wire import Model


async def check_attached(store: Store, message: Message) -> None:
    """NotFound where a file is named that is not stored: no request that holds it could ever be sent."""
    for file in message.files:
        if file.blob is not None:
            await store.blob_size(file.blob)


async def check_message(
    store: Store,
    model: Model,
    message: Message,
    parent: str | None,
    history: Sequence[Message] | None = None,
) -> None:
    """BadRequest where the model cannot take what the message holds, or misses what it must have. `parent` is
    the message it stands below; models that do not talk may go back to a picture or a sound before it.
    `history` is what stands before it where that is not stored yet."""
    if (check := getattr(model, "check_message", None)) is None:  # a model of one's own may have none
        _check_files(model, message.files)
        return
    earlier: Sequence[Sequence[Part]] = ()
    if type_of(model) != CHAT and parent is not None:
        messages = history if history is not None else (await store.messages(message.conversation))[0]
        with suppress(NotFound):
            earlier = earlier_parts(Tree(messages).path(parent))
    check(message.parts, earlier)


async def check_repeated(store: Store, model: Model, question: Message) -> None:
    """The same for a message that is answered again, maybe by another model. What is only a file that a chat
    model cannot be shown becomes a line of text there, as in all that was said before."""
    if type_of(model) != CHAT:
        await check_message(store, model, question, question.parent)


async def check_added(services: Services, turn: str, message: Message) -> None:
    """The same for what is said to a turn that was started before: of its model, if that is here; of one that
    waits in a queue, of its conversation's."""
    try:
        name = options_in(await services.store.facts(turn)).started_with
    except (DragomanError, ValueError):
        if message.files:
            raise
        return  # it cannot be read: there is nothing to compare with
    await check_attached(services.store, message)
    info = await services.store.conversation(message.conversation)
    name = name or _text(info.settings.get("model"))
    with suppress(NotFound, ConfigError):
        await check_message(services.store, services.model(name), message, info.leaf)


def check_typed_answer(model: Model, options: TurnOptions) -> None:
    """Only a model that talks can be held to a type."""
    if options.output is not None and type_of(model) != CHAT:
        raise BadRequest(sentence("output.does_not_talk", model=model.name))


def _check_files(model: Model, files: Sequence[File]) -> None:
    if files and (check := getattr(model, "check_files", None)) is not None:
        check(files)


def _text(setting: JsonValue) -> str | None:
    return setting if isinstance(setting, str) else None
