"""Check what the web UI needs besides turns: rules, file names, compressed assets, lists of models."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from dragoman import Runtime, tool
from dragoman.messages.questions import Grant, Rule
from dragoman.providers.catalog import load_catalog
from dragoman.providers.models import Models
from dragoman.server.page import BUILT
from dragoman.tools.builtin import shell_group
from dragoman.tools.permissions import parse_rule
from dragoman.turn.api.approvals import calls_covered_by
from dragoman.wire.scripted import calls, says
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.runtimes import calls_of, runtime_with
from tests.server.site import Site, served, serving


async def test_rules_are_listed_with_their_origin_and_tried_out(tmp_path: Path) -> None:
    """P11"""
    async with served(tmp_path, [says("x")], allow=["shell:git *"], deny=["shell:git push *"]) as site:
        rules = [line["rule"] for line in (await site.get("/api/rules"))["items"]]
        assert {"permission": "shell", "pattern": "git *", "action": "allow"}.items() <= rules[-2].items()
        for pattern, action in (("git status", "allow"), ("git push -f", "deny"), ("rm -rf /", "ask")):
            path = f"/api/rules/decision?permission=shell&pattern={pattern}"
            assert (await site.get(path))["action"] == action
        assert (await site.get("/api/rules/decision?permission=web"))["rule"] is None
        groups = (await site.get("/api/tools"))["groups"]
        assert all(tool["ruled"] is not None for group in groups for tool in group["tools"])


async def test_rules_are_tried_out_as_they_decide(tmp_path: Path) -> None:
    """No grant overrides a denial, not even an earlier grant, and an expired grant has no effect (P9
    x P11)."""
    now = time.time()
    async with served(tmp_path, [says("x")], allow=(), deny=["shell:rm *"]) as site:
        for place, (pattern, action, expires) in enumerate(
            [
                ("git push", "deny", None),
                ("git *", "allow", None),
                ("rm a", "allow", None),
                ("ls", "allow", now - 1),
            ]
        ):
            rule = Rule("shell", pattern, action)  # type: ignore[arg-type]  # one of the two
            grant = Grant(f"grant_{place}", rule, None, now + place, expires=expires)
            await site.runtime.store.add_grant(grant)
        for pattern, action in (
            ("git push", "deny"),
            ("git status", "allow"),
            ("rm a", "deny"),
            ("ls", "ask"),
        ):
            path = f"/api/rules/decision?permission=shell&pattern={pattern}"
            assert (await site.get(path))["action"] == action


async def test_what_a_rule_would_have_covered_is_told_before_it_is_made(tmp_path: Path) -> None:
    """Only conversations of the user count, and each touched object is listed once (P11)."""
    lines = ("git status", "git log", "git status", "ls")
    first, *others = [calls("shell", command=line) for line in lines]
    script = [sum(others, first), says("ok")]
    async with served(tmp_path, script, tools=[shell_group()], allow=["shell"], workspace=tmp_path) as site:
        turn = await site.say("look")
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        found = await site.get("/api/rules/covered?rule=shell:git%20*")
        assert (found["looked_at"], found["covered"]) == (4, 3)
        assert sorted(call["patterns"] for call in found["calls"]) == [["git log"], ["git status"]]
        assert (await site.get("/api/rules/covered?rule=shell:ls&rule=shell:git%20*"))["covered"] == 4
        assert (await site.get("/api/rules/covered?rule=files.*:git*"))["covered"] == 0
        for wrong in ("", "?rule=", "?rule=:x", f"?rule={'x' * 3000}"):
            assert (await site.ask("GET", f"/api/rules/covered{wrong}")).status == 422, wrong


async def test_what_waits_and_a_rule_would_let_run_is_told_before_it_is_made(tmp_path: Path) -> None:
    """The rule is checked against approval requests of all conversations, and an allowed one states for how
    long (P9, P11)."""
    script = [calls("shell", command=line) for line in ("echo one", "echo two", "ls")]
    async with served(
        tmp_path, [*script, *[says("ok")] * 3], tools=[shell_group()], allow=(), workspace=tmp_path
    ) as site:
        for text in ("a", "b", "c"):
            turn = await site.say(text)
            await site.until(f"/api/turns/{turn}/events", "call.asked")
        found = await site.get("/api/rules/covered?rule=shell:echo%20*")
        assert sorted(call["patterns"] for call in found["waiting"]) == [["echo one"], ["echo two"]]
        first, *rest = (await site.get("/api/questions"))["items"]
        assert (await site.get(f"/api/questions?after={first['id']}"))["items"] == rest
        assert (await site.get("/api/questions?after=question_none"))["items"] == []
        asked = {one["patterns"][0]: one for one in (await site.get("/api/questions"))["items"]}
        wide = {"permission": "shell", "pattern": "echo *", "action": "allow"}
        answer = {"verdict": "allow", "scope": "hour", "rules": [wide]}
        await site.post(f"/api/questions/{asked['echo one']['id']}/answer", answer)
        other = await site.get(f"/api/questions/{asked['echo two']['id']}")
        assert (other["answer"]["verdict"], other["answer"]["scope"]) == ("allow", "hour")
        assert (await site.get("/api/rules/covered?rule=shell:*"))["waiting"][0]["patterns"] == ["ls"]


async def test_a_rule_is_given_before_anybody_asks(tmp_path: Path) -> None:
    """A rule settles waiting calls, applies afterwards, expires, can be removed, and overrides no denial (P9,
    P11)."""
    lines = ("echo one", "echo two", "ls", "rm a")
    script = [one for line in lines for one in (calls("shell", command=line), says("ok"))]
    async with served(
        tmp_path, script, tools=[shell_group()], allow=(), deny=["shell:rm *"], workspace=tmp_path
    ) as site:
        turn = await site.say("a")
        await site.until(f"/api/turns/{turn}/events", "call.asked")
        made = await site.post("/api/grants", {"permission": "shell", "pattern": " echo * "})
        assert (made["rule"]["pattern"], made["expires"]) == ("echo *", None)
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (await site.get("/api/questions"))["items"] == []
        await site.post("/api/grants", {"permission": "shell", "pattern": "ls", "action": "deny"})
        hour = {"permission": "shell", "pattern": "rm *", "scope": "hour"}
        assert (await site.post("/api/grants", hour))["expires"] > time.time() + 3000
        turns = [await site.say(text) for text in ("b", "c", "d")]
        ended = [await site.runtime.turn(turn).result() for turn in turns]
        states = [call.state for one in ended for call in calls_of(one.messages)]
        assert states == ["completed", "rejected", "rejected"]
        for grant in (await site.get("/api/grants"))["items"]:
            assert (await site.ask("DELETE", f"/api/grants/{grant['id']}")).status == 204
        assert (await site.get("/api/rules/decision?permission=shell&pattern=echo%20x"))["action"] == "ask"
        for wrong in (
            {},
            {"permission": ""},
            {"permission": "she ll"},
            {"permission": "shell:ls"},
            {"permission": "shell", "pattern": " "},
            {"permission": "shell", "action": "ask"},
            {"permission": "shell", "scope": "once"},
        ):
            assert (await site.ask("POST", "/api/grants", wrong)).status == 422, wrong


async def test_a_rule_that_allows_holds_in_the_servers_own_folder(tmp_path: Path) -> None:
    """The rule settles exactly the announced calls, and the list and the trial name its folder (P9, P11)."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    script = [*[calls("shell", command="ls")] * 2, *[says("ok")] * 2]
    async with served(
        tmp_path, script, tools=[shell_group()], allow=(), workspace=here, workspaces={"site": there}
    ) as site:
        mine, other = [await site.conversation() for _ in range(2)]
        await site.ask("PATCH", f"/api/conversations/{other}", {"settings": {"workspace": "site"}})
        turns = [await site.say("go", id) for id in (mine, other)]
        for turn in turns:
            await site.until(f"/api/turns/{turn}/events", "call.asked")
        found = await site.get("/api/rules/covered?rule=shell:ls")
        assert [call["conversation"] for call in found["waiting"]] == [mine]
        assert (await site.post("/api/grants", {"permission": "shell", "pattern": "ls"}))["folder"] == "here"
        await site.until(f"/api/turns/{turns[0]}/events", "turn.end")
        (left,) = (await site.get("/api/questions"))["items"]
        assert left["conversation"] == other
        trial = "/api/rules/decision?permission=shell&pattern=ls"
        tried = [(await site.get(f"{trial}{more}"))["action"] for more in ("", f"&conversation={other}")]
        assert tried == ["allow", "ask"]
        denied = await site.post("/api/grants", {"permission": "shell", "pattern": "ls", "action": "deny"})
        assert denied["folder"] is None
        await site.until(f"/api/turns/{turns[1]}/events", "turn.end")


