"""Download GGUF files from Hugging Face or a mirror: resume after an interruption, and check hashes."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from pydantic_core import from_json

from dragoman.errors import ConfigError, StoreUnavailable
from dragoman.providers.local.downloaded import Downloaded, find_download, keep_record, models_folder
from dragoman.providers.local.weights import Progress
from dragoman.sentences import sentence
from dragoman.wire.http_client.client import HttpClient
from dragoman.wire.http_client.exchange import client_error, read_bounded
from dragoman.workspace.lock import locked

if TYPE_CHECKING:
    import aiohttp

HUB = "https://huggingface.co"
_PIECE = 1 << 20
_LARGEST_LIST = 16 << 20  # bytes of a repository's description
_REDIRECTS = 5
_ATTEMPTS = 6  # consecutive attempts that each receive less than a chunk
_SPARE = 256 << 20  # bytes of the disk that stay free
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REPO = re.compile(r"[\w.-]+/[\w.-]+")
_FILE = re.compile(r"[\w.+()-]+\.gguf")
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})$")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True, frozen=True)
class HubFile:
    """A file of a repository, as the hub describes it: the download has to match."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(slots=True, frozen=True)
class HubModel:
    """A model of a repository: one file, or the parts of a split one."""

    name: str
    repo: str
    revision: str
    license: str | None
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(slots=True, frozen=True)
class WantedModel:
    """The user's input: a repository, and perhaps a file of it or the end of its name."""

    repo: str
    path: str | None = None
    tag: str | None = None


def read_wanted(typed: str) -> WantedModel:
    """Parse `org/repo`, `org/repo:Q4_K_M`, `org/repo/file.gguf`, or the URL of one of these."""
    text = re.sub(r"^(https?://[^/]+|hf\.co|huggingface\.co)/", "", typed.strip()).strip("/")
    text, _, tag = text.partition(":")
    org, _, rest = text.partition("/")
    repo, _, path = rest.partition("/")
    path = re.sub(r"^(blob|resolve|tree)/[^/]+/?", "", path)
    if not _REPO.fullmatch(f"{org}/{repo}") or {".", ".."} & {org, repo}:
        raise ConfigError(sentence("hub.form", typed=typed))
    return WantedModel(f"{org}/{repo}", path or None, tag or None)


