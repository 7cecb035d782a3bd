"""B2: the model sees what formatters and linters do after a write, and undo covers it."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Runtime
from dragoman.messages.message import CallState
from dragoman.messages.request import Request
from dragoman.tools.builtin import files_group
from dragoman.tools.builtin.formatters import Formatter, _to_its_end, with_formatters
from dragoman.tools.tool import Tool
from dragoman.wire.scripted import Line, calls, says
from tests.patience import eventually
from tests.runtimes import calls_of, runtime_with
from tests.tools.bench import Bench
from tests.tools.builtin.folder import names, refused, told

FORMAT = "import sys; from pathlib import Path; p = Path(sys.argv[1]); p.write_text(p.read_text().upper())"
LINT = "import sys; print('line 1 of', sys.argv[1], 'is dull'); sys.exit(3)"
HANG = "import sys, time; open(sys.argv[1], 'w').close(); open('begun', 'w').close(); time.sleep(600)"


def program(code: str, *, name: str = "upper", files: tuple[str, ...] = ("*.txt",), **more: Any) -> Formatter:
    return Formatter(name, files, (sys.executable, "-c", code), **more)


def tool_of(name: str, *formatters: Formatter) -> Tool:
    (found,) = [tool for tool in with_formatters(files_group(), formatters).tools if tool.name == name]
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    return work


def opened(tmp_path: Path, script: Any, *formatters: Formatter, **options: Any) -> Runtime:
    group = with_formatters(files_group(), formatters)
    return runtime_with(tmp_path, script, tools=[group], workspace=tmp_path / "work", **options)


async def test_what_the_formatter_made_is_what_the_model_is_told(tmp_path: Path, work: Path) -> None:
    """The result contains the version of the formatted file, so the next edit is not refused (B2)."""

    def model(request: Request) -> Line:
        results = [call.result.text for message in request.messages for call in message.calls if call.result]
        if not results:
            return calls("write_file", path="sub/a.txt", text="one\ntwo\n")
        if len(results) == 1:
            assert "sub/a.txt was formatted by upper" in results[0]
            assert "+ONE" in results[0]
            (version,) = set(re.findall(r"version (\w+)", results[0]))
            return calls("edit_file", path="sub/a.txt", version=version, old="TWO", new="three")
        return says("done")

    async with opened(tmp_path, model, program(FORMAT)) as runtime:
        turn = await runtime.send("go")
        result = await turn.result()
        assert [call.state for call in calls_of(result.messages)] == [CallState.COMPLETED] * 2
        assert (work / "sub" / "a.txt").read_text() == "ONE\nTHREE\n"
        first, second = calls_of(result.messages)
        assert first.result is not None
        assert second.result is not None
        assert "+ONE" in str(first.result.metadata["diff"])
        assert "+THREE" in str(second.result.metadata["diff"])
        await turn.revert(files_only=True)
        assert not (work / "sub" / "a.txt").exists()


async def test_what_a_linter_prints_is_bounded_and_told(work: Path) -> None:
    """The result includes the exit status, and the write is kept (B2)."""
    text = await told(work, tool_of("write_file", program(LINT, name="dull")), path="a.txt", text="x")
    assert "dull on a.txt, exit status 3:\nline 1 of a.txt is dull" in text
    loud = program("print('x' * 10**7)", name="loud")
    assert len(await told(work, tool_of("write_file", loud), path="b.txt", text="x")) < 10_000
    assert (work / "b.txt").read_text() == "x"


async def test_only_files_that_fit_are_formatted(work: Path) -> None:
    """A pattern without a slash matches names in any folder, and one with a slash matches the path (B2)."""
    only = program(FORMAT, files=("sub/*.md", "*.txt"))
    write = tool_of("write_file", only)
    for path in ("a.txt", "sub/a.txt", "sub/a.md", "a.md"):
        await told(work, write, path=path, text="x")
    found = {path: (work / path).read_text() for path in ("a.txt", "sub/a.txt", "sub/a.md", "a.md")}
    assert found == {"a.txt": "X", "sub/a.txt": "X", "sub/a.md": "X", "a.md": "x"}


@pytest.mark.parametrize("name", ["$(touch pwned).txt", "-rf.txt", "a; touch pwned.txt", "`touch pwned`.txt"])
async def test_no_shell_reads_the_name_of_a_file(work: Path, name: str) -> None:
    """B2: it is one word, and no option."""
    await told(work, tool_of("write_file", program(FORMAT)), path=name, text="x")
    assert (work / name).read_text() == "X"
    assert names(work) == sorted([name, "sub"])


async def test_the_file_stands_where_the_command_wants_it(work: Path) -> None:
    """B2"""
    command = (sys.executable, "-c", FORMAT.replace("argv[1]", "argv[1].removeprefix('--file=')"))
    placed = Formatter("placed", ("*",), (*command, "--file={file}", "--quiet"))
    await told(work, tool_of("write_file", placed), path="a.txt", text="x")
    assert (work / "a.txt").read_text() == "X"


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (program(HANG, name="slow", timeout=2.0), "slow took too long on a.txt"),
        (Formatter("none", ("*",), ("no-such-program",)), "none failed on a.txt (it could not be started)"),
        (program("import os, sys; open(sys.argv[1], 'w').close(); os.kill(0, 9)"), "ended by signal 9"),
        (program("import os, sys; os.remove(sys.argv[1])"), "upper deleted a.txt: it was put back"),
        (program("raise SystemExit(3)"), "upper on a.txt: exit status 3"),
    ],
)
async def test_a_formatter_that_fails_is_told_and_the_write_stands(
    work: Path, broken: Formatter, words: str
) -> None:
    """B2: also where it leaves half a file."""
    text = await told(work, tool_of("write_file", broken), path="a.txt", text="all of it")
    assert words in text
    assert (work / "a.txt").read_text() == "all of it"
    (version,) = set(re.findall(r"version (\w+)", text))
    await told(work, tool_of("edit_file"), path="a.txt", version=version, old="all", new="some")


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("", "a.txt cannot be read after upper: "),
        ("; os.kill(0, 9)", "a.txt could not be put back as written: "),
    ],
)
async def test_a_formatter_that_leaves_no_file_is_told(work: Path, then: str, words: str) -> None:
    """B2"""
    folder = program(f"import os, sys; os.remove(sys.argv[1]); os.mkdir(sys.argv[1]){then}")
    text = await told(work, tool_of("write_file", folder), path="a.txt", text="x")
    assert words in text
    assert (work / "a.txt").is_dir()


async def test_a_formatter_that_is_not_trusted_does_not_run(work: Path) -> None:
    """P11: the write stands."""

    def refuse() -> None:
        raise ConfigError("it changed")

    group = with_formatters(files_group(), [program(FORMAT)], refuse)
    (write,) = [tool for tool in group.tools if tool.name == "write_file"]
    text = await told(work, write, path="a.txt", text="x")
    assert text.endswith("\nThe formatters did not run: it changed.")
    assert (work / "a.txt").read_text() == "x"


async def test_each_file_of_a_patch_is_formatted_in_turn(work: Path) -> None:
    """B2: by each that it concerns, in the order of the settings."""
    (work / "old.txt").write_text("gone\n")
    patch = (
        "*** Begin Patch\n*** Add File: a.txt\n+one\n*** Add File: b.md\n+two\n"
        "*** Delete File: old.txt\n*** End Patch"
    )
    also = program(FORMAT.replace("upper()", "replace('O', '0')"), name="zero")
    text = await told(work, tool_of("apply_patch", program(FORMAT), also), patch=patch)
    assert (work / "a.txt").read_text() == "0NE\n"
    assert (work / "b.md").read_text() == "two\n"
    assert "formatted by upper" in text
    assert "formatted by zero" in text


async def test_a_write_that_is_refused_is_not_formatted(work: Path) -> None:
    """B2"""
    (work / "a.txt").write_text("mine")
    assert "exists" in await refused(work, tool_of("write_file", program(FORMAT)), path="a.txt", text="x")
    assert (work / "a.txt").read_text() == "mine"


async def test_who_writes_the_same_file_waits_for_its_formatter(work: Path) -> None:
    """B2: else the formatter would put what it read in place of the other's text."""
    slowly = FORMAT.replace("p.write_text(", "import time; t = p.read_text(); time.sleep(0.5); p.write_text(")
    write = tool_of("write_file", program(slowly))
    bench = Bench(workspace=work)
    outcomes = await asyncio.gather(
        *(bench.run(write, {"path": "a.txt", "text": text}) for text in ("one", "two"))
    )
    states = sorted(outcome.state.value for outcome in outcomes)
    assert states == ["completed", "failed"]  # the second one finds a file that it has not read
    (done,) = [outcome for outcome in outcomes if outcome.state is CallState.COMPLETED]
    assert (work / "a.txt").read_text() in ("ONE", "TWO")
    assert "formatted by upper" in done.result.text


