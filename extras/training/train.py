"""Train the adapter on one GPU, on conversations that are generated meanwhile, and write a GGUF file.

python -m training.train --base SmolLM2-135M-Instruct.Q4_1.gguf --out DIR --seconds 720
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from multiprocessing.pool import Pool
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask

from training.examine import Examination
from training.gguf import write_adapter
from training.model import AdaptedLlama, Mask, block
from training.pack import MOST_PARTS, PER_JOB, Job, Packed, make_packs
from training.tokenizer import load_tokenizer

NAME = "Dragoman: tool calls for SmolLM2-135M-Instruct"


def ahead(pool: Pool, work: Iterator[Job], count: int) -> Iterator[list[Packed]]:
    """Yield the workers' packs in the order of the seeds, with at most this number of jobs ahead."""
    pending = deque(pool.apply_async(make_packs, (job,)) for job in islice(work, count))
    while pending:
        yield pending.popleft().get()
        pending.extend(pool.apply_async(make_packs, (job,)) for job in islice(work, 1))


def batches(jobs: Iterator[list[Packed]], count: int) -> Iterator[list[Packed]]:
    pile: list[Packed] = []
    for packs in jobs:
        pile += packs
        while len(pile) >= count:
            yield pile[:count]
            del pile[:count]


def tensors(batch: list[Packed], device: str) -> dict[str, Tensor]:
    return {
        name: torch.from_numpy(np.stack([getattr(one, name) for one in batch])).to(device, non_blocking=True)
        for name in ("ids", "learnt", "positions", "parts")
    }


def mask_of(parts: Tensor, *, blocks: bool) -> Mask:
    """A token attends to what is before it in its conversation, and to the system message at its beginning.
    """

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        one, other = parts[batch, query], parts[batch, key]
        begins = (other % MOST_PARTS == 0) & (one // MOST_PARTS == other // MOST_PARTS)
        return (query >= key) & (begins | (one == other))

    count, length = parts.shape
    if blocks:
        return create_block_mask(sees, count, None, length, length, device=parts.device, _compile=True)
    every = torch.arange(length, device=parts.device)
    first, second = parts[:, :, None], parts[:, None, :]
    begins = (second % MOST_PARTS == 0) & (first // MOST_PARTS == second // MOST_PARTS)
    seen = (every[:, None] >= every[None, :]) & (begins | (first == second))
    return seen[:, None]


def loss_of(model: AdaptedLlama, batch: list[Packed], device: str, *, blocks: bool = False) -> Tensor:
    given = tensors(batch, device)
    ids, following = given["ids"].long(), given["learnt"][:, 1:]
    hidden = model.hidden(ids, given["positions"].long(), mask_of(given["parts"].int(), blocks=blocks))
    return F.cross_entropy(model.logits(hidden[:, :-1][following]), ids[:, 1:][following])


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
    if options.resume:
        model.load_adapter(Path(options.resume))
    if options.compile:
        model.block = torch.compile(model.block, dynamic=False)
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
        work = (
            Job(str(base), seed, options.per_job, options.longest, options.public, options.public_part)
            for seed in seeds
        )
        jobs = ahead(pool, work, 3 * options.workers)
        steps, seen, written, losses = 0, 0, 0, list[Tensor]()
        start = time.time()
        for batch in batches(jobs, options.batch):
            if steps < 2:
                start = time.time()  # the first conversations and the compilation take a while
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
            loss = loss_of(model, batch, device, blocks=options.blocks)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            steps, seen = steps + 1, seen + len(batch) * options.longest
            written += sum(int(one.learnt.sum()) for one in batch)
            losses.append(loss.detach())
            if steps % 100 == 0 or steps in (1, 10, 30):
                mean, losses = torch.stack(losses).mean().item(), []
                speed = seen / max(time.time() - start, 1) / 1000
                print(
                    f"step {steps}, {passed:.0f} s: loss {mean:.4f}, rate {rate:.1e}, "
                    f"{written / seen:.2f} of them learnt, {speed:.0f} k tokens/s",
                    flush=True,
                )
            if steps % options.save_every == 0:
                save(model, out / "adapter.gguf", options)
    save(model, out / "adapter.gguf", options)
    report = {**vars(options), "steps": steps, "tokens": seen, "learnt": written}
    (out / "training.json").write_text(json.dumps(report, indent=1))
    if options.examine:
        examine(model, tokenizer, options, device)


def examine(model: AdaptedLlama, tokenizer: Tokenizer, options: argparse.Namespace, device: str) -> None:
    model.block = block  # every length differs, and would be compiled again
    examination = Examination(model, tokenizer, options.longest)
    found = {
        Path(public).stem or "material": examination.run(options.examine, device, public)
        for public in {"", options.public}
    }
    (Path(options.out) / "examined.json").write_text(json.dumps(found, indent=1, ensure_ascii=False))
    print(json.dumps({name: one["counts"] for name, one in found.items()}), flush=True)


def save(model: AdaptedLlama, path: Path, options: argparse.Namespace) -> None:
    weights = {name: weight.numpy() for name, weight in model.adapter_weights().items()}
    beside = path.with_suffix(".part")  # a copy made during training is always a complete file
    write_adapter(beside, weights, alpha=options.alpha, name=NAME)
    beside.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="the GGUF file of the model")
    parser.add_argument("--out", required=True, help="the folder for the adapter and the report")
    parser.add_argument("--resume", default="", help="an adapter of the same rank to go on with")
    parser.add_argument("--public", default="", help="more tools: a file that training.public made")
    parser.add_argument("--public-part", type=float, default=0.5, help="of the conversations, about those")
    parser.add_argument("--seconds", type=float, default=720, help="of training")
    parser.add_argument("--steps", type=int, default=10**9, help="at most")
    parser.add_argument("--rank", type=int, default=64)
    parser.add_argument("--alpha", type=float, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--warm", type=int, default=60, help="steps until the rate is reached")
    parser.add_argument("--batch", type=int, default=32, help="packs of a step")
    parser.add_argument("--longest", type=int, default=1536, help="tokens of a pack")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--per-job", type=int, default=PER_JOB)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument(
        "--examine", type=int, default=400, help="conversations with tools that were held out"
    )
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--blocks", action="store_true", help="attention that leaves out what nobody sees")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
