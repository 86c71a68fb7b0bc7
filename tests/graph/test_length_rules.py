"""Networks of any length: results for shorter inputs are PyTorch's, whatever lies beyond their end, and models that do not allow that are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as f
from torch.testing import assert_close

from ansor.errors import OutOfRangeError
from ansor.graph.any_length import ExtractedLengths, extract_lengths
from ansor.graph.lengths import NotForAnyLength
from ansor.graph.network import CompiledNetwork
from ansor.graph.spans import before
from tests.graph.conftest import assembled

pytestmark = pytest.mark.torch

Function = Callable[..., torch.Tensor]
LENGTH, SHORTER = 12, 5
LENGTHS = (12, 11, 6, 5, 2, 1)


def extracted(model: object, axis: int, *inputs: torch.Tensor) -> ExtractedLengths:
    """Read for the length of the inputs and a shorter one; inputs of another extent in the dimension are fixed."""
    return extract_lengths(model, {LENGTH: (inputs, {}), SHORTER: (cut(axis, SHORTER, inputs), {})}, lambda line: None)


def cut(axis: int, length: int, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(one.narrow(axis, 0, length) if one.ndim > axis and one.shape[axis] == LENGTH else one for one in inputs)


def spoiled(axis: int, length: int, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """The inputs with what must not matter beyond the end: NaN, or valid indices."""
    found = []
    for one in inputs:
        found.append(one.clone())
        if one.ndim > axis and one.shape[axis] == LENGTH:
            found[-1].narrow(axis, length, LENGTH - length)[:] = torch.nan if one.is_floating_point() else 1
    return tuple(found)


def results_of(network: CompiledNetwork, made: ExtractedLengths, length: int, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    given = network(*inputs, **{made.padding.keyword: np.asarray([length], np.int32)})
    assert isinstance(given, torch.Tensor) and made.padding.ends[0] is not None
    return before(given, made.padding.ends[0], LENGTH, length)


def check(model: Function, axis: int, *inputs: torch.Tensor) -> ExtractedLengths:
    """Compare results for several lengths."""
    made = extracted(model, axis, *inputs)
    network = assembled(made.network)
    for length in (one for one in LENGTHS if one >= made.padding.least):
        with torch.no_grad():
            wanted = model(*cut(axis, length, inputs))
        assert_close(results_of(network, made, length, spoiled(axis, length, inputs)), wanted, rtol=1e-4, atol=1e-5)
    return made


WEIGHT = torch.linspace(-9, 9, 64).cos().reshape(8, 8)
KEPT: dict[str, Function] = {
    "softmax": lambda x: x.softmax(1), "log softmax": lambda x: x.log_softmax(1), "cumsum": lambda x: x.cumsum(1),
    "layer norm": lambda x: f.layer_norm(x, (8,)),
    "centred": lambda x: x - x.mean(1, keepdim=True), "scaled": lambda x: x / x.amax(1, keepdim=True).abs().clamp(1), "dense": lambda x: f.linear(x, WEIGHT),
    "attention": lambda x: (x @ x.transpose(1, 2)).softmax(2) @ x, "fused": lambda x: f.scaled_dot_product_attention(x, x, x),
    "causal": lambda x: f.scaled_dot_product_attention(x, x, x, is_causal=True), "convolution": lambda x: f.conv1d(x.mT, torch.ones(8, 8, 3), padding=1).mT,
    "dilated": lambda x: f.conv1d(x.mT, torch.ones(8, 8, 3), padding=2, dilation=2).mT, "by length": lambda x: x.sum(1, keepdim=True) / x.shape[1] + x,
    "positions": lambda x: x + torch.arange(x.shape[1]).float()[:, None], "columns": lambda x: x.transpose(1, 2).reshape(16, -1).sigmoid().reshape(2, 8, -1).mT,
    "heads": lambda x: x.reshape(2, -1, 2, 4).transpose(1, 2).reshape(4, -1, 4).softmax(1).reshape(2, 2, -1, 4).transpose(1, 2).reshape(2, -1, 8),
    "rows": lambda x: f.gelu(x.reshape(-1, 8)).reshape(2, -1, 8), "joined": lambda x: torch.cat([x[..., 4:], x[..., :4]], 2), "first": lambda x: x + x[:, :1],
    "last": lambda x: x * x[:, -1:], "repeated": lambda x: x[:, :, None].expand(-1, -1, 3, -1).sum(2), "greatest": lambda x: x + x.argmax(1, keepdim=True),
    "places": lambda x: x[:, torch.arange(x.shape[1])], "padded": lambda x: f.pad(x, (1, 1))[..., 1:9], "products": lambda x: x.prod(1, keepdim=True) + x,
    "least": lambda x: x - x.amin((1, 2), keepdim=True), "whole mean": lambda x: x - x.mean(), "fewer": lambda x: x.mT @ x @ WEIGHT @ x.mT,
    "alternating": lambda x: x * (torch.arange(x.shape[1]) % 2)[:, None], "square": lambda x: (x @ x.mT).tril() @ x,
}  # fmt: skip
"""Functions of `[2, length, 8]`."""


@pytest.mark.parametrize("name", KEPT)
def test_operators(name: str) -> None:
    check(KEPT[name], 1, torch.randn(2, LENGTH, 8))


SAME_SHAPE = sorted(name for name in KEPT if KEPT[name](torch.zeros(2, 4, 8)).shape == (2, 4, 8))


@settings(max_examples=40)
@given(st.lists(st.sampled_from(SAME_SHAPE), min_size=2, max_size=5))
def test_compositions(names: list[str]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        for name in names:
            x = f.layer_norm(KEPT[name](x), (8,), eps=0.1)
        return x

    check(model, 1, torch.randn(2, LENGTH, 8))


@pytest.mark.parametrize(
    ("function", "least"),
    [(lambda x: x[:, 2], 3), (lambda x: x[:, -1], 1), (lambda x: x[:, -3:], 3), (lambda x: x[:, 1:4:2], 4), (lambda x: x[:, torch.tensor([0, 3])], 4),
     (lambda x: x[:, -2:, 3:5], 2), (lambda x: x.sum(1), 1)],
)  # fmt: skip
def test_elements_from_the_ends(function: Function, least: int) -> None:
    assert check(function, 1, torch.randn(2, LENGTH, 8)).padding.least == least


def test_several_inputs() -> None:
    words, mask = torch.randint(0, 9, (2, LENGTH)), torch.rand(2, LENGTH) > 0.3
    table = torch.randn(9, 4)
    check(lambda w, m, scale: (f.embedding(w, table) * m[..., None]).sum(1) * scale, 1, words, mask, torch.randn(2, 4))


def test_a_batch_is_a_length_like_any_other() -> None:
    check(lambda x: f.conv2d(x, torch.ones(4, 3, 3, 3)).relu().mean((2, 3)), 0, torch.randn(LENGTH, 3, 6, 6))


def test_batches_of_images() -> None:
    images = torch.randn(LENGTH, 2, 6, 6)
    check(lambda x: f.conv_transpose2d(f.max_pool2d(f.adaptive_avg_pool2d(x, 4), 2), torch.ones(2, 3, 2, 2)), 0, images)


def test_look_ups_at_computed_places() -> None:
    def last(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(2), mask.sum(1) - 1]

    check(last, 1, torch.randn(2, LENGTH, 8), torch.ones(2, LENGTH, dtype=torch.long))
    check(lambda x: x.gather(1, x.argmax(1, keepdim=True)), 1, torch.randn(2, LENGTH, 8))
    check(lambda x: f.embedding(x.argmax(1), x[0]), 1, torch.randn(1, LENGTH, 8))
    check(lambda x, places: x[:, places], 1, torch.randn(2, LENGTH, 8), torch.zeros(3, dtype=torch.long))


def test_look_ups_beyond_the_end_are_found() -> None:
    def model(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return x[:, places]

    inputs = torch.randn(2, LENGTH, 8), torch.tensor([6])
    made = extracted(model, 1, *inputs)
    network = assembled(made.network)
    results_of(network, made, 7, inputs)
    with pytest.raises(OutOfRangeError):
        results_of(network, made, 6, inputs)


def test_flags() -> None:
    check(lambda x: torch.stack([(x > 0).amax(1), (x > 0).amin(1), (x > 0).any(1), (x > 0).all(1)]), 1, torch.randn(2, LENGTH))


def test_rows_of_nan_beyond_the_end() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[1])
        seen = (place[None] > place[:, None]) | (place[:, None] == 0)
        return torch.where(seen, (x @ x.mT).masked_fill(~seen, -torch.inf).softmax(-1), 0.0) @ x

    check(model, 1, torch.randn(2, LENGTH, 8))


def test_integers() -> None:
    check(lambda x: torch.stack([x.amax(1), x.argmin(1), x.sum(1)]), 1, torch.randint(-90, 90, (2, LENGTH)))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x.flip(1), "whose elements depend on the length"), (lambda x: torch.cat([x, x], 1), "joins its sequence"),
        (lambda x: f.layer_norm(x.mT, (x.shape[1],)), "constant|normalises"), (lambda x: x[:, : x.shape[1] // 2], "a part of its sequence"),
        (lambda x: x[:, ::2], "a part of its sequence"), (lambda x: x * x.shape[1] ** 0.5, "a number from the length"), (lambda x: x.roll(1, 1), "depend on"),
        (lambda x: f.pad(x, (0, 0, 1, 0)), "pads its sequence"), (lambda x: f.avg_pool1d(x.mT, 2, 1), "`pool1d` along its sequence"),
        (lambda x: f.conv1d(x.mT, torch.ones(8, 8, 3)), "changes the length"), (lambda x: x.sort(1)[0], "sort.* of its sequence"),
        (lambda x: x.clamp(max=x.shape[1]), "a number from the length"), (lambda x: x.flatten(1).argmax(1), "more than its sequence"),
        (lambda x: x.sin() if x.shape[1] > 8 else x.cos(), "computes differently for 12 and for 5"),
        (lambda x: x + torch.ones(1, x.shape[1] * 2, 1)[:, :: 2] * x.shape[1], "from the length|depend on the length"), (lambda x: x.var(1), "number from"),
        (lambda x: x.reshape(2, 8, -1) + x.mT, "divides its sequence"), (lambda x: x.repeat(1, 2, 1) + x.repeat_interleave(2, 1), "different places"),
        (lambda x: torch.full((2, 8), float(x.shape[1])) + x.sum(1), "from the length"),
        (lambda x: x.amax(1) + torch.arange(80.0).reshape(10, 8).mul(x.sum())[x.shape[1] - 4], "from the length|part of"),
        (lambda x: x.sum(2)[:, :: x.shape[1] // 2], "from the length|part of"), (lambda x: (x.softmax(1), x.shape[1]), "returns a number"),
    ],
)  # fmt: skip
def test_what_shorter_inputs_would_change_is_refused(function: Function, why: str) -> None:
    with pytest.raises(NotForAnyLength, match=f"any length of a model that .*({why}).*; compile it for each length"):
        extracted(function, 1, torch.randn(2, LENGTH, 8))


def test_masks_are_written_once_and_only_where_needed() -> None:
    made = extracted(lambda x: (x @ x.mT).softmax(2) @ x + (x @ x.mT).softmax(2) @ x, 1, torch.randn(2, LENGTH, 8))
    count = {op: sum(node.op == op for node in made.network.graph) for op in ("lt", "where", "softmax")}
    assert count == {"lt": 2, "where": 3, "softmax": 2}  # in [length] and [length, 1]; the scores of each softmax, and the values: the weights are 0 there
