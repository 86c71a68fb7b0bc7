from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.testing import assert_close

import ansor
from ansor.graph import attention
from ansor.graph.attention import Block, attentions
from ansor.graph.attention_blocks import in_blocks
from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.row_parts import in_parts, stretches
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch

Map = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
ROW = 4 * 48
"""Bytes of a row of scores."""


class Attention(nn.Module):
    """Attention of [batch, heads, tokens, width]. mask: what is done with the scores before the softmax."""

    def __init__(self, mask: str = "none") -> None:
        super().__init__()
        self.mask, self.bias = mask, torch.linspace(-1, 1, 3 * 48 * 48).reshape(3, 48, 48)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        if self.mask == "causal":
            return scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2)
        if self.mask == "added":
            scores = scores / 2 + m
        elif self.mask == "before":
            scores = m - scores
        elif self.mask == "earlier":
            scores = scores + torch.full((q.shape[2], 48), -torch.inf).triu(1)
        elif self.mask == "boolean":
            scores = torch.where(m > 0, scores, -9.0)
        elif self.mask == "bias":
            scores = torch.tanh(scores + self.bias)
        return scores.softmax(-1) @ v


MASKS = ("none", "causal", "earlier", "boolean", "added", "before", "bias")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits for scores of 48 columns, so that 16 rows of a head are a block."""
    monkeypatch.setattr(attention, "KEPT_BYTES", 47 * ROW)
    monkeypatch.setattr(attention, "BLOCK_BYTES", 16 * ROW)
    monkeypatch.setattr(attention, "FEWEST_ROWS", 8)


def inputs(batch: int = 2, rows: int = 48, width: int = 16, mask: tuple[int, ...] = (48, 48)) -> tuple[torch.Tensor, ...]:
    return torch.randn(batch, 3, rows, width), torch.randn(batch, 3, 48, width), torch.randn(batch, 3, 48, width), torch.randn(mask)


def network(extracted: ExtractedGraph) -> CompiledNetwork:
    return CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])


def blocks(model: nn.Module, *given: torch.Tensor, threads: int = 1) -> list[Block]:
    (found,) = attentions(extract(model, given).graph)
    return found.blocks(threads)


@given(
    st.sampled_from(MASKS), st.integers(1, 3), st.sampled_from((1, 12, 16, 30, 47, 48)), st.sampled_from((1, 4, 16)), st.integers(1, 150), st.integers(1, 64),
    st.data(),
)  # fmt: skip
@settings(max_examples=30)
def test_blocks_compute_the_same(mask: str, batch: int, rows: int, width: int, block: int, fewest: int, data: st.DataObject) -> None:
    rows = 48 if mask == "bias" else rows
    shape = data.draw(st.sampled_from(((rows, 48), (1, 48), (48,), (), (batch, 1, 1, 48), (batch, 1, rows, 48), (3, rows, 1), (batch, 3, rows, 48))))
    given_ = inputs(batch, rows, width, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "KEPT_BYTES", 0)
        patch.setattr(attention, "BLOCK_BYTES", block * ROW)
        patch.setattr(attention, "FEWEST_ROWS", fewest)
        patch.setattr(attention, "ALIGNMENT", 1)  # NumPy needs no aligned arrays
        patch.setattr(attention, "STEP", 4)
        model = Attention(mask)
        divided = in_blocks(extract(model, given_), data.draw(st.integers(1, 3)))
    assert_close(network(divided)(*given_), model(*given_))


def test_a_block_is_three_kernels() -> None:
    """The addition of the mask is in the first, though it is in another shape than the product in the graph."""
    given_ = inputs()
    whole = extract(Attention("added"), given_)
    divided = in_blocks(whole, 1)
    assert [task.name for task in whole.tasks] == ["batch_matmul_6x48x16x48_div", "add_2x3x48x48", "softmax_2x3x48x48", "batch_matmul_6x48x48x16"]
    names = ["batch_matmul_1x16x16x48_div_add", "softmax_1x16x48", "batch_matmul_1x16x48x16"]
    assert [(task.name, task.weight) for task in divided.tasks] == [(name, 18) for name in names]


def test_memory_is_for_the_scores_of_one_block() -> None:
    given_ = inputs()
    whole = extract(Attention(), given_)
    scores, block, rest = 6 * 48 * ROW, 16 * ROW, 4 * 6 * 48 * 16 * 4
    assert network(whole).arena_bytes >= 2 * scores
    assert network(in_blocks(whole, 1)).arena_bytes <= 2 * block + rest + (1 << 14)


SIZES = [(144, 8, (3, 48)), (143, 8, (2, 48)), (95, 8, (1, 48)), (47, 8, (1, 24)), (2, 8, (1, 8)), (2, 9, (1, 12)), (2, 25, (1, 48))]


@pytest.mark.parametrize(("rows", "fewest", "size"), SIZES)
def test_blocks_are_as_large_as_possible(rows: int, fewest: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "BLOCK_BYTES", rows * ROW)
    monkeypatch.setattr(attention, "FEWEST_ROWS", fewest)
    found = blocks(Attention(), *inputs())
    assert {(one.heads, one.rows) for one in found} == {size}
    assert [(one.head, one.row) for one in found] == [(head, row) for head in range(0, 6, size[0]) for row in range(0, 48, size[1])]


@pytest.mark.parametrize(("rows", "threads", "size"), [(48, 2, (1, 24)), (48, 3, (1, 24)), (47, 2, (1, 47)), (45, 2, (1, 15)), (16, 7, (6, 16))])
def test_threads_compute_a_block_together(rows: int, threads: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has rows for its own cache, equally many if possible."""
    monkeypatch.setattr(attention, "ALIGNMENT", 4)
    monkeypatch.setattr(attention, "FEWEST_ROWS", 7)
    monkeypatch.setattr(attention, "BLOCK_BYTES", 14 * ROW)
    assert {(one.heads, one.rows) for one in blocks(Attention(), *inputs(rows=rows), threads=threads)} == {size}


