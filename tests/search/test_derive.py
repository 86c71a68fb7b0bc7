from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.loops import stores
from ansor.rules.base import Derived
from ansor.schedule.choice import Choice, tile_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split
from ansor.search.derive import LEAST_SKETCHES, PLACED, derive_sketches, most_sketches, spaces
from ansor.targets.base import Target, parse_target
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -threads=4")


@dataclass(frozen=True)
class SplitRows:
    """The custom rule of the reference's test: matmul untouched, and with its rows split by 8 and 2."""

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        if stage != "C":
            return
        yield Derived(sketch)
        yield Derived(sketch.then(Split("C", "i", (8, 2), 3)))


@dataclass(frozen=True)
class Endless:
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        yield Derived(sketch, revisit=(stage,))


@dataclass(frozen=True)
class Doubling:
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        yield Derived(sketch, revisit=(stage,))
        yield Derived(sketch, revisit=(stage,))


def test_a_rule_of_a_users_own_comes_first() -> None:
    untouched, split = derive_sketches(Dag(workloads.matmul(512, 512, 512)), (SplitRows(), *TARGET.rules), TARGET)
    assert untouched.steps == ()
    ((path, _),) = stores(split.lower_row(()).body)
    assert [loop.var.extent for loop in path] == [32, 8, 2, 512, 512]


@pytest.mark.parametrize("rule", [Endless(), Doubling()])
def test_rules_that_never_end_are_stopped(rule: Endless | Doubling) -> None:
    with pytest.raises(ScheduleError, match="revisit fewer stages"):
        derive_sketches(Dag(workloads.matmul(8, 8, 8)), (rule,), TARGET)


def test_rules_that_leave_a_stage_alone_reach_nothing() -> None:
    with pytest.raises(ScheduleError, match="no rule handles a stage of the workload .C.; add skip_stage"):
        derive_sketches(Dag(workloads.matmul(8, 8, 8)), ("always_inline",), TARGET)


def test_spaces_are_few_distinct_and_the_same_every_time() -> None:
    for tensors, most in ((workloads.matmul(64, 64, 64), 7), (workloads.conv2d_nchw_bn_relu(1, 14, 14, 8, 8, 3, 1, 1), 30)):
        found = spaces(Dag(tensors), TARGET)
        assert 3 <= len(found) <= most
        assert len({sketch.name for sketch in found}) == len(found)
        assert [sketch.name for sketch in found] == [sketch.name for sketch in spaces(Dag(tensors), TARGET)]
        for sketch in found:
            assert len({choice.name for choice in sketch.choices}) == len(sketch.choices), "names of choices are unique"


def test_spaces_of_one_thread_have_no_parallel_loops() -> None:
    for sketch in spaces(Dag(workloads.conv2d_nchw_bn_relu(1, 14, 14, 8, 8, 3, 1, 1)), parse_target("cpu -threads=1")):
        assert not any(choice.name.endswith(".parallel") for choice in sketch.choices)


def test_rules_may_be_given() -> None:
    found = spaces(Dag(workloads.matmul(64, 64, 64)), TARGET, rules=(SplitRows(),))
    assert [sketch.steps[:1] for sketch in found][1] == (Split("C", "i", (8, 2), 3),)


def test_a_program_without_choices_is_a_space_of_one_row() -> None:
    x = te.placeholder((), name="x")
    (only,) = spaces(Dag([x, te.compute((), lambda: x[()] + 1.0, name="y")]), TARGET)
    assert only.sizes.shape == (0,)


def dense_layers(count: int) -> list[Tensor]:
    """Layers of 64, each with a ReLU."""
    given = [te.placeholder((8, 64), name="x")]
    value = given[0]
    for k in range(count):
        given.append(te.placeholder((64, 64), name=f"w{k}", constant=True))
        value = nn.relu(nn.dense(value, given[-1], name=f"d{k:02d}"))
    return [*given, value]


