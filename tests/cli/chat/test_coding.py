"""A coding session at the terminal: reads, writes, one key for each question, commands, and undo."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.wire.scripted import calls, says
from tests.cli.person import Person
from tests.loopback import Loopback, loopback

pytestmark = pytest.mark.slow

SETTINGS = """\
model = "stage/model"
store = "chat.db"
tools = ["files"]
[providers.stage]
base_url = "{url}"
local = true
"""
OLD, NEW = "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n"


def project(folder: Path, url: str) -> Path:
    folder.mkdir()
    (folder / "dragoman.toml").write_text(SETTINGS.format(url=url))
    (folder / "sums.py").write_text(OLD)
    (folder / ".env").write_text("SECRET=1\n")
    return folder


async def test_reads_need_no_answer_a_write_one_key_and_secrets_are_asked_about(tmp_path: Path) -> None:
    """Reads of a trusted folder run (P11), and a file that looks secret needs approval (P1)."""
    script = [
        calls("read_file", path="sums.py") + calls("grep", pattern="SECRET|return"),
        calls("write_file", path="total.py", text=NEW),
        says("Fixed."),
        calls("read_file", path=".env"),
        says("It is empty to me."),
    ]
    async with loopback(*script) as server:
        folder = project(tmp_path / "sums", server.url)
        await asyncio.to_thread(_work, folder, server)
    assert not (folder / "total.py").exists()  # after the undo


def _work(folder: Path, server: Loopback) -> None:
    somebody = Person("chat", folder=folder)
    somebody.says("!echo one; echo two")
    somebody.sees("two")
    somebody.sees("the model sees this with your next message")
    somebody.says("fix it")
    reads = somebody.sees("? write_file")
    assert "your choice" not in reads
    assert "⚙ read_file sums.py · completed" in reads
    assert "return a - b" not in reads  # it stands on one line
    somebody.sees("+    return a + b")
    somebody.answers("y")  # and no Enter
    after = somebody.sees("/undo takes them back")
    assert "⚙ write_file" in after
    assert "return a + b" not in after  # the approval request showed it
    assert "1 file +2 −0" in after
    said = str(server.bodies[0])
    assert "The user ran: echo one; echo two" in said
    found = str(server.bodies[1])
    assert "return a - b" in found
    assert "SECRET=1" not in found
    somebody.says("/unfold")
    somebody.sees("return a - b")
    somebody.says("/undo")
    somebody.sees("1 file changed: total.py")
    somebody.says("look into .env")
    somebody.answers("n")
    somebody.sees("It is empty to me.")
    assert somebody.leaves() == 0


async def test_the_conversations_of_this_folder_come_first(tmp_path: Path) -> None:
    async with loopback(says("Hello from here.")) as server:
        folder = project(tmp_path / "here", server.url)
        other = project(tmp_path / "other", server.url)
        settings = (other / "dragoman.toml").read_text().replace('"chat.db"', f'"{folder}/chat.db"')
        (other / "dragoman.toml").write_text(settings)
        await asyncio.to_thread(_pick, folder, other)


def _pick(folder: Path, other: Path) -> None:
    for place, text in ((folder, "first here"), (other, "then there")):
        somebody = Person("chat", folder=place)
        somebody.says(text)
        somebody.sees("Hello from here.")
        assert somebody.leaves() == 0
    again = Person("chat", "--last", folder=folder)
    assert "then there" not in again.sees("Hello from here.")
    assert again.leaves() == 0
    picks = Person("chat", "--pick", folder=folder)
    assert "first here" in picks.sees("then there  (another folder)")
    picks.sees("a number, Enter for a new conversation: ")
    picks.types("1")
    picks.sees("— first here")
    assert picks.leaves() == 0
