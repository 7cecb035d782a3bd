"""Examine the result after training: held-out tools, answered greedily and compared."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import torch
from tokenizers import Tokenizer

from training.generate import conversation
from training.model import AdaptedLlama

SEED = 4242
LIMIT = 96  # tokens of a reply
BATCH = 128
MOST_MISSES = 150
END = "<|im_end|>"


class Examination:
    """Return the model's replies to conversations that are cut before one of its messages."""

    def __init__(self, model: AdaptedLlama, tokenizer: Tokenizer, longest: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._longest = longest

    def run(self, count: int, device: str, public: str = "") -> dict[str, Any]:
        """Return this number of conversations about held-out tools: the material's, or those of a public
        file."""
        chance = random.Random(SEED)
        cases: list[tuple[list[int], str]] = []
        while len(cases) < count:
            pieces = conversation(chance, held=True, public=public)
            at = chance.choice([at for at, piece in enumerate(pieces) if piece.learnt])
            ids = self._tokenizer.encode(
                "".join(piece.text for piece in pieces[:at]), add_special_tokens=False
            ).ids
            if len(ids) + LIMIT < self._longest:
                cases.append((ids, pieces[at].text.removesuffix(END)))
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        misses: list[list[str]] = []
        for (ids, right), reply in zip(cases, self._replies([ids for ids, _ in cases], device), strict=True):
            kind = right.partition(":")[0]
            same_tools = [line.split(" ")[:2] for line in reply.split("\n")] == [
                line.split(" ")[:2] for line in right.split("\n")
            ]
            same_kind = reply.partition(":")[0] == kind and (kind != "call" or same_tools)
            for at, one in enumerate((True, same_kind, reply == right)):
                counts[kind][at] += one
            if reply != right and len(misses) < MOST_MISSES:
                misses.append([self._tokenizer.decode(ids[-90:], skip_special_tokens=False), right, reply])
        return {"counts": dict(counts), "misses": misses}

    @torch.no_grad()
    def _replies(self, prompts: list[list[int]], device: str) -> list[str]:
        order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
        replies = [""] * len(prompts)
        for begin in range(0, len(order), BATCH):
            chosen = order[begin : begin + BATCH]
            for at, ids in zip(chosen, self._continue([prompts[at] for at in chosen], device), strict=True):
                text = self._tokenizer.decode(ids, skip_special_tokens=False)
                replies[at] = text.partition(END)[0]
        return replies

    def _continue(self, prompts: list[list[int]], device: str) -> list[list[int]]:
        lengths = torch.tensor([len(ids) for ids in prompts], device=device)
        ids = torch.zeros(len(prompts), int(lengths.max()) + LIMIT, dtype=torch.long, device=device)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt, device=device)
        rows, begins = torch.arange(len(prompts), device=device), lengths.clone()
        end = self._tokenizer.token_to_id(END)
        over = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        for _ in range(LIMIT):
            hidden = self._model.hidden(ids[:, : int(lengths.max())])[rows, lengths - 1]
            following = self._model.logits(hidden).argmax(-1)
            following = torch.where(over, torch.full_like(following, end), following)
            ids[rows, lengths] = following
            over |= following == end
            lengths = lengths + (~over).long()
            if bool(over.all()):
                break
        return [ids[row, begins[row] : lengths[row]].tolist() for row in range(len(prompts))]