def test_there_are_not_too_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "MOST_BLOCKS", 6)
    assert {(one.heads, one.rows) for one in blocks(Attention(), *inputs())} == {(1, 48)}


@pytest.mark.parametrize(("width", "mask"), [(5, ()), (16, (48, 1))])
def test_parts_begin_where_kernels_may_read(width: int, mask: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of 5 floats takes 20 bytes, so that only every 16th is at a multiple of 64 bytes; likewise with one number for each row."""
    monkeypatch.setattr(attention, "BLOCK_BYTES", 12 * ROW)
    assert {one.rows for one in blocks(Attention("added"), *inputs(width=width, mask=mask))} == {16}
    odd = inputs(rows=9, width=5, mask=(9, 1))
    assert len(blocks(Attention("added"), *odd)) == 1


def test_what_stays_whole() -> None:
    class Read(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            weights = (q @ k.transpose(-1, -2)).softmax(-1)
            return weights @ v, weights

    class Columns(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return (q @ k.transpose(-1, -2)).softmax(-2) @ v

    q, k, v, _ = inputs()
    for model in (Read(), Columns()):
        whole = extract(model, (q, k, v))
        assert in_blocks(whole, 1) is whole
    few = extract(Attention(), inputs(rows=1))
    assert in_blocks(few, 1) is few


def test_a_mask_that_is_known_is_divided_once() -> None:
    """All heads share the parts of it, which are constants again."""
    graph = in_blocks(extract(Attention("bias"), inputs()), 1).graph
    assert sorted(array.shape for array in graph.constants.values()) == [(1, 16, 48)] * 9


class Masked(nn.Module):
    """Attention whose scores `masked` maps to others, and whose weights `changed` maps to others."""

    def __init__(self, masked: Map, changed: Map) -> None:
        super().__init__()
        self.masked, self.changed = masked, changed

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return self.changed(self.masked(q @ k.transpose(-1, -2), m).softmax(-1), m) @ v


SEEN = torch.ones(48, 48).tril() > 0
HIDDEN: dict[str, Map] = {
    "where": lambda x, m: torch.where(SEEN, x, -1e30),
    "masked_fill": lambda x, m: x.masked_fill(~SEEN, -torch.inf),
    "added": lambda x, m: x + torch.full((48, 48), -torch.inf).triu(1),
    "scaled": lambda x, m: torch.where(SEEN, torch.tanh(x / 4), torch.finfo(torch.float32).min),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_hidden_columns_are_left_out(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """48 columns in three steps of 16."""
    monkeypatch.setattr(attention, "STEP", 16)
    given_, model = inputs(), Masked(HIDDEN[how], lambda x, m: torch.where(SEEN, x, 0.0))
    assert [one.columns for one in blocks(model, *given_)] == [16, 32, 48] * 6
    divided = in_blocks(extract(model, given_), 1)
    assert [task.weight for task in divided.tasks] == [6] * 9
    assert_close(network(divided)(*given_), model(*given_))


def test_blocks_of_several_heads_have_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight queries see the first eight of 48 keys only. The first keys of two heads are not contiguous."""
    monkeypatch.setattr(attention, "STEP", 16)
    monkeypatch.setattr(attention, "KEPT_BYTES", 0)
    given_ = inputs(rows=8)
    assert {(one.heads, one.columns) for one in blocks(Attention("causal"), *given_)} == {(2, 48)}
    assert_close(network(in_blocks(extract(Attention("causal"), given_), 1))(*given_), Attention("causal")(*given_))


NOT_HIDDEN: dict[str, tuple[Map, Map]] = {
    "a mask that is an input": (lambda x, m: torch.where(m > 0, x, -1e30), lambda x, m: x),
    "scores that may be lower": (lambda x, m: torch.where(SEEN, x + m, -1e30), lambda x, m: x),
    "a mask that takes little away": (lambda x, m: torch.where(SEEN, x, -100.0), lambda x, m: x),
    "a row that sees nothing": (lambda x, m: torch.where(torch.ones(48, 48).tril(-1) > 0, x, -1e30), lambda x, m: x),
    "weights that do not stay zero": (lambda x, m: torch.where(SEEN, x, -1e30), lambda x, m: x + 1),
    "a mask of the first tokens": (lambda x, m: torch.where(SEEN, -1e30, x), lambda x, m: x),
    "weights of zero that choose": (lambda x, m: torch.where(SEEN, x, -1e30), lambda x, m: torch.where(x > 0, SEEN.float(), 1.0)),
    "a mask for each head": (lambda x, m: torch.where(SEEN[:3, None], x, -1e30), lambda x, m: x),
    "a known mask of all heads": (lambda x, m: torch.where(SEEN.expand(3, 48, 48), x, -1e30), lambda x, m: x),
}


@pytest.mark.parametrize("why", NOT_HIDDEN)
def test_columns_that_may_count_are_computed(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "STEP", 16)
    given_, model = inputs(), Masked(*NOT_HIDDEN[why])
    assert {one.columns for one in blocks(model, *given_)} == {48}
    assert_close(network(in_blocks(extract(model, given_), 1))(*given_), model(*given_))


def test_rows_of_a_batch_are_divided_again() -> None:
    class Positive(Attention):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
            return super().forward(q, k, v, m).relu()

    given_ = inputs()
    whole = extract(Positive("added"), given_)
    longest = max(stretches(whole, 2), key=lambda one: one.end - one.first)
    parts = in_blocks(in_parts(whole, longest).extracted, 1)
    assert max(task.weight for task in parts.tasks) == 18
    assert_close(network(parts)(*given_), Positive("added")(*given_))


def test_blocks_are_not_divided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "KEPT_BYTES", 0)
    divided = in_blocks(extract(Attention("added"), inputs()), 1)
    monkeypatch.setattr(attention, "BLOCK_BYTES", 8 * ROW)
    assert in_blocks(divided, 1) is divided


