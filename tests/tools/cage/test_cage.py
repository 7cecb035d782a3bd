"""K1 to K4: what runs in the cage, which approvals it needs, what it reports, and what it leaves on disk."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from dragoman import Runtime, ToolFailed, tool
from dragoman.messages.questions import Answer, Question, Rule, allow_always, allow_once, nobody_to_ask
from dragoman.tools.authorize import Ask, Authority, Refuse, Run, authorize
from dragoman.tools.builtin import files_group, shell_group
from dragoman.tools.builtin.formatters import Formatter, with_formatters
from dragoman.tools.builtin.shell import ShellOutput, run_program, shell
from dragoman.tools.cage.bubblewrap import _group_places, limited, make_groups, remove_group
from dragoman.tools.cage.checkup import try_cage
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import (
    Cage,
    CageSettings,
    Protected,
    beyond_of,
    find_hidden,
    find_protected,
    hold_back,
    put_back,
    settle_beyond,
)
from dragoman.tools.cage.seatbelt import profile
from dragoman.tools.cage.supervise import Supervisor
from dragoman.tools.mcp.diagnostics import Diagnostics
from dragoman.tools.mcp.servers import McpServer
from dragoman.tools.mcp.source import McpSource
from dragoman.tools.mcp.stdio import open_program
from dragoman.tools.tool import ToolContext
from dragoman.wire.scripted import Script, calls, says
from tests.patience import PATIENCE, eventually
from tests.runtimes import runtime_with
from tests.server.site import served
from tests.tools.cage.test_escapes import needs_cage

FREE = CageSettings(unasked=True)
HELD = Cage(Path("/w"), FREE)


# ── who decides ───────────────────────────────────────────────────────────────────────────────────


def decided(
    cage: Cage | None = HELD, line: str = "make", beyond: list[Rule] | None = None, **more: Any
) -> Any:
    return authorize(shell, [line], Authority(cage=cage, beyond=beyond or [], **more))


def test_k3_a_caged_call_runs_unasked_and_every_other_is_asked_about() -> None:
    match decided():
        case Run(_, cage):
            assert cage == HELD
        case other:
            pytest.fail(str(other))
    for cage in (None, replace(HELD, settings=CageSettings()), replace(HELD, doubt="a link")):
        assert isinstance(decided(cage), Ask)
    assert isinstance(decided(replace(HELD, missing="not installed")), Ask)


def test_k3_rules_and_modes_speak_before_the_cage() -> None:
    """Cage × ask, deny, mode, giver: it takes none of them away."""
    assert isinstance(decided(rules=[Rule("shell", "make", "ask")]), Ask)
    assert isinstance(decided(rules=[Rule("shell", "make", "deny")]), Refuse)
    assert isinstance(decided(grants=[Rule("shell", "make", "deny")]), Refuse)
    assert isinstance(decided(outer=[[Rule("shell", "*", "ask")]]), Ask)
    assert isinstance(decided(mode="ask"), Ask)


def test_k2_without_the_cage_that_the_settings_want_nothing_runs() -> None:
    """Also if a rule allows the command."""
    wanted = replace(HELD, settings=CageSettings("always", unasked=True), missing="Install it.")
    verdict = decided(wanted, rules=[Rule("shell", "*", "allow")])
    assert isinstance(verdict, Refuse)
    assert "Install it." in verdict.text


def test_k3_what_a_call_wants_beyond_is_asked_about_with_just_that_rule() -> None:
    wanted = Rule("cage.write", "~/.cargo/*", "allow")
    asked = decided(beyond=[wanted])
    assert isinstance(asked, Ask)
    assert (asked.beyond, asked.line, asked.because) == ((wanted,), False, "rule")
    assert asked.cage is not None
    assert wanted in asked.cage.rules
    allowed = decided(beyond=[wanted], grants=[wanted])
    assert isinstance(allowed, Run)
    assert isinstance(
        decided(beyond=[wanted], rules=[Rule("*", "*", "allow")]), Ask
    )  # does not mean the cage
    assert isinstance(decided(beyond=[wanted], rules=[Rule("cage.write", "*", "deny")]), Refuse)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("cage.net", "example.org:443", "allow"), "The command asks to connect to example.org:443."),
        (Rule("cage.read", "/srv/*", "allow"), "The command asks to read /srv/*."),
    ],
)
def test_k3_what_a_call_wants_is_told_in_words(rule: Rule, text: str) -> None:
    assert text in [reason.text for reason in decided(beyond=[rule]).reasons]
    assert isinstance(decided(beyond=[rule], grants=[rule]), Run)


def test_k3_to_run_outside_is_asked_about() -> None:
    outside = Rule("cage.outside", "make", "allow")
    asked = decided(beyond=[outside])
    assert isinstance(asked, Ask)
    assert asked.cage is None
    match decided(beyond=[outside], grants=[outside]):
        case Run(_, cage):
            assert cage is None
        case other:
            pytest.fail(str(other))


@pytest.mark.parametrize("permission", ["cage.write", "cage.*"])
@pytest.mark.parametrize("action", ["ask", "deny"])
def test_k3_a_later_rule_closes_the_cage_by_any_of_its_names(permission: str, action: Any) -> None:
    """Allowed × asked about or denied below it, in one setting."""
    opening = Rule("cage.write", ".git/*", "allow")
    for closing in (Rule(permission, ".git/hooks/*", action), Rule(permission, "*", action)):
        match decided(rules=[opening, closing]):
            case Run(_, cage):
                assert cage is not None
                assert not cage.may_write(".git")
            case other:
                pytest.fail(str(other))
    everything = decided(rules=[opening, Rule("*", "*", "ask")])  # means calls, not the cage
    assert isinstance(everything, Ask)
    assert everything.cage is not None
    assert everything.cage.may_write(".git")


def test_k3_a_denial_closes_what_another_rule_opened(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    rules = (Rule("cage.write", f"{tmp_path}/a/*", "allow"),)
    assert Cage(tmp_path, rules=rules).opened("cage.write") == [tmp_path / "a"]
    closed = (*rules, Rule("cage.write", f"{tmp_path}/*", "deny"))
    assert Cage(tmp_path, rules=closed).opened("cage.write") == []
    for denied in ("a/b/*", "a/b", "a/not-there/*", "a*", "*"):  # below it, or by a pattern
        closed = (*rules, Rule("cage.write", f"{tmp_path}/{denied}", "deny"))
        assert Cage(tmp_path, rules=closed).opened("cage.write") == [], denied
    beside = (*rules, Rule("cage.write", f"{tmp_path}/other/*", "deny"))
    assert Cage(tmp_path, rules=beside).opened("cage.write") == [tmp_path / "a"]
    git = Rule("cage.write", ".git/*", "allow")
    assert Cage(tmp_path, rules=(git,)).may_write(".git")
    for denied in (".git/hooks/*", ".git/hook?", ".g*", "*"):
        assert not Cage(tmp_path, rules=(git, Rule("cage.write", denied, "deny"))).may_write(".git"), denied
    assert Cage(tmp_path, rules=(git, Rule("cage.write", ".vscode/*", "deny"))).may_write(".git")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    link = (Rule("cage.write", f"{tmp_path}/link/*", "allow"),)
    assert Cage(tmp_path, rules=link).opened("cage.write") == []


def test_p12_protected_paths_are_found_up_to_the_first_link(tmp_path: Path) -> None:
    """By the settings: links on the way could lead elsewhere later. What is missing is not protected."""
    (tmp_path / "srv/deep").mkdir(parents=True)
    (tmp_path / "srv/deep/run.py").touch()
    (tmp_path / "link").symlink_to("srv")
    names = ("srv/deep/run.py", "link/deep/run.py", "gone/run.py")
    found = find_protected(tmp_path, [Rule("files.write", one, "ask") for one in names])
    kinds = {path: kind for path, (kind, _) in found.entries.items()}
    assert (kinds, found.whole) == ({"srv/deep/run.py": "file", "link": "link"}, False)
    assert found.links == ["link"]
    assert find_protected(tmp_path, [Rule("files.write", "*", "deny")]).whole


def test_k1_what_no_tool_may_read_is_found(tmp_path: Path) -> None:
    """A name, a folder, and every name with a beginning. Not the workspace itself."""
    (tmp_path / "keys").mkdir()
    for name in ("store.db", "store.db-wal", "other"):
        (tmp_path / name).touch()
    names = ("keys/*", "store.db*", "gone", "gone/x*", "*")
    bounds = [*(Rule("files.read", one, "deny") for one in names), Rule("files.read", "other", "ask")]
    found = find_hidden(tmp_path, bounds)
    assert sorted(one.name for one in found) == ["keys", "store.db", "store.db-wal"]


def test_k1_without_a_group_a_shell_limits_the_number_of_processes(tmp_path: Path) -> None:
    (*_, name, word) = limited(["make", "all"], [tmp_path])
    assert (name, word) == ("make", "all")
    assert limited(["make", "all"], [tmp_path])[:2] == ["/bin/sh", "-c"]
    (tmp_path / "pids.max").touch()
    assert limited(["make", "all"], [tmp_path]) == ["make", "all"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is neither in a temporary folder, which every cage has its own of, nor at home."""
    cache = Path(__file__).parents[3] / ".cache"
    cache.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=cache) as folder:
        yield Path(folder)


def process(line: str, folder: Path) -> None:
    subprocess.run(line, shell=True, check=True, cwd=folder, capture_output=True)


# ── in a turn ─────────────────────────────────────────────────────────────────────────────────────


def caged(place: Path, script: Script, settings: CageSettings = FREE, **more: Any) -> Runtime:
    work = more.pop("folder", place / "work")
    work.mkdir(parents=True, exist_ok=True)
    groups = [files_group(), shell_group()]
    return runtime_with(
        place / "store", script, tools=groups, workspace=work, cage=settings, **{"allow": [], **more}
    )


async def told(runtime: Runtime, answer: Answer | None = None) -> tuple[list[str], list[Question]]:
    """Return the results of the calls of one turn, and the approval requests."""
    turn = await runtime.send("go")
    asked = []
    async for event in turn.events():
        if event.type == "call.asked":
            asked.append(await runtime.store.question(event.question))
            await turn.answer(event.question, answer or nobody_to_ask())
    result = await turn.result()
    texts = [call.result.text for message in result.messages for call in message.calls if call.result]
    return texts, asked


def run(command: str, **more: Any) -> Any:
    return calls("shell", command=command, **more)


@needs_cage
async def test_k3_a_trusted_folder_is_worked_in_without_a_question(tmp_path: Path) -> None:
    script = [run("echo 1 > a && cat a"), run("mkdir -p b && mv a b && ls b"), says("done")]
    async with caged(tmp_path, script) as runtime:
        texts, asked = await told(runtime)
    assert texts == ["exit status 0\n1\n", "exit status 0\na\n"]
    assert asked == []


@needs_cage
async def test_k3_what_was_refused_is_told_and_allowed_by_a_rule(place: Path) -> None:
    """Refused × requested × always: the second call requests exactly the refused path, and the third needs no
    request."""
    outside = place / "outside"
    outside.mkdir()
    line = f"echo x >> {outside}/f"
    script = [run(line), run(line, beyond=[f"write:{outside}/*"]), run(line), says("done")]
    async with caged(place, script) as runtime:
        texts, asked = await told(runtime, allow_always())
    assert f"refused write: {outside}/f" in texts[0]
    assert f"cage.write:{outside}/*" in texts[0]
    assert texts[1:] == ["exit status 0\n"] * 2
    assert [one.rules for one in asked] == [(Rule("cage.write", f"{outside}/*", "allow"),)]
    assert (outside / "f").read_text() == "x\nx\n"


CHANGES = {
    "chmod": ("chmod 777 {shown}/f", "{shown}/f", "cage.write:{shown}/*"),
    "chown": ("chown 0:0 {shown}/f", "{shown}/f", "cage.write:{shown}/*"),
    "rm": ("rm -f {shown}/f", "{shown}/f", "cage.write:{shown}/*"),
    "rm a folder": ("rm -rf {shown}/d", "{shown}/d/f", "cage.write:{shown}/d/*"),
    "mv": ("mv {shown}/f {shown}/g", "{shown}/f", "cage.write:{shown}/*"),
    "mv out": ("echo 1 > x; mv x {shown}/new", "{shown}/new", "cage.write:{shown}/*"),
    "touch": ("touch {shown}/f", "{shown}/f", "cage.write:{shown}/*"),
    "ln": ("ln -s x {shown}/new", "{shown}/new", "cage.write:{shown}/*"),
    "truncate": (
        "python3 -c 'import os; os.truncate(\"{shown}/f\", 0)'",
        "{shown}/f",
        "cage.write:{shown}/*",
    ),
    "by descriptor": (
        "python3 -c 'import os; os.fchmod(os.open(\"{shown}/f\", 0), 511)'",
        "{shown}/f",
        "cage.write:{shown}/*",
    ),
    "through a link": ("ln -s {shown} l; echo 1 > l/../shown/./new", "{shown}/new", "cage.write:{shown}/*"),
    "deep": ("mkdir -p {shown}/a/b/c", "{shown}/a", "cage.write:{shown}/*"),
    "hidden": ("echo 1 > {hidden}/new", "{hidden}/new", "cage.write:{hidden}/*"),
    "protected": ("chmod 777 .git/config", ".git/config", "cage.write:.git/*"),
    "protected folder": ("mv .git old", ".git", "cage.write:.git/*"),
    "above protected": ("mv sub old", "sub", "cage.write:sub/.vscode/*"),
    "nowhere": ("mkdir /dragoman-new", "/dragoman-new", "cage.outside"),
}


