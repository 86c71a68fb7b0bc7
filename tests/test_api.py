"""From a declaration to a kernel that a person calls."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.codegen.source import CSource
from ansor.errors import AnsorError, AnsorWarning, DeclarationError, DeviceError, RecordError, TargetError
from ansor.ir.evaluate import evaluate
from ansor.measure.failure import Failure
from ansor.measure.kernel import Kernel
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.measure.record import load
from ansor.rules.base import Derived, SketchRule
from ansor.run.choosing import say_guesses
from ansor.run.kernels import built
from ansor.run.program import Program
from ansor.run.states import Best, Guess, TaskState
from ansor.run.zero_tuning import pick
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split
from ansor.targets.base import Target, parse_target
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor

ONE = "cpu -threads=1"


def embedding(rows: int, width: int) -> list[Tensor]:
    index = te.placeholder((7,), "int32", name="index")
    table = te.placeholder((rows, width), name="table")
    return [index, table, te.compute((7, width), lambda i, j: table[index[i], j] * 2.0, name="picked")]


def int8_matmul(n: int) -> list[Tensor]:
    a, b = te.placeholder((n, n), "int8", name="a"), te.placeholder((n, n), "int8", name="b")
    r = te.reduce_axis((0, n), name="r")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), name="c")]


def two_outputs(n: int) -> list[Tensor]:
    x = te.placeholder((n, 24), name="x")
    r = te.reduce_axis((0, 24), name="r")
    total = te.compute((n,), lambda i: te.sum(x[i, r], axis=r), name="total")
    return [x, total, te.compute((n, 24), lambda i, j: x[i, j] / total[i], name="share")]


def rank_zero(n: int) -> list[Tensor]:
    x = te.placeholder((n,), name="x")
    r = te.reduce_axis((0, n), name="r")
    return [x, te.compute((), lambda: te.max(x[r], axis=r), name="greatest")]


def packed_dense(n: int) -> list[Tensor]:
    x, w = te.placeholder((3, n), name="x"), te.placeholder((20, n), name="w", constant=True)
    return [x, w, nn.relu(nn.dense(x, w))]


def conv(layout: str) -> list[Tensor]:
    shapes = ((1, 5, 9, 9), (6, 5, 3, 3)) if layout == "NCHW" else ((1, 9, 9, 5), (3, 3, 5, 6))
    x, w = te.placeholder(shapes[0], name="x"), te.placeholder(shapes[1], name="w", constant=True)
    return [x, w, nn.relu(nn.conv2d(x, w, 1, 1, 1, data_layout=layout))]


CASES: list[tuple[Callable[..., list[Tensor]], tuple[object, ...]]] = [
    (workloads.matmul, (16, 24, 20)), (embedding, (11, 5)), (int8_matmul, (17,)), (two_outputs, (6,)), (rank_zero, (50,)), (packed_dense, (13,)),
    (conv, ("NCHW",)), (conv, ("NHWC",)), (workloads.softmax_nm, (6, 33)),
]  # fmt: skip


def inputs_of(tensors: Sequence[Tensor]) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Random inputs that are fit for indices too."""
    rng = np.random.default_rng(0)
    made: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = []
    for tensor in tensors:
        if tensor.is_placeholder:
            whole = tensor.dtype.startswith("int")
            made.append(rng.integers(0, 7, tensor.shape).astype(tensor.dtype) if whole else rng.uniform(0.5, 1, tensor.shape).astype(tensor.dtype))
    return made


def check(kernel: Kernel | Program, tensors: Sequence[Tensor]) -> None:
    """The kernel agrees with NumPy."""
    inputs = inputs_of(tensors)
    placeholders = [tensor for tensor in tensors if tensor.is_placeholder]
    expected = evaluate([tensor for tensor in tensors if not tensor.is_placeholder], dict(zip(placeholders, inputs, strict=True)))
    found = kernel(*inputs)
    for one, other in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5)


@pytest.mark.compiler
@pytest.mark.parametrize("trials", [0, 4])
@pytest.mark.parametrize(("function", "args"), CASES)
def test_every_kind_of_declaration_is_tuned_verified_and_right(
    function: Callable[..., list[Tensor]], args: tuple[object, ...], trials: int, tmp_path: Path
) -> None:
    records = tmp_path / "records.jsonl"
    tensors = function(*args)
    kernel = ansor.auto_schedule(lambda: tensors, (), "cpu -threads=2", trials=trials, records=records if trials else None)
    check(kernel, tensors)
    assert "for " in kernel.schedule or not tensors[-1].shape
    assert "void" in kernel.source
    if trials:
        found = load(records).records
        assert len(found) == trials
        assert [record.failure for record in found] == [None] * trials
        assert kernel.latency_s == min(record.cost for record in found)


