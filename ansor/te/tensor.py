"""Tensors: placeholders (given) and computes (declared).

    a = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
"""

from __future__ import annotations

import inspect
import itertools
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ansor.errors import DeclarationError
from ansor.te.expr import INDEX, Axis, Binary, Const, Expr, Operand, Read, Reduce, Select, as_expr, check_dtype, walk
from ansor.te.interval import proven_outside
from ansor.te.operation import Operation
from ansor.te.operators import Operators
from ansor.te.tensor_slice import TensorSlice

_fresh = itertools.count()


@dataclass(frozen=True, eq=False)
class Compute:
    """How a tensor is computed: one axis per dimension, reduce axes (perhaps none), and the value at those axes."""

    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    body: Expr

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every read of the body: asked for again and again while sketches are derived."""
        return tuple(node for node in walk(self.body) if isinstance(node, Read))


@dataclass(frozen=True, eq=False)
class Tensor(Operators["Tensor"]):
    """A dense array: `shape` in elements, `dtype`, and how it comes about (`compute` is None for a placeholder).

    `constant` marks a placeholder whose value is known ahead of time (weights), so its memory order is free to choose.
    Operators (`a + b`, `a * 2.0`, `-a`, `a < b`) are elementwise, with NumPy's broadcasting, and give tensors; `==` compares identity.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    compute: Compute | None = None
    constant: bool = False
    tag: str = ""
    attrs: Mapping[str, object] = field(default_factory=dict)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        result = 1
        for extent in self.shape:
            result *= extent
        return result

    @property
    def is_placeholder(self) -> bool:
        return self.compute is None

    @property
    def op(self) -> Operation:
        """What computes it, with its axes: for schedules written by hand."""
        return Operation(self)

    def _apply(self, operation: str, left: object, right: object) -> Tensor:
        from ansor.te.nn.elementwise import applied

        return applied(operation, left, right)

    def __invert__(self) -> Tensor:
        from ansor.te.nn.elementwise import elementwise

        return elementwise(self, operator.invert, "T_bitwise_not")

    def astype(self, dtype: str) -> Tensor:
        """Every element converted to `dtype`."""
        from ansor.te.nn.elementwise import cast

        return cast(self, dtype, "T_cast")

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        """`tensor[i, j]` or `tensor[i][j]`: one element. Rank 0 is read as `tensor[()]`; with fewer indices it is a slice, to be indexed further."""
        given = indices if isinstance(indices, tuple) else (indices,)
        if 0 < len(given) < self.ndim:
            return TensorSlice(self, given)  # type: ignore[return-value]  # typed as what it is for: an element, once it has all indices
        if len(given) != self.ndim:
            raise DeclarationError(
                f"asked to read tensor {self.name} of shape {self.shape} with {len(given)} "
                f"{'index' if len(given) == 1 else 'indices'}; it has {self.ndim} dimensions: give one index for each"
            )
        exprs = []
        for dimension, index in enumerate(given):
            expr = as_expr(index, INDEX)
            if not (expr.dtype.startswith("int") or expr.dtype == "uint8"):
                raise DeclarationError(
                    f"asked to read tensor {self.name} at `{expr}` in dimension {dimension}, which has dtype {expr.dtype}; indices are integers"
                )
            exprs.append(expr)
        return Read(self, tuple(exprs), self.dtype)

    def __call__(self, *indices: Operand) -> Expr:
        """`tensor(i, j)`: the same as `tensor[i, j]`, all indices at once."""
        return as_expr(self[indices])

    def __iter__(self) -> None:
        raise DeclarationError(f"tensor {self.name} cannot be iterated over while declaring; index it: {self.name}[i]")

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


def _checked_shape(shape: int | float | Sequence[int | float], what: str) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    checked = []
    for dimension, extent in enumerate(extents):
        value = whole_number(extent)
        if value is None:
            raise DeclarationError(f"asked for {what} with extent {extent!r} in dimension {dimension}; extents are whole numbers: {_whole(extent)}")
        if value <= 0:
            raise DeclarationError(f"asked for {what} with extent {value} in dimension {dimension}; extents have to be at least 1")
        checked.append(value)
    return tuple(checked)


