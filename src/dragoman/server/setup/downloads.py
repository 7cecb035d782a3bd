"""Define routes to download models to the server's machine."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dragoman.errors import ConfigError, DragomanError, NotFound
from dragoman.providers.listing import discover
from dragoman.providers.local.box import IN_THE_BOX, PROVIDER
from dragoman.providers.local.downloaded import downloads, find_download, remove_download
from dragoman.providers.local.handover import hand_over, server_for
from dragoman.providers.local.hub import Hub, describe_choice, read_wanted
from dragoman.providers.local.offers import offers, recommended, this_machine
from dragoman.providers.models import Models
from dragoman.sentences import sentence
from dragoman.server.context import TheContext, TheOwnSettings, api_router
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import Download, DownloadSetup, NewDownload, OfferedModel
from dragoman.wire.http_client.client import HttpClient

router = api_router("setup", "/setup")


@router.get("/downloads")
async def list_downloads(context: TheContext, own: TheOwnSettings) -> DownloadSetup:
    """List models that suit this machine, downloaded ones, and the progress of others."""
    machine, (checked, listed) = await this_machine(), offers()
    best = recommended(listed, machine)
    running = own.downloads
    here = [Download(one.name, one.repo, one.size, one.size, "done") for one in downloads()]
    known = {one.name for one in here}
    return DownloadSetup(
        checked,
        [
            OfferedModel(
                one.model,
                one.title,
                one.size,
                one.license,
                one.claim,
                one.source,
                machine.fit(one.size * 1e9, one.active),
                one is best,
            )
            for one in listed
        ],
        [*(one for name, one in running.items() if name not in known), *here],
    )


@router.post("/downloads", status_code=202)
async def begin_download(context: TheContext, own: TheOwnSettings, body: NewDownload) -> Download:
    """Start to download a model, or continue a running download."""
    models = context.runtime.services.model
    if not isinstance(models, Models):
        raise ConfigError(sentence("setup.one_model"))
    taker = server_for(await discover())
    key = await asyncio.to_thread(models.keys.find, models.catalog.providers["huggingface"])
    async with HttpClient() as client:
        wanted = read_wanted(body.model)
        found = await Hub(client, token=key.value if key is not None else None).models(wanted)
    if not found:
        raise ConfigError(sentence("hub.no_models", repo=wanted.repo))
    if len(found) > 1:
        raise ConfigError(sentence("hub.choose", repo=wanted.repo, models=describe_choice(found)))
    model = found[0]
    known = own.downloads.get(model.name)
    if known is not None and known.state == "running":
        return known
    download = own.downloads[model.name] = Download(model.name, model.repo, model.size, 0, "running")

    async def work() -> None:
        try:
            async with HttpClient() as client:
                hub = Hub(client, token=key.value if key is not None else None)
                record = await hub.download(model, lambda done, _: setattr(download, "done", done))
                name = await hand_over(client, record, taker)
            download.state = "done"
            _use(models, own, name)
        except DragomanError as error:
            download.state, download.error = "failed", str(error)
        except asyncio.CancelledError:
            own.downloads.pop(model.name, None)
            raise

    own.download_tasks[model.name] = context.runtime.background.run(f"download of {model.name}", work)
    return download


@router.delete("/downloads/{name}", status_code=204)
async def remove(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Stop a download, or delete a downloaded model. A partial download is kept, so that it can resume."""
    task = own.download_tasks.pop(name, None)
    shown = own.downloads.pop(name, None)
    if task is not None and not task.done():
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return
    record = find_download(name)
    if record is None and shown is None:
        raise NotFound("download", name)
    if record is not None:
        await asyncio.to_thread(remove_download, record)
    models = context.runtime.services.model
    if isinstance(models, Models):
        models.forget(PROVIDER)
        if models.default == f"{PROVIDER}/{name}":
            models.default = None  # The next request chooses another model.


def _use(models: Models, own: OwnSettings, name: str) -> None:
    """Use the model for new conversations, unless the settings name one or a better one answers."""
    models.forget(PROVIDER)
    if models.default in (None, f"{PROVIDER}/{IN_THE_BOX}") and not own.settings.values.get("model"):
        models.default = name
