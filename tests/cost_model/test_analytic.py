"""The analytic estimate: the same for a row and for many, and right about what matters."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.analytic import cache_loads, chains_of, estimate, estimated_cycles, first_cache, lanes_of, loads_of, runs_at_once
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.features import extract
from ansor.cost_model.register_tile import register_tile
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Pack, Parallel, Reorder, Split, Step, Tensorize, Unroll, Vectorize
from ansor.search.derive import spaces
from ansor.targets.base import Target, parse_target
from ansor.targets.micro import COUNTED
from ansor.targets.prior import Prior
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -mcpu=znver3 -threads=1")


def drawn(sketch: Sketch, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Random rows of a sketch."""
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, size, count) for size in sketch.sizes], axis=1).reshape(count, -1)


@pytest.mark.parametrize("tensors", [workloads.matmul(64, 64, 64), workloads.conv2d_nchw_bn_relu(1, 8, 8, 16, 16, 3, 1, 1), workloads.softmax_nm(8, 32)])
def test_a_row_alone_has_the_estimate_it_has_among_others(tensors: list[Tensor]) -> None:
    for sketch in spaces(Dag(tensors), TARGET)[:8]:
        rows = drawn(sketch, 5)
        many = estimated_cycles(sketch.lower_rows(rows), len(rows), TARGET)
        alone = [estimated_cycles(sketch.lower_row(row), 1, TARGET)[0] for row in rows.tolist()]
        assert many.tolist() == alone


def test_so_it_has_if_the_innermost_reduction_loop_is_left_out_alone() -> None:
    """Tiles larger than a cache, whose innermost reduction loop has one iteration in some of the rows."""
    for sketch in spaces(Dag(workloads.matmul(512, 512, 256)), TARGET)[:6]:
        rows = drawn(sketch, 60)
        many = estimated_cycles(sketch.lower_rows(rows), len(rows), TARGET)
        assert many.tolist() == [estimated_cycles(sketch.lower_row(row), 1, TARGET)[0] for row in rows.tolist()]


def best_of(sketch: Sketch, threads: int = 1) -> float:
    target = parse_target(f"cpu -mcpu=znver3 -threads={threads}")
    return float(estimated_cycles(sketch.lower_rows(drawn(sketch, 2000)), 2000, target).min())


def test_tiled_and_vectorised_beats_the_declaration_and_stays_above_the_arithmetic_limit() -> None:
    dag = Dag(workloads.matmul(256, 256, 256))
    plain = estimated_cycles(Sketch(dag).lower_row(()), 1, TARGET)[0]
    found = min(best_of(sketch) for sketch in spaces(dag, TARGET))
    limit = dag.flop / 32  # two multiply-adds of eight lanes in a cycle
    assert limit <= found < plain / 8


def test_two_threads_have_at_most_twice_the_speed() -> None:
    dag = Dag(workloads.matmul(256, 256, 256))
    two = parse_target("cpu -mcpu=znver3 -threads=2")
    for sketch in spaces(dag, two):
        rows = drawn(sketch, 200)
        loops = sketch.lower_rows(rows)
        one, both, free = (estimated_cycles(loops, 200, target) for target in (TARGET, two, replace(two, prior=free_forks(two))))
        assert (free <= one).all()
        assert (free >= one / 2 - 1e-6).all()
        forks = (both - free) / two.prior.overhead.fork
        assert (forks > -1e-6).all() and np.allclose(forks, np.round(forks), atol=1e-6)


def free_forks(target: Target) -> Prior:
    return replace(target.prior, overhead=replace(target.prior.overhead, fork=0.0))


def forks_of(steps: Sequence[Step], threads: int = 2) -> list[float]:
    """How many loops that threads share each statement begins, in a product and a stage that reads it."""
    A, B = te.placeholder((8, 16), name="A"), te.placeholder((16, 32), name="B")
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="product")
    out = te.compute((8, 32), lambda i, j: product[i, j] + 1.0, name="out")
    target = parse_target(f"cpu -mcpu=znver3 -threads={threads}")
    found = statements_of(Sketch(Dag([A, B, out]), tuple(steps)).lower_row(()), first_cache(target))
    return [float(np.asarray(estimate(one, target).fork)) / target.prior.overhead.fork for one in found]


