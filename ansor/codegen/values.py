"""Expressions as C text, for one element or for a vector of neighbouring elements.

`Lanes` says which loop variable runs over the lanes; every other variable is a C variable or, when unrolled, a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from ansor.codegen.dialect import C_TYPES, MASK, UNSIGNED, WRAPPING, Helpers, literal
from ansor.codegen.high_words import FEWEST, high_word, high_words_function
from ansor.codegen.pieces import pieces
from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Var, atom_variables, bounds, is_opaque, of
from ansor.ir.loops import Access, Buffer, Guard, IndexValue
from ansor.ir.rejoin import rejoined
from ansor.ir.simplify import simplified_index
from ansor.support.bfloat16 import BFLOAT16
from ansor.te.dtypes import BYTES
from ansor.te.expr import COMPARISONS, DIVISIONS, Binary, Call, Cast, Const, Expr, Not, Select
from ansor.te.fold import fold, walk
from ansor.te.scalar import small_power

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "truncdiv": "/", "truncmod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
         "ne": "!=", "and": "&&", "or": "||", "bitand": "&", "bitor": "|", "bitxor": "^", "shr": ">>"}


@dataclass(frozen=True, eq=False)
class Lanes:
    """Values `start .. start + count - 1` of loop variable `var`, one per lane."""

    var: Var
    count: int
    start: Linear


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes expressions.

    fixed: unrolled variables and their numbers, or indices over other variables. lanes: the vectorised variable, if any. load: called with
    (text, C type) of every memory read, returns the text to use instead, so that a register tile reads each element once. held: vectors already read.
    named: parts that already are variables, and whether they are vectors. safe: guarded values may be computed even if their condition does not hold.
    """

    helpers: Helpers
    fixed: Mapping[Var, int | Linear] = field(default_factory=dict)
    lanes: Lanes | None = None
    load: Callable[[str, str], str] | None = None
    held: Mapping[Access, str] = field(default_factory=dict)
    named: Mapping[Expr, tuple[str, bool]] = field(default_factory=dict)
    safe: bool = False

    def at(self, fixed: Mapping[Var, int | Linear], lanes: Lanes | None) -> Writer:
        """The same writer at other numbers."""
        return replace(self, fixed={**self.fixed, **fixed}, lanes=lanes)

    # indices --------------------------------------------------------------------------------------------------------------------------------------

    def resolved(self, linear: Linear) -> Linear:
        """The index with unrolled variables replaced by their numbers."""
        if not self.fixed or all(isinstance(atom, Var) and atom not in self.fixed for atom, _ in linear.terms):
            return linear
        result = Linear((), linear.const)
        for atom, coefficient in linear.terms:
            result = result + self._resolved_atom(atom) * coefficient
        return result

    def _resolved_atom(self, atom: Atom) -> Linear:
        if isinstance(atom, Var):
            found = self.fixed.get(atom, of(atom))
            return found if isinstance(found, Linear) else Linear((), found)
        if isinstance(atom, Opaque):
            return Linear(((atom, 1),))
        inner = self.resolved(atom.value)
        return simplified_index(Linear(((type(atom)(inner, atom.divisor), 1),)))

    def index(self, linear: Linear) -> str:
        """An index as C text, in arithmetic of the dialect's index type."""
        resolved = self.resolved(linear)
        text = " + ".join(self._term(atom, int(c)) for atom, c in resolved.terms if int(c))
        const = int(resolved.const)
        if not text:
            return str(const)
        return text if const == 0 else f"{text} + {const}" if const > 0 else f"{text} - {-const}"

    def _term(self, atom: Atom, coefficient: int) -> str:
        text = self._atom(atom)
        return text if coefficient == 1 else f"{text} * {coefficient}" if coefficient > 0 else f"{text} * ({coefficient})"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Var):
            return atom.name
        if isinstance(atom, Opaque):
            return self.helpers.as_index(replace(self, lanes=None).scalar(atom.value), atom.value.dtype)
        inner, divisor = self.index(atom.value), int(atom.divisor)
        found = bounds(atom.value) if not is_opaque(atom) else None
        if found is not None and found[0] >= 0:
            return f"(({inner}) {'/' if isinstance(atom, Quotient) else '%'} {divisor})"
        return f"{self.helpers.floor_division('floordiv' if isinstance(atom, Quotient) else 'floormod')}({inner}, {divisor})"

    def flat(self, buffer: Buffer, index: tuple[Linear, ...]) -> Linear:
        """Position in the buffer, in elements."""
        return self.resolved(flat_index(buffer, index))

    def place(self, buffer: Buffer, index: tuple[Linear, ...]) -> str:
        """The element, or the vector of contiguous elements, as an lvalue."""
        flat = self.flat(buffer, index)
        if self.lanes is None:
            return f"{buffer.name}[{self.index(flat)}]"
        kind = self.helpers.vector(buffer.dtype, self.lanes.count)
        base = Linear(tuple((atom, c) for atom, c in flat.terms if atom is not self.lanes.var), flat.const) + self.lanes.start
        return f"*({kind} *)&{buffer.name}[{self.index(base)}]"

    # values ---------------------------------------------------------------------------------------------------------------------------------------

    def scalar(self, expr: Expr) -> str:
        """One element."""
        return replace(self, lanes=None).value(expr)[0]

    def vector(self, expr: Expr) -> str:
        """A vector, broadcast if every lane has the same value."""
        assert self.lanes is not None
        return self._widened(self.value(expr), expr.dtype)

    def _widened(self, value: tuple[str, bool], dtype: str) -> str:
        text, is_vector = value
        return text if is_vector else self.broadcast(text, dtype)

    def kind(self, dtype: str, is_vector: bool) -> str:
        """The C type of a variable for a value."""
        if dtype == "bool":
            return "__auto_type" if is_vector else "int"  # a mask has lanes as wide as the compared values
        if not is_vector:
            return C_TYPES[dtype]
        assert self.lanes is not None
        return self.helpers.vector(dtype, self.lanes.count)

    def broadcast(self, text: str, dtype: str) -> str:
        """The same scalar in every lane."""
        assert self.lanes is not None
        if dtype == "float16":
            return f"{self.helpers.every_lane(dtype, self.lanes.count)}({text})"
        kind = self.helpers.vector(dtype, self.lanes.count)
        if text in ("0", "0.0", "0.0f"):
            return f"({kind}){{}}"
        if dtype == "bool":
            text = f"({C_TYPES[dtype]}){text}"  # a comparison is an int
        return f"({text} {'-' if dtype.startswith('float') else '+'} ({kind}){{}})"

    def value(self, expr: Expr) -> tuple[str, bool]:
        """C text, and whether it is a vector."""
        if self.named and expr in self.named:
            return self.named[expr]
        if isinstance(expr, Const):
            return literal(expr.value, expr.dtype), False
        if isinstance(expr, Access):
            return self._access(expr)
        if isinstance(expr, IndexValue):
            return self._index_value(expr)
        if isinstance(expr, Binary):
            return self._binary(expr)
        if isinstance(expr, Not):
            text, is_vector = self.value(expr.value)
            return (f"(~{text})" if is_vector else f"(!{text})"), is_vector
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, Cast):
            return self._cast(expr)
        assert isinstance(expr, Select)
        return self._select(expr)

    def _access(self, access: Access) -> tuple[str, bool]:
        if access in self.held:
            return self.held[access], True
        flat = self.flat(access.buffer, access.index)
        lane = flat.coefficient(self.lanes.var) if self.lanes is not None else 0
        base = self._without_lanes(flat)
        name, dtype = access.buffer.name, access.dtype
        if lane == 0 and self.safe and not in_bounds(access):
            return f"{name}[{self.helpers.inside()}({self.index(base)}, {access.buffer.size})]", False
        if lane == 0:
            return self._loaded(f"{name}[{self.index(base)}]", C_TYPES[dtype]), False
        assert self.lanes is not None
        kind = self.helpers.vector(dtype, self.lanes.count)
        if lane == 1:
            return self._loaded(f"*(const {kind} *)&{name}[{self.index(base)}]", kind), True
        if lane == 2 and self.lanes.count >= 4 and BYTES[dtype] >= 4:
            return self._loaded(f"{self.helpers.every_second(dtype, self.lanes.count)}(&{name}[{self.index(base)}])", kind), True
        elements = (f"{name}[{self.index(base + int(lane) * k)}]" for k in range(self.lanes.count))
        return self._loaded(f"({kind}){{{', '.join(elements)}}}", kind), True

    def _without_lanes(self, linear: Linear) -> Linear:
        """The index at lane 0."""
        if self.lanes is None:
            return linear
        rest = Linear(tuple((atom, c) for atom, c in linear.terms if atom is not self.lanes.var), linear.const)
        return rest + self.lanes.start * linear.coefficient(self.lanes.var)

    def _loaded(self, text: str, kind: str) -> str:
        return self.load(text, kind) if self.load is not None else text

    def _index_value(self, expr: IndexValue) -> tuple[str, bool]:
        resolved = self.resolved(expr.value)
        lane = int(resolved.coefficient(self.lanes.var)) if self.lanes is not None else 0
        if lane == 0 or self.lanes is None:
            return f"(int)({self.index(resolved)})", False
        base = self._without_lanes(resolved)
        kind = self.helpers.vector("int32", self.lanes.count)
        steps = ", ".join(str(lane * k) for k in range(self.lanes.count))
        return f"((int)({self.index(base)}) + ({kind}){{{steps}}})", True

    def _binary(self, expr: Binary) -> tuple[str, bool]:
        operand = expr.left.dtype
        if expr.op in ("min", "max"):
            a, b = self.value(expr.left), self.value(expr.right)
            if a[1] or b[1]:
                assert self.lanes is not None
                return f"{self.helpers.extreme(expr.op, operand, self.lanes.count)}({self._widened(a, operand)}, {self._widened(b, operand)})", True
            return f"{self.helpers.extreme(expr.op, operand, 1)}({a[0]}, {b[0]})", False
        if expr.op in DIVISIONS and not self.helpers.ranges.divides_safely(expr):
            return f"{self.helpers.any_division(expr.op, operand)}({self.scalar(expr.left)}, {self.scalar(expr.right)})", False
        if expr.op in ("floordiv", "floormod"):
            name = self.helpers.floor_division(expr.op, operand)
            return f"({C_TYPES[operand]}){name}({self.scalar(expr.left)}, {self.scalar(expr.right)})", False
        if expr.op in ("and", "or"):
            return self._logic(expr)
        if expr.op in ("shl", "shr") and not isinstance(expr.right, Const):
            return f"{self.helpers.shift(expr.op, operand)}({self.scalar(expr.left)}, {self.scalar(expr.right)})", False
        a, b = self.value(expr.left), self.value(expr.right)
        is_vector = a[1] or b[1]  # a scalar operand of a vector operation is broadcast by the language
        if is_vector and operand == "float16":  # which gcc takes for a float
            a, b = (self._widened(a, operand), True), (self._widened(b, operand), True)
        if expr.op == "shl":
            return (self._shifted_left(expr, a, b[0]) if is_vector else self.helpers.unsigned(f"({{}} << {b[0]})", expr.dtype, a[0])), is_vector
        wide = expr.op in ("add", "sub", "mul") and expr.dtype in ("int32", "int64") and self.helpers.ranges.may_wrap(expr)
        if is_vector and (wide or (expr.dtype in WRAPPING and expr.op != "shr")):
            assert self.lanes is not None
            return self.helpers.wrapping(INFIX[expr.op], expr.dtype, self.lanes.count, self._widened(a, operand), self._widened(b, operand)), True
        if wide:
            return self.helpers.unsigned(f"({{}} {INFIX[expr.op]} {{}})", expr.dtype, a[0], b[0]), False
        text = f"({a[0]} {INFIX[expr.op]} {b[0]})"
        return (text, True) if is_vector else (_narrowed(text, expr.dtype), False)

    def _shifted_left(self, expr: Binary, value: tuple[str, bool], count: str) -> str:
        assert self.lanes is not None
        unsigned = self.helpers.vector(UNSIGNED[expr.dtype], self.lanes.count)
        return f"({self.helpers.vector(expr.dtype, self.lanes.count)})(({unsigned}){self._widened(value, expr.dtype)} << {count})"

    def _logic(self, expr: Binary) -> tuple[str, bool]:
        a, is_vector = self.value(expr.left)
        if is_vector:
            return f"({a} {'&' if expr.op == 'and' else '|'} {self.value(expr.right)[0]})", True
        # What the left side guards must not be hoisted before it.
        return f"({a} {INFIX[expr.op]} {replace(self, load=None).value(expr.right)[0]})", False

    def _call(self, expr: Call) -> tuple[str, bool]:
        if exponent := small_power(expr):
            text, is_vector = self.value(expr.arguments[0])
            return f"{self.helpers.small_power(exponent, expr.dtype, self.lanes.count if is_vector and self.lanes is not None else 1)}({text})", is_vector
        parts = [self.value(argument) for argument in expr.arguments]
        is_vector = any(flag for _, flag in parts)
        lanes = self.lanes.count if is_vector and self.lanes is not None else 1
        texts = [self._widened(part, argument.dtype) if is_vector else part[0] for argument, part in zip(expr.arguments, parts, strict=True)]
        return f"{self.helpers.call(expr.name, expr.dtype, lanes)}({', '.join(texts)})", is_vector

    def _cast(self, expr: Cast) -> tuple[str, bool]:
        upper = high_word(expr) if self.lanes is not None and self.lanes.count >= FEWEST else None
        if upper is not None:
            return self._high_words(*upper)
        text, is_vector = self.value(expr.value)
        if BFLOAT16 in (expr.dtype, expr.value.dtype):
            convert = self.helpers.rounded if expr.dtype == BFLOAT16 else self.helpers.widened
            return f"{convert(self.lanes.count if is_vector and self.lanes is not None else 1)}({text})", is_vector
        if is_vector:
            assert self.lanes is not None
            return f"__builtin_convertvector({text}, {self.helpers.vector(expr.dtype, self.lanes.count)})", True
        return (f"({text} != 0)" if expr.dtype == "bool" else f"(({C_TYPES[expr.dtype]}){text})"), False

    def _high_words(self, left: Expr, right: Expr, added: int) -> tuple[str, bool]:
        assert self.lanes is not None
        name = high_words_function(self.helpers, self.lanes.count)
        return f"{name}({self.vector(left)}, {self.vector(right)}, {literal(added, 'int64')})", True

    def _select(self, expr: Select) -> tuple[str, bool]:
        condition, mask = self.value(expr.condition)
        if mask:
            assert self.lanes is not None
            return f"{self.helpers.select(expr.dtype, self.lanes.count)}({condition}, {self.vector(expr.then)}, {self.vector(expr.otherwise)})", True
        # A guarded read must not be hoisted out of its guard.
        inner = replace(self, load=None)
        then, otherwise = inner.value(expr.then), inner.value(expr.otherwise)
        if not then[1] and not otherwise[1]:
            return _narrowed(f"({condition} ? {then[0]} : {otherwise[0]})", expr.dtype), False
        assert self.lanes is not None
        # gcc wants one type on both sides, and arithmetic on a typedef does not give that typedef.
        kind = self.helpers.vector(expr.dtype, self.lanes.count)
        return f"({condition} ? ({kind}){inner._widened(then, expr.dtype)} : ({kind}){inner._widened(otherwise, expr.dtype)})", True


