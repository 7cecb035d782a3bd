"""Run `dragoman serve` and `worker`: serve the API and the web UI, or run turns, until the user stops it."""

from __future__ import annotations

import asyncio
import gc
import html
import ipaddress
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from dragoman.background import in_thread
from dragoman.cli.flags.chat import ServeFlags, WorkerFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.listening import HOST, PORT, files_of, listen_on, log_warnings
from dragoman.cli.model_choice import ChosenModel, choose_model, prepared_ahead
from dragoman.cli.terminal.keyboard import on_enter
from dragoman.cli.terminal.text import near_home
from dragoman.config.build import Built, build_runtime, store_of, turns_of
from dragoman.config.settings import Settings
from dragoman.config.tables import parse_duration
from dragoman.config.workspaces import workspace_of
from dragoman.conversation.tree import LOCAL
from dragoman.errors import ConfigError
from dragoman.providers.local.weights import fetch
from dragoman.redaction import redact_text
from dragoman.server.app import UPLOAD_LIMIT, server
from dragoman.server.auth import Auth, load_secret
from dragoman.server.links import LIFETIME, RunningServer, announce
from dragoman.server.listener import HttpServer
from dragoman.server.middleware import LOOPBACK
from dragoman.server.oidc import OidcProvider, OidcSettings
from dragoman.server.proxies import Proxies
from dragoman.server.publisher import Publisher
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.shapes import CurrentModel
from dragoman.store.address import StoreAddress, StoreFile
from dragoman.store.store import Store
from dragoman.stored_keys import keys, open_private
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.network import is_loopback

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={url}">
<title>Dragoman</title>
<a href="{url}">Dragoman</a>
"""


async def serve(flags: ServeFlags) -> None:
    """Serve until Ctrl-C. Running turns are stored, and resume at the next start."""
    values = {
        "model": flags.model,
        "server.host": flags.host,
        "server.port": flags.port,
        "server.open": flags.open,
        "workers.role": flags.role,
    }
    settings = settings_for(flags, values)
    log_warnings()
    if settings.values.get("workers", {}).get("role") == "worker":
        raise ConfigError("A worker serves no users. Start it with `dragoman worker`.")
    table = settings.values.get("server", {})
    password, proxies = _password(settings), Proxies(table.get("proxies", []))
    with _listen(settings, password) as listener:
        chosen = await choose_model(settings, required=False)
        try:
            await fetch_model(chosen)
        # The web UI opens anyway, because the admin can set up another model there.
        except ConfigError as error:
            print(f"dragoman: {error}", file=sys.stderr)
        built = build_runtime(settings, model=chosen.models, **turns_of(settings))
        async with (
            chosen.models,
            HttpClient() as http,
            built.runtime as runtime,
            prepared_ahead(chosen, runtime),
        ):
            folder = files_of(settings)
            auth = Auth(
                runtime.store,
                await _secret(runtime.store, folder),
                password=password,
                oidc=await in_thread(lambda: _oidc(settings, http)),
            )
            app = server(
                runtime,
                auth,
                proxies=proxies,
                origins=table.get("origins", []),
                path=table.get("path", ""),
                hosts={*LOOPBACK, *_names(listener), *table.get("hosts", [])},
                upload_limit=table.get("upload_limit", UPLOAD_LIMIT),
                model=CurrentModel(chosen.name, chosen.note, chosen.reason) if chosen.found else None,
                metrics=table.get("metrics", "owner"),
                own_settings=OwnSettings(settings),
            )
            address = _address(listener)
            running = RunningServer(address, auth.key)
            page = address + table.get("path", "")
            publisher: Publisher = app.state.context.publisher
            loop = asyncio.get_running_loop()

            def end_streams() -> None:
                loop.call_soon_threadsafe(publisher.close)  # A signal can arrive at any moment.

            serving = HttpServer(app, proxies=proxies, on_exit=end_streams)

            def print_link() -> None:
                print(_link(page, auth.links.add(LOCAL, lifetime=LIFETIME)), flush=True)

            with announce(folder, running), on_enter(print_link), ExitStack() as opened:
                # Other commands can find the server by now.
                _greet(settings, chosen, built, _link(page, auth.token))
                if table.get("open", _has_screen()):
                    opened.enter_context(open_privately(_link(page, auth.links.add(LOCAL, lifetime=60))))
                # Existing objects stay alive, and scanning them in garbage collections would delay all
                # requests.
                gc.freeze()
                await serving.serve(sockets=[listener])


async def _secret(store: Store, folder: Path) -> bytes:
    """Return the secret that signs cookies: one for all servers of a database, otherwise one for this
    folder."""
    own = load_secret(folder / "secret")
    shared: Callable[[str, bytes], Awaitable[bytes]] | None = getattr(store, "shared_secret", None)
    return own if shared is None else await shared("sign-in", own)


def _link(address: str, token: str) -> str:
    return f"{address}/?token={token}"


# ── location ──────────────────────────────────────────────────────────────────────────────────────


def _listen(settings: Settings, password: str | None) -> socket.socket:
    table = settings.values.get("server", {})
    host, port = table.get("host", HOST), table.get("port")
    if password is None and not is_loopback(host):
        raise ConfigError(
            f"{host} is reachable from other machines, so set a password first. Put "
            "it into an environment variable, "
            'and name that variable in dragoman.toml: [server] password_from = "MY_VARIABLE".'
        )
    return listen_on(host, port, PORT)


def _names(listener: socket.socket) -> set[str]:
    host = str(listener.getsockname()[0])
    return {host} if not ipaddress.ip_address(host).is_unspecified else {socket.gethostname().lower()}


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname().lower()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _password(settings: Settings) -> str | None:
    variable = settings.values.get("server", {}).get("password_from")
    if variable is None:
        return None
    password = os.environ.get(variable)
    if not password:
        origin = settings.origins.get("server.password_from", "settings")
        raise ConfigError(f"{origin}: The environment variable {variable} has no password.")
    return password


def _oidc(settings: Settings, http: HttpClient) -> OidcProvider | None:
    """Return the provider at which users sign in. Raises ConfigError if its secret is named but missing."""
    table = settings.values.get("server", {}).get("oidc")
    if table is None:
        return None
    given: dict[str, Any] = {name: value for name, value in table.items() if name != "client_secret_from"}
    parsers: dict[str, Callable[[Any], object]] = {
        "scopes": tuple,
        "allowed_groups": frozenset,
        "session": parse_duration,
    }
    given |= {name: parse(given[name]) for name, parse in parsers.items() if name in given}
    if (variable := table.get("client_secret_from")) is not None:
        given["client_secret"] = os.environ.get(variable) or keys().read(variable)
        if not given["client_secret"]:
            raise ConfigError(
                f"server.oidc.client_secret_from: neither the environment nor the keyring has {variable}. "
                "Set the variable to the client secret, or remove the setting for a public client."
            )
    return OidcProvider(OidcSettings(**given), http)


def _has_screen() -> bool:
    """Return whether a user is at this machine with a graphical browser."""
    graphical = sys.platform in ("darwin", "win32") or bool(
        {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    )
    return graphical and sys.stdout.isatty()


async def fetch_model(chosen: ChosenModel) -> None:
    """Download the bundled model before the link is printed, so that no user waits for it in the web UI."""
    if not chosen.in_the_box:
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task("fetching the bundled model", total=None, visible=False)
        await fetch(progress=lambda done, total: bar.update(task, completed=done, total=total, visible=True))


def _greet(settings: Settings, chosen: ChosenModel, built: Built, url: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]Dragoman[/bold]  {url}")
    show_setup(console, settings, chosen, built)
    another = "Enter prints another link. " if sys.stdin.isatty() else ""
    console.print(f"  {another}Ctrl-C stops it. Running turns resume at the next start.", style="dim")


def show_setup(console: Console, settings: Settings, chosen: ChosenModel, built: Built) -> None:
    if chosen.found:
        console.print(f"  model      {escape(chosen.name)} [dim]({escape(chosen.reason)})[/dim]")
    else:
        console.print("  model      [yellow]none yet: open the link to set one up[/yellow]")
    if chosen.note:
        console.print(f"             [yellow]{escape(chosen.note)}[/yellow]")
    console.print(f"  workspace  {escape(near_home(workspace_of(settings)))}")
    console.print(f"  store      {escape(_shown(store_of(settings)))}")
    if built.prompt is not None:
        console.print(f"  prompt     {escape(built.prompt.file.name)} of the workspace is part of it")
    for warning in built.warnings:
        console.print(f"  [red]left out[/red]   {escape(redact_text(warning))}")


def _shown(store: StoreAddress) -> str:
    return near_home(store.path) if isinstance(store, StoreFile) else str(store)


async def work(flags: WorkerFlags) -> None:
    """Run turns until Ctrl-C or SIGTERM, which hand running turns to other workers."""
    values = {"model": flags.model, "workers.per_node": flags.turns}
    settings = settings_for(flags, values)
    log_warnings()
    chosen = await choose_model(settings)
    await fetch_model(chosen)
    built = build_runtime(settings, model=chosen.models, **{**turns_of(settings), "role": "worker"})
    stop = asyncio.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(told, stop.set)
    async with chosen.models, built.runtime:
        console = Console(highlight=False, soft_wrap=True)
        console.print("[bold]Dragoman[/bold]  a worker")
        show_setup(console, settings, chosen, built)
        console.print("  Press Ctrl-C to stop. Other workers take over running turns.", style="dim")
        await stop.wait()


@contextmanager
def open_privately(url: str) -> Iterator[Path]:
    """Open the browser with a file that only this user can read and that redirects to the link."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        file = Path(folder) / "open.html"
        with open(file, "x", encoding="utf-8", opener=open_private) as page:
            page.write(_PAGE.format(url=html.escape(url)))
        # Some browsers run until they are closed, so do not wait for them.
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield file
