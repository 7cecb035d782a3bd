"""P11, P12: trust covers the programs that settings start, and no tool writes them without approval."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dragoman import ScriptedModel, allow_always, tool
from dragoman.config.build import build_runtime
from dragoman.config.settings import Settings, load
from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import MOST_BYTES, MOST_FILES, inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.config.workspaces import workspaces_of
from dragoman.messages.message import CallState
from dragoman.messages.questions import nobody_to_ask
from dragoman.runtime import Runtime
from dragoman.store.address import StoreFile
from dragoman.tools.mcp.source import McpSource
from dragoman.wire.scripted import Script, calls, says
from tests.patience import eventually
from tests.runtimes import only_call

SERVER = 'allow = ["files.*"]\n[mcp.x]\nenabled = false\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(file: Path, text: str = "x\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def trust(folder: Path) -> None:
    trust_answers().remember(inspect_project(folder), trusted=True)


def settings_of(folder: Path) -> Settings:
    return load(start=folder, environment={})


def opened(folder: Path, script: Script) -> Runtime:
    trust(folder)
    built = build_runtime(settings_of(folder), model=ScriptedModel(script), store=folder.parent / "chat.db")
    return built.runtime


async def because(folder: Path, path: str) -> list[str]:
    """Return the causes of the approval request when a tool writes this file, although a rule allows it."""
    asked = []
    async with opened(folder, [calls("write_file", path=path, text="x"), says("done")]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.asked":
                asked.append(event.because)
                await turn.answer(event.question, nobody_to_ask())
        state = only_call(await turn.result()).state
    assert state is (CallState.REJECTED if asked else CallState.COMPLETED)
    return asked


PYTHON = 'command = "python3"\n'


@pytest.mark.parametrize(
    ("server", "path"),
    [
        (PYTHON + 'args = ["srv/server.py"]', "srv/server.py"),
        (PYTHON + 'args = ["srv/server.py"]', "srv/json.py"),
        (PYTHON + 'args = ["srv/server.py"]', "srv/json/__init__.py"),
        (PYTHON + 'args = ["srv/server.py"]', "srv/settings.json"),
        (PYTHON + 'args = ["srv/server.py"]', "SRV/Server.py"),
        (PYTHON + 'args = ["srv/server.py"]', "a/../srv/server.py"),
        (PYTHON + 'args = ["server.py"]', "json.py"),
        (PYTHON + 'args = ["server.py"]', "lib/util.py"),
        (PYTHON + 'args = ["-m", "pkg"]', "pkg/__main__.py"),
        (PYTHON + 'args = ["-m", "pkg"]', "typing_extensions.py"),
        (PYTHON + 'args = ["-c", "import pkg"]', "pkg.py"),
        ('command = "./bin/serve"', "bin/serve"),
        ('command = "serve"\nargs = ["--load=conf/plugin"]', "conf/plugin"),
        ('command = "serve"\nenv = {LD_PRELOAD = "./x"}', "x"),
        ('command = "serve"\nenv = {PYTHONPATH = "lib"}\nargs = []', "lib"),
        ('command = "sh"\nargs = ["-c", "exec ./run"]', "run"),
        ('command = "make"\nargs = ["serve"]', "Makefile"),
        ('command = "make"\nargs = ["serve"]', "scripts/serve"),
        ('command = "npx"\nargs = ["-y", "notes"]', "node_modules/.bin/notes"),
        ('command = "npx"\nargs = ["-y", "notes"]', "package.json"),
        ('command = "env"\nargs = ["A=1", "python3.12", "-m", "pkg"]', "pkg.py"),
        ('command = ".venv/bin/python"\nargs = ["srv/s.py"]', ".venv/lib/site.py"),
        (PYTHON + 'args = ["s.py"]\ncwd = "deep"', "deep/s.py"),
    ],
)
async def test_no_tool_writes_what_a_server_runs_without_a_question(
    project: Path, server: str, path: str
) -> None:
    """P12 × allow: whether the file is there yet or not."""
    (project / "deep").mkdir()
    write(project / "dragoman.toml", f"{SERVER}{server}\n")
    assert await because(project, path) == ["bounds"]


@pytest.mark.parametrize(
    ("server", "path"),
    [
        (PYTHON + 'args = ["srv/server.py"]', "src/main.py"),
        (PYTHON + 'args = ["server.py"]', "notes.md"),
        ('command = "github-mcp"\nargs = ["stdio"]', "main.py"),
        ('command = "npx"\nargs = ["-y", "notes"]', "src/main.ts"),
        ('command = "docker"\nargs = ["run", "--rm", "mcp/github"]', "main.py"),
        (PYTHON + 'args = ["-m", "pkg"]\ncwd = ".."', "main.py"),
    ],
)
async def test_what_no_server_runs_is_written_as_rules_allow(project: Path, server: str, path: str) -> None:
    """P12"""
    write(project / "dragoman.toml", f"{SERVER}{server}\n")
    assert await because(project, path) == []


async def test_a_tool_of_ones_own_that_moves_files_is_judged_alike(project: Path) -> None:
    """P12: by its permission and the paths it names."""

    @tool(permission="files.move", pattern="to")
    def move_file(to: str) -> str:
        """Move a file."""
        return to

    write(project / "dragoman.toml", f'{SERVER}{PYTHON}args = ["srv/server.py"]\n')
    trust(project)
    script = [calls("move_file", to="srv/server.py"), says("done")]
    built = build_runtime(
        settings_of(project), model=ScriptedModel(script), tools=[move_file], store=project.parent / "chat.db"
    )
    async with built.runtime as runtime:
        turn = await runtime.send("go")
        asked = await anext(turn.asked())
        assert asked.because == "bounds"
        await turn.cancel()


async def test_a_server_of_the_json_file_and_the_editor_are_started_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P12"""
    write(project / "dragoman.toml", 'allow = ["files.*"]\nmcp_file = "servers.json"\n')
    entry = '{"command": "node", "args": ["srv/a.js"], "disabled": true}'
    write(project / "servers.json", f'{{"mcpServers": {{"a": {entry}}}}}')
    monkeypatch.setenv("EDITOR", "./ed/run --wait")
    assert await because(project, "srv/b.js") == ["bounds"]
    assert await because(project, "ed/run") == ["bounds"]
    assert await because(project, "c.js") == []


