"""Servers as files describe them: tables of ours, and the JSON that other programs write."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.tools.mcp.secrets import looks_secret, resolve_references
from dragoman.tools.mcp.servers import McpServer, local_name, offered_name, read_json, read_servers
from dragoman.tools.mcp.source import sources_of


def table(text: str) -> dict[str, McpServer]:
    tables = tomllib.loads(text)["mcp"]
    return read_servers(tables, origins={f"mcp.{name}": "dragoman.toml:1" for name in tables})


def test_a_table_says_what_is_started_or_asked() -> None:
    read = table(
        """
        [mcp.files]
        command = "npx"
        args = ["-y", "thing"]
        env = { TOKEN = "${TOKEN}" }
        timeout = 5
        [mcp.far]
        url = "https://x.example/mcp"
        auth = "oauth"
        enabled = false
        """,
    )
    assert read["files"] == McpServer(
        command="npx", args=("-y", "thing"), env={"TOKEN": "${TOKEN}"}, timeout=5.0
    )
    assert (read["files"].kind, read["far"].kind) == ("stdio", "http")
    assert [one.where for one in read.values()] == ["npx -y thing", "https://x.example/mcp"]
    assert [source.name for source in sources_of(read)] == ["files"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mcp.a]", "mcp.a: a server needs either a command or a url"),
        ("[mcp.a]\ncomand = 'x'", "mcp.a.comand: unknown key"),
        ("[mcp.a]\ncommand = 'x'\ntimeout = 0", "mcp.a.timeout: input should be greater than 0"),
        ("[mcp.a]\ncommand = 'x'\nenabled = 'no'", "mcp.a.enabled: input should be a valid boolean"),
        ("[mcp.a]\ncommand = 'x'\nheaders = {A = 'b'}", "headers and auth need a url"),
        ("[mcp.a]\nurl = 'https://x.test'\nargs = ['b']", "args, env and cwd need a command"),
        ("[mcp.a]\nurl = 'https://x.test'\ntransport = 'stdio'", "a url needs http or sse"),
        ("[mcp.a]\ncommand = 'x'\ntransport = 'sse'", "a command needs stdio"),
        ("[mcp.a]\ncommand = ' '", "the command is empty"),
        ("[mcp.a]\nurl = 'https://x.test'\ncage = true", "a cage needs a command"),
        ("[mcp.a]\nurl = 'https://x.test'\nhosts = ['h:1']", "a cage needs a command"),
        ("[mcp.a]\nurl = 'x.example'", "an address begins with http:// or https://"),
        ("[mcp.a]\nurl = 'https://x'\ntransport = 'stdio'", "a url needs http or sse"),
        ("[mcp.a]\nurl = 'https://x'\nclient_id='i'\nclient_secret = 'abc'", "never the secret itself"),
        ("[mcp.'a.b']\ncommand = 'x'", "a server's name is 1 to 40 letters"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        table(text)
    assert str(caught.value).startswith("dragoman.toml:1: mcp.a")
    assert said in str(caught.value)


def read(tmp_path: Path, servers: Any) -> dict[str, McpServer]:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(servers))
    return read_json(file)


def test_files_of_other_programs_are_read_and_their_other_business_left_to_them(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "theme": "dark",
            "mcpServers": {
                "files": {"command": "npx", "args": ["x"], "alwaysAllow": ["read"], "env": None},
                "Brave Search": {"url": "https://x.example/sse", "type": "sse", "headers": {"A": "b"}},
                "other": {"type": "streamable-http", "url": "https://x.example/mcp", "disabled": True},
                "n" * 41: {"command": "npx"},
                "older": {"httpUrl": "https://x.example/mcp", "timeout": 60000},
            },
        },
    )
    assert found["files"] == McpServer(command="npx", args=("x",))
    assert found["Brave-Search"] == McpServer(
        url="https://x.example/sse", transport="sse", headers={"A": "b"}
    )
    assert (found["other"].kind, found["other"].enabled) == ("http", False)
    assert found["n" * 40] == McpServer(command="npx")
    assert found["older"].url == "https://x.example/mcp"


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ([], "has no object named mcpServers"),
        ({"mcpServers": {"a": 5}}, "mcpServers.a: a server must be an object"),
        ({"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}, "reads the same (a-b)"),
        ({"mcpServers": {"a": {"args": ["x"]}}}, "mcpServers.a: a server needs either a command or a url"),
    ],
)
def test_a_file_of_another_program_that_makes_no_sense_is_told(
    tmp_path: Path, servers: Any, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, servers)
    assert said in str(caught.value)


def test_a_file_that_is_not_trusted_or_not_there_has_no_servers(tmp_path: Path) -> None:
    """P11"""
    file = tmp_path / "mcp.json"
    with pytest.raises(ConfigError, match=r"Dragoman cannot read .*mcp.json: No such file"):
        read_json(file)
    file.write_text('{"mcpServers": {"a": {"command": "x"}}')
    with pytest.raises(ConfigError, match=r"mcp.json is not valid JSON"):
        read_json(file)
    checked: list[tuple[Path, bytes]] = []
    file.write_text("{}")
    assert read_json(file, lambda *given: checked.append(given)) == {}
    assert checked == [(file, b"{}")]


def test_references_are_followed_and_a_missing_one_is_named() -> None:
    known = {"KEY": "abc"}.get
    texts = {"a": "Bearer ${KEY}", "b": "${env:KEY}", "c": "${OTHER:-low}", "d": "$KEY {KEY}"}
    assert resolve_references(texts, known) == {"a": "Bearer abc", "b": "abc", "c": "low", "d": "$KEY {KEY}"}
    with pytest.raises(ConfigError, match="OTHER is missing"):
        resolve_references({"a": "${OTHER}"}, known)


def test_what_looks_like_a_secret_is_seen() -> None:
    assert looks_secret("GITHUB_TOKEN", "ghp_abc")
    assert looks_secret("Authorization", "Bearer abc")
    assert not looks_secret("GITHUB_TOKEN", "${GITHUB_TOKEN}")
    assert not looks_secret("LOG_LEVEL", "debug")


def test_servers_without_the_extra_say_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"dragoman\[mcp\]"):
        sources_of({"files": McpServer(command="x")})


def test_servers_whose_tools_would_be_named_alike_are_refused() -> None:
    server = McpServer(command="x")
    with pytest.raises(ConfigError, match=r"the same names as those of mcp\.Files"):
        sources_of({"Files": server, "files": server})


def test_a_name_depends_on_nothing_but_itself() -> None:
    assert offered_name("files", "read_file") == "files_read_file"
    assert local_name("a b") != local_name("a.b") != "a_b"
    assert local_name("a b").startswith("a_b_")
    longest = offered_name("s" * 40, "t" * 62)
    assert len(longest) == 64
    assert longest != offered_name("s" * 40, "t" * 61 + "u")
    assert len(local_name("")) > 0
    assert local_name("t" * 62) == "t" * 62
    assert (local_name("t" * 63)[:56], len(local_name("t" * 63))) == ("t" * 55 + "_", 62)
