"""Finds the kind of an attachment: from its media type, or from its name if the type is unspecific."""

from __future__ import annotations

import re
from base64 import b64decode
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote_to_bytes

from dragoman.messages.message import File

# URLs that contain a file, such as `data:image/png;base64,…`.


_LONGEST_HEAD = 1000  # A data URL must have its comma within this many characters.
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)


@dataclass(slots=True, frozen=True)
class DataUrl:
    """The part of a data URL before the comma. The data may be long, so it is not copied."""

    media_type: str  # lower case, without parameters, empty if missing
    base64: bool
    begins: int  # index of the data


def parse_data_url(url: str) -> DataUrl | None:
    """Parse the head of a data URL. Return None for any other URL."""
    comma = url.find(",", 0, _LONGEST_HEAD)
    if comma < 0 or url[:5].lower() != "data:":
        return None
    media_type, *parameters = (word.strip().lower() for word in url[5:comma].split(";"))
    return DataUrl(media_type, bool(parameters) and parameters[-1] == "base64", comma + 1)


def data_in(url: str) -> bytes | None:
    """Return the bytes of a data URL, or None for another URL. Raise ValueError for invalid base64."""
    found = parse_data_url(url)
    if found is None:
        return None
    data = url[found.begins :]
    return b64decode(data, validate=True) if found.base64 else unquote_to_bytes(data)


def is_media_type(text: str) -> bool:
    """Return whether it has the form `image/png`, without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None


Modality: TypeAlias = Literal["text", "image", "audio", "video", "file"]
"""The kinds of input a model can accept. `file` is a document such as a PDF."""

ModelType: TypeAlias = Literal["chat", "image-gen", "image-edit", "audio-stt", "audio-tts"]
"""The task of a model: chat, create images, edit images, transcribe speech, or speak."""

CHAT: ModelType = "chat"
MODEL_TYPES: tuple[ModelType, ...] = ("chat", "image-gen", "image-edit", "audio-stt", "audio-tts")

WORKS_ON: dict[ModelType, Modality] = {"image-edit": "image", "audio-stt": "audio"}
"""The input that a type needs in addition to text. If a message has none, the latest one is used."""

_SAME = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "application/x-pdf": "application/pdf",
}

# Text types without `text/`. Types that end in +json, +xml or +yaml (such as SVG) are text too.
_TEXTS = frozenset(
    f"application/{name}"
    for name in (
        *("json", "json5", "jsonl", "x-ndjson", "x-jsonlines", "xml", "xml-dtd", "yaml", "x-yaml", "toml"),
        *("javascript", "x-javascript", "ecmascript", "typescript", "x-typescript", "csv", "sql", "x-sql"),
        *("graphql", "x-sh", "x-shellscript", "x-csh", "x-python", "x-python-code", "x-ruby", "x-perl"),
        *("x-httpd-php", "x-php", "x-tex", "x-latex", "x-subrip", "x-ipynb+json", "x-www-form-urlencoded"),
        *("pgp-signature", "x-patch", "x-diff", "x-tcl", "x-lua", "x-rust", "x-go", "x-java", "x-kotlin"),
    )
) | {"message/rfc822", "model/gltf+json"}

_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream", "application/unknown", "video/mp2t")
_TEXT_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        adoc asm astro awk bash bat bib c cc cfg clj cljs cmake cmd conf cpp cr cs css csv cts cxx d dart
        diff dockerfile eex elm env erl ex exs f90 fish fs fsx gemspec go gradle graphql groovy h hcl hpp
        hrl hs htm html hxx ini ipynb java jl js json json5 jsonl jsx kt kts less lisp lock log lua m mak
        makefile markdown md mdx mjs ml mli mm mts ndjson nim nix org patch php pl pm proto ps1 py pyi pyx r
        rb rkt rs rst sass scala scm scss sh sol sql srt svelte svg swift tcl tex tf thrift toml ts tsv tsx
        txt v vb vhdl vim vtt vue xml xsd xsl yaml yml zig zsh
        """,
    )
)  # file name extensions


IN_WORDS: dict[Modality, str] = {
    "text": "text",
    "image": "images",
    "audio": "sound",
    "video": "films",
    "file": "documents",
}


def media_type(file: File) -> str:
    """Return the normalized media type without parameters. The type inside a data URL takes precedence."""
    said = file.media_type
    if file.url is not None and (inside := parse_data_url(file.url)) is not None and inside.media_type:
        said = inside.media_type
    plain = said.partition(";")[0].strip().lower()
    return _SAME.get(plain, plain)


def type_of(model: object) -> ModelType:
    """Return the model's type. A custom model without one is a chat model."""
    type: ModelType = getattr(model, "type", CHAT)
    return type


def is_text(file: File) -> bool:
    """Return whether the bytes are text that can be sent as text, including JSON, CSV, SVG and code."""
    type = media_type(file)
    if type in _SAYS_NOTHING:
        name = (file.name or "").lower().rpartition("/")[2]
        return name.rpartition(".")[2] in _TEXT_NAMES
    return type.startswith("text/") or type in _TEXTS or type.rpartition("+")[2] in ("json", "xml", "yaml")


def modality(file: File) -> Modality:
    """Return the kind of input that a model needs in order to accept the file."""
    if is_text(file):
        return "text"
    match media_type(file).partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return kind
        case _:
            return "file"


def text_inside(url: str) -> str | None:
    """Return the text that a data URL contains. None for any other URL."""
    try:
        data = data_in(url)
    except ValueError:
        return None
    return text_of(data) if data is not None else None


def text_of(data: bytes) -> str:
    """Decode a file as UTF-8, or as UTF-16 if it has a byte order mark, as is common on Windows."""
    wide = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8", "replace")


def in_words(file: File, why: str = "cannot be shown here") -> str:
    """Return a line of text that replaces a file where it cannot be sent."""
    where = f" at {file.url}" if file.url and parse_data_url(file.url) is None else ""
    return f"[{file.name or 'a file'}, {file.media_type}{where}, {why}]"