def test_a_row_may_be_read_twice() -> None:
    class Squared(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scores = x @ x.transpose(-1, -2)
            return (scores * scores).softmax(-1) @ x

    x = torch.randn(2, 3, 48, 16) / 4
    divided = in_blocks(extract(Squared(), x), 1)
    assert len(divided.placed) == 3 * 18
    assert_close(network(divided)(x), Squared()(x))


def test_weights_may_be_multiplied_by_themselves() -> None:
    def weights(x: torch.Tensor) -> torch.Tensor:
        found = torch.bmm(x, x.transpose(-1, -2)).softmax(-1)
        return torch.bmm(found, found)

    x = torch.randn(6, 48, 16)
    whole = extract(weights, x)
    assert in_blocks(whole, 1) is whole


def test_long_chains_before_a_product() -> None:
    def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(300):
            x = torch.tanh(x)
        return x @ y

    whole = extract(chain, (torch.randn(2, 48, 48), torch.randn(2, 48, 48)))
    assert in_blocks(whole, 1) is whole


def test_scores_may_be_the_result_of_another() -> None:
    class Twice(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            scores = (q @ k.transpose(-1, -2)).softmax(-1) @ k[..., :1].expand(-1, -1, -1, 48)
            return scores.softmax(-1) @ v

    q, k, v, _ = inputs()
    divided = in_blocks(extract(Twice(), (q, k, v)), 1)
    assert sum(node.op == "join" for node in divided.graph) == 1
    assert_close(network(divided)(q, k, v), Twice()(q, k, v))


def test_scores_may_be_the_sum_of_two_products() -> None:
    class Sum(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return (q @ k.transpose(-1, -2) + v @ k.transpose(-1, -2)).softmax(-1) @ v

    q, k, v, _ = inputs()
    divided = in_blocks(extract(Sum(), (q, k, v)), 1)
    assert sum(node.op == "join" for node in divided.graph) == 1
    assert_close(network(divided)(q, k, v), Sum()(q, k, v))


@pytest.mark.compiler
@pytest.mark.parametrize("mask", ["added", "causal"])
def test_compiled_networks_and_their_tasks(mask: str, tmp_path: Path) -> None:
    """What `compile` builds is what `extract_tasks` returns, what is saved, and what is exported."""
    given_ = inputs()
    model = Attention(mask)
    net = ansor.compile(model, given_, "cpu -threads=1", trials=0, progress=False, library=False)
    assert len(net.steps) == 54
    tasks = ansor.extract_tasks(model, given_, "cpu -threads=1")
    assert tasks.weights == [18, 18, 18] and {task.name for task in tasks.tasks} == {name for name, _ in net.steps}
    assert_close(net(*given_), model(*given_))
    loaded = ansor.load(net.save(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded(*(one.numpy() for one in given_)), net(*given_))
    folder = ansor.export(model, given_, tmp_path / "exported", isas=["x86-64-v3"])
    texts = (folder / "kernels" / "c99").glob("[0-9]*.c")
    assert sum("softmax_1x16x48" in text.read_text() for text in texts) == 1
