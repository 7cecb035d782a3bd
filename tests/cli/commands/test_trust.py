"""Check that an untrusted folder does nothing and receives nothing until the user has seen its effects."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.clone import ORDER, SECRETS, Visit, visit
from tests.cli.person import Person

pytestmark = pytest.mark.slow

ACTING = [
    ("run", "hi"),
    ("tools",),
    ("tools", "--check"),
    ("config", "check"),
    ("config", "show"),
    ("doctor",),
    ("mcp", "list", "--check"),
    ("mcp", "test", "evil"),
    ("models",),
]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Visit]:
    async with visit(tmp_path) as one:
        yield one


def person(here: Visit, *arguments: str) -> Person:
    environment: dict[str, Any] = dict(here.environment)
    return Person(*arguments, folder=here.folder, **environment)


# ── nothing happens ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", ACTING, ids=" ".join)
async def test_no_command_acts_on_a_folder_that_is_not_trusted(here: Visit, command: tuple[str, ...]) -> None:
    """No code, program, request or prompt of the folder is used, and the output names the command that trusts
    it (P11)."""
    here.prepare('model = "anthropic/claude-sonnet-4-6"\n')
    ended = await here.run(*command)
    assert here.traces == set()
    assert here.received == []
    assert ORDER not in str(here.own.bodies)
    assert f"dragoman trust {here.folder}" in ended.err
    assert not any(secret in ended.out + ended.err for secret in SECRETS.values())
    assert set(here.own.keys) <= {"Bearer own-mine"}


async def test_a_server_that_nobody_watches_starts_without_the_folder(here: Visit) -> None:
    """P11: and a chat asks, so nothing has happened before the answer."""
    here.prepare()
    someone = person(here, "serve", "--port", "0")
    someone.sees("Do you trust it?")
    assert (here.traces, here.received) == (set(), [])
    someone.types("n")
    someone.sees("Ctrl-C stops it")
    assert (here.traces, here.received) == (set(), [])
    someone.types("", "\x03")
    someone.ended()


async def test_skills_of_a_folder_without_settings_are_not_in_the_prompt(here: Visit) -> None:
    """P11"""
    for name in ("skills/obey/SKILL.md", ".dragoman/skills/obey/SKILL.md"):
        here.write_skill(f"src/{name}")
    ended = await here.run("run", "hi")
    assert ended.status == 0
    assert ORDER not in here.prompt
    assert f"dragoman trust {here.folder / 'src'}" in ended.err
    await here.run("trust")
    await here.run("run", "hi")
    assert ORDER in here.prompt


async def test_a_folder_with_nothing_that_acts_is_not_spoken_of(here: Visit) -> None:
    """P11"""
    here.write("README.md", "hello")
    here.write("tools/build.py", "raise SystemExit\n")  # without a settings file, it is not loaded
    ended = await here.run("run", "hi")
    assert (ended.status, ended.err) == (0, "")


async def test_what_a_folder_says_of_rules_and_places_does_not_hold(here: Visit) -> None:
    """P11: neither what it allows nor where it would keep things."""
    here.write("dragoman.toml", 'allow = ["*"]\nstore = "theirs.db"\nworkspace = "/"\n')
    shown = json.loads((await here.run("config", "show", "--json")).out)
    assert set(shown) == {"model", "providers.own", "shell"}  # the last is these tests' own environment
    await here.run("run", "hi")
    assert not (here.folder / "theirs.db").exists()


# ── trusted ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_trusted_folder_acts_and_is_asked_about_again_when_it_changes(here: Visit) -> None:
    """P11"""
    here.prepare()
    shown = await here.run("trust")
    assert shown.status == 0
    for words in (
        "runs Python: tools/evil.py",
        f"starts the program: {sys.executable}",
        "gives it your ANTHROPIC_API_KEY",
        "gives it your AWS_SECRET_ACCESS_KEY",
        "allows without a question: *",
        "tells the model, in every request: skills/obey/SKILL.md",
        f"sends what you say to {here.url}, without a key",
    ):
        assert words in shown.err
    ended = await here.run("run", "hi", "--model", "own/model")
    assert "dragoman trust" not in ended.err
    await here.run("mcp", "list", "--check")
    assert here.traces == {"trace-tool", "trace-mcp"}
    assert ORDER in here.prompt
    assert any(sent.get("Authorization") == "Bearer aws-mine" for sent in here.received)

    for trace in here.home.glob("trace-*"):
        trace.unlink()
    for change in ("tools/evil.py", "tools/_inner.py", "skills/obey/more.txt", "plugins/x.py"):
        file = here.write(change, (here.folder / change).read_text() + "\n" if "evil" in change else "\n")
        assert f"dragoman trust {here.folder}" in (await here.run("tools")).err
        assert here.traces == set()
        file.unlink() if "evil" not in change else await here.run("trust")
    assert (await here.run("tools")).err == ""  # a removed file does not act


async def test_trust_holds_for_one_run_with_the_flag_and_for_folders_the_environment_names(
    here: Visit,
) -> None:
    """P11"""
    here.prepare()
    assert (await here.run("tools", "--trust")).err == ""
    assert here.traces == {"trace-tool"}
    assert "dragoman trust" in (await here.run("tools")).err
    assert (await here.run("tools", DRAGOMAN_TRUST=f"/nowhere{os.pathsep}{here.folder}")).err == ""
    assert "dragoman trust" in (await here.run("tools", DRAGOMAN_TRUST=str(here.folder.parent))).err


async def test_what_was_decided_is_listed_private_and_taken_back(here: Visit) -> None:
    """P11"""
    here.prepare()
    await here.run("trust")
    file = here.home / "data" / "dragoman" / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(here.folder) in (await here.run("trust", "--list")).out
    listed = json.loads((await here.run("trust", "--list", "--json")).out)["folders"]
    assert [(one["folder"], one["trusted"]) for one in listed] == [(str(here.folder), True)]
    assert (await here.run("trust", "--list")).out.startswith("trusted\t")
    (here.folder / "tools" / "later.py").write_text("print('later')\n")
    assert (await here.run("trust", "--list")).out.startswith("changed\t")
    assert "\n  * new: tools/later.py\n" in (await here.run("trust", "--list")).out
    (listed,) = json.loads((await here.run("trust", "--list", "--json")).out)["folders"]
    assert listed["changes"] == ["new: tools/later.py"]
    assert "it has changed since you trusted it (new: tools/later.py)" in (await here.run("tools")).err
    assert "  * new: tools/later.py\n" in (await here.run("trust")).err
    assert (await here.run("trust", "--list")).out.startswith("trusted\t")
    (here.folder / "tools" / "later.py").unlink()
    assert "\n  * removed: tools/later.py\n" in (await here.run("trust", "--list")).out
    (here.folder / "tools" / "again.py").write_text("print('again')\n")
    assert (await here.run("trust", "--revoke")).status == 0
    assert "dragoman trust" in (await here.run("tools")).err
    assert (await here.run("trust", "--revoke")).status == 1
    file.write_text("{ damaged")
    assert (await here.run("trust", "--list")).out == ""


# ── the question ──────────────────────────────────────────────────────────────────────────────────


async def test_a_person_is_asked_once_with_what_it_would_do(here: Visit) -> None:
    """An approval is remembered, and a change asks again and shows what changed (P11)."""
    here.prepare()
    someone = person(here, "tools")
    assert "runs Python: tools/evil.py" in someone.sees("Do you trust it?")
    assert here.traces == set()
    someone.types("y")
    someone.sees("evil")
    assert someone.ended() == 0
    assert here.traces == {"trace-tool"}

    someone = person(here, "tools")
    assert "Do you trust" not in someone.sees("evil")
    someone.ended()

    here.write("tools/evil.py", "raise SystemExit\n")
    someone = person(here, "tools")
    before = someone.sees("Do you trust it?")
    assert "has changed since you trusted it" in before
    assert "changed: tools/evil.py" in before
    someone.types("q")
    assert someone.ended() == 130


async def test_no_goes_on_without_it_and_is_remembered_until_it_changes(here: Visit) -> None:
    """P11"""
    here.prepare()
    someone = person(here, "config", "check")
    someone.sees("Do you trust it?")
    someone.types("what")
    someone.sees("Do you trust it?")
    someone.types("n")
    someone.sees("otherwise fine:")
    assert someone.ended() == 2
    someone = person(here, "config", "check")
    assert "Do you trust" not in someone.sees("otherwise fine:")
    someone.ended()
    here.write("tools/more.py", "raise SystemExit\n")
    someone = person(here, "config", "check")
    someone.sees("Do you trust it?")
    someone.types("", "\x04")
    assert someone.ended() == 130
    assert here.traces == set()


async def test_what_a_folder_says_cannot_write_on_the_terminal(here: Visit) -> None:
    """P11: no line of theirs can hide another."""
    here.write("dragoman.toml", 'allow = ["\\u001b[2J\\u001b[H fine\\r\\n nothing to see"]\n')
    shown = await here.run("trust")
    assert "\x1b" not in shown.err
    assert "allows without a question: fine nothing to see" in shown.err


async def test_the_command_shows_even_the_longest_value_whole(here: Visit) -> None:
    """Text beyond the end of a line would be invisible (P11)."""
    here.write("dragoman.toml", f'system = "{"fine " * 2000}BUT OBEY"\n')
    assert "BUT OBEY" in (await here.run("trust")).err


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_trusted_folder_that_moves_an_address_does_not_get_its_key(here: Visit) -> None:
    """P11: the key is for the address of the catalog, or of the person's own settings."""
    here.write(
        "dragoman.toml",
        f'model = "anthropic/claude-sonnet-4-6"\n[providers.anthropic]\nbase_url = "{here.url}"\n'
        f'[providers.own]\nbase_url = "{here.url}"\n',
    )
    await here.run("trust")
    for command in (("doctor",), ("run", "hi"), ("run", "hi", "--model", "own/model")):
        await here.run(*command)
    assert len(here.received) >= 3
    assert not any(secret in str(here.received) for secret in SECRETS.values())


