"""Explanations of hand-made trials: nothing is built or measured, so every number in them can be checked by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.cost_model.analytic import estimated_cycles
from ansor.errors import ArgumentError, RecordError
from ansor.explain.explanation import ENOUGH, FOLDS, explain, moved_bytes
from ansor.explain.text import WIDTH, explanation_text
from ansor.explain.values import Cost, Explanation
from ansor.ir.feature_rows import FeatureRows
from ansor.measure.failure import Failure
from ansor.measure.measurer import Measurement
from ansor.measure.new_record import Trial, make_record
from ansor.measure.record import RecordFile, foreign_header
from ansor.measure.record_target import record_target
from ansor.schedule.legality import legal
from ansor.search.tuner import Outcome, Pick
from ansor.targets.unit import INSTRUCTIONS
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from tests.vta_declarations import dense

Value = tuple[int, ...] | int
TARGET = "cpu -mcpu=znver4 -threads=1"
PLAIN, PRIVATE = "plain", "private"


def _task(target: str = TARGET, n: int = 64) -> SearchTask:
    return SearchTask(workloads.matmul, (n, n, n), target, name="product")


def _space(task: SearchTask, kind: str) -> int:
    """The tiled sketch, and the one with a private tile that is written back after the first level of the tiling."""
    wanted = {PLAIN: ("SP", "SP", "SP", "RE"), PRIVATE: ("CHW", "SP", "SP", "SP", "RE", "FSP", "FSP", "RE", "CA")}[kind]
    return next(k for k, space in enumerate(task.spaces) if tuple(step.code for step in space.sketch.steps[: len(wanted)]) == wanted)


def _trial(task: SearchTask, kind: str, seconds: float | None, **values: Value) -> Outcome:
    """A trial of the program with these values for its choices, by the last part of their names; 0 if not given. Without a time, it did not build."""
    space = task.spaces[_space(task, kind)]
    row = []
    for choice in space.sketch.choices:
        value = values.get(choice.name.rpartition(".")[2], 0)
        gene = choice.index_of(value if isinstance(value, tuple) else (value,) * choice.table.shape[1])
        assert gene is not None or not value, choice.name
        row.append(gene or 0)
    return Outcome(Pick(_space(task, kind), tuple(row)), seconds, None if seconds else "compile")


TILES: dict[str, Value] = {"i": (2, 2, 8), "j": (1, 1, 32), "k": (16,), "vector": 1, "unroll": 16}


def _trials(task: SearchTask) -> list[Outcome]:
    return [
        _trial(task, PLAIN, 30e-6, i=(1, 1, 1), j=(1, 1, 16), k=(1,), vector=1),
        _trial(task, PLAIN, 10e-6, **TILES),
        _trial(task, PRIVATE, 12e-6, i=(1, 4, 8), j=(1, 1, 32), k=(16,), vector=1, unroll=16),
        _trial(task, PLAIN, 15e-6, **{**TILES, "k": (4,)}),
        _trial(task, PLAIN, None, **{**TILES, "k": (2,)}),
    ]


def _explained(task: SearchTask) -> Explanation:
    return explain(task, _trials(task))


def test_the_work_and_the_place() -> None:
    one = _explained(_task())
    assert (one.work.name, one.place.target, one.trials.count, one.trials.valid, one.trials.failures) == ("product", TARGET, 5, 4, (("compile", 1),))
    assert one.best.measured == 10e-6 and one.trials.median == pytest.approx(13.5e-6) and one.work.flop == 2 * 64**3
    assert one.work.floor == 2 * 64**3 / (2 * 2 * 16), "two multiply-adds of 16 lanes a cycle"


def test_costs_keep_their_unit() -> None:
    task = _task()
    trials = [replace(one, cost=one.cost and one.cost * 1e9) for one in _trials(task)]
    text = explanation_text(explain(task, trials, unit=INSTRUCTIONS))
    assert "best 10.0 k instructions, 52.4 operations per instruction" in text
    assert "the median of the valid ones takes 13.5 k instructions, 1.35 times as long" in text
    assert "measured 10.0 k instructions; the arithmetic" in text and "GHz" not in text and "GB/s" not in text and " s," not in text
    assert "the estimate is right if the clock runs at " in explanation_text(explain(task, _trials(task)))


def test_a_peak_is_compared_with_times_alone() -> None:
    task = _task()
    assert "% of the peak of 100 GFLOP/s" in explanation_text(explain(task, _trials(task), peak_gflops=100.0))
    with pytest.raises(ArgumentError, match="product with a peak of 100 GFLOP/s, but its trials cost instructions, not seconds; leave the peak"):
        explain(task, _trials(task), peak_gflops=100.0, unit=INSTRUCTIONS)


@pytest.mark.parametrize(("n", "limits", "told"), [
    (64, (100.0, 10.0), "10.7 operations a byte of the arguments, each moved once: 48 KiB in 10 us, 4.92 GB/s; they fit in L2 and can stay there"),
    (4096, (None, None), "192 MiB in 10 us, 2.01e+04 GB/s the median"), (4096, (None, 4e4), "50 % of the bandwidth of 40000 GB/s the median"),
    (4096, (1e7, 4e4), "; at so many operations a byte, arithmetic is the limit"), (4096, (1e8, 4e4), "; at so many operations a byte, memory is the limit"),
    (4096, (1e8, 1e4), "201 % of the bandwidth of 10000 GB/s, so part of them stays in a cache"),
])  # fmt: skip
def test_bytes_are_compared_with_the_bandwidth(n: int, limits: tuple[float | None, float | None], told: str) -> None:
    task = _task(n=n)
    one = explain(task, _trials(task), peak_gflops=limits[0], bandwidth_gbytes=limits[1])
    assert one.work.bytes == moved_bytes(task.dag) == 12 * n * n and one.work.fits == ("L2" if n == 64 else "memory")
    assert told in " ".join(explanation_text(one).split())


def test_a_bandwidth_is_compared_with_times_alone() -> None:
    with pytest.raises(ArgumentError, match="with a bandwidth of 20 GB/s, but its trials cost instructions, not seconds; leave the bandwidth"):
        explain(_task(), _trials(_task()), bandwidth_gbytes=20.0, unit=INSTRUCTIONS)


def test_how_far_off_the_estimate_is_by_the_clock_of_the_peak() -> None:
    task = _task()
    needed = explain(task, _trials(task)).best.cycles / 10e-6
    for ratio, told in ((1.0, "about right"), (2.5, "about 2.5 times too slow"), (0.5, "about 2.0 times too fast")):
        one = explain(task, _trials(task), peak_gflops=needed / ratio * 64 / 1e9)
        assert one.place.clock == pytest.approx(needed / ratio) and f"; the estimate is {told}; " in " ".join(explanation_text(one).split())


def test_a_target_without_vectors_has_none_in_the_text() -> None:
    task = _task("cpu -mcpu=znver4 -threads=1 -vector-bytes=4")
    text = explanation_text(explain(task, _trials(task)[:1]))
    assert "vector" not in re.sub("reduce_in_vectors|-vector-bytes", "", text) and "registers  16 results: 16 of 26 accumulators, 2 operands" in text


def test_tiles_and_registers_of_a_row() -> None:
    main = _explained(_task()).main
    assert main.stage == "C"
    assert {one.axis: one.lengths for one in main.tiles} == {"i": (2, 2, 2, 8), "j": (2, 1, 1, 32), "k": (4, 16)}
    tile = main.register_tile
    assert tile is not None
    assert (tile.rows, tile.vectors, tile.accumulators, tile.most, tile.operands, tile.registers, tile.partial) == (8, 2, 16, 26, 3, 32, False)


def test_levels_touch_what_their_loops_need() -> None:
    kib = 1024
    found = [(one.loop, one.extent, one.bytes, one.fits, one.runs) for one in _explained(_task()).main.levels]
    assert found == [
        ("", 1, 48 * kib, "L2", ""),  # all of a, b, c: 3 x 64 x 64 x 4 bytes
        ("C_i_0", 2, 32 * kib, "L2", ""),  # 32 rows of a and c, all of b
        ("C_j_0", 2, 20 * kib, "L2", ""),  # 32 x 64 of a, 64 x 32 of b, 32 x 32 of c: 20 of 32 KiB, but half rows of b and c crowd half of the sets
        ("C_i_1", 2, 14 * kib, "L1", ""),  # 16 rows
        ("C_k_0", 4, 5 * kib, "L1", ""),  # 16 x 16 of a, 16 x 32 of b, 16 x 32 of c
        ("C_i_2", 2, 3.5 * kib, "L1", ""),  # 8 rows
        ("C_k_1", 16, 4 * (8 + 32 + 8 * 32), "L1", ""),
        ("C_i_3", 8, 4 * (1 + 32 + 32), "L1", ""),
        ("C_j_3", 32, 12, "L1", "vectors"),
    ]


def test_bytes_into_caches_depend_on_the_outermost_loop_that_fits() -> None:
    loaded = dict(_explained(_task()).main.loaded)
    # Half rows of b and c map to half of the sets, so that all only fits from C_i_1 on: 16 x 64 of a and 16 x 32 of c for each of 8 iterations; and 64 x 32
    # of b, which stays throughout i_1, for each of the 4 outer ones. 48 KiB stay in the second cache between runs.
    assert loaded == {"L1": (8 * (4 + 2) + 4 * 8) * 1024, "L2": 0, "L3": 0}


def test_the_enclosing_stage_has_a_private_tiles_outer_lengths() -> None:
    task = _task()
    one = explain(task, [_trial(task, PRIVATE, 1e-5, i=(4, 2, 4), j=(1, 1, 16), k=(16,), vector=1)])
    assert one.main.stage == "C_local"
    assert {tiles.axis: tiles.lengths for tiles in one.main.tiles} == {"i": (2, 4, 2, 4), "j": (4, 1, 1, 16), "k": (4, 16)}
    assert [(level.loop, level.extent) for level in one.main.levels[1:]] == [
        ("C_i_0", 2), ("C_j_0", 4), ("C_local_i_1", 4), ("C_local_k_0", 4), ("C_local_i_2", 2), ("C_local_k_1", 16), ("C_local_i_3", 4), ("C_local_j_3", 16)
    ]  # fmt: skip


def test_the_estimate_equals_the_searchs() -> None:
    for threads in (1, 4):
        task = _task(f"cpu -mcpu=znver4 -threads={threads}")
        trial = _trial(task, PRIVATE, 1e-5, i=(4, 2, 4), j=(1, 1, 16), k=(16,), vector=1, parallel=2 if threads > 1 else 0)
        best = explain(task, [trial]).best
        space = task.spaces[trial.pick.space]
        rows = np.asarray([trial.pick.row])
        assert best.cycles == pytest.approx(float(estimated_cycles(space.sketch.lower_rows(rows), 1, task.target)[0]))
        assert [cost.stage for cost in best.costs] == ["C_local", "C"]
        assert legal(space.sketch.lower_row(trial.pick.row), task.target)


def test_fired_unused_and_inapplicable_rules() -> None:
    rules = _explained(_task()).rules
    assert rules.fired == (("multi_level_tiling", ("C",)),)
    assert [(one.name, one.trials, one.measured) for one in rules.without] == [
        ("add_cache_write", 1, 12e-6), ("pack_operands", 0, math.inf), ("multi_level_tiling_with_fusion", 1, 12e-6)
    ]  # fmt: skip
    assert rules.stage == "C" and rules.idle == ("always_inline", "simplify_const_tensor", "add_rfactor", "pack_constants", "reduce_in_vectors", "tensorize")


def test_rules_that_do_not_apply_name_the_stage() -> None:
    task = SearchTask(workloads.conv2d_nchw_bn_relu, (1, 14, 14, 16, 16, 3, 1, 1), TARGET)
    index = next(k for k, space in enumerate(task.spaces) if not space.algorithm)
    one = explain(task, [Outcome(Pick(index, (0,) * len(task.spaces[index].sizes)), 1e-4)])
    inlined = dict(one.rules.fired)["always_inline"]
    assert "always_inline" in one.rules.idle and one.rules.stage not in inlined
    assert re.search(rf"always_inline \({inlined[0]}.*do not apply to {one.rules.stage} +always_inline", explanation_text(one), re.S)


def test_rivals_and_their_differences() -> None:
    one = _explained(_task())
    other, same = one.lost.other_sketch, one.lost.other_tiles
    assert other is not None and other.program.measured == 12e-6 and other.program.main == "C_local"
    assert [fact.text for fact in other.ours] == []
    assert [(fact.stage, fact.text) for fact in other.theirs] == [
        ("C", "accumulated in a private tile and written once"),
        ("C", "tiled like the stage computed inside it: i_0 j_0 | i_1 j_1"),
        ("C_local", "computed inside C at loop j_0"),
        ("C", "vectors along j_1"),
    ], "what both tiled stages share is not listed, whatever their names"
    assert other.tiles == (("C", "i", (2, 2, 2, 8), (2, 1, 4, 8)),)
    assert same is not None and same.program.measured == 15e-6
    assert same.ours == same.theirs == () and same.tiles == (("C", "k", (4, 16), (16, 4)),)


@pytest.mark.parametrize(
    ("seconds", "k", "verdict"),
    [
        (10.1e-6, 4, "may be chance"),
        (20e-6, 4, "the difference is in the instructions"),
        (20e-6, 16, "it predicts no difference"),
        (20e-6, 64, "it predicts that this one is faster, so it does not model the cause"),
    ],
)
def test_the_estimates_verdict_on_a_rival(seconds: float, k: int, verdict: str) -> None:
    task = _task()
    rival = _trial(task, PLAIN, seconds, **{**TILES, "k": (k,), "unroll": 64})
    text = explanation_text(explain(task, [_trial(task, PLAIN, 10e-6, **TILES), rival]), 400)
    assert text.endswith(verdict), text


def _gate(n: int = 64) -> SearchTask:
    """(x @ w) * sigmoid(x @ v): two equally heavy stages."""
    x, w, v = (te.placeholder((n, n), name=name) for name in "xwv")
    k, m = te.reduce_axis(n, "k"), te.reduce_axis(n, "m")
    a = te.compute((n, n), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="a")
    b = te.compute((n, n), lambda i, j: te.sum(x[i, m] * v[m, j], axis=m), name="b")
    return SearchTask(tensors=[x, w, v, te.compute((n, n), lambda i, j: a[i, j] * te.sigmoid(b[i, j]), name="o")], target=TARGET, name="gate")


def _of_gate(task: SearchTask, starts: tuple[str, ...], seconds: float, **values: Value) -> Outcome:
    """A trial of the first sketch whose steps start like this. values: by the names of choices, with _ for the point; 0 if not given."""
    index = next(k for k, one in enumerate(task.spaces) if tuple(step.code for step in one.sketch.steps[: len(starts)]) == starts)
    row = []
    for choice in task.spaces[index].sketch.choices:
        value = values.get(choice.name.replace(".", "_"), 0)
        gene = choice.index_of(value if isinstance(value, tuple) else (value,) * choice.table.shape[1])
        row.append(gene or 0)
    return Outcome(Pick(index, tuple(row)), seconds)


TILING = ("SP", "SP", "SP", "RE")
ONE: dict[str, Value] = {"i": (2, 2, 8), "j": (1, 1, 32), "vector": 1}
GOOD = {f"{stage}_{name}": value for stage in "ab" for name, value in ONE.items()}


def test_stages_of_equal_work_are_compared_by_name() -> None:
    task, both = _gate(), (*TILING, *TILING, "VE")
    best = _of_gate(task, both, 1e-5, **GOOD, a_k=(4,), b_m=(16,))
    other = _of_gate(task, both, 2e-5, **GOOD, a_k=(4,), b_m=(3,))
    one = explain(task, [best, other])
    rival = one.lost.other_tiles
    assert rival is not None and (one.best.main, rival.program.main) == ("a", "b"), "b has more iterations, as its last tile is shorter"
    assert rival.ours == rival.theirs == () and rival.tiles == (("b", "m", (4, 16), (22, 3)),)


def test_a_private_tile_is_compared_with_the_stage_whose_arithmetic_it_does() -> None:
    task = _gate()
    best = _of_gate(task, (*TILING, *TILING, "VE"), 1e-5, **GOOD, a_k=(16,), b_m=(2,))
    private = (*TILING, "FSP", "FSP", "RE", "CA", "CHW", *TILING)
    other = _of_gate(task, private, 2e-5, **GOOD, **{f"a_local_{name}": value for name, value in ONE.items()}, a_local_k=(16,), b_m=(2,))
    one = explain(task, [best, other])
    rival = one.lost.other_sketch
    assert rival is not None and one.best.main == "b" and "a_local" in dict(rival.program.workers)
    assert not [fact for fact in rival.ours if fact.stage == "a" and fact.text.startswith("tiled")], "the tile is tiled in the same way"
    assert {fact.text for fact in rival.theirs if fact.stage == "a_local"} == {"computed inside a at loop j_0"}
    assert {fact.stage for fact in rival.theirs if "private" in fact.text} == {"a"}


def test_the_main_stage_has_the_most_estimated_cycles() -> None:
    x, k = te.placeholder((256, 256), name="x"), te.reduce_axis(256, "k")
    s = te.compute((256,), lambda j: te.sum(x[k, j], axis=k), name="s")
    out = te.compute((256, 256), lambda i, j: te.exp(x[i, j]) / s[j], name="out")
    task = SearchTask(tensors=[x, out], target=TARGET, name="shares")
    one = explain(task, [_of_gate(task, ("SP", "RE", "VE", "PR", "VE"), 1e-5, s_j=(32,), s_vector=1, out_vector=1)])
    cycles = {cost.stage: cost.cycles for cost in one.best.costs}
    assert cycles["out"] > 5 * cycles["s"] and one.main.stage == one.best.main == one.rules.stage == "out"
    share = 100 * cycles["out"] / one.best.cycles
    text = explanation_text(one)
    assert f"out takes {share:.0f} % of these cycles, the larger part for arithmetic (instructions)" in text
    assert "do not apply to out " in text and "Tiles: out, the stage with the most estimated cycles" in text


def test_the_larger_part_of_the_estimate() -> None:
    one = _explained(_task())
    assert "the larger part of these cycles is for arithmetic (instructions)" in explanation_text(one)
    waiting = replace(one, best=replace(one.best, costs=(Cost("C", 1e3, 2e3), Cost("D", 1e3, 0.0))))
    assert "C takes 75 % of these cycles, the larger part for memory (transfers)\n" in explanation_text(waiting)
    known = replace(waiting, place=replace(waiting.place, peak_gflops=100.0))
    assert "the larger part for memory (transfers), so the peak is not the limit\n" in explanation_text(known)


def test_starting_threads_is_a_part_of_its_own() -> None:
    one = _explained(_task())
    assert "starting threads" not in explanation_text(one)
    costs = (Cost("C", 1e3, 2e3, 5e3), Cost("D", 1e3, 0.0))
    text = explanation_text(replace(one, best=replace(one.best, costs=costs)))
    rows = ["          instructions  transfers  starting threads     sum", "  C             1.00 k     2.00 k            5.00 k  8.00 k",
            "  D             1.00 k          0                 0  1.00 k", "  in all        2.00 k     2.00 k            5.00 k  9.00 k"]  # fmt: skip
    assert all(row in text for row in rows)
    assert "C takes 89 % of these cycles, the largest part for starting threads\n" in text
    rival = one.lost.other_sketch
    assert rival is not None
    slower = replace(rival, program=replace(rival.program, costs=(Cost("C", 1e4, 2e3, 5e4),), measured=9e-5))
    text = explanation_text(replace(one, lost=replace(one.lost, other_sketch=slower)))
    assert "starting threads 0 -> 50.0 k: the difference is in starting threads" in " ".join(text.split())


def test_one_valid_trial_has_no_rival() -> None:
    task = _task()
    one = explain(task, _trials(task)[1:2])
    text = explanation_text(one)
    assert one.lost.other_sketch is None and one.lost.other_tiles is None and text.endswith("Lost: nothing else was valid")
    assert "median" not in text and "ranks" not in text


def test_without_a_valid_trial_there_is_nothing_to_explain() -> None:
    task = _task()
    with pytest.raises(RecordError, match="asked to explain product, which has no valid program among 1 recorded trial; tune with more trials"):
        explain(task, _trials(task)[-1:])


def test_the_trials_may_be_those_of_a_record_file(tmp_path: Path) -> None:
    task, path = _task(), tmp_path / "r.jsonl"
    with RecordFile(path, foreign_header("a test")) as file:
        for trial in _trials(task):
            space, failure = task.spaces[trial.pick.space], None if trial.valid else Failure("compile", "no")
            made = Trial(task.workload_key, record_target(task.target), space.sketch.to_json(), trial.pick.row)
            measured = Measurement(() if trial.cost is None else (trial.cost,), failure, unit=INSTRUCTIONS)
            file.append(make_record(measured, made, device="board"))
    assert explain(task, path) == explain(task, str(path)) == explain(task, _trials(task), unit=INSTRUCTIONS)
    with pytest.raises(RecordError, match="no valid program among 0 recorded trials in .*jsonl; .* left out: made for another target"):
        explain(_task("cpu -mcpu=znver4 -threads=2"), path)


@pytest.mark.parametrize(("trials", "error", "told"), [
    ("none.jsonl", RecordError, "asked to explain product with the records in none.jsonl, which is not a file; name a record file"),
    ([3], ArgumentError, r"asked to explain product with an int \(3\); give the path of a record file, or Outcomes"), (5, ArgumentError, "with an int"),
    (None, ArgumentError, "with a NoneType"),
])  # fmt: skip
def test_what_is_neither_trials_nor_a_file_is_told(trials: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        explain(_task(), trials)
    with pytest.raises(ArgumentError, match=r"asked to explain a str \('product'\); give an ansor.SearchTask"):
        explain("product", trials)  # type: ignore[arg-type]


class _Noting:
    """A cost model that records how many programs it was given at a time, and repeats the estimate."""

    def __init__(self, told: list[int]) -> None:
        self.told = told
        self.fitted = False

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        self.told.append(features.count)
        assert len(seconds) == len(tasks) == features.count

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        return -features.sums(np.exp(features.prior_logs()))

    def save(self, path: object) -> None: ...


def _many(task: SearchTask, count: int) -> list[Outcome]:
    """Trials with times in the order of the estimate."""
    lengths = [((a, b, c), (1, 1, lanes)) for a in (1, 2, 4) for b in (1, 2) for c in (1, 2, 4) for lanes in (16, 32)]
    trials = [_trial(task, PLAIN, 1.0, i=i, j=j, k=(16,), vector=1) for i, j in lengths[:count]]
    space = task.spaces[_space(task, PLAIN)]
    cycles = estimated_cycles(space.sketch.lower_rows(np.asarray([one.pick.row for one in trials])), len(trials), task.target)
    return [Outcome(one.pick, float(c) * 1e-9) for one, c in zip(trials, cycles, strict=True)]


def test_the_learned_model_ranks_unseen_trials() -> None:
    task, told = _task(), list[int]()
    one = explain(task, _many(task, 36), model=lambda: _Noting(told))
    assert told == [27] * FOLDS, "three quarters each time"
    assert one.rankings.by_estimate.correlation == pytest.approx(1) and (one.rankings.by_estimate.place, one.rankings.by_estimate.count) == (1, 36)
    assert one.rankings.by_model == one.rankings.by_estimate


def test_few_trials_train_no_model() -> None:
    task, told = _task(), list[int]()
    assert explain(task, _many(task, ENOUGH - 1), model=lambda: _Noting(told)).rankings.by_model is None and not told


def test_ranks_count_from_the_fastest() -> None:
    task = _task()
    trials = _many(task, 12)
    slow = max(trials, key=lambda one: one.cost or 0.0)
    one = explain(task, [Outcome(slow.pick, 1e-9) if trial is slow else trial for trial in trials])
    assert one.rankings.by_estimate.place == 12 and one.rankings.by_estimate.correlation < 1


def test_alternative_algorithms() -> None:
    data, weight = te.placeholder((1, 12, 12, 16), name="data"), te.placeholder((3, 3, 16, 16), name="weight", constant=True)
    task = SearchTask(tensors=[data, weight, te.nn.conv2d_nhwc(data, weight, 1, 1)], target=TARGET, name="conv")
    numbers = {name: k for k, name in reversed(list(enumerate(space.algorithm for space in task.spaces)))}
    assert {"", "winograd_f2"} <= set(numbers)
    trials = [Outcome(Pick(numbers[name], (0,) * len(task.spaces[numbers[name]].sizes)), seconds) for name, seconds in (("winograd_f2", 1e-4), ("", 2e-4))]
    one = explain(task, trials)
    assert one.best.algorithm == "winograd_f2" and one.main.stage == "winograd_product", "it has most of the operations"
    assert ("", 1, 2e-4) in [(tried.name, tried.trials, tried.measured) for tried in one.lost.algorithms]
    assert one.lost.other_sketch is not None and not one.lost.other_sketch.theirs and not one.lost.other_sketch.tiles
    text = explanation_text(one)
    assert "How: by another algorithm, winograd_f2; also searched: the declaration as it is (1 trial, best 2.00 times as long)" in " ".join(text.split())
    assert "2.00 times as long, as declared" in text


def _of_a_core() -> str:
    task = SearchTask(tensors=dense(32, 64, 64), target="vta")
    (space, *_), rng = task.spaces, np.random.default_rng(0)
    rows = rng.integers(0, space.sizes, (200, len(space.sizes)))
    rows = np.unique(rows[space.legal(rows)], axis=0)[:4]
    costs = [float(np.asarray(space.target.cost(space.sketch.lower_row(row.tolist())))) for row in rows]
    trials = [Outcome(Pick(0, tuple(row.tolist())), cost) for row, cost in zip(rows, costs, strict=True)]
    return explanation_text(explain(task, trials, unit=task.target.unit))


def test_targets_with_their_own_estimate_have_no_registers_and_caches() -> None:
    text = _of_a_core()
    number = r"[\d.]+( k)? cycles"
    assert re.search(rf"^Expected: {number} by the estimate of the target; measured {number}\n  it ranks the best at place 1 of 4", text, re.M)
    assert "(rank correlation with the times 1.00)" in text and re.search(r"estimate +cycles .* -> .*: it predicts", text)
    assert "registers" not in text and "transfers" not in text and "caches" not in text and "touches" not in text


@pytest.mark.parametrize("width", [80, WIDTH, 160])
def test_text_keeps_to_its_width_and_says_the_same(width: int) -> None:
    one = _explained(_task())
    text = explanation_text(one, width)
    assert max(map(len, text.splitlines())) <= width
    assert text.split() == explanation_text(one, 1000).split()


def test_the_text() -> None:
    task = _task()
    text = explanation_text(explain(task, _trials(task), peak_gflops=100.0))
    assert text == TEXT
    heads = [line.partition(":")[0] for line in text.splitlines() if line and not line.startswith(" ")]
    assert heads == ["product for cpu -mcpu=znver4 -threads=1", "How", "Tiles", "Expected", "Lost"]
    assert all(a or b for a, b in pairwise(text.splitlines())), "one empty line at a time"


TEXT = """\
product for cpu -mcpu=znver4 -threads=1
  5 trials, 4 valid; best 10 us, 52.4 GFLOP/s, 52 % of the peak of 100 GFLOP/s
  10.7 operations a byte of the arguments, each moved once: 48 KiB in 10 us, 4.92 GB/s; they fit in L2 and can
    stay there from run to run, so memory is not the limit
  the median of the valid ones takes 13.5 us, 1.35 times as long
  failures: compile 1

