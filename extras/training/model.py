"""The Llama architecture with a LoRA for each matrix, on the weights of a GGUF file in their original order.

llama.cpp stores queries and keys for rotation in pairs of neighbours. That order is kept here, so that the
trained weights fit the file without a permutation.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from training.gguf import read_model

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")

# what a token attends to: all tokens before it, unless this specifies otherwise
Mask: TypeAlias = BlockMask | Tensor | None


class Shape(NamedTuple):
    """The dimensions that all layers share."""

    heads: int
    shared_heads: int  # of keys and values
    width: int  # dimension of a head
    epsilon: float
    scale: float  # of what the adapter adds


class Layer(NamedTuple):
    """The weights of one layer: for each matrix the frozen ones, and the two of the adapter."""

    attention_norm: Tensor
    feed_forward_norm: Tensor
    matrices: dict[str, tuple[Tensor, Tensor, Tensor]]


class AdaptedLlama(nn.Module):
    """A frozen model, and the adapter that is trained. `hidden` gives the last layer's output."""

    def __init__(self, path: Path, *, rank: int, alpha: float, longest: int, device: str) -> None:
        super().__init__()
        self.kind = torch.bfloat16 if device == "cuda" else torch.float32
        file = read_model(path)
        values = file.values
        self.layers = int(values["llama.block_count"])
        heads = int(values["llama.attention.head_count"])
        self.shape = Shape(
            heads,
            int(values["llama.attention.head_count_kv"]),
            int(values["llama.embedding_length"]) // heads,
            float(values["llama.attention.layer_norm_rms_epsilon"]),
            alpha / rank,
        )
        self.block = block  # compiled where that pays
        self.weights = {
            name: torch.from_numpy(numbers).to(device, self.kind) for name, numbers in file.tensors.items()
        }
        self.adapter = nn.ParameterDict()
        for layer in range(self.layers):
            for matrix in MATRICES:
                rows, columns = self.weights[f"blk.{layer}.{matrix}.weight"].shape
                down = torch.empty(rank, columns, device=device)
                nn.init.kaiming_uniform_(down, a=math.sqrt(5))
                self.adapter[_key(layer, matrix, "a")] = nn.Parameter(down)
                self.adapter[_key(layer, matrix, "b")] = nn.Parameter(torch.zeros(rows, rank, device=device))
        rates = float(values["llama.rope.freq_base"]) ** (
            -torch.arange(0, self.shape.width, 2, device=device).float() / self.shape.width
        )
        angles = torch.arange(longest, device=device).float()[:, None] * rates
        self.cosines, self.sines = angles.cos().to(self.kind), angles.sin().to(self.kind)

    def hidden(self, ids: Tensor, positions: Tensor | None = None, mask: Mask = None) -> Tensor:
        """The last layer's output. Without a mask each token sees all before it."""
        if positions is None:
            positions = torch.arange(ids.shape[-1], device=ids.device)[None]
        turns = self.cosines[positions][:, None], self.sines[positions][:, None]
        x = self.weights["token_embd.weight"][ids]
        for layer in range(self.layers):
            x = self.block(x, self._layer(layer), self.shape, turns, mask)
        return _norm(x, self.weights["output_norm.weight"], self.shape.epsilon)

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weights["token_embd.weight"]).float()

    def adapter_weights(self) -> dict[str, Tensor]:
        """Return the adapter's weights under the names that llama.cpp expects."""
        found = {}
        for layer in range(self.layers):
            for matrix in MATRICES:
                for side in "ab":
                    weight = self.adapter[_key(layer, matrix, side)]
                    found[f"blk.{layer}.{matrix}.weight.lora_{side}"] = weight.detach().float().cpu()
        return found

    @torch.no_grad()
    def load_adapter(self, path: Path) -> None:
        """Continue training from these weights."""
        found = read_model(path).tensors
        for layer in range(self.layers):
            for matrix in MATRICES:
                for side in "ab":
                    weight = self.adapter[_key(layer, matrix, side)]
                    weight.copy_(torch.from_numpy(found[f"blk.{layer}.{matrix}.weight.lora_{side}"]))

    def _layer(self, layer: int) -> Layer:
        prefix = f"blk.{layer}."
        matrices = {
            matrix: (
                self.weights[f"{prefix}{matrix}.weight"],
                self.adapter[_key(layer, matrix, "a")],
                self.adapter[_key(layer, matrix, "b")],
            )
            for matrix in MATRICES
        }
        return Layer(
            self.weights[f"{prefix}attn_norm.weight"], self.weights[f"{prefix}ffn_norm.weight"], matrices
        )


def block(x: Tensor, layer: Layer, shape: Shape, turns: tuple[Tensor, Tensor], mask: Mask) -> Tensor:
    """One layer. All inputs are parameters, so that one compiled function serves all layers."""
    batch, length, _ = x.shape

    def linear(x: Tensor, matrix: str) -> Tensor:
        frozen, down, up = layer.matrices[matrix]
        learnt = F.linear(F.linear(x, down.to(x.dtype)), up.to(x.dtype)) * shape.scale
        return F.linear(x, frozen) + learnt

    def split(matrix: str, heads: int) -> Tensor:
        return linear(h, matrix).view(batch, length, heads, shape.width).transpose(1, 2)

    h = _norm(x, layer.attention_norm, shape.epsilon)
    queries = _rotate(split("attn_q", shape.heads), turns)
    keys = _rotate(split("attn_k", shape.shared_heads), turns)
    seen = _attend(queries, keys, split("attn_v", shape.shared_heads), mask)
    x = x + linear(seen.transpose(1, 2).reshape(batch, length, -1), "attn_output")
    h = _norm(x, layer.feed_forward_norm, shape.epsilon)
    gated = F.silu(linear(h, "ffn_gate")) * linear(h, "ffn_up")
    return x + linear(gated, "ffn_down")


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Mask) -> Tensor:
    if isinstance(mask, BlockMask):
        found = flex_attention(queries, keys, values, block_mask=mask, enable_gqa=True)
        assert isinstance(found, Tensor)
        return found
    each = queries.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(each, 1), values.repeat_interleave(each, 1)
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, epsilon)


def _rotate(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]
    cosines, sines = turns
    return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), -1).flatten(-2)


def _key(layer: int, matrix: str, side: str) -> str:
    return f"{layer}-{matrix}-{side}"  # a dot would be a module's
