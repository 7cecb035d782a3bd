"""Check set-up over HTTP: providers with their keys, MCP servers and agents, for the admin only."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman.cli.model_choice import choose_model
from dragoman.config.build import build_runtime
from dragoman.config.settings import load
from dragoman.server.app import server
from dragoman.server.auth import Auth, key_hash, load_secret
from dragoman.server.setup.mcp_sign_in import ServerLogins
from dragoman.server.setup.own_settings import LIFETIME, Confirmations, OwnSettings
from dragoman.server.shapes import CurrentModel
from tests.loopback import Body, Reply, delta, loopback, stream
from tests.patience import PATIENCE
from tests.providers.local.hub_site import DATA, REPO, hub_site
from tests.server.site import SMALL, Answer, Site, listening
from tests.tools.mcp.servers import RAW

KEY = "sk-open-sesame-0123456789"
SETTINGS = """\
# mine
model = "acme/one"   # the best
[providers.acme]
base_url = "{url}"
keys = "ACME_KEY"
[agents.coder]
description = "Writes code."
prompt = "You write code."
allow = ["files.read"]
"""


@dataclass
class Folder:
    """A person's own folders, with settings in them."""

    path: Path

    @property
    def file(self) -> Path:
        return self.path / "config" / "dragoman" / "dragoman.toml"

    @property
    def keys(self) -> Path:
        return self.path / "data" / "dragoman" / "keys.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    for name in ("config", "data"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.delenv("ACME_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def answer(body: Body) -> Reply:
    return stream(delta(content="hello"))


@asynccontextmanager
async def set_up(
    folder: Folder,
    logins: ServerLogins | None = None,
    reply: Callable[[Body], Reply] = answer,
    current: CurrentModel | None = None,
    *,
    embedded: bool = False,
    **env: str,
) -> AsyncIterator[Site]:
    """Serve what `dragoman serve` builds from the user's own file, or what another program makes of it."""
    async with loopback(reply) as model:
        folder.file.parent.mkdir(parents=True, exist_ok=True)
        if not folder.file.exists():
            folder.file.write_text(SETTINGS.format(url=model.url))
        settings = load(start=folder.path, environment=env, flags={"store": str(folder.path / "chat.db")})
        chosen = await choose_model(settings)
        built = build_runtime(settings, model=chosen.models)
        async with chosen.models, built.runtime as runtime:
            auth = Auth(
                runtime.store, load_secret(folder.path / "secret"), token="launch", key="key of local"
            )
            own = OwnSettings(settings, logins=logins or ServerLogins())
            given = None if embedded else own
            app = server(runtime, auth, upload_limit=SMALL, model=current, own_settings=given)
            async with listening(app) as url, aiohttp.ClientSession() as http:
                yield Site(url, runtime, auth, http, key="key of local")
                app.state.context.publisher.close()


async def provider(site: Site, name: str) -> dict[str, Any]:
    items = (await site.get("/api/setup/providers"))["items"]
    return next(one for one in items if one["name"] == name)


async def add_server(site: Site, **table: Any) -> Answer:
    plan = await site.post("/api/setup/servers/plan", table)
    return await site.ask("POST", "/api/setup/servers", {**table, "confirm": plan["confirm"]})


ROUTES = [
    ("GET", "/providers", None),
    ("POST", "/providers", {"name": "mine", "base_url": "http://127.0.0.1:9/v1"}),
    ("DELETE", "/providers/acme", None),
    ("PUT", "/providers/acme/key", {"key": KEY}),
    ("DELETE", "/providers/acme/key", None),
    ("POST", "/providers/acme/test", None),
    ("GET", "/downloads", None),
    ("POST", "/downloads", {"model": "acme/tiny-GGUF"}),
    ("DELETE", "/downloads/tiny", None),
    ("GET", "/servers", None),
    ("POST", "/servers/plan", {"name": "it", "command": "true"}),
    ("POST", "/servers", {"name": "it", "command": "true", "confirm": "x"}),
    ("POST", "/servers/it/restart", None),
    ("POST", "/servers/it/login", None),
    ("DELETE", "/servers/it/login", None),
    ("POST", "/logins", {"state": "x", "code": "y"}),
    ("DELETE", "/servers/it", None),
    ("GET", "/agents", None),
    ("PUT", "/agents/coder", {"prompt": "You do as I say."}),
    ("DELETE", "/agents/coder", None),
    ("GET", "/skills", None),
    ("PUT", "/skills/bake", {"description": "How to bake.", "text": "Do it so."}),
    ("DELETE", "/skills/bake", None),
]


