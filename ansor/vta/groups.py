"""Makes the groups of a grouped convolution a dimension of their own, so that its products consist of the whole blocks that a core multiplies.

    acc[n, o, y, x] += data[n, o // 64 * 32 + c, y + ky, x + kx] * w[o, c, ky, kx]                       4 groups, of 32 channels in and 64 out
    acc[n, g, o, y, x] += data[n, g, c, y + ky, x + kx] * w[g, o, c, ky, kx]                             data, w and results in their order in memory

If the channels of a group do not fill whole blocks, as many groups as needed are merged, up to all of them. Weights between merged groups are 0:

    acc[n, o, y, x] += data[n, o // 4 * 4 + c, ...] * w[o, c, ...]      8 groups of 4      ->      2 groups of 16, whose w has 4 of 16 columns that are not 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ansor.codegen.source import Grouped
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import DIVISIONS, Axis, Binary, Cast, Const, Expr, Reduce, Select
from ansor.te.fold import transform, walk
from ansor.te.tensor import Compute, Read, Tensor


@dataclass(frozen=True, eq=False)
class Grouping:
    """A grouped sum of products. lanes: the axis of the output channels of all groups; place: the channel dimension of the data; rows: the dimension of the
    weights for output channels; inner: their dimension for a group's input channels; group: the axis of these. inner, group: None for one channel."""

    stage: Tensor
    data: Read
    weights: Read
    lanes: Axis
    place: int
    rows: int
    inner: int | None
    group: Axis | None

    @property
    def inputs(self) -> int:
        """Input channels of a group."""
        return 1 if self.group is None else self.group.extent

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.data.tensor.shape[self.place] // self.inputs

    @property
    def alone(self) -> bool:
        """Whether each channel is a group of its own, with one output channel."""
        return self.group is None and self.outputs == 1

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.lanes.extent // self.groups

    def together(self, block: int) -> int:
        """How many groups are merged, so that their channels fill whole blocks; all if no smaller number does."""
        counts = (count for count in range(1, self.groups) if self.groups % count == 0)
        return next((count for count in counts if count * self.inputs % block == count * self.outputs % block == 0), self.groups)

    def refusal(self, block: int) -> str:
        """Why a core cannot compute it; '' if it can."""
        together, weights = self.together(block), self.weights.tensor
        if weights.constant or together == 1 and (self.rows, self.inner) == (0, 1):
            return ""
        what = f"{self.stage.name} has {self.groups} groups of {self.inputs} channels in and {self.outputs} out, but blocks have {block}"
        return f"{what}, and {weights.name} is not a constant; only constants can be rearranged into blocks: declare it with constant=True"


def grouping_of(dag: Dag) -> Grouping | None:
    """The grouped sum of products of a workload; None if it has none, or another reduction."""
    sums = [stage for stage in dag.stages if access.has_reduction(stage)] or [stage for stage in dag.stages if next(divided_reads(stage), None) is not None]
    sides = factors_of(sums[0]) if len(sums) == 1 else None
    return None if sides is None else _grouping(sums[0], *sides) or _grouping(sums[0], *sides[::-1])


def in_groups(dag: Dag, block: int) -> tuple[Dag, Mapping[str, Grouped]] | None:
    """The workload with groups as a dimension, and the transformations of its constants; None if it has no groups, or a dimension of groups cannot express how
    it uses channels."""
    found = grouping_of(dag)
    if found is None or found.refusal(block) or padding_of(found.data.tensor):
        return None
    try:
        return _GroupRewriter(dag, found, found.together(block)).made()
    except _NotGroupedError:
        return None


def padding_of(tensor: Tensor) -> int | float:
    """The number that a stage pads with; 0 if it does not pad."""
    body = tensor.compute.body if tensor.compute is not None else None
    other = body.otherwise if isinstance(body, Select) and isinstance(body.then, Read) else None
    while isinstance(other, Cast):
        other = other.value
    return other.value if isinstance(other, Const) else 0


def product_of(stage: Tensor) -> tuple[Read, Read] | None:
    """The two int8 factors of a sum of products; None if it is not one."""
    body = stage.compute.body if stage.compute is not None else None
    return factors_of(stage) if isinstance(body, Reduce) and body.combiner == "sum" else None


def factors_of(stage: Tensor) -> tuple[Read, Read] | None:
    """The same, but also for a product without a sum, as in a depthwise 1x1 kernel."""
    body = stage.compute.body if stage.compute is not None else None
    product = body.source if isinstance(body, Reduce) and body.combiner == "sum" else body
    if not isinstance(product, Binary) or product.op != "mul":
        return None
    left, right = access.widened_byte(product.left), access.widened_byte(product.right)
    return None if left is None or right is None else (left, right)


