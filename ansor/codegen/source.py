"""The result of code generation: one C translation unit, its entry point and the buffers it expects.

`ansor.codegen` makes a `CSource`; `ansor.measure` builds, runs and times it, and a `Kernel` calls it. The entry point is

    void ENTRY(void *const *args, unsigned char *workspace, ansor_parallel_for parallel_for, void *pool)

with `args` in the order of `CSource.arguments`, every buffer C-contiguous and aligned to `ALIGNMENT` bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.text_parts import Parts
from ansor.support.bfloat16 import make_known

ALIGNMENT = 64  # bytes: one cache line, and the widest vector we generate
DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
TOGETHER = 1024
"""Columns of a constant that are transformed at a time."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A physical order of an array: a nest of loops whose every position names one logical element.

    `extents[l]` is the extent of physical loop l, outermost first; `strides[d][l]` is how far one step of loop l moves
    the logical index of dimension d (0 if it does not), from `starts[d]`. Positions outside the logical shape hold zero.

        a [512, 100] matrix b[k, j] as panels of 16 columns, b_packed[j // 16, k, j % 16]:
            Pack(extents=(7, 512, 16), strides=((0, 1, 0), (16, 0, 1)))
    """

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.extents):
            raise ValueError(f"Pack: every extent must be 1 or more, found {self.extents}")
        for dimension, row in enumerate(self.strides):
            if len(row) != len(self.extents):
                raise ValueError(f"Pack: dimension {dimension} needs {len(self.extents)} strides, one for each loop of extents {self.extents}; found {row}")
        if len(self.starts) not in (0, len(self.strides)):
            raise ValueError(f"Pack: needs a start for each of {len(self.strides)} dimensions or none at all, found {self.starts}")

    @property
    def size(self) -> int:
        """Elements of the physical buffer."""
        return prod(self.extents)

    def apply(self, array: NDArray[np.generic], out: NDArray[np.generic] | None = None) -> NDArray[np.generic]:
        """The physical buffer, 1-D and contiguous, of a logical array: new, or `out`. Raises ValueError if the rank differs."""
        if array.ndim != len(self.strides):
            raise ValueError(f"Pack.apply: this order is for {len(self.strides)} dimensions, found shape {array.shape}")
        starts = self.starts or (0,) * array.ndim
        moves = [[(extent - 1) * stride for extent, stride in zip(self.extents, row, strict=True)] for row in self.strides]
        least = [start + sum(min(move, 0) for move in row) for start, row in zip(starts, moves, strict=True)]
        most = [start + sum(max(move, 0) for move in row) for start, row in zip(starts, moves, strict=True)]
        around = [(max(0, -low), max(0, high + 1 - have)) for low, high, have in zip(least, most, array.shape, strict=True)]
        if any(map(any, around)):
            array = np.pad(array, around)  # zeros where the loops leave the logical shape; then a plain strided view suffices
        first = array[tuple(slice(start + before, None) for start, (before, _) in zip(starts, around, strict=True))]
        steps = [sum(row[loop] * step for row, step in zip(self.strides, array.strides, strict=True))
                 for loop in range(len(self.extents))]  # fmt: skip
        view = np.lib.stride_tricks.as_strided(first, shape=self.extents, strides=steps, writeable=False)
        if out is None:
            return np.array(view, order="C").reshape(-1)
        np.copyto(out.reshape(self.extents), view)
        return out


@dataclass(frozen=True, slots=True)
class Transform:
    """A matrix applied ahead of time to some dimensions of a constant, which changes its shape.

    The dimensions `axes` together, `matrix` being [n, product of their extents], become one of extent n, which comes first; those in `rest` follow in
    that order. Computed in double precision, rounded once. The result has `dtype`, or the array's if that is empty.

        [3, 3, ci, co] to [36, ci, co], for Winograd's method:    Transform(the 36 x 9 matrix, axes=(0, 1), rest=(2, 3))
    """

    matrix: tuple[tuple[float, ...], ...]
    axes: tuple[int, ...]
    rest: tuple[int, ...]
    dtype: str = ""

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for an array of this shape; raises ValueError if the transform does not fit such an array."""
        inner = prod(shape[axis] for axis in self.axes) if max((*self.axes, *self.rest)) < len(shape) else 0
        if sorted((*self.axes, *self.rest)) != list(range(len(shape))) or any(len(row) != inner for row in self.matrix):
            raise ValueError(f"Transform of dimensions {self.axes} with {len(self.matrix)} rows, keeping {self.rest}, does not fit shape {tuple(shape)}")
        return (len(self.matrix), *(shape[axis] for axis in self.rest))

    def apply(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The transformed array, contiguous."""
        shape = self.shape_of(array.shape)
        columns = np.transpose(array, (*self.axes, *self.rest)).reshape(-1, prod(shape[1:]))
        matrix, made = np.asarray(self.matrix, np.float64), np.empty((len(self.matrix), columns.shape[1]), self.dtype or array.dtype)
        for first in range(0, columns.shape[1], TOGETHER):  # both forms in double precision stay in a cache
            part = slice(first, first + TOGETHER)
            made[:, part] = matrix @ columns[:, part].astype(np.float64)
        return made.reshape(shape)


@dataclass(frozen=True, slots=True)
class Joined:
    """Packs neighbours of an integer constant into wider numbers, ahead of time.

    `lanes` neighbours along the dimension `across` are added, each shifted `bits` bits further than the previous one: a word of lanes * bits bits. `words`
    of these along the dimension `along` make a number of `dtype`, the first in its lowest bits. Overflow wraps.

        int8 [co, ci] to int32 [co / 2, ci], each w0 + 65536 w1:    Joined(across=0, lanes=2, bits=16, along=1, words=1, dtype="int32")
    """

    across: int
    lanes: int
    bits: int
    along: int
    words: int
    dtype: str

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for an array of this shape; raises ValueError if it does not divide evenly."""
        counts = {self.across: self.lanes, self.along: self.words}
        if self.across == self.along or max(counts) >= len(shape) or any(shape[d] % count for d, count in counts.items()):
            found = f"{self.lanes} along dimension {self.across} and {self.words} along {self.along}"
            raise ValueError(f"Joined numbers, {found}, do not fit shape {tuple(shape)}")
        return tuple(extent // counts.get(d, 1) for d, extent in enumerate(shape))

    def apply(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The joined numbers of an array of integers, contiguous."""
        self.shape_of(array.shape)
        wide, width = array.astype(np.int64), self.lanes * self.bits
        word = sum(_every(wide, self.across, k, self.lanes) << np.int64(self.bits * k) for k in range(self.lanes))
        if self.words == 1:
            return np.ascontiguousarray(word, dtype=self.dtype)
        low = np.asarray(word) & np.int64((1 << width) - 1)
        number = sum(_every(low, self.along, k, self.words) << np.int64(width * k) for k in range(self.words))
        return np.ascontiguousarray(number, dtype=self.dtype)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Splits a constant into groups, ahead of time: its dimension `rows`, of length R, becomes (groups, R / groups), which comes first.

    With `inner`, the dimension of the I numbers that a row has for its own group, or `together` > 1 and I = 1 without such a dimension, `together` groups are
    merged: each row has numbers for all of them, which are 0 except for its own. The other dimensions follow in order.

        int8 [64, 8, 3, 3], 8 groups of 8 rows, two at a time, to [4, 16, 16, 3, 3]:     Grouped(groups=8, rows=0, inner=1, together=2)
    """

    groups: int
    rows: int = 0
    inner: int | None = None
    together: int = 1

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for an array of this shape; raises ValueError if it does not divide into such groups."""
        if max(self.rows, self.inner or 0) >= len(shape) or self.rows == self.inner or shape[self.rows] % self.groups or self.groups % self.together:
            raise ValueError(f"{self.groups} groups of dimension {self.rows}, {self.together} at a time, do not fit shape {tuple(shape)}")
        count = self.groups // self.together
        columns = () if self._as_rows else (self.together * (1 if self.inner is None else shape[self.inner]),)
        return (count, shape[self.rows] // count, *columns, *(extent for place, extent in enumerate(shape) if place not in (self.rows, self.inner)))

    def apply(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The array in groups, contiguous."""
        shape = self.shape_of(array.shape)
        if self._as_rows:
            return np.ascontiguousarray(np.moveaxis(array, self.rows, 0)).reshape(shape)
        own = np.moveaxis(array, self.rows, 0)[:, None] if self.inner is None else np.moveaxis(array, (self.rows, self.inner), (0, 1))
        rows = np.arange(len(own))
        found = np.zeros((len(own), self.together, *own.shape[1:]), array.dtype)
        found[rows, rows // (len(own) // self.groups) % self.together] = own
        return found.reshape(shape)

    def to_data(self) -> "GroupedData":
        """The JSON form: its arguments."""
        return GroupedData(groups=self.groups, rows=self.rows, inner=self.inner, together=self.together)

    @property
    def _as_rows(self) -> bool:
        return self.inner is None and self.together == 1


@dataclass(frozen=True, slots=True)
class Combined:
    """Combines groups of neighbours of an integer constant into other numbers, ahead of time: each is a wrapping sum of its group's numbers times factors.

    `factors` has a row for each number made from a group, and a column for each neighbour in it along the dimension `across`. The numbers
    replace the group. Groups restart every `chunk` elements; the last one of a chunk is padded with zeros.

        int8 [10, ci] to int32 [8, ci], w0 + 1024 w2 and w1 of three, of every 5:    Combined(0, ((1, 0, 1024), (0, 1, 0)), 5, "int32")
    """

    across: int
    factors: tuple[tuple[int, ...], ...]
    chunk: int
    dtype: str

    @property
    def lanes(self) -> int:
        """Neighbours in a group."""
        return len(self.factors[0])

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result for an array of this shape; raises ValueError if it does not divide into chunks."""
        if not 0 <= self.across < len(shape) or shape[self.across] % self.chunk:
            raise ValueError(f"Combined numbers, of every {self.chunk} along dimension {self.across}, do not fit shape {tuple(shape)}")
        each = -(-self.chunk // self.lanes) * len(self.factors)
        return tuple(extent // self.chunk * each if d == self.across else extent for d, extent in enumerate(shape))

    def apply(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The combined numbers of an array of integers, contiguous."""
        shape = self.shape_of(array.shape)
        wide = np.moveaxis(array.astype(np.int64), self.across, -1)
        chunks = wide.reshape(*wide.shape[:-1], -1, self.chunk)
        whole = np.pad(chunks, [(0, 0)] * wide.ndim + [(0, -self.chunk % self.lanes)])
        groups = whole.reshape(*whole.shape[:-1], -1, self.lanes)
        made = (groups @ np.asarray(self.factors, np.int64).T).reshape(*wide.shape[:-1], shape[self.across])
        return np.ascontiguousarray(np.moveaxis(made, -1, self.across), dtype=self.dtype)


Change = Transform | Joined | Grouped | Combined
"""A change of a constant ahead of time."""


def changed_dtype(change: Change | None, dtype: str) -> str:
    """The dtype of a constant of `dtype` after a change."""
    return dtype if change is None or isinstance(change, Grouped) else change.dtype or dtype


def _every(array: NDArray[np.int64], dimension: int, first: int, step: int) -> NDArray[np.int64]:
    """Every `step`-th element along a dimension."""
    return array[(slice(None),) * dimension + (slice(first, None, step),)]


class TransformData(TypedDict):
    """`Transform` as JSON."""

    matrix: Sequence[Sequence[float]]
    axes: Sequence[int]
    rest: Sequence[int]
    dtype: NotRequired[str]


class JoinedData(TypedDict):
    """`Joined` as JSON."""

    across: int
    lanes: int
    bits: int
    along: int
    words: int
    dtype: str


class GroupedData(TypedDict):
    """`Grouped` as JSON."""

    groups: int
    rows: int
    inner: int | None
    together: int


class CombinedData(TypedDict):
    """`Combined` as JSON."""

    across: int
    factors: Sequence[Sequence[int]]
    chunk: int
    dtype: str


class PackData(TypedDict):
    """`Pack` as JSON."""

    extents: Sequence[int]
    strides: Sequence[Sequence[int]]
    starts: NotRequired[Sequence[int]]


class ArgumentData(TypedDict):
    """`Argument` as JSON."""

    name: str
    shape: Sequence[int]
    dtype: str
    role: str
    pack: PackData | None
    transform: NotRequired[TransformData]
    joined: NotRequired[JoinedData]
    grouped: NotRequired[GroupedData]
    combined: NotRequired[CombinedData]


@dataclass(frozen=True, slots=True)
class Argument:
    """One buffer of an entry point: its logical shape and dtype as the workload declares them, and what happens to it ahead of time: a transform, then
    packing.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    pack: Pack | None = None
    transform: Change | None = None

    def __post_init__(self) -> None:
        make_known(self.dtype)

    @property
    def physical_dtype(self) -> str:
        """The dtype of the elements in the buffer that the C code gets."""
        return changed_dtype(self.transform, self.dtype)

    @property
    def as_given(self) -> bool:
        """Whether it is passed unchanged."""
        return self.pack is None and self.transform is None

    @property
    def physical_size(self) -> int:
        """Elements in the buffer that the C code gets."""
        if self.pack is not None:
            return self.pack.size
        return prod(self.shape if self.transform is None else self.transform.shape_of(self.shape))

    def physical(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The 1-D contiguous buffer the C code gets for a logical array of this argument's shape."""
        if self.transform is not None:
            array = self.transform.apply(array)
        return np.ascontiguousarray(array).reshape(-1) if self.pack is None else self.pack.apply(array)

    def put_physical(self, array: NDArray[np.generic], out: NDArray[np.generic]) -> None:
        """The same, written to a buffer that is there."""
        if self.transform is not None:
            array = self.transform.apply(array)
        if self.pack is None:
            np.copyto(out, array.reshape(-1))
        else:
            self.pack.apply(array, out)

    def to_data(self) -> ArgumentData:
        """The JSON form; `from_data` reads it back."""
        pack: PackData | None = None
        if self.pack is not None:
            pack = {"extents": self.pack.extents, "strides": self.pack.strides}
            if self.pack.starts:
                pack["starts"] = self.pack.starts
        data: ArgumentData = {"name": self.name, "shape": self.shape, "dtype": self.dtype, "role": self.role, "pack": pack}
        if isinstance(self.transform, Joined):
            one = self.transform
            data["joined"] = JoinedData(across=one.across, lanes=one.lanes, bits=one.bits, along=one.along, words=one.words, dtype=one.dtype)
        elif isinstance(self.transform, Grouped):
            data["grouped"] = self.transform.to_data()
        elif isinstance(self.transform, Combined):
            made = self.transform
            data["combined"] = CombinedData(across=made.across, factors=made.factors, chunk=made.chunk, dtype=made.dtype)
        elif self.transform is not None:
            data["transform"] = {"matrix": self.transform.matrix, "axes": self.transform.axes, "rest": self.transform.rest}
            if self.transform.dtype:
                data["transform"]["dtype"] = self.transform.dtype
        return data

    @staticmethod
    def from_data(data: ArgumentData) -> "Argument":
        """The argument that `to_data` wrote."""
        pack = None
        if data["pack"] is not None:
            pack = Pack(tuple(data["pack"]["extents"]), tuple(tuple(row) for row in data["pack"]["strides"]), tuple(data["pack"].get("starts", ())))
        transform: Change | None = Joined(**data["joined"]) if "joined" in data else None
        if "grouped" in data:
            transform = Grouped(**data["grouped"])
        if "combined" in data:
            made = data["combined"]
            transform = Combined(made["across"], tuple(tuple(row) for row in made["factors"]), made["chunk"], made["dtype"])
        if "transform" in data:
            given = data["transform"]
            transform = Transform(tuple(tuple(row) for row in given["matrix"]), tuple(given["axes"]), tuple(given["rest"]), given.get("dtype", ""))
        return Argument(data["name"], tuple(data["shape"]), data["dtype"], data["role"], pack, transform)


def signature(arguments: Sequence[Argument]) -> str:
    """For people: `A float32[2, 3], B float32[3] -> C float32[2]`."""
    given, results = (
        ", ".join(f"{one.name} {one.dtype}{list(one.shape)}" for one in arguments if (one.role == "output") is output) for output in (False, True)
    )
    return f"{given} -> {results}"


@dataclass(frozen=True, slots=True)
class CSource:
    """A complete C99 translation unit (GNU vector extensions, no main) and how to call it.

    `tolerance`: the allowed error as a multiple of a direct evaluation's, as its algorithm states.
    `parts`: of the text, where they compile on their own. `plain`: of a reference, the same declaration in its own dtypes, also without a schedule.
    """

    text: str
    entry: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int = 0
    threads: int = 1  # 1: never calls parallel_for
    tolerance: float = 1.0
    parts: Parts | None = field(default=None, compare=False, repr=False)
    plain: "CSource | None" = field(default=None, repr=False)

    @property
    def apart(self) -> Parts | None:
        """Its parts, unless the text was changed since they were made."""
        return self.parts if self.parts is not None and self.parts.whole == self.text else None
