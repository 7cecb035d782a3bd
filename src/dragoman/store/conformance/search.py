"""What a store promises of finding words again."""

from __future__ import annotations

from pathlib import Path

from dragoman.conversation.tree import Conversation
from dragoman.store.conformance import scene
from dragoman.store.conformance.suite import Suite


class Search(Suite):
    """Every script, every word, and no query that breaks it."""

    async def test_words_are_found_wherever_they_stand(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.said(
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
                assert sorted(hit.message for hit in hits) == [f"msg_{n}" for n in found], query
            assert "Wetter" in (await store.search("wetter"))[0].snippet.replace("«", "").replace("»", "")
            assert "天气" in (await store.search("天气"))[0].snippet

    async def test_no_query_breaks_the_search(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.said(
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
            ):
                assert await store.search(query) == [], query

    async def test_what_came_and_went_since_the_last_search_counts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await scene.said(store, "the first raven")
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