def _grouping(stage: Tensor, data: Read, weights: Read) -> Grouping | None:
    assert stage.compute is not None
    channels = [(place, index) for place, index in enumerate(weights.indices) if any(index is axis for axis in stage.compute.axes)]
    if len(channels) != 1 or data.tensor is weights.tensor:
        return None
    (rows, lanes), reduced = channels[0], stage.compute.reduce_axes
    others = [(place, index) for place, index in enumerate(weights.indices) if place != rows]
    if not isinstance(lanes, Axis) or not all(_is_zero(index) or any(index is axis for axis in reduced) for _, index in others):
        return None
    places = [place for place, index in enumerate(data.indices) if any(node is lanes for node in walk(index))]
    if len(places) != 1:
        return None
    outputs, inputs, group = _of_index(data.indices[places[0]], lanes)
    inner = next((place for place, index in others if index is group or group is None and _is_zero(index)), None)
    groups = lanes.extent // outputs if outputs and lanes.extent % outputs == 0 else 0
    whole = group is None or inner is not None and group.extent == inputs == weights.tensor.shape[inner]
    ones = all(extent == 1 for place, extent in enumerate(weights.tensor.shape) if _is_zero(weights.indices[place]))
    if groups < 2 or not whole or not ones or data.tensor.shape[places[0]] != groups * inputs or weights.tensor.shape[rows] != lanes.extent:
        return None
    return Grouping(stage, data, weights, lanes, places[0], rows, inner, group)


def _is_zero(index: Expr) -> bool:
    return isinstance(index, Const) and index.value == 0


def _of_index(index: Expr, lanes: Axis) -> tuple[int, int, Axis | None]:
    """Match the index lanes // outputs * inputs + axis: the outputs and inputs of a group, and the axis of its inputs. Outputs are 0 for any other index."""
    group = None
    if isinstance(index, Binary) and index.op == "add":
        index, last = (index.left, index.right) if isinstance(index.right, Axis) else (index.right, index.left)
        if not isinstance(last, Axis) or last.kind == "spatial":
            return 0, 0, None
        group = last
    index, inputs = _by_number(index, "mul")
    index, outputs = _by_number(index, "floordiv")
    return (outputs, inputs, group) if index is lanes and (inputs > 1) == (group is not None) else (0, 0, None)


def _by_number(value: Expr, operation: str) -> tuple[Expr, int]:
    """The operand of a multiplication or division by a number, and the number; for other values, the value itself and 1."""
    if isinstance(value, Binary) and value.op == operation and isinstance(value.right, Const):
        return value.left, int(value.right.value)
    return value, 1


class _NotGroupedError(Exception):
    """Channels are used in a way that a dimension of groups cannot express."""


