"""The sources that searching models name: in annotations of the answer, or as lists beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from dragoman.messages.message import Citation
from dragoman.wire.openai_chat.shapes import ChatAnnotation, ChatChunk
from dragoman.wire.surrogates import join_all


class CitedSources:
    """Those of one reply. Lists come again in every chunk, and grow: the last one counts."""

    def __init__(self) -> None:
        self._cited: list[Citation] = []
        self._listed: dict[str, Citation] = {}

    def add(self, annotations: Iterable[ChatAnnotation]) -> None:
        for annotation in annotations:
            source = annotation.get("url_citation") or annotation
            if source.get("url"):
                citation = Citation(
                    source.get("url"),
                    source.get("title"),
                    source.get("content"),
                    source.get("start_index"),
                    source.get("end_index"),
                    join_all(cast("JsonValue", annotation)),
                )
                if citation not in self._cited:
                    self._cited.append(citation)

    def note(self, chunk: ChatChunk) -> None:
        for url in chunk.get("citations") or ():
            if isinstance(url, str):
                self._listed.setdefault(url, Citation(url))
        for found in chunk.get("search_results") or ():
            if address := found.get("url"):
                self._listed[address] = Citation(address, found.get("title"))

    def all(self) -> list[Citation]:
        """Those of annotations, else those of lists: where both come, they are the same."""
        return self._cited or [*self._listed.values()]