@needs_cage
@pytest.mark.parametrize("name", CHANGES)
async def test_k3_whatever_changes_a_file_outside_is_told(place: Path, name: str) -> None:
    """Each way to change a file × shown, hidden, protected: told once, with what would allow just that."""
    names = {"shown": place / "shown", "hidden": place / "hidden"}
    for folder in names.values():
        (folder / "d").mkdir(parents=True)
        (folder / "f").write_text("1")
        (folder / "d/f").write_text("1")
    (place / "work/sub/.vscode").mkdir(parents=True)
    process("git init -q", place / "work")
    line, told_of, rule = (text.format(**names) for text in CHANGES[name])
    rules = [f"cage.read:{names['shown']}/*"]
    async with caged(place, [run(line), says("done")], allow=rules) as runtime:
        texts, asked = await told(runtime)
    assert asked == []
    lines = [one for one in texts[0].splitlines() if one.startswith("[cage]")]
    assert len(lines) == 1, texts[0]
    assert f"refused write: {told_of}." in lines[0]
    assert lines[0].endswith(f"ask for {rule}")
    assert sorted(one.name for one in names["shown"].iterdir()) == ["d", "f"]


async def allowed(*_: str) -> None: ...


@pytest.mark.parametrize(
    ("path", "closed", "what", "rule"),
    [
        ("{work}/.vscode/tasks.json", True, "write .vscode/tasks.json", ".vscode/*"),
        ("{work}/.vscode", True, "write .vscode", ".vscode/*"),
        ("{work}/sub", True, "write sub", "sub/.git/*"),
        ("{work}/.vscode-2", True, "write .vscode-2", None),
        ("{work}/.vscode", False, "", None),
        ("{work}/src/__pycache__/a", True, "", None),
        ("{place}/other/file", True, "write {place}/other/file", "{place}/other/*"),
        ("{place}/other/file", False, "", None),
        ("{place}/gone/file", True, "write {place}/gone/file", None),
        ("/proc/self/x", True, "", None),
        ("{home}/.cargo/bin/x", False, "lost ~/.cargo", "~/.cargo/*"),
        ("{home}/.config/git/x", False, "lost ~/.config/git", "~/.config/git/*"),
        ("{home}/.config/none/x", False, "lost ~/.config/none", "~/.config/*"),
        ("{home}/none", False, "lost ~/none", None),
        ("{home}/open/x", False, "", None),
        ("{home}2/x", False, "", None),
    ],
)
def test_k3_what_is_told_names_the_smallest_thing_to_allow(  # noqa: PLR0917 - pytest calls it by name
    place: Path, monkeypatch: pytest.MonkeyPatch, path: str, closed: bool, what: str, rule: str | None
) -> None:
    """Refused × lost with the cage × harmless, in the workspace, elsewhere and at home."""
    names = {"work": place / "work", "home": place / "home", "place": place}
    for folder in ("work", "other", "home/.cargo", "home/.config/git", "home/open"):
        (place / folder).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place / "home"))
    supervisor = Supervisor(Cage(place / "work"), allowed, [".vscode", "sub/.git"])
    supervisor._opened = [place / "home/open"]
    for _ in range(2):
        supervisor._tell(path.format(**names), closed=closed)
    found = [(f"{one.kind} {one.what}", one.rule) for one in supervisor.refused]
    opens = Rule("cage.write", rule.format(**names), "allow") if rule is not None else None
    assert found == ([(what.format(**names), opens)] if what else [])


def test_k3_only_so_much_is_told(tmp_path: Path) -> None:
    supervisor = Supervisor(Cage(tmp_path), allowed, [])
    for number in range(30):
        supervisor._tell(f"{tmp_path}/{number}", closed=True)
    assert [one.what for one in supervisor.refused] == [str(number) for number in range(20)]


@needs_cage
async def test_k3_what_changes_nothing_outside_is_not_told(place: Path) -> None:
    """Told × what only looks like a refusal: missing files, folders that are there, links copied as links."""
    (place / "shown").mkdir()
    (place / "shown/f").write_text("1")
    line = (
        f"mkdir -p {place}/shown /usr/bin; rm -f {place}/shown/none; ln -s {place}/shown/f l; cp -a l m; "
        "touch -h l; chmod 700 .; echo 1 > /tmp/x; chmod 600 /tmp/x; rm /tmp/x; mkdir d; mv d e; rm -r e"
    )
    async with caged(place, [run(line), says("done")], allow=[f"cage.read:{place}/shown/*"]) as runtime:
        texts, _ = await told(runtime)
    assert texts == ["exit status 0\n"]


def asked_about(work: Path, *words: str, bounds: Sequence[Rule] = ()) -> tuple[list[str], str]:
    """Return what a call with these words would open, as a user reads it, and why it cannot."""
    rules, why = settle_beyond(Cage(work, FREE, tuple(bounds)), beyond_of(words, ["make"]))
    return [f"{rule.permission}:{rule.pattern}" for rule in rules], why


