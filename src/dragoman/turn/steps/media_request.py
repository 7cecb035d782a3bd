"""Asks a model of another type on behalf of a tool: its files are stored, and shown while they are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from pydantic import JsonValue

from dragoman.errors import BadRequest, ConfigError, NotFound, ProviderError, ToolFailed
from dragoman.messages.codec import Codec
from dragoman.messages.events import CallProgress, FileAdded, FilePartial, StepRetry
from dragoman.messages.fold import Draft
from dragoman.messages.ids import new_id
from dragoman.messages.media import ModelType
from dragoman.messages.message import File, Message, Part, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.turn.facts import ModelAsked
from dragoman.turn.live.aside import asking_aside
from dragoman.turn.live.log import TurnLog
from dragoman.turn.services import Services
from dragoman.turn.steps.made_files import store_made
from dragoman.wire.lowering import result_files
from dragoman.wire.wire import Model

_FILE: Codec[File] = Codec(File)


async def ask_model(
    services: Services,
    log: TurnLog,
    call: str,
    type: ModelType,
    *,
    parts: Sequence[Part],
    options: dict[str, JsonValue],
    see_request: Callable[[Request], Awaitable[None]],
) -> Message:
    """The reply of the first model of this type that is set up. ToolFailed says why there is none."""
    model = _model_of(services, type)
    request = Request(model.name, (RequestMessage("user", tuple(parts)),), options=options)
    await see_request(request)
    draft = Draft(Message(new_id("msg"), log.conversation.id, None, "assistant", (), model=model.name))
    try:
        model.check_options(request.options)
        if (check := getattr(model, "check_message", None)) is not None:  # one's own may have none
            check(parts)
        with asking_aside(log, "tool", request) as aside:
            async with aclosing(model.stream(request, draft.id)) as replies:
                async for events in replies:
                    for event in events:
                        if isinstance(event, FileAdded | FilePartial):
                            await store_made(event, log.store, log.conversation.owner, log.now())
                        if isinstance(event, FilePartial):
                            log.publish(CallProgress(call, {"partial": _FILE.to_json(event.file)}))
                        elif isinstance(event, StepRetry):
                            aside.retry(event, log.now())
                            log.publish(event)
                        draft.apply(event)
            aside.reply = draft.message
    except (ProviderError, BadRequest) as error:
        raise ToolFailed(f"{model.name}: {error}") from error
    finally:
        log.count_lost(request, call)
    usage = draft.message.usage
    if usage is not None and not usage.is_empty and log.is_running(call):
        await log.record(ModelAsked(call, model.name, usage))  # it is paid for, whatever becomes of the call
    return draft.message


def files_of_conversation(log: TurnLog) -> list[File]:
    """The files that were sent, made or brought back by calls, the newest first."""
    found: list[File] = []
    for message in reversed(log.path):
        for part in reversed(message.parts):
            for file in result_files(part) if isinstance(part, ToolCall) else (part,):
                if isinstance(file, File):
                    found.append(replace(file, made_by=None, signature=None))
    return found


def _model_of(services: Services, type: ModelType) -> Model:
    names = getattr(services.model, "of_type", lambda _: ())(type)  # a function of one's own has no list
    try:
        return services.model(next(iter(names)))
    except StopIteration:
        pass
    except (NotFound, ConfigError) as error:
        raise ToolFailed(str(error)) from error
    raise ToolFailed(f"no model of the type {type} is set up")
