"""Prepare a command to run in the cage, and check what it left behind. This is the only way in."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from dragoman.background import in_thread, to_its_end
from dragoman.errors import ToolFailed
from dragoman.messages.questions import Rule
from dragoman.sentences import sentence
from dragoman.tools.cage import bubblewrap, seatbelt, stage
from dragoman.tools.cage.policy import (
    HELD,
    NET,
    WRITE,
    Cage,
    CageSettings,
    Protected,
    Refusal,
    find_protected,
    hold_back,
    put_back,
)
from dragoman.tools.cage.seccomp import number, watching
from dragoman.tools.cage.supervise import Gate, Supervisor, proxy_variables
from dragoman.tools.permissions import literal

_log = logging.getLogger("dragoman.tools")
_USUAL = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TMP", "TEMP"}
)
# Where a project's tools are, and how they behave: no keys. `[shell] env` names others.
_PROJECTS = frozenset(
    {
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"),
        *("NODE_PATH", "NODE_ENV", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "GOFLAGS", "CARGO_HOME"),
        *("RUSTUP_HOME", "RUST_BACKTRACE", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "ANDROID_HOME"),
        *("PKG_CONFIG_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "CI", "EDITOR"),
        *("COLUMNS", "NO_COLOR", "SOURCE_DATE_EPOCH"),
    }
)
# They need no network.
_QUIET = {"npm_config_update_notifier": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
_PRIVATE = "/tmp"


def environment(ours: Mapping[str, str], also: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a command receives: only named ones, so no keys and no tokens."""
    known = _USUAL | _PROJECTS | {*also}
    return {name: ours[name] for name in ours if name in known or name.startswith("LC_")}


def cage_in(workspace: Path, settings: CageSettings, bounds: Sequence[Rule], *, look: bool) -> Cage:
    """Return the cage for programs in a workspace, as things are now.

    `look`: also find out whether the user must be asked first.
    """
    folder = Path(os.path.realpath(workspace))
    on_mac = sys.platform == "darwin"
    missing = (seatbelt.why_none() if on_mac else bubblewrap.why_none()) or bubblewrap.why_not_in(folder)
    doubt = ""
    if look and not missing:
        try:
            found = find_protected(folder, bounds)
        except OverflowError as error:
            doubt = sentence("cage.too_many", why=error)
        else:
            if found.links:
                doubt = sentence("cage.link", path=found.links[0])
            elif found.whole:
                doubt = sentence("cage.whole")
            elif on_mac:
                doubt = sentence("cage.untried")
    return Cage(folder, settings, tuple(bounds), missing, doubt)


async def refuse_all(pattern: str, question: str, permission: str) -> None:
    """The gate of a cage that has no one to ask: refuses everything."""
    raise ToolFailed(question)


@dataclass(slots=True)
class Entered:
    """A command that is about to run in its cage. Call `started` when it runs."""

    words: list[str]
    env: dict[str, str]
    first: str = ""  # shell code that runs before the command
    files: list[int] = field(default_factory=list)  # descriptors for the program, which we close when it runs
    refused: list[Refusal] = field(default_factory=list)
    supervisor: Supervisor | None = None
    control: socket.socket | None = None
    attending: asyncio.Task[None] | None = None
    groups: list[Path] = field(default_factory=list)

    def started(self) -> None:
        while self.files:
            os.close(self.files.pop())
        if self.supervisor is not None and self.control is not None:
            self.attending = asyncio.create_task(self.supervisor.attend(self.control))

    async def ended(self) -> None:
        while self.files:
            os.close(self.files.pop())
        if self.attending is not None:
            self.attending.cancel()
            await asyncio.gather(self.attending, return_exceptions=True)
        if self.supervisor is not None:
            await self.supervisor.end()
        if self.control is not None:
            self.control.close()
        for group in self.groups:
            bubblewrap.remove_group(group)


