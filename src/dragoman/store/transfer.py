"""Exports a conversation as JSON or Markdown, and imports the JSON."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from urllib.parse import quote

from pydantic import JsonValue, ValidationError

from dragoman.conversation.tree import LOCAL, Conversation, Tree, copied, usable_tags
from dragoman.errors import BadRequest, DragomanError, NotFound, Unreadable
from dragoman.messages.boundary import MARGIN, check_addresses, check_json, time_or
from dragoman.messages.codec import Codec
from dragoman.messages.endings import ending_of
from dragoman.messages.ids import new_id
from dragoman.messages.message import (
    Error,
    File,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Role,
    Summary,
    Text,
    ToolCall,
    ToolResult,
    canonical,
)
from dragoman.sentences import sentence
from dragoman.store.store import Mention, Store

_FORMAT = "dragoman.conversation/1"
# Settings accepted from an untrusted export. They exclude everything that allows calls.
_HARMLESS: dict[str, type] = {"system": str, "options": dict, "private": dict}
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<mark>`{3,}|~{3,})(?P<said>.*)$", re.MULTILINE)
_MARGIN = MARGIN // 2  # The values of an export are already nested.


@dataclass(slots=True, frozen=True)
class _Whole:
    conversation: Conversation
    messages: list[Message]
    # messages sent but unanswered at the time of the export
    queued: list[Message] = field(default_factory=list)


_WHOLE: Codec[_Whole] = Codec(_Whole)


async def export_conversation(
    store: Store, conversation: str, *, private: bool = True
) -> dict[str, JsonValue]:
    """Return everything: all branches, calls with results, conversations of tasks, attachments and long
    outputs."""
    outermost, *tasks = [await _stored(store, id) for id in reversed(await store.within(conversation))]
    for one in (outermost, *tasks) if not private else ():
        one.conversation.settings.pop("private", None)
    blobs: dict[str, JsonValue] = {}
    named = {
        key
        for one in (outermost, *tasks)
        for message in (*one.messages, *one.queued)
        for key in blobs_of(message)
    }
    for key in sorted(named):
        with suppress(NotFound, Unreadable):  # The file is gone, but the message that references it is not.
            blobs[key] = base64.b64encode(await store.blob(key)).decode()
    return {
        "format": _FORMAT,
        **_exported(outermost),
        "tasks": [_exported(task) for task in tasks],
        "blobs": blobs,
    }


def _exported(one: _Whole) -> dict[str, JsonValue]:
    exported = _WHOLE.to_json(one)
    assert isinstance(exported, dict)
    return exported


async def _stored(store: Store, conversation: str) -> _Whole:
    # Read it first, so that its leaf is among the messages read afterwards.
    info = await store.conversation(conversation)
    messages, _ = await store.messages(conversation)
    known = {message.id for message in messages}
    queued = [one.message for one in await store.queued(conversation=conversation)]
    return _Whole(info, messages, [message for message in queued if message.id not in known])


async def import_conversation(store: Store, data: object, *, user: str | None, now: float) -> str:
    """Import a conversation and return its ID. Raise BadRequest, and store nothing, if the data is
    incomplete.

    Queued messages become unanswered messages below the leaf, which stays. No turn runs until a user has
    one of them answered.
    """
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise BadRequest(sentence("export.unknown", format=_FORMAT))
    check_json(data, "the export", margin=_MARGIN)
    made = _renamed(_read(data), user, now)
    brought = {await store.put_blob(blob) for blob in _decoded(data.get("blobs"))}
    named = {key for one in made for message in one.messages for key in blobs_of(message)} - brought
    missing = {key for key in named if not await may_see(store, key, user or LOCAL)}
    outermost = made[0].conversation.id
    try:
        for one in made:
            messages = [_without_blobs(message, missing) for message in one.messages]
            await store.add_conversation(one.conversation, messages)
    except BaseException:
        with suppress(DragomanError):
            await store.delete_conversation(outermost)
        raise
    return outermost


def history_of(messages: Sequence[Mapping[str, str]], conversation: Conversation) -> list[Message]:
    """Return a caller's messages, `{"role": "user", "content": "Hello"}`, for a new conversation."""
    history: list[Message] = []
    for one in messages:
        role: Role = "assistant" if one.get("role") == "assistant" else "user"
        content = one.get("content")
        if one.get("role") != role or not isinstance(content, str) or not content.strip():
            raise BadRequest(sentence("history.malformed", message=one))
        parent = history[-1].id if history else None
        message = Message(
            new_id("msg"), conversation.id, parent, role, (Text(content),), created=conversation.created
        )
        history.append(message)
    return history


