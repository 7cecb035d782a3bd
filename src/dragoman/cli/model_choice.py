"""Choose the model that answers: the one in the settings, otherwise the best available one, with the
reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dragoman.background import Background
from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import ConfigError, DragomanError, NotFound
from dragoman.providers import choice
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.lessons import FILE as LESSONS
from dragoman.providers.listing import FILE
from dragoman.providers.local.box import IN_THE_BOX, PROVIDER
from dragoman.providers.local.weights import Progress, is_fetched
from dragoman.providers.models import AUTO, Models
from dragoman.providers.sign_in import Keys
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.stored_keys import data_folder

_TOO_MANY = ("shell", "browser", "media")  # groups that the bundled model would call for everything


@dataclass(slots=True, frozen=True)
class ChosenModel:
    """All available models, the default one, and a note that users should read."""

    models: Models
    name: str
    reason: str
    note: str | None = None
    named: bool = False  # whether settings or flags named it

    @property
    def found(self) -> bool:
        """Whether a model can answer. Otherwise, the user sets one up first."""
        return bool(self.name)

    @property
    def in_the_box(self) -> bool:
        return self.name == f"{PROVIDER}/{IN_THE_BOX}"


async def choose_model(
    settings: Settings,
    *,
    catalog: Catalog | None = None,
    keys: Keys | None = None,
    dialect: str = AUTO,
    progress: Progress | None = None,
    required: bool = True,
) -> ChosenModel:
    """Return the named model, otherwise the best available one. Without `required`, there may be none."""
    catalog, keys = catalog or catalog_of(settings), keys or Keys()
    named = settings.values.get("model")
    if named:
        find_provider(catalog, named)
    try:
        found = await choice.choose(named, catalog=catalog, keys=keys)
    except choice.NoModel as error:
        if required:
            raise
        found = choice.ModelChoice("", str(error))
    models = Models(
        found.name or None,
        catalog=catalog,
        keys=keys,
        dialect=dialect,
        progress=progress,
        types_file=data_folder() / FILE,
        lessons_file=data_folder() / LESSONS,
        switches={f"{PROVIDER}/{IN_THE_BOX}": dict.fromkeys(unsuitable_groups(settings), False)},
    )
    reason = sentence("model.named_by", origin=_origin(settings)) if named else found.reason
    note = note_about(catalog, found.name) if found.name else None
    return ChosenModel(models, found.name, reason, note, named=bool(named))


def find_provider(catalog: Catalog, model: str) -> Provider:
    """Return the provider of a model. Raises ConfigError if there is none, because the setting is then
    invalid."""
    try:
        return catalog.find(model)[0]
    except NotFound as error:
        raise ConfigError(str(error)) from error


def note_about(catalog: Catalog, model: str) -> str | None:
    """Return a note that users should read before they trust a model."""
    return catalog.traits(*catalog.find(model)).note or None


def unsuitable_groups(settings: Settings) -> tuple[str, ...]:
    """Return groups of tools that the bundled model is better without, unless the user named tools."""
    return _TOO_MANY if "tools" not in settings.values else ()


@asynccontextmanager
async def prepared_ahead(chosen: ChosenModel, runtime: Runtime) -> AsyncIterator[None]:
    """Let the bundled model read its tools in the background, so that the first turn does not wait for
    that."""
    background = Background()

    async def prepare() -> None:
        with suppress(DragomanError):  # The first turn meets the same error and reports it.
            model = chosen.models()
            offer = runtime.services.toolbox.offer(runtime.services.rules, model.switches)
            await model.prepare(offer.specs())

    if chosen.in_the_box and is_fetched():
        background.run("preparing the bundled model", prepare)
    try:
        yield
    finally:
        await background.close()


def _origin(settings: Settings) -> str:
    """Return the origin of the model's name without its folder, because the web UI shows it."""
    return Path(settings.origins.get("model", "the caller")).name
