"""Rules that a person gives to a task."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import ansor
from ansor.rules.base import Derived
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split
from ansor.targets.base import Target, parse_target

ONE = parse_target("cpu -threads=1")


@dataclass(frozen=True)
class SplitOf:
    """Splits the first loop of a stage."""

    of: str
    exclusive: bool = False

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        if stage == self.of:
            yield Derived(sketch.then(Split(stage, "i", (2,), 2)))


def test_a_rule_of_ones_own_that_never_applies_is_told() -> None:
    task = ansor.SearchTask("matmul", (16, 16, 16), ONE, rules=[SplitOf("D"), *ONE.rules])
    with pytest.warns(ansor.AnsorWarning, match=r"the rule SplitOf\(of='D', exclusive=False\) makes no sketch of .*\(stages C\): it yields nothing for them"):
        assert task.spaces


def test_the_warning_names_the_line_of_the_caller() -> None:
    with pytest.warns(ansor.AnsorWarning, match="makes no sketch") as caught:
        assert ansor.SearchTask("matmul", (16, 16, 16), ONE, rules=[SplitOf("D"), *ONE.rules]).spaces
    assert caught[0].filename == __file__


def test_rules_that_apply_and_those_of_the_target_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ansor.SearchTask("matmul", (16, 16, 16), ONE, rules=[SplitOf("C"), *ONE.rules]).spaces
        assert ansor.SearchTask("matmul", (16, 16, 16), ONE).spaces