def whole_number(value: object) -> int | None:
    """`value` as an int: any integer, a float without fraction (`n / 4`), a constant expression; None for anything else."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return int(float(value)) if float(value).is_integer() else None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # that is what is asked
    except TypeError:
        return None


def _whole(extent: object) -> str:
    if isinstance(extent, Expr):
        return "make one declaration for each size, with a function of the sizes"
    return "divide with // where it should be rounded" if isinstance(extent, float) else "give a Python integer"


def placeholder(shape: int | float | Sequence[int | float], dtype: str = "float32", name: str = "placeholder", *, constant: bool = False) -> Tensor:
    """A tensor given from outside. `constant=True`: known ahead of time (weights), so it may be stored in another order."""
    return Tensor(name, _checked_shape(shape, f"placeholder {name}"), check_dtype(dtype), constant=constant)


def reduce_axis(dom: int | float | tuple[int | float, int | float], name: str | None = None) -> Axis:
    """An axis to reduce over: `(start, end)`, or an extent. Unnamed axes get a name nobody else has."""
    label = name if name is not None else f"r{next(_fresh)}"
    ends = tuple(dom) if isinstance(dom, Iterable) else (0, dom)
    whole = [whole_number(end) for end in ends]
    if len(whole) != 2 or whole[0] is None or whole[1] is None:
        raise DeclarationError(f"asked for reduce axis {label} over {dom!r}; give (start, end) or an extent, whole numbers")
    start, end = whole[0], whole[1]
    if end <= start:
        raise DeclarationError(f"asked for reduce axis {label} over {start}..{end}, which is empty; it needs at least one value")
    return Axis(label, end - start, "reduce", start)


def compute(
    shape: int | float | Sequence[int | float],
    fcompute: Callable[..., Operand],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """A tensor whose element at `(i, j, ...)` is `fcompute(i, j, ...)`. Axes are named after the function's parameters.

    Raises DeclarationError for a wrong number of parameters, repeated axis names, a reduction inside an expression, or a read that provably
    leaves its tensor.
    """
    extents = _checked_shape(shape, f"compute {name}")
    axes = tuple(Axis(label, extent) for label, extent in zip(_axis_names(fcompute, len(extents), name), extents, strict=True))
    body = as_expr(fcompute(*axes), "float32" if not isinstance(fcompute, Expr) else None)
    return declared(name, axes, body, tag=tag, attrs=attrs)


def declared(name: str, axes: tuple[Axis, ...], body: Expr, *, tag: str = "", attrs: Mapping[str, object] | None = None) -> Tensor:
    """A computed tensor over given axes, checked."""
    reduce_axes = body.axes if isinstance(body, Reduce) else ()
    _check_names(name, axes + reduce_axes)
    _check_reductions(name, body)
    _check_axes(name, body, axes + reduce_axes)
    _check_reads(name, body)
    return Tensor(name, tuple(axis.extent for axis in axes), body.dtype, Compute(axes, reduce_axes, body), tag=tag, attrs=dict(attrs or {}))


def _axis_names(function: Callable[..., Operand], rank: int, name: str) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    if variadic and len(names) <= rank:
        return names + [f"i{k}" for k in range(len(names), rank)]
    if len(names) != rank:
        raise DeclarationError(f"asked for compute {name} of rank {rank} with a function of {len(names)} parameters; give one parameter per dimension")
    return names


def _check_names(name: str, axes: tuple[Axis, ...]) -> None:
    seen: dict[str, Axis] = {}
    for axis in axes:
        if axis.name in seen:
            raise DeclarationError(f"compute {name} has two axes named {axis.name!r} (extents {seen[axis.name].extent} and {axis.extent}); rename one")
        seen[axis.name] = axis


def _check_reductions(name: str, body: Expr) -> None:
    inner = body.source if isinstance(body, Reduce) else body
    for node in walk(inner):
        if isinstance(node, Reduce):
            raise DeclarationError(
                f"compute {name} uses te.{node.combiner}(..., axis=...) inside another expression; declare the reduction as a compute of its own and read it"
            )


def _check_axes(name: str, body: Expr, axes: tuple[Axis, ...]) -> None:
    known = {id(axis) for axis in axes}
    for node in walk(body):
        if isinstance(node, Axis) and id(node) not in known:
            hint = "wrap the expression in te.sum(..., axis=...)" if node.kind == "reduce" else "use the parameters of this compute's function"
            raise DeclarationError(f"compute {name} uses axis {node.name}, which is not one of its own; {hint}")


def _check_reads(name: str, body: Expr) -> None:
    """Each read once where it is below a condition, and once where it is not."""
    met: set[tuple[int, bool]] = set()
    stack = [(body, False)]
    while stack:
        expr, guarded = stack.pop()
        if (id(expr), guarded) in met:
            continue
        met.add((id(expr), guarded))
        if isinstance(expr, Read):
            _check_read(name, expr, guarded)
        below = guarded or isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op in ("and", "or"))
        stack += [(child, below if k else guarded) for k, child in reversed(list(enumerate(expr.children)))]


def _check_read(name: str, read: Read, guarded: bool) -> None:
    for dimension, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        found = proven_outside(index, extent, guarded)
        if found is None:
            continue
        raise DeclarationError(
            f"compute {name} reads tensor {read.tensor.name} of shape {read.tensor.shape} in dimension {dimension} at `{index}`, which takes values "
            f"{found[0]}..{found[1]} while the extent is {extent}; guard the read with te.if_then_else, pad the tensor, or mend the index"
        )
