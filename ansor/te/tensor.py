"""Tensors: placeholders (given) and computes (declared).

    a = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
"""

from __future__ import annotations

import itertools
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NoReturn
from typing import cast as cast_type

from ansor.errors import DeclarationError
from ansor.te.expr import (
    INDEX,
    LOGIC,
    Axis,
    Binary,
    Const,
    Expr,
    Operand,
    Reduce,
    Select,
    as_expr,
    binary,
    cast,
    check_dtype,
    computed,
    substitute,
)
from ansor.te.fold import walk
from ansor.te.interval import decided, proven_outside
from ansor.te.operators import Operators
from ansor.te.size import Size

_fresh = itertools.count()


@dataclass(frozen=True, eq=False, slots=True)
class Read(Expr):
    """One element of a tensor."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    dtype: str

    reads_memory: ClassVar[bool] = True

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.indices

    def rebuilt(self, children: tuple[Expr, ...]) -> Expr:
        return Read(self.tensor, children, self.dtype)

    def text(self, parts: Sequence[str]) -> str:
        return f"{self.tensor.name}[{', '.join(parts)}]"


@dataclass(frozen=True, eq=False)
class Compute:
    """How a tensor is computed: one axis per dimension, reduce axes (perhaps none), and the value at those axes."""

    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    body: Expr

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every read of the body; cached, since deriving sketches asks for it repeatedly."""
        return tuple(node for node in walk(self.body) if isinstance(node, Read))


@dataclass(frozen=True, eq=False)
class Tensor(Operators["Tensor"]):
    """A dense array: `shape` in elements, `dtype`, and how it is computed (`compute` is None for a placeholder).

    `constant` marks a placeholder whose value is known ahead of time (weights), so its memory order is free to choose.
    `outside` is "", or the message for a read that leaves its tensor, if the declaration deferred it: such a tensor has no program.
    Operators (`a + b`, `a * 2.0`, `-a`, `a < b`) are elementwise, with NumPy's broadcasting, and return tensors; `==` compares identity.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    compute: Compute | None = None
    constant: bool = False
    tag: str = ""
    attrs: Mapping[str, object] = field(default_factory=dict)
    outside: str = ""

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
        """The operation that computes it, with its axes, for schedules written by hand."""
        return Operation(self)

    def _apply(self, operation: str, left: object, right: object) -> Tensor:
        return applied(operation, left, right)

    def __invert__(self) -> Tensor:
        return elementwise(self, operator.invert, "T_bitwise_not")

    def astype(self, dtype: str) -> Tensor:
        """Every element converted to `dtype`."""
        return elementwise(self, lambda value: cast(dtype, value), "T_cast")

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        """`tensor[i, j]` or `tensor[i][j]`: one element. A tensor of rank 0 is read as `tensor[()]`; fewer indices give a slice, to be indexed further.

        An element of a bfloat16 tensor is its value in float32, which nothing is lost by.
        """
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
        return cast(computed(self.dtype), Read(self, tuple(exprs), self.dtype))

    def __call__(self, *indices: Operand) -> Expr:
        """`tensor(i, j)`: the same as `tensor[i, j]`, all indices at once."""
        return as_expr(self[indices])

    def __iter__(self) -> None:
        raise DeclarationError(f"tensor {self.name} cannot be iterated over while declaring; index it: {self.name}[i]")

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


@dataclass(frozen=True)
class Operation:
    """How `tensor` is computed. Two operations are equal if they have the same tensor."""

    tensor: Tensor

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def tag(self) -> str:
        return self.tensor.tag

    @property
    def attrs(self) -> Mapping[str, object]:
        """Attributes of the declaration."""
        return self.tensor.attrs

    @property
    def axis(self) -> tuple[Axis, ...]:
        """One axis for each dimension; none for a placeholder."""
        return self.tensor.compute.axes if self.tensor.compute else ()

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes that are reduced over."""
        return self.tensor.compute.reduce_axes if self.tensor.compute else ()

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that are read, each once, in order of first use."""
        reads = self.tensor.compute.reads if self.tensor.compute else ()
        return tuple({id(read.tensor): read.tensor for read in reads}.values())

    @property
    def body(self) -> tuple[Expr, ...]:
        """The expression of an element, as a tuple of one; empty for a placeholder."""
        return (self.tensor.compute.body,) if self.tensor.compute else ()

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    def output(self, index: int) -> Tensor:
        """The tensor. Raises DeclarationError for an index other than 0."""
        if index != 0:
            raise DeclarationError(f"asked for output {index} of {self.name}; an operation has one output, number 0")
        return self.tensor


@dataclass(frozen=True, eq=False)
class TensorSlice(Operators[Expr]):
    """The part of a tensor at its first `indices`, with the remaining `shape`, to be indexed further."""

    tensor: Tensor
    indices: tuple[Operand, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions that have no index yet."""
        return self.tensor.shape[len(self.indices) :]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr | TensorSlice:
        """The next index, or several."""
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def __iter__(self) -> NoReturn:
        raise DeclarationError(f"{self} cannot be iterated over while declaring; index it: {self}[i]")

    def _apply(self, operation: str, left: object, right: object) -> Expr:
        self.refuse(f"for {operation}")

    def refuse(self, purpose: str = "for the value") -> NoReturn:
        """Raise DeclarationError: a slice was used as an element."""
        given = len(self.indices)
        raise DeclarationError(
            f"asked {purpose} of {self}, which has {given} {'index' if given == 1 else 'indices'}; tensor {self.tensor.name} of shape {self.tensor.shape} "
            f"has {self.tensor.ndim} dimensions: give one index for each"
        )

    def __str__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"


