"""Check that of a folder only its content at the time of trust is used, also while the program runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import ScriptedModel
from dragoman.config.build import build_runtime, catalog_of, servers_of, store_of
from dragoman.config.settings import Settings, load
from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import MOST_BYTES, MOST_FILES, FolderContents, inspect_project
from dragoman.config.trust.summary import summarise
from dragoman.errors import ConfigError, NotFound
from dragoman.messages.message import CallState
from dragoman.providers.catalog import load_catalog
from dragoman.runtime import Runtime
from dragoman.store.address import StoreFile
from dragoman.wire.scripted import Script, calls, says
from tests.runtimes import model_of, only_call


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an untrusted folder, for a user with a separate home."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "clone"
    folder.mkdir()
    return folder


def write(file: Path, text: str = "\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def write_skill(folder: Path, name: str, text: str) -> Path:
    return write(folder / name / "SKILL.md", f"---\ndescription: d\nalways: true\n---\n{text}\n")


def settings_of(folder: Path) -> Settings:
    return load(start=folder, environment={})


def trust(folder: Path) -> None:
    trust_answers().remember(inspect_project(folder), trusted=True)


def runtime_of(folder: Path, script: Script) -> Runtime:
    built = build_runtime(settings_of(folder), model=ScriptedModel(script), store=folder.parent / "chat.db")
    return built.runtime


async def test_a_skill_that_changes_after_the_start_is_left_out(clone: Path) -> None:
    """P11, C12: trust × looking again before each request."""
    write_skill(clone / "skills", "a", "what was trusted")
    write(clone / "skills" / "a" / "more.txt", "more")
    write(clone / "dragoman.toml")
    trust(clone)
    load_more = calls("load_skill", name="a", file="more.txt")
    async with runtime_of(
        clone, [load_more, says("1"), says("2"), load_more, says("3"), says("4")]
    ) as runtime:
        call = only_call(await (await runtime.send("go")).result())
        assert call.state is CallState.COMPLETED
        write_skill(clone / "skills", "b", "what came later")
        write(clone / "skills" / "a" / "more.txt", "other")
        await (await runtime.send("go")).result()
        system = model_of(runtime).requests[-1].system
        assert "what was trusted" in system
        assert "what came later" not in system
        assert only_call(await (await runtime.send("go")).result()).state is CallState.FAILED
        write_skill(clone / "skills", "a", "what was changed")
        await (await runtime.send("go")).result()
        assert "what was" not in model_of(runtime).requests[-1].system


async def test_what_ones_own_settings_look_for_in_every_folder_is_the_folders(clone: Path) -> None:
    """A relative path in the user's own settings leads into the current folder (P11)."""
    own = 'skills = ["how"]\nmcp_file = "mcp.json"\n'
    write(clone.parent / "config" / "dragoman" / "dragoman.toml", own)
    write_skill(clone / "how", "a", "obey")
    write(clone / "mcp.json", '{"mcpServers": {"x": {"command": "true"}}}')
    settings = settings_of(clone)
    assert "mcp_file" not in settings.values
    assert [left.contents.folder for left in settings.sources.left_out] == [clone]
    async with runtime_of(clone, [says("1")]) as runtime:
        await (await runtime.send("go")).result()
        assert "obey" not in model_of(runtime).requests[-1].system


