"""Refuses messages that the model cannot process, before anything is stored (M2)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pydantic import JsonValue

from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, ConfigError, DragomanError, NotFound, Unreadable
from dragoman.messages.media import CHAT, type_of
from dragoman.messages.message import File, Message, Part
from dragoman.sentences import sentence
from dragoman.store.store import Store
from dragoman.turn.facts import TurnOptions, options_in
from dragoman.turn.services import Services
from dragoman.wire.media.selection import earlier_parts
from dragoman.wire.wire import Model


async def check_attached(store: Store, message: Message) -> None:
    """Raise NotFound if a file is not stored: no request that contains it could be sent."""
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
    """Raise BadRequest if the model cannot accept the message's content, or requires content that is missing.

    `parent` is the message above it. Models other than chat models may use an earlier image or audio.
    `history` holds the messages before it if they are not stored yet.
    """
    if (check := getattr(model, "check_message", None)) is None:  # Custom models may lack this check.
        _check_files(model, message.files)
        return
    earlier: Sequence[Sequence[Part]] = ()
    if type_of(model) != CHAT and parent is not None:
        messages = history if history is not None else (await store.messages(message.conversation))[0]
        with suppress(NotFound):
            earlier = earlier_parts(Tree(messages).path(parent))
    check(message.parts, earlier)


async def check_repeated(store: Store, model: Model, question: Message) -> None:
    """Check a message that is answered again, possibly by another model.

    For a chat model, a file that it cannot be shown becomes a line of text, as in all earlier messages.
    """
    if type_of(model) != CHAT:
        await check_message(store, model, question, question.parent)


async def check_added(services: Services, turn: str, message: Message) -> None:
    """Check a message added to an existing turn against that turn's model, if the model is available.

    For a queued turn, use the model of its conversation.
    """
    try:
        name = options_in(await services.store.facts(turn)).started_with
    except (DragomanError, ValueError) as error:
        if not message.files:
            return  # The turn is unreadable, so no model is known to compare with.
        if isinstance(error, DragomanError):
            raise
        raise Unreadable("turn", turn, "this version does not know one of its facts") from error
    await check_attached(services.store, message)
    info = await services.store.conversation(message.conversation)
    name = name or _text(info.settings.get("model"))
    with suppress(NotFound, ConfigError):
        await check_message(services.store, services.model(name), message, info.leaf)


def check_typed_answer(model: Model, options: TurnOptions) -> None:
    """Raise BadRequest if an output type is set for a model other than a chat model."""
    if options.output is not None and type_of(model) != CHAT:
        raise BadRequest(sentence("output.does_not_talk", model=model.name))


def _check_files(model: Model, files: Sequence[File]) -> None:
    if files and (check := getattr(model, "check_files", None)) is not None:
        check(files)


def _text(setting: JsonValue) -> str | None:
    return setting if isinstance(setting, str) else None
