"""Check `dragoman mcp`: it adds, lists, tests and removes servers, and keeps the rest of the file."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from pathlib import Path

import pytest
from mcp.shared.auth import OAuthToken
from typer.testing import Result

from dragoman.errors import ConfigError
from dragoman.stored_keys import keys
from dragoman.tools.mcp.login import TokenStore
from dragoman.tools.mcp.secrets import secret_name
from dragoman.wire.scripted import says
from tests.cli.program import invoke, program, started
from tests.loopback import loopback
from tests.patience import PATIENCE
from tests.tools.mcp.servers import RAW

MINE = '# what I think of it\n[providers.mine]\nbase_url="http://127.0.0.1:1/v1"   # odd  spacing\n'


@pytest.fixture(autouse=True)
def nobody_elses_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DRAGOMAN_TRUST", str(tmp_path))


def mcp(*arguments: str) -> Result:
    return invoke("mcp", *arguments)


def refused(*arguments: str) -> str:
    result = mcp(*arguments)
    assert isinstance(result.exception, ConfigError), result.output
    return str(result.exception)


def test_a_command_is_written_as_it_was_given(tmp_path: Path) -> None:
    mcp("add", "notes", "--env", "TOKEN", "--env", "A=b c", "--", "npx", "-y", 'p"q', "--x")
    assert tomllib.loads((tmp_path / "dragoman.toml").read_text())["mcp"]["notes"] == {
        "command": "npx",
        "args": ["-y", 'p"q', "--x"],
        "env": {"TOKEN": "${TOKEN}", "A": "b c"},
    }


def test_an_address_is_written_with_its_headers_and_its_kind(tmp_path: Path) -> None:
    mcp("add", "far", "--url", "https://x.example/sse", "--sse", "--header", "Authorization: Bearer ${KEY}")
    assert tomllib.loads((tmp_path / "dragoman.toml").read_text())["mcp"]["far"] == {
        "url": "https://x.example/sse",
        "transport": "sse",
        "headers": {"Authorization": "Bearer ${KEY}"},
    }


def test_what_else_is_in_the_file_stays_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_bytes(MINE.replace("\n", "\r\n").encode())
    mcp("add", "one", "--", "a")
    mcp("add", "two", "--url", "http://127.0.0.1:1/mcp")
    with file.open("a") as more:
        more.write("\n[mcp.two.headers]\nX = '1'\n[last]\nrows = [\n  [1, 2],\n  [3],\n]\n")
    mcp("remove", "two")
    mcp("remove", "one")
    assert (
        file.read_bytes().decode() == MINE.replace("\n", "\r\n") + "[last]\nrows = [\n  [1, 2],\n  [3],\n]\n"
    )


def test_the_nearest_file_upwards_is_the_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dragoman.toml").write_text(MINE)
    (tmp_path / "inner" / "folder").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inner" / "folder")
    mcp("add", "one", "--", "a")
    assert (tmp_path / "dragoman.toml").read_text().startswith(MINE + "\n[mcp.one]\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "x"], "either a command or a url"),
        (["add", "x", "--url", "http://a", "--", "b"], "either a command or a url"),
        (["add", "a b", "--", "b"], "letters, digits"),
        (["add", "x", "--env", "API_KEY=abc", "--", "b"], "API_KEY looks like a secret"),
        (["add", "x", "--url", "http://a", "--header", "Cookie: abc"], "Cookie looks like a secret"),
        (["add", "files", "--", "b"], "'files' is the name of a built-in tool group"),
        (["remove", "x"], "Unknown server 'x' in "),
        (["test", "x"], "Unknown server 'x'. No servers are set up."),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(arguments: list[str], words: str) -> None:
    assert words in refused(*arguments)


def test_a_name_is_given_once(tmp_path: Path) -> None:
    mcp("add", "x", "--", "a")
    assert "dragoman mcp remove x" in refused("add", "x", "--", "b")


def test_a_file_that_cannot_be_changed_safely_is_left_alone(tmp_path: Path) -> None:
    text = 'mcp = { x = { command = "a" } }\n'
    (tmp_path / "dragoman.toml").write_text(text)
    assert "by hand" in refused("remove", "x")
    assert (tmp_path / "dragoman.toml").read_text() == text


def test_a_table_that_makes_no_server_can_be_taken_out(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text("[mcp.x]\ncomand = 'a'\n")
    assert mcp("remove", "x").exit_code == 0
    assert (tmp_path / "dragoman.toml").read_text() == ""


def test_the_list_tells_how_each_is_reached(tmp_path: Path) -> None:
    assert "There are no servers" in mcp("list").output
    mcp("add", "one", "--", "npx", "thing")
    mcp("add", "two", "--url", "http://127.0.0.1:1/mcp")
    assert mcp("list").output.splitlines() == [
        f"one\tstdio\tnpx thing\t\t{tmp_path / 'dragoman.toml'}",
        f"two\thttp\thttp://127.0.0.1:1/mcp\t\t{tmp_path / 'dragoman.toml'}",
    ]
    listed = json.loads(mcp("list", "--json").output)["servers"]
    assert listed[1] == {
        "name": "two",
        "kind": "http",
        "where": "http://127.0.0.1:1/mcp",
        "file": str(tmp_path / "dragoman.toml"),
        "enabled": True,
    }


def test_a_file_that_other_programs_write_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"one": {"command": "npx", "args": ["thing"]}}}')
    assert mcp("list", "--config", "mcp.json").output == "one\tstdio\tnpx thing\t\tmcp.json\n"


def test_servers_of_every_file_that_holds_here_are_listed(tmp_path: Path) -> None:
    (tmp_path / "config" / "dragoman").mkdir(parents=True)
    (tmp_path / "config" / "dragoman" / "dragoman.toml").write_text("[mcp.mine]\ncommand = 'a'\n")
    (tmp_path / "theirs.json").write_text('{"mcpServers": {"other": {"command": "b"}}}')
    (tmp_path / "dragoman.toml").write_text("mcp_file = 'theirs.json'\n[mcp.here]\ncommand = 'c'\n")
    listed = [(line.split("\t")[0], line.split("\t")[-1]) for line in mcp("list").output.splitlines()]
    assert listed == [
        ("other", str(tmp_path / "theirs.json")),
        ("mine", str(tmp_path / "config" / "dragoman" / "dragoman.toml")),
        ("here", str(tmp_path / "dragoman.toml")),
    ]
    assert "Remove it there" in refused("remove", "other")


def test_a_server_is_taken_out_of_the_file_that_it_stands_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web UI adds servers to the user's own file. If both files have the server, the effective entry is
    removed."""
    own, here = tmp_path / "config" / "dragoman" / "dragoman.toml", tmp_path / "dragoman.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[mcp.mine]\ncommand = 'a'\n[mcp.both]\ncommand = 'a'\n")
    assert str(own) in mcp("remove", "mine").output
    here.write_text("[mcp.both]\ncommand = 'c'\n")
    said = mcp("remove", "both").output
    assert said.startswith(f"Removed both from {here}.\n{own} also has a server 'both'")
    assert own.read_text() == "[mcp.both]\ncommand = 'a'\n"
    here.write_text("[mcp.both]\ncommand = 'c'\n")
    monkeypatch.delenv("DRAGOMAN_TRUST")  # then the folder's counts for nothing
    assert mcp("remove", "both").output.startswith(f"Removed both from {own}.")
    assert here.read_text() == "[mcp.both]\ncommand = 'c'\n"


