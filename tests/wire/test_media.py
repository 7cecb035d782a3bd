"""Detect an attachment's type, and check each wire's form for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.messages.media import is_text, media_type, modality
from dragoman.messages.message import CallState, File, Text, ToolCall, ToolResult
from dragoman.messages.request import Request, RequestMessage
from dragoman.providers.wires import WIRES
from dragoman.wire.files.file_parts import Attachments, without_files

BLOB = "blob_1"
ATTACHMENTS = Attachments({BLOB: "AAAA"}, {BLOB: "the text of it"})

TEXTS = [
    File("text/plain"),
    File("text/csv; charset=utf-8"),
    File("TEXT/HTML"),
    File("application/json"),
    File("application/vnd.api+json"),
    File("application/xml"),
    File("image/svg+xml"),
    File("application/x-yaml"),
    File("application/toml"),
    File("application/javascript"),
    File("application/x-sh"),
    File("application/octet-stream", name="main.rs"),
    File("", name="Makefile"),
    File("video/mp2t", name="index.ts"),
    File("message/rfc822"),
]
OTHERS = [
    (File("image/png"), "image"),
    (File("image/bmp"), "image"),
    (File("image/tiff"), "image"),
    (File("audio/wav"), "audio"),
    (File("video/mp4"), "video"),
    (File("application/pdf"), "file"),
    (File("application/zip"), "file"),
    (File("application/octet-stream", name="data.bin"), "file"),
    (File("font/woff2"), "file"),
]
POISON = [
    *(
        "image/bmp",
        "image/tiff",
        "image/x-icon",
        "image/vnd.adobe.photoshop",
        "image/avif",
        "image/unheard-of",
    ),
    *("application/zip", "application/x-tar", "application/octet-stream", "application/x-msdownload"),
    *("font/woff2", "model/stl", "chemical/x-pdb", "audio/midi", "audio/unheard-of", "video/unheard-of", ""),
]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: f"{file.media_type} {file.name or ''}")
def test_what_is_text_is_text_whatever_it_is_called(file: File) -> None:
    """M2"""
    assert (is_text(file), modality(file)) == (True, "text")


@pytest.mark.parametrize(("file", "kind"), OTHERS, ids=lambda one: getattr(one, "media_type", one))
def test_what_is_not_text_has_a_kind(file: File, kind: str) -> None:
    """M2"""
    assert (is_text(file), modality(file)) == (False, kind)


def test_a_type_has_one_spelling() -> None:
    """A data: URL's own type counts (M2)."""
    spelled = ("image/JPG", "image/pjpeg", " image/jpeg ; q=1")
    assert {media_type(File(one)) for one in spelled} == {"image/jpeg"}
    assert media_type(File("image/png", url="data:image/svg+xml;base64,PHN2Zy8+")) == "image/svg+xml"


def written(wire: str, file: File) -> str:
    request = Request("acme/m", (RequestMessage("user", (Text("Look:"), file)),))
    return json.dumps(WIRES[wire]().encode(request, ATTACHMENTS), ensure_ascii=False)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("file", TEXTS, ids=lambda file: f"{file.media_type} {file.name or ''}")
def test_text_is_sent_as_text(wire: str, file: File) -> None:
    """M2: over every wire."""
    sent = written(wire, File(file.media_type, blob=BLOB, name=file.name))
    assert "the text of it" in sent
    assert "AAAA" not in sent


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("type", POISON)
def test_what_nobody_can_read_is_a_line_of_text(wire: str, type: str) -> None:
    """M2: no body holds what its provider refuses for ever."""
    sent = written(wire, File(type, blob=BLOB, name="thing"))
    assert "cannot be shown here" in sent
    assert "AAAA" not in sent


@pytest.mark.parametrize("wire", WIRES)
def test_a_file_that_is_nowhere_is_a_line_of_text(wire: str) -> None:
    """M2"""
    assert "cannot be shown here" in written(wire, File("image/png"))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("url", ["data:text/plain;base64,SGVsbG8h", "data:text/plain,Hello%21"])
def test_text_inside_an_address_is_sent_as_text(wire: str, url: str) -> None:
    """M2"""
    assert "Hello!" in written(wire, File("text/plain", url=url))


def test_sound_goes_only_where_there_is_a_place_for_it() -> None:
    """M2: the Responses API has none."""
    sound = File("audio/mp3", blob=BLOB, name="hello.mp3")
    carried = {wire: "AAAA" in written(wire, sound) for wire in WIRES}
    assert carried == {
        "openai_chat": True,
        "openai_responses": False,
        "anthropic_messages": False,
        "gemini": True,
        "bedrock_converse": True,
    }


def test_a_document_goes_where_it_is_read() -> None:
    """M2"""
    word = File("application/vnd.openxmlformats-officedocument.wordprocessingml.document", blob=BLOB)
    assert [wire for wire in WIRES if "AAAA" in written(wire, word)] == [
        "openai_responses",
        "bedrock_converse",
    ]
    assert all("AAAA" in written(wire, File("application/pdf", blob=BLOB)) for wire in WIRES)


def test_files_that_a_model_cannot_take_become_lines_in_their_place() -> None:
    """The line replaces files in messages and in results, and the remaining text stays (M2)."""
    picture, note = File("image/png", blob=BLOB, name="cat.png"), File("text/plain", blob=BLOB)
    result = ToolResult("drawn", attachments=(picture, note), note="A person changed it.")
    call = ToolCall("c", "draw", state=CallState.COMPLETED, result=result)
    request = Request(
        "acme/m",
        (RequestMessage("user", (Text("Look:"), picture)), RequestMessage("assistant", (call,))),
    )
    said, did = without_files(request, lambda file: modality(file) == "image", "unseen").messages
    assert said.parts == (Text("Look:"), Text("[cat.png, image/png, unseen]"))
    (left,) = did.parts
    assert isinstance(left, ToolCall)
    assert left.result is not None
    assert (left.result.attachments, left.result.note) == (
        (note,),
        "A person changed it.\n[cat.png, image/png, unseen]",
    )


def test_a_request_without_such_files_is_left_alone() -> None:
    """M2"""
    request = Request("acme/m", (RequestMessage("user", (Text("Hi"),)),))
    nothing: Any = without_files(request, lambda file: True, "unseen")
    assert nothing is request
