"""Set up a first model at the terminal, if none can answer: with a key, a local server, or a download."""

from __future__ import annotations

import asyncio

from dragoman.cli.commands.get_model import choose_offer, download
from dragoman.cli.commands.keys import set_key
from dragoman.cli.flags.chat import ChatFlags
from dragoman.cli.flags.setup import SetKeyFlags
from dragoman.cli.model_choice import choose_model
from dragoman.cli.terminal.text import describe_error
from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError, DragomanError
from dragoman.providers.catalog import Catalog
from dragoman.providers.local.server import can_serve
from dragoman.sentences import sentence

_MENU = """\
No model can answer yet. Choose one:
  1  a provider's key, such as OpenAI, Anthropic or Google
  2  a server on this machine, such as Ollama or LM Studio
  3  a good model, downloaded here (2 to 22 GB)
  4  the bundled model (93 MB): it is small, and often wrong
"""


async def ask_for_model(settings: Settings, flags: ChatFlags) -> None:
    """Return when a model can answer. Raises KeyboardInterrupt if the user leaves."""
    catalog = catalog_of(settings)
    while True:
        chosen = await choose_model(settings, required=False)
        await chosen.models.close()
        if chosen.found:
            return
        print(_MENU, end="")
        try:
            match await _ask("1 to 4, Ctrl-D leaves: "):
                case "1":
                    await _ask_for_key(catalog, flags)
                case "2":
                    await _ask("Start it with a model, then press Enter: ")
                case "3":
                    if (wanted := await choose_offer()) is not None:
                        print(f"{await download(wanted, catalog)} is ready.")
                case "4" if not can_serve():
                    print(sentence("local.needs_package"))
                    await _ask("Install it in another terminal, then press Enter: ")
        except (DragomanError, OSError) as error:
            print(f"· {describe_error(error)}")


async def _ask_for_key(catalog: Catalog, flags: ChatFlags) -> None:
    names = [name for name, one in catalog.providers.items() if one.keys and one.default is not None]
    print(f"Providers with a default model: {', '.join(names)}. `dragoman models` lists all.")
    name = await _ask("provider: ")
    if name not in catalog.providers:
        raise ConfigError(f"Unknown provider {name!r}. Run `dragoman models` to list providers.")
    await set_key(SetKeyFlags(provider=name, no_test=False, config=flags.config))


async def _ask(prompt: str) -> str:
    try:
        return (await asyncio.to_thread(input, prompt)).strip()
    except EOFError:
        raise KeyboardInterrupt from None
