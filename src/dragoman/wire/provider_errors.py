"""Turn errors that providers report, in any format, into a `ProviderError` with a hint.

Used for error responses (`wire/http_client/exchange.py`) and for errors inside a stream that began well
(every decoder).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import from_json

from dragoman.errors import ContextOverflow, ProviderError
from dragoman.sentences import sentence
from dragoman.wire.prose import join_halves

LONGEST = 500  # characters of a provider's message that an error repeats


@dataclass(slots=True, frozen=True)
class ErrorKind:
    """One family of errors: how to recognize it, whether it is retryable, and what a user can do."""

    name: str
    statuses: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()  # the values of an error's `code`, `type`, `status` and `reason`
    words: re.Pattern[str] | None = None  # in the message itself
    retryable: bool = False
    hint: str | None = None

    def fits(self, status: int | None, codes: frozenset[str], message: str) -> bool:
        return (
            status in self.statuses
            or not codes.isdisjoint(self.codes)
            or (self.words is not None and self.words.search(message) is not None)
        )


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


CONTEXT_OVERFLOW = "context_overflow"

# The first match applies. Words come before the status: many servers answer 400 to everything.
KINDS = (
    ErrorKind(
        "quota",
        frozenset({402}),
        frozenset(
            {"insufficient_quota", "billing_hard_limit_reached", "billing_error", "insufficient_balance"}
        ),
        _words(
            r"credit balance is too low",
            r"insufficient (credits|balance|funds)",
            r"exceeded your current quota",
            r"out of credits",
        ),
        hint=sentence("hint.credit"),
    ),
    ErrorKind(
        "rate_limit",
        frozenset({429}),
        frozenset({"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"}),
        retryable=True,
        hint=sentence("hint.rate"),
    ),
    ErrorKind(
        "auth",
        frozenset({401}),
        frozenset({"authentication_error", "invalid_api_key", "api_key_invalid", "unauthenticated"}),
        _words(
            r"api key not valid",
            r"(invalid|incorrect|missing) (api[ _-]?key|x-api-key)",
            r"no auth credentials",
        ),
        hint=sentence("hint.key"),
    ),
    ErrorKind(
        "filter",
        codes=frozenset(
            {
                "content_filter",
                "content_policy_violation",
                "responsibleaipolicyviolation",
                "data_inspection_failed",
                "prohibited_content",
                "cyber_policy_violation",
                "image_content_policy_violation",
                "moderation_blocked",
            }
        ),
        words=_words(
            r"content management policy",
            r"flagged by (our|the) (content|safety|moderation)",
            r"usage polic",
            r"rejected (by|as a result of) (our|the) safety system",
        ),
        hint=sentence("hint.filter"),
    ),
    ErrorKind(
        CONTEXT_OVERFLOW,
        frozenset({413}),
        frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"}),
        _words(
            r"prompt( is)? too long",
            r"(input|request|prompt) is too long",
            r"context (length|window|size|limit)",
            r"max(imum)? (context|prompt|model) length",
            r"token count.{0,40}exceeds",
            r"too many (input )?tokens",
            r"input tokens? exceeded",
            r"exceed\w* (the )?(model|max(imum)?) (token|length|number of tokens)",
            r"exceeds max length",
            r"reduce the length of (the|your) (messages|prompt|input)",
            r"range of input length",
            r"tokens? \+ `?max_new_tokens",
        ),
        hint=sentence("hint.shorten"),
    ),
    ErrorKind(
        "unknown_model",
        frozenset({404}),
        frozenset({"model_not_found", "not_found_error", "not_found", "deploymentnotfound"}),
        _words(r"model.{0,80}(not found|does not exist|not exist)", r"(unknown|no such) model"),
        hint=sentence("hint.model_name"),
    ),
    ErrorKind(
        "permission",
        frozenset({403}),
        frozenset({"permission_error", "permission_denied"}),
        hint=sentence("hint.permission"),
    ),
    ErrorKind(
        "overloaded",
        frozenset({503, 529}),
        frozenset({"overloaded_error", "unavailable", "service_unavailable", "engine_overloaded_error"}),
        _words(r"overloaded", r"at capacity"),
        retryable=True,
        hint=sentence("hint.overloaded"),
    ),
    ErrorKind(
        "timeout",
        frozenset({408, 504}),
        frozenset({"timeout_error", "deadline_exceeded", "request_timeout", "vector_store_timeout"}),
        retryable=True,
        hint=sentence("hint.slow"),
    ),
    ErrorKind(
        "server",
        frozenset({409, 424, *range(500, 600)}),
        frozenset({"api_error", "server_error", "internal", "internal_error", "internal_server_error"}),
        retryable=True,
        hint=sentence("hint.their_fault"),
    ),
)

OTHER = ErrorKind("invalid_request")

MAY_HEAL = frozenset({408, 409, 424, 429})  # the only 4xx statuses that are ever retried


def provider_error(
    report: JsonValue, *, status: int | None = None, retry_after: float | None = None
) -> ProviderError:
    """Return the error for a provider's report: its body as JSON, or as text."""
    message = _shortened(join_halves(_message(report))) or sentence("provider.no_reason")
    if filtered := ", ".join(_filtered(report)):
        message = sentence("provider.filtered", message=message, filtered=filtered)
    codes = frozenset(_codes(report))
    kind = next((kind for kind in KINDS if kind.fits(status, codes, message)), OTHER)
    if kind.name == CONTEXT_OVERFLOW:
        return ContextOverflow(message, status=status, hint=kind.hint)
    wait = _retry_delay(report) if retry_after is None else retry_after
    # A quota that is restored at a known time is in effect a rate limit.
    retryable = kind.retryable or (kind.name == "quota" and wait is not None)
    if status is not None and 400 <= status < 500 and status not in MAY_HEAL:
        retryable = False
    return ProviderError(
        message, kind=kind.name, status=status, retryable=retryable, retry_after=wait, hint=kind.hint
    )