def _narrowed(text: str, dtype: str) -> str:
    """C promotes to int: convert back to `dtype`, so that the value wraps, and a vector of `dtype` accepts it as a scalar."""
    return f"({C_TYPES[dtype]}){text}" if BYTES[dtype] < 4 and dtype != "bool" else text


def combined(helpers: Helpers, combiner: str, dtype: str, lanes: int, old: str, new: str, wraps: bool) -> str:
    """C text of one reduction step. wraps: the result may leave its integer dtype."""
    if combiner in ("max", "min"):
        return f"{helpers.extreme(combiner, dtype, lanes)}({old}, {new})"
    op = "+" if combiner == "sum" else "*"
    if lanes > 1 and (wraps or dtype in WRAPPING):
        return helpers.wrapping(op, dtype, lanes, old, new)
    if wraps and BYTES[dtype] >= 4:
        return helpers.unsigned(f"({{}} {op} {{}})", dtype, old, new)
    text = f"{old} {op} {new}"
    return _narrowed(f"({text})", dtype) if lanes == 1 else text


def contiguous(buffer: Buffer, index: tuple[Linear, ...], var: Var) -> bool:
    """Whether neighbours along `var` are adjacent in memory."""
    flat = flat_index(buffer, index)
    return int(flat.coefficient(var)) == 1 and all(atom is var or not mentions(Linear(((atom, 1),)), var) for atom, _ in flat.terms)


