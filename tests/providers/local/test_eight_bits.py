"""The copy of a model's file with which llama.cpp computes faster (D1)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dragoman.providers.local.eight_bits import ALIGNMENT, F32, Q4_1, Q8_0, quicker_copy, write_copy
from dragoman.providers.local.server import can_serve

pytestmark = pytest.mark.skipif(not can_serve(), reason="llama.cpp's functions do the work")

NIBBLES = bytes(low | (15 - low) << 4 for low in range(16))  # 0 to 15, then 15 to 0
PLAIN = struct.pack("<32f", *range(32))


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def gguf_file(path: Path, scale: float = 0.5, least: float = -2.0) -> Path:
    """Two tensors: a block of four bits, and a block of plain numbers."""
    pairs = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    pairs += text(b"sizes") + struct.pack("<IIQ3I", 9, 4, 3, 1, 2, 3)
    infos = text(b"small") + struct.pack("<IQIQ", 1, 32, Q4_1, 0)
    infos += text(b"plain") + struct.pack("<IQIQ", 1, 32, F32, ALIGNMENT)
    head = struct.pack("<4sIQQ", b"GGUF", 3, 2, 2) + pairs + infos
    block = struct.pack("<ee", scale, least) + NIBBLES
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + block + bytes(-len(block) % ALIGNMENT) + PLAIN)
    return path


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


async def test_d1_the_copy_has_the_same_numbers_in_eight_bits(tmp_path: Path) -> None:
    """The data before the tensors stays, and so does each tensor that did not have four bits (D1)."""
    source = gguf_file(tmp_path / "tiny.Q4_1.gguf")
    copy = await quicker_copy(source)
    assert copy == tmp_path / "tiny.Q8_0.gguf"
    data, before = copy.read_bytes(), source.read_bytes()
    infos = before.index(text(b"small"))
    assert data[:infos] == before[:infos]
    assert text(b"small") + struct.pack("<IQIQ", 1, 32, Q8_0, 0) in data
    assert text(b"plain") + struct.pack("<IQIQ", 1, 32, F32, 2 * ALIGNMENT) in data
    assert data.endswith(PLAIN)
    block = data[-len(PLAIN) - 2 * ALIGNMENT :]
    (scale,) = struct.unpack("<e", block[:2])
    numbers = [scale * step for step in struct.unpack("<32b", block[2:34])]
    wanted = [0.5 * four - 2 for four in (*range(16), *reversed(range(16)))]
    assert numbers == pytest.approx(wanted, abs=0.03)
    assert names(tmp_path) == {source.name, copy.name}


async def test_d1_a_file_that_cannot_be_copied_serves_as_it_is(tmp_path: Path) -> None:
    """The file is not GGUF, is incomplete, or has another number of bits (D1)."""
    other = tmp_path / "other.Q4_1.gguf"
    other.write_bytes(b"nothing of the kind")
    assert await quicker_copy(other) == other
    cut = gguf_file(tmp_path / "cut.Q4_1.gguf")
    cut.write_bytes(cut.read_bytes()[: -len(PLAIN)])
    assert await quicker_copy(cut) == cut
    large = gguf_file(tmp_path / "large.Q6_K.gguf")
    assert await quicker_copy(large) == large
    assert names(tmp_path) == {other.name, cut.name, large.name}


def test_d1_a_copy_that_broke_off_leaves_nothing_behind(tmp_path: Path) -> None:
    """Only a complete copy counts as the copy (D1)."""
    cut = gguf_file(tmp_path / "cut.Q4_1.gguf")
    cut.write_bytes(cut.read_bytes()[: -len(PLAIN)])
    with pytest.raises(ValueError, match="ends before"):
        write_copy(cut, tmp_path / "copy.gguf")
    assert names(tmp_path) == {cut.name}
