"""Tests for every store: full-text search."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

from dragoman.conversation.tree import Conversation
from dragoman.messages.message import CallState, Text, ToolCall, ToolResult

from . import scene
from .suite import Suite


class SearchConformance(Suite):
    """Every script, every word, and no query that breaks it."""

    async def test_words_are_found_wherever_they_stand(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.written(
                store, "Das Wetter in Wien ist SCHÖN", "北京的天气很好", "go to Vienna by train", ""
            )
            for query, found in (
                ("wetter", [1]),
                ("schön", [1]),
                ("wien wetter", [1]),
                ("ette", [1]),
                ("天气", [2]),
                ("北京 天气", [2]),
                ("气很", [2]),
                ("Vienna go", [3]),
                ("by", [3]),
                ("BY", [3]),
                ("i", [1, 3]),
                ("wetter train", []),
                ("nowhere", []),
                ("", []),
                ("  ", []),
            ):
                hits = await store.search(query)
                assert sorted(str(hit.message) for hit in hits) == [f"msg_{n}" for n in found], query
            assert "Wetter" in (await store.search("wetter"))[0].snippet.replace("«", "").replace("»", "")
            assert "天气" in (await store.search("天气"))[0].snippet

    async def test_no_query_breaks_the_search(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.written(
                store, 'say "quoted" AND 100% (sure) NEAR/2 text:x it\'s; DROP TABLE messages -- *'
            )
            for query in (
                '"quoted"',
                '"quo',
                "AND 100%",
                "(sure)",
                "NEAR/2",
                "text:x",
                "it's;",
                "DROP TABLE",
                "-- *",
            ):
                assert len(await store.search(query)) == 1, query
            for query in (
                '""""',
                "\0",
                "a\0b\0c",
                "NOT",
                "^abc",
                "{a b}: c",
                "%%%",
                "___",
                "\\",
                "🎉🎉🎉",
                "x" * 5000,
                "".join(map(chr, range(0x4E00, 0x5E00))),
                "\ud83d",
            ):
                assert await store.search(query) == [], query

    async def test_what_came_and_went_since_the_last_search_counts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.written(store, "the first raven")
            assert len(await store.search("raven")) == 1
            await store.add_conversation(
                Conversation("conv_2", user="bob"), [scene.user("msg_7", None, "conv_2", text="a raven")]
            )
            assert len(await store.search("raven")) == 2
            assert [hit.conversation for hit in await store.search("raven", user="bob")] == ["conv_2"]
            assert len(await store.search("raven", limit=1)) == 1
            await store.delete_conversation("conv_2")
            assert [hit.message for hit in await store.search("raven")] == ["msg_1"]
            await store.delete_conversation("conv_1")
            assert await store.search("raven") == await store.search("av") == []

    async def test_titles_are_found_too(self, tmp_path: Path) -> None:
        """S1: as they are now, and once where a message says the same."""
        async with self.opened(tmp_path) as store:
            await scene.written(store, "about ravens")
            await store.add_conversation(Conversation("conv_2", title="Ravens and CROWS", user="ada"))
            await store.set_title("conv_1", "ravens")
            hits = await store.search("ravens")
            assert [(hit.conversation, hit.message) for hit in hits] == [
                ("conv_2", None),
                ("conv_1", "msg_1"),
            ]
            assert hits[0].snippet == "«Ravens» and CROWS"
            await store.set_title("conv_2", "Doves")
            assert [hit.conversation for hit in await store.search("do")] == ["conv_2"]
            assert [hit.conversation for hit in await store.search("crows")] == []
            assert await store.search("doves", user="bob") == []
            await store.delete_conversation("conv_2")
            assert await store.search("doves") == []

    async def test_arguments_and_results_of_calls_are_found(self, tmp_path: Path) -> None:
        """A search finds a call as soon as it has its result, and not while it waits for a user (S1)."""
        call = ToolCall("call_1", "read_file", {"path": "notes/Käse.txt", "lines": [17, {"from": "größer"}]})
        async with self.opened(tmp_path) as store:
            await scene.replied(store, Text("let me see"), call)
            reviewing = replace(call, state=CallState.REVIEWING)
            held = {"call_1": ToolResult("a secret Gouda")}
            await store.append("turn_1", 1, 3, scene.change("b", calls=[reviewing], held=held))
            assert await store.search("gouda") == []
            done = replace(call, state=CallState.COMPLETED, result=ToolResult('He said "Emmentaler"'))
            await store.append("turn_1", 1, 4, scene.change("c", calls=[done]))
            for query in ("käse.txt", "read_file", "emmentaler", '"Emmentaler"', "17", "GRÖßER", "txt emm"):
                assert [hit.message for hit in await store.search(query)] == ["msg_r1"], query
            assert await store.search("gouda") == []

    async def test_a_long_text_is_found_from_its_first_word_to_its_last(self, tmp_path: Path) -> None:
        """S1: once, and with no gap where a store may cut it."""
        words = [f"word{n:05}" for n in range(6_000)]
        async with self.opened(tmp_path) as store:
            await scene.written(store, " ".join(words))
            for n in (0, 1, 777, 888, 889, 1999, 3000, 5998):
                (hit,) = await store.search(f"{words[n]} {words[n + 1]}")
                assert hit.message == "msg_1"
                assert f"«{words[n]}»" in hit.snippet
            (hit,) = await store.search(words[500])
            assert hit.snippet.startswith(f"…{words[499]} «{words[500]}»")  # at the beginning of a word
            assert len(hit.snippet) < 300

    async def test_of_each_conversation_the_first_can_be_asked_for(self, tmp_path: Path) -> None:
        """S1: however often the others have the words."""
        async with self.opened(tmp_path) as store:
            await store.add_conversation(
                Conversation("conv_0", user="ada"), [scene.user("msg_old", None, "conv_0", text="a raven")]
            )
            await scene.written(store, *(f"a raven {n}" for n in range(30)))
            await store.add_conversation(Conversation("conv_2", title="ravens", user="ada"))
            for title, all_of_them in (
                ("", [None, "msg_30", "msg_old"]),
                ("raven", ["msg_old", None, "msg_30"]),
            ):
                await store.set_title("conv_0", title)
                for query, user in product(("raven", "ra", "a raven"), (None, "ada")):
                    found = await store.search(query, limit=3, distinct=True, user=user)
                    assert [hit.message for hit in found] == all_of_them, query
                    first = await store.search(query, limit=2, distinct=True, user=user)
                    assert [hit.conversation for hit in first] == [hit.conversation for hit in found[:2]]

    async def test_the_newest_are_found_first(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.written(store, *(f"a raven {n}" for n in range(30)))
            newest = [f"msg_{n}" for n in range(30, 25, -1)]
            for query, user in product(("raven", "ra", "a", "a 2", "raven ß"), (None, "ada")):
                hits = await store.search(query, limit=5, user=user)
                twenties = [f"msg_{n}" for n in range(30, 20, -1)][:5]
                expected = {"a 2": twenties, "raven ß": []}.get(query, newest)
                assert [hit.message for hit in hits] == expected, query
