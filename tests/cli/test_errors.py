"""Check failures outside the program: each prints one line with what to do, sets a status, and shows no
traceback."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

import pytest

from dragoman.wire.scripted import says
from tests.browser.plays import furnish
from tests.cli.conftest import Cli
from tests.cli.person import CTRL_C, CTRL_D, Person
from tests.cli.program import PROGRAM, Ended, clean_environment, program
from tests.fork_server import python
from tests.loopback import Answer, loopback
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def complaint(ended: Ended, status: int) -> str:
    """Return the only line on standard error, apart from messages about waiting."""
    assert ended.status == status
    (line,) = (line for line in ended.err.splitlines() if ": attempt " not in line)
    return line


async def test_a_missing_key_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('model = "anthropic/claude-x"\n')
    assert "Set ANTHROPIC_API_KEY" in complaint(await program("run", "Hi", folder=tmp_path), 2)
    somebody = await asyncio.to_thread(lambda: Person("chat", folder=tmp_path))
    await asyncio.to_thread(somebody.sees, "Set ANTHROPIC_API_KEY")
    assert await asyncio.to_thread(somebody.ended) == 2


async def test_a_wrong_key_and_an_unknown_model_are_what_the_provider_says(tmp_path: Path) -> None:
    refused = Answer(401, {"error": {"message": "Incorrect API key provided"}})
    unknown = Answer(404, {"error": {"message": "The model `modle` does not exist"}})
    for answer, words in ((refused, "Incorrect API key"), (unknown, "does not exist")):
        async with loopback(answer) as server:
            furnish(tmp_path, server.url)
            assert words in complaint(await program("run", "Hi", folder=tmp_path), 1)


async def test_a_chat_survives_an_error_of_its_provider(tmp_path: Path) -> None:
    async with loopback(Answer(401, {"error": {"message": "Incorrect API key"}}), says("Hello.")) as server:
        furnish(tmp_path, server.url)
        await asyncio.to_thread(_talk_on, tmp_path)


def _talk_on(folder: Path) -> None:
    somebody = Person("chat", folder=folder)
    somebody.says("one")
    somebody.sees("error: Incorrect API key")
    somebody.says("two")
    somebody.sees("Hello.")
    assert somebody.leaves() == 0


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with loopback(says("Hi.")) as server:
        url = server.url
    furnish(tmp_path, url)
    line = complaint(await program("run", "Hi", folder=tmp_path), 1)
    assert f":{server.port}" in line


def test_broken_settings_are_told_with_their_line(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "dragoman.toml").write_text('model = "ollama/x"\nmodle = 5\n')
    for command in (("list",), ("run", "Hi"), ("serve",), ("tools",), ("models",), ("config", "show")):
        assert "dragoman.toml, line 2: modle" in complaint(cli(*command, status=2), 2)


async def test_a_home_that_cannot_be_written_is_named(stage: Path) -> None:
    config = stage / "dragoman.toml"
    (stage / "home").write_text("a file, where a folder should be")
    stored_here = await program("run", "hello", folder=stage)
    assert (stored_here.status, stored_here.out) == (0, "Hello! How can I help?\n")
    config.write_text(config.read_text().replace('store = "chat.db"\n', ""))
    assert "Cannot open the store" in complaint(await program("run", "hello", folder=stage), 2)
    assert "Cannot open the store" in complaint(await program("people", "add", "anna", folder=stage), 2)


@pytest.mark.long
async def test_a_full_disk_is_told(stage: Path) -> None:
    def limit_file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))

    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("run", "hello"),
        cwd=stage,
        env={**clean_environment(stage), "PYTHONDONTWRITEBYTECODE": "1"},  # half a file would outlive it
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
        preexec_fn=limit_file_size,
    )
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 2  # the store cannot be created where the settings place it
    assert b"Traceback" not in err
    assert b"chat.db" in err
    assert b"disk" in err


def test_a_chat_survives_a_full_disk(stage: Path, cli: Cli) -> None:
    cli("run", "hello")
    somebody = Person("chat", folder=stage, room=36_000)
    somebody.says("hello")
    somebody.sees("check whether")
    somebody.sees("› ")
    somebody.sees("hello")  # the unsent message is in the field again
    somebody.types(f"{CTRL_C}/help")
    somebody.sees("/quit")
    before = somebody.sees("› ")
    assert "Traceback" not in before
    somebody.types("", CTRL_D)
    assert somebody.ended() == 0


@pytest.mark.long
async def test_answers_can_be_piped_into_other_programs(stage: Path) -> None:
    run = " ".join((*PROGRAM, "run", "--json", "add"))
    last = "import json, sys; print(json.loads(sys.stdin.readlines()[-1])['text'])"
    first = "import sys; sys.stdin.readline(); sys.stdin.close()"
    piped = await _shell(stage, f'{run} | {sys.executable} -c "{last}"')
    assert piped == (0, "It is 5.\n", "")
    long = " ".join((*PROGRAM, "run", "long"))
    cut = await _shell(stage, f'{long} | {sys.executable} -c "{first}"')
    assert cut == (0, "", "")  # a reader that closes the pipe early is not an error


async def test_closed_streams_and_few_letters_are_no_error(stage: Path) -> None:
    run = " ".join((*PROGRAM, "run"))
    assert await _shell(stage, f"{run} 'h\u00e9llo' <&- >&-") == (0, "", "")
    listing = " ".join(("PYTHONIOENCODING=ascii", *python("-m", "dragoman", "list")))
    status, out, err = await _shell(stage, listing)
    assert (status, err) == (0, "")
    assert "h?llo" in out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
async def test_a_turn_whose_answer_cannot_be_written_is_cancelled(stage: Path) -> None:
    """The user would not learn of a turn that is left interrupted (T6)."""
    run = " ".join(python("-m", "dragoman", "run", "--json", "add"))
    status, _, err = await _shell(stage, f"{run} >/dev/full")
    assert (status, "No space left" in err, "Traceback" in err) == (1, True, False)
    assert json.loads((await program("list", "--json", folder=stage)).out)[0]["interrupted"] is False


async def _shell(folder: Path, line: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_shell(
        line,
        cwd=folder,
        env=clean_environment(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("usage", "--by", "week"),
        ("usage", "--since", "soon"),
        ("rm", "--older-than", "soon"),
        ("run", "--model", "ollama/x", "--attach", "nowhere.txt", "hi"),
        ("run", "--model", "ollama/x", "--output-type", "nowhere.json", "hi"),
        ("run", "--mode", "sometimes", "hi"),
    ],
)
def test_a_flag_that_cannot_be_followed_is_wrong_usage(words: tuple[str, ...], cli: Cli) -> None:
    """Status 2, as the documentation says, and the line names the flag."""
    flag = next(word for word in words if word.startswith("--") and word != "--model")
    assert flag in cli(*words, status=2).err


def test_an_example_in_an_error_is_shown_whole(cli: Cli) -> None:
    assert cli("list", "--store", "mysql://host/chat", status=2).err.endswith("postgresql://host/name.\n")


def test_a_folder_that_is_none_cannot_be_trusted(cli: Cli) -> None:
    assert "nowhere' is not a folder" in cli("trust", "nowhere", status=2).err


def test_a_list_in_a_pipe_is_not_folded(cli: Cli) -> None:
    """The properties of a model are on its own line, so that `grep` finds them."""
    (line,) = (one for one in cli("models", "openai").out.splitlines() if "openai/gpt-5.4*" in one)
    assert "image, file" in line
    assert "$" in line
