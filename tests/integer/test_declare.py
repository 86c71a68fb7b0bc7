"""Declarations of operators against the reference in NumPy, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor.integer.declare import declaration
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Add, Concat, Convolution, Dense, Form, Operator
from ansor.integer.reference import run
from ansor.integer.rescale import rescale_of
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from tests.integer.networks import convolutions, inputs_of, network_of, others

BYTES = st.sampled_from(("int8", "uint8"))


def _agrees(network: IntegerNetwork, seed: int, dtypes: Sequence[str] = ()) -> None:
    """dtypes: of inputs and output as they are stored."""
    (one,) = network.operators
    inputs = inputs_of(network, seed)
    tensors = declaration(one, [network.tensors[name].shape for name in one.inputs], dtypes)
    given = [_stored(inputs[name], dtype) for name, dtype in zip(one.inputs, dtypes or ("int8",) * 9, strict=False)]
    (found,) = evaluate(tensors[-1:], dict(zip((tensor.name for tensor in tensors), [*given, *one.constants.values()], strict=False)))
    assert np.array_equal(found, _stored(run(network, inputs)[one.output], dtypes[-1] if dtypes else "int8"))


def _stored(numbers: NDArray[np.int8], dtype: str) -> NDArray[np.generic]:
    return (numbers.astype(np.int16) + 128).astype(np.uint8) if dtype == "uint8" else numbers


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
    _agrees(network_of(replace(one, form=Form(unsigned=unsigned, multiple=multiple if simple else 1)), shape), seed)


@given(convolutions(), st.integers(0, 1000), st.booleans(), st.tuples(BYTES, BYTES, BYTES))
@settings(max_examples=60)
def test_convolutions_add(drawn: tuple[Convolution, tuple[int, ...]], seed: int, unsigned: bool, dtypes: tuple[str, str, str]) -> None:
    one, shape = drawn
    added = Add("y", ("before", "z"), (700_000, 1_300_000), -(1 << 19), 20, 5, -100, 120)
    network = network_of(replace(one, inputs=("x", "z"), added=added, form=Form(unsigned=unsigned)), shape, one.shape([shape]))
    _agrees(network, seed, dtypes)


@given(others(), st.integers(0, 1000), st.tuples(BYTES, BYTES, BYTES))
@settings(max_examples=60)
def test_bytes_are_stored_signed_or_not(drawn: tuple[Operator, tuple[tuple[int, ...], ...]], seed: int, dtypes: tuple[str, ...]) -> None:
    _agrees(network_of(drawn[0], *drawn[1]), seed, dtypes[-1 - len(drawn[1]) :])


@given(convolutions(), st.integers(0, 1000), st.tuples(BYTES, BYTES), st.sampled_from((Form(), Form(unsigned=True), Form(wide=True))))
@settings(max_examples=60)
def test_every_form_reads_both(drawn: tuple[Convolution, tuple[int, ...]], seed: int, dtypes: tuple[str, ...], form: Form) -> None:
    _agrees(network_of(replace(drawn[0], form=form), drawn[1]), seed, dtypes)


def test_parts_of_one_tensor_are_stored_as_it_is() -> None:
    one = Concat("y", ("a", "b"), 3)
    _agrees(network_of(one, (1, 2, 3, 4), (1, 2, 3, 2)), 0, ("int8", "uint8", "uint8"))


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
