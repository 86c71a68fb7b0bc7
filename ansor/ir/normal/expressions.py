"""The body of a declaration in normal form: what depends only on loops is simplified, and conditions and operands are put in a fixed order.

Sums of floats keep their order, since another order rounds differently. So do conditions that read a tensor: an earlier one may guard a later one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast as cast_type

from ansor.ir.canonical import entry
from ansor.ir.normal.conditions import Comparison, compared, joined
from ansor.ir.normal.sums import Loop, Other, Part, Quotient, Sum, depth, of_part, quotient, remainder
from ansor.te.expr import COMPARISONS, INDEX, Axis, Binary, Cast, Const, Expr, Not, Select, binary, cast, is_float
from ansor.te.fold import fold, postorder, with_operands
from ansor.te.interval import Interval, arithmetic_form
from ansor.te.tensor import Read

_LEAST, _GREATEST = -(2**31), 2**31 - 1
_INDICES = (INDEX, "int64")
DEEP = 8
"""Up to this depth of nested quotients, an index is kept as a sum; work and text grow with their product."""

_COMMUTING = ("add", "mul", "bitand", "bitor", "bitxor")


@dataclass(frozen=True, slots=True)
class TensorIdentity:
    """What identifies a tensor: the first argument that it depends on, the number of stages in between, and a digest of how it is computed."""

    argument: int
    depth: int
    digest: str


@dataclass(slots=True)
class OperandOrder:
    """Orders the operands of one declaration. places: the position of each axis, by id. tensors: what identifies each tensor read, by id.

    Mutable: it caches what it has found for each node.
    """

    places: Mapping[int, int]
    tensors: Mapping[int, TensorIdentity]
    known: dict[int, tuple[Expr, tuple[int, int], str]] = field(default_factory=dict)  # by id: the node (to keep the id), what it depends on, its text
    sums: list[Sum] = field(default_factory=list)

    def text(self, expr: Expr) -> str:
        """A text that is the same for equal expressions, whatever their axes and tensors are called."""
        return self._about(expr)[2]

    def rank(self, expr: Expr) -> tuple[int, tuple[int, int], int, str]:
        """The sort key of an operand: by the first argument it depends on, then operands that read nothing, constants last; short before long."""
        _, depends, text = self._about(expr)
        return 2 if isinstance(expr, Const) else 1 if depends == _NOTHING else 0, depends, len(text), text

    def _about(self, expr: Expr) -> tuple[Expr, tuple[int, int], str]:
        for node in postorder(expr, lambda node: node.children if id(node) not in self.known else ()):
            if id(node) not in self.known:
                self.known[id(node)] = node, *self._of_node(node, [self.known[id(child)] for child in node.children])
        return self.known[id(expr)]

    def _of_node(self, node: Expr, operands: Sequence[tuple[Expr, tuple[int, int], str]]) -> tuple[tuple[int, int], str]:
        depends, digest = [one[1] for one in operands], ""
        if isinstance(node, Read):
            read = self.tensors[id(node.tensor)]
            depends, digest = [*depends, (read.argument, read.depth)], f"{read.argument} {read.depth} {read.digest}"
        text = json.dumps(entry(node, [one[2] for one in operands], self.places, digest))
        return min(depends, default=_NOTHING), text if len(text) <= _LONG else hashlib.sha256(text.encode()).hexdigest()


_NOTHING = (1 << 30, 0)
_LONG = 400
"""Operands whose text has at most this many characters are sorted by it, in order of the axes; longer ones are sorted by a digest."""


@dataclass(frozen=True, slots=True)
class _Index:
    """An integer that depends only on loops."""

    value: Sum
    dtype: str


@dataclass(frozen=True, slots=True)
class _Conjunction:
    """Conditions on loops that must all hold; `denied`: they do not all hold. Without conditions: True, or False if denied."""

    tests: tuple[Comparison, ...]
    denied: bool = False


_Form = Expr | _Index | _Conjunction


def normal_expression(expr: Expr, names: OperandOrder) -> tuple[Expr, tuple[Sum, ...]]:
    """The same expression in normal form, and the sums that it contains."""
    form = fold(expr, lambda node, operands: _node(node, operands, names))
    return _plain(form, names), tuple(dict.fromkeys(names.sums))


def _node(node: Expr, operands: tuple[_Form, ...], names: OperandOrder) -> _Form:
    if isinstance(node, Axis):
        return _Index(of_part(Loop(names.places[id(node)], (node.start, node.start + node.extent - 1), node)), node.dtype)
    if isinstance(node, Const):
        return _constant(node)
    found: _Form | None = None
    if all(isinstance(one, _Index) for one in operands):
        found = _of_indices(node, cast_type("tuple[_Index, ...]", operands), names)
    elif isinstance(node, Binary | Not) and node.dtype == "bool":
        found = _of_conditions(node, operands)
    elif isinstance(node, Select):
        found = _choice(node, operands, names)
    return _ordered(node, tuple(_plain(one, names) for one in operands), names) if found is None else found


def _constant(node: Const) -> _Form:
    if node.dtype == "bool":
        return _Conjunction((), denied=not node.value)
    return _Index(Sum((), int(node.value)), node.dtype) if node.dtype in _INDICES else node


def _of_indices(node: Expr, operands: tuple[_Index, ...], names: OperandOrder) -> _Form | None:
    """The form of an operation on indices; None where the node has to stay as it is: it may leave its dtype, or its operation is not handled here."""
    if isinstance(node, Cast) and node.dtype in _INDICES:
        return _Index(operands[0].value, node.dtype)
    if not isinstance(node, Binary):
        return None
    node = arithmetic_form(node)
    left, right = operands[0].value, Sum((), int(node.right.value)) if isinstance(node.right, Const) else operands[1].value
    if node.op in COMPARISONS:
        test = compared(node.op, left, right)
        return _Conjunction((), denied=not test) if isinstance(test, bool) else _Conjunction((test,))
    found = _arithmetic(node.op, left, right) if node.dtype in _INDICES else None
    if found is None and node.op in ("min", "max"):
        found = _extreme(node, left, right, names)
    if found is None or found.values[0] < _LEAST or found.values[1] > _GREATEST or depth(found) > DEEP:
        return None
    return _Index(found, node.dtype)


def _arithmetic(op: str, left: Sum, right: Sum) -> Sum | None:
    if op in ("add", "sub"):
        return left + right if op == "add" else left - right
    number = None if right.terms else right.const
    if op == "mul":
        return left * number if number is not None else right * left.const if not left.terms else None
    if number is None or number <= 0 or (op.startswith("trunc") and left.values[0] < 0):
        return None
    if op in ("floordiv", "truncdiv"):
        return quotient(left, number)
    return remainder(left, number) if op in ("floormod", "truncmod") else None


def _extreme(node: Binary, left: Sum, right: Sum, names: OperandOrder) -> Sum:
    """The minimum or maximum of two indices."""
    low, high = (left - right).values
    if low == high == 0:
        return max(left, right, key=lambda one: len(one.terms))
    if high <= 0 or low >= 0:
        return left if (high <= 0) == (node.op == "min") else right
    first, second = sorted((left, right), key=lambda one: one.key)
    choose = min if node.op == "min" else max
    ends = (choose(first.values[0], second.values[0]), choose(first.values[1], second.values[1]))
    made = Binary(node.op, _built(first), _built(second), INDEX)
    return of_part(Other(names.text(made), ends, made))


def _of_conditions(node: Expr, operands: tuple[_Form, ...]) -> _Form | None:
    """Logic over conditions on loops; None where one of them reads a tensor."""
    if isinstance(node, Not):
        return _Conjunction(operands[0].tests, not operands[0].denied) if isinstance(operands[0], _Conjunction) else None
    if not isinstance(node, Binary) or node.op not in ("and", "or"):
        return None
    left, right = operands
    known = [one for one in operands if isinstance(one, _Conjunction) and not one.tests]
    for one in known:
        neutral = one.denied == (node.op == "or")  # True and x, False or x
        return one if not neutral else right if one is left else left
    if not isinstance(left, _Conjunction) or not isinstance(right, _Conjunction):
        return None
    denied = node.op == "or"  # a or b is not (not a and not b)
    sides = [_as(one, denied) for one in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return _Conjunction(tuple(joined([*sides[0], *sides[1]])), denied)


def _as(one: _Conjunction, denied: bool) -> list[Comparison] | None:
    """The tests of a condition, written as denied or not; None where a list of tests cannot express it."""
    if one.denied == denied:
        return list(one.tests)
    return [one.tests[0].opposite] if len(one.tests) == 1 else None


def _choice(node: Select, operands: tuple[_Form, ...], names: OperandOrder) -> _Form | None:
    condition, then, otherwise = operands
    if not isinstance(condition, _Conjunction):
        return None
    if not condition.tests:
        return otherwise if condition.denied else then
    condition, turned = _turned(condition, _is_number(then), _is_number(otherwise))
    if turned:
        then, otherwise = otherwise, then
    if isinstance(then, _Index) and isinstance(otherwise, _Index):
        ends: Interval = min(then.value.values[0], otherwise.value.values[0]), max(then.value.values[1], otherwise.value.values[1])
        made = Select(_plain(condition, names), _built(then.value), _built(otherwise.value), INDEX)
        return _Index(of_part(Other(names.text(made), ends, made)), node.dtype)
    return Select(_plain(condition, names), _plain(then, names), _plain(otherwise, names), node.dtype)


def _is_number(form: _Form) -> bool:
    return isinstance(form, Const) or (isinstance(form, _Index) and not form.value.terms)


def _turned(condition: _Conjunction, first_is_number: bool, second_is_number: bool) -> tuple[_Conjunction, bool]:
    """A condition that is not denied, and whether the branches are swapped. With a single test, a number comes last, or else the side below a bound first."""
    if len(condition.tests) > 1:
        return _Conjunction(condition.tests), condition.denied
    test = condition.tests[0]
    given = test.opposite if condition.denied else test
    if first_is_number != second_is_number:
        return (_Conjunction((given.opposite,)), True) if first_is_number else (_Conjunction((given,)), False)
    return (_Conjunction((given,)), False) if given.op in ("lt", "eq") else (_Conjunction((given.opposite,)), True)


def _ordered(node: Expr, operands: tuple[Expr, ...], names: OperandOrder) -> Expr:
    """A node in normal form, over operands in normal form."""
    if isinstance(node, Cast):
        return _converted(node, operands[0])
    if isinstance(node, Select) and isinstance(operands[0], Not):
        return Select(operands[0].value, operands[2], operands[1], node.dtype)
    if not isinstance(node, Binary):
        return with_operands(node, operands)
    left, right = operands
    if is_float(node.dtype) and node.op in ("mul", "div") and isinstance(right, Const) and right.value == 1:
        return left
    if is_float(node.dtype) and node.op == "mul" and isinstance(left, Const) and left.value == 1:
        return right
    if node.op in _COMMUTING or (node.op in ("min", "max") and not is_float(node.dtype)):
        left, right = sorted(operands, key=names.rank)
    return with_operands(node, (left, right)) if is_float(node.dtype) or node.dtype == "bool" else binary(node.op, left, right)


def _converted(node: Cast, value: Expr) -> Expr:
    """A conversion; one to a wider dtype and back disappears."""
    if isinstance(value, Cast) and value.value.dtype == node.dtype and _holds(value.dtype, node.dtype):
        return value.value
    return cast(node.dtype, value) if not is_float(node.dtype) else with_operands(node, (value,))


_HELD = {
    "int16": ("int8", "uint8"), "int32": ("int8", "uint8", "int16"), "int64": ("int8", "uint8", "int16", "int32"),
    "float32": ("bfloat16", "float16", "int8", "uint8", "int16"), "float64": ("float16", "float32", "int8", "uint8", "int16", "int32"),
}  # fmt: skip


def _holds(wide: str, narrow: str) -> bool:
    """Whether the dtype `wide` holds every value of `narrow`."""
    return narrow in _HELD.get(wide, ())


def _plain(form: _Form, names: OperandOrder) -> Expr:
    """A form as an expression; its sums are recorded in `names`."""
    if isinstance(form, _Index):
        names.sums.append(form.value)
        return cast(form.dtype, _built(form.value))
    if isinstance(form, _Conjunction):
        names.sums += [test.value for test in form.tests]
        return _condition(form)
    return form


def _condition(form: _Conjunction) -> Expr:
    if not form.tests:
        return Const(not form.denied, "bool")
    tests = [_test(one.opposite if form.denied else one) for one in form.tests]
    made = tests[0]
    for test in tests[1:]:
        made = Binary("or" if form.denied else "and", made, test, "bool")
    return made


def _test(one: Comparison) -> Expr:
    return Binary(one.op, _built(one.value), Const(one.bound, INDEX), "bool")


def _built(value: Sum) -> Expr:
    """A sum as an expression, added terms before subtracted ones."""
    terms: Sequence[tuple[Part, int]] = sorted(value.terms, key=lambda term: term[1] < 0)
    first_is_number = not terms or (terms[0][1] < 0 and value.const != 0)  # 3 - i
    made: Expr | None = Const(value.const, INDEX) if first_is_number else None
    for part, coefficient in terms:
        scaled = binary("mul", _part(part), coefficient if made is None else abs(coefficient))
        made = scaled if made is None else binary("add" if coefficient > 0 else "sub", made, scaled)
    assert made is not None
    return made if first_is_number else binary("add" if value.const >= 0 else "sub", made, abs(value.const))


def _part(part: Part) -> Expr:
    if isinstance(part, Loop):
        return part.axis
    if isinstance(part, Other):
        return part.expr
    return binary("floordiv" if isinstance(part, Quotient) else "floormod", _built(part.of), part.by)