def ways(sketch: Sketch, count: int) -> set[tuple[str, ...]]:
    """What was done to each of the layers, by the kinds of steps."""
    return {tuple(type(step).__name__ for step in sketch.steps if step.stage.startswith(f"d{k:02d}")) for k in range(count)}


@pytest.mark.parametrize("count", [6, 12])
def test_long_chains_have_few_sketches_those_that_treat_stages_alike_first(count: int) -> None:
    dag = Dag(dense_layers(count))
    found = derive_sketches(dag, TARGET.rules, TARGET)
    assert LEAST_SKETCHES <= len(found) == most_sketches(dag)
    alike = {ways(sketch, count - 1).pop() for sketch in found if len(ways(sketch, count - 1)) == 1}
    assert len(alike) >= 3, "ways that all layers but the last can be treated alike"
    assert len(ways(found[0], count - 1)) == 1 < len(ways(found[-1], count - 1))
    assert len(spaces(dag, TARGET)) <= PLACED * most_sketches(dag)


def test_short_chains_have_every_combination() -> None:
    assert len(derive_sketches(Dag(dense_layers(1)), TARGET.rules, TARGET)) ** 2 <= len(derive_sketches(Dag(dense_layers(2)), TARGET.rules, TARGET)) + 6
    assert len(derive_sketches(Dag(workloads.double_matmul(64)), TARGET.rules, TARGET)) == 35


def test_states_made_step_by_step_are_those_made_at_once() -> None:
    for sketch in derive_sketches(Dag(dense_layers(2)), TARGET.rules, TARGET):
        again = Sketch(sketch.dag, sketch.steps, sketch.choices)
        assert str(again.state.stages) == str(sketch.state.stages)


@dataclass(frozen=True)
class Gives:
    """A rule whose `derive` gives what somebody may have written by mistake."""

    mistake: object
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        return self.mistake  # type: ignore[return-value]


@pytest.mark.parametrize(("mistake", "words"), [(None, "gave a NoneType for stage C"), ((1,), "gave an int for stage C")])
def test_what_a_rule_gives_and_is_no_derived_is_told(mistake: object, words: str) -> None:
    with pytest.raises(ScheduleError, match=f"{words}; let it yield Derived"):
        derive_sketches(Dag(workloads.matmul(16, 16, 16)), [Gives(mistake)], TARGET)


def test_a_split_by_a_choice_that_was_not_given_is_told() -> None:
    sketch = Sketch(Dag(workloads.matmul(16, 16, 16))).then(Split("C", "i", "free", 2))
    with pytest.raises(ScheduleError, match="loop i is split by 'free', and the sketch has no choice of that name; pass it too"):
        sketch.lower_row(())


def test_the_rules_that_made_a_sketch_are_known_by_their_numbers() -> None:
    used: set[int] = set()
    derive_sketches(Dag(workloads.matmul(16, 16, 16)), [Gives(()), SplitRows(), "skip_stage"], TARGET, used)
    assert used == {1}


@dataclass(frozen=True, eq=False)
class Tiles:
    """A rule that splits a loop by a choice."""

    choices: tuple[Choice, ...]
    parts: int = 3
    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        yield Derived(sketch.then(Split(stage, "i", "C.i", self.parts), choices=self.choices))


@pytest.mark.parametrize(
    ("rule", "words"),
    [(Tiles(()), r"the step Split of C\.i reads the choice C\.i, which `choices=\[...\]` does not list \(it is left out\); pass it too"),
     (Tiles((tile_choice("C.k", 16, 2),)), r"reads the choice C\.i, which `choices=\[...\]` does not list \(it lists C\.k\)"),
     (Tiles((tile_choice("C.i", 16, 2),), 4), r"Split of C\.i reads the choice C\.i of 2 numbers for 4 parts; give parts=3, or a choice of 3 numbers")],
)  # fmt: skip
def test_steps_without_their_choices_are_told(rule: Tiles, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        derive_sketches(Dag(workloads.matmul(16, 16, 16)), [rule], TARGET)
    assert derive_sketches(Dag(workloads.matmul(16, 16, 16)), [Tiles((tile_choice("C.i", 16, 2),))], TARGET)
