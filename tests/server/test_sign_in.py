"""Check links that sign one browser in, and guesses that are slowed without locking others out (U1, U2)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import HTTPConnection
from starlette.responses import Response

from dragoman.server.auth import (
    GUESSERS,
    LONGEST,
    NEWCOMERS,
    ONE,
    Auth,
    Guesses,
    TooManyTries,
    key_hash,
    load_secret,
)
from dragoman.server.links import LinkOwner, Links
from dragoman.wire.scripted import says
from tests.runtimes import runtime_with
from tests.server.site import Answer, Site, served

NOBODY = {"authorization": ""}
slow = pytest.mark.slow


async def try_password(site: Site, password: str, address: str = "", cookie: str = "") -> Answer:
    headers = {**NOBODY, "x-forwarded-for": address, "cookie": cookie}
    return await site.ask("POST", "/api/login", {"password": password}, headers=headers)


async def cookies_of(site: Site, password: str, address: str = "") -> str:
    """All cookies that signing in gives, as a browser would send them."""
    headers = {"x-forwarded-for": address} if address else {}
    async with site.http.post(
        f"{site.url}/api/login", json={"password": password}, headers=headers
    ) as response:
        assert response.status == 200
        given = response.headers.getall("set-cookie")
    site.http.cookie_jar.clear()
    return "; ".join(cookie.partition(";")[0] for cookie in given)


async def guess(site: Site, count: int, address: str = "") -> list[int]:
    answers = await asyncio.gather(*(try_password(site, f"wrong {n}", address) for n in range(count)))
    return sorted(answer.status for answer in answers)


@slow
async def test_a_link_signs_one_browser_in_and_is_worthless_then(tmp_path: Path) -> None:
    """The link fails for a second browser and as a key, also if both arrive at the same time (U1)."""
    async with served(tmp_path, [says("x")]) as site:
        assert (await site.ask("HEAD", "/?token=launch", headers=NOBODY)).status in (200, 503)
        key = {"authorization": "Bearer launch"}
        assert (
            await site.ask("GET", "/api/me", headers=key)
        ).status == 200  # unused, it is a key for programs
        both = await asyncio.gather(*(site.ask("GET", "/?token=launch", headers=NOBODY) for _ in range(5)))
        assert sorted(answer.status for answer in both) == [303, 403, 403, 403, 403]
        assert (await site.ask("GET", "/api/me", headers=key)).status == 401
        (cookie,) = [each.headers["set-cookie"].partition(";")[0] for each in both if each.status == 303]
        again = await site.ask("GET", "/?token=launch", headers={**NOBODY, "cookie": cookie})
        # a signed-in browser is not locked out
        assert (again.status, again.headers["location"]) == (303, "/")


@slow
async def test_a_link_given_as_a_password_is_used_up_as_well(tmp_path: Path) -> None:
    """The form used to accept the printed link repeatedly. Opened or typed, a link is for one
    browser (U1)."""
    async with served(tmp_path, [says("x")]) as site:
        both = await asyncio.gather(*(try_password(site, "launch") for _ in range(3)))
        assert sorted(answer.status for answer in both) == [200, 401, 401]
        assert (await site.ask("GET", "/?token=launch", headers=NOBODY)).status == 403
        assert (await site.ask("GET", "/api/me", headers={"authorization": "Bearer launch"})).status == 401


@slow
async def test_a_person_gets_another_link_for_another_browser_of_theirs(tmp_path: Path) -> None:
    """The link signs in only this user (U1, U2)."""
    async with served(tmp_path, [says("x")]) as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        link = await site.post("/api/links", headers={"authorization": "Bearer key of ada"})
        answer = await site.ask("GET", link["path"], headers=NOBODY)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert (await site.get("/api/me", headers={**NOBODY, "cookie": cookie}))["user"] == "ada"
        launched = await site.ask("GET", "/?token=launch", headers=NOBODY)
        admins = launched.headers["set-cookie"].partition(";")[0]
        signed_in = (await site.runtime.store.audit(limit=2))[::-1]
        seen = [(one.action, one.person, one.object, one.address) for one in signed_in]
        assert seen == [("sign_in.done", user, "link", "127.0.0.1") for user in ("ada", "local")]
        for each, status in ((cookie, 403), (admins, 200)):
            assert (await site.ask("GET", "/api/audit", headers={**NOBODY, "cookie": each})).status == status
        assert (await site.ask("POST", "/api/links", {}, headers=NOBODY)).status == 401


@slow
async def test_a_link_is_worthless_with_the_key_it_was_asked_for_with(tmp_path: Path) -> None:
    """U1, U2: as a key too, with which one could ask for the next link, and also where they get another."""
    async with served(tmp_path, [says("x")]) as site:
        store = site.runtime.store
        await store.add_person("ada", key_hash("key of ada"), 1.0)
        link = await site.post("/api/links", headers={"authorization": "Bearer key of ada"})
        as_key = {"authorization": f"Bearer {link['path'].partition('=')[2]}"}
        assert (await site.get("/api/me", headers=as_key))["user"] == "ada"
        await store.remove_person("ada")
        assert (await site.ask("POST", "/api/links", {}, headers=as_key)).status == 401
        await store.add_person("ada", key_hash("another"), 2.0, restore=True)
        assert (await site.ask("GET", "/api/me", headers=as_key)).status == 401
        assert (await site.ask("GET", link["path"], headers=NOBODY)).status == 403


@slow
@pytest.mark.parametrize("before", [{}, {"authorization": "Basic of-a-proxy"}])
async def test_signing_out_ends_the_sign_in_and_its_streams_at_once(
    tmp_path: Path, before: dict[str, str]
) -> None:
    """U2: a saved cookie got 200 for thirty days. Another sign-in of the same second stays."""
    async with served(tmp_path, [says("x")], password="open sesame") as site:
        kept, other = await cookies_of(site, "open sesame"), await cookies_of(site, "open sesame")
        mine, theirs = {**NOBODY, **before, "cookie": kept}, {**NOBODY, "cookie": other}
        assert kept != other
        async with (
            site.http.get(f"{site.url}/api/events", headers={**before, "cookie": kept}) as stream,
            site.http.get(f"{site.url}/api/events", headers={"cookie": other}) as stays,
        ):
            assert (stream.status, stays.status) == (200, 200)
            await stays.content.readline()
            left = await site.ask("POST", "/api/logout", headers=mine)
            assert left.status == 204
            assert {"HttpOnly", "Max-Age=0", "Path=/", "SameSite=strict"} < {
                *left.headers["set-cookie"].split("; ")
            }
            await asyncio.wait_for(stream.read(), 5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stays.read(), 0.5)
        assert (await site.ask("GET", "/api/me", headers=mine)).status == 401
        assert (await site.ask("GET", "/api/me", headers=theirs)).status == 200
        at_another_node = Auth(site.runtime.store, load_secret(tmp_path / "secret"), password="open sesame")
        known = [await at_another_node.person(browser_with(one)) for one in (kept, other)]
        assert known == [None, "local"]


def browser_with(cookies: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "headers": [(b"cookie", cookies.encode())]})


async def test_a_sign_in_expires(tmp_path: Path) -> None:
    """The sign-in expires after thirty days, even if the browser keeps its cookie (U2)."""
    now = 1_000_000.0
    async with runtime_with(tmp_path, []) as runtime:
        auth = Auth(runtime.store, b"s" * 32, clock=lambda: now)
        response = Response()
        request = HTTPConnection({"type": "http", "scheme": "http", "path": "/", "headers": []})
        await auth.set_cookie(response, "local", request)
        given = [value.decode() for name, value in response.raw_headers if name == b"set-cookie"]
        (session,) = [one for one in given if "_browser=" not in one]
        assert "Max-Age=2592000" in session
        browser = browser_with(session.partition(";")[0])
        now += 30 * 24 * 3600 - 1
        assert await auth.person(browser) == "local"
        now += 1
        assert await auth.person(browser) is None


@pytest.mark.parametrize(
    ("headers", "by_cookie"),
    [
        ({"cookie": ""}, True),
        ({"cookie": "", "authorization": "Basic of-a-proxy"}, True),
        ({"cookie": "", "authorization": "Bearer key"}, False),
        ({}, False),
    ],
)
async def test_who_comes_with_a_key_does_not_come_by_the_cookie(
    tmp_path: Path, headers: dict[str, str], by_cookie: bool
) -> None:
    """Requests of a program with a key, including sign-out, do not end the sign-in of a browser (U2)."""
    async with runtime_with(tmp_path, []) as runtime:
        auth = Auth(runtime.store, b"s" * 32)
        cookies = f"{auth.cookie}=x"
        raw = [(name.encode(), (value or cookies).encode()) for name, value in headers.items()]
        request = HTTPConnection({"type": "http", "headers": raw})
        assert auth.session(request) == (key_hash("x") if by_cookie else None)


def test_a_link_that_was_asked_for_does_not_hold_for_ever() -> None:
    """U1"""
    now = 0.0
    links = Links(lambda: now)
    token = links.add("local", lifetime=10)
    assert links.owner(token) == LinkOwner("local")
    now = 10.0
    assert links.use(token) is None


@slow
async def test_who_guesses_is_slowed_and_others_get_in(tmp_path: Path) -> None:
    """U1: with the right password from another address, and with a cookie from the same one."""
    async with served(tmp_path, [says("x")], password="open sesame", proxies=["127.0.0.1"]) as site:
        cookie = await cookies_of(site, "open sesame", "192.0.2.7")
        seen = await guess(site, 40, "192.0.2.7")
        assert seen.count(401) <= ONE.burst + 1
        assert seen.count(429) >= 34
        refused = await try_password(site, "open sesame", "192.0.2.7")
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) <= 5
        assert (await try_password(site, "open sesame", "192.0.2.8")).status == 200
        signed_in = {**NOBODY, "cookie": cookie, "x-forwarded-for": "192.0.2.7"}
        assert (await site.ask("GET", "/api/me", headers=signed_in)).status == 200


@slow
async def test_a_browser_that_signed_in_before_gets_in_while_its_own_address_guesses(tmp_path: Path) -> None:
    """Behind an unnamed proxy, all clients share one address (U1)."""
    async with served(tmp_path, [says("x")], password="open sesame") as site:
        await site.runtime.store.add_person("ada", key_hash("key of ada"), 1.0)
        cookie = await cookies_of(site, "open sesame")
        browser = next(one for one in cookie.split("; ") if "_browser=" in one)
        await guess(site, 40)
        assert (await try_password(site, "open sesame")).status == 429
        assert (await try_password(site, "open sesame", cookie=browser)).status == 200
        me = {**NOBODY, "cookie": browser.replace("_browser=", "=")}
        assert (await site.ask("GET", "/api/me", headers=me)).status == 401  # it says where, not who
        stale = browser[:-1] + ("0" if browser[-1] != "0" else "1")
        assert (await try_password(site, "open sesame", cookie=stale)).status == 429


@slow
@pytest.mark.parametrize("proxies", [[], ["192.0.2.1"], ["10.0.0.0/8"]])
async def test_a_forwarded_address_is_not_believed_of_anybody_who_is_not_named(
    tmp_path: Path, proxies: list[str]
) -> None:
    """Loopback is not trusted either: 800 forged addresses made 591 guesses a second possible (U1)."""
    async with served(tmp_path, [says("x")], password="open sesame", proxies=proxies) as site:
        answers = await asyncio.gather(*(try_password(site, "x", f"198.51.100.{n}") for n in range(40)))
        assert sum(answer.status == 401 for answer in answers) <= ONE.burst + 1


@slow
async def test_a_client_of_a_named_proxy_cannot_choose_its_address(tmp_path: Path) -> None:
    """The last address counts, which the proxy added. The cookie is Secure if the proxy speaks HTTPS (U1)."""
    async with served(tmp_path, [says("x")], password="open sesame", proxies=["127.0.0.1"]) as site:
        forged = (f"198.51.100.{n}, 192.0.2.9" for n in range(40))
        answers = await asyncio.gather(*(try_password(site, "x", each) for each in forged))
        assert sum(answer.status == 401 for answer in answers) <= ONE.burst + 1
        host = site.url.removeprefix("http://")
        headers = {**NOBODY, "x-forwarded-proto": "https", "origin": f"https://{host}"}
        answer = await site.ask("POST", "/api/login", {"password": "open sesame"}, headers=headers)
        assert answer.status == 200
        assert "Secure" in answer.headers["set-cookie"]


@slow
async def test_a_page_over_https_is_another_origin_than_this_server(tmp_path: Path) -> None:
    """Another port is another origin too, and the header of an unnamed proxy is ignored (U2)."""
    async with served(tmp_path, [says("x")]) as site:
        host = site.url.removeprefix("http://")
        for origin in (f"https://{host}", "http://127.0.0.1", "http://127.0.0.1:1", f"ftp://{host}"):
            headers = {"origin": origin, "x-forwarded-proto": "https"}
            assert (await site.ask("GET", "/api/me", headers=headers)).status == 403, origin
        assert (await site.ask("GET", "/api/me", headers={"origin": f"http://{host}"})).status == 200


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(0, 300), st.booleans()), max_size=400))
def test_guesses_are_bounded_in_all_however_many_addresses_guess(
    tries: list[tuple[float, int, bool]],
) -> None:
    """U1: by one address, and by all."""
    now = 0.0
    guesses = Guesses(lambda: now)
    made: dict[int, int] = {}
    for pause, address, _ in tries:
        now += pause
        try:
            guesses.begin(f"10.0.{address // 256}.{address % 256}")
        except TooManyTries:
            continue
        made[address] = made.get(address, 0) + 1
    assert all(count <= ONE.burst + now * ONE.rate + 1 for count in made.values())
    paces = (GUESSERS, NEWCOMERS)
    assert sum(made.values()) <= sum(pace.burst + (now + LONGEST) * pace.rate + 1 for pace in paces)


def test_an_address_that_never_guessed_wrong_waits_for_no_guesser() -> None:
    """This holds for any number of guessers and any behavior (U1)."""
    guesses = Guesses(lambda: 0.0)
    for _ in range(100):
        for address in range(50):
            try:
                guesses.begin(f"10.0.0.{address}")
            except TooManyTries:
                pass
    assert guesses.begin("192.0.2.1").wait == 0
    with suppress(TooManyTries):
        for address in range(1000):  # until new addresses have used up what they share
            guesses.begin(f"10.1.{address // 250}.{address % 250}")
    with pytest.raises(TooManyTries):
        guesses.begin("192.0.2.2")
    assert guesses.begin("192.0.2.2", "ada").wait == 0


def test_right_passwords_cost_nothing_and_clear_nobody() -> None:
    """A user with a valid key cannot buy guesses with it (U1)."""
    guesses = Guesses(lambda: 0.0)
    for _ in range(100):
        guesses.begin("192.0.2.1").was_right()
    for _ in range(int(ONE.burst)):
        guesses.begin("192.0.2.1")
    with pytest.raises(TooManyTries):
        guesses.begin("192.0.2.1")
    for host in range(int(ONE.burst)):  # an IPv6 household has 2⁶⁴ addresses
        guesses.begin(f"2001:db8::{host:x}")
    with pytest.raises(TooManyTries):
        guesses.begin("2001:db8::ffff")
