"""Settings in, a server out: the API and the page on one address, until somebody stops it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from rich.console import Console
from rich.markup import escape

from dragoman.cli.chosen import Chosen, choose
from dragoman.cli.little import is_boxed, too_much_for
from dragoman.config.build import Built, build_runtime, store_of, workspace_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError
from dragoman.providers.local.weights import fetch
from dragoman.server.app import UPLOAD_LIMIT, server
from dragoman.server.auth import Auth, kept_secret
from dragoman.server.middleware import LOOPBACK
from dragoman.server.publisher import Publisher
from dragoman.server.shapes import CurrentModel

HOST, PORT = "127.0.0.1", 8721
_UVICORN: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "timeout_graceful_shutdown": 3,
    "limit_concurrency": 2000,
}


def serve(settings: Settings) -> None:
    """Until Ctrl-C. What runs then is stored, and goes on at the next start."""
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    said = settings.values.get("server", {})
    password = _password(settings)
    with _listening(settings, password) as listener:
        chosen = await choose(settings)
        await _fetched(chosen)
        house = build_runtime(settings, model=chosen.models, without=too_much_for(settings, chosen))
        async with chosen.models, house.runtime as runtime:
            secret = kept_secret(store_of(settings).with_name(f"{store_of(settings).name}.files") / "secret")
            access = Auth(runtime.store, secret, password=password)
            app = server(
                runtime,
                access,
                hosts={*LOOPBACK, *_names(listener), *said.get("hosts", [])},
                upload_limit=said.get("upload_limit", UPLOAD_LIMIT),
                model=CurrentModel(chosen.name, chosen.note, chosen.reason),
            )
            link = f"{_address(listener)}/?token={access.token}"
            _tell(settings, chosen, house, link)
            if said.get("open", _has_screen()):
                webbrowser.open(link)
            config = uvicorn.Config(app, **_UVICORN)
            await _Server(config, app.state.desk.publisher).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Lets the live streams end when it is told to stop: else it would wait for them."""

    def __init__(self, config: uvicorn.Config, publisher: Publisher) -> None:
        super().__init__(config)
        self._news = publisher

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # else it would be raised again, before the house is closed in order
        self._news.close()


# ── where ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _listening(settings: Settings, password: str | None) -> Iterator[socket.socket]:
    said = settings.values.get("server", {})
    host, port = said.get("host", HOST), said.get("port")
    if password is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from outside: set a password first. Put it into an environment variable, "
            'and name that one in dragoman.toml: [server] password_from = "MY_VARIABLE"'
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        _bind(listener, host, port)
        yield listener
    finally:
        listener.close()


def _bind(listener: socket.socket, host: str, port: int | None) -> None:
    """On the port that is named. Without one, on ours if it is free, else on any."""
    for attempt in (port,) if port is not None else (PORT, 0):
        try:
            listener.bind((host, attempt))
            return listener.listen()  # before the link is told: who is quick need not come again
        except OSError as error:
            failure = error
    raise ConfigError(f"cannot listen on {host}, port {port}: {failure.strerror}") from failure


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        raise ConfigError(f"{origin}: the environment variable {variable} holds no password")
    return password


def _has_screen() -> bool:
    """Whether somebody sits before a browser of this machine."""
    graphical = sys.platform in ("darwin", "win32") or bool(
        {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    )
    return graphical and sys.stdout.isatty()


async def _fetched(chosen: Chosen) -> None:
    """The model in the box is fetched before the link is told: nobody shall wait for it in the page."""
    if not is_boxed(chosen):
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("fetching the model in the box", total=None, visible=False)
        await fetch(progress=lambda done, total: bar.update(task, completed=done, total=total, visible=True))


def _tell(settings: Settings, chosen: Chosen, house: Built, link: str) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]Dragoman[/bold]  {link}")
    console.print(f"  model      {escape(chosen.name)} [dim]({escape(chosen.reason)})[/dim]")
    if chosen.note:
        console.print(f"             [yellow]{escape(chosen.note)}[/yellow]")
    console.print(f"  workspace  {escape(_short(workspace_of(settings)))}")
    console.print(f"  store      {escape(_short(store_of(settings)))}")
    for trouble in house.warnings:
        console.print(f"  [red]left out[/red]   {escape(trouble)}")
    console.print("  Ctrl-C stops it; what runs goes on at the next start.", style="dim")


def _short(path: Path) -> str:
    path = path.resolve()
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