def test_k3_what_a_call_asks_for_is_asked_about_as_what_it_opens(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for × links, `..`, wildcards, what does not exist yet, home, protected names."""
    work, other, home = place / "work", place / "other", place / "home"
    for folder in (work / "src", other / "sub", home / ".cargo"):
        folder.mkdir(parents=True)
    (other / "file").write_text("1")
    (work / "link").symlink_to(other)
    monkeypatch.setenv("HOME", str(home))
    one = ([f"cage.write:{other}/*"], "")
    for word in (
        f"{other}",
        f"{other}/*",
        "link/*",
        "../other/*",
        "src/../../other",
        f"{other}/new",
        "link/new",
    ):
        assert asked_about(work, f"write:{word}") == one, word
    assert asked_about(work, f"write:{other}/file") == ([f"cage.write:{other}/file"], "")
    assert asked_about(work, "write:~/.cargo/*", f"write:{home}/.cargo") == (["cage.write:~/.cargo/*"], "")
    for word in ("src/*", "src/tools/x"):
        assert asked_about(work, f"write:{word}") == ([], ""), word  # it is open
    bounds = [Rule("files.write", "srv/*", "ask")]
    for word, opens in ((".git/config", ".git/*"), (".vscode/tasks.json", ".vscode/*"), ("srv/x", "srv/*")):
        assert asked_about(work, f"write:{word}", bounds=bounds) == ([f"cage.write:{opens}"], "")
    for word in ("write:*", "write:/opt/*/x", "read:~/.s?h", "net:*", "net:*.example.org"):
        rules, why = asked_about(work, word)
        assert (rules, "more than one" in why) == ([], True), word
    for word in ("write:/*", "write:~/*", "write:../home/*", "write:/proc/*", "read:/dev/null"):
        rules, why = asked_about(work, word)
        assert (rules, "does not open it" in why) == ([], True), word
    for word in ("write:~/new/*", "write:/dragoman-new/x", f"read:{other}/none"):
        rules, why = asked_about(work, word)
        assert (rules, "does not exist" in why) == ([], True), word
    assert asked_about(work, "outside") == (["cage.outside:make"], "")


@needs_cage
async def test_k3_what_is_asked_about_is_what_opens(place: Path) -> None:
    """Requested × a link × a new file: one request by the real name, and then it is written. A path that
    cannot be opened is refused before the request, and so is one that a rule denies below."""
    other = place / "other"
    (other / "closed").mkdir(parents=True)
    (place / "work").mkdir()
    (place / "work/link").symlink_to(other)
    script = [
        run("echo 1 > link/new", beyond=["write:link/new"]),
        run("echo 1 > link/x", beyond=["write:*"]),
        run("echo 1 > link/x", beyond=["net:*"]),
        says("done"),
    ]
    async with caged(place, script) as runtime:
        texts, asked = await told(runtime, allow_once())
    assert [one.rules for one in asked] == [(Rule("cage.write", f"{other}/*", "allow"),)]
    assert f"write {other}/*" in asked[0].text
    assert texts[0] == "exit status 0\n"
    assert all("more than one" in text for text in texts[1:])
    assert (other / "new").exists()
    denied = [f"cage.write:{other}/closed/*"]
    script = [run("echo 1 > link/x", beyond=["write:link/*"]), says("done")]
    async with caged(place, script, deny=denied) as runtime:
        texts, asked = await told(runtime, allow_once())
    assert asked == []
    assert "A rule forbids cage.write" in texts[0]


@needs_cage
async def test_k3_a_link_that_moves_while_a_person_thinks_opens_nothing(place: Path) -> None:
    for name in ("one", "two", "work"):
        (place / name).mkdir()
    link = place / "work/link"
    link.symlink_to(place / "one")
    async with caged(place, [run("echo 1 > link/x", beyond=["write:link/*"]), says("done")]) as runtime:
        turn, asked = await runtime.send("go"), list[Rule]()
        async for event in turn.events():
            if event.type == "call.asked":
                asked += (await runtime.store.question(event.question)).rules
                (place / "other").symlink_to(place / "two")
                (place / "other").replace(link)
                await turn.answer(event.question, allow_once())
        (call,) = [call for message in (await turn.result()).messages for call in message.calls]
    assert asked == [Rule("cage.write", f"{place}/one/*", "allow")]
    assert call.result is not None
    assert "leads elsewhere now" in call.result.text
    assert [*(place / "one").iterdir(), *(place / "two").iterdir()] == []


@needs_cage
@pytest.mark.parametrize("scope", ["once", "conversation", "always"])
async def test_k3_what_a_result_says_was_refused_is_allowed_over_http(place: Path, scope: str) -> None:
    """Refused × a new version of the call that asks for just that × how long it holds."""
    (place / "outside").mkdir()
    (place / "work").mkdir()
    line = f"echo x >> {place}/outside/f"
    script = [run(line), says("1"), says("2"), run(line), says("3")]
    groups: dict[str, Any] = {
        "tools": [shell_group()],
        "workspace": place / "work",
        "cage": FREE,
        "allow": [],
    }
    async with served(place / "store", script, **groups) as site:
        conversation = await site.conversation()

        async def refused(turn: str) -> list[dict[str, str]]:
            await site.until(f"/api/turns/{turn}/events", "turn.end")
            messages = (await site.get(f"/api/conversations/{conversation}/tree"))["messages"]
            calls = [part for one in messages for part in one["parts"] if part["type"] == "call"]
            made.append(calls[-1])
            said: list[dict[str, str]] = calls[-1]["result"]["metadata"]["cage"]["refused"]
            return said

        made: list[dict[str, Any]] = []
        (first,) = await refused(await site.say("go", conversation))
        assert first["asks"] == f"cage.write:{place}/outside/*"
        assert f"refused write: {place}/outside/f" in first["text"]
        arguments = {**made[0]["arguments"], "beyond": [first["asks"]]}
        again = (await site.post(f"/api/calls/{made[0]['id']}/rerun", {"arguments": arguments}))["turn"]
        question = await site.question()
        assert [(one["permission"], one["pattern"]) for one in question["rules"]] == [
            ("cage.write", f"{place}/outside/*")
        ]
        answer = {"verdict": "allow", "scope": scope}
        await site.post(f"/api/questions/{question['id']}/answer", answer)
        assert await refused(again) == []
        assert len(await refused(await site.say("once more", conversation))) == (scope == "once")
    assert (place / "outside/f").read_text() == ("x\n" if scope == "once" else "x\nx\n")


@needs_cage
async def test_k3_a_person_may_let_one_call_run_outside(place: Path) -> None:
    line = f"echo x >> {place}/f"
    async with caged(place, [run(line, beyond=["outside"]), run(line), says("done")]) as runtime:
        texts, asked = await told(runtime, allow_once())
    assert texts[0] == "exit status 0\n"
    assert "refused write" in texts[1]
    assert "outside the cage" in asked[0].text
    assert (place / "f").read_text() == "x\n"


@asynccontextmanager
async def greeter() -> AsyncIterator[int]:
    """A host on loopback that says hello. → its port"""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1")
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


CONNECT = """
import socket, sys
for target in sys.argv[1:]:
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"CONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    head, _, said = b"".join(iter(lambda: s.recv(99), b"")).decode().partition("\\r\\n\\r\\n")
    print(target.partition(":")[0], head.split()[1], said, flush=True)
"""


@needs_cage
async def test_k1_rules_say_which_hosts_are_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allowed × denied × a name that leads into a private network: rules decide without a request. Names are
    resolved outside, by a resolver that knows only loopback."""
    resolved = []

    async def resolver(host: str, port: int, **_: Any) -> list[Any]:
        resolved.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)
    work = tmp_path / "work"
    work.mkdir()
    (work / "connect.py").write_text(CONNECT)
    async with greeter() as port:
        hosts = ("packages.example.org", "denied.example.org", "other.example.org", "127.0.0.1")
        line = f"{sys.executable} connect.py {' '.join(f'{one}:{port}' for one in hosts)}"
        allow = ["cage.net:*.example.org"]
        deny = ["cage.net:denied.example.org"]
        script = [run(line), says("1")]
        async with caged(tmp_path / "1", script, allow=allow, deny=deny, folder=work) as runtime:
            texts, asked = await told(runtime)
        assert [one.patterns for one in asked] == [(f"127.0.0.1:{port}",)]  # where the name leads
        for host in hosts:
            assert f"{host} 403" in texts[0]
        resolved.clear()
        allow += [f"cage.net:127.0.0.1:{port}"]
        async with caged(tmp_path / "2", script, allow=allow, deny=deny, folder=work) as runtime:
            texts, asked = await told(runtime)
    assert asked == []
    heard = [f"{one} 403" if one.startswith("denied") else f"{one} 200 hello" for one in hosts]
    assert [line.strip() for line in texts[0].splitlines()[1:5]] == heard
    assert "refused network: denied.example.org" in texts[0]
    assert resolved == ["packages.example.org", "other.example.org"]