@lru_cache(maxsize=1024)  # patterns ask for the same accesses, one after another; buffers and indices are told apart by identity
def flat_index(buffer: Buffer, index: tuple[Linear, ...]) -> Linear:
    """Position in the buffer, in elements. Loops fused over neighbouring dimensions are one dimension again: (f / 8) * 8 + f % 8 is f."""
    total = Linear()
    for value, stride in zip(index, buffer.strides, strict=True):
        total = total + value * stride
    return rejoined(total)


def depends(expr: Expr, var: Var) -> bool:
    """Whether the value changes with `var`."""
    return any(mentions(linear, var) for linear in _indices(expr))


def _indices(expr: Expr) -> list[Linear]:
    return [linear for node in walk(expr) for linear in _own_indices(node)]


def _own_indices(node: Expr) -> Sequence[Linear]:
    return node.index if isinstance(node, Access) else (node.value,) if isinstance(node, IndexValue) else ()


def mentions(linear: Linear, var: Var) -> bool:
    """Whether the index changes with `var`."""
    for atom, coefficient in linear.terms:
        if int(coefficient) == 0:
            continue
        if any(other is var for other in atom_variables(atom)):
            return True
        if is_opaque(atom) and _opaque_mentions(atom, var):
            return True
    return False


def _opaque_mentions(atom: Atom, var: Var) -> bool:
    if isinstance(atom, Opaque):
        return depends(atom.value, var)
    return not isinstance(atom, Var) and mentions(atom.value, var)


