"""M1: the type of a model follows from its name, the settings, or its server's list."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_core import from_json

from dragoman.errors import ConfigError
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.choice import choose
from dragoman.providers.listing import ListedModel, LocalServer, read_list
from dragoman.providers.models import Models
from dragoman.providers.sign_in import Keys

NO_KEYS = Keys(environment={}, use_keyring=False)


@pytest.mark.parametrize(
    ("name", "type", "takes"),
    [
        ("openai/gpt-image-1", "image-gen", ("text", "image")),
        ("openai/gpt-image-2-2027-01-01", "image-gen", ("text", "image")),
        ("openai/dall-e-3", "image-gen", ("text",)),
        ("openai/whisper-1", "audio-stt", ("text", "audio")),
        ("openai/gpt-4o-mini-transcribe", "audio-stt", ("text", "audio")),
        ("openai/gpt-4o-transcribe-diarize", "audio-stt", ("text", "audio")),
        ("openai/gpt-4o-mini-tts", "audio-tts", ("text",)),
        ("openai/tts-1-hd", "audio-tts", ("text",)),
        ("xai/grok-2-image", "image-gen", ("text", "image")),
        ("groq/whisper-large-v3-turbo", "audio-stt", ("text", "audio")),
        ("together/black-forest-labs/FLUX.1-schnell", "image-gen", ("text",)),
        ("fireworks/accounts/fireworks/models/flux-1-dev", "image-gen", ("text",)),
        ("vllm/openai/whisper-large-v3", "audio-stt", ("text", "audio")),
        ("vllm/Qwen/Qwen-Image-Edit", "image-edit", ("text", "image")),
        ("openai/gpt-4o", "chat", ("text", "image", "file")),
        ("openrouter/black-forest-labs/flux.2-pro", "chat", ("text",)),
        ("google/gemini-2.5-flash-image", "chat", None),
        ("ollama/qwen3:8b", "chat", ("text",)),
    ],
)
def test_known_names_need_not_be_told(name: str, type: str, takes: tuple[str, ...] | None) -> None:
    """M1"""
    catalog = load_catalog()
    traits = catalog.traits(*catalog.find(name))
    assert traits.type == type
    assert takes is None or traits.modalities == takes


def test_the_settings_say_what_a_model_of_ones_own_does(tmp_path: Path) -> None:
    """Models in the settings come before all others when a model of a type is needed (M1)."""
    file = tmp_path / "dragoman.toml"
    file.write_text(
        '[providers.studio]\nbase_url = "http://127.0.0.1:9/v1"\nlocal = true\n'
        '[providers.studio.models]\n"painter" = { type = "image-gen", unit_prices = { image = 0.5 } }\n'
    )
    catalog = load_catalog(file)
    traits = catalog.traits(*catalog.find("studio/painter"))
    assert (traits.type, traits.unit_prices) == ("image-gen", {"image": 0.5})
    keys = Keys({"openai": "sk-0123456789"}, environment={}, use_keyring=False)
    models = Models(catalog=catalog, keys=keys)
    assert models.of_type("image-gen")[:2] == ["studio/painter", "openai/gpt-image-1"]
    assert models.of_type("image-edit")[0] == "openai/gpt-image-1"
    assert models.types() == {"image-gen", "image-edit", "audio-stt", "audio-tts"}


def test_a_type_that_there_is_none_of_is_an_error_of_the_settings(tmp_path: Path) -> None:
    """M1"""
    file = tmp_path / "dragoman.toml"
    file.write_text('[providers.openai.models]\n"x" = { type = "film" }\n')
    with pytest.raises(ConfigError, match=r"models\.x\.type"):
        load_catalog(file)


def test_a_protocol_that_has_no_such_models_says_so() -> None:
    """M1"""
    catalog = load_catalog()
    own = catalog.providers["anthropic"]
    odd = Provider("odd", "Odd", "http://127.0.0.1:9", wire=own.wire, models={"x": {"type": "image-gen"}})
    models = Models(catalog=catalog.with_provider(odd), keys=Keys({"odd": "k"}, environment={}))
    with pytest.raises(ConfigError, match="has no models of type image-gen"):
        models("odd/x")


def test_what_a_server_says_of_its_models_counts_where_nothing_else_is_known() -> None:
    """M1: in the words of Together, and of Speaches."""
    answer = {
        "data": [
            {"id": "imagine", "type": "image"},
            {"id": "hear", "task": "automatic-speech-recognition"},
            {"id": "chat", "type": "chat", "context_length": 8000},
        ]
    }
    found = read_list(answer)  # type: ignore[arg-type]
    assert found == [
        ListedModel("imagine", None, "image-gen"),
        ListedModel("hear", None, "audio-stt"),
        ListedModel("chat", 8000),
    ]
    models = Models(catalog=load_catalog(), keys=NO_KEYS)
    models.note_types({"vllm/imagine": "image-gen", "vllm/gpt-oss-120b": "chat"})
    assert (models("vllm/imagine").type, models("vllm/gpt-oss-120b").type) == ("image-gen", "chat")


def test_what_a_server_said_of_its_models_is_known_after_a_restart(tmp_path: Path) -> None:
    """A resumed turn uses the same handler as before (M1)."""
    file = tmp_path / "data" / "model-types.json"
    Models(catalog=load_catalog(), keys=NO_KEYS, types_file=file).note_types({"vllm/imagine": "image-gen"})
    again = Models(catalog=load_catalog(), keys=NO_KEYS, types_file=file)
    assert again("vllm/imagine").type == "image-gen"
    again.note_types({"vllm/imagine": "image-edit"})  # another model under that name
    assert Models(catalog=load_catalog(), keys=NO_KEYS, types_file=file)("vllm/imagine").type == "image-edit"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a/b": "piano", "c/d": 3}'])
def test_a_file_of_types_that_is_broken_is_written_anew(tmp_path: Path, text: str) -> None:
    """M1"""
    file = tmp_path / "model-types.json"
    file.write_text(text)
    models = Models(catalog=load_catalog(), keys=NO_KEYS, types_file=file)
    models.note_types({"vllm/imagine": "image-gen"})
    assert from_json(file.read_bytes()) == {"vllm/imagine": "image-gen"}


async def test_a_model_that_does_not_talk_is_not_chosen_to() -> None:
    """M1 × R1: a server on this machine may have others first."""

    async def nearby() -> list[LocalServer]:
        return [LocalServer("vllm", "http://127.0.0.1:8000/v1", ("whisper-large-v3", "qwen3-8b"))]

    chosen = await choose(None, catalog=load_catalog(), keys=NO_KEYS, servers=nearby)
    assert chosen.name == "vllm/qwen3-8b"


def test_models_of_different_types_are_no_chain() -> None:
    """M1"""
    keys = Keys({"openai": "sk-0123456789"}, environment={}, use_keyring=False)
    with pytest.raises(ConfigError, match="different types"):
        Models(catalog=load_catalog(), keys=keys)("openai/gpt-4o, openai/tts-1")
