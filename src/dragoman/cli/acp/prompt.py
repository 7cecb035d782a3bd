"""What a person says in an editor, as parts of a message: text, pictures, sounds, files and links."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dragoman.cli.attachments import LIMIT
from dragoman.config.project_prompt import Template
from dragoman.errors import BadRequest
from dragoman.messages.message import File, Part, Text
from dragoman.store.store import Store
from dragoman.web_address import split_uri


async def read_prompt(
    store: Store, blocks: Sequence[Any], folder: Path, templates: Mapping[str, Template]
) -> list[Part]:
    """The parts of a message. BadRequest where a block is none that the protocol has."""
    parts: list[Part] = []
    for number, block in enumerate(blocks):
        if not isinstance(block, dict):
            raise BadRequest(f"block {number} of the prompt is no object")
        try:
            part = await _part(store, block, folder)
        except KeyError as error:
            raise BadRequest(f"block {number} of the prompt has no {error}") from None
        parts.append(part)
    return _filled(parts, templates)


def _filled(parts: list[Part], templates: Mapping[str, Template]) -> list[Part]:
    """With a command of the person's own in place of its name, where the message begins with one."""
    first = parts[0] if parts else None
    if not isinstance(first, Text) or not first.text.startswith("/"):
        return parts
    word, _, rest = first.text[1:].partition(" ")
    if (template := templates.get(word.strip())) is None:
        return parts
    return [Text(template.fill(rest.strip())), *parts[1:]]


async def _part(store: Store, block: Mapping[str, Any], folder: Path) -> Part:
    match block.get("type"):
        case "text":
            return Text(_text(block, "text"))
        case "image" | "audio":
            name = _name(str(block.get("uri") or "")) or None
            return await _file(store, _text(block, "data"), _text(block, "mimeType"), name)
        case "resource_link":
            return Text(f"[{_text(block, 'name')}]({_shown(_text(block, 'uri'), folder)})")
        case "resource":
            resource = block["resource"]
            if not isinstance(resource, dict):
                raise BadRequest("a resource is an object")
            uri = _text(resource, "uri")
            if "text" in resource:
                where = _shown(uri, folder)
                return Text(f'<file path="{where}">\n{_text(resource, "text")}\n</file>')
            media_type = str(resource.get("mimeType") or "application/octet-stream")
            return await _file(store, _text(resource, "blob"), media_type, _name(uri) or None)
        case other:
            raise BadRequest(f"a prompt cannot hold a block of the type {other!r}")


def _text(block: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := block[name], str):
        raise BadRequest(f"{name} is a text")
    return value


async def _file(store: Store, data: str, media_type: str, name: str | None) -> File:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(f"the {media_type} of the prompt is no base64: {error}") from None
    if len(content) > LIMIT:
        raise BadRequest(f"the {media_type} of the prompt is too large: {LIMIT // 1024 // 1024} MB at most")
    return File(media_type, blob=await store.put_blob(content), name=name, size=len(content))


def _name(uri: str) -> str:
    return Path(unquote(split_uri(uri).path)).name


def _shown(uri: str, folder: Path) -> str:
    """The path as our file tools take it, where the link leads into the folder; else the link."""
    parts = split_uri(uri)
    path = Path(unquote(parts.path))
    if parts.scheme not in ("file", "") or not path.is_absolute():
        return uri
    lines = f"#{parts.fragment}" if parts.fragment else ""
    return f"{path.relative_to(folder).as_posix()}{lines}" if path.is_relative_to(folder) else uri