def test_each_loop_that_threads_share_is_forked_once() -> None:
    both = [Parallel("product", 1), Parallel("out", 1)]
    assert sum(forks_of([])) == 0
    assert sum(forks_of(both[:1])) == 1 and sum(forks_of(both)) == 2
    assert sum(forks_of(both, threads=1)) == 0


def test_statements_in_one_loop_share_its_fork() -> None:
    assert sum(forks_of([ComputeAt("product", "out", "i"), Parallel("out", 1)])) == 1


def test_a_loop_of_one_iteration_is_not_shared() -> None:
    assert sum(forks_of([Split("out", "i", (8,), 2), Parallel("out", 1)])) == 0
    assert sum(forks_of([Split("out", "i", (8,), 2), Parallel("out", 2)])) == 1


@pytest.mark.parametrize(("reduction", "found"), [(4096, 1.0), (16, 256 / (16 * (1 + 2 + 1) + 3))])
def test_short_runs_of_a_tile_overlap(reduction: int, found: float) -> None:
    (one,) = statements_of(Sketch(Dag(workloads.matmul(8, 8, reduction))).lower_row(()))
    assert float(np.asarray(runs_at_once(register_tile(one, 8, optimizes=True), TARGET.prior.issue))) == found


@pytest.mark.parametrize(("reduction", "rows", "chains"), [(8, 1, 1), (16, 1, 2), (64, 1, 4), (64, 2, 4), (64, 4, 2), (64, 8, 1)])
def test_partial_results_are_as_many_chains_as_the_reduction_has_vectors(reduction: int, rows: int, chains: int) -> None:
    """Four vectors of one result, or eight of several results together."""
    order = (Split("C", "j", (rows,), 2), Reorder("C", ("i", "j_0", "j_1", "k")), Vectorize("C", "k"), Unroll("C", "j_1"))
    (one,) = statements_of(Sketch(Dag(workloads.matmul(8, 8, reduction)), order).lower_row(()))
    assert float(np.asarray(chains_of(register_tile(one, 8, optimizes=True), TARGET.prior.reduction))) == chains


def test_what_does_not_move_with_a_loop_stays_while_it_goes_on() -> None:
    """Rows of a and c enter the first cache once, b as often as there are rows: it is too large to stay."""
    (one,) = statements_of(Sketch(Dag(workloads.matmul(64, 256, 1024)), (Reorder("C", ("i", "k", "j")),)).lower_row(()))
    a, b, c = 4 * 64 * 1024, 4 * 1024 * 256, 4 * 64 * 256
    assert cache_loads(one, TARGET)[0] == a + 64 * b + c


@pytest.mark.parametrize(("inputs", "loaded"), [(1008, 4), (1024, 64)])
def test_lines_of_rows_in_one_set_are_loaded_in_each_step(inputs: int, loaded: int) -> None:
    """Rows a page apart share a set of the first cache: 13 of their lines do not fit. Otherwise they stay for the next steps of the reduction."""
    tile = (Split("C", "i", (13,), 2), Reorder("C", ("i_0", "k", "i_1", "j")))
    (one,) = statements_of(Sketch(Dag(workloads.matmul(26, 16, inputs)), tile).lower_row(()), first_cache(TARGET))
    b, c = 4 * 16 * inputs, 4 * 26 * 16
    assert cache_loads(one, TARGET)[0] == loaded * 26 * inputs + 2 * b + c


@pytest.mark.parametrize("missing", [{"l3_bytes": 0}, {"l2_bytes": 0, "l3_bytes": 0}, {"l1_bytes": 0, "l2_bytes": 0, "l3_bytes": 0}])
def test_caches_may_be_missing(missing: dict[str, int]) -> None:
    """What is not there costs nothing and is no divisor."""
    target = replace(TARGET, hardware=replace(TARGET.hardware, caches=replace(TARGET.caches, **missing)))
    dag = Dag(workloads.matmul(64, 64, 64))
    loops = Sketch(dag).lower_row(())
    (one,) = statements_of(loops, first_cache(target))
    loads = dict(zip(("l1_bytes", "l2_bytes", "l3_bytes"), cache_loads(one, target), strict=True))
    assert [loads[name] for name in missing] == [0.0] * len(missing)
    assert np.isfinite(extract(loops, core=target).rows).all() and (estimated_cycles(loops, 1, target) > 0).all()


