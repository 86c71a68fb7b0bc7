"""Scalar expressions: the bodies of declarations.

An expression is an immutable tree of the node classes below. Operators on nodes build new nodes and fold constants; nothing is evaluated.
`==` and `!=` build comparisons too, so nodes compare and hash by identity.

Indices are expressions too: an `Axis` has dtype int32, and `tensor[i, j + 1]` is a `Read`.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Union
from typing import cast as cast_type

from ansor.errors import DeclarationError
from ansor.support.bfloat16 import BFLOAT16, make_known
from ansor.support.text import with_article
from ansor.te.dtypes import BYTES, INTEGER_LIMITS
from ansor.te.fold import fold, transform, walk
from ansor.te.operators import Operators
from ansor.te.size import Size

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "bfloat16")
INDEX = "int32"

Number = int | float | bool
Operand = Union["Expr", int, float, bool]  # a quoted name does not join with |

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max", "pow")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")
BITWISE = ("bitand", "bitor", "bitxor", "shl", "shr")
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
_OF_CONDITIONS = {"bitand": "and", "bitor": "or", "bitxor": "ne"}  # bitwise operators on conditions


def is_float(dtype: str) -> bool:
    """True for bfloat16, float16, float32 and float64."""
    return dtype.startswith("float") or dtype == BFLOAT16


def computed(dtype: str) -> str:
    """The dtype that values of `dtype` are computed in: float32 for bfloat16, which is for storage only."""
    return "float32" if dtype == BFLOAT16 else dtype


class Expr(Operators["Expr"]):
    """Base of all scalar expressions. Every node has a `dtype`."""

    __slots__ = ()
    dtype: str
    reads_memory: ClassVar[bool] = False

    def _apply(self, operation: str, left: object, right: object) -> Expr:
        if isinstance(left, Operators) and isinstance(right, Operators) and not (isinstance(left, Expr) and isinstance(right, Expr)):
            return cast_type("Expr", NotImplemented)  # a tensor on the other side handles it
        return binary(operation, _operand(left), _operand(right))

    def __invert__(self) -> Expr:
        return Not(self) if self.dtype == "bool" else binary("bitxor", self, 255 if self.dtype == "uint8" else -1)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]  # comparisons build expressions
        return binary("eq", self, _operand(other))

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]  # as above
        return binary("ne", self, _operand(other))

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise DeclarationError(
            f"asked for the truth of the expression `{self}`, which has no value while declaring; "
            "use te.if_then_else, te.all, te.any, te.min or te.max (nn.clip for tensors) instead of Python's if, and, or, min, max"
        )

    def __index__(self) -> int:
        raise DeclarationError(
            f"asked for the number of the expression `{self}`, which has no value while declaring; "
            "to read a table of numbers at it, make the table a te.placeholder(..., constant=True)"
        )

    def astype(self, dtype: str) -> Expr:
        """This value converted to `dtype`."""
        return cast(dtype, self)

    @property
    def children(self) -> tuple[Expr, ...]:
        """Operands, in order."""
        return ()

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        """The same node over other operands."""
        return self

    def text(self, parts: Sequence[str]) -> str:
        """The node as a person would write it, given the texts of its operands."""
        return type(self).__name__

    def __str__(self) -> str:
        return to_text(self)


@dataclass(frozen=True, eq=False, slots=True)
class Const(Expr):
    """A literal."""

    value: Number
    dtype: str

    def text(self, parts: Sequence[str]) -> str:
        return str(self.value)


@dataclass(frozen=True, eq=False, slots=True)
class Axis(Expr):
    """A loop of a declaration: `spatial` axes index the output, `reduce` axes are summed over. Values run from 0 to extent - 1, plus `start`."""

    name: str
    extent: int
    kind: str = "spatial"
    start: int = 0
    dtype: str = INDEX

    def text(self, parts: Sequence[str]) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True)
class Binary(Expr):
    """`op` applied to two operands of one dtype; comparisons and logic give bool."""

    op: str
    left: Expr
    right: Expr
    dtype: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Binary(self.op, children[0], children[1], self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        symbol = SYMBOLS.get(self.op)
        return f"({parts[0]} {symbol} {parts[1]})" if symbol else f"{self.op}({parts[0]}, {parts[1]})"


@dataclass(frozen=True, eq=False, slots=True)
class Not(Expr):
    """Logical negation."""

    value: Expr
    dtype: str = "bool"

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.value,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Not(children[0])

    def text(self, parts: Sequence[str]) -> str:
        return f"(not {parts[0]})"


@dataclass(frozen=True, eq=False, slots=True)
class Call(Expr):
    """A scalar function of floating-point operands: exp, log, sqrt, tanh, ..."""

    name: str
    arguments: tuple[Expr, ...]
    dtype: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.arguments

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Call(self.name, children, self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        return f"{self.name}({', '.join(parts)})"


@dataclass(frozen=True, eq=False, slots=True)
class Select(Expr):
    """`then` where `condition` holds, else `otherwise`. Only the chosen side is evaluated, so it may guard a read."""

    condition: Expr
    then: Expr
    otherwise: Expr
    dtype: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.condition, self.then, self.otherwise)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Select(children[0], children[1], children[2], self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        return f"select({', '.join(parts)})"


@dataclass(frozen=True, eq=False, slots=True)
class Cast(Expr):
    """Conversion, with C's rules (float to integer truncates)."""

    value: Expr
    dtype: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.value,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Cast(children[0], self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        return f"{self.dtype}({parts[0]})"


@dataclass(frozen=True, eq=False, slots=True)
class Reduce(Expr):
    """`source` combined over `axes`; allowed only as the whole body of a declaration."""

    combiner: str
    source: Expr
    axes: tuple[Axis, ...]
    dtype: str

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.source,)

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Reduce(self.combiner, children[0], self.axes, self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        return f"{self.combiner}({parts[0]}, axis=[{', '.join(axis.name for axis in self.axes)}])"


def identity_of(combiner: str, dtype: str) -> Number:
    """The value a reduction starts from: 0 for sum, 1 for prod, the least or greatest value of the dtype for max and min."""
    if combiner == "sum":
        return 0.0 if is_float(dtype) else 0
    if combiner == "prod":
        return 1.0 if is_float(dtype) else 1
    if is_float(dtype):
        return -math.inf if combiner == "max" else math.inf
    low, high = INTEGER_LIMITS[dtype]
    return low if combiner == "max" else high


def check_dtype(dtype: object) -> str:
    """The name of `dtype`, which may be NumPy's. Raises DeclarationError unless it is one of `DTYPES`."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or getattr(dtype, "name", None)
    if name not in DTYPES:
        raise DeclarationError(f"asked for dtype {dtype!r}, which is not one of {', '.join(DTYPES)}")
    make_known(name)
    return str(name)


def const(value: Number, dtype: str | None = None) -> Const:
    """A literal; Python floats are float32 and ints int32 unless `dtype` says otherwise."""
    if isinstance(value, Expr) or not isinstance(value, int | float | Size):
        raise DeclarationError(f"te.const takes a Python number, found {type(value).__name__}")
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else INDEX if isinstance(value, int | Size) else "float32"
    dtype = check_dtype(dtype)
    if is_float(dtype):
        return Const(_as_float(value, dtype), dtype)
    if dtype == "bool":
        return Const(bool(value), dtype)
    if isinstance(value, float) and not value.is_integer():
        raise DeclarationError(f"asked for the {dtype} constant {value}, which is not an integer; use a float dtype or te.cast")
    low, high = INTEGER_LIMITS[dtype]
    if not low <= whole(value) <= high:
        raise DeclarationError(f"asked for the {dtype} constant {_shown(value)}, which is outside {low}..{high}")
    return Const(whole(value), dtype)


def whole(value: Number) -> int:
    """`value` as an int; an open size stays open."""
    return value if isinstance(value, Size) else int(value)


def _as_float(value: numbers.Real | Number, dtype: str) -> float:
    """`value` as a float. Raises DeclarationError for integers and fractions beyond the range of floats."""
    try:
        return float(value)
    except OverflowError as error:
        said = f"asked for the {dtype} constant {_shown(value)}, which is too large for any float"
        raise DeclarationError(f"{said}; use a smaller number, or te.infinity") from error


def _shown(value: object) -> str:
    """A number for a message. Python refuses to print integers of thousands of digits, and nobody reads fifty digits."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"of {value.bit_length()} bits"
    return str(value) if isinstance(value, (int, float)) else f"of type {type(value).__name__}"


def _operand(value: object) -> Operand:
    if isinstance(value, Expr | int | float | Size):
        return value
    if isinstance(value, numbers.Real):  # NumPy's
        return int(value) if isinstance(value, numbers.Integral) else _as_float(value, "float32")
    refuse = getattr(value, "refuse", None)  # a slice has its own message
    if refuse is not None:
        refuse()
    raise DeclarationError(f"asked for arithmetic with {with_article(type(value).__name__)} ({value!r}); use a number, or read an element: tensor[i, j]")


def as_expr(value: Operand, dtype: str | None = None) -> Expr:
    """`value` as an expression; a number takes `dtype`."""
    given = _operand(value)
    return given if isinstance(given, Expr) else const(given, dtype)


def unified(op: str, left: Operand, right: Operand) -> tuple[Expr, Expr]:
    """Both operands in one dtype. A number takes the other side's dtype if it fits. Of two dtypes, float wins, then the wider one; uint8 comes before int8.
    bfloat16 becomes float32.
    """
    left, right = _operand(left), _operand(right)
    a = left if isinstance(left, Expr) else const(left, _literal_dtype(op, left, right))
    b = right if isinstance(right, Expr) else const(right, _literal_dtype(op, right, left))
    dtype = computed(max(a.dtype, b.dtype, key=_RANK.index))
    return cast(dtype, a), cast(dtype, b)


_RANK = ("bool", "int8", "uint8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64")


def _literal_dtype(op: str, value: Number, other: Operand) -> str | None:
    """The dtype of a number next to `other`; None for its default."""
    if not isinstance(other, Expr) or (isinstance(value, float) and not is_float(other.dtype)):
        return None
    if other.dtype == "bool" and not isinstance(value, bool) and (op not in (*COMPARISONS, *LOGIC, *BITWISE) or value not in (0, 1)):
        return INDEX
    if other.dtype == INDEX and not INTEGER_LIMITS[INDEX][0] <= value <= INTEGER_LIMITS[INDEX][1] and not any(node.reads_memory for node in walk(other)):
        return "int64"  # index arithmetic on loops, which may leave int32 in between
    return computed(other.dtype)


_FOLD: dict[str, Callable[[int, int], int | bool]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b, "min": min, "max": max, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
}


def binary(op: str, left: Operand, right: Operand) -> Expr:
    """`left op right`, with integer constants folded and neutral elements dropped. Operands of two dtypes are converted to one: see `unified`."""
    a, b = unified(op, left, right)
    if a.dtype == "bool":
        op = _OF_CONDITIONS.get(op, op)
    _check_dtypes(op, a, b)
    if op == "pow":
        return Call("pow", (a, b), a.dtype)
    if is_float(a.dtype) and op in DIVISIONS:
        return _float_division(op, a, b)
    dtype = "bool" if op in COMPARISONS or op in LOGIC else a.dtype
    folded = _folded(op, a, b, dtype)
    return folded if folded is not None else Binary(op, a, b, dtype)


def _check_dtypes(op: str, a: Expr, b: Expr) -> None:
    if op in LOGIC and a.dtype != "bool":
        raise DeclarationError(f"asked for logical {op} of `{a}` and `{b}`, which have dtype {a.dtype}; compare them first")
    if op in (*ARITHMETIC, "shl", "shr") and a.dtype == "bool":
        raise DeclarationError(f"asked for {op} of the conditions `{a}` and `{b}`; use te.all and te.any, or convert with .astype('int32')")
    if op == "div" and not is_float(a.dtype):
        raise DeclarationError(f"asked for `{a} / {b}` on dtype {a.dtype}; use te.floordiv or te.truncdiv, or convert with .astype('float32')")
    if op in BITWISE and is_float(a.dtype):
        raise DeclarationError(f"asked for {op} of `{a}` and `{b}` on dtype {a.dtype}; bitwise operators need integers: convert with .astype('int32')")
    if op in ("shl", "shr") and isinstance(b, Const) and b.value not in range(bits := 8 * BYTES[b.dtype]):
        raise DeclarationError(f"asked to shift `{a}` of dtype {a.dtype} by {b.value} bits; it has {bits}: shift by 0..{bits - 1}")
    if op == "pow" and not is_float(a.dtype):
        raise DeclarationError(f"asked for pow of dtype {a.dtype} `{a}`; convert with .astype('float32')")


def _float_division(op: str, a: Expr, b: Expr) -> Expr:
    """Division of floats: quotients are rounded like those of integers; remainders are exact, with the sign of `b` (floormod) or `a` (truncmod)."""
    if op in ("floordiv", "truncdiv"):
        return Call("floor" if op == "floordiv" else "trunc", (binary("div", a, b),), a.dtype)
    rest = Call("fmod", (a, b), a.dtype)
    if op == "truncmod":
        return rest
    differ = binary("ne", rest < 0.0, b < 0.0)
    return Select(binary("and", binary("ne", rest, 0.0), differ), rest + b, rest, a.dtype)


def _folded(op: str, a: Expr, b: Expr, dtype: str) -> Expr | None:
    """Fold integers and indices only: floating-point arithmetic is left as written."""
    x = a.value if isinstance(a, Const) else None
    y = b.value if isinstance(b, Const) else None
    if op in LOGIC:
        return _folded_logic(op, a, b, x, y)
    if is_float(a.dtype) or a.dtype == "bool":
        return None
    if op in DIVISIONS and y == 0:
        raise DeclarationError(f"asked for {op} of `{a}` by zero")
    if x is not None and y is not None and op in _FOLD:
        value = _FOLD[op](whole(x), whole(y))
        limits = INTEGER_LIMITS[dtype]
        return Const(value, dtype) if limits[0] <= whole(value) <= limits[1] else None
    if y == 0 and op in ("add", "sub"):
        return a
    if x == 0 and op == "add":
        return b
    if y == 1 and op in ("mul", "floordiv"):
        return a
    if x == 1 and op == "mul":
        return b
    if op == "mul" and (x == 0 or y == 0):
        return Const(0, dtype)
    if op == "floormod" and y == 1:
        return Const(0, dtype)
    return None


def _folded_logic(op: str, a: Expr, b: Expr, x: Number | None, y: Number | None) -> Expr | None:
    neutral = op == "and"
    if x is not None:
        return b if bool(x) == neutral else a
    if y is not None:
        return a if bool(y) == neutral else b
    return None


def cast(dtype: str, value: Operand) -> Expr:
    """`value` converted to `dtype` (argument order as TVM's `te`/`tir.Cast`). All conversions from and to bfloat16 are by way of float32."""
    dtype = check_dtype(dtype)
    expr = as_expr(value, None)
    if expr.dtype == dtype:
        return expr
    if dtype == BFLOAT16:
        return _stored(cast("float32", expr))
    if expr.dtype == BFLOAT16 and dtype != "float32":
        return cast(dtype, Cast(expr, "float32"))
    if isinstance(expr, Const) and not isinstance(expr.value, float):
        return const(_wrapped(expr.value, dtype), dtype)
    return Cast(expr, dtype)


def _stored(expr: Expr) -> Expr:
    """A float32 as bfloat16; one that was bfloat16 is that again."""
    return expr.value if isinstance(expr, Cast) and expr.value.dtype == BFLOAT16 else Cast(expr, BFLOAT16)


def _wrapped(value: Number, dtype: str) -> Number:
    """An integer converted to `dtype`: wrapped modulo 2 to the number of its bits."""
    if dtype == "bool" or dtype not in INTEGER_LIMITS:
        return value
    low, high = INTEGER_LIMITS[dtype]
    return (whole(value) - low) % (high - low + 1) + low


def substitute(expr: Expr, values: dict[Axis, Expr]) -> Expr:
    """`expr` with axes replaced."""
    return transform(expr, lambda node: values.get(node) if isinstance(node, Axis) else None)


SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "floormod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
            "eq": "==", "ne": "!=", "and": "and", "or": "or", "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>"}


LONGEST = 1000
"""The longest text of a part of an expression that is shown, in characters."""


def to_text(expr: Expr) -> str:
    """The expression as a person would write it; `...` replaces parts that are too long to read."""

    def visit(node: Expr, parts: tuple[str, ...]) -> str:
        return node.text([part if len(part) <= LONGEST else "..." for part in parts])

    return fold(expr, visit)