def make_vast(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


def make_crowded(path: Path) -> None:
    path.mkdir()
    for number in range(2 * MOST_FILES + 1):
        (path / str(number)).touch()


def make_unreadable(path: Path) -> None:
    # a regular file that no process can read from its beginning, not even root
    path.symlink_to("/proc/self/mem")


@pytest.mark.parametrize("hide", [make_vast, make_crowded, make_unreadable])
@pytest.mark.parametrize("name", ["skills", ".dragoman/skills"])
def test_a_folder_that_cannot_be_looked_at_is_left_out(
    clone: Path, hide: Callable[[Path], None], name: str
) -> None:
    """The case is a relative mcp_file in the user's settings next to an unreadable file (P11)."""
    if hide is make_unreadable and not Path("/proc/self/mem").exists():
        pytest.skip("there is no such file here")
    write(clone.parent / "config" / "dragoman" / "dragoman.toml", 'mcp_file = "mcp.json"\n')
    write(clone / "mcp.json", '{"mcpServers": {"x": {"command": "true"}}}')
    (clone / name).parent.mkdir(exist_ok=True)
    hide(clone / name)
    settings = load(start=clone, environment={"DRAGOMAN_TRUST": str(clone)}, decide=lambda _: True)
    assert "mcp_file" not in settings.values
    assert [left.contents.folder for left in settings.sources.left_out] == [clone]
    write(clone / "dragoman.toml", 'allow = ["*"]\n')
    settings = load(start=clone, environment={}, decide=lambda _: True)  # and no error
    assert "allow" not in settings.values
    assert [*settings.sources.left_out[0].contents.files][:1] == ["dragoman.toml"]


def test_what_settings_refer_to_is_part_of_what_is_trusted(clone: Path) -> None:
    """P11: also deeper in the folder, or outside of it."""
    write(
        clone / "dragoman.toml",
        'mcp_file = "deep/mcp.json"\nskills = ["../shared"]\nworkspace = "work"\n'
        '[agents.a]\nallow = ["shell"]\n',
    )
    mcp = '{"mcpServers": {"x": {"command": "run-it", "args": ["${TOKEN}"]}}}'
    referred = [
        write(clone / "deep" / "mcp.json", mcp),
        write_skill(clone.parent / "shared", "a", "x"),
        write_skill(clone / "work" / "skills", "b", "x"),
    ]
    trust(clone)
    assert settings_of(clone).sources.left_out == []
    lines = summarise(inspect_project(clone))
    assert "starts the program: run-it ${TOKEN}, and gives it your TOKEN (MCP server x)" in lines
    assert "allows without a question: shell (agent a)" in lines
    assert sum("in every request" in line for line in lines) == 2
    for file in referred:
        before = file.read_text()
        file.write_text(before + " ")
        assert settings_of(clone).sources.project is None
        file.write_text(before)
        assert settings_of(clone).sources.project == clone / "dragoman.toml"


MCP = '{"mcpServers": {"x": {"command": "run-it", "args": ["now"], "env": {"LD_PRELOAD": "./x"}}}}'


@pytest.mark.parametrize(
    "name",
    [
        "mcp.json",
        "tools-mcp.json",
        "plugins.json",
        "tools/mcp.json",
        "skills/a/mcp.json",
        ".dragoman/mcp.json",
        "servers",
        "servers.txt",
        "../outside.jsonc",
    ],
)
def test_the_servers_of_a_file_are_shown_whatever_it_is_called(clone: Path, name: str) -> None:
    """P11: the summary × where the file lies."""
    file = write(clone / name, MCP)
    write(clone / "dragoman.toml", f'mcp_file = "{name}"\n')
    contents = inspect_project(clone)
    shown = name if not name.startswith("..") else str(file.resolve())
    line = 'starts the program: run-it now (MCP server x), with env.LD_PRELOAD = "./x"'
    assert f"reads MCP servers from {shown}" in summarise(contents)
    assert line in summarise(contents)


@pytest.mark.parametrize("name", ["mcp.json", "tools.json", "servers"])
def test_the_servers_that_ones_own_settings_find_in_a_folder_are_shown(clone: Path, name: str) -> None:
    """P11"""
    write(clone / name, MCP)
    write(clone.parent / "config" / "dragoman" / "dragoman.toml", f'mcp_file = "{name}"\n')
    asked: list[FolderContents] = []

    def no(contents: FolderContents) -> bool:
        asked.append(contents)
        return False

    load(start=clone, environment={}, decide=no)
    assert summarise(asked[0]) == [
        f"reads MCP servers from {name}",
        'starts the program: run-it now (MCP server x), with env.LD_PRELOAD = "./x"',
    ]


@pytest.mark.parametrize("content", [None, "{ damaged", "[]", '{"mcpServers": [1]}', "[" * 100_000])
def test_a_file_of_servers_that_cannot_be_read_is_shown_all_the_same(
    clone: Path, content: str | None
) -> None:
    """P11: another file of servers in the folder does not speak for it."""
    write(clone / "other.json", MCP)
    write(clone / "dragoman.toml", 'mcp_file = "servers"\n')
    if content is not None:
        write(clone / "servers", content)
    (line,) = summarise(inspect_project(clone))
    assert line.startswith("reads MCP servers from servers: ")
    assert "what it would start is not known" in line


def test_a_path_that_reads_like_another_is_shown_as_what_it_is(clone: Path) -> None:
    """P11: `..` behind a link leads elsewhere than it reads."""
    (clone / "deep" / "inner").mkdir(parents=True)
    (clone / "a").symlink_to("deep/inner")
    write(clone / "mcp.json", '{"mcpServers": {}}')
    write(clone / "deep" / "mcp.json", MCP)
    write(clone / "dragoman.toml", 'mcp_file = "a/../mcp.json"\n')
    assert "reads MCP servers from deep/mcp.json" in summarise(inspect_project(clone))


def test_every_setting_is_shown_whole(clone: Path) -> None:
    """The request shows every value, whichever file sets it (P11)."""
    order = "obey " * 100 + "at last"
    write(
        clone / "dragoman.toml",
        f'system = "{order}"\n[providers.p]\nbase_url = "https://p.example"\nheaders = {{ to = "them" }}\n'
        f'[providers.p.defaults]\nprompt = "1 {order}"\n[providers.p.models."m.*"]\nprompt = "2 {order}"\n'
        f'[families.f]\nprompt = "3 {order}"\n'
        f'[agents.a]\nprompt = "4 {order}"\nmodel = "p/m"\ndeny = ["x"]\nallow = ["y"]\n',
    )
    for name in ("dice.py", "fast.cpython-311-x86_64-linux-gnu.so", "fast.pyd", "data.txt"):
        write(clone / "tools" / name)
    write(clone / "plugins" / "x.py")
    assert summarise(inspect_project(clone)) == [
        "sends what you say to https://p.example, without a key (provider p)",
        "runs Python: tools/dice.py",
        "can run native code: tools/fast.cpython-311-x86_64-linux-gnu.so",
        "can run native code: tools/fast.pyd",
        "runs Python: plugins/x.py",
        "allows without a question: y (agent a)",
        "agents: a",
        f'sets agents.a.prompt = "4 {order}"',
        'sets agents.a.model = "p/m"',
        'sets agents.a.deny = ["x"]',
        f'sets families.f.prompt = "3 {order}"',
        'sets providers.p.headers.to = "them"',
        f'sets providers.p.defaults.prompt = "1 {order}"',
        f'sets providers.p.models."m.*".prompt = "2 {order}"',
        f'sets system = "{order}"',
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a = [" * 100_000,
        "a = " + "1" * 10_000,
        "x = 1\n" * 200_000,
        '[providers]\nx = 1\n[mcp]\ny = []\n[agents]\nz = ""',
        'providers = "x"\nmcp = 1\nagents = []\nallow = {}\nskills = 5\nmcp_file = "~nobody-here/x"',
        'workspace = "\\u0000"',
        "\x00\xff",
    ],
)
def test_settings_that_make_no_sense_are_summed_up_all_the_same(clone: Path, text: str) -> None:
    """An untrusted file can neither break nor delay the trust request about it (P11)."""
    write(clone / "dragoman.toml", text)
    assert isinstance(summarise(inspect_project(clone)), list)
    assert settings_of(clone).values == {}


async def test_the_file_tools_cannot_write_what_was_said_about_trust(clone: Path) -> None:
    """The workspace can contain the user's own folders. Every file in a workspace of tools is a tool (P11,
    P9)."""
    write(clone / "dragoman.toml", f'workspace = "{clone.parent}"\nallow = ["files.*"]\n')
    trust(clone)
    script = [calls("write_file", path="data/dragoman/trust.json", text="{}", version="x"), says("1")]
    async with runtime_of(clone, script) as runtime:
        assert only_call(await (await runtime.send("go")).result()).state is CallState.REJECTED
    write(clone / "dragoman.toml", 'workspace = "tools"\nallow = ["files.*"]\n')
    write(clone / "tools" / "_x.py")
    trust(clone)
    async with runtime_of(clone, [calls("write_file", path="evil.py", text="x"), says("1")]) as runtime:
        turn = await runtime.send("go")
        assert await turn.reached("waiting")
        assert [question.because for question in turn.questions] == ["bounds"]


@pytest.mark.parametrize("decided", ["trusted", "named"])
def test_what_changes_between_the_look_and_the_start_is_not_used(clone: Path, decided: str) -> None:
    """Providers and servers are read from their files once more (P11: trust × change)."""
    file = write(clone / "dragoman.toml", f'mcp_file = "{clone / "mcp.json"}"\n')
    write(clone / "mcp.json", MCP)
    trust(clone)
    settings = load(file, environment={}) if decided == "named" else settings_of(clone)
    assert "x" in servers_of(settings)
    write(clone / "mcp.json", MCP.replace("run-it", "other"))
    with pytest.raises(ConfigError, match="changed after its review"):
        build_runtime(settings, model=ScriptedModel([]), store=clone.parent / "chat.db")
    catalog_of(settings)
    write(clone / "dragoman.toml", '[providers.anthropic]\nbase_url = "https://other.example"\n')
    with pytest.raises(ConfigError, match="changed after its review"):
        catalog_of(settings)


def test_what_comes_to_be_where_ones_own_settings_look_is_not_used(clone: Path) -> None:
    """A relative mcp_file must not find a file that appeared later, and an absolute one belongs to the user
    (P11)."""
    own = clone.parent / "config" / "dragoman" / "dragoman.toml"
    write(own, 'mcp_file = "mcp.json"\n')
    settings = settings_of(clone)
    write(clone / "mcp.json", MCP)
    with pytest.raises(ConfigError, match="changed after its review"):
        servers_of(settings)
    write(own, f'mcp_file = "{clone / "mcp.json"}"\n')
    assert "x" in servers_of(settings_of(clone))
    own.unlink()
    environment = {"DRAGOMAN_MCP_FILE": str(clone / "mcp.json")}
    assert "x" in servers_of(load(start=clone, environment=environment))


@pytest.mark.parametrize("trusted", [False, True])
def test_a_store_of_ones_own_settings_is_the_same_in_every_folder(clone: Path, *, trusted: bool) -> None:
    """A clone could contain a database with grants and resumable turns (P11)."""
    own = write(clone.parent / "config" / "dragoman" / "dragoman.toml", 'store = "chat.db"\n')
    write(clone / "chat.db", "theirs")
    if trusted:
        write(clone / "dragoman.toml", 'model = "a/b"\n')
        trust(clone)
    assert store_of(settings_of(clone)) == StoreFile(own.with_name("chat.db"))
    assert store_of(load(own, start=clone, environment={})) == StoreFile(own.with_name("chat.db"))
    write(clone / "dragoman.toml", 'store = "chat.db"\n')
    assert store_of(settings_of(clone)) == StoreFile(own.with_name("chat.db"))
    trust(clone)
    assert store_of(settings_of(clone)) == StoreFile(clone / "chat.db")
    write(own, 'store = "~/chat.db"\n')
    (clone / "dragoman.toml").unlink()
    assert store_of(settings_of(clone)) == StoreFile(Path.home() / "chat.db")


def test_a_named_file_can_be_a_pipe(clone: Path) -> None:
    """A user who names a file has chosen it, regardless of its type (P11)."""
    reads, writes = os.pipe()
    os.write(writes, b'model = "a/b"\n')
    os.close(writes)
    settings = load(Path(f"/dev/fd/{reads}"), environment={})
    assert settings.values["model"] == "a/b"
    catalog_of(settings)
    os.close(reads)


def test_a_folder_that_names_an_address_anew_keeps_the_key_of_the_same_address(clone: Path) -> None:
    """The key belongs to the address, and other settings of the provider do not change that (P11)."""
    catalog = load_catalog()
    same = catalog.providers["anthropic"].base_url
    file = write(clone / "dragoman.toml", f'[providers.anthropic]\nbase_url = "{same}"\ntitle = "A"\n')
    assert load_catalog(project=file).providers["anthropic"].keys == catalog.providers["anthropic"].keys
    for moved in ('base_url = "https://other.example"', 'base_url_from = "SOMETHING"'):
        write(clone / "dragoman.toml", f"[providers.anthropic]\n{moved}\n")
        assert load_catalog(project=file).providers["anthropic"].keys == ()
        assert load_catalog(file).providers["anthropic"].keys == catalog.providers["anthropic"].keys


def test_an_answer_is_for_the_same_files_at_the_same_place(clone: Path) -> None:
    """P11: a copy is another folder, a link to it is the same one."""
    write(clone / "dragoman.toml", 'model = "a/b"\n')
    trust(clone)
    other = clone.with_name("other")
    write(other / "dragoman.toml", 'model = "a/b"\n')
    assert settings_of(other).sources.project is None
    (clone.parent / "link").symlink_to(clone)
    assert settings_of(clone.parent / "link").sources.project == clone / "dragoman.toml"


def test_a_named_file_is_followed_but_what_others_can_write_beside_it_is_not(clone: Path) -> None:
    """P11"""
    file = write(clone / "mine.toml", 'model = "a/b"\n')
    write(clone / "tools" / "x.py", "raise SystemExit\n")
    assert load(file, environment={}).sources.folders == {clone}
    (clone / "tools").chmod(0o777)
    settings = load(file, environment={})
    assert settings.values["model"] == "a/b"
    assert settings.sources.folders == set()
    assert [left.contents.folder for left in settings.sources.left_out] == [clone]
    assert build_runtime(settings, model=ScriptedModel([]), store=clone / "x.db").warnings == []


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="there is no such file here")
def test_files_without_end_are_not_waited_for(clone: Path) -> None:
    """P11"""
    write(clone / "dragoman.toml")
    (clone / "tools").symlink_to("/proc")
    assert inspect_project(clone).unsafe is not None


