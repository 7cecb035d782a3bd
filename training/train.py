"""Trains the adapter on one GPU, on conversations that are made while it learns, and writes a GGUF file.

python -m training.train --base SmolLM2-135M-Instruct.Q4_1.gguf --out DIR --seconds 720
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from training.examine import Examination
from training.generate import Piece, conversation
from training.gguf import write_adapter
from training.model import AdaptedLlama
from training.tokenizer import load_tokenizer

PER_JOB = 250  # conversations that a worker makes at a time
POOL = 16  # jobs of which batches are made, so that those of one length are together
STEP = 32  # lengths are rounded up to it
NAME = "Dragoman: tool calls for SmolLM2-135M-Instruct"

_worker: dict[str, Tokenizer] = {}


@dataclass(slots=True, frozen=True)
class Encoded:
    """A conversation as tokens, and which of them the model has to learn to write."""

    ids: NDArray[np.uint16]
    learnt: NDArray[np.bool_]


def encode(tokenizer: Tokenizer, pieces: list[Piece]) -> Encoded:
    encoded = tokenizer.encode_batch([piece.text for piece in pieces], add_special_tokens=False)
    ids = [id for one in encoded for id in one.ids]
    learnt = [piece.learnt for piece, one in zip(pieces, encoded, strict=True) for _ in one.ids]
    return Encoded(np.array(ids, dtype=np.uint16), np.array(learnt, dtype=np.bool_))


def make_conversations(job: tuple[str, int, int, int]) -> list[Encoded]:
    """In a worker: conversations of one seed, those that are too long left out."""
    base, seed, count, longest = job
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if base not in _worker:
        _worker[base] = load_tokenizer(Path(base))
    chance = random.Random(seed)
    made = (encode(_worker[base], conversation(chance)) for _ in range(count))
    return [one for one in made if len(one.ids) <= longest]


def ahead(pool: Pool, work: Iterator[tuple[str, int, int, int]], count: int) -> Iterator[list[Encoded]]:
    """What the workers make, in the order of the seeds, and never more than so many jobs ahead of its use."""
    pending = deque(pool.apply_async(make_conversations, (job,)) for job in islice(work, count))
    while pending:
        yield pending.popleft().get()
        pending.extend(pool.apply_async(make_conversations, (job,)) for job in islice(work, 1))


def batches(jobs: Iterator[list[Encoded]], tokens: int, chance: random.Random) -> Iterator[list[Encoded]]:
    """Batches of about so many tokens, each of conversations of about one length."""
    while True:
        pile = [one for _ in range(POOL) for one in next(jobs)]
        pile.sort(key=lambda one: len(one.ids) + chance.random() * STEP)
        made: list[list[Encoded]] = [[]]
        for one in pile:
            width = _rounded(max(len(one.ids), *(len(other.ids) for other in made[-1]), 1))
            if made[-1] and width * (len(made[-1]) + 1) > tokens:
                made.append([])
            made[-1].append(one)
        chance.shuffle(made)
        yield from made


def tensors(batch: list[Encoded], device: str) -> tuple[Tensor, Tensor]:
    width = _rounded(max(len(one.ids) for one in batch))
    ids = np.zeros((len(batch), width), dtype=np.int64)
    learnt = np.zeros((len(batch), width), dtype=np.bool_)
    for row, one in enumerate(batch):
        ids[row, : len(one.ids)] = one.ids
        learnt[row, : len(one.ids)] = one.learnt
    return (
        torch.from_numpy(ids).to(device, non_blocking=True),
        torch.from_numpy(learnt).to(device, non_blocking=True),
    )


def loss_of(model: AdaptedLlama, batch: list[Encoded], device: str) -> Tensor:
    ids, learnt = tensors(batch, device)
    hidden = model.hidden(ids)[:, :-1][learnt[:, 1:]]
    return F.cross_entropy(model.logits(hidden), ids[:, 1:][learnt[:, 1:]])


def train(options: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    began = time.time()
    base, out = Path(options.base), Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(base)
    model = AdaptedLlama(
        base, rank=options.rank, alpha=options.alpha, longest=options.longest + 128, device=device
    )
    if options.compile:
        model.hidden = torch.compile(model.hidden, dynamic=True)  # type: ignore[method-assign]
    parameters = list(model.adapter.values())
    optimizer = torch.optim.AdamW(
        parameters, lr=options.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=device == "cuda"
    )
    print(
        f"{device}: {sum(one.numel() for one in parameters)} weights to learn, {time.time() - began:.0f} s",
        flush=True,
    )
    seeds = range(options.seed * 1_000_000, options.seed * 1_000_000 + 900_000)
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        work = ((str(base), seed, options.per_job, options.longest) for seed in seeds)
        jobs = ahead(pool, work, 3 * options.workers)
        steps, conversations, seen, losses = 0, 0, 0, list[Tensor]()
        start: float | None = None
        for batch in batches(jobs, options.tokens, random.Random(options.seed)):
            start = start or time.time()  # the first conversations take a while
            passed = time.time() - start
            part = max(passed / options.seconds, steps / options.steps)
            if part >= 1:
                break
            rate = (
                options.rate
                * min(1, (steps + 1) / options.warm)
                * (0.02 + 0.49 * (1 + math.cos(math.pi * part)))
            )
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = loss_of(model, batch, device)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            steps, conversations = steps + 1, conversations + len(batch)
            seen += sum(len(one.ids) for one in batch)
            losses.append(loss.detach())
            if steps % 100 == 0 or steps in (1, 10, 30):
                mean, losses = torch.stack(losses).mean().item(), []
                speed = seen / max(time.time() - start, 1) / 1000
                print(
                    f"step {steps}, {passed:.0f} s: loss {mean:.4f}, rate {rate:.1e}, "
                    f"{conversations} conversations, {speed:.0f} k tokens/s",
                    flush=True,
                )
            if steps % options.save_every == 0:
                save(model, out / "adapter.gguf", options)
    save(model, out / "adapter.gguf", options)
    report = {**vars(options), "steps": steps, "conversations": conversations, "tokens": seen}
    (out / "training.json").write_text(json.dumps(report, indent=1))
    if options.examine:
        found = Examination(model, tokenizer, options.longest).run(options.examine, device)
        (out / "examined.json").write_text(json.dumps(found, indent=1, ensure_ascii=False))
        print(json.dumps(found["counts"]), flush=True)


def save(model: AdaptedLlama, path: Path, options: argparse.Namespace) -> None:
    weights = {name: weight.numpy() for name, weight in model.adapter_weights().items()}
    write_adapter(path, weights, alpha=options.alpha, name=NAME)


def _rounded(length: int) -> int:
    return -(-length // STEP) * STEP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="the GGUF file of the model")
    parser.add_argument("--out", required=True, help="the folder for the adapter and the report")
    parser.add_argument("--seconds", type=float, default=720, help="of training")
    parser.add_argument("--steps", type=int, default=10**9, help="at most")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--alpha", type=float, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--warm", type=int, default=60, help="steps until the rate is reached")
    parser.add_argument("--tokens", type=int, default=49152, help="of a batch")
    parser.add_argument("--longest", type=int, default=1536, help="tokens of a conversation")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--per-job", type=int, default=PER_JOB)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument(
        "--examine", type=int, default=400, help="conversations with tools that were held out"
    )
    parser.add_argument("--compile", action="store_true")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
