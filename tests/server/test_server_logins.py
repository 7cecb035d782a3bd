"""Sign in to MCP servers through the API, with a real authorization server, as the admin."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest

from dragoman.server.setup.mcp_sign_in import ServerLogins
from tests.fork_server import python
from tests.server.site import Answer, Site
from tests.server.test_setup import SETTINGS, Folder, add_server, folder, set_up
from tests.tools.mcp.guarded import Guarded, guarded
from tests.tools.mcp.rig import listening
from tests.tools.mcp.servers import MODERN

__all__ = ["folder"]
pytestmark = pytest.mark.slow


async def seen(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = (await site.get("/api/setup/servers"))["items"][0]
    return found


async def consent(url: str) -> dict[str, str]:
    """Consent at the authorization server and return the parameters of the address that the browser returns
    to."""
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=False) as answer:
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))


async def begin(site: Site, server: Guarded, **more: Any) -> dict[str, Any]:
    """Start a sign-in at a server whose settings do not ask for one: the server itself demands it."""
    added = await add_server(site, name="far", url=server.url, **more)
    assert added.body["state"] == "login"
    begun: dict[str, Any] = await site.post("/api/setup/servers/far/login")
    assert (begun["state"], begun["host"]) == ("waiting", urlsplit(server.base).netloc)
    return begun


async def test_a_sign_in_that_is_made_is_there_at_once_and_after_a_restart(folder: Folder) -> None:
    """The tools are available, the settings name the method, only the owner has the login, and no answer has
    a token (P11)."""
    async with guarded() as server:
        async with set_up(folder) as site:
            folder.file.write_text(folder.file.read_text() + "# the end\n")
            begun = await begin(site, server)
            made = await site.post("/api/setup/logins", await consent(begun["url"]))
            assert (made["server"], made["state"], made["url"]) == ("far", "done", None)
            now = await seen(site)
            assert (now["state"], now["login"]["state"]) == ("running", "done")
            assert [tool["name"] for tool in now["tools"]] == ["far_secret"]
            assert tomllib.loads(folder.file.read_text())["mcp"]["far"]["auth"] == "oauth"
            assert "# the end\n" in folder.file.read_text()
            assert not any(token in json.dumps([begun, made, now]) for token in server.valid)
        async with set_up(folder) as site:
            await site.post("/api/setup/servers/far/restart")
            assert (await seen(site))["state"] == "running"
            await site.ask("DELETE", "/api/setup/servers/far")
    logins = folder.path / "data" / "dragoman" / "mcp-logins.json"
    assert json.loads(logins.read_text()) == {}


@pytest.mark.parametrize(
    ("said", "state", "error"),
    [
        ({"error": "access_denied", "error_description": "not today"}, "refused", "not today"),
        ({"error": "server_error"}, "failed", "server_error"),
    ],
)
async def test_a_sign_in_that_is_refused_says_so_and_can_be_tried_again(
    folder: Folder, said: dict[str, str], state: str, error: str
) -> None:
    async with guarded() as server, set_up(folder) as site:
        begun = await begin(site, server, oauth=True)
        key = dict(parse_qsl(urlsplit(begun["url"]).query))["state"]
        ended = await site.post("/api/setup/logins", {"state": key, **said})
        assert (ended["state"], ended["error"]) == (state, error)
        again = await site.post("/api/setup/servers/far/login")
        assert (again["state"], again["error"]) == ("waiting", None)
        assert (await site.post("/api/setup/logins", await consent(again["url"])))["state"] == "done"


async def test_a_sign_in_that_nobody_makes_is_given_up(folder: Folder) -> None:
    async with guarded() as server, set_up(folder, ServerLogins(lifetime=0.5)) as site:
        await add_server(site, name="far", url=server.url)
        await site.post("/api/setup/servers/far/login")
        while (login := (await seen(site))["login"])["state"] in ("starting", "waiting"):  # until it is over
            pass
        assert (login["state"], login["url"]) == ("timed_out", None)


async def test_a_sign_in_that_was_called_off_takes_nothing_any_more(folder: Folder) -> None:
    """A browser that returns after the cancellation finds no waiting sign-in, and the store is unchanged
    (Cancel x late answer)."""
    async with guarded() as server, set_up(folder) as site:
        begun = await begin(site, server)
        back = await consent(begun["url"])
        assert (await site.ask("DELETE", "/api/setup/servers/far/login")).status == 204
        late = await site.ask("POST", "/api/setup/logins", back)
        assert (late.status, server.asked) == (422, [])
        assert (await seen(site))["login"] is None


async def test_a_login_stays_as_long_as_one_server_is_there_that_it_serves(folder: Folder) -> None:
    """Logins are stored by address, and two servers can share one (P11)."""
    async with guarded() as server, set_up(folder) as site:
        begun = await begin(site, server)
        await site.post("/api/setup/logins", await consent(begun["url"]))
        await add_server(site, name="again", url=server.url, oauth=True)
        await site.ask("DELETE", "/api/setup/servers/far")
        assert (await site.post("/api/setup/servers/again/restart"))["state"] == "running"
        await site.ask("DELETE", "/api/setup/servers/again")
    logins = folder.path / "data" / "dragoman" / "mcp-logins.json"
    assert json.loads(logins.read_text()) == {}


async def test_of_sign_ins_that_are_begun_at_once_one_is_left(folder: Folder) -> None:
    """Each sign-in uses another name of the server and replaces the one before. The remaining one
    completes."""
    async with guarded() as server, set_up(folder) as site:
        await begin(site, server)
        port = site.url.rpartition(":")[2]
        names = [{"host": f"{name}:{port}"} for name in ("localhost", "[::1]")]
        await asyncio.gather(*(site.post("/api/setup/servers/far/login", headers=name) for name in names))
        left = [task for task in asyncio.all_tasks() if task.get_name() == "sign-in at far"]
        assert len(left) == 1
        back = await consent((await seen(site))["login"]["url"])
        assert (await site.post("/api/setup/logins", back))["state"] == "done"


async def test_the_browser_comes_back_to_where_it_was(folder: Folder) -> None:
    """The redirect uses the name by which the browser called the server. A repeated request by that name
    continues the same sign-in."""
    async with guarded() as server, set_up(folder) as site:
        first = await begin(site, server)
        assert where(first) == f"{site.url}/callback"
        assert (await site.post("/api/setup/servers/far/login"))["url"] == first["url"]
        host = {"host": site.url.removeprefix("http://").replace("127.0.0.1", "localhost")}
        other = await site.post("/api/setup/servers/far/login", headers=host)
        assert where(other) == f"http://{host['host']}/callback"
        assert (await site.ask("POST", "/api/setup/logins", await consent(first["url"]))).status == 422
        assert (await site.post("/api/setup/logins", await consent(other["url"])))["state"] == "done"


def where(login: dict[str, Any]) -> str:
    redirect: str = dict(parse_qsl(urlsplit(login["url"]).query))["redirect_uri"]
    return redirect


async def test_a_sign_in_is_ended_by_whoever_runs_the_server_alone(folder: Folder) -> None:
    """P11: to know what the browser came back with is not enough."""
    async with guarded() as server, set_up(folder) as site:
        back = await consent((await begin(site, server))["url"])
        for headers in (
            {"authorization": ""},
            {"sec-fetch-site": "cross-site"},
            {"origin": "http://evil.example"},
        ):
            refused: Answer = await site.ask("POST", "/api/setup/logins", back, headers=headers)
            assert refused.status in (401, 403)
        assert (await seen(site))["login"]["state"] == "waiting"


async def test_nobody_signs_in_where_the_settings_cannot_be_told(folder: Folder) -> None:
    """These settings cannot be edited safely, so the admin sees the refusal before the sign-in and not after
    it (P11)."""
    async with guarded() as server:
        folder.file.parent.mkdir(parents=True)
        folder.file.write_text(
            f'mcp = {{ far = {{ url = "{server.url}" }} }}\n' + SETTINGS.format(url="http://x")
        )
        async with set_up(folder) as site:
            refused = await site.ask("POST", "/api/setup/servers/far/login")
            assert (refused.status, 'auth = "oauth"' in refused.body["detail"]) == (422, True)
            assert server.registered == 0


async def test_a_server_that_asks_nobody_who_they_are_stays_as_it_is(folder: Folder) -> None:
    """No sign-in is offered there. An attempt anyway reports that it is not needed and writes
    nothing (P11)."""
    with listening(*python(MODERN, "http")) as port:
        async with set_up(folder) as site:
            added = await add_server(site, name="open", url=f"http://127.0.0.1:{port}/mcp")
            assert (added.body["state"], added.body["signs_in"]) == ("running", False)
            ours = [tool["name"] for tool in added.body["tools"] if tool["for_resources"]]
            assert ours == ["open_list_resources", "open_read_resource"]
            written = folder.file.read_text()
            tried = await ended(site, "open")
            assert (tried["state"], tried["error"]) == ("unneeded", None)
            assert folder.file.read_text() == written
            assert (await site.post("/api/setup/servers/open/restart"))["state"] == "running"
            assert (await seen(site))["signs_in"] is False


async def test_settings_that_want_a_sign_in_nobody_asks_for_are_named(folder: Folder) -> None:
    """A person wrote the settings, so they stay, and the answer says what to change (P11)."""
    with listening(*python(MODERN, "http")) as port:
        async with set_up(folder) as site:
            added = await add_server(site, name="open", url=f"http://127.0.0.1:{port}/mcp", oauth=True)
            assert (added.body["state"], added.body["signs_in"]) == ("login", True)
            tried = await ended(site, "open")
            assert (tried["state"], tried["error"]) == ("unneeded", 'remove auth = "oauth" from its settings')


async def ended(site: Site, name: str) -> dict[str, Any]:
    """Return the sign-in at a server that shows no sign-in page, once it has ended."""
    login: dict[str, Any] = await site.post(f"/api/setup/servers/{name}/login")
    while login["state"] == "starting":
        login = (await seen(site))["login"]
    return login


async def test_a_program_is_not_signed_in_to(folder: Folder, tmp_path: Path) -> None:
    async with set_up(folder) as site:
        await add_server(site, name="it", command=str(tmp_path / "nothing"))
        refused = await site.ask("POST", "/api/setup/servers/it/login")
        assert (refused.status, 'auth = "oauth"' in refused.body["detail"]) == (422, True)
        assert (await site.ask("POST", "/api/setup/servers/none/login")).status == 404