def _read(data: Mapping[str, JsonValue]) -> list[_Whole]:
    """Return the conversation and those of its tasks, which exports of older versions lack."""
    tasks = data.get("tasks", [])
    if not isinstance(tasks, list):
        raise BadRequest(sentence("export.tasks"))
    found = []
    outermost = {key: data[key] for key in ("conversation", "messages", "queued") if key in data}
    for one in (outermost, *tasks):
        try:
            found.append(_with_queued(_WHOLE.from_json(one)))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise BadRequest(sentence("export.damaged_at", where=where, why=fault["msg"])) from error
        check_addresses(found[-1].messages)
    return found


def _with_queued(one: _Whole) -> _Whole:
    """Put each queued message separately below the leaf, so that answering one does not send the others."""
    leaf, metadata = one.conversation.leaf, {"queued": True}
    below = [
        replace(message, parent=leaf, turn=None, metadata={**message.metadata, **metadata})
        for message in one.queued
    ]
    return replace(one, messages=[*one.messages, *below], queued=[])


def _renamed(exported: Sequence[_Whole], user: str | None, now: float) -> list[_Whole]:
    """Give everything new IDs, the outermost conversation first, each below the call that opened it."""
    conversations: dict[str | None, str] = {}
    calls: dict[str | None, str] = {}
    made: list[_Whole] = []
    for one in exported:
        info, id = one.conversation, new_id("conv")
        copies = copied(Tree(one.messages), id)
        if len(copies) < len(one.messages):
            raise BadRequest(sentence("export.twice"))
        if info.leaf is not None and info.leaf not in copies:
            raise BadRequest(sentence("export.leaf", leaf=info.leaf))
        if made and not (info.parent in conversations and info.call in calls):
            raise BadRequest(sentence("export.task", task=info.id))
        copy = Conversation(
            id,
            title=info.title,
            leaf=copies[info.leaf].id if info.leaf else None,
            user=user,
            settings=_settings(info),
            usage=info.usage,
            created=time_or(info.created, now),
            updated=now,
            parent=conversations[info.parent] if made else None,
            call=calls[info.call] if made else None,
            tags=usable_tags(info.tags),
        )
        messages = [replace(copy, created=time_or(copy.created, now)) for copy in copies.values()]
        conversations[info.id] = id
        for old, new in zip(one.messages, messages, strict=True):
            pairs = zip(old.all_calls, new.all_calls, strict=True)
            calls |= {before.id: after.id for before, after in pairs}
        made.append(_Whole(copy, messages))
    return made


def _settings(info: Conversation) -> dict[str, JsonValue]:
    """Keep private texts, because the messages contain them unmasked."""
    brought = {key: info.settings[key] for key in _HARMLESS if info.settings.get(key) is not None}
    private = brought.get("private")
    texts = [*private, *private.values()] if isinstance(private, dict) else []
    for key, value in brought.items():
        if not isinstance(value, _HARMLESS[key]):
            raise BadRequest(sentence("export.setting", key=key, value=value))
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadRequest(sentence("export.private"))
    return brought


def _without_blobs(message: Message, missing: Collection[str]) -> Message:
    """Replace references to blobs that were not imported and that this user does not own."""
    if not any(key in missing for key in blobs_of(message)):
        return message

    def nowhere(key: str | None) -> str | None:
        return hashlib.sha256(secrets.token_bytes(32)).hexdigest() if key in missing else key

    def of_part(part: Part) -> Part:
        match part:
            case File():
                return replace(part, blob=nowhere(part.blob))
            case ToolCall(result=ToolResult() as result):
                files = tuple(replace(file, blob=nowhere(file.blob)) for file in result.attachments)
                return replace(part, result=replace(result, blob=nowhere(result.blob), attachments=files))
            case _:
                return part

    inner = tuple(one for one in map(of_part, message.inner) if isinstance(one, ToolCall))
    return replace(message, parts=tuple(map(of_part, message.parts)), inner=inner)


def _decoded(blobs: JsonValue) -> list[bytes]:
    """Return the files of an export, each checked against its name."""
    decoded = []
    for key, text in (blobs if isinstance(blobs, dict) else {}).items():
        try:
            blob = base64.b64decode(str(text), validate=True)
        except ValueError as error:
            raise BadRequest(sentence("export.blob_base64", key=key, error=error)) from error
        if hashlib.sha256(blob).hexdigest() != key:
            raise BadRequest(sentence("export.blob", key=key))
        decoded.append(blob)
    return decoded


