"""Tests for every store: attachments, and exported and imported conversations."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.conversation.tree import Tree
from dragoman.errors import BadRequest, NotFound
from dragoman.messages.message import CallState, File, Summary, ToolCall, ToolResult
from dragoman.messages.usage import Usage
from dragoman.store.transfer import export_conversation, import_conversation

from . import scene
from .scene import refused
from .suite import Suite


class TransferConformance(Suite):
    """Blobs with their own names can move together with every row that names them."""

    async def test_bytes_are_stored_under_their_own_name(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            keys = [await store.put_blob(data) for data in (b"", b"\0\xff", b"x" * 100_000, b"\0\xff")]
            assert keys[1] == keys[3] == hashlib.sha256(b"\0\xff").hexdigest()
            same = await asyncio.gather(*(store.put_blob(b"at once") for _ in range(5)))
            assert len(set(same)) == 1
        async with self.opened(tmp_path) as store:
            assert [await store.blob(key) for key in keys[:3]] == [b"", b"\0\xff", b"x" * 100_000]
            for wrong in ("", "0" * 64, "../../secret", "/etc/passwd", keys[0].upper(), keys[0] + "\n"):
                with refused(NotFound, "blob"):
                    await store.blob(wrong)

    async def test_a_conversation_moves_to_another_store_with_everything(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path / "one") as one, self.opened(tmp_path / "other") as other:
            long, picture = await one.put_blob(b"a long output"), await one.put_blob(b"a picture")
            result = ToolResult(
                "a … t", blob=long, attachments=(File("image/png", blob=picture),), note="edited"
            )
            call = ToolCall("call_1", "add", {"a": None}, state=CallState.COMPLETED, result=result)
            messages = [
                scene.user("msg_1"),
                scene.reply("msg_2", "msg_1", call, turn="turn_1"),
                scene.reply("msg_3", "msg_1", *scene.every_part("other"), turn="turn_2"),
                scene.user(
                    "msg_4", "msg_2", parts=(Summary("so far", "msg_2"), File("text/plain", blob="0" * 64))
                ),
            ]
            known = replace(
                scene.CONVERSATION,
                title="T",
                leaf="msg_2",
                settings={"system": "Be brief."},
                usage=Usage(3, cost=0.5),
            )
            await one.add_conversation(known, messages)
            id = await import_conversation(
                other, await export_conversation(one, "conv_1"), user="bob", now=9.0
            )
            copy = await other.conversation(id)
            assert (copy.title, copy.user, copy.settings, copy.usage) == (
                "T",
                "bob",
                known.settings,
                known.usage,
            )
            assert (copy.created, copy.updated) == (known.created, 9.0)
            moved, _ = await other.messages(id)
            lost = moved[3].parts[1]
            assert isinstance(lost, File)
            # the bytes did not come along: a store that has the same bytes keeps them
            with refused(NotFound):
                await other.blob(lost.blob or "")
            moved[3] = replace(moved[3], parts=(moved[3].parts[0], replace(lost, blob="0" * 64)))
            assert [scene.shape(messages, m) for m in messages] == [scene.shape(moved, m) for m in moved]
            assert copy.leaf == moved[1].id
            assert Tree(moved).versions(moved[1].id) == [moved[1].id, moved[2].id]
            assert moved[1].calls[0] == replace(call, id=moved[1].calls[0].id)
            assert await other.blob(long) == b"a long output"
            assert await other.blob(picture) == b"a picture"
            again = await import_conversation(other, await export_conversation(other, id), user=None, now=9.0)
            repeated = [scene.shape(*pair) for pair in await scene.pairs(other, again)]
            assert [scene.shape(moved, m) for m in moved[:3]] == repeated[:3]

    async def test_a_damaged_export_is_refused_and_nothing_is_stored(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path / "one") as one, self.opened(tmp_path / "other") as other:
            key = await one.put_blob(b"bytes")
            files = (File("a/b", blob=key),)
            reply = scene.reply("msg_2", "msg_1", ToolCall("call_1", "add"))
            await one.add_conversation(
                replace(scene.CONVERSATION, leaf="msg_2"), [scene.user("msg_1", parts=files), reply]
            )
            good: Any = await export_conversation(one, "conv_1")
            first, second = good["messages"]
            lost = {**second, "parent": "nowhere"}
            settled = {**second, "parts": [{**second["parts"][0], "state": "completed"}]}
            damages: tuple[dict[str, Any], ...] = (
                {"format": "another/1"},
                {"conversation": None},
                {"conversation": {**good["conversation"], "leaf": "nowhere"}},
                {"messages": None},
                {"messages": [first, {**second, "role": "system"}]},
                {"messages": [first, lost]},
                {"messages": [second, first]},
                {"messages": [first, second, {**first, "parent": "msg_2"}]},
                {"messages": [first, {**second, "parts": [{"type": "song"}]}]},
                {"messages": [first, settled]},
                {"blobs": {key: "Ynl0ZX"}},
                {"blobs": {key: "!!!"}},
                {"blobs": {key: "b3RoZXI="}},
                {"blobs": {key: good["blobs"][key], "0" * 64: "b3RoZXI="}},
            )
            for damage in damages:
                with refused(BadRequest):
                    await import_conversation(other, {**good, **damage}, user=None, now=1.0)
                assert await other.conversations() == []
                for blob in (key, hashlib.sha256(b"other").hexdigest()):
                    with refused(NotFound):
                        await other.blob(blob)
            assert await import_conversation(other, good, user=None, now=1.0)