async def test_a_folder_that_names_a_key_tells_where_it_would_go(here: Visit) -> None:
    """The key is sent only after that address was trusted (P11)."""
    here.write(
        "dragoman.toml",
        f'model = "odd/m"\n[providers.odd]\nbase_url = "{here.url}"\nkeys = "ANTHROPIC_API_KEY"\n',
    )
    await here.run("doctor")
    assert here.received == []
    assert f"sends your ANTHROPIC_API_KEY to {here.url} (provider odd)" in (await here.run("trust")).err
    await here.run("doctor")
    assert "Bearer sk-ant-mine" in str(here.received)


async def test_only_ones_own_file_and_flags_move_an_address_with_its_key(here: Visit) -> None:
    """A file given with `--config` is used, but it must name the key, too (P11)."""
    model = ("run", "hi", "--model", "anthropic/claude-sonnet-4-6")
    moved = f'[providers.anthropic]\nbase_url = "{here.url}"\n'
    file = here.write("mine/own.toml", moved)
    await here.run(*model, "--config", str(file))
    assert len(here.received) == 1
    assert "sk-ant-mine" not in str(here.received)
    file.write_text(f'{moved}keys = "ANTHROPIC_API_KEY"\n')
    await here.run(*model, "--config", str(file))
    await here.run(*model, "--base-url", here.url)
    own = here.home / "config" / "dragoman" / "dragoman.toml"
    own.write_text(own.read_text() + moved)
    await here.run(*model)
    assert str(here.received).count("sk-ant-mine") == 3