def markdown(info: Conversation, path: Sequence[Message], queued: Sequence[Message] = ()) -> str:
    """Return a readable text: messages with their authors, calls with their results, and queued messages."""
    lines = [f"# {info.title or 'Conversation'}", ""]
    shared = len({message.by for message in path if message.by}) > 1
    goes_on = False
    for message, following in zip_longest(path, path[1:]):
        if message.role == "user" and message.author is not None:
            goes_on = True  # A plugin requested the continuation, without a user message.
            continue
        if not goes_on:
            person = f"Person ({' '.join(message.by.split())})" if shared and message.by else "Person"
            lines += [f"## {person if message.role == 'user' else message.model or 'Model'}", ""]
        goes_on = False
        for text in _paragraphs(message):
            lines += [text, *_open_fence(text), ""]
        if message.role == "assistant" and (ending := ending_of(message, following)) is not None:
            lines += [f"*{ending}*", ""]
    for message in queued:
        lines += ["## Person (queued)", ""]
        for text in _paragraphs(message):
            lines += [text, *_open_fence(text), ""]
    return "\n".join(lines)


def _paragraphs(message: Message) -> Iterator[str]:
    for part in _with_inner(message):
        match part:
            case Text(text=text):
                yield text
                if sources := _sources(part):
                    yield sources
            case ProviderItem(kind=kind, text=text):
                yield f"*{kind}:* {text}" if text else f"*{kind}*"
            case Reasoning(text=text):
                yield "> " + text.replace("\n", "\n> ")
            case ToolCall():
                result = part.result.text if part.result else "no result yet"
                fence = "`" * max(3, _backticks(result) + 1)
                arguments = canonical(part.arguments)
                ticks = "`" * (_backticks(arguments) + 1)
                where = f" · line {part.made_in.line} of the program" if part.made_in is not None else ""
                yield f"**{part.tool}** {ticks}{arguments}{ticks} · {part.state}{where}"
                yield f"{fence}\n{result}\n{fence}"
                yield from map(_linked_file, part.result.attachments if part.result else ())
            case File():
                yield _linked_file(part)
            case Summary(text=text):
                yield f"*Summary of what came before:* {text}"
            case Error(message=text):
                yield f"**Error:** {text}"


def _with_inner(message: Message) -> Iterator[Part]:
    """Yield the parts, with each program's inner calls after its own call."""
    for part in message.parts:
        yield part
        if isinstance(part, ToolCall):
            yield from (one for one in message.inner if one.made_in and one.made_in.call == part.id)


def _sources(text: Text) -> str:
    """Return the sources of a text as a list without duplicates."""
    named = {(one.url, one.title): one for one in text.citations if one.url or one.title}
    return "\n".join(
        f"- {_link(one.title or one.url, one.url)}" if one.url else f"- {one.title}" for one in named.values()
    )


def _linked_file(file: File) -> str:
    return _link(file.name or file.media_type, file.url or file.blob or "")


def _link(words: str, address: str) -> str:
    """Return a Markdown link, with characters escaped that would end either part."""
    said = re.sub(r"[][\\]", r"\\\g<0>", words)
    target = re.sub(r"[\s()<>]", lambda found: quote(found[0]), address)
    return f"[{said}]({target})"


def _open_fence(text: str) -> list[str]:
    """Return the end marker of a code block that the text leaves open, as in an interrupted reply.

    Without it, everything that follows would be code too.
    """
    opened, indent = "", ""
    for found in _FENCE.finditer(text):
        mark, said = found["mark"], found["said"].strip()
        if not opened and not (mark[0] == "`" and "`" in said):
            opened, indent = mark, found["indent"]
        elif opened and not said and mark.startswith(opened):
            opened = ""
    return [indent + opened] if opened else []


def _backticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


# ── access to attachments ─────────────────────────────────────────────────────────────────────────
# Decides who can see a blob: readers of a message or result that contains it, and its uploader.


async def may_see(store: Store, blob: str, user: str) -> bool:
    """Return whether one of this user's conversations contains it, or the user uploaded it within the last
    day.

    A reference alone is not enough: arguments and values can contain any text.
    """
    for mention in await store.mentions(blob, user):
        if mention.noun == "upload":
            return True
        with suppress(NotFound, Unreadable):
            if blob in await _held(store, mention):
                return True
    return False


async def _held(store: Store, mention: Mention) -> set[str]:
    match mention.noun:
        case "message":
            return set(blobs_of(await store.message(mention.id)))
        case "call":
            call, _, under_review = await store.call(mention.id)
            return {*_of_result(call.result), *_of_result(under_review)}
        case "queue":
            queued = await store.queued(turn=mention.id)
            return {blob for one in queued for blob in blobs_of(one.message)}
        case _:
            return set()


def blobs_of(message: Message) -> Iterator[str]:
    """Yield the blobs that a message and the results of its calls contain."""
    for part in (*message.parts, *message.inner):
        if isinstance(part, File) and part.blob:
            yield part.blob
        if isinstance(part, ToolCall):
            yield from _of_result(part.result)


def _of_result(result: ToolResult | None) -> Iterator[str]:
    if result is not None:
        if result.blob:
            yield result.blob
        yield from (file.blob for file in result.attachments if file.blob)