def checked_shape(shape: int | float | Sequence[int | float], what: str) -> tuple[int, ...]:
    """Extents as integers. Raises DeclarationError for other values, and for extents below 1."""
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
    """`value` as an int, for any integer, a float without a fraction (`n / 4`), or a constant expression; None for anything else."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Size):
        return value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return int(float(value)) if float(value).is_integer() else None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # that is what is asked
    except (TypeError, DeclarationError):
        return None


def _whole(extent: object) -> str:
    if isinstance(extent, Expr):
        return "make one declaration for each size, with a function of the sizes"
    return "divide with // if it should be rounded" if isinstance(extent, float) else "give a Python integer"


def placeholder(shape: int | float | Sequence[int | float], dtype: str = "float32", name: str = "placeholder", *, constant: bool = False) -> Tensor:
    """An input tensor. `constant=True`: known ahead of time (weights), so it may be stored in another order."""
    return Tensor(name, checked_shape(shape, f"placeholder {name}"), check_dtype(dtype), constant=constant)


def reduce_axis(dom: int | float | tuple[int | float, int | float], name: str | None = None) -> Axis:
    """An axis to reduce over: `(start, end)`, or an extent. Unnamed axes get a unique name."""
    if not isinstance(name, str | None):
        raise DeclarationError(f"asked for a reduce axis over {dom!r} named {name!r:.80}; the name is a text, and (start, end) is one argument")
    label = name if name is not None else f"r{next(_fresh)}"
    ends = tuple(dom) if isinstance(dom, Iterable) else (0, dom)
    whole = [whole_number(end) for end in ends]
    if len(whole) != 2 or whole[0] is None or whole[1] is None:
        raise DeclarationError(f"asked for reduce axis {label} over {dom!r}; give (start, end) or an extent, whole numbers")
    start, end = whole[0], whole[1]
    if end <= start:
        raise DeclarationError(f"asked for reduce axis {label} over {start}..{end}, which is empty; it needs at least one value")
    return Axis(label, end - start, "reduce", start)


def declared(
    name: str, axes: tuple[Axis, ...], body: Expr, *, tag: str = "", attrs: Mapping[str, object] | None = None, check_reads: bool = True
) -> Tensor:  # fmt: skip
    """A computed tensor over given axes, checked. Reduce axes that repeat a name are renamed.

    check_reads: False defers the error for a read outside its tensor until a program is asked for.
    """
    reduce_axes = body.axes if isinstance(body, Reduce) else ()
    _check_names(name, axes, reduce_axes)
    _check_reductions(name, body)
    _check_axes(name, body, axes + reduce_axes)
    fresh = _renamed(axes + reduce_axes)
    if fresh:
        body = with_axes(body, fresh)
        axes, reduce_axes = (tuple(fresh.get(axis, axis) for axis in group) for group in (axes, reduce_axes))
    outside = _left(name, body)
    if outside and check_reads:
        raise DeclarationError(outside)
    shape = tuple(axis.extent for axis in axes)
    return Tensor(name, shape, body.dtype, Compute(axes, reduce_axes, body), tag=tag, attrs=dict(attrs or {}), outside=outside)


def _renamed(axes: tuple[Axis, ...]) -> dict[Axis, Axis]:
    """New names for axes whose name an earlier axis has."""
    taken = {axis.name for axis in axes}
    met: set[str] = set()
    fresh: dict[Axis, Axis] = {}
    for axis in axes:
        if axis.name in met:
            label = next(f"{axis.name}{k}" for k in itertools.count(1) if f"{axis.name}{k}" not in taken)
            fresh[axis] = replace(axis, name=label)
            taken.add(label)
        met.add(axis.name)
    return fresh


def with_axes(body: Expr, fresh: Mapping[Axis, Axis]) -> Expr:
    """The body over other axes, including those it reduces over."""
    values: dict[Axis, Expr] = dict(fresh)
    if isinstance(body, Reduce):
        return Reduce(body.combiner, substitute(body.source, values), tuple(fresh.get(axis, axis) for axis in body.axes), body.dtype)
    return substitute(body, values)


def _check_names(name: str, axes: tuple[Axis, ...], reduce_axes: tuple[Axis, ...]) -> None:
    """Check that no output axis and reduction axis share a name: an index would be ambiguous."""
    known = {axis.name: axis for axis in axes}
    for axis in reduce_axes:
        if axis.name in known:
            extents = f"extents {known[axis.name].extent} and {axis.extent}"
            raise DeclarationError(f"compute {name} has two axes named {axis.name!r} ({extents}), one output axis and one reduction axis; rename one")


def _check_reductions(name: str, body: Expr) -> None:
    inner = body.source if isinstance(body, Reduce) else body
    for node in walk(inner):
        if isinstance(node, Reduce):
            raise DeclarationError(
                f"compute {name} uses te.{node.combiner}(..., axis=...) inside another expression; declare the reduction as a separate compute and read it"
            )


def _check_axes(name: str, body: Expr, axes: tuple[Axis, ...]) -> None:
    known = {id(axis) for axis in axes}
    for node in walk(body):
        if isinstance(node, Axis) and id(node) not in known:
            hint = "wrap the expression in te.sum(..., axis=...)" if node.kind == "reduce" else "use the parameters of this compute's function"
            raise DeclarationError(f"compute {name} uses axis {node.name}, which is not one of its own; {hint}")


def _left(name: str, body: Expr) -> str:
    """The message for the first read that leaves its tensor, or "". Checks each read at most once below a condition and once outside of one."""
    met: set[tuple[int, bool]] = set()
    stack = [(body, False)]
    while stack:
        expr, guarded = stack.pop()
        if (id(expr), guarded) in met:
            continue
        met.add((id(expr), guarded))
        if isinstance(expr, Read) and (said := _left_by(name, expr, guarded)):
            return said
        below = guarded or isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op in ("and", "or"))
        never = _never_taken(expr)
        stack += [(child, below if k else guarded) for k, child in reversed(list(enumerate(expr.children))) if k != never]
    return ""


def _never_taken(expr: Expr) -> int | None:
    """The position of the operand that a condition always excludes, if any."""
    if isinstance(expr, Select):
        holds = decided(expr.condition)
        return None if holds is None else 2 if holds else 1
    if isinstance(expr, Binary) and expr.op in LOGIC:
        return 1 if decided(expr.left) is (expr.op == "or") else None
    return None


def _left_by(name: str, read: Read, guarded: bool) -> str:
    for dimension, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        found = proven_outside(index, extent, guarded)
        if found is None:
            continue
        inside = "guard the read with te.if_then_else, pad the tensor, or fix the index"
        cure = "its condition does not exclude that: fix one of the two" if guarded else inside
        return (
            f"compute {name} reads tensor {read.tensor.name} of shape {read.tensor.shape} in dimension {dimension} at `{index}`, which takes values "
            f"{found[0]}..{found[1]} while the extent is {extent}; {cure}"
        )
    return ""


# operators -----------------------------------------------------------------------------------------------------------------------------------------


Scalar = Callable[[Expr], Expr]
Whole = Tensor | Operand
"""A tensor, or a value that is the same for all elements."""


def elementwise(x: Tensor, function: Scalar, name: str) -> Tensor:
    """`function` applied to every element."""
    axes = axes_of(x.shape)
    return declared(name, axes, function(x[axes]))


def axes_of(shape: tuple[int, ...]) -> tuple[Axis, ...]:
    """Spatial axes i0, i1, ... of the given extents."""
    return tuple(Axis(f"i{k}", extent) for k, extent in enumerate(shape))


def broadcast(op: str, x: Whole, y: Whole, name: str, tag: str = "") -> Tensor:
    """`x op y` with NumPy's broadcasting; `op` is an operation of `ansor.te.expr.binary`, which brings operands of two dtypes to one."""
    axes = axes_of(broadcast_shape(name, x, y))
    return declared(name, axes, binary(op, element_of(x, axes), element_of(y, axes)), tag=tag)


