"""Signing in at an OpenID Connect provider, also at one that lies, and with browsers that do (V4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import web

from dragoman.server.auth import ONE, key_hash
from dragoman.wire.scripted import says
from tests.fleet import Fleet, node
from tests.patience import PATIENCE
from tests.server.oidc_scene import EVENT, Browser, Provider, key, pem, provider
from tests.server.site import Site, served

pytestmark = pytest.mark.slow
FORM = {"content-type": "application/x-www-form-urlencoded"}


async def test_the_settings_name_the_provider(tmp_path: Path) -> None:
    """V4: the secret is in the environment, or the server does not start."""
    more = """
        [server.oidc]
        issuer = "{url}"
        client_id = "dragoman"
        client_secret_from = "{variable}"
        name = "Acme"
        scopes = ["openid", "groups"]
        allowed_groups = ["chat"]
        admin_group = "ops"
        session = "8h"
    """
    async with provider() as there:
        for variable in ("HOME", "NOT_SET"):
            table = more.format(url=there.url, variable=variable)
            fleet = Fleet(tmp_path / variable, str(tmp_path / "chat.db"), "http://127.0.0.1:1", table)
            if variable == "NOT_SET":
                with pytest.raises(
                    AssertionError, match="neither the environment nor the keyring has NOT_SET"
                ):
                    async with node(fleet):
                        pass
                continue
            async with node(fleet) as site, site.http.get("/oidc/login", allow_redirects=False) as answer:
                query = parse_qs(urlsplit(answer.headers["location"]).query)
                assert (answer.status, query["scope"]) == (303, ["openid groups"])


async def audited(site: Site) -> list[tuple[str, str, str]]:
    return [(one.action, one.person, one.object) for one in reversed(await site.runtime.store.audit())]


async def test_a_user_signs_in_and_is_known_by_the_account(tmp_path: Path) -> None:
    """V4: another name at the provider later is the same user here."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings(name="Acme")) as site:
        browser = Browser(site)
        there.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        assert (await browser.ask("GET", "/api/login")).body == {"provider": "Acme"}
        answer = await browser.sign_in(there, "/c/conv_1")
        assert (answer.status, answer.headers["location"]) == (303, "/c/conv_1")
        assert len(browser.cookies) == 1  # the state of the sign-in is gone
        assert await browser.who() == "ada"
        there.claims = {"preferred_username": "bob", "email": "local"}
        again = Browser(site)
        await again.sign_in(there)
        assert await again.who() == "ada"
        assert await audited(site) == [
            ("user.added", "ada", "ada"),
            ("sign_in.done", "ada", "provider"),
            ("sign_in.done", "ada", "provider"),
        ]
        assert {one.address for one in await site.runtime.store.audit()} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("called", "user"),
    [
        ("ada", "ada-2"),
        ("bob", "bob-2"),
        ("carl", "carl-2"),
        ("Local", "local-2"),
        ("a b\n</script>", "a-b-script"),
        ("", "user"),
        (["ada"], "user"),
        ("x" * 500, "x" * 50),
    ],
)
async def test_no_account_takes_over_a_name(tmp_path: Path, called: object, user: str) -> None:
    """An account cannot take the name of a user with a key, a removed user, an owner of conversations or the
    admin (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        store = site.runtime.store
        await store.add_person("ada", key_hash("key of ada"), 1.0)
        await store.add_person("bob", key_hash("key of bob"), 1.0)
        await store.remove_person("bob")
        await site.runtime.conversation(user="carl")
        there.claims = {"preferred_username": called}
        browser = Browser(site)
        await browser.sign_in(there)
        assert await browser.who() == user


HOSTILE: dict[str, Callable[[Provider], object]] = {
    "another audience": lambda there: there.claims.update(aud="another"),
    "no audience": lambda there: there.claims.update(aud=None),
    "two audiences": lambda there: there.claims.update(aud=["dragoman", "another"]),
    "given to another client": lambda there: there.claims.update(aud=["dragoman", "a"], azp="a"),
    "azp of another client": lambda there: there.claims.update(azp="another"),
    "another issuer in the token": lambda there: there.claims.update(iss="http://127.0.0.1:1"),
    "another issuer by a slash": lambda there: there.claims.update(iss=f"{there.url}/"),
    "another issuer of itself": lambda there: there.metadata.update(issuer="http://127.0.0.1:1"),
    "no nonce": lambda there: there.claims.update(nonce=None),
    "another nonce": lambda there: there.claims.update(nonce="another"),
    "a nonce that is no text": lambda there: there.claims.update(nonce=["x"]),
    "expired": lambda there: there.claims.update(exp=int(time.time()) - 120),
    "no end": lambda there: there.claims.update(exp=None),
    "from the future": lambda there: there.claims.update(iat=int(time.time()) + 300),
    "from long ago": lambda there: there.claims.update(iat=int(time.time()) - 3600),
    "not valid yet": lambda there: there.claims.update(nbf=int(time.time()) + 300),
    "of nobody": lambda there: there.claims.update(sub=""),
    "no subject": lambda there: there.claims.update(sub=None),
    "a subject that is no text": lambda there: there.claims.update(sub=7),
    "algorithm none": lambda there: setattr(there, "sign", unsigned),
    "HS256 with the public key": lambda there: setattr(there, "sign", by_public_key),
    "HS256, advertised": lambda there: there.__dict__.update(
        sign=by_public_key, metadata={"id_token_signing_alg_values_supported": ["HS256", "RS256"]}
    ),
    "an algorithm that is not advertised": lambda there: setattr(there, "sign", by_other_algorithm),
    "a key inside the token": lambda there: setattr(there, "sign", with_own_key),
    "a logout token": lambda there: there.header.update(typ="logout+jwt"),
    "an access token": lambda there: there.header.update(typ="at+jwt"),
    "the key of another": lambda there: setattr(there, "sign", by_another_key),
    "a key that is not published": lambda there: setattr(there, "kid", "unpublished"),
    "two keys of a name": lambda there: setattr(there, "published", ["first", "first"]),
    "no key at all": lambda there: setattr(there, "published", []),
    "keys that are too many": lambda there: setattr(there, "keys", huge),
    "keys elsewhere": lambda there: setattr(there, "keys", redirecting),
    "keys that are no JSON": lambda there: setattr(there, "keys", lambda: web.Response(text="<html>")),
    "keys that are deep": lambda there: setattr(there, "keys", lambda: web.Response(text="[" * 100_000)),
    "keys in the clear elsewhere": lambda there: there.metadata.update(jwks_uri="http://192.0.2.1/keys"),
    "keys in a file": lambda there: there.metadata.update(jwks_uri="file:///etc/passwd"),
    "no keys": lambda there: there.metadata.update(jwks_uri=None),
}


def unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    return jwt.encode(claims, "", "none", headers=header)


def by_public_key(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """Sign a token as a verifier would accept it that takes the algorithm from the token and the key for a
    secret."""
    import base64
    import hashlib
    import hmac
    import json

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    text = part({"alg": "HS256", "typ": "JWT", **header}) + b"." + part(claims)
    mac = hmac.new(pem("first"), text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


def by_other_algorithm(claims: dict[str, Any], header: dict[str, Any]) -> str:
    return jwt.encode(claims, key("first"), "RS512", headers=header)


def by_another_key(claims: dict[str, Any], header: dict[str, Any]) -> str:
    return jwt.encode(claims, key("another"), "RS256", headers=header)


def with_own_key(claims: dict[str, Any], header: dict[str, Any]) -> str:
    own = jwt.algorithms.RSAAlgorithm.to_jwk(key("another").public_key(), as_dict=True)
    more = {**header, "jwk": own, "jku": "http://127.0.0.1:1/keys"}
    return jwt.encode(claims, key("another"), "RS256", headers=more)


def huge() -> web.Response:
    return web.Response(text='{"keys": [' + '{"kty": "RSA"},' * 100_000 + "{}]}")


def redirecting() -> web.Response:
    return web.Response(status=302, headers={"location": "/keys"})


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_sign_in_that_is_not_ours_does_not_count(tmp_path: Path, name: str) -> None:
    """The user is neither signed in nor added. If the browser came back, the audit log has a line (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        HOSTILE[name](there)
        browser = Browser(site)
        answer = await browser.ask("GET", "/oidc/login")
        if answer.status == 303:
            answer = await browser.come_back(there.authorize(answer.headers["location"]))
            assert [one[0] for one in await audited(site)] == ["sign_in.failed"]
        assert answer.status in (403, 502)
        assert b"127.0.0.1" not in answer.body
        assert await browser.who() is None
        assert await site.runtime.store.people() == []


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"state": "another"}, 400),
        ({"state": None}, 400),
        ({"code": "another"}, 403),
        ({"code": None}, 403),
        ({"iss": "https://evil.example"}, 403),
        ({"iss": None}, 403),
        ({"error": "access_denied"}, 403),
    ],
)
async def test_a_browser_that_brings_something_else_back_is_not_in(
    tmp_path: Path, change: dict[str, str | None], status: int
) -> None:
    """The server also refuses a code from another provider (mix-up) without sending it to ours (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        browser = Browser(site)
        valid = there.authorize(await browser.begin())
        twice = await browser.ask("GET", "/oidc/callback", params=[*valid.items(), *[("x", "1")] * 2])
        assert twice.status == 400
        returned: dict[str, Any] = {**valid, **change}
        answer = await browser.come_back({name: value for name, value in returned.items() if value})
        assert answer.status == status
        assert ("token" in there.asked) == ("code" in change and change["code"] is not None)
        assert await browser.who() is None


async def test_a_state_counts_once_and_for_its_browser_alone(tmp_path: Path) -> None:
    """V4: replayed by the same browser at the same time, and brought by another one (login CSRF)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        victim, attacker = Browser(site), Browser(site)
        returned = there.authorize(await attacker.begin())
        assert (await victim.come_back(returned)).status == 400
        copies = [Browser(site, dict(attacker.cookies)) for _ in range(5)]
        answers = await asyncio.gather(*(copy.come_back(returned) for copy in copies))
        assert sorted(answer.status for answer in answers) == [303, 400, 400, 400, 400]
        begun = await victim.begin()
        ((name, value),) = victim.cookies.items()
        victim.cookies[name] = value[:-1] + ("0" if value[-1] != "0" else "1")
        assert (await victim.come_back(there.authorize(begun))).status == 400


