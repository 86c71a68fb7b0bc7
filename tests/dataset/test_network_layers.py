"""Layers drawn at random in the form of networks: of all kinds, in sizes of networks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest

from ansor.algorithms.builtin import alternatives_of
from ansor.dataset.network_layers import (
    LAYER_SEEDS,
    LEAST_FLOP,
    MOST_ELEMENTS,
    MOST_FLOP,
    TALL_SEEDS,
    WINDOW_SEEDS,
    network_layer,
    tall_product,
    window_layer,
)
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te.tensor import Tensor

LAYER_KEYS = {
    0: "2f0feafe7191daf9da7c5224a0a35a41",
    1: "4451dead1f1fdcfb404da3a9c27f5e6f",
    7: "a5fa5ce53b79bdc77c41606ca9037c9d",
    359: "5df063c092c6770e94bcd63f00a71327",
}
TALL_KEYS = {
    0: "ea3068f5d8295c045f579a9b3436edf0",
    1: "029c56aafd45a5f6113a6e7dc8afc7dc",
    7: "ea52df542eb2f0ac05d523c3fa8bfff4",
    139: "33e08c065d343275ed5a5edf25793bc4",
    299: "b43805cc05cf9f4b293c0f71109c8eef",
}
WINDOW_KEYS = {
    0: "e9cf5576ce3bc82b48e18f5b1b45c972",
    1: "74fe350472456c32b8105717fde25ba1",
    7: "c134669ecb9537c5ecd529cb72755b1a",
    149: "15f0ce322082b0e96abf6f5465c185b5",
}


@pytest.mark.parametrize(("draw", "keys"), [(network_layer, LAYER_KEYS), (tall_product, TALL_KEYS), (window_layer, WINDOW_KEYS)])
def test_seeds_mean_the_declarations_of_the_records(draw: Callable[[int], list[Tensor]], keys: dict[int, str]) -> None:
    """The workload of a record is the digest of its declaration."""
    assert {seed: Dag(draw(seed)).key for seed in keys} == keys


@pytest.mark.parametrize(("draw", "seeds"), [(network_layer, LAYER_SEEDS[::6]), (tall_product, TALL_SEEDS[::6]), (window_layer, WINDOW_SEEDS[::6])])
def test_sizes_are_those_of_networks(draw: Callable[[int], list[Tensor]], seeds: range) -> None:
    for seed in seeds:
        dag = Dag(draw(seed))
        assert LEAST_FLOP <= dag.flop <= MOST_FLOP
        assert all(math.prod(tensor.shape) <= MOST_ELEMENTS for tensor in (*dag.inputs, *dag.outputs))


def test_all_kinds_and_epilogues_are_drawn() -> None:
    layers = [network_layer(seed) for seed in LAYER_SEEDS[::6]]
    ranks = Counter((len(weight.shape), weight.shape[0], weight.shape[-2] == 1) for _, weight, *_ in layers)
    assert sum(count for (rank, _, _), count in ranks.items() if rank == 2) > 10  # dense
    assert ranks[4, 1, False] > 10 and ranks[4, 3, False] and ranks[4, 3, True]  # pointwise, convolution, depthwise
    assert {inputs[-1].name for inputs in layers} == {"bias_add", "relu", "relu6", "silu", "gelu", "add"}
    assert {len(inputs) for inputs in layers} == {4, 5}  # without and with another tensor to add


def test_products_are_tall() -> None:
    shapes = [tall_product(seed)[0].shape for seed in TALL_SEEDS[::6]]
    assert sum(rows > columns for rows, columns in shapes) > 2 * len(shapes) / 3


def test_winograds_method_can_compute_window_layers() -> None:
    layers = [window_layer(seed) for seed in WINDOW_SEEDS[::6]]
    for tensors in layers:
        assert {"winograd_f4", "winograd_f2"} <= {one.name for one in alternatives_of(Dag(normal_form(tensors)), ["winograd"])}
    forms = Counter((len(weight.shape), data.shape[-1] > weight.shape[-2]) for data, weight, *_ in layers)
    assert forms[4, False] > 5 and forms[4, True] > 5 and forms[5, False] > 2  # whole, in groups, in three dimensions
