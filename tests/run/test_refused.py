"""A target whose limits refuse every program says so, in one sentence."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import ansor
from ansor.errors import AnsorWarning
from ansor.run.refused import refusal
from ansor.schedule.legality import LIMITS
from ansor.schedule.machine import Limit
from ansor.targets import cpu
from ansor.targets.base import CodeGenerator, Kind, Target, parse_target, register_kind
from ansor.te import workloads

NOTHING = Limit("nothing at all", lambda loops, machine: False)
STRICT = register_kind(Kind("picky", lambda mcpu: replace(cpu.default(mcpu), kind="picky"), cpu.OPTIONS, codegen=CodeGenerator(limits=(*LIMITS, NOTHING))))
SAID = re.compile(r"asked for programs of matmul.* for picky.*, which allows no program of its sketches; of \d+ programs its limits refused nothing at all")


def strict() -> Target:
    return parse_target("picky -threads=1")


def test_the_limit_is_named() -> None:
    said = refusal(ansor.SearchTask(workloads.matmul, (16, 16, 16), strict()))
    assert SAID.match(said) and said.endswith("raise or change these limits, or change the rules or the pins")


@pytest.mark.compiler
@pytest.mark.parametrize("trials", [0, 4])
def test_a_kernel_is_not_silently_plain(trials: int) -> None:
    with pytest.warns(AnsorWarning) as heard:
        kernel = ansor.auto_schedule(workloads.matmul, (16, 16, 16), strict(), trials=trials, progress=False)
    assert len([one for one in heard if SAID.match(str(one.message))]) == 1 and kernel.cost is None


@pytest.mark.compiler
def test_a_state_is_not_silently_empty() -> None:
    task = ansor.SearchTask(workloads.matmul, (16, 16, 16), strict())
    with pytest.warns(AnsorWarning) as heard:
        (state,) = ansor.tune_tasks([task], trials=4, progress=False)
    assert len([one for one in heard if SAID.match(str(one.message))]) == 1 and state.cost is None and state.refused
