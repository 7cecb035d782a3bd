"""Serve a GGUF file with llama.cpp in a child process, started when it is first needed."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from dragoman.errors import ConfigError
from dragoman.sentences import sentence

PostJson: TypeAlias = Callable[[str, dict[str, JsonValue]], Awaitable[dict[str, JsonValue]]]

CONTEXT = 8192  # tokens of a conversation, unless the catalog overrides it
_SECONDS = 120.0  # for a large file to be loaded
_GRACE = 2.0
_THREADS = 4


@dataclass(slots=True, frozen=True)
class Address:
    """The address of a server, and the key that it requires."""

    url: str
    key: str = field(repr=False)


def can_serve() -> bool:
    """Return whether the server for files is installed: `dragoman[local]`."""
    return find_spec("xllamacpp") is not None


def available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


def sensible_threads(most: int = _THREADS) -> int:
    """Return both of two cores, otherwise all but one, up to `most`: a small model cannot use more."""
    cores = available_cores()
    return cores if cores <= 2 else min(most, cores - 1)


class LlamaServer:
    """A child process that serves one file, as long as it is needed.

    A separate process, because llama.cpp ends its program if it cannot read a file, and because its threads
    must not delay the events of a turn.
    """

    def __init__(
        self,
        file: Callable[[], Awaitable[Path]],
        *,
        adapter: Callable[[], Path] | None = None,
        context: int = CONTEXT,
        slots: int = 1,
        states: Path | None = None,
        threads: int | None = None,
    ) -> None:
        self.states = states  # the folder for saved states of slots, if they are saved
        self.fingerprint = ""  # of the served files: only the same files can use a saved state
        self._file = file
        self._adapter = adapter
        self._context = context * slots  # the slots share it
        self._slots = slots
        self._threads = threads or sensible_threads()
        self._process: Process | None = None
        self._address: Address | None = None
        self._starting = asyncio.Lock()

    @property
    def process(self) -> int | None:
        """The ID of the child process, if it is running."""
        return self._process.pid if self._process is not None else None

    async def address(self) -> Address:
        """Return the server's address. A server that has died is started again. ConfigError names what is
        missing."""
        async with self._starting:
            if self._address is None or self._process is None or self._process.returncode is not None:
                self._address = await self._start()
            return self._address

    async def close(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_GRACE):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> Address:
        if not can_serve():
            raise ConfigError(sentence("local.needs_package"))
        file = await self._file()
        if not file.is_file():
            raise ConfigError(sentence("local.no_file", file=file))
        adapter = self._adapter() if self._adapter is not None else None
        if adapter is not None and not adapter.is_file():
            raise ConfigError(sentence("local.no_adapter", adapter=adapter))
        if self.states is not None:
            self.states = _folder(self.states)
        self.fingerprint = _fingerprint(file, adapter)
        process = await asyncio.create_subprocess_exec(
            # import nothing from the current folder
            *(sys.executable, "-P", "-m", "dragoman.providers.local.child"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
        )
        self._process = process
        try:
            return await self._order(process, file, adapter)
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise

    async def _order(self, process: Process, file: Path, adapter: Path | None) -> Address:
        assert process.stdin is not None
        assert process.stdout is not None
        key = secrets.token_urlsafe(24)
        order = {
            "file": str(file),
            "adapter": str(adapter) if adapter is not None else None,
            "states": f"{self.states}{os.sep}" if self.states is not None else None,
            "context": self._context,
            "slots": self._slots,
            "threads": self._threads,
            "key": key,
        }
        try:
            process.stdin.write(to_json(order) + b"\n")
            async with asyncio.timeout(_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError:
            raise ConfigError(sentence("local.slow", file=file.name, seconds=_SECONDS)) from None
        except ConnectionError:
            line = b""
        answer = from_json(line) if line else {"error": "llama.cpp cannot make sense of it"}
        if "address" not in answer:
            raise ConfigError(sentence("local.not_served", file=file, error=answer["error"]))
        return Address(f"{answer['address']}/v1", key)


def _folder(wanted: Path) -> Path | None:
    """Return the folder, made if necessary. None if the cache is read-only. Then nothing is saved."""
    try:
        wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return wanted


def _fingerprint(*files: Path | None) -> str:
    """Return what distinguishes these files, as llama.cpp of this version reads them, from others."""
    marks = [f"{file}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files if file is not None]
    return "\0".join([version("xllamacpp"), *marks])