_NAMES = {
    "add": "T_add", "sub": "T_subtract", "mul": "T_multiply", "div": "T_divide", "floordiv": "T_floor_divide", "floormod": "T_floor_mod", "pow": "T_power",
    "shl": "T_left_shift", "shr": "T_right_shift", "bitand": "T_bitwise_and", "bitor": "T_bitwise_or", "bitxor": "T_bitwise_xor",
    "lt": "T_less", "le": "T_less_equal", "gt": "T_greater", "ge": "T_greater_equal",
}  # fmt: skip


def applied(op: str, x: object, y: object) -> Tensor:
    """The result of an operator between a tensor and a tensor, an element or a number."""
    for operand in (x, y):
        if not isinstance(operand, Tensor):
            as_expr(cast_type("Operand", operand))  # which refuses anything else
    both = isinstance(x, Tensor) and isinstance(y, Tensor)
    return broadcast(op, cast_type("Whole", x), cast_type("Whole", y), _NAMES[op], "broadcast" if both else "elemwise")


def broadcast_shape(name: str, *operands: Whole) -> tuple[int, ...]:
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        raise DeclarationError(f"asked for {name} of numbers only, {' and '.join(map(str, operands))}; one of them has to be a tensor")
    result = []
    for dimension in range(-max(tensor.ndim for tensor in tensors), 0):
        found = {tensor.shape[dimension] for tensor in tensors if tensor.ndim >= -dimension} - {1}
        if len(found) > 1:
            shapes = " and ".join(f"{tensor.name} with shape {tensor.shape}" for tensor in tensors)
            raise DeclarationError(
                f"asked for {name} of {shapes}; dimension {dimension} from the end is {' and '.join(map(str, sorted(found)))}: extents have to be equal, or 1"
            )
        result.append(max(found, default=1))
    return tuple(result)


def element_of(x: Whole, axes: tuple[Axis, ...]) -> Operand:
    if not isinstance(x, Tensor):
        return x
    last = axes[len(axes) - x.ndim:]
    return x[tuple(axis if axis.extent == extent else Const(0, "int32") for axis, extent in zip(last, x.shape, strict=True))]
