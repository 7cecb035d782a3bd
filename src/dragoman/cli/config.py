"""`dragoman config …`: which settings hold, where they were said, and whether they make sense."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from dragoman.cli.options import AsJson, Config, settings_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dragoman.config.settings import Settings

app = typer.Typer(
    help="The settings, and where they come from.", no_args_is_help=True, rich_markup_mode="markdown"
)


@app.command(epilog="Example: `dragoman config path`")
def path(config: Config = None, json: AsJson = False) -> None:
    """Where settings are read from, and where conversations are kept."""
    from dragoman.cli.printing import print_json
    from dragoman.config.build import store_of
    from dragoman.config.settings import data_folder, user_file

    settings = settings_of(config, None)
    if json:
        files: list[JsonValue] = [str(file) for file in settings.files]
        print_json({"files": files, "user": str(user_file()), "store": str(store_of(settings))}, indent=2)
        return
    for file in settings.files:
        print(f"settings  {file}")
    if user_file() not in settings.files:
        print(f"settings  {user_file()} (not there)")
    print(f"store     {store_of(settings)}")
    print(f"history   {data_folder() / 'history'}")


@app.command(epilog="Example: `dragoman config show --json`")
def show(config: Config = None, json: AsJson = False) -> None:
    """Every setting that was made, with the file and line, the variable or the flag it comes from."""
    from dragoman.cli.plain import plain
    from dragoman.cli.printing import print_json

    said = _said(settings_of(config, None))
    if json:
        print_json({name: {"value": value, "origin": origin} for name, value, origin in said}, indent=2)
        return
    from json import dumps

    for name, value, origin in said:
        print(plain(f"{name} = {dumps(value, ensure_ascii=False)}\t# {origin}"))


@app.command(epilog="Example: `dragoman config check && dragoman serve`")
def check(config: Config = None) -> None:
    """Whether the settings can be followed. The exit status is 2 where they cannot; the reason is a line."""
    from dragoman.cli.checking import check

    settings = settings_of(config, None)
    for line in check(settings):
        print(line)
    files = ", ".join(map(str, settings.files)) or "no file: the defaults hold"
    print(f"fine: {files}")


@app.command(epilog="Example: `dragoman config schema > dragoman.schema.json`")
def schema() -> None:
    """What `dragoman.toml` may say, as a JSON schema for editors."""
    from dragoman.cli.printing import print_json
    from dragoman.config.settings import schema

    print_json(schema(), indent=2)


def _said(settings: Settings) -> list[tuple[str, JsonValue, str]]:
    """Name, value and origin. Secrets are not settings: they are in the environment or the keyring."""
    from pydantic import JsonValue, TypeAdapter

    said = []
    for name, origin in sorted(settings.origins.items()):
        value: JsonValue = TypeAdapter(JsonValue).validate_python(settings.values)
        for step in name.split(".", 1):
            value = value.get(step) if isinstance(value, dict) else None
        said.append((name, _without_secrets(value), origin))
    return said


def _without_secrets(value: JsonValue) -> JsonValue:
    """Headers and environments of servers are where people put what nobody should read."""
    if not isinstance(value, dict):
        return value
    hidden = ("headers", "env")
    return {
        key: dict.fromkeys(inner, "‹hidden›")
        if key in hidden and isinstance(inner, dict)
        else _without_secrets(inner)
        for key, inner in value.items()
    }
