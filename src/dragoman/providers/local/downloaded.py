"""Manage model files that were downloaded here: each with a record of its source, next to it in the cache."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dragoman.providers.local.weights import cache_folder

CONTEXT = 16_384  # tokens of a conversation on the server; `[providers.local.models]` can override it


@dataclass(slots=True, frozen=True)
class Downloaded:
    """A model of the hub on this disk. The record is written last: a model without one is incomplete."""

    name: str
    repo: str
    revision: str
    files: tuple[str, ...]  # llama.cpp receives the first, and finds the others
    sha256: tuple[str, ...]
    size: int
    license: str | None
    fetched: float

    @property
    def file(self) -> Path:
        return models_folder() / self.files[0]


_RECORD = TypeAdapter(Downloaded)


def models_folder() -> Path:
    return cache_folder() / "models"


def downloads() -> list[Downloaded]:
    """Return the complete ones, the newest first."""
    found = (_read(file) for file in models_folder().glob("*.json"))
    return sorted((one for one in found if one is not None), key=lambda one: one.fetched, reverse=True)


def newest() -> Downloaded | None:
    return next(iter(downloads()), None)


def find_download(name: str) -> Downloaded | None:
    """Return the model with this name: `local/NAME` without the provider."""
    if "/" in name or name.startswith("."):
        return None
    return _read(models_folder() / f"{name}.json")


def keep_record(record: Downloaded) -> None:
    file = models_folder() / f"{record.name}.json"
    draft = file.with_suffix(".new")
    draft.write_bytes(_RECORD.dump_json(record, indent=1))
    draft.replace(file)


def remove_download(record: Downloaded) -> None:
    """Delete its files. The record is deleted first, so that an interruption leaves no incomplete model."""
    (models_folder() / f"{record.name}.json").unlink(missing_ok=True)
    for file in record.files:
        (models_folder() / file).unlink(missing_ok=True)


def _read(file: Path) -> Downloaded | None:
    with suppress(OSError, ValidationError):
        found = _RECORD.validate_json(file.read_bytes())
        if found.files and found.file.is_file():
            return found
    return None
