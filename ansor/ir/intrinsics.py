"""Instructions that multiply small groups of narrow numbers and add up the products, each a declaration with C text attached.

Targets list the ones they have (`ansor.targets.x86_intrinsics`, `ansor.targets.neon`). Steps refer to an intrinsic by the name it was declared under.

A stage whose body is such a declaration at larger extents may be computed with the instruction; `matched` says along which of its axes.

    declaration    acc[l] += int32(a[q]) * int32(b[l, q])              l: lanes of a vector, q: the group that one instruction sums
                   acc[r, l] += int32(a[r, q]) * int32(b[l, q])        the same for two rows at once
    stage          c[i, j] += int32(x[i, k]) * int32(w[k, j])          l -> j, q -> a part of k, a -> x, b -> w

Those of integers are exact: for any values, the result equals that of wrapping 32-bit arithmetic. docs/int8.md explains why. Those of bfloat16 have float32
in the place of int32, and round: docs/bfloat16.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isqrt

from ansor.errors import TargetError
from ansor.ir import access
from ansor.te.expr import Axis, Binary, Cast, Expr, Reduce
from ansor.te.fold import walk
from ansor.te.tensor import Compute, Read, Tensor


@dataclass(frozen=True)
class CText:
    """The intrinsic in C. header, macro: the header to include ('' for none), and the macro that tells whether it exists.

    code: lanes -> C expression over vectors `acc`, `a`, `b` with that number of 32-bit lanes. Every lane of `a` holds the same group, each lane of `b` its own.
    With one lane, `acc` is an int32 in a general register and each operand a word. Operands are vectors of int32, whatever they hold.
    """

    header: str
    macro: str
    code: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Block:
    """What an instruction on matrix registers multiplies at once: `rows` rows of `a`, the lanes of `b`, and `groups` groups one after the other.

    Fewer of each take as long. registers: how many matrix registers there are, for operands and results. least_rows, least_groups: with fewer, an instruction
    on vectors is as fast.
    """

    rows: int
    groups: int
    registers: int
    least_rows: int = 1
    least_groups: int = 1

    @property
    def held(self) -> int:
        """Blocks of rows, and of columns, whose products all fit into registers with these operands."""
        return isqrt(self.registers + 1) - 1


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """One instruction.

    features: the processor features it needs, as compilers name them.
    widened: elements become int16 before they are multiplied (two fill a lane); otherwise they stay int8 (four fill a lane).
    offset: added to each element of `a` by flipping its sign bit, because the instruction takes it as unsigned; `offset * sum(b)` is subtracted at the end.
    plain: with an offset, the same instruction for an `a` that is unsigned to begin with; it sums `b` ahead of the tiles.
    block: for an instruction on matrix registers, which loads its operands from memory itself. Its C text is the name of a function on such registers.
    """

    name: str
    declaration: Tensor
    features: frozenset[str]
    c: CText
    widened: bool = False
    offset: int = 0
    plain: Intrinsic | None = None
    block: Block | None = None

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Intrinsic | None], tuple[str]]:
        return intrinsic_named, (self.name,)

    @property
    def group(self) -> int:
        """Elements of the reduction that one instruction sums."""
        assert self.declaration.compute is not None
        return self.declaration.compute.reduce_axes[0].extent

    @property
    def rows(self) -> int:
        """Rows of `a` that one instruction multiplies."""
        return 1 if self.declaration.ndim == 1 else self.declaration.shape[0]

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lane counts it comes in, widest first; with several rows, those of the vector that holds a piece of each row."""
        return tuple(lanes for lanes, _ in self.c.code)

    @property
    def result(self) -> str:
        """The dtype of the sums, and of the products."""
        return self.declaration.dtype

    @property
    def operands(self) -> tuple[str, str]:
        """The dtypes of `a` and `b`."""
        a, b = access.producers(self.declaration)
        return a.dtype, b.dtype

    def text(self, lanes: int) -> str:
        """The C expression for `lanes` lanes."""
        return dict(self.c.code)[lanes]


@dataclass(frozen=True)
class Match:
    """How a stage matches an intrinsic: the axis that becomes lanes, the axis that is summed in groups, and the tensors in place of a and b."""

    lanes: Axis
    group: Axis
    a: Tensor
    b: Tensor