@needs_cage
async def test_k1_a_host_is_asked_about_while_the_command_waits(tmp_path: Path) -> None:
    """Network × approval request: no second run is needed, and other hosts are still refused."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "connect.py").write_text(CONNECT)
    async with greeter() as port:
        line = f"{sys.executable} connect.py 127.0.0.1:{port}"
        for answer, heard in ((allow_once(), "hello"), (nobody_to_ask(), "403")):
            async with caged(tmp_path / heard, [run(line), says("done")], folder=work) as runtime:
                texts, asked = await told(runtime, answer)
            assert heard in texts[0]
            assert [one.rules for one in asked] == [(Rule("cage.net", f"127.0.0.1:{port}", "allow"),)]
            assert ("refused network: 127.0.0.1" in texts[0]) == (heard == "403")


@needs_cage
async def test_k1_a_request_without_tls_is_refused_and_told(tmp_path: Path) -> None:
    """Network × a proxy request for anything but a tunnel."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "plain.py").write_text(CONNECT.replace("CONNECT {target}", "GET http://{target}/"))
    line = f"{sys.executable} plain.py plain.example.org:80"
    async with caged(tmp_path, [run(line), says("done")], folder=work) as runtime:
        texts, asked = await told(runtime)
    assert asked == []
    assert "plain.example.org 405" in texts[0]
    assert "refused network: plain.example.org:80 (without TLS: the cage passes https alone)" in texts[0]
    assert "cage.net:plain.example.org:80" in texts[0]


@needs_cage
async def test_k1_a_tunnel_is_closed_with_its_command(tmp_path: Path) -> None:
    """Network × a host that never ends a connection."""
    heard: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(writer)

    work = tmp_path / "work"
    work.mkdir()
    once = CONNECT.replace('iter(lambda: s.recv(99), b"")', "[s.recv(99)]")
    (work / "connect.py").write_text(once)
    async with await asyncio.start_server(hold, "127.0.0.1") as server:
        there = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        script = [run(f"{sys.executable} connect.py {there}"), says("done")]
        async with caged(tmp_path, script, allow=[f"cage.net:{there}"], folder=work) as runtime:
            texts, _ = await told(runtime)
            assert not [one for one in asyncio.all_tasks() if "Supervisor._accept" in repr(one)]
        assert "127.0.0.1 200" in texts[0]
        heard[0].close()


@needs_cage
async def test_p12_what_runs_later_is_held_until_a_person_allows_it(tmp_path: Path) -> None:
    line = "mkdir -p .vscode && echo '{}' > .vscode/tasks.json"
    work = tmp_path / "work"
    async with caged(tmp_path, [run(line), says("1"), run(line), says("2")]) as runtime:
        texts, asked = await told(runtime)
        assert "held back .vscode" in texts[0]
        assert not (work / ".vscode").exists()
        assert len(asked) == 1
        texts, _ = await told(runtime, allow_once())
    assert texts == ["exit status 0\n"]
    assert (work / ".vscode/tasks.json").exists()


@needs_cage
async def test_p12_what_a_command_left_when_its_time_was_up_is_asked_about(tmp_path: Path) -> None:
    """Held × timeout: as after any other end, and told in the result."""
    line = "mkdir .vscode; sleep 60"
    for answer in (allow_once(), nobody_to_ask()):
        kept = answer.verdict == "allow"
        async with caged(tmp_path / str(kept), [run(line, timeout=3), says("1")]) as runtime:
            texts, asked = await told(runtime, answer)
        assert "took longer than 3 s" in texts[0]
        assert [one.rules for one in asked] == [(Rule("cage.write", ".vscode", "allow"),)]
        assert (tmp_path / str(kept) / "work/.vscode").exists() == kept
        assert ("held back .vscode" in texts[0]) != kept


@needs_cage
async def test_p12_what_could_not_be_held_is_told(tmp_path: Path) -> None:
    """Held back × a file in the place where it would be moved. Put back × a file that appeared there in the
    meantime."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".dragoman-held").write_text("")
    async with caged(tmp_path, [run("mkdir .vscode"), says("1")]) as runtime:
        texts, asked = await told(runtime)
    assert "could not hold back .vscode (Not a directory)" in texts[0]
    assert asked == []
    (work / ".dragoman-held").unlink()
    (work / ".vscode").rmdir()
    async with caged(tmp_path, [run("mkdir .vscode"), says("1")]) as runtime:
        turn = await runtime.send("go")
        async for event in turn.events():
            if event.type == "call.asked":
                (work / ".vscode").write_text("another")
                await turn.answer(event.question, allow_once())
        texts = [one.result.text for one in (await turn.result()).messages[-2].calls if one.result]
    assert "held back .vscode (moved to .dragoman-held/" in texts[0]
    assert (work / ".vscode").read_text() == "another"


@needs_cage
@pytest.mark.parametrize(
    "path",
    ["a" * 251 + ".git", "d/" * 300 + "AGENTS.md", os.fsdecode(b"\xff/.vscode")],
    ids=["long", "deep", "bytes"],
)
async def test_p12_what_runs_later_is_held_whatever_its_path(tmp_path: Path, path: str) -> None:
    """Held × a name of the longest kind, more folders than files can be open, bytes that are no text."""
    line = f"exec {sys.executable} make.py"
    (tmp_path / "work").mkdir()
    steps = [os.fsencode(step) for step in path.split("/")]
    make = f"import os\nfor step in {steps!r}:\n    os.mkdir(step)\n    os.chdir(step)\n"
    (tmp_path / "work/make.py").write_text(make)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        async with caged(tmp_path, [run(line), says("1")]) as runtime:
            texts, asked = await told(runtime)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "held back" in texts[0]
    assert len(asked) == 1
    assert not (tmp_path / "work" / path).exists()


def test_p12_a_link_that_was_replaced_is_there_again(tmp_path: Path) -> None:
    """Held × a link on a protected path that a command replaced by a file."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".envrc").symlink_to("real")
    before = find_protected(work, [])
    (work / ".envrc").unlink()
    (work / ".envrc").write_text("new")
    assert find_protected(work, []).new_since(before) == [".envrc"]
    held = hold_back(work, ".envrc", before)
    assert (work / ".envrc").readlink() == Path("real")
    assert (work / held).read_text() == "new"


