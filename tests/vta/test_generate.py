"""Random programs of operators compute what the declaration means, with modules in a random order; most samples are programs; refusals say why."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.measure.devices.vta_sim import simulated
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target, parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.vta.compiled import operator_from_text
from ansor.vta.cycles import CHISEL
from ansor.vta.estimate import estimated_cycles
from ansor.vta.generate import compile_operator
from ansor.vta.work import work_of
from tests.vta_declarations import added, channels_last, conv2d, dense, depthwise, grouped, groups_of_one, pool, rescaled, turned_round

DEFAULT = parse_target("vta")
OPERATORS = {
    "dense": dense(32, 128, 256),
    "odd dense": dense(33, 100, 200),
    "turned": dense(8, 48, 32, turned=True),
    "conv": conv2d((1, 32, 14, 14), 48, 3, pad=1),
    "odd channels": conv2d((1, 40, 9, 11), 24, 3, pad=1),
    "stride, batch": conv2d((2, 32, 10, 10), 32, 1, stride=2),
    "5x5": conv2d((1, 16, 12, 12), 16, 5, pad=2),
    "dilated": conv2d((1, 32, 14, 14), 32, 3, pad=2, dilation=2),
    "windows in the padding": conv2d((1, 20, 5, 6), 33, 1, pad=2, stride=2),
    "more padding than kernel": conv2d((1, 16, 4, 4), 16, 3, pad=4),
    "channels last": channels_last((1, 7, 8, 40), 24, 3, pad=1),
    "residual": conv2d((1, 32, 9, 9), 32, 3, pad=1, residual=True),
    "depthwise": depthwise((1, 40, 9, 11), 3, pad=1),
    "depthwise, strided": depthwise((1, 16, 11, 11), 5, stride=2, pad=2),
    "blocks in groups": grouped((1, 64, 9, 7), 96, 2),
    "weights that are given": grouped((1, 48, 6, 6), 48, 3, constant=False),
    "small groups": grouped((2, 48, 8, 8), 24, 6, stride=2, residual=True),
    "odd groups": grouped((1, 60, 7, 9), 45, 3, 5, pad=2),
    "one result each": grouped((1, 60, 7, 8), 3, 3),
    "one place": grouped((1, 16, 5, 5), 16, 16, 5, pad=0),
    "groups of one": groups_of_one(),
    "several of each, of one place": grouped((1, 20, 5, 6), 60, 20, 1, pad=0),
    "several of each": grouped((1, 20, 9, 9), 60, 20, dilation=2, pad=2),
    "add": added((1, 40, 9, 9)),
    "subtracted from numbers": turned_round((9, 40)),
    "rescaled": rescaled(),
    "max": pool((1, 32, 13, 13), 3, stride=2),
    "max around -128": pool((1, 40, 13, 11), 3, stride=2, pad=1, number=-128),
    "mean around 77": pool((2, 32, 10, 9), 5, stride=1, pad=2, mean=True, number=77),
    "depthwise around -9": depthwise((1, 24, 9, 9), 3, pad=1, number=-9),
    "mean": pool((1, 32, 14, 14), 3, stride=2, pad=1, mean=True),
}


def inputs_of(dag: Dag, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {one.name: rng.integers(*((-128, 128) if one.dtype == "int8" else (-3000, 3000)), one.shape).astype(one.dtype) for one in dag.inputs}


def check(tensors: list[Tensor], target: Target, programs: int, seed: int) -> int:
    """So many random programs of each sketch; how many were legal."""
    rng, dag, seen = np.random.default_rng(seed), Dag(tensors), 0
    inputs = inputs_of(dag, rng)
    (right,) = evaluate(dag.outputs, inputs)
    task = SearchTask(tensors=tensors, target=target)
    for space in task.spaces:
        rows = rng.integers(0, space.sizes, (20 * programs, len(space.sizes)))
        for row in rows[space.legal(rows)][:programs]:
            operator = operator_from_text(task.source(space.sketch, row.tolist()).text)
            outputs, counts, _ = simulated(operator, inputs, CHISEL, seed)
            assert counts.close_writes == 0, (space.sketch, row)
            assert np.array_equal(outputs[dag.outputs[0].name], right), (space.sketch, row)
            seen += 1
    return seen


@pytest.mark.parametrize("name", OPERATORS)
def test_programs_compute_what_is_declared(name: str) -> None:
    check(OPERATORS[name], DEFAULT, 2, 0)


@pytest.mark.parametrize("core", ["32", "64", "input_bytes=14,weight_bytes=16,accumulator_bytes=15"])
def test_other_cores(core: str) -> None:
    convolution, pooled = conv2d((1, 40, 9, 9), 72, 3, pad=1, residual=True), pool((1, 72, 9, 8), 3, stride=2, pad=1, number=-128)
    for tensors in (convolution, dense(5, 130, 70), grouped((1, 32, 7, 7), 64, 4), pooled):
        check(tensors, parse_target(f"vta -core={core}"), 2, 1)


ROWS = {
    "conv": conv2d((4, 32, 6, 6), 32, 3, pad=1),
    "no bias": conv2d((4, 32, 6, 6), 32, 3, pad=1, bias=False),
    "odd": conv2d((3, 40, 5, 6), 24, 3, pad=1, stride=2, residual=True),
    "one": conv2d((1, 20, 7, 5), 40, 1),
    "dense": dense(8, 48, 32),
    "odd dense": dense(5, 40, 100, turned=True),
    "rescaled": rescaled(6, 24, 3),
    "add": added((5, 40, 3, 3)),
    "add of rows": added((7, 40)),
    "add of a vector": added((40,)),
    "max": pool((3, 24, 7, 7), 3, stride=2),
    "mean": pool((2, 32, 6, 6), 3, stride=2, pad=1, mean=True),
    "depthwise": depthwise((3, 24, 6, 7), 3, pad=1),
    "groups": grouped((3, 48, 6, 6), 24, 6),
    "groups of blocks": grouped((2, 64, 5, 5), 32, 2, residual=True),
}


SQUARE = "batch=2,block=2,uop_bytes=13,input_bytes=13,weight_bytes=13,accumulator_bytes=15"
"""As many rows as a block is wide."""


@pytest.mark.parametrize(("name", "core"), [*((name, core) for name in ROWS for core in ("batch=1", "batch=2")), ("odd", SQUARE), ("odd dense", SQUARE)])
def test_rows_in_blocks(name: str, core: str) -> None:
    """Cores that multiply 2 and 4 rows at once. What has no rows lies in DRAM once for each."""
    assert check(ROWS[name], parse_target(f"vta -core={core}"), 1, 1) > 0


def test_a_bias_lies_there_for_each_row() -> None:
    target = parse_target("vta -core=batch=2")
    space = SearchTask(tensors=ROWS["conv"], target=target).spaces[0]
    rows = np.random.default_rng(0).integers(0, space.sizes, (50, len(space.sizes)))
    operator = compile_operator(space.sketch.lower_row(rows[space.legal(rows)][0].tolist()), configuration_of(target))
    bias = operator.tensors[2].layout
    assert (bias.repeats, bias.blocks, str(bias)) == (4, (16,), "ACC[2] x [4, 16]") and operator.tensors[0].layout.blocks == (4, 16)
    again = operator_from_text(operator.to_text())
    assert again.tensors == operator.tensors and np.array_equal(again.words, operator.words)


@pytest.mark.parametrize("name", ["conv", "odd dense", "max", "residual", "rescaled", "depthwise", "small groups", "max around -128"])
def test_batched_is_row_by_row(name: str) -> None:
    """Limits and the estimate."""
    rng = np.random.default_rng(2)
    for space in SearchTask(tensors=OPERATORS[name], target=DEFAULT).spaces:
        if not len(space.sizes):  # plain loops, which no core runs
            continue
        rows = rng.integers(0, space.sizes, (12, len(space.sizes)))
        together = space.sketch.lower_rows(rows)
        costs = np.broadcast_to(np.asarray(estimated_cycles(work_of(together, configuration_of(DEFAULT)), configuration_of(DEFAULT), CHISEL)), 12)
        assert np.array_equal(space.legal(rows), legal_rows(together, DEFAULT, 12))
        assert np.allclose(np.exp(space.features(rows).prior_logs()).reshape(12, -1).sum(1), costs)
        for place, row in enumerate(rows.tolist()):
            alone = space.sketch.lower_row(row)
            assert bool(legal_rows(alone, DEFAULT, 1)[0]) == bool(space.legal(rows)[place])
            assert np.isclose(float(np.asarray(DEFAULT.cost(alone))), costs[place])


@pytest.mark.parametrize("name", ["conv", "odd channels", "add", "blocks in groups", "max around -128"])
def test_legal_samples_are_programs(name: str) -> None:
    rng = np.random.default_rng(3)
    small = parse_target("vta -core=input_bytes=12,weight_bytes=15,accumulator_bytes=13,uop_bytes=10")
    seen = 0
    for space in SearchTask(tensors=OPERATORS[name], target=small).spaces:
        rows = rng.integers(0, space.sizes, (12, len(space.sizes)))
        legal = space.legal(rows)
        for row in rows[legal].tolist():
            compile_operator(space.sketch.lower_row(row), configuration_of(small))
        seen += int(legal.sum())
    assert seen > 6


def test_operators_are_texts() -> None:
    space = SearchTask(tensors=OPERATORS["conv"], target=DEFAULT).spaces[0]
    source = DEFAULT.emit(space.sketch.lower_row((0,) * len(space.sizes)), "kernel")
    operator = operator_from_text(source.text)
    assert [one.role for one in operator.tensors] == ["input", "constant", "constant", "output"] and "GEMM" in source.text


def test_what_a_core_does_not_do() -> None:
    with pytest.raises(ScheduleError, match="in INP, which has 128"):
        space = SearchTask(tensors=OPERATORS["5x5"], target=DEFAULT).spaces[0]
        compile_operator(space.sketch.lower_row([size - 1 for size in space.sizes]), configuration_of(parse_target("vta -core=input_bytes=11")))
    plain = Sketch(Dag(OPERATORS["conv"])).lower_row(())
    assert not legal_rows(plain, DEFAULT, 1)[0]
