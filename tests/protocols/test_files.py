"""Files of messages that come from other people's clients, by their addresses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.messages.message import File
from dragoman.server.auth import key_hash
from dragoman.wire.scripted import calls, says
from tests.runtimes import add, model_of
from tests.server.site import SMALL, served

FOREIGN = [
    "http://169.254.169.254/latest/meta-data",
    "HTTPS://pictures.example/a.png",
    "//pictures.example/a.png",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:no comma",
]
REFUSED = {
    **dict.fromkeys(FOREIGN, "The server fetches no other address"),
    "http://[": "has no valid URL",
    "data:image/png;base64,!!!": "is not valid base64",
    "data:image/png,": "is empty",
    f"data:image/png,{'x' * (SMALL + 1)}": f"is larger than {SMALL} bytes",
}


def ai_sdk(url: str) -> tuple[str, dict[str, Any]]:
    file = {"type": "file", "url": url, "mediaType": "image/png"}
    message = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Look."}, file]}
    return "/api/ai-sdk/chat", {"id": "a", "messages": [message]}


def ag_ui(url: str) -> tuple[str, dict[str, Any]]:
    source = {"type": "url", "value": url, "mimeType": "image/png"}
    content = [{"type": "text", "text": "Look."}, {"type": "image", "source": source}]
    return "/api/ag-ui", {
        "threadId": "a",
        "runId": "1",
        "messages": [{"id": "1", "role": "user", "content": content}],
    }


def ag_ui_before_1(url: str) -> tuple[str, dict[str, Any]]:
    path, body = ag_ui(url)
    coded = url.partition("base64,")[2]
    part = {"type": "binary", "mimeType": "image/png", **({"data": coded} if coded else {"url": url})}
    body["messages"][0]["content"][1] = part
    return path, body


async def test_a_part_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """No part is dropped silently (F3)."""
    path, body = ag_ui("data:,x")
    async with served(tmp_path, [says("I see.")]) as site:
        for part in ({"type": "binary", "mimeType": "image/png", "id": "upload_1"}, {"type": "video"}):
            body["messages"][0]["content"][1] = part
            answer = await site.ask("POST", path, body)
            assert (answer.status, answer.body["code"]) == (422, "client.part")
        assert await site.runtime.conversations() == []


@pytest.mark.parametrize("protocol", [ai_sdk, ag_ui, ag_ui_before_1])
async def test_an_address_of_another_place_is_refused_and_nothing_is_stored(
    tmp_path: Path, protocol: Any
) -> None:
    """The provider would fetch the address, and no rule has approved it. Bad data is refused, too (F3)."""
    async with served(tmp_path, [says("I see.")]) as site:
        for url, why in REFUSED.items():
            answer = await site.ask("POST", *protocol(url))
            assert answer.status == 422, (url, answer.body)
            assert why in answer.body["detail"], url
            assert await site.runtime.conversations() == [], url
            assert model_of(site.runtime).requests == [], url


@pytest.mark.parametrize("url", ["data:image/png;base64,aGVsbG8=", "DATA:;BASE64,aGVsbG8=", "data:,hello"])
@pytest.mark.parametrize("protocol", [ai_sdk, ag_ui, ag_ui_before_1])
async def test_a_file_in_its_own_address_is_stored(tmp_path: Path, protocol: Any, url: str) -> None:
    """This holds for any spelling of its address (M3)."""
    async with served(tmp_path, [says("I see.")]) as site:
        answer = await site.ask("POST", *protocol(url))
        assert answer.status == 200, answer.body
        (conversation,) = await site.runtime.conversations()
        (first, *_), _ = await site.runtime.store.messages(conversation.id)
        (file,) = first.files
        assert file.blob is not None
        assert await site.runtime.store.blob(file.blob) == b"hello"


@pytest.mark.parametrize(
    ("type", "stored"), [("image/png;x=1", "image/png"), ("image/png\r\nx: y", None), ("", None)]
)
@pytest.mark.parametrize("protocol", [ai_sdk, ag_ui])
async def test_a_file_of_this_server_has_a_type_as_any_other(
    tmp_path: Path, protocol: Any, type: str, stored: str | None
) -> None:
    """The type goes into requests and forms (M3 × F3)."""
    async with served(tmp_path, [says("I see.")]) as site:
        raw = {"content-type": "application/octet-stream"}
        file = await site.post("/api/files?name=a.png&type=image/png", b"0123456789", headers=raw)
        path, body = protocol(f"/api/files/{file['blob']}")
        answer = await site.ask(
            "POST", path, json.loads(json.dumps(body).replace("image/png", json.dumps(type)[1:-1]))
        )
        assert answer.status == (200 if stored else 422), answer.body
        sent = [part for request in model_of(site.runtime).requests for part in request.messages[0].parts]
        assert [part.media_type for part in sent if isinstance(part, File)] == ([stored] if stored else [])


@pytest.mark.parametrize("protocol", [ai_sdk, ag_ui])
async def test_a_file_of_another_person_is_not_found(tmp_path: Path, protocol: Any) -> None:
    """The address of a file alone does not give access (F3)."""
    async with served(tmp_path, [says("I see.")]) as site:
        raw = {"content-type": "application/octet-stream"}
        file = await site.post("/api/files?name=a.png&type=image/png", b"0123456789", headers=raw)
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = replace(site, key="key of ada")
        answer = await ada.ask("POST", *protocol(f"/api/files/{file['blob']}"))
        assert answer.status == 404, answer.body
        assert model_of(site.runtime).requests == []


async def test_a_question_of_another_person_is_not_answered_in_a_chat(tmp_path: Path) -> None:
    """F3 × P4: a chat can bring any id as an approval."""
    script = [calls("add", a=1, b=2), calls("add", a=3, b=4), says("Done."), says("Done.")]
    async with served(tmp_path, script, tools=[add], allow=()) as site:
        await site.say("Add.")
        theirs = await site.question()
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        ada = replace(site, key="key of ada")
        turn = await ada.say("Add.")
        mine = await ada.question()
        message = (await site.runtime.turn(turn).snapshot()).messages[-1]
        approval = {"id": theirs["id"], "approved": True}
        part = {
            "type": "dynamic-tool",
            "toolName": "add",
            "toolCallId": mine["call"],
            "state": "approval-responded",
            "input": {},
            "approval": approval,
        }
        own = {**part, "approval": {"id": mine["id"], "approved": True}}
        chat = {"id": "a", "messages": [{"id": message.id, "role": "assistant", "parts": [part, own]}]}
        assert (await ada.ask("POST", "/api/ai-sdk/chat", chat)).status == 200
        assert [question["id"] for question in (await site.get("/api/questions"))["items"]] == [theirs["id"]]
