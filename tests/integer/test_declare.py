"""Declarations of operators against the reference in NumPy, element by element."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.integer.declare import declaration
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import SIGNED, Convolution, Dense, Form, Operator
from ansor.integer.reference import run
from ansor.integer.rescale import rescale_of
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from tests.integer.networks import convolutions, inputs_of, network_of, others


def _agrees(network: IntegerNetwork, seed: int) -> None:
    (one,) = network.operators
    inputs = inputs_of(network, seed)
    tensors = declaration(one, [network.tensors[name].shape for name in one.inputs])
    arrays = [*(inputs[name] for name in one.inputs), *one.constants.values()]
    (found,) = evaluate(tensors[-1:], dict(zip((tensor.name for tensor in tensors), arrays, strict=False)))
    assert np.array_equal(found, run(network, inputs)[one.output])


@given(convolutions(), st.integers(0, 1000))
@settings(max_examples=60)
def test_convolutions_are_those_of_the_reference(drawn: tuple[Convolution, tuple[int, ...]], seed: int) -> None:
    _agrees(network_of(drawn[0], drawn[1]), seed)


@given(others(), st.integers(0, 1000))
@settings(max_examples=60)
def test_other_operators_are_those_of_the_reference(drawn: tuple[Operator, tuple[tuple[int, ...], ...]], seed: int) -> None:
    _agrees(network_of(drawn[0], *drawn[1]), seed)


@given(convolutions(), st.integers(0, 1000), st.booleans(), st.integers(1, 4))
@settings(max_examples=60)
def test_every_form_of_a_convolution_is_that_of_the_reference(
    drawn: tuple[Convolution, tuple[int, ...]], seed: int, unsigned: bool, multiple: int
) -> None:
    one, shape = drawn
    simple = not one.depthwise and one.window.groups == 1
    _agrees(network_of(replace(one, form=Form(unsigned=unsigned, multiple=multiple) if simple else SIGNED), shape), seed)


def test_the_bias_of_unsigned_bytes_may_wrap() -> None:
    weights = np.full((40000, 2), -127, np.int8)
    bias, rescale = np.full(2, 2**31 - 1 - 40000 * 127 * 127, np.int32), rescale_of(np.full(2, 1e-7), 0, (-128, 127), "y")
    one = Dense("y", ("x",), weights, bias, rescale, Form(unsigned=True))
    assert one.constants["bias"].dtype == np.int32 and one.constants["bias"].max() < 0  # 128 * 127 * 40000 more than `bias`
    _agrees(network_of(one, (1, 40000)), 0)


def test_layers_of_one_geometry_are_one_task() -> None:
    found = set()
    for seed in (1, 2):
        generator = np.random.default_rng(seed)
        weights = generator.integers(-127, 128, (8, 4)).astype(np.int8)
        rescale = rescale_of(generator.uniform(0.001, 0.01, 4), 0, (-128, 127), "y")
        found.add(Dag(declaration(Dense("y", ("x",), weights, np.zeros(4, np.int32), rescale), [(1, 8)])).key)
    assert len(found) == 1
