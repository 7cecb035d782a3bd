"""M3: pictures and sound at the terminal: written to files, and shown where that is possible."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

from dragoman.cli.terminal.images import picture_protocol, show_picture
from tests.cli.person import Person
from tests.cli.program import program, started
from tests.fork_server import KILL
from tests.media.media_server import KEY, MediaServer, hangs, media_server, png, wav
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

TOML = """
[providers.acme]
base_url = "{url}"
keys = "ACME_API_KEY"

[providers.acme.models]
"gpt-image-1" = {{}}
"painter" = {{ type = "image-gen" }}
"tts-1" = {{}}
"whisper-1" = {{}}
"""


def settle(folder: Path, server: MediaServer) -> None:
    (folder / "dragoman.toml").write_text(TOML.format(url=server.url))


async def test_a_picture_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    """M3: `dragoman run --out`"""
    async with media_server() as server:
        settle(tmp_path, server)
        ended = await program(
            *("run", "--model", "acme/gpt-image-1", "--out", "picture.png", "--option", "quality=low"),
            "a blue square",
            folder=tmp_path,
            ACME_API_KEY=KEY,
        )
    assert (ended.status, ended.out) == (0, "")
    assert "written: picture.png" in ended.err
    assert (tmp_path / "picture.png").read_bytes() == server.picture
    assert server.fields["quality"] == "low"


async def test_several_pictures_get_a_number_each(tmp_path: Path) -> None:
    """M3: and a model is of the type that dragoman.toml says."""
    async with media_server() as server:
        settle(tmp_path, server)
        ended = await program(
            *("run", "--model", "acme/painter", "--out", "out/cat.png", "--option", "n=2", "a cat"),
            folder=tmp_path,
            ACME_API_KEY=KEY,
        )
    assert ended.status == 0
    assert [(tmp_path / f"out/cat-{n}.png").read_bytes() for n in (1, 2)] == [server.picture] * 2


async def test_speech_is_written_in_the_format_that_its_file_is_named_after(tmp_path: Path) -> None:
    """M3: a text from standard input becomes a sound, and a sound a text."""
    async with media_server() as server:
        settle(tmp_path, server)
        spoken = await program(
            *("run", "--model", "acme/tts-1", "--out", "hello.wav"),
            folder=tmp_path,
            stdin="Hello there.",
            ACME_API_KEY=KEY,
        )
        assert (spoken.status, server.fields["response_format"]) == (0, "wav")
        assert (tmp_path / "hello.wav").read_bytes() == server.sound
        heard = await program(
            *(
                "run",
                "--model",
                "acme/whisper-1",
                "--attach",
                "hello.wav",
                "--out",
                "hello.txt",
                "--continue",
            ),
            "last",
            folder=tmp_path,
            ACME_API_KEY=KEY,
        )
    assert heard.out == "The quick brown fox.\n"
    assert (tmp_path / "hello.txt").read_text() == "The quick brown fox."


async def test_a_text_does_not_become_a_picture_by_its_name(tmp_path: Path) -> None:
    """The answer is printed, and a message reports that `--out` wrote nothing (M3)."""
    async with media_server() as server:
        settle(tmp_path, server)
        (tmp_path / "memo.wav").write_bytes(wav())
        ended = await program(
            *("run", "--model", "acme/whisper-1", "--attach", "memo.wav", "--out", "memo.png"),
            folder=tmp_path,
            ACME_API_KEY=KEY,
        )
    assert (ended.status, ended.out) == (1, "The quick brown fox.\n")
    assert "--out memo.png: the answer is text" in ended.err
    assert not (tmp_path / "memo.png").exists()


async def test_what_cannot_be_done_is_said_and_nothing_is_kept(tmp_path: Path) -> None:
    """M2"""
    async with media_server() as server:
        settle(tmp_path, server)
        (tmp_path / "memo.wav").write_bytes(wav())
        ended = await program(
            *("run", "--model", "acme/tts-1", "--attach", "memo.wav", "hm"), folder=tmp_path, ACME_API_KEY=KEY
        )
        listed = await program("conversations", "--json", folder=tmp_path)
    assert ended.status != 0
    assert "acme/whisper-1 transcribes speech" in ended.err
    assert server.asked == []
    assert "memo" not in listed.out


async def test_a_picture_is_made_after_all_where_the_program_was_killed(tmp_path: Path) -> None:
    """The turn resumes in the next process, which requests the image again (T9)."""
    async with media_server() as server:
        settle(tmp_path, server)
        server.instead = [hangs(server)]
        first = await started(
            *("run", "--model", "acme/gpt-image-1", "a square"), folder=tmp_path, ACME_API_KEY=KEY
        )
        async with asyncio.timeout(PATIENCE):
            await server.began.wait()
        first.send_signal(KILL)
        await first.communicate()
        again = await program(
            *("run", "--model", "acme/gpt-image-1", "--continue", "last", "--out", "it.png"),
            folder=tmp_path,
            ACME_API_KEY=KEY,
        )
    assert again.status == 0, again.err
    assert (tmp_path / "it.png").read_bytes() == server.picture


async def test_a_chat_names_the_file_of_a_picture(tmp_path: Path) -> None:
    """M3"""

    def talk() -> int:
        somebody = Person("chat", "--model", "acme/gpt-image-1", folder=tmp_path, ACME_API_KEY=KEY)
        somebody.sees("/help")
        somebody.says("a blue square")
        somebody.sees("image-1.png: image/png")
        return somebody.leaves()

    async with media_server() as server:
        settle(tmp_path, server)
        assert await asyncio.to_thread(talk) == 0
    (saved,) = (tmp_path / "home" / "data").rglob("*-image-1.png")
    assert saved.read_bytes() == server.picture


async def test_models_are_listed_with_their_types(tmp_path: Path) -> None:
    """M1"""
    async with media_server() as server:
        settle(tmp_path, server)
        listed = await program("models", "acme", folder=tmp_path, ACME_API_KEY=KEY)
        told = await program("models", "acme", "--json", folder=tmp_path, ACME_API_KEY=KEY)
    assert "acme/painter image-gen" in " ".join(listed.out.split())
    assert '"type": "audio-stt"' in told.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM_PROGRAM": "iTerm.app", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_terminals_say_what_they_can_show(environment: dict[str, str], protocol: str | None) -> None:
    """M3"""
    assert picture_protocol(environment) == protocol
    out = Terminal()
    assert show_picture(png(200, 200), "image/png", out, environment) == (protocol is not None)
    assert bool(out.getvalue()) == (protocol is not None)


def test_a_large_picture_goes_to_kitty_in_pieces() -> None:
    """M3: each of which says whether more follow."""
    out = Terminal()
    show_picture(b"\x89PNG" + bytes(10_000), "image/png", out, {"KITTY_WINDOW_ID": "1"})
    pieces = [piece.partition(";")[0] for piece in out.getvalue().split("\x1b_G")[1:]]
    assert pieces == ["a=T,f=100,q=2,m=1", "m=1", "m=1", "m=0"]