async def test_a_model_is_downloaded_listed_and_deleted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hub_site() as hub, set_up(folder) as site:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("DRAGOMAN_CACHE", str(folder.path / "cache"))
        hub.files["tiny-Q8_0.gguf"] = DATA
        several = await site.ask("POST", "/api/setup/downloads", {"model": REPO})
        assert (several.status, "tiny-Q8_0" in several.body["detail"]) == (422, True)
        begun = await site.ask("POST", "/api/setup/downloads", {"model": f"{REPO}:Q4_K_M"})
        assert (begun.status, begun.body["size"]) == (202, len(DATA))
        async with asyncio.timeout(PATIENCE):
            while (items := (await site.get("/api/setup/downloads"))["items"])[0]["state"] == "running":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert [(one["name"], one["state"]) for one in items] == [("tiny-Q4_K_M", "done")]
        models = {one["name"]: one for one in (await site.get("/api/models"))["items"]}
        assert models["local/tiny-Q4_K_M"]["ready"]
        assert (await site.get("/api/me"))["model"] == {"name": "acme/one", "note": None, "reason": None}
        gone = await site.ask("DELETE", "/api/setup/downloads/tiny-Q4_K_M")
        assert gone.status == 204
        assert (await site.get("/api/setup/downloads"))["items"] == []


async def test_only_whoever_runs_the_server_sets_it_up(folder: Folder) -> None:
    """Other users, unauthenticated clients and other sites are refused, and nothing changes (P11)."""
    async with set_up(folder) as site:
        before = folder.file.read_bytes()
        await site.runtime.store.add_person("ann", key_hash("key of ann"), 0.0)
        for method, path, body in ROUTES:
            others = [
                {"authorization": "Bearer key of ann"},
                {"authorization": ""},
                {"origin": "http://evil.example"},
                {"sec-fetch-site": "cross-site"},
            ]
            for headers in others:
                refused = await site.ask(method, f"/api/setup{path}", body, headers=headers)
                assert refused.status in (401, 403), (method, path, headers, refused)
        assert folder.file.read_bytes() == before
        assert not folder.keys.exists()


async def test_a_key_is_stored_for_its_owner_and_holds_at_once(folder: Folder) -> None:
    """Without a keyring, the key goes into a private file, and the next turn uses it."""
    async with set_up(folder) as site:
        assert (await provider(site, "acme"))["ready"] is False
        assert (await site.get("/api/setup/providers"))["shared"] is False
        stored = await site.ask("PUT", "/api/setup/providers/acme/key", {"key": f" {KEY}\n"})
        assert (stored.status, stored.body["key_from"], stored.body["key_name"]) == (200, "file", "ACME_KEY")
        assert json.loads(folder.keys.read_text()) == {"ACME_KEY": KEY}
        assert stat.S_IMODE(folder.keys.stat().st_mode) == 0o600
        turn = await site.say("hi")
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (await site.get(f"/api/turns/{turn}"))["state"] == "completed"
        removed = await site.ask("DELETE", "/api/setup/providers/acme/key")
        assert (removed.body["ready"], removed.body["key_from"]) == (False, None)
        id = await site.conversation()
        refused = await site.ask("POST", f"/api/conversations/{id}/turns", {"text": "hi"})
        assert (refused.status, "No key for acme" in refused.body["detail"]) == (422, True)
    assert json.loads(folder.keys.read_text()) == {}


