"""Load the tools and groups that a user's Python files define."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable
from hashlib import sha256
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.errors import ConfigError
from dragoman.tools.tool import Tool
from dragoman.tools.toolbox import Group

_folders: set[str] = set()  # folders whose modules are compiled from source


def load_tools(files: Iterable[Path]) -> list[Tool | Group]:
    """Return what the files define, without duplicates.

    ConfigError names the file and the line that failed.
    """
    found: dict[int, Tool | Group] = {}
    for file in files:
        defined = {id(one): one for one in vars(run_file(file)).values() if isinstance(one, Tool | Group)}
        if not defined:
            raise ConfigError(f"'{file}' has no tools. Write @tool above a function.")
        found |= defined
    grouped = {id(tool) for group in found.values() if isinstance(group, Group) for tool in group.tools}
    return [one for place, one in found.items() if place not in grouped]


def load_folder(folder: Path) -> tuple[list[Tool | Group], list[str]]:
    """Return the tools of every Python file in a folder, and the errors of files that could not be loaded.

    A file whose name begins with `_` defines no tools. Other files can import it.
    """
    found: list[Tool | Group] = []
    warnings: list[str] = []
    for file in sorted(folder.glob("*.py")):
        if file.name.startswith("_"):
            continue
        try:
            new = load_tools([file])
        except ConfigError as error:
            warnings.append(str(error))
            continue
        for one in new:
            if any(one.name == other.name and type(one) is type(other) for other in found):
                warnings.append(f"{file}: there is another {one.name} in this folder already")
            else:
                found.append(one)
    return found, warnings


def run_file(file: Path) -> ModuleType:
    """Return the module of a file outside any package. ConfigError names the line that failed."""
    name = _module_name(file)
    spec = importlib.util.spec_from_file_location(name, file, loader=_SourceLoader(name, str(file)))
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigError(f"'{file}' is not a readable Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks up the types of tools here
    folder = str(file.resolve().parent)
    if folder not in _folders:
        _folders.add(folder)
        sys.path_importer_cache.pop(folder, None)
        if _find_module not in sys.path_hooks:
            sys.path_hooks.insert(0, _find_module)
    if folder not in sys.path:
        # as if Python had started with this file: modules in its folder can be imported
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{_line_of(file, error)}: {_describe(error)}") from error
    return module


def _module_name(file: Path) -> str:
    """Return a unique module name for a file.

    Tools and plugins of several folders can have the same stem, and types are looked up by module name.
    """
    folder = file.resolve().parent
    short = re.sub(r"\W", "_", f"{folder.name}_{file.stem}")
    return f"dragoman_{short}_{sha256(str(folder).encode(errors='surrogateescape')).hexdigest()[:8]}"


class _SourceLoader(SourceFileLoader):
    """Compiles the source each time. A file in `__pycache__` may differ from the source: it may have come
    with an untrusted folder, and users review only the sources."""

    def path_stats(self, path: str) -> Any:
        raise OSError(f"{path} is compiled again")


def _find_module(path: str) -> FileFinder:
    """Find modules next to tools, and packages below, for `sys.path_hooks`."""
    if not any(Path(path).is_relative_to(folder) for folder in _folders):
        raise ImportError(path)
    return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_SourceLoader, SOURCE_SUFFIXES))


def _line_of(file: Path, error: BaseException) -> str:
    """Return the file, and the last of its lines that was reached."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    whole = str(file.resolve())
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if str(Path(frame.filename).resolve()) == whole
    ]
    return f"{file}, line {lines[-1]}" if lines else str(file)


def _describe(error: BaseException) -> str:
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
