"""Check that access to a file follows from what contains it, never from its hash (U2, S4), and where files
can be (U3)."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman import ToolContext, ToolOutput, tool
from dragoman.messages.message import CallState, File, Message, Text, ToolCall, ToolResult
from dragoman.messages.request import RequestMessage
from dragoman.server.auth import key_hash
from dragoman.wire.lowering import lower, result_files
from dragoman.wire.scripted import calls, says
from tests.server.site import Answer, Site, served

ADA = {"authorization": "Bearer key of ada"}
RAW = {"content-type": "application/octet-stream"}
slow = pytest.mark.slow


@tool
async def draw(context: ToolContext) -> ToolOutput:
    """Draw a picture."""
    picture = await context.put_file(b"a picture", "image/png", "a.png")
    return ToolOutput("long " * 20_000, attachments=(picture,))


async def with_ada(site: Site) -> None:
    await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)


async def upload(site: Site, data: bytes, **headers: str) -> dict[str, Any]:
    part: dict[str, Any] = await site.post("/api/files?type=image/png", data, headers={**RAW, **headers})
    return part


async def download(site: Site, blob: str, **headers: str) -> Answer:
    return await site.ask("GET", f"/api/files/{blob}", headers=headers)


@slow
async def test_a_file_is_for_who_uploaded_it_and_who_may_see_a_message_with_it(tmp_path: Path) -> None:
    """A user who only knows the hash gets the same answer as for a missing file (U2)."""
    async with served(tmp_path, [says("nice")]) as site:
        await with_ada(site)
        part = await upload(site, b"mine")
        blob = part["blob"]
        nowhere = await download(site, "0" * 64, **ADA)
        for _ in range(2):  # before anything holds it, and after
            assert (await download(site, blob)).body == b"mine"
            foreign = await download(site, blob, **ADA)
            assert foreign.status == nowhere.status == 404
            assert foreign.body["detail"].replace(blob, "0" * 64) == nowhere.body["detail"]
            id = await site.conversation()
            turn = (await site.post(f"/api/conversations/{id}/turns", {"parts": [part]}))["turn"]
            await site.until(f"/api/turns/{turn}/events", "turn.end")
        await upload(site, b"mine", **ADA)  # a user with the bytes can upload them
        assert (await download(site, blob, **ADA)).body == b"mine"


@slow
async def test_a_piece_of_a_file_can_be_asked_for(tmp_path: Path) -> None:
    """M3: as RFC 9110 says. An unknown unit asks for the whole."""
    async with served(tmp_path, []) as site:
        blob = (await upload(site, b"0123456789"))["blob"]
        for asked, given in {
            **{"bytes=0-": "0123456789", "bytes=0-0": "0", "bytes=2-4": "234", "bytes=9-": "9"},
            **{"bytes=-3": "789", "bytes=-11": "0123456789", "bytes=8-100": "89", "bytes=8-9": "89"},
        }.items():
            answer = await download(site, blob, range=asked)
            at = "0123456789".index(given)
            assert (answer.status, answer.body.decode()) == (206, given)
            assert answer.headers["content-range"] == f"bytes {at}-{at + len(given) - 1}/10"
            assert answer.headers["content-length"] == str(len(given))
        for asked in ("bytes=10-", "bytes=5-4", "bytes=-0"):
            answer = await download(site, blob, range=asked)
            assert (answer.status, answer.headers["content-range"]) == (416, "bytes */10")
        for asked in ("bytes=-", "items=0-1", "bytes=0-1,3-4", ""):
            answer = await download(site, blob, range=asked)
            assert (answer.status, answer.headers["content-length"]) == (200, "10")


@slow
async def test_a_browser_shows_only_what_is_no_page(tmp_path: Path) -> None:
    """M3, U2: everything else is saved under its name, with no type that a browser opens."""
    policies = {"pdf": "default-src 'none'; style-src 'unsafe-inline'"}
    async with served(tmp_path, []) as site:
        blob = (await upload(site, b"bytes"))["blob"]
        for type, shown in {
            **{"application/pdf": True, "image/png": True, "audio/mpeg": True, "video/mp4": True},
            **{"image/svg+xml": False, "text/html": False, "application/json": False},
        }.items():
            for more, inline in (("", shown), ("&download=true", False)):
                answer = await site.ask(
                    "GET", f"/api/files/{blob}?type={type.replace('+', '%2B')}{more}&name=a%20b"
                )
                how = "inline" if inline else "attachment"
                assert answer.headers["content-disposition"] == f"{how}; filename*=UTF-8''a%20b"
                assert answer.headers["content-type"] == (type if inline else "application/octet-stream")
                policy = policies.get(type[-3:] if inline else "", "sandbox; default-src 'none'")
                assert answer.headers["content-security-policy"] == policy
        assert (await download(site, blob)).headers["content-disposition"] == "attachment"
        assert (await download(site, "x" * 64)).status == 404


@slow
async def test_nobody_gets_a_file_by_naming_it(tmp_path: Path) -> None:
    """This holds in a message, an edit or an import. Values can contain any text, so they grant nothing
    either (U2)."""
    async with served(tmp_path, [calls("draw"), says("x"), says("y")], tools=[draw]) as site:
        await with_ada(site)
        part = await upload(site, b"mine")
        blob = part["blob"]
        id = (await site.post("/api/conversations", headers=ADA))["id"]
        send = f"/api/conversations/{id}/turns"
        answer = await site.ask("POST", send, {"parts": [part]}, headers=ADA)
        assert answer.status == 404
        options = {"text": "hi", "options": {"metadata": {"type": "file", "media_type": "a/b", "blob": blob}}}
        begun = await site.ask("POST", send, options, headers=ADA)
        assert (await download(site, blob, **ADA)).status == 404
        if begun.status == 202:
            events = f"/api/turns/{begun.body['turn']}/events"
            assert (await site.ask("GET", events, headers=ADA)).status == 200
            message = begun.body["message"]
            edit = await site.ask("POST", f"/api/messages/{message}/edit", {"parts": [part]}, headers=ADA)
            assert edit.status == 404
            export = await site.get(f"/api/conversations/{id}/export", headers=ADA)
            export["messages"][0]["parts"].append(part)
            made = await site.post("/api/import", export, headers=ADA)
            assert (await download(site, blob, **ADA)).status == 404
            assert (await site.get(f"/api/conversations/{made['id']}/tree", headers=ADA))["messages"]


@slow
async def test_an_import_that_brings_its_files_can_be_read_by_who_imports_it(tmp_path: Path) -> None:
    """S1, U2: and so can what a tool made, and the whole of a long output."""
    async with served(tmp_path, [calls("draw"), says("done")], tools=[draw]) as site:
        await with_ada(site)
        id = await site.conversation()
        turn = await site.say("draw", id)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        picture = hashlib.sha256(b"a picture").hexdigest()
        output = hashlib.sha256(("long " * 20_000).encode()).hexdigest()
        for blob in (picture, output):
            assert (await download(site, blob)).status == 200
            assert (await download(site, blob, **ADA)).status == 404
        export = await site.get(f"/api/conversations/{id}/export")
        await site.post("/api/import", export, headers=ADA)
        for blob in (picture, output):
            assert (await download(site, blob, **ADA)).status == 200
        await site.ask("DELETE", f"/api/conversations/{id}")
        assert (await download(site, picture)).status == 404
        assert (await download(site, picture, **ADA)).status == 200


ADDRESSES = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "file:///etc/passwd",
    "ftp://example.org/a",
    "vbscript:x",
    "about:blank",
    "//example.org/a",
    "/api/files",
    "https://",
    "https:example.org",
    "https://example.org/a b",
    "",
]


@slow
async def test_a_file_is_on_the_web_or_in_its_address(tmp_path: Path) -> None:
    """Files that a browser would run or a provider would read from its disk are refused on input (U3)."""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        turn = await site.say("hi", id)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        export = await site.get(f"/api/conversations/{id}/export")
        parts = export["messages"][0]["parts"]
        for url in ADDRESSES:
            part = {"type": "file", "media_type": "image/png", "url": url}
            refused = await site.ask("POST", f"/api/conversations/{id}/turns", {"parts": [part]})
            assert refused.status == 422, url
            export["messages"][0]["parts"] = [*parts, part]
            assert (await site.ask("POST", "/api/import", export)).status == 422, url
        good = {**part, "url": "https://example.org/a.png?b=c#d"}
        assert (await site.ask("POST", f"/api/conversations/{id}/turns", {"parts": [good]})).status == 202


@pytest.mark.parametrize("url", [url for url in ADDRESSES if url])
def test_no_provider_is_sent_an_address_that_is_none(url: str) -> None:
    """U3: also where an older version has stored it, or a tool brought it back."""
    file = File("image/png", url=url, name="a.png")
    (sent,) = lower([RequestMessage("user", (Text("look"), file))])
    assert not any(isinstance(part, File) for part in sent.parts)
    assert url not in str(sent)
    call = ToolCall("c", "t", state=CallState.COMPLETED, result=ToolResult("x", attachments=(file,)))
    assert result_files(call) == ()
    stored = ToolResult("x", attachments=(File("a/b", blob="b"),))
    assert result_files(replace(call, result=stored)) == stored.attachments


@slow
async def test_a_message_of_somebody_else_is_answered_like_one_that_is_nowhere(tmp_path: Path) -> None:
    """This holds on every route that names a message (U2)."""
    async with served(tmp_path, [says("x")]) as site:
        await with_ada(site)
        turn = await site.say("mine")
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        message = (await site.get(f"/api/turns/{turn}"))["message"]
        id = (await site.post("/api/conversations", headers=ADA))["id"]
        for method, path, body in (
            ("POST", f"/api/conversations/{id}/turns", {"text": "hi", "parent": "MESSAGE"}),
            ("POST", f"/api/conversations/{id}/fork", {"message": "MESSAGE"}),
            ("PATCH", f"/api/conversations/{id}", {"leaf": "MESSAGE"}),
            ("POST", "/api/messages/MESSAGE/edit", {"text": "x"}),
            ("POST", "/api/messages/MESSAGE/rerun", {}),
        ):
            answers = []
            for name in (message, "msg_0000000000000000"):
                filled = {key: value.replace("MESSAGE", name) for key, value in body.items()}
                answer = await site.ask(method, path.replace("MESSAGE", name), filled, headers=ADA)
                answers.append((answer.status, str(answer.body).replace(name, "MESSAGE")))
            assert answers[0] == answers[1], path
            assert answers[0][0] in (404, 422)


def test_every_message_is_what_it_was_without_files() -> None:
    """S1"""
    message = Message("m", "c", None, "user", (Text("hi"),))
    (sent,) = lower([RequestMessage("user", message.parts)])
    assert sent.parts == message.parts


@slow
async def test_who_goes_in_the_middle_of_an_upload_leaves_nothing_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server does not log an interrupted upload as an error, because it is not a server fault
    (U1, S4)."""
    async with served(tmp_path, []) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
        head = f"POST /api/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.key}\r\n"
        writer.write(f"{head}Content-Type: {RAW['content-type']}\r\nContent-Length: 9\r\n\r\nhalf".encode())
        writer.write_eof()
        await reader.read()
        writer.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    blobs = tmp_path / "chat.db.files" / "blobs"
    assert [path for path in blobs.rglob("*") if path.is_file()] == []
