"""What Anthropic's own tools did and the sources it names: items, lines for people, citations."""

from __future__ import annotations

from pydantic import JsonValue

from dragoman.messages.message import Citation
from dragoman.wire.anthropic_messages.shapes import SERVER_CALLS, Block
from dragoman.wire.surrogates import join_all

ASKED_FOR = ("query", "url", "command", "code", "path", "pattern")  # what people want to know of a call
SHOWN = 5  # results of a search


def line_of(block: Block) -> str:
    """A line for people."""
    if block.get("type") in SERVER_CALLS:
        asked = block.get("input")
        given = asked if isinstance(asked, dict) else {}
        value = next((given[name] for name in ASKED_FOR if name in given), "")
        return f"{block.get('name')}: {value}" if value else str(block.get("name"))
    content = block.get("content")
    if isinstance(content, list):
        titles = [title for one in content if (title := _title(one))]
        more = f", and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        return ", ".join(titles[:SHOWN]) + more
    return _title(content)


def _title(result: JsonValue) -> str:
    match result:
        case str():
            return result
        case {"error_code": str(code)}:
            return code
        case {"title": str(title)} if title:
            return title
        case {"url": str(found)} | {"text": str(found)} | {"stdout": str(found)}:
            return found
        case _:
            return ""


def citation_of(given: JsonValue, start: int, end: int) -> Citation:
    """A source of the text between these characters, with their own form of it."""
    fields = given if isinstance(given, dict) else {}
    return Citation(
        _text(fields.get("url") or fields.get("source")),
        _text(fields.get("title") or fields.get("document_title")),
        _text(fields.get("cited_text")),
        start,
        end,
        join_all(given),
    )


def _text(value: JsonValue) -> str | None:
    whole = join_all(value)
    return whole if isinstance(whole, str) else None


# ── back to them ──────────────────────────────────────────────────────────────────────────────────

LOCATIONS = frozenset(
    {
        *("char_location", "page_location", "content_block_location", "search_result_location"),
        "web_search_result_location",
    }
)
OF_SEARCHES = "web_search_result_location"  # void without the search in front of it
NOT_SENT = "file_id"  # stands in their replies, and is refused in requests


def cited_blocks(text: str, citations: tuple[Citation, ...], *, searches: bool) -> list[Block]:
    """A text as blocks: each piece that has sources stands alone, with these as they came."""
    sources: dict[tuple[int, int], list[JsonValue]] = {}
    for one in citations:
        given = one.opaque
        if not isinstance(given, dict) or given.get("type") not in LOCATIONS:
            continue
        if one.start is None or one.end is None or (given["type"] == OF_SEARCHES and not searches):
            continue
        theirs: JsonValue = {key: value for key, value in given.items() if key != NOT_SENT}
        sources.setdefault((one.start, one.end), []).append(theirs)
    blocks: list[Block] = []
    at = 0
    for (start, end), cited in sorted(sources.items(), key=lambda item: item[0]):
        if not (at <= start < end <= len(text)) or not text[start:end].strip():
            continue
        blocks += _plain(text[at:start])
        blocks.append({"type": "text", "text": text[start:end], "citations": cited})
        at = end
    return [*blocks, *_plain(text[at:])]


def _plain(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []
