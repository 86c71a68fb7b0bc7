"""Prints a declaration exactly as TVM does: in TVM's logs, the MD5 of this text identifies workloads without a function.

    A = PLACEHOLDER [512, 512]
    B = PLACEHOLDER [512, 512]
    C(i, j) += (A[i, k]*B[k, j])

Source: TVM 0.9, `ComputeDAG::PrintDAG`; checked against keys in logs that TVM wrote.
"""

from collections.abc import Sequence

from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Not, Reduce, Select
from ansor.te.fold import walk
from ansor.te.tensor import Read, Tensor

MAX_LINE = 256
"""Longer lines are abbreviated in the middle."""

_INFIX = {"add": " + ", "sub": " - ", "mul": "*", "div": "/", "lt": " < ", "le": " <= ", "gt": " > ", "ge": " >= ", "eq": " == ", "ne": " != ",
          "and": " && ", "or": " || "}  # fmt: skip
_PREFIX = {"floordiv": "floordiv", "floormod": "floormod", "truncdiv": "truncdiv", "truncmod": "truncmod", "min": "min", "max": "max",
           "bitand": "tir.bitwise_and", "bitor": "tir.bitwise_or", "bitxor": "tir.bitwise_xor", "shl": "tir.shift_left", "shr": "tir.shift_right"}
_CALLS = {"round": "nearbyint", "round_half_away": "round"}  # TVM's `round` rounds half away from zero
_COMBINERS = {"sum": "+=", "max": "max=", "min": "min=", "prod": "*="}


def declaration_text(ops: Sequence[Tensor], simple: bool = False) -> str:
    """One line per tensor. `simple`: without shapes, as it is hashed."""
    return "".join(f"{_line(op, simple)}\n" for op in ops)


def shortened(text: str) -> str:
    """The text with every line over MAX_LINE cut in the middle."""
    half = MAX_LINE // 2
    return "\n".join(line if len(line) <= MAX_LINE else f"{line[:half]} ..(OMITTED).. {line[-half:]}" for line in text.split("\n"))


def _line(op: Tensor, simple: bool) -> str:
    if op.compute is None:
        return f"{op.name} = PLACEHOLDER {'' if simple else list(op.shape)}"
    body, head = op.compute.body, f"{op.name}({', '.join(axis.name for axis in op.compute.axes)})"
    if isinstance(body, Reduce):
        return f"{head} {_COMBINERS[body.combiner]} {expression_text(body.source)}"
    return f"{head} = {expression_text(body)}"


def expression_text(expr: Expr) -> str:
    """The expression as TVM prints it."""
    if isinstance(expr, Const):
        return _constant(expr)
    if isinstance(expr, Axis):
        return expr.name
    if isinstance(expr, Binary):
        left, right = expression_text(expr.left), expression_text(expr.right)
        return f"({left}{_INFIX[expr.op]}{right})" if expr.op in _INFIX else f"{_PREFIX[expr.op]}({left}, {right})"
    if isinstance(expr, Not):
        return f"!{expression_text(expr.value)}"
    if isinstance(expr, Call):
        return f"{called(expr)}({', '.join(map(expression_text, expr.arguments))})"
    if isinstance(expr, Select):
        # Our Select is two nodes in TVM; one that guards a read must be the node that does not evaluate both sides.
        guards = any(isinstance(node, Read) for side in (expr.then, expr.otherwise) for node in walk(side))
        return f"{'tir.if_then_else' if guards else 'select'}({', '.join(map(expression_text, expr.children))})"
    if isinstance(expr, Cast):
        return f"{expr.dtype}({expression_text(expr.value)})"
    assert isinstance(expr, Read)
    return f"{expr.tensor.name}[{', '.join(map(expression_text, expr.indices))}]"


def called(call: Call) -> str:
    """TVM's name of a function, `tir.exp`."""
    return f"tir.{_CALLS.get(call.name, call.name)}"


def _constant(const: Const) -> str:
    if const.dtype == "float32":
        return f"{_number(float(const.value))}f"
    if const.dtype == "float16":
        return f"{_number(float(const.value))}h"
    if const.dtype == "float64":
        return _number(float(const.value))
    return str(int(const.value)) if const.dtype == "int32" else f"({const.dtype}){int(const.value)}"


def _number(value: float) -> str:
    """A number as a C++ stream prints it: six digits, no point after a whole number."""
    return f"{value:.6g}"