def matrix_product(a: str, b: str, rows: int, lanes: int, group: int) -> Tensor:
    """acc[r, l] += int32(a[r, q]) * int32(b[l, q]), with operands of dtypes `a` and `b`."""
    row, lane, q = Axis("r", rows), Axis("l", lanes), Axis("q", group, "reduce")
    left, right = Tensor("a", (rows, group), a), Tensor("b", (lanes, group), b)
    product = Binary("mul", Cast(Read(left, (row, q), a), "int32"), Cast(Read(right, (lane, q), b), "int32"), "int32")
    return Tensor("acc", (rows, lanes), "int32", Compute((row, lane), (q,), Reduce("sum", product, (q,), "int32")))


def inner_product(a: str, b: str, lanes: int, group: int, result: str = "int32") -> Tensor:
    """acc[l] += int32(a[q]) * int32(b[l, q]), with operands of dtypes `a` and `b`, and `result` in the place of int32."""
    lane, q = Axis("l", lanes), Axis("q", group, "reduce")
    left, right = Tensor("a", (group,), a), Tensor("b", (lanes, group), b)
    product = Binary("mul", Cast(Read(left, (q,), a), result), Cast(Read(right, (lane, q), b), result), result)
    return Tensor("acc", (lanes,), result, Compute((lane,), (q,), Reduce("sum", product, (q,), result)))


def matched(tensor: Tensor, intrinsic: Intrinsic) -> Match | None:
    """How `tensor` matches the intrinsic's declaration at larger extents, with lanes along the last possible axis; None when it does not match."""
    return next(_matches(tensor, intrinsic), None)


def _matches(tensor: Tensor, intrinsic: Intrinsic) -> Iterator[Match]:
    reads = _unified(tensor, intrinsic)
    if reads is None or tensor.compute is None:
        return
    for lanes, group in itertools.product(reversed(tensor.compute.axes), tensor.compute.reduce_axes):
        fits = lanes.extent >= min(intrinsic.lanes) and group.extent % intrinsic.group == 0
        for a, b in reads:
            if not fits or _uses(a, lanes) or access.memory_step(a, group) != 1:
                continue  # a group of `a` is loaded as one number
            if intrinsic.rows > 1 and not any(_uses(a, axis) and not _uses(b, axis) and axis.extent > 1 for axis in tensor.compute.axes):
                continue  # only one row
            if _uses(b, lanes) and _uses(b, group):
                yield Match(lanes, group, a.tensor, b.tensor)


def _unified(tensor: Tensor, intrinsic: Intrinsic) -> list[tuple[Read, Read]] | None:
    """The reads that can take the places of (a, b), in both orders where the dtypes allow it."""
    body = tensor.compute.body if tensor.compute else None
    if not isinstance(body, Reduce) or body.combiner != "sum" or body.dtype != intrinsic.result:
        return None
    product = body.source
    if not isinstance(product, Binary) or product.op != "mul":
        return None
    left, right = (_narrow(side, intrinsic.result) for side in (product.left, product.right))
    if left is None or right is None:
        return None
    return [pair for pair in ((left, right), (right, left)) if (pair[0].dtype, pair[1].dtype) == intrinsic.operands]


def _narrow(expr: Expr, dtype: str) -> Read | None:
    """The read under a cast to `dtype`, None for anything else."""
    return expr.value if isinstance(expr, Cast) and expr.dtype == dtype and isinstance(expr.value, Read) else None


def _uses(read: Read, axis: Axis) -> bool:
    return any(node is axis for index in read.indices for node in walk(index))


_declared: dict[str, Intrinsic] = {}
_later: list[Callable[[], object]] = []


def declare(intrinsics: Iterable[Intrinsic]) -> None:
    """Register intrinsics by name. Raises TargetError when another intrinsic has one of the names."""
    for one in intrinsics:
        if _declared.setdefault(one.name, one) is not one:
            raise TargetError(f"asked to declare the intrinsic {one.name!r}, which exists already; choose another name")


def declare_later(load: Callable[[], object]) -> None:
    """Call `load`, which may declare more, when an undeclared name is asked for."""
    _later.append(load)


def intrinsic_named(name: str) -> Intrinsic | None:
    """The intrinsic declared under `name`, None when there is none."""
    if name not in _declared:
        for load in _later:
            load()
    return _declared.get(name)


def available(intrinsics: Iterable[Intrinsic], features: frozenset[str], vector_bytes: int) -> tuple[Intrinsic, ...]:
    """The intrinsics that a processor with these features has, in vectors of at most `vector_bytes`."""
    return tuple(one for one in intrinsics if one.features <= features and 4 * min(one.lanes) <= vector_bytes)


def features_of(intrinsics: Iterable[Intrinsic]) -> tuple[str, ...]:
    """All features that the intrinsics need, sorted."""
    return tuple(sorted({feature for one in intrinsics for feature in one.features}))
