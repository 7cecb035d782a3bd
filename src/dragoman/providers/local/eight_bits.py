"""Convert a GGUF file from four to eight bits per weight, with which llama.cpp computes twice as fast.

The bundled model is published with four bits (Q4_1). llama.cpp has a fast matrix product for eight bits
(Q8_0), but not for these. The values stay the same, except for rounding by less than half a percent.
llama.cpp's own functions do the work, in a separate process. If they are unavailable, the published file is
used.

    python -m dragoman.providers.local.eight_bits SOURCE TARGET
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

SECONDS = 120.0  # for a slow disk
ALIGNMENT = 32
BLOCK = 32  # weights that share a scale
F32, Q4_1, Q8_0 = 0, 3, 8
_BYTES = {F32: 4 * BLOCK, Q4_1: 20, Q8_0: 34}  # of a block
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of the value types
_STRING, _ARRAY = 8, 9


async def quicker_copy(source: Path) -> Path:
    """Return the copy next to a file, made if necessary, or the file itself if no copy can be made."""
    target = source.with_name(source.name.replace(".Q4_1.", ".Q8_0."))
    if target == source:
        return source
    if not target.is_file():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "dragoman.providers.local.eight_bits", str(source), str(target)),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        try:
            async with asyncio.timeout(SECONDS):
                await process.wait()
        except TimeoutError:
            pass  # a partial copy never counts as the copy
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    return target if target.is_file() else source


@dataclass(slots=True, frozen=True)
class _Tensor:
    name: bytes  # with its length
    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def blocks(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        if self.kind not in _BYTES or self.shape[0] % BLOCK:
            raise ValueError(f"Dragoman cannot read a tensor of type {self.kind}")
        return count // BLOCK

    def info(self, kind: int, offset: int) -> bytes:
        size = len(self.shape)
        return self.name + struct.pack(f"<I{size}QIQ", size, *self.shape, kind, offset)


def write_copy(source: Path, target: Path) -> None:
    """Write the copy. It appears under its name only when it is complete."""
    library = ctypes.CDLL(import_module("xllamacpp.xllamacpp").__file__)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with source.open("rb") as file, beside.open("wb") as copy:
            head, tensors = _read_head(file)
            begin = file.tell() + -file.tell() % ALIGNMENT
            infos, offset = b"", 0
            for tensor in tensors:
                kind = Q8_0 if tensor.kind == Q4_1 else tensor.kind
                infos += tensor.info(kind, offset)
                offset += _padded(tensor.blocks * _BYTES[kind])
            copy.write(head + infos)
            copy.write(bytes(-copy.tell() % ALIGNMENT))
            for tensor in tensors:
                file.seek(begin + tensor.offset)
                data = file.read(tensor.blocks * _BYTES[tensor.kind])
                if len(data) != tensor.blocks * _BYTES[tensor.kind]:
                    raise ValueError(f"{source} ends before its tensors do")
                written = _converted(library, data, tensor.blocks) if tensor.kind == Q4_1 else data
                copy.write(written + bytes(_padded(len(written)) - len(written)))
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _converted(library: ctypes.CDLL, data: bytes, blocks: int) -> bytes:
    count = blocks * BLOCK
    numbers = (ctypes.c_float * count)()
    written = ctypes.create_string_buffer(blocks * _BYTES[Q8_0])
    library.dequantize_row_q4_1(data, numbers, ctypes.c_int64(count))
    library.quantize_row_q8_0_ref(numbers, written, ctypes.c_int64(count))
    return written.raw


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT


# ── file signatures ───────────────────────────────────────────────────────────────────────────────


def _read_head(file: BinaryIO) -> tuple[bytes, list[_Tensor]]:
    """Return everything before the list of tensors unchanged, and that list."""
    magic, version, tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
    if magic != b"GGUF" or version != 3:
        raise ValueError("This is not a GGUF file of version 3.")
    for _ in range(pairs):
        _read_text(file)
        _skip_value(file, *struct.unpack("<I", file.read(4)))
    end = file.tell()
    file.seek(0)
    head = file.read(end)
    return head, [_read_tensor(file) for _ in range(tensors)]


def _skip_value(file: BinaryIO, kind: int) -> None:
    if kind == _STRING:
        _read_text(file)
    elif kind == _ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner in _SIZES:
            file.seek(_SIZES[inner] * count, os.SEEK_CUR)
        else:
            for _ in range(count):
                _skip_value(file, inner)
    else:
        file.seek(_SIZES[kind], os.SEEK_CUR)


def _read_text(file: BinaryIO) -> bytes:
    size = file.read(8)
    return size + file.read(*struct.unpack("<Q", size))


def _read_tensor(file: BinaryIO) -> _Tensor:
    name = _read_text(file)
    (dimensions,) = struct.unpack("<I", file.read(4))
    shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
    kind, offset = struct.unpack("<IQ", file.read(12))
    return _Tensor(name, shape, kind, offset)


if __name__ == "__main__":
    write_copy(Path(sys.argv[1]), Path(sys.argv[2]))
