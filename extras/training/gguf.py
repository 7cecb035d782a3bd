"""Read models and write adapters in the GGUF format, as far as the bundled model needs it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 32
BLOCK = 32  # weights that share a scale
F32, Q4_1, Q8_0 = 0, 3, 8
_BYTES = {F32: 4 * BLOCK, Q4_1: 20, Q8_0: 34}  # bytes of a block

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_UINT32, _FLOAT32, _STRING, _ARRAY = 4, 6, 8, 9


@dataclass(slots=True, frozen=True)
class GgufModel:
    """The metadata of a file, and its weights as numbers, each with its rows first."""

    values: dict[str, Any]
    tensors: dict[str, NDArray[np.float32]]


def read_model(path: Path, *, weights: bool = True) -> GgufModel:
    with path.open("rb") as file:
        magic, version, tensors, pairs = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF" or version != 3:
            raise ValueError(f"{path} is no GGUF file of version 3")
        values = dict(_read_pair(file) for _ in range(pairs))
        found = [_read_tensor_info(file) for _ in range(tensors)] if weights else []
        begin = -(-file.tell() // ALIGNMENT) * ALIGNMENT
        read = {}
        for name, shape, kind, offset in found:
            file.seek(begin + offset)
            count = int(np.prod(shape))
            data = np.frombuffer(file.read(count // BLOCK * _BYTES[kind]), dtype=np.uint8)
            read[name] = _numbers(data, kind).reshape(tuple(reversed(shape)))
    return GgufModel(values, read)


def _read_pair(file: BinaryIO) -> tuple[str, Any]:
    name = _read_string(file)
    return name, _read_value(file, _read_scalar(file, _UINT32))


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _read_string(file)
    if kind == _ARRAY:
        inner, count = struct.unpack("<IQ", file.read(12))
        return [_read_value(file, inner) for _ in range(count)]
    return _read_scalar(file, kind)


def _read_scalar(file: BinaryIO, kind: int) -> Any:
    shape = _SCALARS[kind]
    return struct.unpack(shape, file.read(struct.calcsize(shape)))[0]


def _read_string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    return file.read(length).decode("utf-8")


def _read_tensor_info(file: BinaryIO) -> tuple[str, list[int], int, int]:
    name = _read_string(file)
    (dimensions,) = struct.unpack("<I", file.read(4))
    shape = list(struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions)))
    kind, offset = struct.unpack("<IQ", file.read(12))
    if kind not in _BYTES:
        raise ValueError(f"{name} is quantised in a way that is not read here: {kind}")
    return name, shape, kind, offset


def _numbers(data: NDArray[np.uint8], kind: int) -> NDArray[np.float32]:
    if kind == F32:
        return data.view(np.float32).copy()
    blocks = data.reshape(-1, _BYTES[kind])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == Q8_0:
        return scale * blocks[:, 2:].view(np.int8).astype(np.float32)
    least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    halves = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return scale * halves.astype(np.float32) + least


# ── an adapter ────────────────────────────────────────────────────────────────────────────────────


def write_adapter(path: Path, weights: Mapping[str, NDArray[np.float32]], *, alpha: float, name: str) -> None:
    """A LoRA adapter in eight bits: `blk.N.NAME.weight.lora_a` and `.lora_b`, rows first."""
    head = b"".join(
        [
            _pair("general.architecture", "llama"),
            _pair("general.type", "adapter"),
            _pair("general.name", name),
            _pair("general.license", "apache-2.0"),
            _pair("adapter.type", "lora"),
            _pair("adapter.lora.alpha", alpha),
        ]
    )
    infos, data = b"", b""
    for tensor, numbers in weights.items():
        shape = tuple(reversed(numbers.shape))
        infos += _string(tensor) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, Q8_0, len(data))
        packed = _quantised(numbers)
        data += packed + bytes(-len(packed) % ALIGNMENT)
    start = struct.pack("<4sIQQ", b"GGUF", 3, len(weights), 6) + head + infos
    path.write_bytes(start + bytes(-len(start) % ALIGNMENT) + data)


def _quantised(numbers: NDArray[np.float32]) -> bytes:
    blocks = numbers.astype(np.float32).reshape(-1, BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
    steps = np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0)
    rounded = np.rint(steps).astype(np.int8)
    packed: NDArray[np.uint8] = np.concatenate(
        [scale.astype(np.float16).view(np.uint8), rounded.view(np.uint8)], axis=1
    )
    return bytes(packed.tobytes())


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _pair(name: str, value: str | float) -> bytes:
    if isinstance(value, str):
        return _string(name) + struct.pack("<I", _STRING) + _string(value)
    return _string(name) + struct.pack("<If", _FLOAT32, value)
