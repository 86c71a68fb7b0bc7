from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.loops import stores
from ansor.rules.base import Derived
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split
from ansor.search.derive import derive_sketches, spaces
from ansor.targets.base import Target, parse_target
from ansor.te import workloads

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
    with pytest.raises(ScheduleError, match="no rule takes a stage of the workload .C.; add skip_stage"):
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
