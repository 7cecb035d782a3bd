"""Let a chat model use media models: `make_image`, `edit_image`, `speak` and `transcribe`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from dragoman.errors import ToolFailed
from dragoman.messages.media import MODEL_TYPES, Modality, ModelType, modality
from dragoman.messages.message import File, Message, Part, Text
from dragoman.tools.tool import Tool, ToolContext, ToolOutput, tool
from dragoman.tools.toolbox import Group

SECONDS = 600.0  # Images take minutes.

_RULES = """\
What make_image, edit_image and speak make is shown to the person at once: do not describe where it is, and \
do not write links to it."""

Words = Annotated[str, Field(min_length=1, max_length=32_000)]
Size = Annotated[str, Field(pattern=r"^(auto|\d{2,5}x\d{2,5})$", description="such as 1024x1536, or auto")]
Name = Annotated[str, Field(description="the name of a file of this conversation; without it, the latest")]


def media_group(types: Collection[ModelType] = MODEL_TYPES) -> Group:
    """Return the tools that have a model of the type they need."""
    tools = tuple(tool for type, tool in _TOOLS.items() if type in types)
    return Group("media", tools, rules=_RULES)


@tool(permission="media.make_image", writes="nothing", cancellable=True, timeout=SECONDS)
async def make_image(
    prompt: Words,
    context: ToolContext,
    size: Size | None = None,
    background: Literal["auto", "transparent", "opaque"] | None = None,
    count: Annotated[int, Field(ge=1, le=4)] = 1,
) -> ToolOutput:
    """Make a picture from words. Say in the prompt all that is to be seen, and in which style."""
    options = _given(size=size, background=background, n=count if count > 1 else None)
    reply = await context.ask_model("image-gen", [Text(prompt)], options)
    return _made(reply, prompt, context)


@tool(permission="media.edit_image", writes="nothing", cancellable=True, timeout=SECONDS)
async def edit_image(
    prompt: Words,
    context: ToolContext,
    images: Annotated[
        list[str], Field(max_length=8, description="names of pictures of this conversation")
    ] = [],  # noqa: B006 - the schema shows it, and nobody changes it
    mask: Annotated[str | None, Field(description="the name of a mask, where one was attached")] = None,
) -> ToolOutput:
    """Change a picture of this conversation, or make one of several. Without names, the latest is changed."""
    pictures = [_find(context, name, "image") for name in images] or [_find(context, None, "image")]
    parts: list[Part] = [Text(prompt), *pictures]
    if mask is not None:
        parts.append(_find(context, mask, "image"))
    reply = await context.ask_model("image-edit", parts, _given(mask=mask))
    return _made(reply, prompt, context)


@tool(permission="media.speak", writes="nothing", cancellable=True, timeout=SECONDS)
async def speak(
    text: Words,
    context: ToolContext,
    voice: Annotated[str | None, Field(description="a voice of the model's, where one is wanted")] = None,
    instructions: Annotated[str | None, Field(description="how it is to sound")] = None,
) -> ToolOutput:
    """Speak a text aloud: the person hears it."""
    options = _given(voice=voice, instructions=instructions)
    return _made(await context.ask_model("audio-tts", [Text(text)], options), text, context)


@tool(permission="media.transcribe", writes="nothing", cancellable=True, timeout=SECONDS)
async def transcribe(
    context: ToolContext,
    file: Name | None = None,
    language: Annotated[str | None, Field(description="that is spoken, such as en")] = None,
) -> ToolOutput:
    """Write down what is spoken in a recording of this conversation."""
    sound = _find(context, file, "audio")
    reply = await context.ask_model("audio-stt", [sound], _given(language=language))
    return ToolOutput(reply.text or "Nothing is spoken in it.", title=sound.name, metadata=_metadata(reply))


_TOOLS: dict[ModelType, Tool] = {
    "image-gen": make_image,
    "image-edit": edit_image,
    "audio-tts": speak,
    "audio-stt": transcribe,
}


def _given(**options: JsonValue) -> dict[str, JsonValue]:
    return {name: value for name, value in options.items() if value is not None}


def _made(reply: Message, words: str, context: ToolContext) -> ToolOutput:
    if not reply.files:
        raise ToolFailed(f"{reply.model} made nothing{f': {reply.text}' if reply.text else ''}")
    files = tuple(_named(reply.files, words, {file.name for file in context.files()}))
    names = ", ".join(str(file.name) for file in files)
    return ToolOutput(
        f"Made {names}. The person sees it.", title=names, metadata=_metadata(reply), attachments=files
    )


def _metadata(reply: Message) -> dict[str, JsonValue]:
    """Return the model that did it and its usage, which is part of the turn's usage."""
    usage = asdict(reply.usage) if reply.usage is not None else {}
    known: dict[str, JsonValue] = {"model": reply.model, "usage": usage}
    return {**known, **_given(transcript=reply.metadata.get("transcript"))}


def _named(files: Sequence[File], words: str, taken: Collection[str | None]) -> Iterable[File]:
    """Give each file a distinct name that users and later calls can refer to."""
    stem = "-".join(re.findall(r"[a-z0-9]+", words.lower())[:5])[:40] or "made"
    used = set(taken)
    for file in files:
        ending = (file.name or "").rpartition(".")[2] or file.media_type.partition("/")[2]
        number, name = 1, f"{stem}.{ending}"
        while name in used:
            number += 1
            name = f"{stem}-{number}.{ending}"
        used.add(name)
        yield replace(file, name=name)


def _find(context: ToolContext, name: str | None, kind: Modality) -> File:
    there = [file for file in context.files() if modality(file) == kind]
    found = next((file for file in there if name is None or file.name == name), None)
    if found is None:
        word = {"image": "picture", "audio": "recording"}.get(kind, "file")
        names = ", ".join(dict.fromkeys(str(file.name) for file in there if file.name))
        called = f" called {name!r}" if name is not None else ""
        raise ToolFailed(
            f"This conversation has no {word}{called}.{f' Choose one of {names}.' if names else ''}"
        )
    return found