def test_p12_what_was_held_is_put_back_through_no_link(tmp_path: Path) -> None:
    """Allowed × a link that another command made while the user was deciding."""
    work, home = tmp_path / "work", tmp_path / "home"
    (work / "sub").mkdir(parents=True)
    home.mkdir()
    (work / "sub/.bashrc").write_text("new")
    opened = len([*Path("/proc/self/fd").iterdir()])
    held = hold_back(work, "sub/.bashrc", Protected())
    (work / "sub").rmdir()
    (work / "sub").symlink_to(home)
    with pytest.raises(OSError, match="sub"):
        put_back(work, held, "sub/.bashrc")
    assert not [*home.iterdir()]
    (work / "sub").unlink()
    (work / "sub").mkdir()
    put_back(work, held, "sub/.bashrc")
    assert (work / "sub/.bashrc").read_text() == "new"
    assert len([*Path("/proc/self/fd").iterdir()]) <= opened


@needs_cage
async def test_p12_a_link_on_a_protected_path_is_asked_about_first(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "real").mkdir()
    (work / ".vscode").symlink_to("real")
    replace_it = run("rm .vscode && mkdir .vscode && echo 1 > .vscode/tasks.json")
    async with caged(tmp_path, [replace_it, says("done")]) as runtime:
        texts, asked = await told(runtime)
        assert "did not" in texts[0] or "nobody" in texts[0].lower()
        assert "link" in asked[0].text
    assert (work / ".vscode").is_symlink()


@needs_cage
async def test_p12_the_holes_of_version_control_and_servers_are_closed_for_the_shell(tmp_path: Path) -> None:
    """Shell × allowed `git status` × MCP script: no written file runs later."""
    work = tmp_path / "work"
    (work / "srv").mkdir(parents=True)
    (work / "srv/server.py").write_text("#")
    process("git init -q", work)
    ran = tmp_path / "ran"
    script = [
        run(f"git config core.fsmonitor 'touch {ran}; false'"),
        run(f"printf '[core]\\n\\tfsmonitor = touch {ran}\\n' >> .git/config"),
        run(f'echo \'open("{ran}", "w")\' > srv/server.py'),
        run("git status --short"),
        says("done"),
    ]
    bounds = [Rule("files.write", one, "ask") for one in ("srv", "srv/*")]
    async with caged(tmp_path, script, bounds=bounds) as runtime:
        texts, asked = await told(runtime)
    process("git status", work)
    assert asked == []
    assert texts[-1].startswith("exit status 0")
    assert (work / "srv/server.py").read_text() == "#"
    assert not ran.exists()


@tool
async def count(context: ToolContext) -> str:
    """A tool of one's own that starts a program."""
    status, output = await context.run(
        ["/bin/sh", "-c", "cat ~/.profile /etc/hostname >/dev/null; ls /proc | grep -c '^[0-9]'"]
    )
    return f"{status} {output.split()[-1]}"


@tool
def count_in_thread(context: ToolContext) -> str:
    """The same, in a thread."""
    return str(context.run(["/bin/echo", "hi"]))


@needs_cage
async def test_k1_programs_of_ones_own_tools_are_caged(tmp_path: Path) -> None:
    script = [calls("count"), calls("count_in_thread"), says("done")]
    work = tmp_path / "work"
    work.mkdir()
    tools = [count, count_in_thread]
    async with runtime_with(tmp_path / "store", script, tools=tools, workspace=work, cage=FREE) as runtime:
        texts, _ = await told(runtime)
    status, processes = texts[0].split()
    assert status == "0"
    assert int(processes) < 8  # it sees its own alone
    assert texts[1] == "(0, 'hi\\n')"


@needs_cage
@pytest.mark.parametrize("watch", [True, False])
async def test_k1_the_holder_of_a_cage_does_not_tell_what_lies_outside(tmp_path: Path, watch: bool) -> None:
    """Its messages are visible inside: none contains a path of the host or names a closed path."""
    settings = replace(FREE, watch=watch)
    (tmp_path / "work/.vscode").mkdir(parents=True)
    async with caged(tmp_path, [run("tr '\\0' '\\n' < /proc/1/cmdline"), says("1")], settings) as runtime:
        texts, _ = await told(runtime)
    assert "bwrap" in texts[0]
    assert not [one for one in ("--ro-bind", ".vscode", "--tmpfs", "--seccomp") if one in texts[0]]


@needs_cage
async def test_k1_a_worktree_sees_its_repository_if_that_confirms_it(place: Path) -> None:
    """Anybody can write a file that points to a repository: the repository has to name the worktree, too."""
    main, forged = place / "main", place / "forged"
    for folder in (main, forged):
        folder.mkdir()
    made = "git init -q && git -c user.name=a -c user.email=a@b commit -qm first --allow-empty"
    process(f"{made} && git worktree add -q {place}/work", main)
    (forged / ".git").write_text((place / "work/.git").read_text())
    for folder, status in ((place / "work", "0"), (forged, "128")):
        script = [run("git log --oneline"), says("done")]
        async with caged(place / folder.name, script, folder=folder) as runtime:
            texts, _ = await told(runtime)
        assert texts[0].startswith(f"exit status {status}\n"), texts[0]


@needs_cage
async def test_k1_a_folder_that_no_tool_may_read_is_empty_inside(tmp_path: Path) -> None:
    (tmp_path / "work/keys").mkdir(parents=True)
    (tmp_path / "work/keys/one").write_text("secret")
    script = [run("ls keys; cat keys/one; touch keys/new"), says("done")]
    bounds = [Rule("files.read", "keys/*", "deny")]
    async with caged(tmp_path, script, bounds=bounds) as runtime:
        texts, _ = await told(runtime)
    assert "secret" not in texts[0]
    assert [one.name for one in (tmp_path / "work/keys").iterdir()] == ["one"]