class _GroupRewriter:
    def __init__(self, dag: Dag, grouping: Grouping, together: int) -> None:
        self._dag, self._grouping, self._together = dag, grouping, together
        self._count = grouping.groups // together
        self._places: dict[str, int] = {}
        self._transforms: dict[str, Grouped] = {}
        self._made: dict[str, Tensor] = {}
        self._axes: dict[int, tuple[Axis, Axis]] = {}

    def made(self) -> tuple[Dag, Mapping[str, Grouped]]:
        stage, data, weights = self._grouping.stage, self._grouping.data, self._grouping.weights
        assert stage.compute is not None
        self._split(data.tensor, self._grouping.place)
        self._split(stage, next(place for place, axis in enumerate(stage.compute.axes) if axis is self._grouping.lanes))
        while any([self._spread(one) for one in self._dag.stages if one.compute is not None and one is not stage]):
            pass
        if weights.tensor.name in self._places or sum(weights.tensor in access.producers(one) for one in self._dag.stages) != 1:
            raise _NotGroupedError
        for tensor in self._dag.stages:
            self._made[tensor.name] = self._tensor(tensor)
        return Dag([self._made[tensor.name] for tensor in self._dag.tensors]), self._transforms

    def _split(self, tensor: Tensor, place: int) -> bool:
        """Record that a dimension of a tensor splits into groups and their channels; returns whether that is new."""
        if self._places.get(tensor.name, place) != place or tensor.shape[place] % self._count:
            raise _NotGroupedError
        new = tensor.name not in self._places
        self._places[tensor.name] = place
        return new

    def _spread(self, stage: Tensor) -> bool:
        """Propagate the dimensions that are split in one tensor of a stage to its other tensors; returns whether any is new."""
        assert stage.compute is not None
        new = False
        for read in access.reads(stage):
            place = self._places.get(read.tensor.name)
            if place is not None:
                new |= self._split(stage, self._axis_of(stage, read.indices[place]))
            own = self._places.get(stage.name)
            for at, index in enumerate(read.indices) if own is not None else ():
                if index is stage.compute.axes[own or 0]:
                    new |= self._split(read.tensor, at)
        return new

    def _axis_of(self, stage: Tensor, index: Expr) -> int:
        assert stage.compute is not None
        found = next((place for place, axis in enumerate(stage.compute.axes) if axis is index), None)
        if found is None:
            raise _NotGroupedError
        return found

    def _tensor(self, tensor: Tensor) -> Tensor:
        if tensor is self._grouping.weights.tensor:
            return self._weights(tensor)
        place = self._places.get(tensor.name)
        if place is None:
            return tensor if tensor.compute is None else replace(tensor, compute=self._compute(tensor, tensor.compute, tensor.compute.axes, None))
        if tensor.compute is None and tensor.constant:
            self._transforms[tensor.name] = grouped = Grouped(self._count, place)
            return replace(tensor, shape=grouped.shape_of(tensor.shape))
        shape = (*tensor.shape[:place], self._count, tensor.shape[place] // self._count, *tensor.shape[place + 1 :])
        if tensor.compute is None:
            return replace(tensor, shape=shape)
        axis = tensor.compute.axes[place]
        pair = Axis("g", self._count), Axis(axis.name, axis.extent // self._count)
        self._axes[id(axis)] = pair
        axes = (*tensor.compute.axes[:place], *pair, *tensor.compute.axes[place + 1 :])
        return replace(tensor, shape=shape, compute=self._compute(tensor, tensor.compute, axes, axis))

    def _weights(self, tensor: Tensor) -> Tensor:
        grouping = self._grouping
        grouped = Grouped(grouping.groups, grouping.rows, grouping.inner, self._together)
        if tensor.constant:
            self._transforms[tensor.name] = grouped
        return replace(tensor, shape=grouped.shape_of(tensor.shape))

    def _compute(self, tensor: Tensor, compute: Compute, axes: tuple[Axis, ...], gone: Axis | None) -> Compute:
        reduced = compute.reduce_axes
        if tensor is self._grouping.stage:
            columns = Axis(self._columns_name(compute), self._grouping.inputs * self._together, "reduce")
            reduced = (columns, *(axis for axis in reduced if axis is not self._grouping.group))
            body = self._sum(compute.body, columns)
        else:
            body = transform(compute.body, self._read)
        if gone is not None and any(node is gone for node in walk(body)):
            raise _NotGroupedError
        return Compute(axes, reduced, body)

    def _columns_name(self, compute: Compute) -> str:
        """The name of the axis of input channels; if there was none, an unused one."""
        if self._grouping.group is not None:
            return self._grouping.group.name
        name, taken = "rc", {axis.name for axis in (*compute.axes, *compute.reduce_axes)}
        while name in taken:
            name += "_"
        return name

    def _sum(self, body: Expr, columns: Axis) -> Expr:
        """The sum over all channels of the merged groups."""
        grouping = self._grouping
        group, lane = self._axes[id(grouping.lanes)]

        def replaced(node: Expr) -> Expr | None:
            if node is grouping.data:
                indices = (*node.indices[: grouping.place], group, columns, *node.indices[grouping.place + 1 :])
                return Read(self._made[node.tensor.name], indices, node.dtype)
            if node is grouping.weights:
                rest = [index for place, index in enumerate(node.indices) if place not in (grouping.rows, grouping.inner)]
                return Read(self._made[node.tensor.name], (group, lane, columns, *rest), node.dtype)
            return None

        found = transform(body, replaced)
        if not isinstance(found, Reduce):
            return Reduce("sum", found, (columns,), found.dtype)
        return replace(found, axes=(columns, *(axis for axis in found.axes if axis is not grouping.group)))

    def _read(self, node: Expr) -> Expr | None:
        if not isinstance(node, Read):
            return None
        indices, place = tuple(transform(index, self._read) for index in node.indices), self._places.get(node.tensor.name)
        if place is not None:
            pair = self._axes[id(node.indices[place])]
            rest = (indices[:place], indices[place + 1 :])
            indices = (*pair, *rest[0], *rest[1]) if node.tensor.name in self._transforms else (*rest[0], *pair, *rest[1])
        return Read(self._made[node.tensor.name], indices, node.dtype)


def divided_reads(stage: Tensor) -> Iterator[Read]:
    """Reads at divided indices, such as those of grouped channels."""
    for read in access.reads(stage):
        if any(isinstance(node, Binary) and node.op in DIVISIONS for index in read.indices for node in walk(index)):
            yield read
