"""Run `dragoman keys …`: store, list and remove the keys of providers."""

from __future__ import annotations

import re
import sys
from getpass import getpass

from dragoman.cli.commands.models import check_names
from dragoman.cli.flags.setup import ListKeysFlags, RemoveKeyFlags, SetKeyFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import catalog_of
from dragoman.errors import ConfigError, DragomanError
from dragoman.providers.catalog import Provider
from dragoman.providers.listing import list_models
from dragoman.providers.sign_in import Keys, reach
from dragoman.redaction import redact_text
from dragoman.stored_keys import keys, keys_file
from dragoman.wire.http_client.client import HttpClient


async def set_key(flags: SetKeyFlags) -> None:
    """Store a key, read from standard input if that is not a terminal. It is tested by one request for the
    models."""
    provider = _provider(flags)
    variable = provider.keys[0]
    key = (getpass(f"{variable}: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError("A key has no spaces. Paste it as the provider shows it.")
    place = keys().store(variable, key)
    where = "the system's keyring" if place == "keyring" else f"{keys_file()}, which only you can read"
    print(f"Stored {variable} in {where}.")
    if flags.no_test:
        return
    problem = await _try(provider, key)
    if problem is None:
        print(f"{provider.title} accepts it")
    else:
        print(f"The test failed: {problem}. The key stays stored.", file=sys.stderr)


async def _try(provider: Provider, key: str) -> str | None:
    """Return the error of a request for the provider's models, or None."""
    secrets: tuple[str, ...] = (key,)
    async with HttpClient() as client:
        try:
            endpoint = reach(provider, Keys({provider.name: key}, environment={}, use_keyring=False))
            secrets += endpoint.secrets
            await list_models(client, endpoint)
        except DragomanError as error:
            return redact_text(str(error), secrets)
    return None


def list_keys(flags: ListKeysFlags) -> None:
    """Print where each provider's key is stored, but no key."""
    catalog, known = catalog_of(settings_for(flags)), Keys()
    found = [(one, key) for one in catalog.providers.values() if (key := known.find(one)) is not None]
    if flags.json:
        print_json(
            [{"provider": one.name, "name": key.name, "source": key.source} for one, key in found], indent=2
        )
        return
    if not found:
        print("No keys yet: dragoman keys set PROVIDER stores one.", file=sys.stderr)
    for one, key in found:
        print(f"{one.name}\t{key.name}\t{key.source}")


def remove_key(flags: RemoveKeyFlags) -> None:
    provider = _provider(flags)
    stored = [name for name in provider.keys if keys().read(name) is not None]
    if not stored:
        raise ConfigError(
            f"No stored key of {provider.name}. Run `dragoman keys list` to see where keys are."
        )
    for name in stored:
        keys().forget(name)
        print(f"Removed {name}.")


def _provider(flags: SetKeyFlags | RemoveKeyFlags) -> Provider:
    catalog = catalog_of(settings_for(flags))
    check_names([flags.provider], catalog)
    provider = catalog.providers[flags.provider]
    if not provider.keys:
        raise ConfigError(f"{provider.title} needs no key.")
    return provider
