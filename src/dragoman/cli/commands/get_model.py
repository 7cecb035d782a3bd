"""Run `dragoman models get`: offer models for this machine, and download the chosen one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from pydantic import JsonValue
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from dragoman.cli.flags.setup import GetModelFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.terminal.tables import open_console, print_table
from dragoman.cli.terminal.text import print_json
from dragoman.config.build import catalog_of
from dragoman.errors import ConfigError
from dragoman.providers.catalog import Catalog
from dragoman.providers.listing import discover
from dragoman.providers.local.downloaded import Downloaded
from dragoman.providers.local.handover import hand_over, server_for
from dragoman.providers.local.hub import Hub, HubModel, describe_choice, read_wanted
from dragoman.providers.local.offers import Hardware, ModelOffer, offers, recommended, this_machine
from dragoman.providers.sign_in import Keys
from dragoman.sentences import sentence
from dragoman.wire.http_client.client import HttpClient

FITS = {
    "gpu": "runs on the GPU",
    "memory": "runs in memory",
    "slow": "runs, slowly",
    "no": "needs more memory",
}


async def get_model(flags: GetModelFlags) -> int:
    """Print available models, or download the named or chosen one."""
    catalog = catalog_of(settings_for(flags))
    if flags.json or (flags.model is None and not sys.stdin.isatty()):
        await _list_offers(as_json=flags.json)
        return 0
    wanted = flags.model or await choose_offer()
    if wanted is None:
        return 0
    name = await download(wanted, catalog)
    print(f"{name} is ready: dragoman chat --model {name}")
    return 0


async def download(wanted: str, catalog: Catalog) -> str:
    """Download a model and return its full name, under which it can answer from now on. Raises ConfigError if
    that fails."""
    taker = server_for(await discover())
    async with HttpClient() as client:
        hub = Hub(client, token=hub_token(catalog))
        found = await hub.models(asked := read_wanted(wanted))
        if not found:
            raise ConfigError(sentence("hub.no_models", repo=asked.repo))
        model = found[0] if len(found) == 1 else await _choose(found)
        print(f"{model.repo} {model.name}: {model.size / 1e9:.1f} GB, license {model.license or 'unknown'}")
        return await hand_over(client, await _with_progress(hub, model), taker)


def hub_token(catalog: Catalog) -> str | None:
    """Return the user's Hugging Face key, wherever it is stored."""
    provider = catalog.providers.get("huggingface")
    if provider is None:
        return os.environ.get("HF_TOKEN")
    key = Keys().find(provider)
    return key.value if key is not None else None


async def choose_offer() -> str | None:
    """Return the user's choice: a number of the list, a repository, or nothing."""
    listed, machine = await _list_offers(as_json=False)
    best = recommended(listed, machine)
    default = str(listed.index(best) + 1) if best is not None else ""
    while True:
        typed = await _ask(f"a number, or ORG/REPO{f' [{default}]' if default else ''}: ")
        typed = typed or default
        if not typed.isdecimal():
            return typed or None
        if 1 <= int(typed) <= len(listed):
            return listed[int(typed) - 1].model


async def _list_offers(*, as_json: bool) -> tuple[list[ModelOffer], Hardware]:
    (checked, listed), machine = offers(), await this_machine()
    best = recommended(listed, machine)
    if as_json:
        rows: list[JsonValue] = [
            {
                "model": one.model,
                "title": one.title,
                "size": one.size,
                "license": one.license,
                "claim": one.claim,
                "source": one.source,
                "fit": machine.fit(one.size * 1e9, one.active),
                "recommended": one is best,
            }
            for one in listed
        ]
        print_json({"checked": checked, "offers": rows}, indent=2)
        return listed, machine
    gpus = ", ".join(f"{name} with {size / 1e9:.0f} GB" for name, size in machine.gpus) or "no GPU"
    print(f"This machine: {machine.memory / 1e9:.0f} GB of memory, {machine.cores} cores, {gpus}.")
    print_table(
        ("", "model", "size", "license", "here", "published"),
        [
            (
                f"{number}{'*' if one is best else ''}",
                one.title,
                f"{one.size:g} GB",
                one.license,
                FITS[machine.fit(one.size * 1e9, one.active)],
                one.claim,
            )
            for number, one in enumerate(listed, 1)
        ],
    )
    print(f"* suits this machine best. List of {checked}; any GGUF repository works, too.")
    return listed, machine


async def _choose(found: Sequence[HubModel]) -> HubModel:
    if not sys.stdin.isatty():
        raise ConfigError(sentence("hub.choose", repo=found[0].repo, models=describe_choice(found)))
    machine = await this_machine()
    rows = [
        (str(n), one.name, f"{one.size / 1e9:.1f} GB", FITS[machine.fit(one.size)])
        for n, one in enumerate(found, 1)
    ]
    print_table(("", "model", "size", "here"), rows)
    while True:
        typed = await _ask("a number: ")
        if typed.isdecimal() and 1 <= int(typed) <= len(found):
            return found[int(typed) - 1]


async def _ask(prompt: str) -> str:
    try:
        return (await asyncio.to_thread(input, prompt)).strip()
    except EOFError:
        raise KeyboardInterrupt from None


async def _with_progress(hub: Hub, model: HubModel) -> Downloaded:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = open_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(model.name, total=model.size)
        return await hub.download(model, lambda done, total: bar.update(task, completed=done))
