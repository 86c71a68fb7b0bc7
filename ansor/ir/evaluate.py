"""The values of a declaration, computed by NumPy: the second oracle, independent of loops and schedules.

Every stage is evaluated on its whole grid of axes at once: an axis is an arange along its own dimension, expressions broadcast, reductions run over the
last dimensions. Large grids are cut into blocks of the output. A read with affine indices becomes a strided view, any other read a gather.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ansor.errors import DeclarationError
from ansor.ir.double import in_double
from ansor.ir.numpy_operations import FUNCTIONS, OPERATIONS
from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Not, Reduce, Select, is_float
from ansor.te.fold import fold, postorder
from ansor.te.interval import arithmetic_form
from ansor.te.tensor import Compute, Read, Tensor

Array = NDArray[Any]  # of the dtype that the tensor or expression has
Inputs = Mapping[str, Array] | Mapping[Tensor, Array] | Mapping[str | Tensor, Array]
BLOCK_POINTS = 20_000_000  # grid points evaluated at once: bounds the memory of temporaries


def evaluate(outputs: Sequence[Tensor], inputs: Inputs, dtype: str | None = None) -> list[Array]:
    """The values of `outputs`, given the placeholders' values by name or by tensor.

    Every operation runs in its declared dtype. As a reference, `dtype="float64"` runs operations on other floats in float64 instead, and converts
    such inputs. Raises DeclarationError for a missing input, a wrong shape or dtype, and for an unguarded read out of bounds.
    """
    if dtype not in (None, "float64"):
        raise DeclarationError(f"asked to evaluate in dtype {dtype!r}; it is None (as declared) or 'float64'")
    by_name = {key if isinstance(key, str) else key.name: value for key, value in inputs.items()}
    if len(by_name) < len(inputs):
        raise DeclarationError(f"asked to evaluate with two values for a name; the inputs are {', '.join(str(key) for key in inputs)}: name them differently")
    known: dict[int, Array] = {}
    with np.errstate(all="ignore"):  # the branch of a select that is not taken may divide by zero
        return [_value(tensor, by_name, known, dtype) for tensor in (in_double(outputs) if dtype else outputs)]


def _value(tensor: Tensor, inputs: Mapping[str, Array], known: dict[int, Array], dtype: str | None) -> Array:
    if id(tensor) not in known:
        compute = tensor.compute
        if compute is None:
            known[id(tensor)] = _given(tensor, inputs, dtype)
        else:
            sources = {id(node.tensor): _value(node.tensor, inputs, known, dtype) for node in postorder(compute.body) if isinstance(node, Read)}
            known[id(tensor)] = _computed(tensor, compute, sources)
    return known[id(tensor)]


def _given(tensor: Tensor, inputs: Mapping[str, Array], dtype: str | None) -> Array:
    if tensor.name not in inputs:
        raise DeclarationError(f"asked to evaluate without a value for {tensor.name}; values are given for {', '.join(inputs) or 'nothing'}")
    value = np.asarray(inputs[tensor.name])
    if dtype and is_float(value.dtype.name):
        value = value.astype(np.float64)
    if value.shape != tensor.shape or value.dtype != tensor.dtype:
        raise DeclarationError(
            f"asked to evaluate with a {value.dtype} array of shape {value.shape} for {tensor.name}, which is declared {tensor.dtype} of shape {tensor.shape}"
        )
    return value


def _computed(tensor: Tensor, compute: Compute, sources: Mapping[int, Array]) -> Array:
    result: Array = np.empty(tensor.shape, tensor.dtype)
    axes = compute.axes + compute.reduce_axes
    whole = [range(axis.start, axis.start + axis.extent) for axis in axes]
    reduce_dims = tuple(range(len(compute.axes), len(axes)))
    body = compute.body
    for block in _blocks(whole, len(compute.axes)):
        grid = Grid.over(axes, block, sources)
        if isinstance(body, Reduce):
            points = np.broadcast_to(grid.value(body.source, False), tuple(map(len, block)))
            part = _COMBINERS[body.combiner].reduce(points, axis=reduce_dims, dtype=body.dtype)
        else:
            part = grid.value(body, False)
        result[tuple(slice(taken.start, taken.stop) for taken in block[:len(compute.axes)])] = part
    return result


def _blocks(ranges: list[range], spatial: int) -> Iterator[list[range]]:
    """Parts of the grid of at most BLOCK_POINTS points, cut along the first spatial axes."""
    points = math.prod(map(len, ranges))
    first = next((k for k in range(spatial) if len(ranges[k]) > 1), None)
    if points <= BLOCK_POINTS or first is None:
        yield ranges
        return
    taken = ranges[first]
    step = max(1, len(taken) * BLOCK_POINTS // points)
    for start in range(0, len(taken), step):
        yield from _blocks([*ranges[:first], taken[start:start + step], *ranges[first + 1:]], spatial)


@dataclass(frozen=True, slots=True)
class Grid:
    """A block of a stage's axes, and the values of expressions on it; each value broadcasts to the block."""

    axes: Mapping[int, tuple[int, range]]  # id of an axis -> its dimension and the values it takes
    rank: int
    sources: Mapping[int, Array]
    known: dict[tuple[int, bool], Array]
    exact: dict[int, Array]  # int64 [broadcasting to the block], only for expressions of axes and constants

    @staticmethod
    def over(axes: Sequence[Axis], block: Sequence[range], sources: Mapping[int, Array]) -> Grid:
        """The grid of `axes` over `block`, reading tensors by id."""
        return Grid({id(axis): (k, taken) for k, (axis, taken) in enumerate(zip(axes, block, strict=True))}, len(axes), sources, {}, {})

    def value(self, expr: Expr, guarded: bool) -> Array:
        """The value of `expr`. Below a select (`guarded`), out-of-bounds indices are clipped, since the select may discard what they read."""
        key = (id(expr), guarded)
        if key not in self.known:
            for node, below in _operands_first(expr, guarded):
                if (id(node), below) not in self.known:
                    self.known[id(node), below] = self._computed(node, below)
        return self.known[key]

    def _computed(self, expr: Expr, guarded: bool) -> Array:
        exact = self._of_axes(expr)
        if exact is not None:
            self.exact[id(expr)] = exact
            return exact.astype(expr.dtype)
        if isinstance(expr, Const):
            return np.asarray(expr.value, dtype=expr.dtype)
        if isinstance(expr, Read):
            return self._read(expr, guarded)
        if isinstance(expr, Select):
            return np.where(self.value(expr.condition, guarded), self.value(expr.then, True), self.value(expr.otherwise, True))
        if isinstance(expr, Not):
            return np.logical_not(self.value(expr.value, guarded))
        if isinstance(expr, Cast):
            return self.value(expr.value, guarded).astype(expr.dtype)
        if isinstance(expr, Call):
            operands = [self.value(argument, guarded) for argument in expr.arguments]
            return np.asarray(FUNCTIONS[expr.name](*operands)).astype(expr.dtype, copy=False)
        assert isinstance(expr, Binary)
        left = self.value(expr.left, guarded)
        right = self.value(expr.right, guarded or expr.op in ("and", "or"))
        return np.asarray(OPERATIONS[expr.op](left, right)).astype(expr.dtype, copy=False)

    def _of_axes(self, expr: Expr) -> Array | None:
        """The value of an expression of axes and constants only, in 64 bits: its final value wraps in its dtype, its operands do not. None for others."""
        if isinstance(expr, Axis):
            dimension, taken = self.axes[id(expr)]
            return np.arange(taken.start, taken.stop, dtype=np.int64).reshape([-1 if k == dimension else 1 for k in range(self.rank)])
        if isinstance(expr, Const):
            return np.asarray(expr.value, dtype=np.int64) if expr.dtype in _WIDE else None
        if not _is_index_arithmetic(expr) or any(id(child) not in self.exact for child in expr.children):
            return None
        operands = [self.exact[id(child)] for child in expr.children]
        return operands[0] if isinstance(expr, Cast) else np.asarray(OPERATIONS[cast(Binary, expr).op](*operands))

    def _place(self, index: Expr, guarded: bool) -> Array:
        """An index in 64 bits, so that sums and constant multiples of axes and read values do not wrap on the way."""
        found: dict[int, Array] = {}
        for node in postorder(index, lambda node: node.children if _is_index_arithmetic(node) else ()):
            if not _is_index_arithmetic(node):
                found[id(node)] = self.value(node, guarded).astype(np.int64)
                continue
            operands = [found[id(child)] for child in node.children]
            found[id(node)] = operands[0] if isinstance(node, Cast) else np.asarray(OPERATIONS[cast(Binary, node).op](*operands))
        return found[id(index)]

    def _read(self, read: Read, guarded: bool) -> Array:
        source = self.sources[id(read.tensor)]
        view = self._view(source, read.indices)
        if view is not None:
            return view
        indices = []
        for dimension, (index, extent) in enumerate(zip(read.indices, source.shape, strict=True)):
            places = self._place(index, guarded)
            if guarded:
                places = np.clip(places, 0, extent - 1)
            elif places.size and (int(places.min()) < 0 or int(places.max()) >= extent):
                raise DeclarationError(
                    f"tensor {read.tensor.name} of shape {read.tensor.shape} is read at `{index}` in dimension {dimension}, "
                    f"which takes values {places.min()}..{places.max()} while the extent is {extent}"
                )
            indices.append(places)
        return np.asarray(source[tuple(indices)])

    def _view(self, source: Array, indices: Sequence[Expr]) -> Array | None:
        """The read as a view without a copy; None unless every index is affine and stays in bounds."""
        shape, strides, origin = [1] * self.rank, [0] * self.rank, []
        for place, index in enumerate(indices):
            affine = _affine(index)
            if affine is None:
                return None
            low = high = first = affine.pop(_CONSTANT, 0)
            for axis, coefficient in affine.items():
                dimension, taken = self.axes[axis]
                ends = (coefficient * taken.start, coefficient * (taken.stop - 1))
                low, high, first = low + min(ends), high + max(ends), first + ends[0]
                shape[dimension] = len(taken)
                strides[dimension] += coefficient * source.strides[place]
            if low < 0 or high >= source.shape[place]:
                return None
            origin.append(slice(first, None))
        return as_strided(source[tuple(origin)], shape, strides, writeable=False)