How: as declared
  C  tiled SSRSRS: i_0 j_0 | i_1 j_1 | k_0 | i_2 j_2 | k_1 | i_3 j_3; vectors along j_3; reduction unrolled up
     to 16 statements
  rules that led here       multi_level_tiling (C)
  apply to C, but not used  add_cache_write (1 trial, best 1.20 times as long), pack_operands (no trial),
                            multi_level_tiling_with_fusion (1 trial, best 1.20 times as long)
  do not apply to C         always_inline, simplify_const_tensor, add_rfactor, pack_constants,
                            reduce_in_vectors, tensorize

Tiles: C, the stage with the most estimated cycles, from the outermost loop to the innermost
  i  64 = 2 x 2 x 2 x 8
  j  64 = 2 x 1 x 1 x 32
  k  64 = 4 x 16
  registers  8 rows of 2 vectors of results: 16 of 26 accumulators, 3 operands, 32 registers
  one iteration of     touches  fits
  all of it             48 KiB  L2
  C_i_0 (2)             32 KiB  L2
  C_j_0 (2)             20 KiB  L2
  C_i_1 (2)             14 KiB  L1
  C_k_0 (4)              5 KiB  L1
  C_i_2 (2)            3.5 KiB  L1
  C_k_1 (16)          1.16 KiB  L1
  C_i_3 (8)              260 B  L1
  C_j_3 (32)              12 B  L1  vectors
  loaded over the whole run: into L1 (32 KiB) 80 KiB, L2 (1 MiB) 0 B, L3 (32 MiB) 0 B; a tile fits if it fills
    75 % of a cache or less (for L1: of the sets that it maps to)

Expected: cycles by the estimate
          instructions  transfers     sum
  C             9.86 k     1.28 k  11.1 k
  the larger part of these cycles is for arithmetic (instructions)
  measured 10 us; the estimate is about 1.4 times too fast; the arithmetic as declared takes at least 8.19 k
    cycles, 74 % of the estimate
  the estimate ranks the best at place 1 of 4 (rank correlation with the times 1.00)

Lost:
  the best of another sketch: 12 us, 1.20 times as long
    only this one  C: accumulated in a private tile and written once; tiled like the stage computed inside it:
                   i_0 j_0 | i_1 j_1; vectors along j_1. C_local: computed inside C at loop j_0
    tiles          C: i 2 x 2 x 2 x 8 -> 2 x 1 x 4 x 8
    estimate       instructions 9.86 k -> 10.2 k, transfers 1.28 k -> 1.41 k: the difference is in the
                   instructions
  the best other program of the same sketch: 15 us, 1.50 times as long
    tiles     C: k 4 x 16 -> 16 x 4
    estimate  instructions 9.86 k -> 14.8 k, transfers 1.28 k -> 1.28 k: the difference is in the instructions"""
