"""The dialects by name. A new one is a file next to this one, and a line in the table.

A dialect is a way to write calls as text, for models whose server has no calls of its own. Dragoman reads the
dialect that a model was told to write, or that its family is known for, and never another one (D6): `any`
reads them all, for users who set it. `scanner.py` begins with the theory.
"""

from __future__ import annotations

from functools import cache

from pydantic import JsonValue

from dragoman.dialects.formats import Formats
from dragoman.dialects.gemma import GEMMA_DIALECTS
from dragoman.dialects.grammar import Dialect, Parsed
from dragoman.dialects.harmony import Harmony
from dragoman.dialects.invoke import INVOKE_DIALECTS
from dragoman.dialects.json_strict import JsonStrict
from dragoman.dialects.llama_json import Functionary, LlamaJson
from dragoman.dialects.llama_pythonic import LlamaPythonic, Olmo
from dragoman.dialects.marked_json import MARKED_JSON_DIALECTS
from dragoman.dialects.minimax_m3 import MinimaxM3
from dragoman.dialects.scanner import BadCall, TextCall, Tools
from dragoman.dialects.special_tokens import Deepseek, Kimi, Mistral, Plamo, Solar
from dragoman.dialects.tool_call_tag import GLM_DIALECTS, Hermes, QwenCoder
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
    "dialect",
    "formats",
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
    Solar(),
)
_UNSURE = ("muse", "functionary")  # they begin with marks that are text to all other models
ANY = Formats("any", (Hermes(), *(one for one in _ALL if one.name not in _UNSURE)))
_DIALECTS: dict[str, Dialect] = {one.name: one for one in (*_ALL, ANY)}

NAMES = tuple(_DIALECTS)
NATIVE = "native"  # no dialect: the wire has calls of its own


def dialect(name: str) -> Dialect:
    try:
        return _DIALECTS[name]
    except KeyError:
        raise ConfigError(f"there is no dialect {name!r}: choose one of {', '.join(NAMES)}") from None


@cache
def formats(*names: str) -> Dialect:
    """What reads all of these at the same time, and writes the first."""
    known = [dialect(name) for name in dict.fromkeys(names)]
    return known[0] if len(known) == 1 else Formats("+".join(one.name for one in known), known)


def parse_report(name: str, text: str, tools: Tools | None = None) -> dict[str, JsonValue]:
    """A reply as a dialect reads it, for people to look at."""
    parsed = dialect(name).parse(text, tools)
    return {
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.calls],
        "text": parsed.text,
        "errors": list(parsed.errors),
    }