class Hub:
    """One hub, and the folder for its files. `HF_ENDPOINT` sets a mirror. A token is sent only to the hub."""

    def __init__(
        self,
        client: HttpClient,
        *,
        token: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._client = client
        self._token = token
        self._address = (environment.get("HF_ENDPOINT") or HUB).rstrip("/")

    async def models(self, wanted: WantedModel) -> list[HubModel]:
        """Return the models that match, by name. ConfigError, with the hub's message, if there is none."""
        url = f"{self._address}/api/models/{wanted.repo}/revision/main?blobs=true"
        try:
            async with await self._get(url, {"Accept": "application/json"}) as response:
                self._check(response.status, wanted.repo)
                body = await read_bounded(response, largest=_LARGEST_LIST)
                about: Any = from_json(body)
        except (OSError, ValueError, client_error()) as error:
            raise ConfigError(sentence("hub.no_answer", host=self._address, error=_why(error))) from error
        models = _models(wanted.repo, about)
        if wanted.path is not None:
            return [one for one in models if any(file.path == wanted.path for file in one.files)]
        if wanted.tag is not None:
            return [one for one in models if one.name.lower().endswith(wanted.tag.lower())]
        return models

    async def download(self, model: HubModel, progress: Progress | None = None) -> Downloaded:
        """Download and check all its files. Data received before an interruption is not requested again."""
        folder = models_folder()
        known = find_download(model.name)
        hashes = tuple(file.sha256 for file in model.files)
        if known is not None and known.sha256 == hashes:
            return known
        name = model.name if known is None else f"{model.repo.partition('/')[0]}-{model.name}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder / f".{name}.lock", patience=0.2):
                done = 0
                for file in model.files:
                    target = folder / (file.name if known is None else f"{name}.gguf")
                    await self._fetch(model, file, target, done, progress)
                    done += file.size
                files = tuple(file.name if known is None else f"{name}.gguf" for file in model.files)
                record = Downloaded(
                    name, model.repo, model.revision, files, hashes, model.size, model.license, time.time()
                )
                keep_record(record)
        except StoreUnavailable as error:
            raise ConfigError(sentence("hub.busy", name=name)) from error
        except OSError as error:
            if error.errno in _FULL:
                raise ConfigError(sentence("hub.disk", folder=folder, size=_gigabytes(model.size))) from error
            raise ConfigError(sentence("hub.folder", folder=folder, error=error.strerror)) from error
        return record

    async def _fetch(
        self, model: HubModel, file: HubFile, target: Path, before: int, progress: Progress | None
    ) -> None:
        part = target.with_name(f".{file.sha256}.part")  # it can only become the file with this hash
        free, needed = shutil.disk_usage(target.parent).free, file.size - _size(part) + _SPARE
        if free < needed:
            raise ConfigError(
                sentence("hub.room", folder=target.parent, needed=_gigabytes(needed), free=_gigabytes(free))
            )
        report = progress or (lambda done, total: None)
        failures = 0
        while (begun := _size(part)) < file.size:
            problem = "the connection ended early"
            try:
                await self._receive(model, file, part, lambda done: report(before + done, model.size))
            except (TimeoutError, client_error()) as error:
                problem = _why(error)
            except OSError as error:
                if error.errno in _FULL or error.filename is not None:
                    raise
                problem = _why(error)
            if _size(part) - begun >= _PIECE:
                failures = 0
            elif _size(part) < file.size:
                failures += 1
                if failures == _ATTEMPTS:
                    raise ConfigError(sentence("hub.broken", file=file.name, error=problem))
                await self._client.sleep(self._client.retry.wait(failures, None, self._client.random()))
        digest = await asyncio.to_thread(_hash, part)
        if digest != file.sha256:
            part.unlink(missing_ok=True)
            raise ConfigError(sentence("hub.wrong", file=file.name, host=self._address))
        part.replace(target)

    async def _receive(
        self, model: HubModel, file: HubFile, part: Path, progress: Callable[[int], None]
    ) -> None:
        """Receive the data of one response. More than announced means that the hub is not trustworthy."""
        begun = _size(part)
        headers = {"Accept": "*/*", "Range": f"bytes={begun}-"} if begun else {"Accept": "*/*"}
        path = f"{model.repo}/resolve/{model.revision}/{quote(file.path)}"
        async with await self._get(f"{self._address}/{path}", headers) as response:
            if response.status == 416 or (response.status == 206 and not _goes_on(response, begun)):
                os.truncate(part, 0)  # the download starts again
                return
            if response.status in (408, 429) or response.status >= 500:
                raise TimeoutError(f"HTTP {response.status}")
            self._check(response.status, model.repo)
            begun = begun if response.status == 206 else 0
            with part.open("ab" if begun else "wb") as written:
                async for piece in _pieces(response, self._client.timeouts.between_chunks):
                    begun += len(piece)
                    if begun > file.size:
                        written.truncate(0)
                        raise ConfigError(sentence("hub.larger", file=file.name, host=self._address))
                    await asyncio.to_thread(written.write, piece)
                    progress(begun)

    async def _get(self, url: str, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Follow redirects, with the token only for the hub's own host."""
        for _ in range(_REDIRECTS):
            own = urlsplit(url).netloc == urlsplit(self._address).netloc
            signed = {"Authorization": f"Bearer {self._token}"} if self._token and own else {}
            response = await self._client.send("GET", url, headers={**headers, **signed}, body=b"")
            location = response.headers.get("Location")
            if response.status not in (301, 302, 303, 307, 308) or not location:
                return response
            response.close()
            url, before = urljoin(url, location), url
            if urlsplit(before).scheme == "https" != urlsplit(url).scheme:
                raise ConfigError(sentence("hub.plain", host=urlsplit(url).netloc))
        raise ConfigError(sentence("hub.redirects", host=self._address))

    def _check(self, status: int, repo: str) -> None:
        if status in (401, 403):
            raise ConfigError(sentence("hub.gated", repo=repo, host=self._address))
        if status == 404:
            raise ConfigError(sentence("hub.unknown", repo=repo, host=self._address))
        if status not in (200, 206):
            raise ConfigError(sentence("hub.no_answer", host=self._address, error=f"HTTP {status}"))


def _models(repo: str, about: Any) -> list[HubModel]:
    """Return the GGUF files that the hub lists with size and hash, with parts of a split file together."""
    if not isinstance(about, dict) or not isinstance(about.get("siblings"), list):
        return []
    card = about.get("cardData")
    license = card.get("license") if isinstance(card, dict) else None
    revision = str(about.get("sha") or "main")
    if not re.fullmatch(r"[\w.-]+", revision):
        return []
    found: dict[str, HubModel] = {}
    for listed in about["siblings"]:
        file = _file(listed)
        if file is None:
            continue
        name = _SPLIT.sub("", file.name.removesuffix(".gguf"))
        known = found.get(name) or HubModel(
            name, repo, revision, license if isinstance(license, str) else None, ()
        )
        found[name] = replace(known, files=tuple(sorted((*known.files, file), key=lambda one: one.name)))
    return sorted((one for one in found.values() if _is_whole(one)), key=lambda one: one.size)


def _file(listed: Any) -> HubFile | None:
    if not isinstance(listed, dict):
        return None
    path, lfs = listed.get("rfilename"), listed.get("lfs")
    if not isinstance(path, str) or not isinstance(lfs, dict):
        return None
    size, sha256 = lfs.get("size"), lfs.get("sha256")
    name = PurePosixPath(path).name
    if not _FILE.fullmatch(name) or name.startswith("mmproj") or ".." in path.split("/"):
        return None  # a projector for images is not a model
    if not isinstance(size, int) or size <= 0 or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        return None
    return HubFile(path, size, sha256)


def _is_whole(model: HubModel) -> bool:
    split = [_SPLIT.search(file.name.removesuffix(".gguf")) for file in model.files]
    if all(one is None for one in split):
        return len(model.files) == 1
    return all(one is not None and int(one[2]) == len(model.files) for one in split)


def _goes_on(response: aiohttp.ClientResponse, begun: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {begun}-")


async def _pieces(response: aiohttp.ClientResponse, seconds: float | None) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(seconds):
            piece = await response.content.read(_PIECE)
        if not piece:
            return
        yield piece


def _hash(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _size(file: Path) -> int:
    with suppress(FileNotFoundError):
        return file.stat().st_size
    return 0


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def describe_choice(models: Sequence[HubModel]) -> str:
    """Return the models of a repository, to choose from."""
    return ", ".join(f"{one.name} ({_gigabytes(one.size)})" for one in models)
