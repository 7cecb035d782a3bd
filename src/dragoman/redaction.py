"""Hide passwords and keys in settings, command lines, errors and logs that are shown to users."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from dragoman.sentences import Sentence

HIDDEN = "‹hidden›"

# Names whose values are secret. `max_tokens`, `monkey` and `password_from` are not.
_NAME = (
    r"(?:[a-z0-9.]{1,30}[_-]){0,6}(?:key|pass|pat|pwd|pin|otp|dsn|sig|signature|cookie|auth|jwt|bearer)"
    r"|[a-z0-9_.-]{0,60}(?:token|secret|passw(?:or)?d|passphrase|credentials?|authorization"
    r"|(?:api|access|private|secret|auth|account|signing|encryption|subscription|license)[_-]?key)"
)
_SECRET_NAME = re.compile(rf"(?:{_NAME})", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{(?:env:)?[A-Za-z_]\w*\}")  # without a default value
_SECRET_TABLES = ("headers", "env", "private")  # tables that often contain secrets

_URL = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^\s\"'<>]+", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/?#]*@")  # everything before the last @ of the host
_SEGMENT = re.compile(r"(?<=/)(?=[^/?#]*\d)(?=[^/?#]*[A-Za-z])[A-Za-z0-9_+=-]{20,}(?=[/?#]|$)")
_PARAMETER = re.compile(rf"((?:(?<=[?&;#])|^)(?:{_NAME})=)([^&;#]+)", re.IGNORECASE)
_ASSIGNED = re.compile(rf"((?<![\w.-])(?:{_NAME})=[\"']?)([^\s\"'&;,]+)", re.IGNORECASE)
_FLAG = re.compile(rf"((?<![\w-])--?(?:{_NAME})(?:=|\s+)[\"']?)([^\s\"']+)", re.IGNORECASE)
_MEMBER = re.compile(rf"((?P<quote>[\"'])(?:{_NAME})(?P=quote)\s*:\s*[\"'])([^\"']+)", re.IGNORECASE)
_NUMBER = re.compile(rf"((?P<quote>[\"'])(?:{_NAME})(?P=quote)\s*:\s*)(-?\d[\d.e+-]*)", re.IGNORECASE)
_HEADER = re.compile(
    r"((?<![\w-])(?:(?:proxy-)?authorization|(?:[\w-]{1,40}-)?api-?key|(?:set-)?cookie|x-[\w-]{0,40}token)\s*:\s*"
    r"(?:(?:bearer|basic|token)\s+)?)([^\s\"',]+)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(\b(?:bearer|basic)\s+)([^\s\"',]{8,})", re.IGNORECASE)
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-[A-Za-z0-9_-]{6,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{6,}|gh[pousr]_[A-Za-z0-9]{10,}"
    r"|github_pat_[A-Za-z0-9_]{10,}|glpat-[A-Za-z0-9_-]{8,}|xox[abeprs]-[A-Za-z0-9-]{8,}|hf_[A-Za-z0-9]{10,}"
    r"|gsk_[A-Za-z0-9]{10,}|xai-[A-Za-z0-9]{10,}|npm_[A-Za-z0-9]{10,}|pypi-[A-Za-z0-9_-]{10,}"
    r"|nvapi-[A-Za-z0-9_-]{10,}|pplx-[A-Za-z0-9]{20,}|csk-[A-Za-z0-9]{20,}|dapi[0-9a-f]{32}|vck_[A-Za-z0-9]{20,}"
    r"|ABSK[A-Za-z0-9+/=]{20,}|bedrock-api-key-[A-Za-z0-9+/=]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*"
    r"|AKIA[0-9A-Z]{12,}|ASIA[0-9A-Z]{12,}|AIza[0-9A-Za-z_-]{20,}|ya29\.[0-9A-Za-z_-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
_RANDOM = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_+=-]{20,}")


def names_a_secret(name: str) -> bool:
    """Return whether the value of this name is secret."""
    return _SECRET_NAME.fullmatch(name.strip().lstrip("-")) is not None


def redact_text(text: str, known: Iterable[str] = ()) -> str:
    """Return the text without known secrets, and without everything that looks like a secret by its place or
    shape.

    References such as `${NAME}` stay, because they name a secret but do not reveal it.
    """
    if isinstance(text, Sentence):
        secrets = tuple(known)
        return text.mapped(lambda one: redact_text(one, secrets))
    for secret in sorted(filter(None, known), key=len, reverse=True):
        text = text.replace(secret, "‹key›")
    text = _URL.sub(_redact_url, text)
    for pattern in (_MEMBER, _NUMBER, _HEADER, _SCHEME, _FLAG, _ASSIGNED):
        text = pattern.sub(_hide_value, text)
    return _SHAPES.sub(HIDDEN, text)


def spellings(text: str, levels: int = 2) -> list[str]:
    """Return the ways in which a text can occur in others, longest first.

    Accents can be composed or decomposed, and the text can be nested in one or more levels of JSON.
    """
    found = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))}
    for _ in range(levels):
        found |= {json.dumps(one, ensure_ascii=ascii)[1:-1] for one in found for ascii in (True, False)}
    return sorted(found, key=len, reverse=True)


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return a command line without secrets: the argument after `--api-key`, and arguments that look
    random."""
    shown: list[str] = []
    secret_next = False
    for argument in arguments:
        if (secret_next and not _is_reference(argument)) or (
            _RANDOM.fullmatch(argument) and not argument.startswith("-")
        ):
            shown.append(HIDDEN)
        else:
            shown.append(_redact_argument(argument))
        secret_next = argument.startswith("-") and "=" not in argument and names_a_secret(argument)
    return shown