@needs_cage
async def test_k1_the_folder_of_homebrew_is_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "brew/Cellar").mkdir(parents=True)
    (place / "brew/Cellar/tool").write_text("poured")
    monkeypatch.setenv("HOMEBREW_PREFIX", str(place / "brew"))
    script = [run(f"cat {place}/brew/Cellar/tool; ls {place}"), says("done")]
    async with caged(place, script) as runtime:
        texts, _ = await told(runtime)
    assert texts == ["exit status 0\npouredbrew\nwork\n"]


@needs_cage
async def test_k1_a_formatter_outside_the_workspace_is_shown_in_its_cage(place: Path) -> None:
    """Formatter × cage: the script named in the settings and its imports are visible, and nothing
    else there."""
    (place / "format").mkdir()
    (place / "format/upper.py").write_text(
        "import sys, helper, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        f"seen = pathlib.Path({str(place / 'key')!r}).exists()\n"
        "file.write_text(helper.change(file.read_text()) + str(seen))\n"
    )
    (place / "format/helper.py").write_text("change = str.upper\n")
    (place / "key").write_text("secret")
    command = (sys.executable, str(place / "format/upper.py"))
    formatter = Formatter("upper", ("*.txt",), command)
    work = place / "work"
    work.mkdir()
    async with runtime_with(
        place / "store",
        [calls("write_file", path="a.txt", text="a "), says("done")],
        tools=[with_formatters(files_group(), [formatter])],
        workspace=work,
        cage=FREE,
    ) as runtime:
        texts, _ = await told(runtime)
    assert (work / "a.txt").read_text() == "A False", texts


# ── everyday work ─────────────────────────────────────────────────────────────────────────────────

EVERYDAY = {
    "git": "git status --short && git log --oneline && git diff",
    "python": f"{sys.executable} -c 'import multiprocessing as m; m.Pool(2).map(abs, [-1])'",
    "pytest": "echo 'def test_x(): pass' > test_x.py && PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "
    f"{sys.executable} -m pytest -q test_x.py",
    "venv": "python3 -m venv --without-pip env && env/bin/python -c 'print(1)'",
    "make": "printf 'a:\\n\\techo made > a\\n' > Makefile && make a",
    "cc": "echo 'int main(){return 0;}' > m.c && cc m.c -o m && ./m",
    "node": "node -e 'require(\"http\").createServer().listen(0, function () { this.close() })'",
    "npm": 'echo \'{"scripts":{"x":"echo ran"}}\' > package.json && npm run -s x',
    "cargo": "cargo --version",
    "server": f'{sys.executable} -c \'import socket as s; a = s.create_server(("127.0.0.1", 0)); '
    "s.create_connection(a.getsockname())'",
}


@needs_cage
@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYDAY)
async def test_everyday_programs_work_inside(tmp_path: Path, name: str) -> None:
    program = name if name in ("git", "make", "cc", "node", "npm", "cargo") else "python3"
    if shutil.which(program) is None:
        pytest.skip(f"there is no {name} here")
    work = tmp_path / "work"
    work.mkdir()
    made = "git init -q && echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm m"
    process(made, work)
    async with caged(tmp_path, [run(EVERYDAY[name]), says("done")]) as runtime:
        texts, asked = await told(runtime)
    assert texts[0].startswith("exit status 0"), texts[0]
    assert asked == []


@needs_cage
async def test_k2_a_commit_needs_a_grant_and_works_with_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    process("git init -q", work)
    line = "echo 1 > f && git add f && git -c user.name=a -c user.email=a@b commit -qm m && git log --oneline"
    async with caged(tmp_path, [run(line), run(line, beyond=["write:.git/*"]), says("done")]) as runtime:
        texts, asked = await told(runtime, allow_once())
    assert "refused write: .git/index.lock" in texts[0]
    assert texts[1].startswith("exit status 0")
    assert len(asked) == 1


# ── nothing is left ───────────────────────────────────────────────────────────────────────────────

OWNER = """
import asyncio, sys
from pathlib import Path
from dragoman.tools.builtin.shell import ShellOutput, run_program
from dragoman.tools.cage.enter import cage_in
from dragoman.tools.cage.policy import CageSettings
work = Path(sys.argv[1])
line = "setsid sh -c 'trap \\"\\" TERM HUP; while true; do echo x >> beat; sleep 0.02; done' & wait"
cage = cage_in(work, CageSettings(watch=sys.argv[2] == "watch"), [], look=True)
asyncio.run(run_program(["/bin/sh", "-c", line], work, ShellOutput(), lambda text: None, cage=cage))
"""


@needs_cage
@pytest.mark.slow
@pytest.mark.parametrize("how", ["watch", "plain"])
async def test_k1_no_caged_process_outlives_its_owner(tmp_path: Path, how: str) -> None:
    """Also one that left the group and ignores signals, after `kill -9`."""
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(tmp_path), how)
    try:
        await eventually((tmp_path / "beat").exists)
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        await owner.wait()
    await asyncio.sleep(0.3)
    before = (tmp_path / "beat").stat().st_size
    await asyncio.sleep(0.3)
    assert (tmp_path / "beat").stat().st_size == before


@needs_cage
@pytest.mark.parametrize("watch", [True, False])
async def test_k1_a_cage_leaves_no_file_open(tmp_path: Path, watch: bool) -> None:
    """Watched and connected, or neither: a server makes many cages in its life."""
    (tmp_path / "connect.py").write_text(CONNECT)

    async def counted() -> int:
        cage = cage_in(tmp_path, CageSettings(watch=watch), [], look=True)
        line = f"touch /opt/x; {sys.executable} connect.py 127.0.0.1:9 other.example:x" if watch else "true"
        words = ["/bin/sh", "-c", line]
        await run_program(words, tmp_path, ShellOutput(), lambda _: None, cage=cage, gate=allowed)
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone

    first = await counted()  # imports and threads open some that stay
    assert await counted() <= first
    assert await counted() <= first


@needs_cage
@pytest.mark.slow
async def test_t6_a_command_that_is_cancelled_can_tidy_up(tmp_path: Path) -> None:
    line = "trap 'echo tidy > tidied; exit 1' TERM; echo > began; while true; do sleep 0.05; done"
    async with caged(tmp_path, [run(line), says("done")]) as runtime:
        turn = await runtime.send("go")
        await eventually((tmp_path / "work/began").exists)
        await turn.cancel()
        await turn.result()
    assert (tmp_path / "work/tidied").exists()


def groups_of(file: str) -> list[Path]:
    """Return the control groups of this process, after another attempt to remove the remaining ones."""
    for one in make_groups():
        remove_group(one)
    return [*Path("/sys/fs/cgroup").rglob(f"dragoman-{os.getpid()}-*/{file}")]