class _Facts(NamedTuple):  # one per node of each candidate: cheaper than a dataclass
    """What decides whether an expression can be written for neighbouring values of a variable.

    moves: it changes with the variable; fits: it can be written so, as an operand; harmless: `computable`; plain, varying, widths: of a condition, whether
    a mask can be made of it, whether every comparison in it moves, and the bytes of what is compared (powers of two), added up without repeats.
    """

    moves: bool
    fits: bool
    harmless: bool
    plain: bool
    varying: bool
    widths: int


def vectorizable(expr: Expr, var: Var, guards: Sequence[Guard] = ()) -> bool:
    """Whether the expression can be written for a vector of neighbouring values of `var`. guards: it is computed only where they hold."""
    standing = [guard for guard in guards if not mentions(guard.value, var)]  # for all lanes alike
    facts = fold(expr, lambda node, operands: _facts(node, operands, var, standing))
    if not facts.fits or (expr.dtype == "bool" and facts.moves):
        return False
    return facts.harmless or not pieces(expr)  # clipped reads are not adjacent


def _facts(node: Expr, operands: tuple[_Facts, ...], var: Var, guards: Sequence[Guard]) -> _Facts:
    moves = any(one.moves for one in operands) or any(mentions(linear, var) for linear in _own_indices(node))
    harmless = _is_harmless(node, guards) and all(one.harmless for one in operands)
    plain = isinstance(node, Binary | Not | Access | IndexValue | Const | Call | Cast) and all(one.plain for one in operands)
    varying = (node.dtype != "bool" or moves) and all(one.varying for one in operands)
    widths = BYTES[node.left.dtype] if isinstance(node, Binary) and node.op in COMPARISONS else 0
    for one in operands:
        widths |= one.widths
    fits = all(one.fits for one in operands) and all(linear_in(linear, var) for linear in _own_places(node))
    if moves and fits:
        fits = _fits(node, operands, harmless)
    return _Facts(moves, fits, harmless, plain, varying, widths)


