"""Products that repeat an operand read it where it is, and attention in blocks keeps its heads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

from ansor.graph import attention
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch


def shapes(extracted: ExtractedGraph, op: str) -> list[tuple[int, ...]]:
    return [node.shape for node in extracted.graph if node.op == op]


def computed(extracted: ExtractedGraph, *given: torch.Tensor) -> object:
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])(*given)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.booleans())
@settings(max_examples=30)
def test_heads_that_share_keys(batch: int, heads: int, times: int, queries: int, keys: int, causal: bool) -> None:
    q = torch.randn(batch, heads * times, queries, 4)
    k, v = (torch.randn(batch, heads, keys, width) for width in (4, 6))

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    extracted = extract(model, (q, k, v))
    assert not extracted.torch_calls and not shapes(extracted, "expand")
    assert shapes(extracted, "batch_matmul") == [(batch * heads, times * queries, keys), (batch * heads, times * queries, 6)]
    assert_close(computed(extracted, q, k, v), model(q, k, v))


@pytest.mark.parametrize("keys, values, products", [((2, 1), (2, 1), [2, 2]), ((1, 1), (1, 1), [1, 1]), ((1, 4), (2, 4), [8, 8]), ((2, 1), (2, 4), [2, 8])])
def test_broadcast_heads(keys: tuple[int, int], values: tuple[int, int], products: list[int]) -> None:
    q, k, v = torch.randn(2, 4, 5, 3), torch.randn(*keys, 6, 3), torch.randn(*values, 6, 3)
    extracted = extract(scaled_dot_product_attention, (q, k, v))
    assert not extracted.torch_calls and [shape[0] for shape in shapes(extracted, "batch_matmul")] == products
    assert_close(computed(extracted, q, k, v), scaled_dot_product_attention(q, k, v))


def test_queries_of_one_item_and_masks() -> None:
    q, k, v, mask = torch.randn(1, 4, 5, 3), torch.randn(2, 2, 6, 3), torch.randn(2, 2, 6, 3), torch.rand(2, 1, 5, 6) > 0.2

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q.expand(2, -1, -1, -1), k, v, attn_mask=mask, enable_gqa=True)

    extracted = extract(model, (q, k, v, mask))
    assert not extracted.torch_calls
    assert_close(computed(extracted, q, k, v, mask), model(q, k, v, mask))


def repeated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w[:, None].expand(2, 3, 4, 5).reshape(6, 4, 5)


def interleaved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w[None].expand(3, 2, 4, 5).reshape(6, 4, 5)


def rows_repeated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w[:, :, None].expand(2, 4, 3, 5).reshape(6, 4, 5)


@pytest.mark.parametrize(("model", "products"), [(repeated, 2), (interleaved, 6), (rows_repeated, 6)])
def test_only_matrices_that_follow_each_other_are_shared(model: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], products: int) -> None:
    x, w = torch.randn(6, 7, 4), torch.randn(2, 4, 5)
    extracted = extract(model, (x, w))
    assert [shape[0] for shape in shapes(extracted, "batch_matmul")] == [products]
    assert_close(computed(extracted, x, w), model(x, w))


def test_attention_in_blocks_keeps_its_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("KEPT_BYTES", 4096), ("BLOCK_BYTES", 2048), ("FEWEST_ROWS", 8)):
        monkeypatch.setattr(attention, limit, value)
    q, k, v = torch.randn(1, 4, 64, 16), torch.randn(1, 2, 64, 16), torch.randn(1, 2, 64, 16)

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, enable_gqa=True)

    extracted = extract(model, (q, k, v))
    assert [shape[0] for shape in shapes(extracted, "batch_matmul")] == [4, 4] and len(shapes(extracted, "expand")) == 2
    assert_close(computed(extracted, q, k, v), model(q, k, v))
