"""PyTorch's fused layers of transformers in terms of other calls. `nn.TransformerEncoderLayer` calls them when no gradients are needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch.nn import functional as f

LAYER = torch.ops.aten._transformer_encoder_layer_fwd.default
NAMES = tuple(argument.name for argument in LAYER._schema.arguments)

OF_KEYS = 1
"""A mask of this type is [batch, keys]; those of other types broadcast to [batch, heads, queries, keys]."""


def encoder_layer(*arguments: Any, **others: Any) -> torch.Tensor:
    """The operator `aten::_transformer_encoder_layer_fwd`, with its arguments, for `src` [batch, tokens, embed_dim]."""
    given = {"mask": None, "mask_type": None, **dict(zip(NAMES, arguments, strict=False)), **others}
    src: torch.Tensor = given["src"]
    first, second = (partial(_normalised, given, number) for number in (1, 2))
    if given["norm_first"]:
        x = src + _attended(given, first(src))
        return x + _fed(given, second(x))
    x = first(src + _attended(given, src))
    return second(x + _fed(given, x))


def _normalised(given: Mapping[str, Any], number: int, x: torch.Tensor) -> torch.Tensor:
    return f.layer_norm(x, (given["embed_dim"],), given[f"norm_weight_{number}"], given[f"norm_bias_{number}"], given["eps"])


def _fed(given: Mapping[str, Any], x: torch.Tensor) -> torch.Tensor:
    inner = f.linear(x, given["ffn_weight_1"], given["ffn_bias_1"])
    return f.linear(f.gelu(inner) if given["use_gelu"] else f.relu(inner), given["ffn_weight_2"], given["ffn_bias_2"])


def _attended(given: Mapping[str, Any], x: torch.Tensor) -> torch.Tensor:
    """Attention of [batch, tokens, width] to itself. What the mask holds is left out."""
    (batch, tokens, width), heads = x.shape, given["num_heads"]
    qkv = f.linear(x, given["qkv_weight"], given["qkv_bias"]).reshape(batch, tokens, 3, heads, width // heads)
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    scores = (query * (width // heads) ** -0.5) @ key.transpose(-2, -1)
    if given["mask"] is not None:
        hidden = given["mask"].to(torch.bool)
        scores = scores.masked_fill(hidden.reshape(batch, 1, 1, tokens) if given["mask_type"] == OF_KEYS else hidden, -torch.inf)
    found = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)
    return f.linear(found, given["proj_weight"], given["proj_bias"])


DECOMPOSITIONS = {LAYER: encoder_layer}
