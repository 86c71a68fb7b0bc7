"""Translates values to operations of the ALU. Each works in place: it combines an element of the accumulators with a number or another element.

    max(min((acc + bias) >> 8, 127), -128)      ->      ADD acc bias, SHR acc 8, MIN acc 127, MAX acc -128

A value that is needed twice is computed once and then copied into spare elements next to the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ansor.errors import ScheduleError
from ansor.ir.loops import Access, Buffer
from ansor.te.dtypes import INTEGER_LIMITS
from ansor.te.expr import Binary, Const, Expr
from ansor.vta.buffers import SpareElement
from ansor.vta.instructions import AluOp
from ansor.vta.nests import accesses, as_int32
from ansor.vta.shared import exactly, shared_part, signature
from ansor.vta.values import Value, value_on_core

TENSOR = {"add": AluOp.ADD, "mul": AluOp.MUL, "min": AluOp.MIN, "max": AluOp.MAX}
_MOST, _LEAST = (1 << 15) - 1, -(1 << 15)


@dataclass(frozen=True, eq=False)
class Step:
    """One operation on the elements of `target`, with an immediate or with the elements of `source`."""

    operation: AluOp
    target: Access
    immediate: int | None = None
    source: Access | None = None


def steps_of(value: Expr, whole: Callable[[Access], bool]) -> tuple[Access, tuple[Step, ...]]:
    """The elements where the value ends up, and the operations that compute it. whole: whether an access has one element for each iteration of the nest.

    Raises ScheduleError for what the ALU cannot compute.
    """
    steps: list[Step] = []
    _check_places(value)
    value_on_core(value, lambda node: Value(INTEGER_LIMITS[node.dtype]) if isinstance(node, Access) else None)
    found = _Steps(steps, whole).of(value)
    if not whole(found):
        raise _not_in_place(found)
    return found, tuple(steps)


def _check_places(value: Expr) -> None:
    """Raises ScheduleError if a buffer is read at two places at once: the ALU may change an element before its second read."""
    read: dict[Buffer, Hashable] = {}
    for access in accesses(value):
        if read.setdefault(access.buffer, exactly(access.index)) != exactly(access.index):
            name = access.buffer.name
            raise ScheduleError(f"asked the ALU of a VTA core for {name} at two places at once; it computes in place: pass it as two tensors")


def _not_in_place(access: Access) -> ScheduleError:
    what = f"a result in place of {access.buffer.name}, which does not have exactly one element for each element of the result"
    return ScheduleError(f"asked the ALU of a VTA core for {what}; it computes in place: pass it in the shape of the result")


class _Steps:
    def __init__(self, steps: list[Step], whole: Callable[[Access], bool]) -> None:
        self._steps, self._whole = steps, whole
        self._changed: set[object] = set()
        self._known: dict[Hashable, Access] = {}

    def of(self, value: Expr) -> Access:
        """The elements that hold a value."""
        value = as_int32(value)
        if self._known and (known := self._known.get(signature(value))) is not None:
            return known
        if isinstance(value, Access):
            if value.buffer.scope != "acc" or value.buffer in self._changed:
                name = value.buffer.name
                cure = "pass it as two tensors, or keep it in the accumulators"
                raise ScheduleError(f"asked the ALU of a VTA core for {name} twice; it computes in place, and {name} has changed by then: {cure}")
            return value
        if not isinstance(value, Binary):
            raise ScheduleError(f"asked the ALU of a VTA core for {value}; it has +, -, *, <<, >>, min and max of int32")
        left, right = as_int32(value.left), as_int32(value.right)
        if isinstance(left, Const) and value.op in TENSOR:
            left, right = right, left
        if isinstance(left, Const) and value.op == "sub":
            return self._immediate("add", self._immediate("mul", self.of(right), Const(-1, "int32")), left)
        if isinstance(right, Const):
            return self._immediate(value.op, self.of(left), right)
        shared = shared_part(left, right, self._whole)
        if shared is not None:
            return self._twice(value.op, left, right, shared)
        return self._tensors(value.op, self.of(left), self.of(right))

    def _twice(self, op: str, left: Expr, right: Expr, shared: Expr) -> Access:
        """An operation that needs a value on both sides: one side uses it in place, the other uses a copy."""
        held = self.of(shared)
        if self._known or isinstance(held, SpareElement):
            name = held.buffer.name
            raise ScheduleError(f"asked the ALU of a VTA core for a value of {name} three times; there is space for one copy only: compute a part on the host")
        copy, key = SpareElement(held.buffer, held.index, held.dtype), signature(shared)
        self._add(Step(AluOp.MUL, copy, 0))
        self._add(Step(AluOp.ADD, copy, None, held))
        sides = []
        for place, side in ((held, left), (copy, right)):
            self._known = {key: place}
            sides.append(self.of(side))
        self._known = {}
        return self._tensors(op, *sides)

    def _immediate(self, op: str, target: Access, right: Const) -> Access:
        number = int(right.value)
        if op == "floordiv":
            op, number = "shr", number.bit_length() - 1  # the number is a power of two: value_on_core refuses others
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
            limits = f"an immediate is from {_LEAST} to {_MOST}: pass an int32 tensor with a number for each channel"
            raise ScheduleError(f"asked the ALU of a VTA core for {op} with {number}; {limits}")
        self._add(Step(operation, target, number))
        return target

    def _tensors(self, op: str, left: Access, right: Access) -> Access:
        if op == "sub" and not self._whole(right):  # right must stay unchanged: compute right - left, and negate it
            self._add(Step(AluOp.MUL, left, -1))
            self._add(Step(AluOp.MUL, self._tensors("add", left, right), -1))
            return left
        if op == "sub":
            self._add(Step(AluOp.MUL, right, -1))
            op = "add"
        if not self._whole(left):
            left, right = right, left
        if op not in TENSOR:
            raise ScheduleError(f"asked the ALU of a VTA core for {op} of two tensors; it has +, -, *, min and max")
        self._add(Step(TENSOR[op], left, None, right))
        if not isinstance(right, SpareElement):
            self._changed.add(right.buffer)
        return left

    def _add(self, step: Step) -> None:
        if not self._whole(step.target):
            raise _not_in_place(step.target)
        self._steps.append(step)
