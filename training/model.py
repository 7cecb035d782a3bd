"""The Llama architecture with a LoRA beside each matrix, on the weights of a GGUF file as they stand there.

llama.cpp stores queries and keys for rotation in pairs of neighbours. That order is kept here, so that what
is learnt fits the file without a permutation.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.gguf import read_model

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class AdaptedLlama(nn.Module):
    """A frozen model, and the adapter that is trained. `hidden` gives the last layer's output."""

    def __init__(self, path: Path, *, rank: int, alpha: float, longest: int, device: str) -> None:
        super().__init__()
        self.kind = torch.bfloat16 if device == "cuda" else torch.float32
        file = read_model(path)
        values = file.values
        self.layers = int(values["llama.block_count"])
        self.heads = int(values["llama.attention.head_count"])
        self.shared_heads = int(values["llama.attention.head_count_kv"])
        self.width = int(values["llama.embedding_length"]) // self.heads
        self.epsilon = float(values["llama.attention.layer_norm_rms_epsilon"])
        self.scale = alpha / rank
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
            -torch.arange(0, self.width, 2, device=device).float() / self.width
        )
        angles = torch.arange(longest, device=device).float()[:, None] * rates
        self.cosines, self.sines = angles.cos().to(self.kind), angles.sin().to(self.kind)

    def hidden(self, ids: Tensor) -> Tensor:
        x = self.weights["token_embd.weight"][ids]
        for layer in range(self.layers):
            x = self._block(x, layer)
        return self._norm(x, "output_norm")

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weights["token_embd.weight"]).float()

    def adapter_weights(self) -> dict[str, Tensor]:
        """By the names that llama.cpp looks for."""
        found = {}
        for layer in range(self.layers):
            for matrix in MATRICES:
                for side in "ab":
                    weight = self.adapter[_key(layer, matrix, side)]
                    found[f"blk.{layer}.{matrix}.weight.lora_{side}"] = weight.detach().float().cpu()
        return found

    def _block(self, x: Tensor, layer: int) -> Tensor:
        batch, length, _ = x.shape
        h = self._norm(x, f"blk.{layer}.attn_norm")

        def split(matrix: str, heads: int) -> Tensor:
            return self._linear(h, layer, matrix).view(batch, length, heads, self.width).transpose(1, 2)

        queries = self._rotate(split("attn_q", self.heads))
        keys = self._rotate(split("attn_k", self.shared_heads))
        values = split("attn_v", self.shared_heads)
        each = self.heads // self.shared_heads
        keys, values = keys.repeat_interleave(each, 1), values.repeat_interleave(each, 1)
        seen = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self._linear(seen.transpose(1, 2).reshape(batch, length, -1), layer, "attn_output")
        h = self._norm(x, f"blk.{layer}.ffn_norm")
        gated = F.silu(self._linear(h, layer, "ffn_gate")) * self._linear(h, layer, "ffn_up")
        return x + self._linear(gated, layer, "ffn_down")

    def _linear(self, x: Tensor, layer: int, matrix: str) -> Tensor:
        down = self.adapter[_key(layer, matrix, "a")].to(self.kind)
        up = self.adapter[_key(layer, matrix, "b")].to(self.kind)
        learnt = F.linear(F.linear(x, down), up) * self.scale
        return F.linear(x, self.weights[f"blk.{layer}.{matrix}.weight"]) + learnt

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weights[f"{name}.weight"], self.epsilon)

    def _rotate(self, x: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        cosines, sines = self.cosines[: x.shape[-2]], self.sines[: x.shape[-2]]
        return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), -1).flatten(-2)


def _key(layer: int, matrix: str, side: str) -> str:
    return f"{layer}-{matrix}-{side}"  # a dot would be a module's
