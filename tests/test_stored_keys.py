"""Check where keys are stored: in the keyring, or in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider
from dragoman.providers.sign_in import Keys
from dragoman.stored_keys import keys, keys_file, next_place
from dragoman.tools.mcp.secrets import look_up

ACME = Provider("acme", keys=("ACME_KEY",))


class Keyring(ModuleType):
    """A stand-in for the `keyring` package."""

    priority = 5

    def __init__(self) -> None:
        super().__init__("keyring")
        self.held: dict[tuple[str, str], str] = {}

    def get_keyring(self) -> Keyring:
        return self

    def get_password(self, service: str, name: str) -> str | None:
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.held[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.held[service, name]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.delenv("ACME_KEY", raising=False)


def test_without_a_keyring_a_private_file_holds_keys() -> None:
    """Only the owner can read it, and a lookup by name finds its keys (S6)."""
    assert next_place() == "file"
    assert keys().store("ACME_KEY", "secret") == "file"
    assert stat.S_IMODE(keys_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(keys_file().parent.stat().st_mode) == 0o700
    for known in (Keys(environment={}), Keys(environment={}).at_hand()):
        found = known.find(ACME)
        assert found is not None
        assert (found.value, found.source) == ("secret", "file")
    assert Keys(environment={}, use_keyring=False).find(ACME) is None
    assert look_up("ACME_KEY") == "secret"
    keys().forget("ACME_KEY")
    assert Keys(environment={}).find(ACME) is None


def test_a_keyring_that_comes_later_takes_the_key_out_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pair of two places: a key is in one of them, and forgotten in both."""
    keys().store("ACME_KEY", "old")
    keyring = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert next_place() == "keyring"
    assert keys().store("ACME_KEY", "new") == "keyring"
    assert json.loads(keys_file().read_text()) == {}
    found = Keys(environment={}).find(ACME)
    assert found is not None
    assert (found.value, found.source) == ("new", "keyring")
    keys().forget("ACME_KEY")
    assert keyring.held == {}


@pytest.mark.parametrize("written", ["", '{"ACME_KEY": 5}'])
def test_a_file_that_holds_no_key_gets_one(written: str) -> None:
    keys().store("OTHER", "x")
    keys_file().write_text(written)
    assert Keys(environment={}).find(ACME) is None
    keys().store("ACME_KEY", "secret")
    assert Keys(environment={}).find(ACME) is not None


@pytest.mark.parametrize("written", ["[]", '{"OTHER": "x",', "\xff"])
def test_a_file_that_cannot_be_read_is_left_as_it_is(written: str) -> None:
    """A new file would replace all keys in it (U1)."""
    keys().store("OTHER", "x")
    keys_file().write_bytes(written.encode("latin-1"))
    assert Keys(environment={}).find(ACME) is None
    with pytest.raises(ConfigError, match="left it unchanged"):
        keys().store("ACME_KEY", "secret")
    assert keys_file().read_bytes() == written.encode("latin-1")


@pytest.mark.skipif(sys.platform == "darwin", reason="there its keychain is looked for")
def test_no_program_is_started_to_look_for_a_keyring(tmp_path: Path) -> None:
    """Every command that needs a key would wait for a compiler and a linker, three times."""
    script = """
        import sys
        started = []
        sys.addaudithook(lambda event, args: event == "subprocess.Popen" and started.append(args[1]))
        from dragoman.stored_keys import keys
        keys().in_keyring("NO_SUCH_KEY")
        assert not started, started
    """
    home = {**os.environ, "HOME": str(tmp_path)}
    assert (
        subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=home, check=False).returncode == 0
    )