def test_a_core_that_waits_takes_longer() -> None:
    loops = Sketch(Dag(workloads.matmul(64, 64, 64))).lower_row(())
    waiting = replace(TARGET, prior=replace(TARGET.prior, issue=replace(TARGET.prior.issue, arithmetic=1.0, latency=8.0, window=8.0)))
    assert estimated_cycles(loops, 1, waiting)[0] > estimated_cycles(loops, 1, TARGET)[0]


def loads(rows: int, columns: int, *, sliding: bool, target: Target = TARGET) -> float:
    """Loads per step of a tile of a product with rows of a matrix or, sliding, with windows of a vector: rows x columns results."""
    a, b = te.placeholder((64, 64), name="a"), te.placeholder((128,) if sliding else (64, 64), name="b")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * (b[k + j] if sliding else b[k, j]), axis=k), name="c")
    split = (Split("c", "i", (rows,), 2), Split("c", "j", (columns,), 2), Split("c", "j_1", (8,), 2))
    order = Reorder("c", ("i_0", "j_0", "k", "i_1", "j_1_0", "j_1_1"))
    loops = Sketch(Dag([a, b, c])).then(*split, order, Unroll("c", "i_1"), Unroll("c", "j_1_0"), Vectorize("c", "j_1_1")).lower_row(())
    (one,) = statements_of(loops, first_cache(target))
    return float(np.asarray(loads_of(one, register_tile(one, 8, optimizes=target.prior.issue.optimizes), target)))


def test_a_load_that_crosses_a_line_counts_twice() -> None:
    """Of windows of 32 bytes that begin at any number, 7 of 16 cross a line of 64 bytes. The numbers of a are broadcast."""
    assert loads(1, 64, sliding=False) == 1 + 8 and loads(2, 32, sliding=False) == 2 + 4
    assert loads(1, 64, sliding=True) == 1 + 8 * (1 + 7 / 16) and loads(2, 32, sliding=True) == 2 + 4 * (1 + 7 / 16)


def test_narrow_operands_are_loaded_in_as_many_lanes_as_the_widest() -> None:
    """Sixteen bytes of each, of a row of 48: none crosses a line."""
    data = te.placeholder((64, 48), "uint8", name="a")
    out = te.compute((64, 48), lambda i, j: (data[i, j] + data[i, j]).astype("int32"), name="c")
    target = parse_target("cpu -mcpu=znver4 -threads=1")
    (one,) = statements_of(Sketch(Dag([data, out])).then(Vectorize("c", "j")).lower_row(()), first_cache(target))
    tile = register_tile(one, 16, optimizes=True)
    assert lanes_of(one, target) == 16 and float(np.asarray(loads_of(one, tile, target))) == float(np.asarray(tile.loads)) == 3


def test_loads_are_loads_on_a_core_that_counts_instructions() -> None:
    counted = replace(TARGET, prior=COUNTED)
    assert loads(2, 32, sliding=True, target=counted) == loads(2, 32, sliding=False, target=counted) == 2 + 4


def blocks(rows: int, columns: int, tiles: int) -> float:
    """Cycles of instructions of a product of 64 x 64 x 64, in tiles of some size, of which `tiles` cover it."""
    a, b = te.placeholder((64, 64), "uint8", name="a"), te.placeholder((64, 64), "int8", name="b", constant=True)
    split = (Split("c", "i", (rows,), 2), Split("c", "j", (columns,), 2), Split("c", "k", (64,), 2), Split("c", "k_1", (4,), 2))
    order = Reorder("c", ("i_0", "j_0", "k_0", "i_1", "k_1_0", "j_1", "k_1_1"))
    steps = (Pack("c", "b"), *split, order, Tensorize("c", "j_1", "k_1_1", "amx_u8s8"))
    loops = Sketch(Dag([a, b, te.nn.matmul(a, b, out_dtype="int32", name="c")])).then(*steps).lower_row(())
    target = parse_target("cpu -mcpu=sapphirerapids -threads=1")
    (statement,) = statements_of(loops, first_cache(target))
    return float(np.asarray(estimate(statement, target).instructions)) / tiles


def test_blocks_take_as_long_however_full_they_are() -> None:
    one = blocks(16, 16, 16)
    assert one == 16 * 3  # a product, and twice as long to load and store its results
    assert blocks(8, 16, 32) == one
    assert blocks(32, 32, 4) == 4 * one
