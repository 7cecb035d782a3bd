"""List the wires, by name: one for each protocol, and one for each kind of media model."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.errors import ConfigError
from dragoman.messages.media import CHAT, ModelType
from dragoman.providers.catalog import Provider, Traits
from dragoman.sentences import sentence
from dragoman.wire import (
    anthropic_messages,
    bedrock_converse,
    gemini,
    openai_chat,
    openai_images,
    openai_responses,
)
from dragoman.wire.endpoint import NO_QUIRKS, Quirks
from dragoman.wire.media.imagen import Imagen
from dragoman.wire.openai_audio.speech import OpenAISpeech
from dragoman.wire.openai_audio.transcription import OpenAITranscription
from dragoman.wire.wire import Wire

MEDIA_WIRES: dict[ModelType, Callable[..., Wire]] = {
    "image-gen": openai_images.WIRE,
    "image-edit": openai_images.WIRE,
    "audio-stt": OpenAITranscription,
    "audio-tts": OpenAISpeech,
}
# A server that implements one of these may implement the others, too.
_IMITATED = ("openai_chat", "openai_responses")

WIRES: dict[str, Callable[..., Wire]] = {
    "openai_chat": openai_chat.WIRE,
    "openai_responses": openai_responses.WIRE,
    "anthropic_messages": anthropic_messages.WIRE,
    "gemini": gemini.WIRE,
    "bedrock_converse": bedrock_converse.WIRE,
}


def wire(name: str, *, quirks: Quirks = NO_QUIRKS) -> Wire:
    """Return the wire with this name, or the only one that begins like this."""
    meant = [known for known in WIRES if name and known.startswith(name)]
    if name not in WIRES and len(meant) != 1:
        raise ConfigError(sentence("wire.unknown", name=name, known=", ".join(WIRES)))
    return WIRES[name if name in WIRES else meant[0]](quirks=quirks)


def wire_for(provider: Provider, traits: Traits, model: str) -> Wire:
    if traits.type == CHAT:
        return wire(provider.wire, quirks=provider.quirks)
    if provider.wire == "gemini" and traits.type == "image-gen" and "imagen" in model:
        return Imagen(provider.quirks)
    if provider.wire not in _IMITATED:
        raise ConfigError(
            sentence("provider.no_type", provider=provider.title, wire=provider.wire, type=traits.type)
        )
    return MEDIA_WIRES[traits.type](quirks=provider.quirks)
