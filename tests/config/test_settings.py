"""Check settings from files, environment and flags, in this order, and that errors name their line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.config.build import find_errors, store_of
from dragoman.config.settings import Settings, find_files, line_of, load, schema
from dragoman.config.tables import parse_duration
from dragoman.errors import ConfigError
from dragoman.providers.catalog import load_catalog
from dragoman.store.address import StoreServer


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "dragoman.toml"
    file.write_text(text, "utf-8")
    return file


def read(folder: Path, text: str, **more: object) -> Settings:
    return load(write(folder, text), environment={}, **more)  # type: ignore[arg-type]


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    """R1: and each value knows where it is from."""
    file = write(tmp_path, 'model = "a/file"\nmode = "ask"\n[server]\nport = 1\nhost = "::1"\n')
    environment = {
        "DRAGOMAN_MODEL": "b/env",
        "DRAGOMAN_SERVER_PORT": "2",
        "DRAGOMAN_MODE": "off",
        "DRAGOMAN_X": "y",
    }
    settings = load(file, environment=environment, flags={"model": "c/flag", "server.open": None})
    assert settings.values == {"model": "c/flag", "mode": "off", "server": {"port": 2, "host": "::1"}}
    assert settings.origins == {
        "model": "--model",
        "mode": "DRAGOMAN_MODE",
        "server.port": "DRAGOMAN_SERVER_PORT",
        "server.host": f"{file}:5",
    }


def test_the_nearest_file_upwards_goes_before_the_persons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    own = write(tmp_path / "home" / "dragoman", 'model = "own/one"\nmode = "ask"\n[mcp.a]\ncommand = "a"\n')
    near = write(tmp_path / "work", 'model = "near/one"\n[mcp.b]\ncommand = "b"\n')
    (tmp_path / "work" / "deep" / "er").mkdir(parents=True)
    start = tmp_path / "work" / "deep" / "er"
    assert find_files(start) == [own, near]
    # the other folder is not trusted yet
    assert load(start=start, environment={}).values["model"] == "own/one"
    settings = load(start=start, environment={"DRAGOMAN_TRUST": str(near.parent)})
    assert (settings.values["model"], settings.values["mode"]) == ("near/one", "ask")
    assert list(settings.values["mcp"]) == ["a", "b"]
    assert settings.folder == near.parent


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modle = "x"', "line 1: modle: unknown setting. Did you mean mode or model?"),
        ("\nmodel = 5", "line 2: model: it should be a valid string"),
        ("[server]\n\nprot = 1", "line 3: server.prot: unknown setting. Did you mean port"),
        (
            '[agents.a]\ndescripton = "x"',
            "line 2: agents.a.descripton: unknown setting. Did you mean description",
        ),
        ("[limits]\nmax_rounds = -1", "line 2: limits.max_rounds: it should be greater than or equal to 0"),
        (
            '[mcp.a]\ncommand = "x"\nurl = "http://x"',
            "line 1: mcp.a: a server needs either a command or a url",
        ),
        ('mode = "sometimes"', "line 1: mode: it should be 'auto', 'ask', 'manual' or 'off'"),
        ("model = [", "is not valid TOML"),
        ('[providers.x]\nbase_ur = "x"', "line 2: providers.x.base_ur"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_nearest_name(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert "dragoman.toml" in str(caught.value)


def test_what_is_wrong_in_the_environment_is_said_with_its_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"DRAGOMAN_SERVER_PORT: server\.port"):
        load(write(tmp_path, ""), environment={"DRAGOMAN_SERVER_PORT": "many"})


def test_what_is_wrong_with_a_flag_is_said_with_its_name_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--max-rounds: it should be greater than or equal to 0$"):
        load(write(tmp_path, ""), environment={}, flags={"limits.max_rounds": -1})


def test_a_file_in_another_encoding_is_said_to_be_in_one(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    file.write_bytes('system = "Grüße"'.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"Byte 13 is not UTF-8"):
        load(file, environment={})


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "nowhere.toml", environment={})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(environment={"DRAGOMAN_CONFIG": str(tmp_path / "nowhere.toml")})


def test_a_secret_is_a_reference_and_never_a_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="environment variable"):
        read(tmp_path, '[server]\npassword_from = "hunter 2"')
    with pytest.raises(ConfigError, match="never the key"):
        read(tmp_path, '[providers.x]\nbase_url = "http://x"\nkeys = "sk-abc"')


def test_relative_paths_start_at_the_file(tmp_path: Path) -> None:
    settings = read(tmp_path / "a", 'store = "chat.db"')
    assert settings.path("chat.db") == tmp_path / "a" / "chat.db"
    assert settings.path("~/x") == Path(os.path.expanduser("~/x"))  # noqa: PTH111 - what is compared with


def test_editors_get_a_schema_with_every_table() -> None:
    described = schema()
    assert set(described["properties"]) >= {"model", "server", "agents", "mcp", "limits"}
    assert described["properties"]["model"]["description"]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2", ["b"], 2),
        ("[x]\na = 1\n[y]\na = 2", ["y", "a"], 4),
        ('[x."y z"]\na = 1', ["x", "y z", "a"], 2),
        ("x.y = 1", ["x", "y"], 1),
        ("[x]\n", ["x", "missing"], 1),
        ("a = 1", ["b"], None),
    ],
)
def test_a_key_is_found_on_its_line(text: str, path: list[str | int], line: int | None) -> None:
    assert line_of(text, path) == line


def test_a_misspelled_variable_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean DRAGOMAN_MODE or DRAGOMAN_MODEL"):
        load(write(tmp_path, ""), environment={"DRAGOMAN_MODLE": "x"})


def test_a_path_of_the_environment_starts_where_we_are(tmp_path: Path) -> None:
    settings = load(write(tmp_path, ""), environment={"DRAGOMAN_STORE": "chat.db"})
    assert settings.path(settings.values["store"]) == Path.cwd() / "chat.db"


def test_where_attachments_go_and_what_is_deleted_when(tmp_path: Path) -> None:
    """Each is one line, and an error names the line without its secrets (N1)."""
    settings = load(
        write(tmp_path, 'store = "postgresql://host/x"\nblobs = "s3://bucket/chat"\nmigrate = false\n'),
        environment={"DRAGOMAN_RETENTION_CONVERSATIONS": "90 days"},
    )
    assert settings.values["retention"] == {"conversations": "90 days"}
    assert store_of(settings) == StoreServer("postgresql://host/x", blobs="s3://bucket/chat", migrates=False)
    for text, words in (
        ('blobs = "s3://key:secret@bucket"', r"line 1: blobs: .*environment"),
        ('blobs = "bucket"', "line 1: blobs: Invalid place for attachments 'bucket'"),
        (
            '[retention]\nconversations = "3 months"',
            "line 2: retention.conversations: write a number and hours",
        ),
        ('migrate = "no"', "line 1: migrate"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            read(tmp_path, text)
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"dragoman.toml:1: blobs: an SQLite file holds no attachments"):
        store_of(read(tmp_path, 'blobs = "database"'))
    (error,) = find_errors(read(tmp_path, 'blobs = "database"'))
    assert "an SQLite file" in error


@pytest.mark.parametrize(
    ("text", "hours"), [("1h", 1), ("36 hours", 36), ("90 days", 2160), ("2W", 336), ("1 year", 8760)]
)
def test_lengths_of_time(text: str, hours: int) -> None:
    assert parse_duration(text) == hours * 3600.0


def test_what_no_reader_reaches_the_end_of_is_no_toml(tmp_path: Path) -> None:
    """This holds for settings, for the catalog from the same file, and for the environment."""
    for broken in (f"model = {'[' * 20_000}", f"max = {'9' * 10_000}"):
        file = write(tmp_path, broken)
        with pytest.raises(ConfigError, match="is not valid TOML"):
            load(file, environment={})
        with pytest.raises(ConfigError, match="is not valid TOML"):
            load_catalog(file)
    with pytest.raises(ConfigError, match="DRAGOMAN_ALLOW: allow"):
        load(write(tmp_path, ""), environment={"DRAGOMAN_ALLOW": "[" * 20_000})
