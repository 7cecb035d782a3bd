"""Define routes to write skills into the admin's folder, which turns read when they begin."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path

from dragoman.config.edits import write_text
from dragoman.errors import ConfigError, NotFound
from dragoman.runtime import Runtime
from dragoman.sentences import sentence
from dragoman.server.context import TheContext, TheOwnSettings, api_router
from dragoman.server.setup.own_settings import OwnSettings
from dragoman.server.setup.setup_models import SkillBody, SkillSetup, SkillSetupList
from dragoman.tools.skills import NAME, Skill, Skills, edit_skill, parse_skill, write_skill

router = api_router("setup", "/setup")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WINDOWS = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.IGNORECASE)


@router.get("/skills")
async def skills(context: TheContext, own: TheOwnSettings) -> SkillSetupList:
    """List all skills with their text and file."""
    found = await _look(context.runtime)
    left_out = [one for source in _sources(context.runtime) for one in source.warnings]
    items = [_view(own, skill) for skill in found.values()]
    return SkillSetupList(own.short(own.skills), items, left_out)


@router.put("/skills/{name}")
async def set_skill(context: TheContext, own: TheOwnSettings, name: str, body: SkillBody) -> SkillSetup:
    """Write a skill into the admin's folder, for turns that begin after it."""
    runtime = context.runtime
    async with own.changing_skills:
        skill = (await _look(runtime)).get(name)
        if skill is not None:
            _check_own(own, skill)
            await asyncio.to_thread(_change, own, skill, body)
        elif body.version is not None:
            raise NotFound("skill", name)
        else:
            _check_name(name)
            _check_used(runtime, own)
            await asyncio.to_thread(_add, own, _skill(name, own.skills / name, body))
        made = (await _look(runtime)).get(name)
        if made is None:  # The skill was added by hand at the same moment.
            raise NotFound("skill", name)
        return _view(own, made)


@router.delete("/skills/{name}", status_code=204)
async def drop_skill(context: TheContext, own: TheOwnSettings, name: str) -> None:
    """Remove a skill from the admin's folder: its `SKILL.md`, and the folder if it contains nothing else."""
    runtime = context.runtime
    async with own.changing_skills:
        skill = (await _look(runtime)).get(name)
        if skill is None:
            raise NotFound("skill", name)
        _check_own(own, skill)
        await asyncio.to_thread(_remove, own, skill)
        await _look(runtime)


def _sources(runtime: Runtime) -> list[Skills]:
    return [source for source in runtime.services.toolbox.sources if isinstance(source, Skills)]


async def _look(runtime: Runtime) -> dict[str, Skill]:
    """Return the current skills by name."""
    found: dict[str, Skill] = {}
    for source in _sources(runtime):
        await source.ready()
        found = {**source.skills, **found}
    return found


# ── limits ────────────────────────────────────────────────────────────────────────────────────────


def _check_name(name: str) -> None:
    """Raise ConfigError if the name cannot be a folder name on every operating system."""
    if not _NAME.fullmatch(name):
        raise ConfigError(sentence("skill.name"))
    if _WINDOWS.fullmatch(name):
        raise ConfigError(sentence("skill.windows_name", name=name))


def _check_used(runtime: Runtime, own: OwnSettings) -> None:
    if not any(own.skills in source.folders for source in _sources(runtime)):
        raise ConfigError(sentence("skill.no_folder", folder=own.short(own.skills)))


def _is_own(own: OwnSettings, skill: Skill) -> bool:
    """Return whether the skill can be changed here. A name that no URL can contain must be edited by hand."""
    if "/" in skill.name or not skill.name.strip("."):
        return False
    return (skill.folder / NAME).resolve().is_relative_to(own.skills.resolve())


def _check_own(own: OwnSettings, skill: Skill) -> None:
    if not _is_own(own, skill):
        raise ConfigError(sentence("skill.elsewhere", name=skill.name, folder=own.short(skill.folder)))


def _check_free(own: OwnSettings, folder: Path) -> None:
    """Raise ConfigError if the folder contains an unreadable skill, or has a name that other systems treat as
    the same. An existing folder without a skill is fine."""
    try:
        entries = [*folder.parent.iterdir()] if folder.parent.exists() else []
    except OSError as error:
        raise ConfigError(
            sentence("file.not_read", file=own.short(folder.parent), error=error.strerror)
        ) from error
    for entry in entries:
        alike = entry.name.casefold() == folder.name.casefold()
        if alike and (entry != folder or entry.is_symlink() or os.path.lexists(folder / NAME)):
            raise ConfigError(sentence("skill.file_taken", file=own.short(entry)))


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def _skill(name: str, folder: Path, body: SkillBody) -> Skill:
    return Skill(name, body.description, body.when, body.always, body.text, folder)


def _add(own: OwnSettings, skill: Skill) -> None:
    _check_free(own, skill.folder)
    try:
        data = write_skill(skill)
    except ValueError as error:
        raise ConfigError(sentence("skill.not_written", name=skill.name, error=error)) from error
    write_text(skill.folder / NAME, data.decode())


def _change(own: OwnSettings, skill: Skill, body: SkillBody) -> None:
    """Change only the version that the admin has seen, because the file can have changed since."""
    if body.version is None:
        raise ConfigError(sentence("skill.taken", name=skill.name))
    file = skill.folder / NAME
    try:
        before = file.read_bytes()
        if parse_skill(before, skill.name).version != body.version:
            raise ConfigError(sentence("skill.changed", name=skill.name))
        data = edit_skill(before, _skill(skill.name, skill.folder, body))
    except OSError as error:
        raise ConfigError(sentence("file.not_read", file=own.short(file), error=error.strerror)) from error
    except ValueError as error:
        raise ConfigError(sentence("skill.not_written", name=skill.name, error=error)) from error
    write_text(file, data.decode())


def _remove(own: OwnSettings, skill: Skill) -> None:
    file = skill.folder / NAME
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(sentence("file.not_removed", file=own.short(file), error=error.strerror)) from error
    with suppress(OSError):  # Other files in the folder are kept.
        skill.folder.rmdir()


def _view(own: OwnSettings, skill: Skill) -> SkillSetup:
    return SkillSetup(
        skill.name,
        skill.description,
        skill.when,
        skill.always,
        skill.text,
        own.short(skill.folder / NAME),
        _is_own(own, skill),
        skill.version,
    )