def test_what_the_page_stored_for_a_server_goes_with_it(tmp_path: Path) -> None:
    name = secret_name("mine", "TOKEN")
    keys().store(name, "s3cret")
    keys().store("OTHER", "kept")
    mcp("add", "mine", "--env", f"TOKEN=${{{name}}}", "--env", "X=${OTHER}", "--", "a")
    assert mcp("remove", "mine").exit_code == 0
    assert (keys().in_file(name), keys().in_file("OTHER")) == (None, "kept")


def test_each_command_has_an_example() -> None:
    for command in ("add", "list", "test", "remove"):
        assert f"Example: dragoman mcp {command}" in mcp(command, "--help").output


@pytest.mark.slow
async def test_the_check_tells_which_are_there(tmp_path: Path) -> None:
    await program("mcp", "add", "good", "--", sys.executable, RAW, folder=tmp_path)
    ends = (sys.executable, "-c", "raise SystemExit('no key')")
    await program("mcp", "add", "bad", "--", *ends, folder=tmp_path)
    async with asyncio.timeout(PATIENCE):
        states = {"starting"}
        while "starting" in states:  # the machine is busy: the check waits for seconds only
            ended = await program("mcp", "list", "--check", "--json", folder=tmp_path)
            good, bad = json.loads(ended.out)["servers"]
            states = {good["state"], bad["state"]}
    assert (good["state"], good["trouble"]) == ("running", None)
    assert bad["state"] == "failed"
    assert "Its last words: no key" in bad["trouble"]


