"""Images, sounds and documents that come inside a request, as base64, stored like any upload."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from dragoman.messages.media import is_media_type, parse_data_url
from dragoman.messages.message import File
from dragoman.server.context import Context
from dragoman.server.protocols.openai.errors import ApiRefusal
from dragoman.server.protocols.threads import store_file

_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav"}


@dataclass(slots=True, frozen=True)
class Attached:
    """A file that came with a request, before it is stored. `hash` is the name it will have."""

    media_type: str
    data: bytes
    name: str | None
    hash: str

    async def stored(self, context: Context, person: str) -> File:
        return await store_file(context, person, self.data, self.media_type, self.name)


def attached_url(url: str, param: str, limit: int, name: str | None = None) -> Attached:
    """The file in a data URL. Addresses of the web are not fetched from here."""
    found = parse_data_url(url)
    if found is None or not found.base64 or not is_media_type(found.media_type):
        what = "files come as data URLs (data:image/png;base64,…): no address is fetched from here"
        raise ApiRefusal(what, param, code="invalid_value")
    return _attached(found.media_type, url[found.begins :], param, limit, name)


def attached_sound(data: str, format: str, param: str, limit: int) -> Attached:
    if format not in _SOUNDS:
        raise ApiRefusal(f"sound comes as {' or '.join(_SOUNDS)}", param, code="invalid_value")
    return _attached(_SOUNDS[format], data, param, limit, None)


def _attached(media_type: str, text: str, param: str, limit: int, name: str | None) -> Attached:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiRefusal(f"this is no base64: {error}", param, code="invalid_base64") from error
    if not data:
        raise ApiRefusal("the file is empty", param, code="invalid_value")
    if len(data) > limit:
        raise ApiRefusal(
            f"a file has at most {limit} bytes here", param, status=413, code="request_too_large"
        )
    return Attached(media_type, data, name, hashlib.sha256(data).hexdigest())
