"""The messages of a request as Converse has them: turns of two roles, made of blocks."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from dragoman.messages.media import modality
from dragoman.messages.message import CallState, File, Part, ProviderItem, Reasoning, Role, Text, ToolCall
from dragoman.messages.request import Request, RequestMessage
from dragoman.wire.bedrock_converse.media import FileBlocks
from dragoman.wire.bedrock_converse.shapes import NAME, Block, family
from dragoman.wire.files import Attachments
from dragoman.wire.lowering import (
    CallIds,
    asked_arguments,
    lower,
    may_replay,
    result_files,
    result_text,
    safe_name,
)
from dragoman.wire.role_blocks import RoleBlocks

OPENING = "(The assistant spoke first.)"
GO_ON = "Go on."
ATTACHED = "(Documents are attached.)"  # these may not come without a word
SEEN = "I have the results."  # what stands between results and words, where these may not stand together


def turns_of(request: Request, attachments: Attachments) -> list[RoleBlocks]:
    history = _History(request, attachments)
    rich = family(request.model).rich_results
    for message in lower(
        request.messages, files_apart=not rich, speaks=lambda part: is_own_part(part, request)
    ):
        history.add_message(message)
    turns = history.turns
    if not turns or turns[0].role == "assistant":
        turns.insert(0, RoleBlocks("user", [{"text": OPENING}]))
    if turns[-1].role == "assistant":
        turns.append(RoleBlocks("user", [{"text": GO_ON}]))
    for turn in turns:
        if any("document" in block for block in turn.blocks) and not any(
            "text" in one for one in turn.blocks
        ):
            turn.blocks.append({"text": ATTACHED})
    return turns


class _History:
    def __init__(self, request: Request, attachments: Attachments) -> None:
        self.turns: list[RoleBlocks] = []
        self._request = request
        self._family = family(request.model)
        self._ids = CallIds()
        self._files = FileBlocks(attachments)
        self._whole = _whole_items(request)

    def add_message(self, message: RequestMessage) -> None:
        if message.role == "user":
            self._add("user", [self._content(part) for part in message.parts])
            return
        named = [(part, self._ids.next(part)) for part in message.parts if isinstance(part, ToolCall)]
        ids = iter([id for _, id in named])
        blocks = [block for part in message.parts for block in self._assistant_part(part, ids)]
        while blocks and "reasoningContent" in blocks[-1]:
            blocks.pop()  # no reply may end in a thought
        self._add("assistant", blocks)
        self._add("user", [self._result(call, id) for call, id in named])
        self._add("user", [block for call, _ in named for block in self._audio(call)])

    def _add(self, role: Role, blocks: list[Block]) -> None:
        if not blocks:
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last.role != role:
            self.turns.append(RoleBlocks(role, blocks))
        elif not self._family.rich_results and _has_results(last) != ("toolResult" in blocks[0]):
            self.turns += [RoleBlocks("assistant", [{"text": SEEN}]), RoleBlocks(role, blocks)]
        else:
            last.blocks += blocks

    def _content(self, part: Part) -> Block:
        if isinstance(part, Text):
            return {"text": part.text}
        assert isinstance(part, File)
        return self._files.block(part)

    def _assistant_part(self, part: Part, ids: Iterator[str]) -> Iterator[Block]:
        match part:
            case Text():
                yield {"text": part.text}
            case ToolCall():
                yield {
                    "toolUse": {
                        "toolUseId": next(ids),
                        "name": safe_name(part),
                        "input": {**asked_arguments(part)},
                    }
                }
            case Reasoning() if may_replay(part, NAME, self._request.model):
                yield from self._thought(part)
            case ProviderItem(opaque=dict() as own) if _id_of(own) in self._whole:
                yield own
            case _:
                pass

    def _thought(self, part: Reasoning) -> Iterator[Block]:
        back = self._family.thoughts_back
        if back == "no":
            return
        if isinstance(part.opaque, dict):
            yield {"reasoningContent": part.opaque}
        elif part.signature is not None:
            yield {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}
        elif back == "all" and part.text:
            yield {"reasoningContent": {"reasoningText": {"text": part.text}}}

    def _result(self, call: ToolCall, id: str) -> Block:
        rich = self._family.rich_results
        shown = [file for file in result_files(call) if not _is_audio(file)] if rich else []
        brought = [self._files.block(file) for file in shown]
        content: list[JsonValue] = [{"text": result_text(call)}, *brought]
        result: Block = {"toolUseId": id, "content": content}
        if rich and call.state is not CallState.COMPLETED and not brought:  # an error holds nothing but text
            result["status"] = "error"
        return {"toolResult": result}

    def _audio(self, call: ToolCall) -> list[Block]:
        """What a call brought to hear: a result has no place for it, so it stands behind the results."""
        heard = [file for file in result_files(call) if _is_audio(file)] if self._family.rich_results else []
        blocks = [self._files.block(file) for file in heard]
        return [{"text": f"[Result of {call.tool}]"}, *blocks] if blocks else []


def _is_audio(file: File) -> bool:
    return modality(file) == "audio"


def _has_results(turn: RoleBlocks) -> bool:
    return any("toolResult" in block for block in turn.blocks)


# ── what Amazon's own tools did ───────────────────────────────────────────────────────────────────


def is_own_part(part: Part, request: Request) -> bool:
    """Whether it is what their own tools did, and goes back: to the same model, while they are asked for."""
    return (
        isinstance(part, ProviderItem)
        and may_replay(part, NAME, request.model)
        and bool(request.options.get("hosted_tools"))
    )


def _whole_items(request: Request) -> set[str]:
    """The ids of their calls that have a result, and go back with it."""
    held: dict[str, set[str]] = {"toolUse": set(), "toolResult": set()}
    for message in request.messages:
        for part in message.parts:
            if (
                is_own_part(part, request)
                and isinstance(part, ProviderItem)
                and isinstance(part.opaque, dict)
            ):
                for kind in held.keys() & part.opaque.keys():
                    held[kind].add(_id_of(part.opaque))
    return held["toolUse"] & held["toolResult"] - {""}


def _id_of(block: Block) -> str:
    inner = block.get("toolUse") or block.get("toolResult")
    return str(inner.get("toolUseId") or "") if isinstance(inner, dict) else ""
