"""Build the tokenizer of the bundled model from its GGUF file."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from training.gguf import read_model

_CONTROL = 3  # the type of tokens such as <|im_end|>


def load_tokenizer(path: Path) -> Tokenizer:
    """Separate digits, and split everything else like GPT-2."""
    values = read_model(path, weights=False).values
    tokens = values["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in values["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: at for at, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = values["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
