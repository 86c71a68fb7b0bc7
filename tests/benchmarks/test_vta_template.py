"""The hand-written template computes what is declared, with and without virtual threads, and never beats what bounds it."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.measure.devices.vta_sim import simulated
from ansor.vta.configuration import DEFAULT
from ansor.vta.cycles import CHISEL
from benchmarks.vta_layers import cycles_of, declared
from benchmarks.vta_template import Layer, configurations, least_cycles, program

LAYERS = (Layer("same", 8, 32, 32, 3, 1, 1), Layer("strided", 8, 32, 64, 3, 2, 1), Layer("points", 8, 32, 32, 1, 2, 0))


@pytest.mark.parametrize("layer", LAYERS, ids=lambda one: one.name)
def test_the_template_is_right(layer: Layer) -> None:
    rng, dag = np.random.default_rng(0), Dag(declared(layer))
    inputs = {one.name: rng.integers(-128, 128, one.shape).astype(one.dtype) for one in dag.inputs}
    (right,) = evaluate(dag.outputs, inputs)
    every = list(configurations(layer, DEFAULT))
    assert {(one.channel_threads, one.row_threads) for one in every} == {(1, 1), (2, 1), (1, 2)}
    for tiles in rng.permutation(np.array(every, object))[:12]:
        operator = program(layer, tiles, DEFAULT)
        outputs, _, _ = simulated(operator, inputs, CHISEL, 0)
        assert np.array_equal(outputs["out"], right), tiles
        assert least_cycles(layer, tiles, DEFAULT, CHISEL) <= cycles_of(operator)