async def test_rules_that_are_made_to_be_slow_are_not_tried_on_everything(tmp_path: Path) -> None:
    """The answer states how many calls were checked (P11 × S2)."""

    @tool(pattern="text")
    def note(text: str) -> str:
        """Note."""
        return "noted"

    script = [calls("note", text="a" * 20_000) + calls("note", text="a"), says("ok")]
    async with runtime_with(tmp_path, script, tools=[note], allow=["note"]) as runtime:
        await (await runtime.send("go")).result()
        slow = [parse_rule(f"note:*{'a' * 2000}{n}", "allow") for n in range(20)]
        for rules, looked_at, covered in ((slow, 1, 0), ([parse_rule("note", "allow")], 2, 2)):
            found = await calls_covered_by(runtime.services, rules, user=None)
            assert (found.looked_at, found.covered) == (looked_at, covered)


@pytest.mark.parametrize(
    ("title", "plain", "encoded"),
    [
        ("Plan a trip", "Plan a trip.md", "Plan%20a%20trip.md"),
        ('a/b\\c"; x=\r\ny', "a b c x y.md", "a%20b%20c%20x%20y.md"),
        ("京都旅行", None, "%E4%BA%AC%E9%83%BD%E6%97%85%E8%A1%8C.md"),
        ("..", None, None),
    ],
)
async def test_an_export_is_named_after_its_title(
    tmp_path: Path, title: str, plain: str | None, encoded: str | None
) -> None:
    """The name is safe whatever the title contains (S7)."""
    async with served(tmp_path, [says("x")]) as site:
        id = await site.conversation()
        await site.ask("PATCH", f"/api/conversations/{id}", {"title": title})
        answer = await site.ask("GET", f"/api/conversations/{id}/export?format=markdown")
        named = answer.headers["content-disposition"]
        assert f'filename="{plain or f"{id}.md"}"' in named
        assert f"filename*=UTF-8''{encoded or f'{id}.md'}" in named