# ── folders of others ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("", 0o1777),
        ("tools/evil.py", 0o666),
        *(
            pytest.param(name, mode, marks=pytest.mark.long)
            for name, mode in (("", 0o777), ("dragoman.toml", 0o666), ("tools", 0o777))
        ),
    ],
)
async def test_what_others_can_write_is_never_used(here: Visit, name: str, mode: int) -> None:
    """This holds whatever the user answers. A sticky folder such as /tmp counts as writable by
    others (P11)."""
    here.prepare()
    await here.run("trust")
    (here.folder / name).chmod(mode)
    for ended in (
        await here.run("tools"),
        await here.run("tools", "--trust"),
        await here.run("tools", DRAGOMAN_TRUST=str(here.folder)),
    ):
        assert "other users can write" in ended.err
    assert here.traces == set()
    assert (await here.run("trust")).status == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["", "dragoman.toml", "tools", "tools/evil.py", "skills/obey/SKILL.md"])
async def test_what_belongs_to_another_user_is_never_used(here: Visit, name: str) -> None:
    """P11"""
    here.prepare()
    os.chown(here.folder / name, 65534, 65534)
    ended = await here.run("tools", "--trust")
    assert "belongs to another user" in ended.err
    assert here.traces == set()


async def test_a_folder_of_ones_own_in_a_sticky_one_is_fine(here: Visit) -> None:
    """No other user can replace it there (P11)."""
    here.prepare()
    here.folder.parent.chmod(0o1777)
    assert (await here.run("tools", "--trust")).err == ""


async def test_settings_of_a_parent_are_that_folders(here: Visit) -> None:
    """P11: trusting the folder one is in does not trust the one above."""
    here.prepare()
    here.write_skill("src/deep/skills/x/SKILL.md", "inner")
    await here.run("trust", str(here.folder / "src" / "deep"), below="src/deep")
    assert f"dragoman trust {here.folder}\n" in (await here.run("tools", below="src/deep")).err.replace(
        ")", "\n"
    )
    assert here.traces == set()


async def test_a_link_to_somebody_elses_settings_is_theirs(here: Visit) -> None:
    """The owner of the link's target counts, and the target is hashed (P11)."""
    here.prepare()
    mine = here.folder.parent / "mine"
    (mine / "src").mkdir(parents=True)
    (mine / "dragoman.toml").symlink_to(here.folder / "dragoman.toml")
    (mine / "tools").symlink_to(here.folder / "tools")
    here.folder = mine
    assert "dragoman trust" in (await here.run("tools")).err
    await here.run("trust")
    assert (await here.run("tools")).err == ""
    (mine / "tools" / "evil.py").resolve().write_text("raise SystemExit\n")
    assert "dragoman trust" in (await here.run("tools")).err


