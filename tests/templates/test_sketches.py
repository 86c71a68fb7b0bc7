"""Templates as sketches: their rows are the configurations that the template accepts, and compute the declaration."""

import numpy as np
import pytest

import ansor
from ansor import autotvm, te
from ansor.errors import DeclarationError, InstantiationError, ScheduleError
from ansor.ir import interpreter
from ansor.ir.dag import Dag
from ansor.schedule.legality import legal
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Step
from ansor.search.tables import all_rows
from ansor.targets.base import parse_target
from ansor.tasks.sketch_space import SketchSpace
from ansor.templates import sketches as module
from ansor.templates.sketches import template_sketches
from ansor.templates.task import collect
from ansor.templates.template import Instance
from tests.autotvm.templates import matmul


def sketches_of(name: str, *args: object) -> tuple[autotvm.Task, list[Sketch]]:
    task, (_, tensors) = collect(name, args)
    return task, template_sketches(task, Dag(tensors))


def programs(sketches: list[Sketch]) -> list[tuple[Step, ...]]:
    """The steps of each row."""
    return [sketch.concrete_steps(row) for sketch in sketches for row in all_rows(sketch.sizes).tolist()]


def configurations(task: autotvm.Task) -> list[tuple[Step, ...]]:
    """The steps of every possible configuration, without duplicates."""
    found: dict[tuple[Step, ...], None] = {}
    for index in range(len(task.config_space)):
        try:
            s, tensors = task.instantiate(task.config_space.get(index))
        except InstantiationError:
            continue
        found[s.sketch(tensors).steps] = None
    return list(found)


def test_knobs_are_choices() -> None:
    task, (plain, vectors) = sketches_of("tests/matmul", 32, 32, 64)
    assert str(plain).splitlines() == [
        "Split(stage='C', loop='i', lengths='tile_y', parts=2)",
        "Split(stage='C', loop='j', lengths='tile_x', parts=2)",
        "Reorder(stage='C', loops=('i_0', 'j_0', 'r', 'i_1', 'j_1'))",
    ]
    assert vectors.steps[:3] == plain.steps and len(vectors.steps) == 4
    assert [(choice.name, choice.kind, choice.extent, choice.table.tolist()) for choice in plain.choices] == [
        ("tile_y", "tile", 32, [[1], [2], [4], [8], [16], [32]]),
        ("tile_x", "tile", 32, [[1], [2], [4], [8], [16]]),  # 32 columns are refused
    ]


@pytest.mark.parametrize(("name", "args"), [("tests/matmul", (6, 32, 8)), ("tests/everything", (3, 10, 4))])
def test_rows_are_the_accepted_configurations(name: str, args: tuple[int, ...]) -> None:
    task, sketches = sketches_of(name, *args)
    rows, wanted = programs(sketches), configurations(task)
    assert len(rows) == len(wanted) < len(task.config_space) and set(rows) == set(wanted)


def test_dependent_numbers_are_one_choice() -> None:
    _, sketches = sketches_of("tests/everything", 3, 10, 4)
    together = [choice for sketch in sketches for choice in sketch.choices if choice.name != "y"]
    assert {choice.name for choice in together} == {"x+step"} and {choice.numbers for choice in together} == {
        (("x+step.0", 1), ("x+step.1", 1), ("x+step.2", 1)),
    }
    (table,) = {tuple(map(tuple, choice.table.tolist())) for choice in together}
    assert table == tuple((x, step, 16 * step) for x in (1, 2, 4, 8) for step in (1, 2, 4) if x * step <= 16)


def test_programs_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (3, 4)).astype(np.float32), rng.integers(-3, 4, (4, 10)).astype(np.float32)
    _, sketches = sketches_of("tests/everything", 3, 10, 4)
    assert len(sketches) > 8
    for sketch in sketches:
        row = [int(rng.integers(size)) for size in sketch.sizes]
        found = interpreter.run(sketch.lower_row(row), {"A": a, "B": b})["C"]
        np.testing.assert_array_equal(found, np.maximum(a @ b, 0))


def test_lowering_rows_together_equals_lowering_them_singly() -> None:
    _, sketches = sketches_of("tests/everything", 3, 10, 4)
    rows = all_rows(sketches[0].sizes)
    together = {name: np.stack([np.asarray(part) for part in parts], axis=1) for name, parts in sketches[0].numbers(rows).items()}
    assert set(together) == {"y", "x+step.0", "x+step.1", "x+step.2"}
    for k, row in enumerate(rows.tolist()):
        assert {name: tuple(found[k].tolist()) for name, found in together.items()} == sketches[0].row_numbers(row)


def test_legality_of_a_population_equals_that_of_its_rows() -> None:
    _, sketches = sketches_of("tests/everything", 3, 10, 4)
    target = parse_target("cpu -threads=1")
    for sketch in sketches[:2]:
        rows = all_rows(sketch.sizes)
        space = SketchSpace(sketch, target)
        assert space.legal(rows).tolist() == [bool(legal(sketch.lower_row(row), target)) for row in rows.tolist()]
        assert space.features(rows).count == len(rows)


def test_another_declaration_of_the_same_arrays_is_kept() -> None:
    @autotvm.template("tests/staged")
    def staged(n: int) -> Instance:
        a = te.placeholder((n,), name="A")
        cfg = autotvm.get_config()
        cfg.define_knob("twice", [False, True])
        b = te.compute((n,), lambda i: a[i] + 0.0, name="B") if cfg["twice"].val else a
        c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
        return ansor.create_schedule(c.op), [a, c]

    task, (_, tensors) = collect("tests/staged", (8,))
    dag = Dag(tensors)
    one, other = template_sketches(task, dag)
    assert one.dag is dag and [stage.name for stage in other.dag.stages] == ["A", "B", "C"]


def test_other_arrays_are_refused() -> None:
    task, _ = collect("tests/matmul", (8, 8, 8))
    with pytest.raises(DeclarationError, match="alternative \"template 'tests/matmul'\" takes and gives"):
        template_sketches(task, Dag(matmul(8, 8, 4)[1]))


def test_a_template_that_refuses_everything_raises() -> None:
    @autotvm.template("tests/refused")
    def refused() -> Instance:
        autotvm.get_config().raise_error("never")
        return matmul(8, 8, 8)

    with pytest.raises(ScheduleError, match="refuses all of its 32 configurations .first: .*; widen"):
        sketches_of("tests/refused")


def test_reading_too_many_values_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 10)
    with pytest.raises(ScheduleError, match="reads the values of the knobs .*, which takes more than 10 runs to enumerate; give them fewer values"):
        sketches_of("tests/matmul", 32, 32, 64)