async def test_the_model_of_the_program_is_told_as_it_was_chosen(folder: Folder) -> None:
    """A program that names none has none: only the owner's settings let the server choose."""
    chosen = CurrentModel("acme/one", "a note", "a reason")
    async with set_up(folder, current=chosen) as site:
        assert (await site.get("/api/me"))["model"] == {
            "name": "acme/one",
            "note": "a note",
            "reason": "a reason",
        }
    async with set_up(folder, embedded=True) as site:
        assert (await site.get("/api/me"))["model"] is None


async def test_no_answer_and_no_log_repeats_a_key(
    folder: Folder, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """For any failure, neither the answer nor the log contains the key (S6)."""
    async with set_up(folder) as site:
        answers = [
            await site.ask("PUT", "/api/setup/providers/acme/key", {"key": KEY}),
            await site.ask("PUT", "/api/setup/providers/acme/key", {"key": f"{KEY} and more\n{KEY}"}),
            await site.ask("PUT", "/api/setup/providers/acme/key", {"key": KEY, "else": KEY}),
            await site.ask("PUT", "/api/setup/providers/acme/key", {"key": [KEY]}),
            await site.ask("PUT", "/api/setup/providers/acme/key", f'{{"key": "{KEY}'.encode()),
            await site.ask("PUT", "/api/setup/providers/nobody/key", {"key": KEY}),
            await site.ask("POST", "/api/setup/providers/acme/test"),
            await site.ask("GET", "/api/setup/providers"),
            await site.ask("GET", "/api/models"),
            await site.ask("POST", "/api/setup/providers", {"name": "acme", "base_url": "x", "key": KEY}),
            await add_server(site, name="it", command=sys.executable, args=[RAW, "well"], env={"TOKEN": KEY}),
            await site.ask("GET", "/api/setup/servers"),
        ]
    assert KEY not in json.dumps([[one.body, one.headers] for one in answers], default=repr)
    assert KEY not in caplog.text
    assert KEY not in "".join(capsys.readouterr())
    assert KEY not in folder.file.read_text()


async def test_a_key_of_the_environment_is_changed_there(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change without effect is refused with the reason."""
    monkeypatch.setenv("ACME_KEY", KEY)
    async with set_up(folder) as site:
        assert (await provider(site, "acme"))["key_from"] == "environment"
        for method, body in (("PUT", {"key": "another"}), ("DELETE", None)):
            refused = await site.ask(method, "/api/setup/providers/acme/key", body)
            assert refused.status == 422
            assert "environment of the server sets ACME_KEY" in refused.body["detail"]
    assert not folder.keys.exists()


async def test_an_address_that_cannot_be_one_is_a_mistake_of_the_request(folder: Folder) -> None:
    async with set_up(folder) as site:
        for address in ("http://[::1", "http://h:99999/v1", "http://"):
            added = await site.ask("POST", "/api/setup/providers", {"name": "own", "base_url": address})
            assert (added.status, "an address begins with" in added.body["detail"]) == (422, True)
            plan = await site.ask("POST", "/api/setup/servers/plan", {"name": "own", "url": address})
            assert plan.status == 422


async def test_a_provider_of_ones_own_is_there_at_once_and_can_be_removed(folder: Folder) -> None:
    """Every other byte of the file stays, and a turn with a model of the new provider is answered."""
    async with loopback(answer) as other, set_up(folder) as site:
        before = folder.file.read_text()
        body = {"name": "mine", "base_url": other.url, "key": KEY}
        added = await site.ask("POST", "/api/setup/providers", body)
        assert (added.status, added.body["own"], added.body["key_from"]) == (201, True, "file")
        assert folder.file.read_text().startswith(before)
        again = await site.ask("POST", "/api/setup/providers", body)
        assert again.status == 422
        turn = await site.say("hi", model="mine/any")
        await site.until(f"/api/turns/{turn}/events", "turn.end")
        assert (await site.get(f"/api/turns/{turn}"))["state"] == "completed"
        assert (await site.ask("DELETE", "/api/setup/providers/mine")).status == 204
        assert folder.file.read_text() == before
        assert (await site.ask("DELETE", "/api/setup/providers/openai")).status == 404
        # without the provider, the next start would fail
        needed = await site.ask("DELETE", "/api/setup/providers/acme")
        assert (needed.status, "names acme/one, which acme serves" in needed.body["detail"]) == (422, True)
        assert folder.file.read_text() == before
    assert json.loads(folder.keys.read_text()) == {}


async def test_a_provider_that_the_settings_name_in_a_chain_is_not_removed(folder: Folder) -> None:
    """A chain can be used only if all its models are known."""
    folder.file.parent.mkdir(parents=True)
    folder.file.write_text(
        'model = "ollama/any, acme/one"\n[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    async with set_up(folder) as site:
        needed = await site.ask("DELETE", "/api/setup/providers/acme")
        assert (needed.status, "names acme/one, which acme serves" in needed.body["detail"]) == (422, True)


async def test_a_provider_that_cannot_be_is_not_written(folder: Folder) -> None:
    async with set_up(folder) as site:
        before = folder.file.read_bytes()
        for name in ("ac/me", "", "ac me", "acme", "a\nb"):
            body = {"name": name, "base_url": "http://127.0.0.1:9/v1", "key": KEY}
            assert (await site.ask("POST", "/api/setup/providers", body)).status == 422, name
            assert folder.file.read_bytes() == before


async def test_what_cannot_be_set_up_is_refused_with_the_reason(folder: Folder) -> None:
    one, two = ({"API_KEY": f"sk-{n}-0123456789"} for n in ("one", "two"))
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("PUT providers/local/key", {"key": KEY}, "key.unused"),
        ("POST providers", {"name": "own", "base_url": "http://me@h/v1"}, "provider.plain_address"),
        ("POST providers", {"name": "a_b", "base_url": "http://h/v1"}, "key.name_taken"),
        ("POST servers/plan", {"name": "files", "command": "true"}, "server.group_name"),
        ("POST servers/plan", {"name": "it", "env": one, "headers": two}, "server.same_secret"),
    ]
    async with set_up(folder) as site:
        await site.post("/api/setup/providers", {"name": "a-b", "base_url": "http://127.0.0.1:9/v1"})
        for route, body, code in refused:
            method, _, path = route.partition(" ")
            answer = await site.ask(method, f"/api/setup/{path}", body)
            assert (answer.status, answer.body.get("code")) == (422, code), answer.body
        assert (await site.ask("DELETE", "/api/setup/downloads/none")).status == 404


@pytest.mark.parametrize("damaged", [False, True])
async def test_a_key_that_cannot_be_stored_leaves_no_settings_behind(
    folder: Folder, *, damaged: bool
) -> None:
    """What needs the key can be added again when it has a place (S6)."""
    own = {"name": "own", "base_url": "http://127.0.0.1:9/v1", "key": KEY}
    async with set_up(folder) as site:
        before = folder.file.read_text()
        folder.keys.parent.parent.mkdir(parents=True)
        if damaged:
            folder.keys.parent.mkdir()
            folder.keys.write_text("[]")
        else:
            folder.keys.parent.symlink_to(folder.path / "nowhere")
        for answer, code in (
            (await site.ask("PUT", "/api/setup/providers/acme/key", {"key": KEY}), "key.not_stored"),
            (await site.ask("POST", "/api/setup/providers", own), "key.not_stored"),
            (await add_server(site, name="it", command="true", env={"API_TOKEN": KEY}), "server.not_stored"),
        ):
            assert (answer.status, answer.body["code"]) == (422, "keys.damaged" if damaged else code)
        assert folder.file.read_text() == before
        folder.keys.unlink(missing_ok=True)
        listed = (await site.get("/api/setup/providers"))["items"]
        assert "own" not in [one["name"] for one in listed]


async def refuse(request: web.Request) -> web.Response:
    said = f"Incorrect API key provided: {request.headers['authorization'].removeprefix('Bearer ')}"
    return web.json_response({"error": {"message": said, "code": "invalid_api_key"}}, status=401)


async def test_a_test_says_what_a_person_can_do(folder: Folder) -> None:
    """A working provider lists its models. A provider that refuses the key repeats it, and the answer omits
    it (S6)."""
    strict = web.Application()
    strict.router.add_get("/v1/models", refuse)
    async with TestServer(strict) as wrong, set_up(folder) as site:
        missing = await site.post("/api/setup/providers/acme/test")
        await site.ask("PUT", "/api/setup/providers/acme/key", {"key": KEY})
        works = await site.post("/api/setup/providers/acme/test")
        await site.post("/api/setup/providers", {"name": "gone", "base_url": "http://127.0.0.1:9/v1"})
        gone = await site.post("/api/setup/providers/gone/test")
        plain = "not-like-a-key-at-all"
        body = {"name": "strict", "base_url": str(wrong.make_url("/v1")), "key": plain}
        await site.post("/api/setup/providers", body)
        refused = await site.post("/api/setup/providers/strict/test")
    assert (works["works"], gone["works"], refused["works"]) == (True, False, False)
    assert works["models"]
    assert (missing["works"], "ACME_KEY" in missing["error"], missing["advice"]) == (False, True, None)
    assert gone["error"] == "no connection to 127.0.0.1:9: Connection refused"
    assert refused["error"].endswith(" refuses the key (HTTP 401)")  # The advice says what to do.
    assert plain not in json.dumps(refused)
    assert (refused["advice"], gone["advice"]) == ("key", "address")


async def test_a_server_runs_as_it_was_confirmed_and_tells_why_it_broke(folder: Folder) -> None:
    """The server starts exactly the confirmed command, once. Its tools are available immediately, and its end
    has a reason (P11)."""
    table = {"name": "it", "command": sys.executable, "args": [RAW, "well"]}
    async with set_up(folder) as site:
        plan = await site.post("/api/setup/servers/plan", table)
        assert plan["argv"] == [sys.executable, RAW, "well"]
        assert (await site.get("/api/setup/servers"))["items"] == []
        other = {**table, "args": [RAW, "other"], "confirm": plan["confirm"]}
        assert (await site.ask("POST", "/api/setup/servers", other)).status == 422
        used = await site.ask("POST", "/api/setup/servers", {**table, "confirm": plan["confirm"]})
        assert used.status == 422  # a wrong use has used it up
        added = await add_server(site, **table)
        assert (added.status, added.body["own"]) == (201, True)
        await eventually_running(site, "it")
        assert tomllib.loads(folder.file.read_text())["mcp"]["it"]["command"] == sys.executable
        groups = {group["name"] for group in (await site.get("/api/tools"))["groups"]}
        assert "it" in groups
        for name, code in (("it", "server.taken"), ("IT", "server.alike")):
            taken = await site.ask("POST", "/api/setup/servers/plan", {**table, "name": name})
            assert (taken.status, taken.body["code"]) == (422, code)
        assert (await site.ask("DELETE", "/api/setup/servers/it")).status == 204
        assert "it" not in {group["name"] for group in (await site.get("/api/tools"))["groups"]}
        assert "mcp" not in tomllib.loads(folder.file.read_text())
        broken = await add_server(
            site, name="bad", command=sys.executable, args=["-c", "import sys; sys.exit('no such luck')"]
        )
        assert broken.body["state"] == "failed"
        assert "no such luck" in broken.body["error"]
        assert broken.body["log"] == ["no such luck"]
        again = await site.post("/api/setup/servers/bad/restart")
        assert again["state"] == "failed"


async def eventually_running(site: Site, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not any(  # noqa: ASYNC110 - over HTTP, by asking
            one["name"] == name and one["state"] == "running" and one["tools"]
            for one in (await site.get("/api/setup/servers"))["items"]
        ):
            await asyncio.sleep(0.01)


async def test_a_server_that_is_started_again_is_a_new_process(folder: Folder, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    async with set_up(folder) as site:
        await add_server(site, name="it", command=sys.executable, args=[RAW, "well", str(heard)])
        await eventually_running(site, "it")
        before = heard.read_text().count("initialize") if heard.exists() else 0
        again = await site.post("/api/setup/servers/it/restart")
        assert again["state"] in ("running", "starting")
        assert (again["own"], again["origin"].endswith("dragoman.toml")) == (True, True)
        await eventually_running(site, "it")
        assert heard.read_text().count("initialize") > before


async def test_a_secret_of_a_server_is_stored_apart_from_its_settings(folder: Folder) -> None:
    """The settings contain a reference, and the secret is removed with the server (S6)."""
    table = {
        "name": "it",
        "command": sys.executable,
        "args": [RAW, "well"],
        "env": {"API_TOKEN": KEY, "A": "b"},
    }
    async with set_up(folder) as site:
        await add_server(site, **table)
        await eventually_running(site, "it")
        written = tomllib.loads(folder.file.read_text())["mcp"]["it"]["env"]
        (name,) = json.loads(folder.keys.read_text())
        assert written == {"API_TOKEN": f"${{{name}}}", "A": "b"}
        await site.ask("DELETE", "/api/setup/servers/it")
    assert json.loads(folder.keys.read_text()) == {}


async def test_what_rules_allow_already_is_told_before_a_server_is_added(folder: Folder) -> None:
    """A new server with an old name receives the rules of the old one (pair of removal and grant)."""
    async with set_up(folder) as site:
        folder_rules = (await site.post("/api/setup/servers/plan", {"name": "it", "command": "true"}))[
            "rules"
        ]
        assert folder_rules == []
    folder.file.write_text(f'allow = ["mcp.it.*"]\n{folder.file.read_text()}')
    async with set_up(folder) as site:
        plan = await site.post("/api/setup/servers/plan", {"name": "it", "command": "true"})
    assert [rule["permission"] for rule in plan["rules"]] == ["mcp.it.*"]


async def test_agents_are_shown_whole_with_where_they_come_from(folder: Folder) -> None:
    async with set_up(folder) as site:
        (agent,) = (await site.get("/api/setup/agents"))["agents"]
    assert (agent["prompt"], agent["rules"][0]["permission"]) == ("You write code.", "files.read")
    assert agent["origin"].endswith("dragoman.toml:6")


async def test_a_file_that_was_named_is_the_one_that_is_written(folder: Folder, tmp_path: Path) -> None:
    """A file that was only found in a folder is not written. A file that the user named is the user's own
    (P11)."""
    async with loopback(answer) as model:
        named, found = tmp_path / "named.toml", tmp_path / "dragoman.toml"
        named.write_text(SETTINGS.format(url=model.url))
        found.write_text("# a folder's own\n")
        for file, wanted in ((named, named), (None, folder.file)):
            settings = load(file, start=tmp_path, environment={"DRAGOMAN_TRUST": str(tmp_path)})
            own = OwnSettings(settings)
            assert own.file == wanted
            own.add("providers", "mine", {"base_url": "http://127.0.0.1:9/v1"})
            assert "mine" in own.catalog().providers
            own.remove("providers", "mine")
    assert found.read_text() == "# a folder's own\n"


def test_a_confirmation_is_for_one_value_one_use_and_a_while() -> None:
    """P11"""
    now = [0.0]
    confirmations = Confirmations(clock=lambda: now[0])
    token = confirmations.issue({"command": "true"})
    assert confirmations.use(token, {"command": "true"})
    assert not confirmations.use(token, {"command": "true"})
    late = confirmations.issue({"command": "true"})
    now[0] += LIFETIME + 1
    assert not confirmations.use(late, {"command": "true"})
    first = confirmations.issue(0)
    for other in range(200):
        confirmations.issue(other)
    assert not confirmations.use(first, 0)
