"""Rules by name, and the knobs that a target may set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ansor.errors import ScheduleError
from ansor.rules.base import Derived, SketchRule
from ansor.rules.multi_level_tiling import MultiLevelTiling
from ansor.rules.pack_operands import PackOperands
from ansor.rules.registry import name_of, register, resolve, rule_named
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


def test_a_name_stands_for_a_rule_with_its_defaults() -> None:
    assert rule_named("pack_operands") == rule_named("pack_operands()") == PackOperands()


def test_knobs_stand_behind_the_name() -> None:
    assert resolve(["pack_operands(reuse=4)", "multi_level_tiling(structure='SSRS', uneven=None)"]) == (
        PackOperands(reuse=4), MultiLevelTiling("SSRS", uneven=None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pack_operands(amount=4)", "has no knob 'amount'; it has reuse, exclusive"),
        ("pack_operands(4)", "cannot be read"),
        ("pack_operands(reuse=4", "cannot be read"),
        ("pack_operands(reuse=open('x'))", "cannot be read"),
        ("pack_operands(**{})", "cannot be read"),
        ("magic(reuse=4)", "asked for sketch rule 'magic'; the rules are"),
        ("pack_operand", "(did you mean pack_operands?)"),
    ],
)
def test_what_there_is_not_is_told(text: str, words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        rule_named(text)
    assert words in str(caught.value)


def test_rules_have_their_registered_names() -> None:
    @dataclass(frozen=True)
    class Unregistered:
        exclusive: bool = False

        def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
            yield from ()

    given: tuple[str | SketchRule, ...] = ("tensorize", MultiLevelTiling(), PackOperands(reuse=4), Unregistered())
    assert tuple(map(name_of, given)) == ("tensorize", "multi_level_tiling", "pack_operands(reuse=4)", "Unregistered")
    register("registered_now")(Unregistered)
    assert name_of(Unregistered()) == "registered_now" and name_of(Unregistered(exclusive=True)) == "registered_now(exclusive=True)"


def test_a_rule_that_does_not_say_whether_it_is_exclusive_is_told() -> None:
    class Silent:
        def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
            yield from ()

    for enter in (lambda: resolve([Silent()]), lambda: register("silent")(Silent)):  # type: ignore[list-item, type-var]
        with pytest.raises(ScheduleError, match="the sketch rule Silent has no attribute 'exclusive'; add `exclusive: bool = False`"):
            enter()


def test_a_class_in_place_of_its_value_and_a_registration_without_a_name_are_told() -> None:
    with pytest.raises(ScheduleError, match=r"PackOperands, which is a class; give a value of it: PackOperands\(\)"):
        resolve([PackOperands])  # type: ignore[list-item]
    with pytest.raises(ScheduleError, match="without a name; write @register"):
        register(PackOperands)  # type: ignore[arg-type]