@needs_cage
async def test_k1_all_processes_of_a_call_share_one_limit(tmp_path: Path) -> None:
    """Memory × many processes, also as root. No group is left."""
    _group_places.cache_clear()  # the trials must leave none, too
    made = make_groups()
    for group in made:
        remove_group(group)
    if not made:
        pytest.skip("no control groups can be made here")
    line = "echo > began; while [ ! -e end ]; do sleep 0.05; done"
    async with caged(tmp_path, [run(line), says("done")]) as runtime:
        turn = await runtime.send("go")
        await eventually((tmp_path / "work/began").exists)
        held = [one.parent for one in groups_of("cgroup.procs") if len(one.read_text().split()) > 1]
        limits = [one for group in held for one in group.iterdir() if one.name in LIMITS]
        found = {LIMITS[one.name]: int(one.read_text()) for one in limits}
        (tmp_path / "work/end").touch()
        await turn.result()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    assert found
    assert found.get("processes", 512) == 512
    assert memory - 4096 <= found.get("memory", memory) <= memory
    await eventually(lambda: not groups_of("cgroup.procs"))


LIMITS = {"pids.max": "processes", "memory.max": "memory", "memory.limit_in_bytes": "memory"}


# ── where there is none ───────────────────────────────────────────────────────────────────────────


def test_k2_a_workspace_that_holds_the_home_folder_is_not_caged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in (tmp_path, tmp_path / "home"):
        assert cage_in(folder, FREE, [], look=True).missing


async def test_k2_what_wants_a_cage_does_not_run_without_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command, and a server."""
    monkeypatch.setenv("HOME", str(tmp_path))
    cage = cage_in(tmp_path, FREE, [], look=True)
    words = ["/bin/sh", "-c", "touch ran"]
    with pytest.raises(ToolFailed) as refused:
        await run_program(words, tmp_path, ShellOutput(), lambda _: None, cage=cage, gate=allowed)
    assert cage.missing in str(refused.value)
    with pytest.raises(FileNotFoundError) as missing:
        async with open_program(words[0], words[1:], {}, str(tmp_path), Diagnostics(), hosts=()):
            pass
    assert cage.missing in str(missing.value)
    assert not (tmp_path / "ran").exists()


def test_k2_the_profile_for_macos_says_the_same(tmp_path: Path) -> None:
    """As text: it was not run on a Mac. The last rule that matches decides, so the order counts."""
    work = tmp_path / 'a "b'
    (work / "srv").mkdir(parents=True)
    found = Protected({".git": ("folder", "1"), "srv/x": ("file", "2"), "free": ("file", "3")})
    rules = (Rule("cage.write", "free", "allow"), Rule("cage.read", str(tmp_path), "allow"))
    text = profile(Cage(work, rules=rules), found)
    quoted = str(work).replace('"', '\\"')
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert text.count("(") == text.count(")")
    writes, closed = (
        f'(allow file-write* (subpath "{quoted}"))',
        f'(deny file-write* (subpath "{quoted}/.git"))',
    )
    assert lines.index(writes) < lines.index(closed)
    assert f'(deny file-write-unlink (literal "{quoted}/srv"))' in lines
    assert not any("free" in line for line in lines)
    assert not any("network" in line for line in lines)
    assert f'(allow file-read* (subpath "{tmp_path}"))' in lines
    assert not any(str(Path.home()) == line.split('"')[1] for line in lines if '"' in line)


# ── servers, and doctor ───────────────────────────────────────────────────────────────────────────


@needs_cage
@pytest.mark.slow
async def test_k1_a_server_runs_in_a_cage_of_its_own_if_the_settings_say_so(place: Path) -> None:
    """The server answers, and writes neither outside its folder nor anything that runs later."""
    server = place / "server"
    server.mkdir()
    (server / "s.py").write_text(
        "import json, sys, pathlib\n"
        "def attempt(path):\n"
        "    try: pathlib.Path(path).write_text('x')\n"
        "    except OSError as error: print(error, file=sys.stderr)\n"
        f"attempt({str(place / 'outside')!r}); attempt('inside'); attempt('.envrc')\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': {}}), flush=True)\n"
    )
    interpreter = str(Path(sys.executable))
    async with open_program(interpreter, ["s.py"], {}, str(server), Diagnostics(), hosts=()) as (read, write):
        asked = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params={})
        await write.send(SessionMessage(asked))
        assert isinstance(answer := await read.receive(), SessionMessage)
        assert isinstance(answer.message, types.JSONRPCResponse)
    assert not (place / "outside").exists()
    assert (server / "inside").exists()
    assert not (server / ".envrc").exists()


@needs_cage
@pytest.mark.slow
async def test_k1_a_caged_server_reaches_the_hosts_that_the_settings_name_and_no_other(place: Path) -> None:
    """As a program sees it: the settings, a runtime, a server that speaks over pipes, a host on loopback."""
    server = place / "server"
    server.mkdir()
    (server / "connect.py").write_text(CONNECT)
    (server / "s.py").write_text(
        "import subprocess, sys\n"
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('s')\n"
        "open('.envrc', 'w').close()\n"
        "@server.tool()\n"
        "def connect(targets: list[str]) -> str:\n"
        "    words = [sys.executable, 'connect.py', *targets]\n"
        "    return subprocess.run(words, capture_output=True, text=True).stdout\n"
        "server.run()\n"
    )
    async with greeter() as port, greeter() as other:
        targets: list[Any] = [f"127.0.0.1:{port}", f"127.0.0.1:{other}", f"localhost:{port}"]
        settings = McpServer(
            command=sys.executable, args=("s.py",), cwd=str(server), cage=True, hosts=(f"127.0.0.1:{port}",)
        )
        source = McpSource("s", settings, patience=PATIENCE)
        script = [calls("s_connect", targets=targets), says("done")]
        async with runtime_with(place / "store", script, tools=[source], allow=["mcp.*"]) as runtime:
            texts, asked = await told(runtime)
    assert asked == []
    heard = ["127.0.0.1", "200", "hello", "127.0.0.1", "403", "localhost", "403"]
    assert texts[0].split() == heard
    assert not (server / ".envrc").exists()  # files that the server made are held back when it ends
    assert [*(server / ".dragoman-held").iterdir()]


@needs_cage
@pytest.mark.slow
async def test_k2_doctor_tries_each_boundary() -> None:
    assert await try_cage(FREE) == ("", [])


@needs_cage
async def test_k2_doctor_tells_why_nothing_runs_in_a_cage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    why, through = await try_cage(replace(FREE, env=("PYTHONHOME",)))
    assert ("encodings" in why, through) == (True, [])
