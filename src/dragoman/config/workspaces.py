"""The folders of the settings that turns work in: what the model is told there, and what is out of bounds."""

from __future__ import annotations

import os
from pathlib import Path

from dragoman.config.formatters import formatter_programs
from dragoman.config.project_prompt import project_prompt
from dragoman.config.settings import Settings, data_folder, user_folder
from dragoman.config.sources import trust_answers
from dragoman.config.trust.contents import CODE
from dragoman.errors import ConfigError
from dragoman.messages.questions import Rule
from dragoman.store.address import StoreAddress, StoreFile
from dragoman.store.blobs.place import folder_of
from dragoman.stored_keys import keys_file
from dragoman.tools.permissions import literal
from dragoman.workspace.workspaces import Workspace


def workspace_of(settings: Settings) -> Path:
    """The folder that file tools and the shell work in. ConfigError where it is none."""
    folder = settings.workspace
    if not folder.is_dir():
        origin = settings.origins.get("workspace", "settings")
        raise ConfigError(f"{origin}: the workspace {folder} is no folder")
    return folder


def workspaces_of(settings: Settings, store: StoreAddress) -> tuple[Workspace, dict[str, Workspace]]:
    """The folder of the program, and others by name; each with what the model is told there, and with what is
    out of bounds in it."""

    def made(folder: Path, own: str = "") -> Workspace:
        project = project_prompt(settings, folder)
        prompt = "\n\n".join(text for text in (own, project.for_model if project else "") if text)
        return Workspace(folder, prompt, tuple(_protected(settings, folder, store)))

    others = {}
    for name, folder in settings.workspaces.items():
        if not folder.is_dir():
            origin = settings.origins.get(f"workspaces.{name}", "settings")
            raise ConfigError(f"{origin}: workspaces.{name}: {folder} is no folder")
        others[name] = made(folder, settings.values["workspaces"][name].get("prompt", ""))
    return made(workspace_of(settings)), others


def _protected(settings: Settings, workspace: Path, store: StoreAddress) -> list[Rule]:
    """What lies in the workspace and becomes code or prompt at the next start, beside what is so by its name
    (`tools/protected.py`). To write there is asked about whatever else is allowed. The store, keys, and what
    was said about trust, are out of bounds."""
    file = settings.values.get("mcp_file")
    asked = [
        *settings.files,
        *([settings.path(file)] if file else []),
        *(folder for folder, _ in settings.skill_folders()),
        *(settings.folder / name for name in (*CODE, ".dragoman")),
        *formatter_programs(settings, workspace),
        user_folder(),
    ]
    rules = [
        *(Rule("files.write", pattern, "ask") for path in asked for pattern in _patterns(workspace, path)),
        Rule("files.write", f"{_within(workspace, trust_answers().file)}*", "deny"),
    ]
    stored = [f"{_within(workspace, store.path)}*"] if isinstance(store, StoreFile) else []
    stored += [f"{_within(workspace, store.folder(data_folder()))}/*", f"{_within(workspace, keys_file())}*"]
    if (folder := folder_of(store.blobs)) is not None and (within := _within(workspace, folder)) != ".":
        stored += [within, f"{within}/*"]
    rules += [Rule(f"files.{what}", pattern, "deny") for pattern in stored for what in ("read", "write")]
    return [rule for rule in dict.fromkeys(rules) if not rule.pattern.startswith("..")]


def _patterns(workspace: Path, path: Path) -> list[str]:
    """For what is at a path and below: everything, where the workspace itself lies there."""
    within = _within(workspace, path)
    return ["*"] if set(within.split("/")) <= {".", ".."} else [within, f"{within}/*"]


def _within(workspace: Path, file: Path) -> str:
    """As the file tools name it; beginning with .. where it lies outside of it."""
    return literal(Path(os.path.relpath(file.resolve(), workspace.resolve())).as_posix())