@pytest.mark.compiler
def test_recorded_programs_are_used_without_measuring(tmp_path: Path) -> None:
    records = tmp_path / "matmul.jsonl"
    tuned = ansor.auto_schedule(workloads.matmul, (32, 32, 32), ONE, trials=6, records=records)
    again = ansor.auto_schedule(workloads.matmul, (32, 32, 32), ONE, trials=0, records=records)
    assert again.schedule == tuned.schedule
    assert again.latency_s == tuned.latency_s
    assert len(load(records).records) == 6


@pytest.mark.compiler
def test_the_names_of_ansors_users(tmp_path: Path) -> None:
    task = ansor.SearchTask(func=workloads.matmul, args=(16, 16, 16), target=ONE)
    path = str(tmp_path / "matmul.jsonl")
    with pytest.raises(RecordError, match="no valid record"):
        task.apply_best(path)
    task.tune(ansor.TuningOptions(num_measure_trials=4, measure_callbacks=[ansor.RecordToFile(path)], verbose=0))
    schedule, tensors = task.apply_best(path)
    assert not schedule.choices or not any(isinstance(value, str) and value in {c.name for c in schedule.choices} for value in [schedule.name])
    assert schedule.lower_row(()).arguments[0].shape == (16, 16)
    assert [tensor.name for tensor in tensors] == ["A", "B", "C"]
    assert len(ansor.SketchPolicy(task).generate_sketches()) == 7  # tiled, and cached at two levels with no operand packed, B, or both


@dataclass(frozen=True)
class SplitRows:
    """A user's rule: cut the rows of every output in two."""

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        if not sketch.state[stage].relations:
            yield Derived(sketch.then(Split(stage, "i", (2,), 2)))


def test_a_users_rules_replace_the_targets() -> None:
    rule: SketchRule = SplitRows()
    task = ansor.SearchTask(workloads.matmul, (16, 16, 16), ONE)
    sketches = ansor.SketchPolicy(task, rules=[rule]).generate_sketches()
    assert [sketch.state["C"].loops for sketch in sketches] == [("i_0", "i_1", "j", "k")]
    assert ansor.SearchTask(workloads.matmul, (16, 16, 16), ONE, rules=[rule]).spaces[0].sketch.state["C"].loops[:2] == ("i_0", "i_1")


def test_workloads_have_names() -> None:
    @ansor.register_workload("tests.twice")
    def twice(n: int) -> list[Tensor]:
        x = te.placeholder((n,), name="x")
        return [x, te.compute((n,), lambda i: x[i] * 2.0, name="y")]

    assert ansor.SearchTask("tests.twice", (4,), ONE).dag.key == ansor.SearchTask(twice, (4,), ONE).dag.key
    with pytest.raises(DeclarationError, match="exists already"):
        ansor.register_workload("tests.twice")(lambda: [])
    with pytest.raises(DeclarationError, match="not registered"):
        ansor.SearchTask("tests.thrice", (4,), ONE)


def test_mistakes_are_explained() -> None:
    with pytest.raises(TargetError, match="not one of its options"):
        ansor.SearchTask(workloads.matmul, (4, 4, 4), "cpu -treads=1")
    with pytest.raises(DeclarationError, match=r"returned an int; it has to return the list"):
        ansor.auto_schedule(lambda: 3, (), ONE, trials=0)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(DeclarationError, match="exactly one of func"):
        ansor.SearchTask(target=ONE)


@pytest.mark.torch
@pytest.mark.compiler
def test_groups_that_compute_the_same_are_one_task(tmp_path: Path) -> None:
    import torch

    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.second(torch.relu(self.first(x))).clamp(min=0)
            return found

    torch.manual_seed(0)
    model, x = Twice().eval(), torch.randn(4, 16)
    tasks, weights = ansor.extract_tasks(model, (x,), ONE)
    assert (len(tasks), weights) == (1, [2])
    records = tmp_path / "net.jsonl"
    network = ansor.compile(model, (x,), ONE, trials=4, records=records)
    assert len(load(records).records) == 4
    with torch.no_grad():
        torch.testing.assert_close(network(x), model(x))


@pytest.mark.compiler
def test_targets_of_this_processor_are_tuned_one_by_one() -> None:
    tasks = [ansor.SearchTask(workloads.matmul, (8, 8, 8), target) for target in (ONE, "cpu -threads=1 -stack=256K")]
    with pytest.raises(DeviceError, match="building programs would disturb what local measures; tune for .* in a run of its own"):
        ansor.tune_tasks(tasks, trials=4)


