"""Addresses that hold a file themselves, such as `data:image/png;base64,…`."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

_LONGEST_HEAD = 1000  # characters: what has no comma by then is no such address
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)


@dataclass(slots=True, frozen=True)
class DataUrl:
    """What stands before the comma. The data, which may be long, are not copied to look at it."""

    media_type: str  # in small letters, without parameters; empty where it says none
    base64: bool
    begins: int  # where the data do


def parse_data_url(url: str) -> DataUrl | None:
    """None for an address of another kind."""
    comma = url.find(",", 0, _LONGEST_HEAD)
    if comma < 0 or url[:5].lower() != "data:":
        return None
    media_type, *parameters = (word.strip().lower() for word in url[5:comma].split(";"))
    return DataUrl(media_type, bool(parameters) and parameters[-1] == "base64", comma + 1)


def data_in(url: str) -> bytes | None:
    """The bytes in such an address, None for another one. ValueError where they are said to be base64, and
    are not."""
    found = parse_data_url(url)
    if found is None:
        return None
    data = url[found.begins :]
    return b64decode(data, validate=True) if found.base64 else unquote_to_bytes(data)


def is_media_type(text: str) -> bool:
    """Whether it has the form `image/png`, without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None