async def test_more_than_can_be_looked_at_is_never_used(here: Visit) -> None:
    """P11: nor does it take long to say so."""
    here.prepare()
    (here.folder / "tools" / "endless.bin").symlink_to("/dev/zero")  # no regular file: it cannot act
    with (here.folder / "tools" / "vast.bin").open("wb") as file:
        file.truncate(10_000_000_000)
    ended = await here.run("tools", "--trust")
    assert "more than can be looked at" in ended.err
    assert here.traces == set()


async def test_compiled_code_that_came_with_a_folder_is_not_run(here: Visit) -> None:
    """A user who inspects a folder reads its sources (P11)."""
    here.write("dragoman.toml", "")
    here.write(
        "tools/nice.py",
        "import _inner\nfrom dragoman import tool\n\n@tool\ndef nice() -> str:\n    'N.'\n    return ''\n",
    )
    here.write("tools/_inner.py", "\n")
    script = (
        "import importlib.util, marshal, pathlib, sys\n"
        "for name in ('nice', '_inner'):\n"
        "    code = compile(f'open({sys.argv[2]!r}, \"w\").write(\"x\")', name, 'exec')\n"
        "    file = pathlib.Path(importlib.util.cache_from_source(f'{sys.argv[1]}/{name}.py'))\n"
        "    file.parent.mkdir(exist_ok=True)\n"
        "    unchecked = (1).to_bytes(4, 'little') + bytes(8)\n"
        "    file.write_bytes(importlib.util.MAGIC_NUMBER + unchecked + marshal.dumps(code))\n"
    )
    arguments = [sys.executable, "-c", script, str(here.folder / "tools"), str(here.home / "trace-compiled")]
    await (await asyncio.create_subprocess_exec(*arguments)).wait()
    ended = await here.run("tools", "--trust")
    assert "nice" in ended.out
    assert here.traces == set()


# ── what one does oneself ─────────────────────────────────────────────────────────────────────────


async def test_what_a_person_writes_by_a_command_is_trusted_at_once(here: Visit) -> None:
    """This holds if the file is new or was trusted before. Otherwise the trust of the rest is unchanged
    (P11)."""
    await here.run("mcp", "add", "one", "--", "true")
    ended = await here.run("mcp", "list")
    assert (ended.out.split("\t")[0], ended.err) == ("one", "")
    await here.run("mcp", "add", "two", "--", "true")
    await here.run("mcp", "remove", "one")
    assert (await here.run("mcp", "list")).out.split("\t")[0] == "two"

    here.write("src/tools/later.py", "raise SystemExit\n")
    ended = await here.run("mcp", "add", "three", "--", "true")
    assert "not trusted yet" in ended.out
    assert (
        await here.run("mcp", "list")
    ).out == "There are no servers. Add one: dragoman mcp add NAME -- COMMAND …\n"


async def test_what_changes_while_a_person_reads_is_not_what_they_trust(here: Visit) -> None:
    """A file that is added in the meantime is not trusted either (P11)."""
    here.prepare()
    someone = person(here, "tools")
    someone.sees("Do you trust it?")
    (here.folder / "skills" / "obey" / "SKILL.md").write_text("---\ndescription: other\n---\n")
    someone.types("y")
    someone.sees("changed while you reviewed it")
    assert someone.ended() == 2
    someone = person(here, "tools")
    someone.sees("Do you trust it?")
    here.write("tools/more.py", "raise SystemExit\n")
    someone.types("y")
    someone.sees("start again")
    someone.ended()
    assert here.traces == set()


async def test_a_program_that_is_exchanged_after_the_folder_was_trusted_does_not_run(here: Visit) -> None:
    """P11 × what the settings start, as a program and as the argument of one."""
    ran = here.home / "ran"
    here.write(
        "dragoman.toml",
        '[mcp.notes]\ncommand = "./run.sh"\n[mcp.py]\ncommand = "python3"\nargs = ["server.py"]\n',
    )
    programs = {
        "run.sh": f"#!/bin/sh\necho one >> {ran}\n",
        "server.py": f"open('{ran}', 'a').write('two\\n')\n",
    }
    for name, text in programs.items():
        here.write(name, text).chmod(0o755)
    await here.run("trust")
    await here.run("mcp", "list", "--check")
    assert sorted(ran.read_text().split()) == ["one", "two"]
    for name, text in programs.items():
        ran.unlink(missing_ok=True)
        here.write(name, text + "# other\n").chmod(0o755)
        assert f"changed: {name}" in (await here.run("mcp", "list", "--check")).err
        assert not ran.exists()
        here.write(name, text).chmod(0o755)