def error_in_body(
    body: bytes, *, status: int | None = None, retry_after: float | None = None
) -> ProviderError:
    """Return the error for the body of a response in any format."""
    try:
        report = from_json(body)
    except ValueError:
        report = _plain(body)
    return provider_error(report, status=status, retry_after=retry_after)


def reports_error(value: object) -> bool:
    """Return whether JSON with a success status reports an error anyway."""
    if not isinstance(value, dict):
        return False
    said = value.get("base_resp")  # MiniMax, which also reports success here
    if value.get("error") or "error" in (value.get("object"), value.get("type")):
        return True
    if isinstance(said, dict) and said.get("status_code"):
        return True
    return not value.keys() & _REPLIES and any(
        isinstance(value.get(name), str) and value[name] for name in _SAID
    )


_REPLIES = frozenset({"choices", "candidates", "content", "output", "data", "usage", "usageMetadata"})
_SAID = ("message", "detail", "msg", "error_message")

# ── locations by program ──────────────────────────────────────────────────────────────────────────

MESSAGES = (
    *("message", "error", "detail", "msg", "error_message", "errors", "title"),
    *("base_resp", "status_msg"),  # MiniMax
)
CODES = ("code", "type", "status", "reason")
NESTED = ("error", "errors", "details", "innererror", "metadata")


def _message(report: JsonValue) -> str:
    """Return the message for people: the deepest `message` on the usual path."""
    match report:
        case str():
            return report.strip()
        case list():
            return "; ".join(found for one in report if (found := _message(one)))
        case dict():
            behind = report.get("metadata")  # OpenRouter wraps the report of the upstream provider
            if isinstance(behind, dict) and isinstance(raw := behind.get("raw"), str):
                return _message(_opened(raw))
            for name in MESSAGES:
                if found := _message(report.get(name)):
                    return f"{found}: {where}" if (where := _where(report)) else found
    return ""


def _where(report: dict[str, JsonValue]) -> str:
    """Return the field that a validation error of FastAPI and similar servers names."""
    place = report.get("loc")
    if not isinstance(place, list):
        return ""
    return ".".join(str(step) for step in place if step != "body")


def _opened(text: str) -> JsonValue:
    try:
        opened: JsonValue = from_json(text)
    except ValueError:
        return text
    return opened


def _codes(report: JsonValue) -> Iterator[str]:
    for level in _levels(report):
        for name in CODES:
            if isinstance(code := level.get(name), str):
                yield code.lower()


def _levels(report: JsonValue) -> Iterator[dict[str, JsonValue]]:
    match report:
        case list():
            for one in report:
                yield from _levels(one)
        case dict():
            yield report
            for name in NESTED:
                yield from _levels(report.get(name))


def _filtered(report: JsonValue) -> Iterator[str]:
    """Yield the categories for which Azure's filter refused a request."""
    for level in _levels(report):
        results = level.get("content_filter_result") or level.get("content_filter_results")
        for name, result in results.items() if isinstance(results, dict) else ():
            if isinstance(result, dict) and result.get("filtered"):
                yield name.replace("_", " ")


def _retry_delay(report: JsonValue) -> float | None:
    """Return the wait that Google states in the body: `"retryDelay": "34.5s"`."""
    for level in _levels(report):
        delay = level.get("retryDelay")
        if isinstance(delay, str) and re.fullmatch(r"\d+(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def _plain(body: bytes) -> str:
    """Return text as it is, and only the text of a web page."""
    text = body.decode(errors="replace")
    if text.lstrip().startswith("<"):
        text = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", text)
    return " ".join(text.split())


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].ljust(LONGEST + 1, "…")
