"""Hand-written programs after the patterns."""

from collections.abc import Sequence

from ansor.codegen.generate import PASSES, Machine, draft_of
from ansor.codegen.tree import lines
from ansor.codegen.unit import Unit
from ansor.ir.dag import Dag
from ansor.ir.passes import run
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Step
from ansor.te.tensor import Tensor


def forms(tensors: Sequence[Tensor], *steps: Step, machine: Machine | None = None) -> str:
    """The functions of a program, as the pass `patterns` shows them."""
    draft = run(PASSES[:5], draft_of(Sketch(Dag(tensors)).then(*steps).lower_row((), "f"), machine or Machine(32, 1)))
    return "\n".join(map(str, draft.functions))


def body(tensors: Sequence[Tensor], *steps: Step, machine: Machine | None = None) -> str:
    """The bodies of a program's functions as C."""
    unit = run(PASSES, draft_of(Sketch(Dag(tensors)).then(*steps).lower_row((), "f"), machine or Machine(32, 1))).unit
    assert isinstance(unit, Unit)
    return "\n".join(lines(unit.functions))