async def test_settings_that_change_while_the_program_runs_count_at_once(project: Path) -> None:
    """P12: at the time of the write, not of the start."""
    file = write(project / "dragoman.toml", 'allow = ["files.*"]\n')
    script = [
        calls("write_file", path="srv/a.py", text="x"),
        says("1"),
        calls("write_file", path="srv/b.py", text="x"),
        says("2"),
    ]
    async with opened(project, script) as runtime:
        assert only_call(await (await runtime.send("go")).result()).state is CallState.COMPLETED
        write(file, f'{SERVER}{PYTHON}args = ["srv/a.py"]\n')
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.asked":
                assert event.because == "bounds"
                await turn.answer(event.question, allow_always())  # no grant takes the next one away
        assert only_call(await turn.result()).state is CallState.COMPLETED


@pytest.fixture
def repository(project: Path) -> Path:
    """Whose `.git` is a file, and whose hooks lie among the files of the project."""
    write(project / "dragoman.toml", 'allow = ["files.*"]\n')
    subprocess.run(["git", "init", "-q", "--separate-git-dir", project / "data", project], check=True)
    subprocess.run(["git", "-C", project, "config", "core.hooksPath", "ci/hooks"], check=True)
    return project


async def test_what_the_configuration_of_git_starts_is_asked_about(repository: Path) -> None:
    """P12: hooks in a folder of the project, and a repository that a file `.git` points to."""
    project = repository
    assert await because(project, "data/config") == ["bounds"]
    assert await because(project, "ci/hooks") == ["bounds"]
    assert await because(project, "ci/hooks/pre-commit") == ["bounds"]
    assert await because(project, "ci/other") == []


