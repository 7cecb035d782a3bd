"""What Google's own tools did and the sources it names: items, lines for people, citations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from dragoman.messages.message import Citation, File
from dragoman.wire.surrogates import join_halves

# ── parts ─────────────────────────────────────────────────────────────────────────────────────────

OF_TOOLS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
MADE = ("inlineData", "fileData")  # pictures and sounds that the model made
REPLAYED = (*OF_TOOLS, *MADE)


def kind_of(part: Mapping[str, Any]) -> str | None:
    """Their name for a part that is neither text nor a call; None where it says nothing."""
    return next((name for name, value in part.items() if name in REPLAYED and value), None)


def made_file(part: Mapping[str, Any]) -> File | None:
    """A picture or a sound that the model made, as a file; None where the part is something else."""
    signature = part.get("thoughtSignature")
    match part:
        case {"inlineData": {"mimeType": str(type), "data": str(data)}}:
            ending = type.partition("/")[2].partition(";")[0]
            name = f"{type.partition('/')[0]}.{ending}"
            return File(type, url=f"data:{type};base64,{data}", name=name, signature=signature)
        case {"fileData": {"mimeType": str(type), "fileUri": str(address)}}:
            return File(type, url=address, signature=signature)
        case _:
            return None


def line_of(kind: str, held: JsonValue) -> str:
    """A line for people about such a part."""
    match held:
        case {"code": str(text)} | {"output": str(text)} | {"outcome": str(text)}:
            return text
        case {"toolType": str(tool), "args": args}:
            return f"{tool} {args}" if args else tool
        case {"toolType": str(tool)}:
            return tool
        case {"mimeType": str(type), "data": str(data)}:
            return f"{type}, {len(data) * 3 // 4:,} bytes"
        case {"mimeType": str(type), "fileUri": str(address)}:
            return f"{type} at {address}"
        case _:
            return kind


# ── sources ───────────────────────────────────────────────────────────────────────────────────────


def grounding_line(metadata: Mapping[str, Any]) -> str:
    """What was searched for."""
    queries = metadata.get("webSearchQueries") or metadata.get("retrievalQueries") or ()
    return ", ".join(map(str, queries))


def pages_line(metadata: Mapping[str, Any]) -> str:
    """Which pages were read."""
    pages = metadata.get("urlMetadata") or ()
    return ", ".join(str(page.get("retrievedUrl") or "") for page in pages if isinstance(page, dict))


def grounding_citations(metadata: Mapping[str, Any], text: str | None) -> Iterator[Citation]:
    """The sources of a grounded answer: for each passage, or of the whole where none is named.

    `text` is the answer; None where it is not known to which of several texts the passages belong.
    """
    sources = [_source(chunk) for chunk in metadata.get("groundingChunks") or ()]
    used: set[int] = set()
    data = None if text is None else text.encode("utf-8", "surrogatepass")
    for support in metadata.get("groundingSupports") or ():
        start, end = _passage(data, support.get("segment") or {})
        for index in support.get("groundingChunkIndices") or ():
            if isinstance(index, int) and 0 <= index < len(sources):
                used.add(index)
                yield _citation(sources[index], start, end)
    for index, source in enumerate(sources):
        if index not in used:
            yield _citation(source, None, None)


def quoted_citations(metadata: Mapping[str, Any], text: str | None) -> Iterator[Citation]:
    """What an answer repeats at length of what it was trained on, with where that is from."""
    data = None if text is None else text.encode("utf-8", "surrogatepass")
    for given in metadata.get("citations") or metadata.get("citationSources") or ():
        start, end = _passage(data, given)
        yield Citation(_text(given.get("uri")), _text(given.get("title")), None, start, end)


def _source(chunk: JsonValue) -> dict[str, Any]:
    """The page, place or document behind a chunk, whichever it is."""
    found = (
        next((one for one in chunk.values() if isinstance(one, dict)), {}) if isinstance(chunk, dict) else {}
    )
    return {**found}


def _citation(source: dict[str, Any], start: int | None, end: int | None) -> Citation:
    title = source.get("title") or source.get("domain")
    return Citation(_text(source.get("uri")), _text(title), _text(source.get("text")), start, end)


def _passage(data: bytes | None, segment: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Where a passage stands, in characters: they count bytes. Nowhere, if it is not what they say it is."""
    start, end, words = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text")
    if data is None or not isinstance(start, int) or not isinstance(end, int):
        return None, None
    try:
        passage = data[start:end].decode()
        before = len(data[:start].decode())
    except ValueError:
        return None, None
    if end > len(data) or (words is not None and words != passage):
        return None, None
    return before, before + len(passage)


def _text(value: JsonValue) -> str | None:
    return join_halves(value) if isinstance(value, str) and value else None


# ── chances ───────────────────────────────────────────────────────────────────────────────────────


def chances(result: Mapping[str, Any]) -> list[JsonValue]:
    """How likely each token was, in the form in which messages keep it."""
    tops = [top.get("candidates") or () for top in result.get("topCandidates") or ()]
    return [
        {**_chance(one), "top_logprobs": [_chance(other) for other in (tops[n] if n < len(tops) else ())]}
        for n, one in enumerate(result.get("chosenCandidates") or ())
    ]


def _chance(candidate: Mapping[str, Any]) -> dict[str, JsonValue]:
    return {"token": _text(candidate.get("token")) or "", "logprob": candidate.get("logProbability")}
