"""The dialects there are, by name. A new one is a file beside this one, and a line in the table."""

from __future__ import annotations

from functools import cache

from pydantic import JsonValue

from dragoman.dialects.action import Action
from dragoman.dialects.any_format import AnyFormat
from dragoman.dialects.deepseek import Deepseek
from dragoman.dialects.functionary import Functionary
from dragoman.dialects.gemma import GEMMA_DIALECTS
from dragoman.dialects.glm import GLM_DIALECTS
from dragoman.dialects.grammar import Dialect, Parsed
from dragoman.dialects.harmony import Harmony
from dragoman.dialects.hermes import Hermes
from dragoman.dialects.invoke_models import INVOKE_DIALECTS
from dragoman.dialects.json_strict import JsonStrict
from dragoman.dialects.kimi import Kimi
from dragoman.dialects.llama_json import LlamaJson
from dragoman.dialects.llama_pythonic import LlamaPythonic
from dragoman.dialects.marked_json import MARKED_JSON_DIALECTS
from dragoman.dialects.minimax_m3 import MinimaxM3
from dragoman.dialects.mistral import Mistral
from dragoman.dialects.named_json import NAMED_JSON_DIALECTS
from dragoman.dialects.olmo import Olmo
from dragoman.dialects.plamo import Plamo
from dragoman.dialects.qwen_coder import QwenCoder
from dragoman.dialects.scanner import BadCall, TextCall, Tools
from dragoman.dialects.xml_tag import XmlTag
from dragoman.errors import ConfigError

__all__ = [
    "ANY",
    "NAMES",
    "NATIVE",
    "BadCall",
    "Dialect",
    "Parsed",
    "TextCall",
    "any_format_beside",
    "dialect",
    "parse_report",
]

_ALL: tuple[Dialect, ...] = (
    JsonStrict(),
    XmlTag(),
    Hermes(),
    QwenCoder(),
    LlamaJson(),
    LlamaPythonic(),
    Mistral(),
    Deepseek(),
    *GLM_DIALECTS,
    Kimi(),
    Harmony(),
    *INVOKE_DIALECTS,
    MinimaxM3(),
    *GEMMA_DIALECTS,
    Olmo(),
    *MARKED_JSON_DIALECTS,
    Plamo(),
    Functionary(),
    *NAMED_JSON_DIALECTS,
    Action(),
)
ANY = AnyFormat(Hermes(), _ALL)
_DIALECTS: dict[str, Dialect] = {one.name: one for one in (*_ALL, ANY)}

NAMES = tuple(_DIALECTS)
NATIVE = "native"  # no dialect: the wire has calls of its own


def dialect(name: str) -> Dialect:
    try:
        return _DIALECTS[name]
    except KeyError:
        raise ConfigError(f"there is no dialect {name!r}: choose one of {', '.join(NAMES)}") from None


@cache
def any_format_beside(name: str) -> AnyFormat:
    """What reads a model's own format, and every other one it may have picked up: fine-tunes keep the name of
    the family, and not always its format."""
    return ANY if name == ANY.name else AnyFormat(dialect(name), _ALL)


def parse_report(name: str, text: str, tools: Tools | None = None) -> dict[str, JsonValue]:
    """A reply as a dialect reads it, for people to look at."""
    parsed = dialect(name).parse(text, tools)
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.calls],
        "text": parsed.text,
        "errors": list(parsed.errors),
    }
