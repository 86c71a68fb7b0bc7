"""Values as operations of the ALU, in place: each takes what an element of the accumulators holds, and a number or another element.

    max(min((acc + bias) >> 8, 127), -128)      ->      ADD acc bias, SHR acc 8, MIN acc 127, MAX acc -128
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir.loops import Access
from ansor.te.expr import Binary, Cast, Const, Expr
from ansor.vta.instructions import AluOp
from ansor.vta.nests import plain

TENSOR = {"add": AluOp.ADD, "mul": AluOp.MUL, "min": AluOp.MIN, "max": AluOp.MAX}
_MOST, _LEAST = (1 << 15) - 1, -(1 << 15)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation: on the elements of `target`, with an immediate, or with those of `source`."""

    operation: AluOp
    target: Access
    immediate: int | None = None
    source: Access | None = None


def steps_of(value: Expr, whole: Callable[[Access], bool]) -> tuple[Access, tuple[Step, ...]]:
    """Where the value is in the end, and how it comes there. whole: whether an access has an element of its own for each of the nest.

    Raises ScheduleError for what the ALU does not compute.
    """
    steps: list[Step] = []
    if isinstance(value, Cast) and value.dtype == "int8":
        value = value.value  # OUT has the low 8 bits
    found = _Steps(steps, whole).of(value)
    if not whole(found):
        raise ScheduleError(f"asked the ALU of a VTA core to spread {found.buffer.name} over more elements than it has: it computes in place")
    return found, tuple(steps)


class _Steps:
    def __init__(self, steps: list[Step], whole: Callable[[Access], bool]) -> None:
        self._steps, self._whole = steps, whole
        self._changed: set[object] = set()

    def of(self, value: Expr) -> Access:
        """The elements that hold a value."""
        value = plain(value)
        if isinstance(value, Access):
            if value.buffer.scope != "acc" or value.buffer in self._changed:
                raise ScheduleError(f"asked the ALU of a VTA core for {value}, which is not in its accumulators any more, or never was: keep a copy there")
            return value
        if not isinstance(value, Binary):
            raise ScheduleError(f"asked the ALU of a VTA core for {value}; it has +, -, *, <<, >>, min and max of int32")
        left, right = plain(value.left), plain(value.right)
        if isinstance(left, Const) and value.op in TENSOR:
            left, right = right, left
        return self._immediate(value.op, self.of(left), right) if isinstance(right, Const) else self._tensors(value, self.of(left), self.of(right))

    def _immediate(self, op: str, target: Access, right: Const) -> Access:
        number = int(right.value)
        if op in ("sub", "shl"):
            op, number = {"sub": "add", "shl": "shr"}[op], -number
        operation = {**TENSOR, "shr": AluOp.SHR}.get(op)
        if operation is None:
            raise ScheduleError(f"asked the ALU of a VTA core for {op} with {right}; it has +, -, *, <<, >>, min and max of int32")
        while operation == AluOp.ADD and not _LEAST <= number <= _MOST:
            part = _MOST if number > 0 else _LEAST
            self._add(Step(operation, target, part))
            number -= part
        if not _LEAST <= number <= _MOST:
            raise ScheduleError(f"asked the ALU of a VTA core for {op} with {number}; an immediate is from {_LEAST} to {_MOST}")
        self._add(Step(operation, target, number))
        return target

    def _tensors(self, value: Binary, left: Access, right: Access) -> Access:
        op = value.op
        if op == "sub":
            self._add(Step(AluOp.MUL, right, -1))
            op = "add"
        if not self._whole(left):
            left, right = right, left
        if op not in TENSOR:
            raise ScheduleError(f"asked the ALU of a VTA core for {op} of two tensors; it has +, -, *, min and max")
        self._add(Step(TENSOR[op], left, None, right))
        self._changed.add(right.buffer)
        return left

    def _add(self, step: Step) -> None:
        if not self._whole(step.target):
            raise ScheduleError(f"asked the ALU of a VTA core to change {step.target.buffer.name}, which several elements share: it computes in place")
        self._steps.append(step)
