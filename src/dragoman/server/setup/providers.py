"""Define routes to set up providers and their keys. No response contains a key."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Any

from pydantic import SecretStr

from dragoman.errors import ConfigError, DragomanError, NotFound, ProviderError
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.catalog_tables import check_tables
from dragoman.providers.chain import names_in
from dragoman.providers.listing import list_models
from dragoman.providers.models import Models
from dragoman.providers.sign_in import describe_auth, reach
from dragoman.redaction import redact_text
from dragoman.sentences import sentence
from dragoman.server.context import Context, TheContext, TheOwnSettings, api_router
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import (
    Advice,
    NewKey,
    NewProvider,
    ProviderSetup,
    ProviderSetupList,
    ProviderTest,
)
from dragoman.stored_keys import keys, next_place

router = api_router("setup", "/setup")

_SHOWN = 50  # maximum number of models in a list


@router.get("/providers")
async def providers(context: TheContext, own: TheOwnSettings) -> ProviderSetupList:
    """List the providers, whether users can sign in there, and the source of each key. Keys are left out."""
    models = _models(context)

    def look() -> ProviderSetupList:  # Keyrings are slow.
        written = own.tables("providers")
        found = [_view(models, one, written) for one in models.catalog.providers.values()]
        return ProviderSetupList(own.short(own.file), next_place(), own.is_shared, found)

    return await asyncio.to_thread(look)


@router.put("/providers/{name}/key")
async def set_key(context: TheContext, own: TheOwnSettings, name: str, body: NewKey) -> ProviderSetup:
    """Store a key in the keyring, or without one in a file that only its owner can read. It applies
    immediately."""
    models = _models(context)
    provider = _provider(models, name)
    key = _checked(body.key)
    if not provider.keys:
        raise ConfigError(
            sentence("key.unused", provider=provider.title or name, signs_in=_signs_in(models, provider))
        )
    found = await asyncio.to_thread(models.keys.find, provider)
    if found is not None and found.source in ("environment", "given"):
        raise ConfigError(sentence("key.environment", name=found.name))
    await asyncio.to_thread(_store, provider.keys[0], key)
    _forget_models(models, provider)
    return await _seen(models, own, provider)


@router.delete("/providers/{name}/key")
async def drop_key(context: TheContext, own: TheOwnSettings, name: str) -> ProviderSetup:
    """Delete a stored key. A key from the environment stays."""
    models = _models(context)
    provider = _provider(models, name)
    found = await asyncio.to_thread(models.keys.find, provider)
    if found is not None and found.source in ("environment", "given"):
        raise ConfigError(sentence("key.in_environment", name=found.name))
    await asyncio.to_thread(_forget, provider)
    _forget_models(models, provider)
    return await _seen(models, own, provider)


@router.post("/providers/{name}/test")
async def try_provider(context: TheContext, own: TheOwnSettings, name: str) -> ProviderTest:
    """Request the provider's list of models with the current key."""
    models = _models(context)
    provider = _provider(models, name)
    secrets: tuple[str, ...] = ()
    try:
        endpoint = await asyncio.to_thread(reach, provider, models.keys)
        secrets = endpoint.secrets
        listed = await list_models(models.client, endpoint)
    except ProviderError as error:
        advice = _advice(error)
        told = str(error) if advice is None else error.without_hint  # One piece of advice is enough.
        return ProviderTest(False, [], redact_text(told, secrets), advice)
    except DragomanError as error:
        return ProviderTest(False, [], redact_text(str(error), secrets), None)
    models.note_types({f"{name}/{one.id}": one.type for one in listed if one.type is not None})
    return ProviderTest(True, [one.id for one in listed][:_SHOWN], None, None)


def _advice(error: ProviderError) -> Advice | None:
    if error.status in (401, 403):
        return "key"
    if error.kind == "no_list":
        return "talk"
    if error.kind in ("connection", "redirect") or error.status == 404:
        return "address"
    return "later" if error.retryable else None