def _own_places(node: Expr) -> Sequence[Linear]:
    """What must grow evenly: the place of an element, or an index used as a value."""
    return (flat_index(node.buffer, node.index),) if isinstance(node, Access) else _own_indices(node)


def _fits(node: Expr, operands: tuple[_Facts, ...], harmless: bool) -> bool:
    """Whether a node that moves, all of whose operands fit, does."""
    if node.dtype == "bool" and not isinstance(node, Binary | Not):
        return False
    if isinstance(node, Binary):
        return node.op not in DIVISIONS and (node.op not in ("shl", "shr") or isinstance(node.right, Const))
    if isinstance(node, Cast):
        return "bool" not in (node.dtype, node.value.dtype)
    return not (isinstance(node, Select) and operands[0].moves) or _maskable(node, operands[0], harmless)


def _maskable(select: Select, condition: _Facts, harmless: bool) -> bool:
    """Whether both sides may be computed in every lane, and the lanes of the mask match those of the value."""
    # Every compared pair must vary over the lanes: a scalar comparison gives 0 or 1, not a mask.
    # Every lane computes everything, including values guarded by a condition or its first half.
    width = BYTES[select.dtype]
    return condition.plain and condition.varying and harmless and condition.widths == width and width in MASK


def linear_in(linear: Linear, var: Var) -> bool:
    """Whether the index grows evenly with `var`, or not at all."""
    return all(isinstance(atom, Var) or not mentions(Linear(((atom, 1),)), var) for atom, _ in linear.terms)