@asynccontextmanager
async def enter(
    words: Sequence[str], env: Mapping[str, str], cage: Cage, gate: Gate = refuse_all
) -> AsyncIterator[Entered]:
    """Yield the command while it runs in its cage. Raises ToolFailed if no cage works here.

    Afterwards, new entries in protected places are held back, unless the gate allows them.
    """
    if cage.missing:
        raise ToolFailed(sentence("cage.missing", why=cage.missing))
    entered, before = await in_thread(partial(_prepared, words, env, cage, gate))
    try:
        try:
            yield entered
        finally:
            await to_its_end(entered.ended())
    except BaseException:
        await to_its_end(_hold_and_log(cage, before))
        raise
    for path, held in await in_thread(partial(_hold_new, cage, before)):
        # A name may not be valid text, but it must be storable.
        shown = os.fsencode(path).decode(errors="backslashreplace")
        what, allowing = sentence("cage.held_as", path=shown, held=held), Rule(WRITE, literal(shown), "allow")
        if isinstance(held, OSError):
            entered.refused.append(Refusal("stays", f"{shown} ({held.strerror})", None))
            continue
        try:
            await gate(shown, sentence("cage.ask_held", path=shown, held=held), WRITE)
            await in_thread(partial(put_back, cage.workspace, held, path))
        except (ToolFailed, OSError) as error:
            why = f": {error.strerror}" if isinstance(error, OSError) else ""
            entered.refused.append(Refusal("held", f"{what}{why}", allowing))


def _prepared(
    words: Sequence[str], env: Mapping[str, str], cage: Cage, gate: Gate
) -> tuple[Entered, Protected]:
    before = find_protected(cage.workspace, cage.bounds)
    inside = {**_QUIET, **env, **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), _PRIVATE), **_git_variables()}
    if sys.platform == "darwin":
        return Entered([*seatbelt.arguments(cage, before), *words], inside), before
    outer, files = bubblewrap.holder(cage, before)
    groups = bubblewrap.make_groups()
    entered = Entered([], inside, bubblewrap.limits(groups), files, groups=groups)
    try:
        inner = bubblewrap.limited(words, groups)
        if cage.settings.watch or any(
            rule.permission == NET and rule.action == "allow" for rule in cage.rules
        ):
            ours, its = socket.socketpair()
            ours.setblocking(False)
            entered.files.append(given := its.detach())
            program = watching().hex() if cage.settings.watch else ""
            source = Path(stage.__file__).read_text("utf-8")
            first = [
                bubblewrap.interpreter(),
                "-I",
                "-S",
                "-c",
                source,
                str(given),
                str(number("seccomp")),
                program,
            ]
            inner = [*first, *inner]
            closed = [path for path in before.entries if not cage.may_write(path)]
            entered.control = ours
            entered.supervisor = Supervisor(cage, gate, closed, entered.refused)
            entered.env |= proxy_variables()
        entered.words = [*outer, *inner]
    except BaseException:
        for file in entered.files:
            os.close(file)
        raise
    return entered, before


async def _hold_and_log(cage: Cage, before: Protected) -> None:
    """Hold back new entries and log them: a failed command has no result that could report them."""
    for path, held in await in_thread(partial(_hold_new, cage, before)):
        _log.warning("%r, which programs execute later, was made by a command that ended: %s", path, held)


def _hold_new(cage: Cage, before: Protected) -> list[tuple[str, str | OSError]]:
    """Move new protected entries out of their places before asking, because a user may take days to answer.

    Return the former name of each, and its new path or why it could not be moved.
    """
    held: list[tuple[str, str | OSError]] = []
    new = find_protected(cage.workspace, cage.bounds, after=True).new_since(before)
    # An entry that the command made in the holding folder's place comes first.
    for path in sorted(new, key=lambda one: one != HELD):
        if not cage.may_write(path):
            try:
                held.append((path, hold_back(cage.workspace, path, before)))
            except OSError as error:
                held.append((path, error))
    return held


@cache
def _git_variables() -> dict[str, str]:
    """Return variables with the committer's name: the file that has it is not visible. Also turn off git's
    optional locks, which cannot be made inside."""
    variables = {"GIT_OPTIONAL_LOCKS": "0"}
    git = shutil.which("git")
    names = ("user.name", "user.email") if git else ()
    count = 0
    for name in names:
        asked = subprocess.run(
            [str(git), "config", "--global", name], capture_output=True, text=True, cwd="/", check=False
        )
        if asked.returncode == 0 and (value := asked.stdout.strip()):
            variables |= {f"GIT_CONFIG_KEY_{count}": name, f"GIT_CONFIG_VALUE_{count}": value}
            count += 1
    return {**variables, "GIT_CONFIG_COUNT": str(count)} if count else variables