def test_a_pipe_is_no_file_that_could_act(clone: Path) -> None:
    """P11"""
    write(clone / "dragoman.toml")
    (clone / "tools").mkdir()
    os.mkfifo(clone / "tools" / "x.py")
    assert list(inspect_project(clone).files) == ["dragoman.toml"]


def test_who_turns_down_a_folder_is_not_asked_about_parts_of_it(clone: Path) -> None:
    """The user sees one request. Another user's folder above cannot suppress the request about the user's own
    folder (P11)."""
    write(clone / "dragoman.toml")
    write_skill(clone / "skills", "a", "x")
    write_skill(clone / "deep" / "skills", "a", "x")
    asked: list[Path] = []

    def no(contents: FolderContents) -> bool:
        asked.append(contents.folder)
        return False

    for start in (clone, clone / "deep"):
        load(start=start, environment={}, decide=no)
    assert asked == [clone, clone]
    clone.chmod(0o1777)
    settings = load(start=clone / "deep", environment={}, decide=no)
    assert asked == [clone, clone, clone / "deep"]
    assert len(settings.sources.left_out) == 2


def test_where_attachments_would_go_and_what_would_be_deleted_is_told(clone: Path) -> None:
    """P1, N1: both are about the person's own conversations."""
    write(clone / "dragoman.toml", 'blobs = "s3://theirs/x"\n[retention]\nconversations = "1 hour"\n')
    assert summarise(inspect_project(clone)) == [
        "sends attachments to s3://theirs/x",
        "deletes conversations that nobody touched for 1 hour, in whichever store is used here",
    ]


async def test_a_program_is_told_why_a_provider_of_its_folder_is_not_there(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file already contains the provider, and a program has no user to ask for trust (P11 × R9)."""
    write(clone / "dragoman.toml", '[providers.acme]\nbase_url = "http://127.0.0.1:9/v1"\n')
    monkeypatch.chdir(clone)
    async with Runtime(clone / "chat.db", model="openai/gpt-5.4") as runtime:
        with pytest.raises(NotFound, match=r"dragoman\.toml is not used, since its folder is not trusted"):
            await runtime.send("Hi", model="acme/x")
    trust(clone)
    Runtime(clone / "chat.db", model="acme/x")
    monkeypatch.chdir(clone.parent)
    async with Runtime(clone / "chat.db", model="openai/gpt-5.4") as runtime:
        with pytest.raises(NotFound, match=r"Add your own to dragoman\.toml"):
            await runtime.send("Hi", model="acme/x")
