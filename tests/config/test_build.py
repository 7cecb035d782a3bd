"""Check that settings produce a runtime with its tools, agents, skills and rules, and report what was left
out."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman import ScriptedModel, reject
from dragoman.config.build import Built, build_runtime
from dragoman.config.settings import Settings, load
from dragoman.errors import ConfigError
from dragoman.messages.events import CallAsked
from dragoman.messages.message import CallState
from dragoman.tools.authorize import review_of
from dragoman.turn.api.turn_handle import TurnHandle
from dragoman.wire.scripted import Script, calls, says
from tests.runtimes import only_call


def settled(folder: Path, text: str) -> Settings:
    (folder / "dragoman.toml").write_text('store = "chat.db"\n' + text, "utf-8")
    return load(folder / "dragoman.toml", environment={})


def opened(folder: Path, text: str, script: Script = ()) -> Built:
    return build_runtime(settled(folder, text), model=ScriptedModel(script))


async def test_formatters_of_the_file_run_after_a_write(tmp_path: Path) -> None:
    """They run in order, a disabled one does not run, and a program in the workspace is protected (B2)."""
    (tmp_path / "up.py").write_text(
        "import sys; f = sys.argv[1]; t = open(f).read(); open(f, 'w').write(t.upper())"
    )
    text = f"""
allow = ["files.write"]
[formatters.up]
files = ["*.txt"]
command = ["{sys.executable}", "up.py"]
[formatters.off]
files = ["*"]
command = ["rm", "{{file}}"]
enabled = false
"""
    script = [
        calls("write_file", path="a.txt", text="x"),
        calls("write_file", path="up.py", text="import os", version="0"),
        says("done"),
    ]
    async with opened(tmp_path, text, script).runtime as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.asked":
                assert event.arguments["path"] == "up.py"
                assert event.because == "bounds"
                await turn.answer(event.question, reject())
        await turn.result()
    assert (tmp_path / "a.txt").read_text() == "X"


@pytest.mark.parametrize("words", [["late.py"], ["scripts/late.py"], ["--load=late.py"]])
@pytest.mark.parametrize("workspace", ["", "other"])
async def test_the_program_of_a_formatter_is_protected_before_it_is_there(
    tmp_path: Path, words: list[str], workspace: str
) -> None:
    """A model that could write the program without approval could run anything, in any of the folders (B2 ×
    R9)."""
    (tmp_path / "other").mkdir()
    text = f"""
allow = ["files.write"]
[workspaces.other]
folder = "other"
[formatters.late]
files = ["*.txt"]
command = {[sys.executable, *words]!r}
"""
    script = [
        calls("write_file", path=words[-1].removeprefix("--load="), text="open('ran', 'w')"),
        says("done"),
    ]
    async with opened(tmp_path, text, script).runtime as runtime:
        turn = await runtime.send("go", workspace=workspace)
        asked = [event.because async for event in _rejecting(turn)]
    assert asked == ["bounds"]


async def _rejecting(turn: TurnHandle) -> AsyncIterator[CallAsked]:
    async for event in turn.events():
        if isinstance(event, CallAsked):
            yield event
            await turn.answer(event.question, reject())


def test_ones_own_formatters_are_not_programs_of_whatever_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2 × trust: a clone could bring one of that name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own" / "dragoman").mkdir(parents=True)
    (tmp_path / "own" / "dragoman" / "dragoman.toml").write_text(
        f'store = "{tmp_path}/chat.db"\n[formatters.mine]\nfiles = ["*"]\ncommand = ["bin/format"]\n'
    )
    with pytest.raises(ConfigError, match="or its absolute path"):
        build_runtime(load(environment={}), model=ScriptedModel([]))


@pytest.mark.parametrize(
    "table",
    [
        'files = ["*"]',
        'command = ["x"]',
        'files = []\ncommand = ["x"]',
        'files = ["*"]\ncommand = []',
        'files = ["*"]\ncommand = ["x"]\ntimeout = 61',
        'files = ["*"]\ncommand = "x {file}"',
    ],
)
def test_a_formatter_that_cannot_be_followed_is_said(tmp_path: Path, table: str) -> None:
    """C11"""
    with pytest.raises(ConfigError, match=r"formatters\.mine"):
        settled(tmp_path, f"[formatters.mine]\n{table}\n")


async def test_everything_in_the_file_is_in_the_house(tmp_path: Path) -> None:
    """C11, R1"""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "house_mine.py").write_text(
        'from dragoman import tool\n\n@tool\ndef mine() -> str:\n    """Mine."""\n    return "m"\n', "utf-8"
    )
    (tmp_path / "tools" / "house_bad.py").write_text("1 / 0\n", "utf-8")
    (tmp_path / "skills" / "bake").mkdir(parents=True)
    (tmp_path / "skills" / "bake" / "SKILL.md").write_text(
        "---\nname: bake\ndescription: B.\n---\nx", "utf-8"
    )
    text = """