async def test_a_search_tells_in_which_message_it_found_the_words(tmp_path: Path) -> None:
    """S1"""
    async with served(tmp_path, [says("the payroll is here")]) as site:
        turn = await site.say("where is it?")
        id = (await site.get(f"/api/turns/{turn}"))["conversation"]
        await site.ask("PATCH", f"/api/conversations/{id}", {"title": "Wages"})
        await site.runtime.turn(turn).result()
        (found,) = (await site.get("/api/conversations?search=payroll"))["items"]
        told = {message["id"] for message in (await site.get(f"/api/conversations/{id}/tree"))["messages"]}
        assert found["found"] in told
        (by_title,) = (await site.get("/api/conversations?search=Wages"))["items"]
        assert by_title["found"] is None


@pytest.mark.skipif(not (BUILT / "index.html").exists(), reason="the page is not built")
async def test_what_the_page_is_made_of_is_sent_packed_and_kept_for_ever(tmp_path: Path) -> None:
    """U3"""
    script = next(file for file in (BUILT / "assets").glob("index-*.js"))
    async with served(tmp_path, [says("x")]) as site:
        for encoding, packed in (("gzip", True), ("identity", False)):
            async with site.http.get(
                f"{site.url}/assets/{script.name}", headers={"accept-encoding": encoding}
            ) as response:
                assert response.headers.get("content-encoding") == ("gzip" if packed else None)
                assert "javascript" in response.headers["content-type"]
                assert "immutable" in response.headers["cache-control"]
                assert await response.read() == script.read_bytes()
        both = Request(f"{site.url}/assets/{script.name}", headers={"accept-encoding": "gzip, br"})
        encoding, size = await asyncio.to_thread(_encoding_and_size, both)
        assert encoding == "br"
        assert size < script.stat().st_size / 2
        icon = await site.ask("GET", "/assets/icon.svg")
        assert icon.headers["cache-control"] == "no-cache"
    assert gzip.decompress(script.with_name(f"{script.name}.gz").read_bytes()) == script.read_bytes()