_WIDE = ("int32", "int64")


def _is_index_arithmetic(expr: Expr) -> bool:
    """True for the operations that are computed in 64 bits in an index: sums, constant multiples, and division by positive constants."""
    if isinstance(expr, Cast):
        return expr.dtype in _WIDE and expr.value.dtype in _WIDE
    if not isinstance(expr, Binary) or expr.dtype not in _WIDE:
        return False
    plain = arithmetic_form(expr)
    if plain.op in ("add", "sub"):
        return True
    if plain.op == "mul":
        return isinstance(plain.left, Const) or isinstance(plain.right, Const)
    return plain.op in ("floordiv", "floormod") and isinstance(plain.right, Const) and plain.right.value > 0


_CONSTANT = 0  # the id of no object


def _affine(expr: Expr) -> dict[int, int] | None:
    """Coefficients by id of axis, the constant under _CONSTANT; None when the expression is not affine."""
    return fold(expr, _affine_node)


def _affine_node(expr: Expr, operands: tuple[dict[int, int] | None, ...]) -> dict[int, int] | None:
    if isinstance(expr, Const):
        return None if is_float(expr.dtype) else {_CONSTANT: int(expr.value)}
    if isinstance(expr, Axis):
        return {id(expr): 1}
    if not isinstance(expr, Binary) or expr.op not in ("add", "sub", "mul"):
        return None
    left, right = operands
    if left is None or right is None:
        return None
    if expr.op != "mul":
        sign = 1 if expr.op == "add" else -1
        return {axis: left.get(axis, 0) + sign * right.get(axis, 0) for axis in left.keys() | right.keys()}
    scale, other = (left, right) if not left.keys() - {_CONSTANT} else (right, left)
    if scale.keys() - {_CONSTANT}:
        return None
    return {axis: coefficient * scale.get(_CONSTANT, 0) for axis, coefficient in other.items()}


def _operands_first(expr: Expr, guarded: bool) -> Iterator[tuple[Expr, bool]]:
    """The nodes that an expression needs, itself last, each with whether it is below a select. A read evaluates its own indices."""
    done: set[tuple[int, bool]] = set()
    stack = [(expr, guarded)]
    while stack:
        node, below = stack[-1]
        inside = below or isinstance(node, Select) or (isinstance(node, Binary) and node.op in ("and", "or"))
        children = () if isinstance(node, Read) else node.children
        waiting = [(child, inside if k else below) for k, child in enumerate(children) if (id(child), inside if k else below) not in done]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        if (id(node), below) not in done:
            done.add((id(node), below))
            yield node, below


_COMBINERS: Mapping[str, np.ufunc] = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
