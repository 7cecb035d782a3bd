"""Which model answers: the one the settings name, else the best that is there, and why it was chosen."""

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

_TOO_MANY = ("shell", "browser", "media")  # groups that the model in the box would call for everything


@dataclass(slots=True, frozen=True)
class ChosenModel:
    """All models there are, the one that answers where none is named, and what a person should know of it."""

    models: Models
    name: str
    reason: str
    note: str | None = None
    named: bool = False  # by settings or flags

    @property
    def found(self) -> bool:
        """Whether any model can answer. Otherwise a person sets one up first."""
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
    """The model that is named, else the best that is there. Without `required`, there may be none."""
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
    """Who serves this model. A name nobody serves is a setting that cannot be followed: ConfigError."""
    try:
        return catalog.find(model)[0]
    except NotFound as error:
        raise ConfigError(str(error)) from error


def note_about(catalog: Catalog, model: str) -> str | None:
    """What a person should know before they trust a model."""
    return catalog.traits(*catalog.find(model)).note or None


def unsuitable_groups(settings: Settings) -> tuple[str, ...]:
    """Groups of tools that the model in the box is better off without, unless the person named tools."""
    return _TOO_MANY if "tools" not in settings.values else ()


@asynccontextmanager
async def prepared_ahead(chosen: ChosenModel, runtime: Runtime) -> AsyncIterator[None]:
    """Meanwhile the model in the box reads its tools, so that the first turn need not wait for that."""
    background = Background()

    async def prepare() -> None:
        with suppress(DragomanError):  # whatever it is, the first turn meets it too, and says it
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
    """Who named the model, without the folder: this is shown in the page too."""
    return Path(settings.origins.get("model", "the caller")).name
