"""Run `dragoman config …`: print settings and their origins, and check them without starting anything."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from dragoman.cli.flags.setup import ConfigCheckFlags, ConfigPathFlags, ConfigSchemaFlags, ConfigShowFlags
from dragoman.cli.folder_trust import read_settings, settings_for
from dragoman.cli.terminal.text import plain, print_json
from dragoman.config.build import build_runtime, find_errors, store_of
from dragoman.config.settings import Settings, data_folder, schema, user_file
from dragoman.config.trust.contents import SETTINGS
from dragoman.redaction import redact_text, redact_value
from dragoman.wire.scripted import ScriptedModel


def show_paths(flags: ConfigPathFlags) -> None:
    settings = settings_for(flags)
    if flags.json:
        files: list[JsonValue] = [str(file) for file in settings.files]
        print_json({"files": files, "user": str(user_file()), "store": str(store_of(settings))}, indent=2)
        return
    for file in settings.files:
        print(f"settings  {file}")
    for left_out in settings.sources.left_out:
        if SETTINGS in left_out.contents.files:
            print(f"settings  {left_out.contents.folder / SETTINGS} (not trusted, and not used)")
    if user_file() not in settings.files:
        print(f"settings  {user_file()} (not there)")
    print(f"store     {store_of(settings)}")
    print(f"history   {data_folder() / 'history'}")


def show_settings(flags: ConfigShowFlags) -> None:
    listed = _with_origins(settings_for(flags))
    if flags.json:
        print_json({name: {"value": value, "origin": origin} for name, value, origin in listed}, indent=2)
        return
    for name, value, origin in listed:
        print(plain(f"{name} = {json.dumps(value, ensure_ascii=False)}\t# {origin}"))


def check_settings(flags: ConfigCheckFlags) -> int:
    """Print every error, or what is left out or not checked. Returns 2 if there are errors."""
    settings, errors = read_settings(flags.config, trust=flags.trust, asks=True)
    if errors := find_errors(settings, errors):
        for error in errors:
            print(f"dragoman: {redact_text(plain(error))}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        built = build_runtime(settings, model=ScriptedModel([]), store=Path(folder) / "check.db")
    for warning in built.warnings:
        print(f"left out: {redact_text(plain(warning))}")
    for left_out in settings.sources.left_out:
        print(f"not checked: what is in {plain(str(left_out.contents.folder))}, which is not used (--trust)")
    files = ", ".join(map(str, settings.files)) or "no settings file, so the defaults apply"
    whole = not built.warnings and not settings.sources.left_out
    print(f"{'fine' if whole else 'otherwise fine'}: {files}")
    return 0 if whole else 2


def print_schema(_: ConfigSchemaFlags) -> None:
    print_json(schema(), indent=2)


def _with_origins(settings: Settings) -> list[tuple[str, JsonValue, str]]:
    """Return the name, value and origin of each setting, without secrets."""
    values: JsonValue = TypeAdapter(JsonValue).validate_python(settings.values)
    listed = []
    for name, origin in sorted(settings.origins.items()):
        value = values
        for step in name.split(".", 1):
            value = value.get(step) if isinstance(value, dict) else None
        table, _, inner = name.partition(".")
        # For `private.phone`, the name of the table marks the value as private.
        shown = redact_value({table: {inner: value}} if inner else {table: value})
        assert isinstance(shown, dict)
        within = shown[table]
        listed.append((name, within[inner] if inner and isinstance(within, dict) else within, origin))
    return listed