@pytest.mark.slow
async def test_a_server_is_tried_out(tmp_path: Path) -> None:
    await program("mcp", "add", "raw", "--", sys.executable, RAW, folder=tmp_path)
    ended = await program("mcp", "test", "raw", folder=tmp_path)
    assert ended.status == 0
    assert ended.out.startswith("raw 1.0, protocol 2025-11-25, there after")
    assert "raw_echo  Say it again" in ended.out
    assert "The server says that it only reads." in ended.out
    report = json.loads((await program("mcp", "test", "raw", "--json", folder=tmp_path)).out)
    assert report["tools"][0]["permission"] == "mcp.raw.echo"


@pytest.mark.slow
async def test_one_message_waits_for_a_server_that_is_slow_to_start(tmp_path: Path) -> None:
    """There may be no other request in which its tools would be."""
    gate = tmp_path / "open"
    late = f"""\
import pathlib, runpy, time
while not pathlib.Path({str(gate)!r}).exists():
    time.sleep(0.01)
runpy.run_path({RAW!r}, run_name="__main__")
"""
    await program("mcp", "add", "raw", "--", sys.executable, "-c", late, folder=tmp_path)
    async with loopback(says("hello")) as server, asyncio.timeout(PATIENCE):
        at = ("--model", "mine/m", "--base-url", server.url, "--api-key", "k")
        process = await started("run", "Hi", *at, folder=tmp_path)
        assert process.stderr is not None
        assert await process.stderr.readline() == b"\xc2\xb7 waiting for raw to start\n"
        assert server.bodies == []
        gate.touch()
        out, _ = await process.communicate()
    assert out == b"hello\n"
    assert [tool["function"]["name"] for tool in server.bodies[0]["tools"]].count("raw_echo") == 1


@pytest.mark.slow
async def test_a_server_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    await program("mcp", "add", "gone", "--", "no-such-program-anywhere", folder=tmp_path)
    ended = await program("mcp", "test", "gone", folder=tmp_path)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == (
        "dragoman: the server gone is not there: Dragoman cannot start it: "
        "program 'no-such-program-anywhere' not found\n"
    )


def test_a_login_stays_where_another_server_has_the_same_address(tmp_path: Path) -> None:
    """It is the address that one signed in to."""
    for name in ("one", "two"):
        with (tmp_path / "dragoman.toml").open("a") as file:
            file.write(f'[mcp.{name}]\nurl = "https://tools.example/mcp"\nauth = "oauth"\n')
    tokens = TokenStore("https://tools.example/mcp")
    tokens.save(tokens=OAuthToken(access_token="t"))
    mcp("remove", "one")
    assert tokens.login().tokens is not None
    mcp("remove", "two")
    assert tokens.login().tokens is None