async def test_two_tabs_sign_in_at_the_same_time(tmp_path: Path) -> None:
    """V4"""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        browser = Browser(site)
        first, second = await browser.begin("/c/one"), await browser.begin("/c/two")
        for begun, to in ((first, "/c/one"), (second, "/c/two")):
            assert (await browser.come_back(there.authorize(begun))).headers["location"] == to


@pytest.mark.parametrize(
    "to",
    [
        *(
            "//evil.example",
            "/\\evil.example",
            "\\evil.example",
            "https://evil.example",
            "/%2fevil.example",
        ),
        *(
            "/c/../..//evil.example",
            "javascript:alert(1)",
            "/c/x\nset-cookie: a=b",
            "/api/me",
            "/c/x?a=1",
            "",
        ),
    ],
)
async def test_a_sign_in_leads_to_our_own_pages_alone(tmp_path: Path, to: str) -> None:
    """V4"""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        answer = await Browser(site).sign_in(there, to)
        assert (answer.status, answer.headers["location"]) == (303, "/")


async def test_below_a_path_behind_a_proxy_all_addresses_are_the_proxys(tmp_path: Path) -> None:
    """The cookies are Secure and limited to this path, and a client cannot choose the redirect of the
    provider (V4)."""
    async with (
        provider() as there,
        served(tmp_path, [says("x")], oidc=there.settings(), proxies=["127.0.0.1"], path="/chat") as site,
    ):
        browser = Browser(site, headers={"x-forwarded-proto": "https", "x-forwarded-host": "evil.example"})
        answer = await browser.ask("GET", "/oidc/login")
        host = site.url.removeprefix("http://")
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        assert query["redirect_uri"] == [f"https://{host}/chat/oidc/callback"]
        cookie = answer.headers["set-cookie"]
        assert all(mark in cookie for mark in ("HttpOnly", "Path=/chat/oidc", "SameSite=lax", "Secure"))
        answer = await browser.come_back(there.authorize(answer.headers["location"]))
        assert answer.headers["location"] == "/chat/"
        answer = await browser.ask("GET", "/oidc/login", headers={"host": "evil.example"})
        assert answer.status == 421


