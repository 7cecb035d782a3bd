"""Interpret the flags of `dragoman run`: its message, settings, model and store."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from dragoman.cli.flags.chat import RunFlags
from dragoman.cli.folder_trust import settings_for
from dragoman.cli.model_choice import ChosenModel, choose_model, find_provider
from dragoman.cli.terminal.text import parse_json
from dragoman.config.build import catalog_of
from dragoman.config.settings import Settings
from dragoman.errors import BadRequest, ConfigError
from dragoman.messages.media import CHAT, ModelType
from dragoman.providers.catalog import Catalog, Provider
from dragoman.providers.sign_in import Keys
from dragoman.providers.wires import wire
from dragoman.turn.output import SchemaOutput, spec_of_schema
from dragoman.web_address import WANTED, web_address

STDIN = "-"
UNNAMED = "server"  # the provider of a model that is named without one
_SOUNDS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
_PICTURES = {"jpg": "jpeg", "jpeg": "jpeg", "webp": "webp"}  # without an option, images are PNG


def read_message(flags: RunFlags) -> str:
    """Return the words of the command line. `-`, or no words, stands for standard input.

    Returns nothing if an interrupted turn of a conversation is to be resumed.
    """
    if flags.conversation and not flags.message and (sys.stdin is None or sys.stdin.isatty()):
        return ""
    words = flags.message or [STDIN]
    if STDIN not in words:
        return " ".join(words)
    at = words.index(STDIN)
    parts = (" ".join(words[:at]), _read_stdin(), " ".join(words[at + 1 :]))
    return "\n\n".join(part for part in parts if part)


def read_output_type(flags: RunFlags) -> SchemaOutput | None:
    """Return the type of the answer. Raises ConfigError if the file contains no JSON schema."""
    if flags.output_type is None:
        return None
    try:
        schema = parse_json(flags.output_type.expanduser().read_bytes())
        if not isinstance(schema, dict):
            raise ConfigError(f"--output-type {flags.output_type!r} has no schema. It must be a JSON object.")
        return SchemaOutput(spec_of_schema(schema))
    except OSError as error:
        raise ConfigError(f"Cannot read --output-type {flags.output_type!r}: {error.strerror}") from error
    except BadRequest as error:
        raise ConfigError(f"Invalid --output-type {flags.output_type!r}: {error}") from error
    except ValueError as error:
        raise ConfigError(f"--output-type {flags.output_type!r} is not valid JSON: {error}") from error


def read_options(flags: RunFlags, model: ModelType) -> dict[str, JsonValue]:
    """Return the options of the model. The name of the output file determines its format."""
    options: dict[str, JsonValue] = {}
    if flags.out is not None and model != CHAT:
        ending = flags.out.suffix.lstrip(".").lower()
        format = ending if model == "audio-tts" and ending in _SOUNDS else None
        if model in ("image-gen", "image-edit"):
            format = _PICTURES.get(ending)
        if format is not None:
            options["format"] = format
    for text in flags.option or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"Invalid --option {text!r}. Write NAME=VALUE.")
        try:
            options[name.strip()] = parse_json(value)
        except ValueError:  # A value that is not valid JSON is a string.
            options[name.strip()] = value
    return options


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError("No message given. Put it after the options, or send it to standard input.")
    # Read the raw descriptor: a thread blocked on buffered stdin would break the exit of the program.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
        return stdin.read().decode(errors="replace")


def read_settings(flags: RunFlags) -> Settings:
    values = {
        "model": model_name(flags),
        "mode": flags.mode,
        "system": flags.system,
        "limits.max_rounds": flags.max_rounds,
    }
    return settings_for(flags, values)


@contextmanager
def temporary_store(flags: RunFlags) -> Iterator[Path | None]:
    """Yield a store for this turn only, or None to use that of the settings."""
    if not flags.forget:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "run.db"


def model_name(flags: RunFlags) -> str | None:
    """Return the model's name with a provider, even if only an address is known."""
    if flags.model is None or flags.base_url is None or "/" in flags.model:
        return flags.model
    return f"{UNNAMED}/{flags.model}"


async def choose_run_model(flags: RunFlags, settings: Settings) -> ChosenModel:
    catalog, keys = catalog_of(settings), Keys()
    named = settings.values.get("model")
    if flags.base_url is not None or flags.wire is not None:
        if named is None:
            raise ConfigError("--base-url and --wire need a model. Name it with --model.")
        catalog = catalog.with_provider(_provider_at(flags, named, catalog))
    if flags.api_key:
        if named is None:
            raise ConfigError("--api-key needs a model. Name it with --model.")
        keys = Keys({find_provider(catalog, named).name: flags.api_key})
    return await choose_model(
        settings, catalog=catalog, keys=keys, dialect=flags.dialect, progress=_show_progress
    )


def _provider_at(flags: RunFlags, name: str, catalog: Catalog) -> Provider:
    """Return the provider of a model, with the address and the wire of the flags.

    A server at a custom address uses Chat Completions unless a wire is named. Nothing is known about it, so
    its text can contain reasoning and calls.
    """
    who = name.partition("/")[0]
    if flags.base_url is None:
        provider = find_provider(catalog, name)
    else:
        provider = catalog.providers.get(who) or Provider(who, who)
        if provider.wire == "openai_responses":
            provider = Provider(
                who,
                who,
                keys=provider.keys,
                prices=provider.prices,
                facts=provider.facts,
                models=provider.models,
                own=provider.own,
            )
        provider = replace(provider, base_url=flags.base_url, base_url_from=(), routes={}, local=True)
        if web_address(flags.base_url, references=True) is None:
            raise ConfigError(f"Invalid --base-url {flags.base_url!r}: {WANTED}")
    return replace(provider, wire=wire(flags.wire).name if flags.wire else provider.wire)


def _show_progress(done: int, size: int) -> None:
    if sys.stderr.isatty():
        print(f"\r· fetching the model: {100 * done // max(size, 1)} %", end="", file=sys.stderr, flush=True)