async def test_a_turn_that_is_cancelled_ends_the_formatter_and_the_write_stands(
    tmp_path: Path, work: Path
) -> None:
    """The write is recorded and can be undone (B2 × B3)."""
    script = [calls("write_file", path="a.txt", text="all of it"), says("never")]
    async with opened(tmp_path, script, program(HANG)) as runtime:
        turn = await runtime.send("go")
        await eventually((work / "begun").exists)
        await turn.cancel()
        await turn.result()
        assert (work / "a.txt").read_text() == "all of it"
        assert "a.txt" in (await turn.diff()).text
        await turn.revert(files_only=True)
        assert not (work / "a.txt").exists()
        assert not (work / "begun").exists()


async def test_a_write_is_finished_before_its_cancel_takes_effect() -> None:
    """B3"""
    began, may_end = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    async def write() -> None:
        began.set()
        await may_end.wait()
        written.append("all of it")

    writing = asyncio.ensure_future(_to_its_end(write()))
    await began.wait()
    writing.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert written == ["all of it"]


async def test_files_that_a_formatter_writes_beside_are_recorded(tmp_path: Path, work: Path) -> None:
    """The folder is scanned, rather than the tool's report trusted (B1)."""
    beside = program("open('cache', 'w').close()")
    script = [calls("write_file", path="a.txt", text="x"), says("done")]
    async with opened(tmp_path, script, beside) as runtime:
        turn = await runtime.send("go")
        await turn.result()
        await turn.revert(files_only=True)
        assert names(work) == ["sub"]


async def test_the_question_shows_the_change_as_it_was_asked_for(tmp_path: Path, work: Path) -> None:
    """No formatter runs before a user has approved (B2)."""
    script = [calls("write_file", path="a.txt", text="one\n"), says("done")]
    async with opened(tmp_path, script, program(FORMAT), allow=()) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.asked":
                assert "+one" in event.diff
                assert not (work / "a.txt").exists()
                await turn.cancel()
        assert not (work / "a.txt").exists()