@pytest.mark.compiler
def test_a_program_that_does_not_build_is_replaced_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    task = ansor.SearchTask(workloads.matmul, (8, 8, 8), ONE)
    broken = pick(task).program
    plain = task.source

    def source(sketch: Sketch, row: Sequence[int], entry: str = "kernel") -> CSource:
        made = plain(sketch, row, entry)
        return replace(made, text=made.text + "this is not C") if sketch is broken.sketch else made

    monkeypatch.setattr(task, "source", source)
    lines: list[str] = []
    check(built([task], [broken], None, lines.append)[0], task.tensors)
    assert "using the plain declaration" in lines[0]
    with pytest.warns(RuntimeWarning, match="using the plain declaration"):  # nobody to tell
        built([task], [broken])


@pytest.mark.compiler
def test_less_time_than_a_round_takes_still_gives_a_kernel() -> None:
    lines: list[str] = []
    kernel = ansor.auto_schedule(workloads.matmul, (16, 16, 16), ONE, minutes=1e-9, report=lines.append)
    assert "there was no time to measure a program; the model picks one" in lines
    check(kernel, workloads.matmul(16, 16, 16))


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), "ten"])
def test_minutes_that_are_no_time_are_refused_in_one_sentence(minutes: float) -> None:
    for tune in (
        lambda: ansor.auto_schedule(workloads.matmul, (16, 16, 16), ONE, minutes=minutes),
        lambda: ansor.tune_tasks([ansor.SearchTask(workloads.matmul, (16, 16, 16), ONE)], minutes=minutes),
        lambda: ansor.compile(None, (), ONE, minutes=minutes),
    ):
        with pytest.raises(AnsorError, match=r"^asked to tune for minutes=[^\n]*$"):
            tune()


@pytest.mark.compiler
def test_what_failed_when_measured_is_not_picked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(measurer: Measurer, batch: Sequence[Candidate]) -> Generator[Measurement, None, None]:
        yield from [Measurement(failure=Failure("wrong_answer", "made up"))] * len(batch)

    monkeypatch.setattr(Measurer, "measure", wrong)
    lines: list[str] = []
    records = tmp_path / "records.jsonl"
    kernel = ansor.auto_schedule(workloads.matmul, (16, 16, 16), ONE, trials=4, records=records, report=lines.append)
    assert "matmul(16, 16, 16): the declaration as it is, because no measured program was valid (wrong_answer 4)" in lines
    check(kernel, workloads.matmul(16, 16, 16))
    assert "matmul(16, 16, 16): all 4 programs that were tried have failed (4 wrong_answer); the first: made up" in lines
    with pytest.warns(AnsorWarning, match="all 4 programs that were tried have failed"):  # who shows and hears nothing is warned
        ansor.auto_schedule(workloads.matmul, (16, 16, 16), ONE, trials=4, progress=False)
    lines.clear()
    ansor.auto_schedule(workloads.matmul, (16, 16, 16), ONE, trials=0, records=records, report=lines.append)
    assert lines == ["matmul(16, 16, 16): the declaration as it is, because no measured program was valid (wrong_answer 4)"], "the records say so, too"


def test_guesses_are_summed_up_in_one_line() -> None:
    def state(name: str, how: str, confidence: float | None) -> TaskState:
        task = ansor.SearchTask(workloads.matmul, (8, 8, 8), ONE)
        task.name = name
        return TaskState(task, guess=Guess(Best(Sketch(task.dag), (), math.inf), how, confidence))

    lines: list[str] = []
    say_guesses([state("a", "chosen by the model", 0.9)], lines.append)
    say_guesses([state("a", "chosen by the model", 0.9), state("b", "chosen by the model", 0.5), state("c", "as it is", None)], lines.append)
    say_guesses([state("a", "chosen by the model", 0.9), state("b", "chosen by the model", 0.8)], lines.append)
    say_guesses([TaskState(ansor.SearchTask(workloads.matmul, (8, 8, 8), ONE))], lines.append)
    say_guesses([state("a", "chosen by the estimate", None), state("b", "chosen by the estimate", None)], lines.append)
    assert lines == [
        "a: chosen by the model; it is expected to reach 90 % of the speed of a tuned one",
        "3 programs were picked without measuring; they are expected to reach 70 % of the tuned speed, b 50 %; 1 as it is",
        "2 programs were picked by the model without measuring; they are expected to reach 85 % of the tuned speed, b 80 %",
        "2 programs were picked without measuring; all chosen by the estimate",
    ]


@pytest.mark.compiler
@pytest.mark.torch
def test_compile_takes_what_auto_schedule_takes() -> None:
    import torch

    model, x = torch.nn.Linear(8, 8).eval(), torch.randn(2, 8)
    lines: list[str] = []
    net = ansor.compile(model, (x,), None, trials=400, early_stop=2, library=False, report=lines.append)
    assert torch.allclose(cast(torch.Tensor, net(x)), model(x), atol=1e-4)
    assert not any(line.startswith("400 trials") for line in lines)
    assert [task.target.threads for task in ansor.extract_tasks(model, (x,), None).tasks] == [parse_target("cpu").threads]