async def test_a_provider_is_asked_for_its_own_list_of_models(tmp_path: Path) -> None:
    """R1"""
    async with loopback(says("x"), models=["tiny", "large"]) as provider:
        table = tmp_path / "catalog.toml"
        mine = f'[providers.mine]\nbase_url = "{provider.url}"\nlocal = true\n'
        theirs = f'[providers.theirs]\nbase_url = "{provider.url}"\nkeys = "KEY_OF_NOBODY"\n'
        table.write_text(mine + theirs, "utf-8")
        async with (
            Models("mine/tiny", catalog=load_catalog(table)) as models,
            Runtime(tmp_path / "chat.db", model=models) as runtime,
            serving(tmp_path, runtime) as site,
        ):
            names = [model["name"] for model in (await site.get("/api/models/mine"))["items"]]
            assert names == ["mine/large", "mine/tiny"]
            listed = {one["name"]: one for one in (await site.get("/api/models"))["providers"]}
            ready = await site.get("/api/models?ready=true")
            assert {"mine/tiny"} <= {one["name"] for one in ready["items"] if one["ready"]}
            assert [one["ready"] for one in ready["items"]] == [True] * len(ready["items"])
            assert {one["name"] for one in ready["providers"]} == {
                n for n, one in listed.items() if one["ready"]
            }
            assert (listed["mine"]["ready"], listed["mine"]["missing"]) == (True, None)
            assert [listed[name]["local"] for name in ("ollama", "local", "openai")] == [True, True, False]
            assert listed["theirs"]["ready"] is False
            assert "KEY_OF_NOBODY" in listed["theirs"]["missing"]
            assert (await site.ask("GET", "/api/models/nobody")).status == 404
    async with serving_nobody(tmp_path) as site:
        refused = await site.ask("GET", "/api/models/mine")
        assert (refused.status, refused.body["detail"].startswith("mine: ")) == (422, True)
        refused = await site.ask("GET", "/api/models/openai")
        assert (refused.status, refused.body["detail"].startswith("OpenAI: ")) == (422, True)


@asynccontextmanager
async def serving_nobody(folder: Path) -> AsyncIterator[Site]:
    """A site whose provider has gone."""
    async with (
        Models("mine/tiny", catalog=load_catalog(folder / "catalog.toml")) as models,
        Runtime(folder / "other.db", model=models) as runtime,
        serving(folder, runtime) as site,
    ):
        yield site


async def test_answers_of_the_api_are_packed_and_files_keep_their_length(tmp_path: Path) -> None:
    """U1"""
    async with served(tmp_path, [says("x")]) as site:
        key = {"authorization": f"Bearer {site.key}"}
        async with site.http.get(f"{site.url}/api/openapi.json", headers=key) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            assert (await answer.json())["info"]["title"] == "Dragoman"
        data = b"a" * 10_000
        kind = {**key, "content-type": "application/octet-stream"}
        async with site.http.post(f"{site.url}/api/files", data=data, headers=kind) as answer:
            blob = (await answer.json())["blob"]
        async with site.http.get(f"{site.url}/api/files/{blob}", headers=key) as answer:
            assert "content-encoding" not in answer.headers
            assert answer.headers["content-length"] == "10000"


def _encoding_and_size(request: Request) -> tuple[str, int]:
    with urlopen(request, timeout=PATIENCE) as response:
        return response.headers["content-encoding"], len(response.read())