system = "Be brief."
tools = ["basics"]
deny = ["basics.todo"]
[agents.clerk]
prompt = "You are a clerk."
tools = ["basics.calculator"]
[agents.clerk.limits]
max_rounds = 1
"""
    house = opened(tmp_path, text, [says("hi"), says("hi")])
    async with house.runtime as runtime:
        await (await runtime.send("go")).result()
        model = runtime.services.model(None)
        assert isinstance(model, ScriptedModel)
        offered = {spec.name for spec in model.requests[-1].tools}
        assert offered >= {"mine", "calculator", "load_skill", "task", "read_output"}
        assert "Be brief." in model.requests[-1].system
        await (await runtime.send("go", agent="clerk")).result()
        assert [spec.name for spec in model.requests[-1].tools] == ["calculator"]
    assert len(house.warnings) == 1
    assert "house_bad.py, line 1" in house.warnings[0]


async def test_the_workspace_is_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello", "utf-8")
    script = [calls("read_file", path="a.txt"), says("done")]
    async with opened(tmp_path, 'allow = ["files.read"]', script).runtime as runtime:
        call = only_call(await (await runtime.send("go")).result())
        assert call.result is not None
        assert "hello" in call.result.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('tools = ["bascis"]', "dragoman.toml:2: unknown group 'bascis'"),
        ('workspace = "nowhere"', "is not a folder"),
        ('allow = [""]', "allow"),
        ('mcp_file = "nowhere.json"', "cannot read"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        opened(tmp_path, text)


async def test_what_becomes_code_or_prompt_is_asked_about_whatever_is_allowed(tmp_path: Path) -> None:
    """The store cannot be read or written at all (P1)."""
    paths = ["tools/evil.py", "skills/x/SKILL.md", ".dragoman/skills/x/SKILL.md", "dragoman.toml"]
    script = [*(calls("write_file", path=path, text="x") for path in paths), says("done")]
    bold = 'allow = ["files.*"]\n[agents.bold]\nallow = ["files.*"]'
    async with opened(tmp_path, bold, script).runtime as runtime:
        turn = await runtime.send("go", agent="bold")
        asked = []
        async for event in turn.events():
            if event.type == "call.asked":
                asked.append(event.arguments["path"])
                await turn.answer(event.question, reject())
        assert asked == paths
    script = [calls("read_file", path="chat.db"), calls("write_file", path="ok.txt", text="x"), says("done")]
    async with opened(tmp_path, 'allow = ["files.*"]', script).runtime as runtime:
        result = await (await runtime.send("go")).result()
        states = [call.state for message in result.messages for call in message.calls]
        assert states == [CallState.REJECTED, CallState.COMPLETED]


async def test_attachments_in_the_workspace_are_out_of_bounds(tmp_path: Path) -> None:
    """P1, N1: those of everybody are there."""
    paths = ["blobs/owner", "blobs/ab/cd", "ok.txt"]
    script = [*(calls("write_file", path=path, text="x") for path in paths), says("done")]
    text = f'blobs = "{(tmp_path / "blobs").as_uri()}"\nallow = ["files.*"]'
    async with opened(tmp_path, text, script).runtime as runtime:
        result = await (await runtime.send("go")).result()
        states = [call.state for message in result.messages for call in message.calls]
        assert states == [CallState.REJECTED, CallState.REJECTED, CallState.COMPLETED]


def test_a_rule_or_tool_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A word that matches nothing protects nothing (P1)."""
    text = 'allow = ["files.*", "mcp.x.*"]\ndeny = ["deploy"]\n[agents.x]\ntools = ["files.nope", "files"]'
    warnings = opened(tmp_path, text).warnings
    assert len(warnings) == 2
    assert "'deny deploy'" in warnings[0]
    assert "'files.nope'" in warnings[1]


@pytest.mark.parametrize(
    "text",
    [
        'deny = ["file.write"]',
        'deny = ["shel:rm *"]',
        'deny = ["file.*:secrets/*"]',
        '[agents.x]\ndeny = ["shel"]',
    ],
)
def test_a_misspelled_denial_is_an_error(tmp_path: Path, text: str) -> None:
    """P1: it would hold nothing back."""
    with pytest.raises(ConfigError, match=r"dragoman\.toml:\d+: deny: .* Did you mean"):
        opened(tmp_path, text)


def test_results_are_reviewed_by_patterns(tmp_path: Path) -> None:
    """This includes built-in tools. A pattern without matches is reported, and a misspelled one is an error
    (P5)."""
    lines = [
        'read_file = "always"',
        '"files.write" = "on_error"',
        '"mcp.x.*" = "always"',
        'deploy = "always"',
    ]
    built = opened(tmp_path, "\n".join(["[review]", *lines]))
    (warning,) = built.warnings
    assert "review: no tool has the name or permission 'deploy'" in warning
    services = built.runtime.services
    found = {
        one.name: review_of(one, services.review) for group in services.toolbox.groups for one in group.tools
    }
    assert (found["read_file"], found["glob"], found["edit_file"]) == ("always", "never", "on_error")
    with pytest.raises(ConfigError, match=r"review: .*'fils\.\*', so it would .* Did you mean 'files\.\*'"):
        opened(tmp_path, '[review]\n"fils.*" = "always"\n')
