"""Keys come from several places, and no output shows one."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.sign_in import Keys, sign_in
from dragoman.wire.auth.auth import KeyAuth

SECRET = "sk-very-secret-0123456789"
ACME = Provider("acme", "Acme", "https://acme.example/v1", keys=("ACME_KEY", "OTHER_KEY"))


class Keyring(ModuleType):
    """Replaces the optional package, which would ask the desktop."""

    def __init__(self, held: dict[str, str] | None) -> None:
        super().__init__("keyring")
        self._held = held

    def get_password(self, service: str, name: str) -> str | None:
        if self._held is None:
            raise RuntimeError("locked")
        return self._held.get(f"{service}/{name}")


def test_a_key_that_is_given_comes_first_then_the_environment_in_order() -> None:
    environment = {"ACME_KEY": "", "OTHER_KEY": "second"}
    found = Keys({"acme": "given"}, environment=environment).find(ACME)
    assert found is not None
    assert (found.value, found.source) == ("given", "given")
    found = Keys(environment=environment, use_keyring=False).find(ACME)
    assert found is not None
    assert (found.value, found.name, found.source) == ("second", "OTHER_KEY", "environment")


def test_the_keyring_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring({"dragoman/OTHER_KEY": SECRET}))
    found = Keys(environment={}).find(ACME)
    assert found is not None
    assert (found.value, found.name, found.source) == (SECRET, "OTHER_KEY", "keyring")
    assert Keys(environment={}, use_keyring=False).find(ACME) is None


def test_a_keyring_that_is_locked_or_not_installed_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", Keyring(None))
    assert Keys(environment={}).find(ACME) is None
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert Keys(environment={}).find(ACME) is None


def test_a_missing_key_is_told_with_its_variables_and_the_way_to_store_it() -> None:
    says = "No key for Acme. Set ACME_KEY or OTHER_KEY .* `dragoman keys set acme`"
    with pytest.raises(ConfigError, match=says):
        sign_in(ACME, Keys(environment={}, use_keyring=False), ACME.base_url)


def test_a_server_on_this_machine_needs_no_key() -> None:
    local = Provider("here", "Here", "http://127.0.0.1:9/v1", keys=("HERE_KEY",), local=True)
    assert sign_in(local, Keys(environment={}, use_keyring=False), local.base_url) == KeyAuth(name="HERE_KEY")


def test_a_key_is_never_printed() -> None:
    keys = Keys({"acme": SECRET})
    assert SECRET not in repr(keys) + repr(keys.find(ACME)) + str(keys.find(ACME))


# ── the names people have ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("GOOGLE_GENERATIVE_AI_API_KEY", "google"),
        ("AZURE_API_KEY", "azure"),
        ("ZHIPU_API_KEY", "zai"),
        ("ZHIPU_API_KEY", "zhipu"),
        ("AWS_BEARER_TOKEN_BEDROCK", "bedrock"),
        ("HF_TOKEN", "huggingface"),
        ("TOGETHERAI_API_KEY", "together"),
        ("FIREWORKS_AI_API_KEY", "fireworks"),
        ("CO_API_KEY", "cohere"),
        ("NVIDIA_NIM_API_KEY", "nvidia"),
        ("VERCEL_AI_GATEWAY_API_KEY", "vercel"),
    ],
)
def test_a_key_is_found_under_the_names_people_have(variable: str, provider: str) -> None:
    known = load_catalog().providers[provider]
    found = Keys(environment={variable: SECRET}, use_keyring=False).find(known)
    assert found is not None
    assert found.name == variable


def test_the_first_name_wins_and_the_others_are_not_sent() -> None:
    for provider in load_catalog().providers.values():
        every = {name: f"value-of-{name}" for name in provider.keys}
        found = Keys(environment=every, use_keyring=False).find(provider)
        assert (found.name if found else None) == next(iter(provider.keys), None)
        if len(provider.keys) > 1 and found is not None:
            auth = sign_in(provider, Keys(environment=every, use_keyring=False), provider.base_url)
            assert auth.secrets == (found.value,)