async def test_a_key_that_is_new_is_found_and_an_old_one_counts_no_more(tmp_path: Path) -> None:
    """V4: between the start of a sign-in and its end."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        assert (await Browser(site).sign_in(there)).status == 303
        browser = Browser(site)
        begun = await browser.begin()
        there.kid, there.published = "second", ["second"]
        assert (await browser.come_back(there.authorize(begun))).status == 303
        there.kid = "first"
        assert (await Browser(site).sign_in(there)).status == 403
        assert there.asked.count("discovery") == 1


async def test_groups_decide_who_signs_in_and_who_is_an_admin(tmp_path: Path) -> None:
    """V4: an admin sets up and sees what all use, and is not `local`: its conversations stay its own."""
    async with provider() as there:
        settings = there.settings(
            allowed_groups=frozenset({"chat", "ops"}), admin_group="ops", groups_claim="realm.roles"
        )
        async with served(tmp_path, [says("x")], oidc=settings) as site:
            kept = await site.conversation()
            statuses, seen = [], []
            for groups in (None, [], "chat", ["other"], ["chat", "x"], ["ops"], {"ops": 1}, [["ops"]]):
                there.claims, browser = {"realm": {"roles": groups}}, Browser(site)
                statuses.append((await browser.sign_in(there)).status)
                seen.append((await browser.ask("GET", "/api/audit")).status)
            assert statuses == [403, 403, 303, 403, 303, 303, 403, 403]
            assert seen == [401, 401, 403, 401, 403, 200, 401, 401]
            there.claims = {"realm": {"roles": ["ops"]}}
            admin = Browser(site)
            await admin.sign_in(there)
            assert (await admin.ask("GET", "/api/usage", params={"everybody": "true"})).status == 200
            assert (await admin.ask("GET", f"/api/conversations/{kept}")).status == 404
            assert (await admin.ask("GET", "/metrics")).status == 403


@pytest.mark.parametrize("given", [{"allowed_groups": frozenset({"ops"})}, {"admin_group": "ops"}, {}])
async def test_groups_that_a_token_lacks_are_asked_for_where_they_count(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    """V4"""
    async with provider() as there, served(tmp_path, [], oidc=there.settings(**given)) as site:
        there.claims = {"groups": None}
        there.user_info = {"sub": "sub-ada", "groups": ["ops"]}
        browser = Browser(site)
        assert (await browser.sign_in(there)).status == 303
        audit = await browser.ask("GET", "/api/audit")
        assert audit.status == (200 if "admin_group" in given else 403)
        there.user_info = {"sub": "sub-ada", "groups": ["others"]}
        assert (await Browser(site).sign_in(there)).status == (403 if "allowed_groups" in given else 303)


async def test_another_admin_group_ends_the_rights_of_the_old_one(tmp_path: Path) -> None:
    """This also holds for sign-ins from before the settings changed (V4)."""
    async with provider() as there, served(tmp_path, [], oidc=there.settings(admin_group="ops")) as site:
        there.claims, admin = {"groups": ["ops"]}, Browser(site)
        await admin.sign_in(there)
        statuses = []
        for group in ("ops", "others", None):
            assert site.auth.oidc is not None
            site.auth.oidc.settings = there.settings(admin_group=group)
            statuses.append((await admin.ask("GET", "/api/audit")).status)
        assert statuses == [200, 403, 403]


async def test_bad_codes_are_not_sent_to_the_provider_for_ever(tmp_path: Path) -> None:
    """A client that sends many bad codes is slowed like one that guesses passwords (V4, U1)."""
    async with provider() as there, served(tmp_path, [], oidc=there.settings()) as site:
        browser = Browser(site)
        statuses = []
        for _ in range(8):
            returned = there.authorize(await browser.begin())
            statuses.append((await browser.come_back({**returned, "code": "bad"})).status)
        assert (statuses[0], statuses[-1]) == (403, 429)
        assert there.asked.count("token") <= ONE.burst + 1


async def test_what_the_token_lacks_is_asked_of_the_provider(tmp_path: Path) -> None:
    """The answer counts only for the same account, and claims of the token take precedence (V4)."""
    async with (
        provider() as there,
        served(tmp_path, [says("x")], oidc=there.settings(allowed_groups=frozenset({"chat"}))) as site,
    ):
        there.claims = {"preferred_username": None}
        there.user_info = {"sub": "sub-ada", "preferred_username": "ada", "groups": ["chat"]}
        browser = Browser(site)
        assert (await browser.sign_in(there)).status == 303
        assert await browser.who() == "ada"
        there.user_info = {"sub": "sub-bob", "groups": ["chat"]}
        assert (await Browser(site).sign_in(there)).status == 403
        there.claims = {"preferred_username": None, "groups": []}
        there.user_info = {"sub": "sub-ada", "groups": ["chat"]}
        assert (await Browser(site).sign_in(there)).status == 403


async def ended(there: Provider, site: Site, token: str) -> int:
    path, body = "/oidc/logout", f"logout_token={token}".encode()
    return (await Browser(site).ask("POST", path, body, headers=FORM)).status


@pytest.mark.parametrize(
    "by", [{"sid": "sid-1", "sub": None}, {"sid": "sid-1"}, {}], ids=["session", "both", "user"]
)
async def test_the_provider_ends_sign_ins_and_their_streams(tmp_path: Path, by: dict[str, Any]) -> None:
    """A logout token ends one session or all sessions of an account, others stay, and it counts once (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        mine, other, bob = Browser(site), Browser(site), Browser(site)
        await mine.sign_in(there)
        there.claims = {"sid": "sid-2"}
        await other.sign_in(there)
        there.claims = {"sub": "sub-bob", "preferred_username": "bob", "sid": "sid-3"}
        await bob.sign_in(there)
        there.claims = {}
        cookies = ["; ".join(f"{name}={value}" for name, value in one.cookies.items()) for one in (mine, bob)]
        async with (
            site.http.get(f"{site.url}/api/events", headers={"cookie": cookies[0]}) as stream,
            site.http.get(f"{site.url}/api/events", headers={"cookie": cookies[1]}) as stays,
        ):
            assert (stream.status, stays.status) == (200, 200)
            await stays.content.readline()
            token = there.notice(**by)
            assert await ended(there, site, token) == 200
            async with asyncio.timeout(PATIENCE):
                await stream.read()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await stays.read()
        assert [await one.who() for one in (mine, other, bob)] == [None, "ada" if by else None, "bob"]
        assert await ended(there, site, token) == 400
        assert (await audited(site))[-1][::2] == ("sign_out.done", "provider")
        assert (await mine.sign_in(there)).status == 303


@pytest.mark.parametrize(
    "wrong",
    [
        {"events": None},
        {"events": {"another": {}}},
        {"events": EVENT},
        {"nonce": "x"},
        {"jti": None},
        {"sub": None},
        {"aud": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"iat": 1},
    ],
)
async def test_a_logout_that_is_not_the_providers_ends_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """V4"""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        browser = Browser(site)
        await browser.sign_in(there)
        assert await ended(there, site, there.notice(**wrong)) == 400
        assert await ended(there, site, "") == 400
        assert await ended(there, site, there.token("nonce")) == 400  # an ID token
        asked = there.asked.count("keys")
        there.kid = "unpublished"
        for _ in range(5):  # a client that names keys does not make us ask for them again and again
            assert await ended(there, site, there.notice()) == 400
        assert there.asked.count("keys") == asked
        assert await browser.who() == "ada"


async def test_signing_out_leads_to_the_provider_and_voids_the_cookie(tmp_path: Path) -> None:
    """A copy of the cookie gets 401, also when no provider is configured (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        browser = Browser(site)
        await browser.sign_in(there)
        copy = Browser(site, dict(browser.cookies))
        answer = await browser.ask("POST", "/api/links", {})
        assert answer.status == 422  # a session that began by a link would outlive the provider's
        answer = await browser.ask("POST", "/api/logout")
        assert answer.status == 200
        assert answer.body["url"].startswith(f"{there.url}/end?client_id=dragoman&post_logout_redirect_uri=")
        assert await copy.who() is None
        await browser.sign_in(there)
        site.auth.oidc = None
        assert await browser.who() is None
        assert (await browser.ask("GET", "/oidc/login")).status == 404


async def test_a_removed_user_stays_out_until_restored(tmp_path: Path) -> None:
    """The provider cannot let a removed user in. A restored user has the old conversations again (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        browser = Browser(site)
        await browser.sign_in(there)
        conversation = (await browser.ask("POST", "/api/conversations", {})).body["id"]
        await site.runtime.store.remove_person("ada")
        assert await browser.who() is None
        assert (await browser.sign_in(there)).status == 403
        await site.runtime.store.add_person("ada", key_hash("another"), 2.0, restore=True)
        assert await browser.who() is None
        assert (await browser.sign_in(there)).status == 303
        assert (await browser.ask("GET", f"/api/conversations/{conversation}")).status == 200


async def test_a_sign_in_ends_when_the_settings_say(tmp_path: Path) -> None:
    """The next sign-in checks the roles of the user again (V4)."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings(session=1.0)) as site:
        browser = Browser(site)
        await browser.sign_in(there)
        await asyncio.sleep(1.1)
        assert await browser.who() is None


async def test_a_provider_that_is_away_is_not_asked_again_at_once(tmp_path: Path) -> None:
    """V4: however often clients begin."""
    async with provider() as there, served(tmp_path, [says("x")], oidc=there.settings()) as site:
        there.metadata = {"issuer": None}
        answers = await asyncio.gather(*(Browser(site).ask("GET", "/oidc/login") for _ in range(5)))
        assert {answer.status for answer in answers} == {502}
        assert there.asked == ["discovery"]