@router.post("/providers", status_code=201)
async def new_provider(context: TheContext, own: TheOwnSettings, body: NewProvider) -> ProviderSetup:
    """Add a custom server immediately: write it to the settings and store its key."""
    models = _models(context)
    if body.name in models.catalog.providers:
        raise ConfigError(sentence("provider.taken", name=body.name))
    if "$" in body.base_url or "@" in body.base_url:
        raise ConfigError(sentence("provider.plain_address"))
    key = _checked(body.key) if body.key is not None else None
    variable = f"OWN_{re.sub(r'[^A-Za-z0-9]', '_', body.name).upper()}_KEY"
    others = {one for each in models.catalog.providers.values() for one in each.keys}
    if variable in others or variable in models.keys.environment:
        raise ConfigError(sentence("key.name_taken", name=body.name, variable=variable))
    table: dict[str, Any] = {"base_url": body.base_url.strip(), "wire": body.wire, "keys": [variable]}
    if key is None:
        table["local"] = True  # The server works without a key.
    check_tables({"providers": {body.name: table}}, own.file.name)

    def write() -> None:
        own.add("providers", body.name, table)
        try:
            catalog = own.catalog()
            keys().forget(variable)  # An earlier provider of this name can have left a key behind.
            if key is not None:
                _store(variable, key)
        except ConfigError:
            own.remove("providers", body.name)
            raise
        models.use_catalog(catalog)

    await asyncio.to_thread(write)
    return await _seen(models, own, models.catalog.providers[body.name])


@router.delete("/providers/{name}", status_code=204)
async def drop_provider(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Remove an added provider with its key."""
    models = _models(context)
    provider = _provider(models, name)

    def write() -> None:
        _check_unneeded(models, own, name)
        own.remove("providers", name)
        models.use_catalog(own.catalog())
        shared = {one for each in models.catalog.providers.values() for one in each.keys}
        for variable in provider.keys:
            if variable not in shared:
                keys().forget(variable)

    await asyncio.to_thread(write)


def _check_unneeded(models: Models, own: OwnSettings, name: str) -> None:
    """Raise ConfigError if the settings name a model, or a chain with a model, that only this provider
    serves."""
    named = own.settings.values.get("model")
    if not named or name in load_catalog().providers:  # Built-in providers exist without a settings file.
        return
    for model in names_in(named):
        with suppress(NotFound):
            if models.catalog.find(model)[0].name == name:
                where = own.origin("model") or "the program"
                raise ConfigError(sentence("provider.in_use", where=where, model=model, name=name))


def _models(context: Context) -> Models:
    models = context.runtime.services.model
    if not isinstance(models, Models):
        raise ConfigError(sentence("setup.one_model"))
    return models


def _provider(models: Models, name: str) -> Provider:
    if name not in models.catalog.providers:
        raise NotFound("provider", name)
    return models.catalog.providers[name]


def _checked(secret: SecretStr) -> str:
    """Return a key without surrounding whitespace. A key can be a header value. Raises ConfigError for other
    characters, without repeating the key."""
    key = secret.get_secret_value().strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError(sentence("key.spaces"))
    return key


def _store(name: str, key: str) -> None:
    try:
        keys().store(name, key)
    except OSError as error:
        raise ConfigError(sentence("key.not_stored", error=error.strerror)) from None


def _forget(provider: Provider) -> None:
    try:
        for name in provider.keys:
            keys().forget(name)
    except OSError as error:
        raise ConfigError(sentence("key.not_removed", error=error.strerror)) from None


def _forget_models(models: Models, provider: Provider) -> None:
    """Forget the models of all providers that use one of this provider's key names."""
    for other in models.catalog.providers.values():
        if {*other.keys} & {*provider.keys}:
            models.forget(other.name)


async def _seen(models: Models, own: OwnSettings, provider: Provider) -> ProviderSetup:
    return await asyncio.to_thread(lambda: _view(models, provider, own.tables("providers")))


def _view(models: Models, provider: Provider, written: dict[str, Any]) -> ProviderSetup:
    missing = address = None
    try:
        reach(provider, models.keys)
    except ConfigError as error:
        missing = str(error)
    try:
        address = redact_text(provider.address(models.keys.environment))
    except ConfigError:
        pass  # The view shows what is missing.
    key = models.keys.find(provider)
    return ProviderSetup(
        provider.name,
        provider.title or provider.name,
        missing is None,
        missing,
        provider.local,
        list(provider.keys),
        key.name if key is not None else None,
        key.source if key is not None else None,
        _signs_in(models, provider),
        address,
        provider.name in written,
    )


def _signs_in(models: Models, provider: Provider) -> str | None:
    return describe_auth(provider, models.keys)