def redact_value(value: JsonValue, name: str = "") -> JsonValue:
    """Return a setting without secrets. `name` is its key."""
    match value:
        case dict() if name in _SECRET_TABLES:
            return {key: _hide(inner) for key, inner in value.items()}
        case dict():
            return {key: redact_value(inner, key) for key, inner in value.items()}
        case list() if name == "args" and all(isinstance(one, str) for one in value):
            return [*redact_arguments([str(one) for one in value])]
        case list():
            return [redact_value(one, name) for one in value]
        case bool() | None:
            return value
        case _ if names_a_secret(name):
            return _hide(value)
        case str():
            return redact_text(value)
        case _:
            return value


class RedactingFormatter(logging.Formatter):
    """Formats log records without secrets, including tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_text(super().format(record))


def _redact_argument(argument: str) -> str:
    name, given, value = argument.partition("=")
    if given and names_a_secret(name):
        return argument if _is_reference(value) else f"{name}={HIDDEN}"
    name, given, value = argument.partition(":")
    if given and names_a_secret(name) and not value.startswith("//"):
        return argument if _is_reference(value.strip()) else f"{name}: {HIDDEN}"
    return redact_text(argument)


def _hide(value: JsonValue) -> JsonValue:
    """Hide a value. A reference stays, because it only names the variable of the secret."""
    return value if isinstance(value, str) and _is_reference(value) else HIDDEN


def _is_reference(text: str) -> bool:
    """Return whether the text consists of references only, possibly after a word such as `Bearer`."""
    rest = _REFERENCE.sub("", text)
    return rest != text and re.fullmatch(r"\s*(?:bearer|basic|token)?\s*", rest, re.IGNORECASE) is not None


def _redact_url(found: re.Match[str]) -> str:
    url = _PARAMETER.sub(_hide_value, _USER.sub(_hide_user, found[0]))
    return _SEGMENT.sub(HIDDEN, url)


def _hide_user(found: re.Match[str]) -> str:
    return found[0] if _is_reference(found[0].removesuffix("@").replace(":", "")) else f"{HIDDEN}@"


def _hide_value(found: re.Match[str]) -> str:
    value = found[found.lastindex or 0]
    return found[0] if _is_reference(value) or value.startswith(HIDDEN) else f"{found[1]}{HIDDEN}"
