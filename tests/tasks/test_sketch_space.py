"""A sketch as the search sees it, recorded once, against lowering and describing its rows directly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.codegen import tape_library
from ansor.cost_model.analytic import estimate, first_cache
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.features import extract
from ansor.ir.dag import Dag
from ansor.schedule.legality import legal_rows
from ansor.schedule.sketch import Rows, Sketch
from ansor.search.derive import spaces
from ansor.search.sampling import SampledSpace
from ansor.targets.base import Target, parse_target
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor
from tests import declarations, mixed_declarations
from tests.declarations import Draw, seeded_draw

pytestmark = pytest.mark.compiler
TARGET = "cpu -mcpu=znver3 -threads=1"
TARGETS = [parse_target(TARGET), parse_target("cpu -mcpu=znver4 -threads=3")]


def drawn(space: SketchSpace, count: int = 60) -> Rows:
    return SampledSpace(space).draw(count, np.random.default_rng(0))


def random_rows(sketch: Sketch, count: int) -> Rows:
    rng = np.random.default_rng(len(sketch.steps))
    return np.stack([rng.integers(0, size, count) for size in sketch.sizes], axis=1) if len(sketch.sizes) else np.zeros((count, 0), np.int64)


def direct_prior(sketch: Sketch, target: Target, rows: Rows) -> NDArray[np.float64]:
    statements = statements_of(sketch.lower_rows(rows), first_cache(target))
    return np.stack([np.broadcast_to(estimate(statement, target).log_cycles, len(rows)) for statement in statements], axis=1).reshape(-1)


def check(sketch: Sketch, target: Target, rows: Rows) -> None:
    """A population together, and one of its programs alone, against lowering the rows themselves."""
    space, loops = SketchSpace(sketch, target), sketch.lower_rows(rows)
    found, expected = space.features(rows), extract(loops, len(rows), core=target)
    np.testing.assert_array_equal(space.legal(rows), legal_rows(loops, target, len(rows)), err_msg=str(sketch))
    np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-6, atol=1e-6, err_msg=str(sketch))
    np.testing.assert_allclose(found.prior_logs(), direct_prior(sketch, target, rows), rtol=1e-12, err_msg=str(sketch))
    np.testing.assert_array_equal(found.segment, expected.segment)
    for k in (0, len(rows) - 1):
        alone = space.features(rows[k : k + 1])
        np.testing.assert_array_equal(alone.rows, found.take(np.array([k])).rows)
        np.testing.assert_array_equal(alone.prior_logs(), found.take(np.array([k])).prior_logs())
        assert space.legal(rows[k : k + 1])[0] == space.legal(rows)[k]


@pytest.mark.parametrize("kind", sorted(declarations.KINDS))
def test_any_declaration(kind: str) -> None:
    for seed in range(3):
        draw: Draw = seeded_draw(seed)
        for sketch in spaces(declarations.random_case(draw, kind).dag, TARGETS[seed % 2])[:6]:
            check(sketch, TARGETS[seed % 2], random_rows(sketch, 9))


@pytest.mark.parametrize("kind", sorted(mixed_declarations.ALL_KINDS))
def test_any_mixed_declaration(kind: str) -> None:
    for seed in range(3):
        draw: Draw = seeded_draw(seed)
        for sketch in spaces(mixed_declarations.any_case(draw, kind).dag, TARGETS[seed % 2])[:6]:
            check(sketch, TARGETS[seed % 2], random_rows(sketch, 9))


def int8_matmul() -> list[Tensor]:
    x, y = te.placeholder((32, 48), "uint8", name="A"), te.placeholder((48, 64), "int8", name="B", constant=True)
    return [x, y, nn.matmul(x, y, out_dtype="int32", name="C")]


OPERATORS = {
    "matmul": workloads.matmul(96, 64, 48),
    "softmax": workloads.softmax_nm(24, 32),
    "depthwise": workloads.depthwise_conv2d(1, 14, 14, 16, 3, 1, 1),
    "grouped": workloads.conv2d(1, 12, 12, 16, 32, 3, 2, 1, 1, 4),
    "transposed": workloads.conv2d_transpose(1, 6, 6, 16, 8, 4, 2, 1),
    "int8": int8_matmul(),
    "winograd by hand": workloads.conv2d_winograd_nhwc(1, 8, 8, 8, 16),
    "norm": workloads.norm(2, 16, 24),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_sketches_of_operators(name: str) -> None:
    for target in TARGETS:
        for sketch in spaces(Dag(OPERATORS[name]), target)[:12]:
            check(sketch, target, random_rows(sketch, 9))


def test_a_machine_without_outer_caches() -> None:
    target = parse_target("cpu -mcpu=znver3 -threads=1 -l2=0 -l3=0")
    for sketch in spaces(Dag(OPERATORS["matmul"]), target)[:3]:
        check(sketch, target, random_rows(sketch, 9))
        row = [0] * len(sketch.sizes)
        alone = extract(sketch.lower_row(row), core=target).rows
        np.testing.assert_allclose(SketchSpace(sketch, target).features(np.array([row])).rows, alone, rtol=1e-6, atol=1e-6)
        assert np.abs(alone).max() < 100


def test_sketches_of_other_algorithms() -> None:
    found = SearchTask(tensors=workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 32, 3, 1, 1), target=TARGET).spaces
    some = {space.algorithm: [one for one in found if one.algorithm == space.algorithm] for space in found}
    assert len(some) > 2
    for own in some.values():
        for space in own[:: max(1, len(own) // 4)]:
            check(space.sketch, space.target, random_rows(space.sketch, 9))


@pytest.mark.parametrize("tensors", [workloads.matmul(64, 64, 64), workloads.softmax_nm(8, 32)])
def test_features_are_the_same_whichever_rows_are_asked_for(tensors: list[Tensor]) -> None:
    task = SearchTask(tensors=tensors, target=TARGET)
    for space in task.spaces[:6]:
        rows = drawn(space, 200)
        whole = space.features(rows)
        for order in (np.arange(200)[::-1], np.arange(5), np.array([3, 3, 190]), np.arange(70, 150)):
            some, expected = space.features(rows[order]), whole.take(order)
            np.testing.assert_array_equal(some.rows, expected.rows)
            np.testing.assert_array_equal(some.prior_logs(), expected.prior_logs())
            np.testing.assert_array_equal(some.segment, expected.segment)
            np.testing.assert_array_equal(space.legal(rows[order]), space.legal(rows)[order])


def test_numpy_in_the_place_of_the_compiled_library(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SearchTask(tensors=workloads.conv2d_nchw_bn_relu(1, 8, 8, 16, 16, 3, 1, 1), target=TARGET)
    for space in task.spaces[::9]:
        rows = drawn(space, 20)
        compiled, allowed = space.features(rows), space.legal(rows)
        with monkeypatch.context() as patch:
            patch.setattr(tape_library, "_library", lambda compiler: None)
            plain = SketchSpace(space.sketch, space.target)
            np.testing.assert_allclose(plain.features(rows).rows, compiled.rows, rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(plain.legal(rows), allowed)


def test_another_process_finds_the_same_bits() -> None:
    text = """
import hashlib, numpy as np
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from ansor.search.sampling import SampledSpace
found = hashlib.sha256()
for space in SearchTask(tensors=workloads.softmax_nm(8, 32), target="cpu -mcpu=znver3 -threads=1").spaces[:9]:
    features = space.features(SampledSpace(space).draw(50, np.random.default_rng(0)))
    found.update(features.rows.tobytes() + features.prior_logs().tobytes())
print(found.hexdigest())
"""
    said = {subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120).stdout for _ in range(2)}
    assert len(said) == 1 and len(said.pop().strip()) == 64


def test_a_space_without_choices() -> None:
    task = SearchTask(tensors=workloads.matmul(4, 4, 4), target=TARGET)
    space = SketchSpace(Sketch(task.dag), task.target)
    rows = np.zeros((1, 0), np.int64)
    assert space.legal(rows).tolist() == [True]
    assert space.features(rows).count == 1
    assert space.legal(np.zeros((0, 0), np.int64)).tolist() == []