@pytest.fixture(params=["folder of a repository", "linked worktree"])
def part(project: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder whose repository is configured elsewhere, and starts programs from the folder."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=a@b", "-C", str(project)]
    subprocess.run([*git, "init", "-q"], check=True)
    folder, base = project / "part", "part/"
    if request.param == "linked worktree":
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        subprocess.run([*git, "worktree", "add", "-q", folder], check=True)
        base = ""
    with (project / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = {base}watch.bin\n[credential]\n\thelper = !{base}cred\n")
        file.write("[include]\n\tpath = ../part/more.cfg\n")
    write(folder / "more.cfg", f"[alias]\n\tst = !{base}nested.txt\n")
    write(folder / "dragoman.toml", 'allow = ["files.*"]\n')
    return folder


async def test_p12_a_repository_protects_what_it_starts_in_every_folder(part: Path) -> None:
    """P12: also if `.git` is above the workspace, or the configuration is another worktree's, or included."""
    for name in ("watch.bin", "cred", "more.cfg", "nested.txt"):
        assert await because(part, name) == ["bounds"], name
    assert await because(part, "notes.txt") == []


def test_p12_what_git_includes_counts_as_it_is_now(repository: Path) -> None:
    """A program named by an included file is protected as soon as it is named (P12 x a running program)."""
    subprocess.run(["git", "-C", repository, "config", "include.path", "../more.cfg"], check=True)
    find = workspaces_of(settings_of(repository), StoreFile(repository.parent / "chat.db"))[0].find_bounds
    assert not any(rule.pattern == "st/run" for rule in find())
    write(repository / "more.cfg", "[alias]\n\tst = !st/run\n")
    assert any(rule.pattern == "st/run" for rule in find())


# ── trust ─────────────────────────────────────────────────────────────────────────────────────────

STARTS = """
[mcp.notes]
command = "./bin/run.sh"
[mcp.py]
command = "python3"
args = ["srv/server.py"]
[formatters.f]
files = ["*.txt"]
command = ["./fmt/f.sh"]
"""


@pytest.mark.parametrize("name", ["bin/run.sh", "srv/server.py", "fmt/f.sh", "srv/helper.py"])
def test_a_program_that_changed_asks_again(project: Path, name: str) -> None:
    """This covers each file that settings start and the code next to it. Data that a server writes is not
    code (P11)."""
    write(project / "dragoman.toml", STARTS)
    for file in ("bin/run.sh", "srv/server.py", "fmt/f.sh", "srv/helper.py"):
        write(project / file)
    trust(project)
    write(project / "srv" / "notes.db", "data")
    write(project / "other.py")
    assert settings_of(project).sources.project == project / "dragoman.toml"
    write(project / name, "changed\n")
    settings = settings_of(project)
    assert settings.sources.project is None
    answer = trust_answers().find(project)
    assert answer is not None
    assert answer.changes(inspect_project(project)) == [f"changed: {name}"]


def test_a_module_that_comes_beside_a_script_asks_again_and_one_that_goes_is_told(project: Path) -> None:
    """P11"""
    write(project / "dragoman.toml", STARTS)
    script, gone = write(project / "srv" / "server.py"), write(project / "srv" / "old.py")
    trust(project)
    gone.unlink()
    assert settings_of(project).sources.project is not None
    write(script.with_name("json.py"))
    assert settings_of(project).sources.project is None
    answer = trust_answers().find(project)
    assert answer is not None
    assert answer.changes(inspect_project(project)) == ["new: srv/json.py", "removed: srv/old.py"]
    trust(project)
    answer = trust_answers().find(project)
    assert answer is not None
    assert answer.changes(inspect_project(project)) == []


@pytest.mark.parametrize(
    "command",
    [
        'command = "python3"\nargs = ["-m", "pkg"]',
        'command = "npx"\nargs = ["-y", "notes"]',
        'command = "make"\nargs = ["serve"]',
        'command = "sh"\nargs = ["-c", "exec serve"]',
    ],
)
def test_where_it_cannot_be_told_what_runs_all_code_is_covered(project: Path, command: str) -> None:
    """P11: and the person who decides reads so."""
    write(project / "dragoman.toml", f"[mcp.x]\n{command}\n")
    code = [
        write(project / "deep" / "a.ts"),
        write(project / "Makefile"),
        write(project / "go", "#!/bin/sh\n"),
        write(project / "node_modules" / "notes" / "data"),
    ]
    assert any(
        line.startswith("cannot tell which files this runs: ") for line in summarise(inspect_project(project))
    )
    trust(project)
    write(project / "README.md")
    assert settings_of(project).sources.project is not None
    for file in code:
        before = file.stat()
        write(file, "#!/bin/other\n")
        assert settings_of(project).sources.project is None, file
        write(file, "#!/bin/sh\n" if file.name == "go" else "x\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert settings_of(project).sources.project is not None


def test_code_that_is_too_much_to_read_is_covered_by_names_sizes_and_times(project: Path) -> None:
    """P11 × limits"""
    write(project / "dragoman.toml", f"[mcp.x]\n{PYTHON}args = ['-m', 'pkg']\n")
    for number in range(MOST_FILES + 1):
        (project / f"{number}.py").touch()
    trust(project)
    assert settings_of(project).sources.project is not None
    write(project / "7.py", "evil\n")
    assert settings_of(project).sources.project is None


def test_a_program_of_many_megabytes_and_what_links_lead_to_are_covered(project: Path) -> None:
    """P11"""
    write(project / "dragoman.toml", STARTS)
    write(project / "srv" / "server.py")
    helper = write(project / "lib" / "deep" / "helper.py")
    (project / "srv" / "lib").symlink_to("../lib")
    (project / "lib" / "again").symlink_to("../lib")
    (project / "bin").mkdir()
    with (project / "bin" / "run.sh").open("wb") as program:
        program.truncate(MOST_BYTES + 1)
    trust(project)
    assert settings_of(project).sources.project is not None
    write(helper, "changed\n")
    assert settings_of(project).sources.project is None
    write(helper)
    with (project / "bin" / "run.sh").open("r+b") as program:
        program.write(b"changed")
    assert settings_of(project).sources.project is None


@pytest.mark.parametrize("name", ["servers.json", ".git/config", "srv/server.py", "srv/pipe.py"])
def test_a_pipe_among_what_is_started_holds_up_nobody(project: Path, name: str) -> None:
    """P11, P12: a start in another user's project waits for nothing."""
    write(project / "dragoman.toml", f'mcp_file = "servers.json"\n{STARTS}')
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(project / name)
    trust(project)
    bounds = workspaces_of(settings_of(project), StoreFile(project.parent / "chat.db"))[0].find_bounds()
    assert isinstance(bounds, tuple)


async def test_a_server_that_is_started_later_is_the_one_that_was_trusted(project: Path) -> None:
    """P11: trust × a program that runs on."""
    ran = project.parent / "ran"
    script = write(project / "srv" / "server.py", f"open({str(ran)!r}, 'a').write('first ')\n")
    write(project / "dragoman.toml", f"[mcp.x]\n{PYTHON}args = ['srv/server.py']\n")
    async with opened(project, [says("1")]) as runtime:
        write(script, f"open({str(ran)!r}, 'a').write('CHANGED ')\n")
        await (await runtime.send("go")).result()
        (source,) = [one for one in runtime.services.toolbox.sources if one.name == "x"]
        assert isinstance(source, McpSource)
        assert "changed after its review" in source.error
    assert not ran.exists()


async def test_a_formatter_that_changes_while_the_program_runs_does_not_run(project: Path) -> None:
    """The model's write stays, and the model sees the reason (P11: trust × a runtime that runs on)."""
    ran = project / "ran"
    formatter = write(project / "fmt" / "f.sh", f"#!/bin/sh\necho first >> {ran}\n")
    formatter.chmod(0o755)
    start = 'allow = ["files.*"]\n[formatters.f]\nfiles = ["*.txt"]\ncommand = ["./fmt/f.sh"]\n'
    write(project / "dragoman.toml", start)
    script = [calls("write_file", path=f"{name}.txt", text="x") for name in "ab"]
    async with opened(project, [script[0], says("1"), script[1], says("2")]) as runtime:
        await (await runtime.send("go")).result()
        assert ran.read_text() == "first\n"
        formatter.write_text(f"#!/bin/sh\necho CHANGED >> {ran}\n")
        told = only_call(await (await runtime.send("again")).result()).result
    assert told is not None
    assert "f.sh in" in told.text
    assert "changed after its review" in told.text
    assert (ran.read_text(), (project / "b.txt").read_text()) == ("first\n", "x")


def test_p11_trust_covers_whatever_a_command_names_and_compiled_code(project: Path) -> None:
    """This includes files that are not code by their name. Data that servers write is excluded."""
    write(project / "lib" / "prog.txt", "BEGIN{}")
    write(project / "lib" / "notes.json", "{}")
    write(project / "srv" / "server.py", "import colorsys")
    write(
        project / "dragoman.toml",
        "[mcp.a]\ncommand = 'awk'\nargs = ['-f', 'lib/prog.txt', 'lib/notes.json']\n"
        f"[mcp.b]\n{PYTHON}args = ['srv/server.py']\n",
    )
    trust(project)
    answer = trust_answers().find(project)
    assert answer is not None
    write(project / "lib" / "notes.json", "[]")
    assert answer.covers(inspect_project(project))
    write(project / "lib" / "prog.txt", "BEGIN{x}")
    write(project / "srv" / "colorsys.pyc", "compiled")
    assert sorted(answer.changes(inspect_project(project))) == [
        "changed: lib/prog.txt",
        "new: srv/colorsys.pyc",
    ]


async def test_a_server_runs_where_the_settings_are(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P11: started in a folder below, the same words name the same, trusted, files."""
    for place in (project, project / "sub"):
        write(place / "srv" / "server.py", f"open({str(place / 'ran')!r}, 'w')\n")
    write(project / "dragoman.toml", f"[mcp.x]\n{PYTHON}args = ['srv/server.py']\n")
    trust(project)
    monkeypatch.chdir(project / "sub")
    settings = settings_of(project / "sub")
    built = build_runtime(settings, model=ScriptedModel([says("1")]), store=project.parent / "chat.db")
    async with built.runtime as runtime:
        await (await runtime.send("go")).result()
        await eventually((project / "ran").exists)
    assert not (project / "sub" / "ran").exists()