def computable(expr: Expr) -> bool:
    """Whether the expression is safe to compute speculatively: every read is in bounds, every divisor a number."""
    return all(map(_is_harmless, walk(expr)))


def _is_harmless(node: Expr, guards: Sequence[Guard] = ()) -> bool:
    if isinstance(node, Access):
        return in_bounds(node, guards)
    if isinstance(node, IndexValue):
        return not any(is_opaque(atom) for atom, _ in node.value.terms)
    return not isinstance(node, Binary) or node.op not in DIVISIONS or isinstance(node.right, Const)


def in_bounds(access: Access, guards: Sequence[Guard] = ()) -> bool:
    """Whether the element exists for all values of the loop variables for which the guards hold."""
    for linear, extent in zip(access.index, access.buffer.shape, strict=True):
        found = bounds(linear)
        if found is None:
            return False
        least, most = int(found[0]), int(found[1])
        for guard in guards:
            low, high = _range_under(guard, linear)
            least, most = least if low is None else max(least, low), most if high is None else min(most, high)
        if least < 0 or most >= int(extent):
            return False
    return True


def _range_under(guard: Guard, linear: Linear) -> tuple[int | None, int | None]:
    """The least and the greatest value that an index may have where a guard holds: the index is a multiple of the guarded value, and a rest. None: the guard
    says nothing of it, as for negative multiples and rests that depend on data."""
    times = _multiple(linear, guard.value)
    rest = bounds(linear - guard.value * times) if times > 0 else None
    if rest is None:
        return None, None
    low = None if guard.low is None else int(guard.low) * times + int(rest[0])
    return low, None if guard.high is None else (int(guard.high) - 1) * times + int(rest[1])


def _multiple(linear: Linear, value: Linear) -> int:
    """How many times an index has the first term of another; 0 if that is no whole number."""
    for atom, coefficient in value.terms:
        if coefficient:
            times, left = divmod(int(linear.coefficient(atom)), int(coefficient))
            return 0 if left else times
    return 0
