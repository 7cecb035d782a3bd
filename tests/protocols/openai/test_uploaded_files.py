"""OpenAI's Files API, by OpenAI's own SDK."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.server.auth import key_hash
from dragoman.wire.scripted import says
from tests.later import Later
from tests.protocols.openai.callers import MODEL, called, client_of
from tests.runtimes import model_of
from tests.server.site import SMALL, served

if TYPE_CHECKING:
    import openai
else:
    openai = Later("openai")

pytestmark = pytest.mark.slow
NOTES = ("notes.txt", b"Tea is at five.", "text/plain")


async def test_an_uploaded_file_is_used_by_its_id_and_deleted(tmp_path: Path) -> None:
    """F1: in both APIs. A message keeps what it contains."""
    async with called(tmp_path, [says("At five."), says("Five.")]) as (ai, site):
        file = await ai.files.create(file=NOTES, purpose="user_data")
        content: Any = [{"type": "input_file", "file_id": file.id}, {"type": "input_text", "text": "When?"}]
        answer = await ai.responses.create(model=MODEL, input=[{"role": "user", "content": content}])
        part: Any = [{"type": "file", "file": {"file_id": file.id}}, {"type": "text", "text": "When is tea?"}]
        await ai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": part}])
        assert [one.id async for one in ai.files.list()] == [file.id]
        assert (await ai.files.retrieve(file.id)).filename == "notes.txt"
        assert (await ai.files.content(file.id)).content == NOTES[1]
        assert (await ai.files.delete(file.id)).deleted
        for gone in (ai.files.retrieve(file.id), ai.files.content(file.id), ai.files.delete(file.id)):
            with pytest.raises(openai.NotFoundError):
                await gone
        with pytest.raises(openai.BadRequestError, match="Upload it"):
            await ai.responses.create(model=MODEL, input=[{"role": "user", "content": content}])
        sent: list[Any] = [request.messages[-1].parts[0] for request in model_of(site.runtime).requests]
        assert answer.output_text == "At five."
        assert [(one.name, one.media_type, one.size) for one in sent] == [("notes.txt", "text/plain", 15)] * 2
        assert await site.runtime.store.blob(sent[0].blob or "") == NOTES[1]


async def test_a_file_is_its_users_alone(tmp_path: Path) -> None:
    """U2: another user with its ID cannot read, use or delete it."""
    async with called(tmp_path, []) as (ai, site):
        file = await ai.files.create(file=NOTES, purpose="user_data")
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        content: Any = [{"type": "input_file", "file_id": file.id}]
        async with client_of(site, "key of ada") as ada:
            for asked in (
                ada.files.retrieve(file.id),
                ada.files.content(file.id),
                ada.files.delete(file.id),
                ada.responses.create(model=MODEL, input=[{"role": "user", "content": content}]),
            ):
                with pytest.raises(
                    (openai.NotFoundError, openai.BadRequestError), match=r"not found|Unknown"
                ):
                    await asked
            assert (await ada.files.list()).data == []
        assert (await ai.files.retrieve(file.id)).id == file.id


async def test_uploads_are_bounded_and_expire(tmp_path: Path) -> None:
    """A file, all files of a user, and their time: each refusal says what to do."""
    async with called(tmp_path, []) as (ai, site):
        with pytest.raises(openai.APIStatusError, match=f"at most {SMALL} bytes") as refused:
            await ai.files.create(file=("a.txt", bytes(SMALL + 1)), purpose="user_data")
        assert refused.value.status_code == 413
        times = [("created_at", 3599), ("created_at", 2_592_001), ("updated_at", 3600)]
        wrong: list[tuple[str, Any]] = [("file", ("a.txt", b"")), ("purpose", "fine-tune")]
        wrong += [("expires_after", {"anchor": anchor, "seconds": seconds}) for anchor, seconds in times]
        wrong += [("expires_after", {"anchor": "created_at"}), ("expires_after", {"seconds": 3600})]
        for field, value in wrong:
            given: Any = {"file": ("a.txt", b"x"), "purpose": "user_data", field: value}
            with pytest.raises(openai.BadRequestError) as refused:
                await ai.files.create(**given)
            assert refused.value.param == field
        with pytest.raises(openai.NotFoundError):
            await ai.files.list(after="file_x")
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.files.list(limit=0)
        assert refused.value.param == "limit"
        for n in range(50):
            await ai.files.create(file=(f"{n}.txt", bytes(SMALL)), purpose="user_data")
        with pytest.raises(openai.APIStatusError, match="Delete some"):
            await ai.files.create(file=("a.txt", b"x"), purpose="user_data")
        pages = [one.filename async for one in ai.files.list(limit=20, order="asc")]
        assert pages == [f"{n}.txt" for n in range(50)]
        last = (await ai.files.list(limit=1)).data[0]
        assert last.filename == "49.txt"
        await ai.files.delete(last.id)
        hour: Any = {"anchor": "created_at", "seconds": 3600}
        soon = await ai.files.create(file=("a.txt", b"x"), purpose="user_data", expires_after=hour)
        assert soon.expires_at == soon.created_at + 3600
        assert site.runtime.services.clock() < soon.expires_at


async def test_a_broken_form_is_refused_in_openais_form(tmp_path: Path) -> None:
    """F3: also one with eleven fields."""
    form = "multipart/form-data; boundary=x"
    field = b'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'
    wrong = (
        (b"{}", "application/json", 415, "JSON"),
        (b"--x\r\nnonsense", form, 400, "field 'file'"),
        (11 * field + b"--x--", form, 400, "fields is 10."),
    )
    async with served(tmp_path, []) as site:
        for body, kind, status, words in wrong:
            answer = await site.ask("POST", "/v1/files", body, headers={"content-type": kind})
            assert (answer.status, list(answer.body)) == (status, ["error"])
            message = answer.body["error"]["message"]
            assert (words in message, message.endswith("..")) == (True, False)
