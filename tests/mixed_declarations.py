"""More random declarations, for what `tests.declarations` omits: every dtype and conversion, wrap-around, guarded and data-dependent reads, awkward
indices, and names that C does not like.

`any_case(draw)` draws from these, and from `tests.declarations`, `tests.integer_declarations` and `tests.operator_declarations`. A random expression carries a
bound of its magnitude, so that what it computes is exact in its dtype and defined in C: signed 32 and 64 bit arithmetic stays in range, floats that are
compared or truncated are small multiples of powers of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ansor import te
from ansor.ir.access import producers
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Axis, Const, Expr, Reduce, is_float
from ansor.te.interval import interval
from ansor.te.tensor import Tensor, declared
from tests.declarations import KINDS as PLAIN_KINDS
from tests.declarations import Array, Case, Draw, Given, random_case
from tests.integer_declarations import INTEGER_KINDS
from tests.operator_declarations import OPERATOR_KINDS

DTYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
NARROW = {"int8": 128, "uint8": 255, "int16": 32768}
LIMITS = {"float16": 1 << 6, "float32": 1 << 20, "float64": 1 << 40, "int32": 1 << 30, "int64": 1 << 40, **NARROW, "bool": 1}


def any_case(draw: Draw, kind: str | None = None) -> Case:
    """One declaration of `kind` (a name in ALL_KINDS), or of any."""
    kind = kind or draw.pick(sorted(ALL_KINDS))
    if kind in PLAIN_KINDS:
        return random_case(draw, kind)
    given = MIXED_KINDS[kind](draw)
    rng = np.random.default_rng(draw.integer(0, 1000))
    dag = Dag(given.tensors)
    placeholders = [tensor for tensor in given.tensors if tensor.is_placeholder]
    inputs = {renamed.name: given.values.get(tensor.name, small_values(rng, tensor)) for tensor, renamed in zip(placeholders, dag.inputs, strict=True)}
    results = evaluate(dag.outputs, dict(inputs))
    return Case(kind, dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, results, strict=True)})


def small_values(rng: np.random.Generator, tensor: Tensor) -> Array:
    """Small whole numbers."""
    low, high = (0, 2) if tensor.dtype == "bool" else (0, 4) if tensor.dtype == "uint8" else (-3, 4)
    return np.asarray(rng.integers(low, high, tensor.shape)).astype(tensor.dtype)


# random expressions -----------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """An expression, a bound of its magnitude, and whether floating-point arithmetic on the way was exact."""

    expr: Expr
    bound: int
    exact: bool = True


@dataclass
class Scope:
    """What expressions of one stage may use, and what they added to the workload."""

    draw: Draw
    axes: list[Axis] = field(default_factory=list)
    stages: dict[str, tuple[Tensor, Value]] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    values: dict[str, Array] = field(default_factory=dict)
    dtypes: tuple[str, ...] = DTYPES

    def placeholder(self, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Tensor:
        tensor = te.placeholder(shape, dtype, name=f"in{len(self.inputs)}", constant=self.draw.chance(30))
        self.inputs.append(tensor)
        rng = np.random.default_rng(self.draw.integer(0, 1000))
        self.values[tensor.name] = np.asarray(rng.integers(low, high + 1, shape)).astype(dtype)
        return tensor

    # indices

    def index(self) -> Expr:
        """An integer expression whose interval is known."""
        draw = self.draw
        if not self.axes:
            return te.const(draw.integer(0, 2))
        axis = draw.pick(self.axes)
        form = draw.integer(0, 9)
        if form <= 3:
            return axis
        if form == 4:
            return axis + draw.integer(-2, 2)
        if form == 5:
            return axis * draw.integer(2, 3) + draw.pick(self.axes)
        if form == 6:
            return te.floordiv(axis + draw.integer(-3, 3), draw.integer(2, 3))
        if form == 7:
            return te.floormod(axis * draw.integer(1, 3) - draw.integer(0, 4), draw.integer(2, 5))
        if form == 8:
            return axis.extent - 1 - axis
        return axis + draw.pick(self.axes)

    def place(self, extent: int) -> Expr:
        """An index that stays inside a given extent."""
        draw = self.draw
        fitting = [axis for axis in self.axes if axis.start + axis.extent <= extent]
        if fitting and draw.chance(70):
            return draw.pick(fitting)
        index = self.index()
        found = interval(index)
        assert found is not None
        if found[0] >= 0 and found[1] < extent:
            return index
        if draw.chance(40):
            return te.min(te.max(index, 0), extent - 1)
        return te.floormod(index, extent)

    def chosen(self, extent: int) -> Expr:
        """An index read from memory."""
        dtype = self.draw.pick(["int32", "int64", "uint8", "int8", "int16"])
        axis = self.draw.pick(self.axes) if self.axes else None
        shape = (axis.start + axis.extent,) if axis is not None else ()
        table = self.placeholder(shape, dtype, 0, extent - 1)
        return table[axis] if axis is not None else table[()]

    # values

    def read(self, dtype: str) -> Value:
        """An element of a new input, at indices that are inside, guarded, or data-dependent."""
        draw = self.draw
        wide = draw.chance(30) and dtype in ("int8", "uint8")
        low, high = (0, 1) if dtype == "bool" else (0, 3) if dtype == "uint8" else (-3, 3)
        if wide:
            low, high = (0, 255) if dtype == "uint8" else (-128, 127)
        indices: list[Expr] = []
        shape: list[int] = []
        tests: list[Expr] = []
        for _ in range(draw.integer(0, min(3, len(self.axes) + 1))):
            if draw.chance(8):
                shape.append(draw.extent(5))
                indices.append(self.chosen(shape[-1]))
                continue
            index = self.index()
            found = interval(index)
            assert found is not None
            index, span = index - found[0], found[1] - found[0] + 1
            if draw.chance(20):
                shifted, shorter = index - draw.integer(0, 2), max(1, span - draw.integer(0, 2))
                if _may_be_inside(shifted, shorter):
                    index, span = shifted, shorter
                    tests += [index >= 0, index < span]
            indices.append(index)
            shape.append(span)
        tensor = self.placeholder(tuple(shape), dtype, low, high)
        bound = max(-low, high) if dtype not in NARROW else NARROW[dtype]
        value = tensor[tuple(indices)]
        if not tests:
            return Value(value, bound)
        if draw.chance(30) and dtype != "bool":
            tests.append(value > 0)  # read only where the tests before it hold
        return Value(te.if_then_else(te.all(*tests), value, self.constant(dtype).expr), max(bound, 7))

    def constant(self, dtype: str) -> Value:
        if dtype == "bool":
            return Value(te.const(self.draw.chance(50), "bool"), 1)
        number = self.draw.integer(0 if dtype == "uint8" else -5, 7)
        return Value(te.const(number / 2 if is_float(dtype) and self.draw.chance(30) else number, dtype), 7)

    def stage_read(self, dtype: str) -> Value | None:
        """An element of an earlier stage."""
        found = [(tensor, value) for tensor, value in self.stages.values() if tensor.dtype == dtype]
        if not found:
            return None
        tensor, value = self.draw.pick(found)
        if self.draw.chance(25) and tensor.ndim:
            axis = [self.index() for _ in tensor.shape]
            tests = [test for index, extent in zip(axis, tensor.shape, strict=True) for test in (index >= 0, index < extent)]
            if all(_may_be_inside(index, extent) for index, extent in zip(axis, tensor.shape, strict=True)):
                return Value(te.if_then_else(te.all(*tests), tensor[tuple(axis)], self.constant(dtype).expr), max(value.bound, 7), value.exact)
        return Value(tensor[tuple(self.place(extent) for extent in tensor.shape)], value.bound, value.exact)

    def value(self, dtype: str, depth: int) -> Value:
        draw = self.draw
        if depth == 0 or draw.chance(15):
            return self.leaf(dtype)
        if dtype == "bool":
            return self.condition(depth)
        form = draw.integer(0, 9)
        if form <= 3:
            return self.arithmetic(dtype, depth)
        if form == 4:
            return self.extreme(dtype, depth)
        if form <= 6:
            a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
            return Value(te.if_then_else(self.condition(depth - 1).expr, a.expr, b.expr), max(a.bound, b.bound), a.exact and b.exact)
        if form == 7:
            return self.conversion(dtype, depth)
        if form == 8 and not is_float(dtype):
            a = self.value(dtype, depth - 1)
            divide = draw.pick([te.floordiv, te.floormod, te.truncdiv, te.truncmod])
            by = draw.pick([2, 3, 7] if dtype == "uint8" else [2, 3, 7, -2, -3])
            return Value(divide(a.expr, by), max(a.bound, 7))
        return self.leaf(dtype)

    def leaf(self, dtype: str) -> Value:
        draw = self.draw
        if draw.chance(40):
            found = self.stage_read(dtype)
            if found is not None:
                return found
        if draw.chance(15):
            return self.constant(dtype)
        if draw.chance(10) and self.axes and dtype not in ("bool", "int8", "uint8", "int16"):
            axis = draw.pick(self.axes)
            return Value(axis.astype(dtype), axis.start + axis.extent)
        return self.read(dtype)

    def arithmetic(self, dtype: str, depth: int) -> Value:
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        exact = a.exact and b.exact
        op = self.draw.integer(0, 4)
        if dtype in NARROW:
            return Value(a.expr + b.expr if op <= 1 else a.expr - b.expr if op == 2 else a.expr * b.expr, NARROW[dtype])
        if op <= 1 and a.bound * b.bound <= LIMITS[dtype]:
            return Value(a.expr * b.expr, a.bound * b.bound, exact)
        if op == 2 and is_float(dtype):
            return Value(a.expr / 2.0, a.bound, exact=False)
        if a.bound + b.bound > LIMITS[dtype]:
            return Value(te.max(a.expr, b.expr), max(a.bound, b.bound), exact)
        return Value(a.expr + b.expr if op == 3 else a.expr - b.expr, a.bound + b.bound, exact)

    def extreme(self, dtype: str, depth: int) -> Value:
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        form = self.draw.integer(0, 2)
        if form == 2:
            return Value(te.abs(a.expr), a.bound, a.exact)
        return Value((te.min if form else te.max)(a.expr, b.expr), max(a.bound, b.bound), a.exact and b.exact)

    def conversion(self, dtype: str, depth: int) -> Value:
        source = self.draw.pick([d for d in self.dtypes if d != dtype])
        a = self.value(source, depth - 1)
        if isinstance(a.expr, Const):
            return self.leaf(dtype)  # a literal that does not fit is refused
        if dtype == "bool":
            return Value(te.cast("bool", a.expr), 1)
        if is_float(source) and not is_float(dtype):
            if not a.exact:
                return self.leaf(dtype)
            low = 0.0 if dtype == "uint8" else -100.0
            return Value(te.cast(dtype, te.min(te.max(a.expr, low), 100.0)), NARROW.get(dtype, 100))
        if dtype in NARROW:
            return Value(te.cast(dtype, a.expr), NARROW[dtype])
        if a.bound > LIMITS[dtype]:
            return self.leaf(dtype)
        return Value(te.cast(dtype, a.expr), a.bound, a.exact)

    def condition(self, depth: int) -> Value:
        draw = self.draw
        if depth > 0 and draw.chance(30):
            both = (self.condition(depth - 1).expr, self.condition(depth - 1).expr)
            return Value(te.all(*both) if draw.chance(50) else te.any(*both), 1)
        if depth > 0 and draw.chance(10):
            return Value(te.logical_not(self.condition(depth - 1).expr), 1)
        if draw.chance(10):
            return self.leaf("bool")
        if draw.chance(40) and self.axes:
            return Value(self.compared(self.index(), te.const(draw.integer(0, 4))), 1)
        dtype = draw.pick(["float32", "float32", "int32", "int8", "uint8", "int16", "int64", "float64", *({"float16"} & {*self.dtypes})])
        a, b = self.value(dtype, max(depth - 1, 0)), self.value(dtype, max(depth - 1, 0))
        if not (a.exact and b.exact):
            a, b = self.read(dtype), self.constant(dtype)
        return Value(self.compared(a.expr, b.expr), 1)

    def compared(self, a: Expr, b: Expr) -> Expr:
        form = self.draw.integer(0, 5)
        return (a < b, a <= b, a > b, a >= b, a == b, a != b)[form]

    def function(self, value: Value) -> Value:
        """A mathematical function of a float, in a range where it is well conditioned."""
        x = te.min(te.max(value.expr, -4.0), 4.0)
        functions: list[Callable[[Expr], Expr]] = [
            te.exp, te.tanh, te.sigmoid, te.erf, te.sin, te.cos, te.abs, lambda v: te.sqrt(te.abs(v)), lambda v: te.rsqrt(te.abs(v) + 1.0),
            lambda v: te.log(te.abs(v) + 1.0), lambda v: te.log2(te.abs(v) + 1.0), lambda v: te.power(te.abs(v) + 1.0, 1.5), lambda v: 3.0 / (te.abs(v) + 1.0),
        ]  # fmt: skip
        if value.exact and self.draw.chance(30):
            functions = [te.floor, te.ceil, te.round, te.trunc]
        return Value(self.draw.pick(functions)(x), 64, exact=False)


def _may_be_inside(index: Expr, extent: int) -> bool:
    found = interval(index)
    return found is not None and found[1] >= 0 and found[0] < extent


def _stage(scope: Scope, name: str) -> Tensor:
    """One stage over fresh axes, perhaps a reduction."""
    draw = scope.draw
    shape = [draw.pick([1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 20, 33]) if draw.chance(50) else draw.extent(6) for _ in range(draw.integer(0, 3))]
    if shape and draw.chance(8):
        shape[-1] = draw.pick([67, 130])
    while np.prod(shape) > 600:
        shape[int(np.argmax(shape))] //= 2
    spatial = tuple(Axis(label, extent) for label, extent in zip("ijk", shape, strict=False))
    if draw.chance(45):
        return _reduced(scope, name, spatial)
    scope.axes = list(spatial)
    dtype = draw.pick(scope.dtypes)
    found = scope.value(dtype, draw.integer(1, 3))
    if is_float(dtype) and draw.chance(25):
        found = scope.function(found)
    tensor = declared(name, spatial, found.expr)
    scope.stages[name] = (tensor, found)
    return tensor


def _reduced(scope: Scope, name: str, spatial: tuple[Axis, ...]) -> Tensor:
    draw = scope.draw
    starts = [draw.integer(0, 2) if draw.chance(30) else 0 for _ in range(draw.integer(1, 2))]
    lengths = [draw.pick([1, 2, 3, 5, 8, 16]) for _ in starts]
    reduced = [Axis(f"r{k}", length, "reduce", start) for k, (start, length) in enumerate(zip(starts, lengths, strict=True))]
    scope.axes = [*spatial, *reduced]
    dtype = draw.pick([d for d in scope.dtypes if d != "bool"])
    found = scope.value(dtype, draw.integer(0, 2))
    if draw.chance(50) and dtype not in NARROW:
        other = scope.value(dtype, 0)
        if found.bound * other.bound <= LIMITS[dtype]:
            found = Value(found.expr * other.expr, found.bound * other.bound, found.exact and other.exact)
    count = int(np.prod(lengths))
    if dtype in NARROW:
        combiner, bound = draw.pick(["sum", "prod", "max", "min"]), NARROW[dtype]
    elif found.bound**count <= LIMITS[dtype] and draw.chance(50):
        combiner, bound = "prod", found.bound**count
    elif found.bound * count <= LIMITS[dtype] and draw.chance(70):
        combiner, bound = "sum", found.bound * count
    else:
        combiner, bound = draw.pick(["max", "min"]), found.bound
    tensor = declared(name, spatial, Reduce(combiner, found.expr, tuple(reduced), dtype))
    scope.stages[name] = (tensor, Value(found.expr, bound, found.exact))
    return tensor


def expressions(draw: Draw, dtypes: tuple[str, ...] = DTYPES) -> Given:
    """One to four stages of random expressions; stages that are not read are outputs, and sometimes others are, too."""
    scope = Scope(draw, dtypes=dtypes)
    stages = [_stage(scope, f"s{k}") for k in range(draw.integer(1, 4))]
    kept = [stage for stage in stages[:-1] if draw.chance(25)]
    return Given([*scope.inputs, *kept, stages[-1]], scope.values) if _all_reached(scope, [*kept, stages[-1]]) else _only_reached(scope, [*kept, stages[-1]])


def _reached(outputs: list[Tensor]) -> set[str]:
    return {tensor.name for tensor in _all_below(outputs)}


def _all_below(outputs: list[Tensor]) -> list[Tensor]:
    found: dict[str, Tensor] = {}
    pending = list(outputs)
    while pending:
        tensor = pending.pop()
        if tensor.name not in found:
            found[tensor.name] = tensor
            pending += producers(tensor)
    return list(found.values())


def _all_reached(scope: Scope, outputs: list[Tensor]) -> bool:
    return {tensor.name for tensor in scope.inputs} <= _reached(outputs)


def _only_reached(scope: Scope, outputs: list[Tensor]) -> Given:
    """Without inputs that only unused stages read, except one: an input may be passed without being read."""
    reached = _reached(outputs)
    unread = [tensor for tensor in scope.inputs if tensor.name not in reached][:1]
    return Given([*(t for t in scope.inputs if t.name in reached or t in unread), *outputs], scope.values)


# declarations with a shape of their own ---------------------------------------------------------------------------------------------------------------


def guarded_products(draw: Draw) -> Given:
    """Sums of products whose operands are guarded: by the loop variables, by data, or by both, the second only where the first holds."""
    n, m, k = 1 + draw.extent(8), draw.pick([4, 8, 9, 16, 17]), 1 + draw.extent(5)
    dtype = draw.pick(["float32", "float64", "int32"])
    a, b = te.placeholder((n, k), dtype, name="a"), te.placeholder((k, m), dtype, name="b", constant=draw.chance(30))
    mask = te.placeholder((n, m), draw.pick([dtype, "bool", "int8"]), name="mask")
    test = mask.dtype
    r = te.reduce_axis((0, k), name="r")
    form = draw.integer(0, 5)

    def holds(i: Expr, j: Expr) -> Expr:
        return mask[i, j] if test == "bool" else mask[i, j] > 0

    def body(i: Expr, j: Expr) -> Expr:
        zero = te.const(0, dtype)
        if form == 0:
            return te.if_then_else(holds(i, j), a[i, r] * b[r, j], zero)
        if form == 1:
            return te.if_then_else(te.all(j >= 1, b[r, j - 1] > 0), a[i, r] * b[r, j], zero)
        if form == 2:
            return te.if_then_else(te.any(i < 1, a[i - 1, r] > 0), b[r, j], a[i, r])
        if form == 3:
            return te.if_then_else(te.all(r >= 1, j + r < m), b[r - 1, j + r] * a[i, r], zero)
        if form == 4:
            return a[i, r] * te.if_then_else(te.all(i + j >= 2, i + j < m + 2), b[r, i + j - 2], te.const(3, dtype))
        return te.if_then_else(te.all(i >= 1, holds(i - 1, j)), te.if_then_else(j < m - 1, b[r, j + 1], a[i, r]), b[r, j])

    c = te.compute((n, m), lambda i, j: te.sum(body(i, j), axis=r), name="c")
    return Given([a, b, mask, c], {})


def two_readers(draw: Draw) -> Given:
    """One stage read by two others, at its own place and shifted, joined again or not; perhaps an output itself."""
    n, m = 1 + draw.extent(6), draw.extent(9)
    x, y = te.placeholder((n, m), name="x"), te.placeholder((m,), name="y", constant=True)
    r = te.reduce_axis((0, m), name="r")
    first = te.compute((n, m), lambda i, j: x[i, j] * y[j] + 1.0, name="first") if draw.chance(50) else te.compute(
        (n, m), lambda i, j: te.sum(x[i, r] * y[te.floormod(j + r, m)], axis=r), name="first")  # fmt: skip
    left = te.compute((n, m), lambda i, j: te.max(first[i, j], 0.0), name="left")
    shift = draw.integer(0, 1)
    right = te.compute((n, m), lambda i, j: te.if_then_else(i >= shift, first[i - shift, j], 1.0) * 2.0, name="right")
    both = te.compute((n, m), lambda i, j: left[i, j] - right[n - 1 - i, j], name="both")
    s = te.reduce_axis((0, n), name="s")
    outputs = draw.pick([[left, right], [both], [first, both], [te.compute((m,), lambda j: te.max(both[s, j], axis=s), name="most")], [first, left, both]])
    return Given([x, y, *outputs], {})


NAMES = ("int", "task", "t", "begin", "acc0_0", "in0_0", "f32x8", "max_f32", "kernel", "expf", "fabs", "i_0", "c_i", "select", "a b", "9lives", "NAN", "x.y",
         "ctx", "args", "workspace", "restrict", "inline", "long", "select_f32x8", "rint", "INFINITY", "program_nest0", "ansor_floordiv", "_", "λ", "stdin",
         "signgam", "linux", "gamma")


def names(draw: Draw) -> Given:
    """Tensors and axes named like C keywords, library functions, loop variables and what the generator itself makes."""
    labels = [draw.pick(NAMES) for _ in range(6)]
    n, m, k = draw.extent(5), draw.pick([8, 9, 16]), draw.extent(4)
    a, b = te.placeholder((n, k), name=labels[0]), te.placeholder((k, m), name=labels[1], constant=draw.chance(50))
    r = te.reduce_axis((0, k), name=labels[4])
    spatial = (Axis("i" if labels[5] == labels[4] else labels[5], n), Axis("j", m))
    c = declared(labels[2], spatial, te.sum(a[spatial[0], r] * b[r, spatial[1]], axis=r))
    d = te.compute((n, m), lambda i, j: te.max(te.sigmoid(c[i, j]), te.floormod(i - 3, 2).astype("float32")), name=labels[3])
    return Given([a, b, *([c] if draw.chance(30) else []), d], {}) if len(set(labels[:4])) == 4 else names_apart(draw, n, m)


def names_apart(draw: Draw, n: int, m: int) -> Given:
    """Two tensors of one name: the Dag tells them apart, so only one of them is free to choose values."""
    label = draw.pick(NAMES)
    x = te.placeholder((n, m), name="x")
    first = te.compute((n, m), lambda i, j: te.exp(te.min(x[i, j], 1.0)), name=label)
    return Given([x, te.compute((n, m), lambda i, j: first[i, j] + first[n - 1 - i, j], name=label)], {})


MIXED_KINDS: dict[str, Callable[[Draw], Given]] = {
    "expressions": expressions, "guarded_products": guarded_products, "two_readers": two_readers, "names": names,
    **INTEGER_KINDS, **OPERATOR_KINDS,
}  # fmt: skip
ALL_KINDS: dict[str, Callable[[Draw], Given]] = {**PLAIN_KINDS, **MIXED_KINDS}
