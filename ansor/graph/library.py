"""Runs a group with PyTorch's own kernels, on the same arrays as our kernel for it.

    conv2d ─► add ─► relu        becomes aten.conv2d, aten.add.out, aten.clamp_min.out

It computes the graph as it is after all passes: channels last, batch norms folded. A channels-last array viewed as channels first has the strides
that PyTorch calls `channels_last`, so layouts cost nothing. Elementwise results are written to the workspace, or to the group's result once its contents are
no longer needed. PyTorch allocates the results of convolutions and similar operators; a group that ends with one copies its result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
import torch.nn.functional as f

from ansor.graph.fuse import Group
from ansor.graph.ir import ELEMENTWISE, Array, Graph, Node
from ansor.graph.memory import aligned
from ansor.graph.network_memory import NetworkMemory
from ansor.graph.scalar_functions import FORMULAS, OF_ONE, PAIRS
from ansor.graph.tasks import ExtractedGraph
from ansor.support.bfloat16 import BFLOAT16, tensor_of

Tensor = torch.Tensor
Known = Sequence[Tensor | None]
"""For each operand of a node: its tensor if it is a constant, else None."""

Function = Callable[[Sequence[Tensor], Tensor | None], Tensor]
"""Computes a node from its operands. It may write the result to the second argument, unless that is None, and returns the tensor that holds the result."""


class NoLibraryForm(Exception):
    """A node of the group has no form in PyTorch; the text says why. Never raised outside this package."""


@dataclass(frozen=True)
class _Step:
    """A node in a group. `reads`, `writes`: numbers of the group's arrays, inputs first; `place`: an offset in the workspace, or one of the constants below."""

    node: Node
    reads: tuple[int, ...]
    writes: int
    place: int


_IN_RESULT, _ANYWHERE = -1, -2


class LibraryKernel:
    """Runs the groups of one task in PyTorch, see `GroupKernel`. It uses as many threads as PyTorch is set to in the caller's process."""

    packed: Collection[int] = ()

    def __init__(self, graph: Graph, group: Group) -> None:
        """Raises NoLibraryForm if PyTorch has no kernel for a node."""
        self._inputs = len(group.inputs)
        self._constant = tuple(name in graph.constants for name in group.inputs)
        for node in group.nodes:
            if node.op not in _ELEMENTWISE and node.op not in _OTHERS:
                raise NoLibraryForm(f"{node.op} has no form in PyTorch")
            if node.op != "cast" and node.dtype == "float32" and any(graph.value(name).dtype == BFLOAT16 for name in node.inputs):
                raise NoLibraryForm(f"{node.op} of bfloat16 gives bfloat16 in PyTorch")
        self._steps, self.workspace_bytes = _placed(group)
        tensors: list[Tensor | None] = [None] * (self._inputs + len(group.nodes))
        for step in self._steps:  # raises now for a node without a form
            _function(step.node, [tensors[k] for k in step.reads])

    def prepare(self, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None = None) -> Callable[[], object]:
        """See `GroupKernel.prepare`."""
        values: list[Tensor] = [tensor_of(array) for array in arrays[: self._inputs]]
        constant = [tensor if known else None for tensor, known in zip(values, self._constant, strict=True)] + [None] * len(self._steps)
        result = tensor_of(arrays[self._inputs])
        values += [result] * len(self._steps)
        room = torch.from_numpy(memory.workspace)
        calls: list[tuple[Function, tuple[int, ...], int, Tensor | None]] = []
        for step in self._steps:
            out = result if step.place == _IN_RESULT else _room(room, step) if step.place >= 0 else None
            calls.append((_function(step.node, [constant[k] for k in step.reads]), step.reads, step.writes, out))
        held = (arrays, memory.workspace)  # tensors made of arrays keep these alive, unless they are part of larger memory

        def run(_held: object = held) -> None:
            now = list(values)
            for function, reads, writes, out in calls:
                now[writes] = function([now[k] for k in reads], out)
            if now[-1] is not result:
                result.copy_(now[-1])

        return run


def library_kernels(extracted: ExtractedGraph) -> list[LibraryKernel | None]:
    """A PyTorch kernel for each task of a network; None where a node has no form in PyTorch."""
    groups = {placed.task: placed.group for placed in extracted.placed}
    return [_library_kernel(extracted.graph, groups[task]) for task in range(len(extracted.tasks))]


def _library_kernel(graph: Graph, group: Group) -> LibraryKernel | None:
    try:
        return LibraryKernel(graph, group)
    except NoLibraryForm:
        return None


def _placed(group: Group) -> tuple[tuple[_Step, ...], int]:
    """The group's nodes with the places of their results, and the workspace size that the results need."""
    number = {name: k for k, name in enumerate([*group.inputs, *(node.name for node in group.nodes)])}
    last_read = {name: index for index, node in enumerate(group.nodes) for name in node.inputs}
    result = group.output
    steps: list[_Step] = []
    size = 0
    in_result: str | None = None  # the node whose value is in the result's memory
    for index, node in enumerate(group.nodes):
        place = _ANYWHERE
        free = in_result is None or last_read[in_result] <= index
        # An elementwise node may overwrite what it reads: each element is read before it is written.
        if node is result or (node.op in ELEMENTWISE and (node.shape, node.dtype) == (result.shape, result.dtype) and free):
            place, in_result = _IN_RESULT, node.name
        elif node.op in ELEMENTWISE:
            place = size
            size += aligned(node.size * np.dtype(node.dtype).itemsize)
        steps.append(_Step(node, tuple(number[name] for name in node.inputs), number[node.name], place))
    return tuple(steps), size


def _room(workspace: Tensor, step: _Step) -> Tensor:
    node = step.node
    return workspace[step.place : step.place + node.size * np.dtype(node.dtype).itemsize].view(_dtype(node)).view(node.shape)


def _dtype(node: Node) -> torch.dtype:
    found = getattr(torch, node.dtype)
    assert isinstance(found, torch.dtype)
    return found


def _function(node: Node, known: Known) -> Function:
    return _elementwise(node) if node.op in _ELEMENTWISE else _OTHERS[node.op](node, known)


# Elementwise work ---------------------------------------------------------------------------------------------------------------------------------


def _elementwise(node: Node) -> Function:
    """A number among the operands becomes a tensor of their dtype. The result is written to its place."""
    function = _ELEMENTWISE[node.op](node)
    if "scalar" not in node.attributes:
        return lambda tensors, out: function(*tensors, out=out)
    number, first = node.number("scalar"), bool(node.attributes["scalar_first"])
    made: dict[torch.dtype, Tensor] = {}

    def with_scalar(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        *before, one = tensors
        if one.dtype not in made:
            made[one.dtype] = torch.full((), number, dtype=one.dtype)
        scalar = made[one.dtype]
        return function(*before, *((scalar, one) if first else (one, scalar)), out=out)

    return with_scalar


Maker = Callable[[Node], Callable[..., Tensor]]


def _torch(name: str) -> Maker:
    return lambda node: getattr(torch, name)  # PyTorch's functions are found by name


def _plain(function: Callable[..., Tensor]) -> Maker:
    return lambda node: function


def _aten(name: str, **given: str) -> Maker:
    """`aten.name.out`; `given` maps its keywords to names of the node's attributes."""
    function = getattr(torch.ops.aten, name).out
    return lambda node: lambda *tensors, out: function(*tensors, **{key: node.attributes[attribute] for key, attribute in given.items()}, out=out)


def _clip(node: Node) -> Callable[..., Tensor]:
    low, high = (None if node.attributes[key] is None else node.number(key) for key in ("low", "high"))
    return lambda x, out: torch.clamp(x, low, high, out=out)


def _cast(node: Node) -> Callable[..., Tensor]:
    return lambda x, out: out.copy_(x) if node.dtype != "bool" else torch.ne(x, 0, out=out)


_SAME_NAME = ("abs", "ceil", "cos", "erf", "exp", "floor", "log", "log2", "logical_not", "neg", "round", "rsqrt", "sigmoid", "sin", "sqrt", "tanh", "trunc",
              "add", "sub", "mul", "div", "maximum", "minimum", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")
_ELEMENTWISE: Mapping[str, Maker] = {
    **{name: _torch(name) for name in _SAME_NAME},
    **{name: _torch(name) for name in (*OF_ONE, *PAIRS)},
    **{name: _plain(function) for name, (_, function) in FORMULAS.items() if name != "isfinite"},
    "isfinite": lambda node: lambda x, out: out.copy_(torch.isfinite(x)),
    **{name: _aten(name) for name in ("hardsigmoid", "hardswish", "silu")},
    "relu": lambda node: lambda x, out: torch.clamp_min(x, 0, out=out),
    "elu": _aten("elu", alpha="alpha"),
    "gelu": _aten("gelu", approximate="approximate"),
    "leaky_relu": _aten("leaky_relu", negative_slope="slope"),
    "softplus": _aten("softplus", threshold="threshold"),
    "clip": _clip,
    "cast": _cast,
    "where": lambda node: lambda condition, x, y, out: torch.where(condition if condition.dtype == torch.bool else condition != 0, x, y, out=out),
}

# Windows ------------------------------------------------------------------------------------------------------------------------------------------

_MEMORY_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _channels_first(node: Node, tensor: Tensor) -> Tensor:
    return tensor.movedim(-1, 1) if node.text("layout").endswith("C") else tensor


def _as_laid_out(node: Node, tensor: Tensor) -> Tensor:
    return tensor.movedim(1, -1) if node.text("layout").endswith("C") else tensor


def _weight(node: Node, weight: Tensor) -> Tensor:
    """A weight in PyTorch's layout: output channels first, or input channels first for a transposed convolution."""
    if not node.text("layout").endswith("C"):
        return weight
    spatial = range(weight.dim() - 2)
    first, second = (-2, -1) if node.op.endswith("_transpose") else (-1, -2)
    return weight.permute(first, second, *spatial)


def _convolution(node: Node, known: Known) -> Function:
    rank = len(node.shape) - 2
    before, after = node.integers("padding")[:rank], node.integers("padding")[rank:]
    ahead = None if before == after else _pad_arguments((0, 0, *before), (0, 0, *after))
    apply = _packed(node, known) or _unpacked(node, known)

    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        data = _channels_first(node, tensors[0])
        if ahead is not None:
            data = f.pad(data, ahead)
        return _as_laid_out(node, apply(data, tensors))

    return run


Convolve = Callable[[Tensor, Sequence[Tensor]], Tensor]  # takes channels-first data, already padded if the padding is uneven, and the node's operands


def _unpacked(node: Node, known: Known) -> Convolve:
    weight = _kept_weight(node, known)
    padding = _even_padding(node)
    strides, dilation, zeros, groups = node.integers("strides"), node.integers("dilation"), (0,) * len(padding), node.integer("groups")
    return lambda data, tensors: torch.convolution(data, weight(tensors), _bias(tensors), strides, padding, dilation, False, zeros, groups)


def _packed(node: Node, known: Known) -> Convolve | None:
    """oneDNN with a constant weight in its own blocked layout, as PyTorch's compiler calls it; None if this PyTorch or this node has no such form.

    Plain calls reorder the weight each time, which may cost more than the convolution.
    """
    given = known[1]
    if given is None or given.dtype != torch.float32 or given.dim() != 4 or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]  # PyTorch's own omission
        return None
    padding = _even_padding(node)
    strides, dilation, groups = node.integers("strides"), node.integers("dilation"), node.integer("groups")
    try:
        convolve = torch.ops.mkldnn._convolution_pointwise.default
        weight = torch.ops.mkldnn._reorder_convolution_weight(_weight(node, given).contiguous(), padding, strides, dilation, groups, [])
    except (AttributeError, RuntimeError, TypeError):  # both names are private to PyTorch, and may change
        return None
    return lambda data, tensors: convolve(data, weight, _bias(tensors), padding, strides, dilation, groups, "none", [], "")


def _even_padding(node: Node) -> tuple[int, ...]:
    """The padding if both ends have the same, else zeros, because the data are then padded in advance."""
    rank = len(node.shape) - 2
    before, after = node.integers("padding")[:rank], node.integers("padding")[rank:]
    return before if before == after else (0,) * rank


def _bias(tensors: Sequence[Tensor]) -> Tensor | None:
    return tensors[2] if len(tensors) > 2 else None


def _transposed_convolution(node: Node, known: Known) -> Function:
    rank = len(node.shape) - 2
    before, after = node.integers("padding")[:rank], node.integers("padding")[rank:]
    even = before == after
    weight = _kept_weight(node, known)
    strides, padding, extra, groups = node.integers("strides"), before if even else (0,) * rank, node.integers("output_padding"), node.integer("groups")

    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        made = torch.convolution(_channels_first(node, tensors[0]), weight(tensors), _bias(tensors), strides, padding, (1,) * rank, True, extra, groups)
        if not even:
            for axis, (low, high) in enumerate(zip(before, after, strict=True), start=2):
                made = made.narrow(axis, low, made.shape[axis] - low - high)
        return _as_laid_out(node, made)

    return run


def _kept_weight(node: Node, known: Known) -> Callable[[Sequence[Tensor]], Tensor]:
    """The node's weight. A constant weight is converted once, to the layout of the data."""
    given = known[1]
    if given is None:
        return lambda tensors: _weight(node, tensors[1])
    form = _MEMORY_FORMATS.get(given.dim()) if node.text("layout").endswith("C") else None
    weight = _weight(node, given)
    laid_out = weight.contiguous(memory_format=form) if form is not None else weight.contiguous()
    return lambda tensors: laid_out


def _pool(node: Node, known: Known) -> Function:
    rank = len(node.shape) - 2
    before, after = node.integers("padding")[:rank], node.integers("padding")[rank:]
    kernel, strides, dilation, ceil = node.integers("kernel"), node.integers("strides"), node.integers("dilation"), bool(node.attributes["ceil_mode"])
    if before != after or any(2 * pad > extent for pad, extent in zip(before, kernel, strict=True)):
        raise NoLibraryForm(f"pools padded by {before} and {after} have no form in PyTorch")
    inside = bool(node.attributes["count_include_pad"])
    if node.text("kind") == "max":
        largest = (f.max_pool1d, f.max_pool2d, f.max_pool3d)[rank - 1]
        return lambda tensors, out: _as_laid_out(node, largest(_channels_first(node, tensors[0]), kernel, strides, before, dilation, ceil))
    if set(dilation) != {1}:
        raise NoLibraryForm("dilated average pools have no form in PyTorch")
    average = (f.avg_pool1d, f.avg_pool2d, f.avg_pool3d)[rank - 1]
    return lambda tensors, out: _as_laid_out(node, average(_channels_first(node, tensors[0]), kernel, strides, before, ceil, inside))


def _adaptive_pool(node: Node, known: Known) -> Function:
    size = tuple(extent for letter, extent in zip(node.text("layout"), node.shape, strict=True) if letter not in "NC")
    function = getattr(f, f"adaptive_{node.text('kind')}_pool{len(size)}d")
    return lambda tensors, out: _as_laid_out(node, function(_channels_first(node, tensors[0]), size))


# Products, reductions, layouts ----------------------------------------------------------------------------------------------------------------------


def _dense(node: Node, known: Known) -> Function:
    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        if len(tensors) > 2:
            return torch.addmm(tensors[2], tensors[0], tensors[1].t(), out=out)
        return torch.mm(tensors[0], tensors[1].t(), out=out)

    return run


def _batch_matmul(node: Node, known: Known) -> Function:
    transposed = bool(node.attributes["transpose_b"])
    return lambda tensors, out: torch.bmm(tensors[0], tensors[1].mT if transposed else tensors[1], out=out)


def _reduction(node: Node, known: Known) -> Function:
    axes, keep = node.integers("axes"), bool(node.attributes["keepdims"])
    if node.op == "prod":
        return lambda tensors, out: _product(tensors[0], axes, keep)
    if node.op == "sum":
        return lambda tensors, out: torch.sum(tensors[0], axes, keep, dtype=_dtype(node), out=out)
    functions: dict[str, Callable[..., torch.Tensor]] = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}
    function = functions[node.op]
    return lambda tensors, out: function(tensors[0], axes, keep, out=out)


def _product(tensor: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        tensor = torch.prod(tensor, axis, keep, dtype=tensor.dtype)
    return tensor


def _softmax(node: Node, known: Known) -> Function:
    function = torch.ops.aten._softmax if node.op == "softmax" else torch.ops.aten._log_softmax
    axis = node.integer("axis")
    return lambda tensors, out: function.default(tensors[0], axis, False) if out is None else function.out(tensors[0], axis, False, out=out)


def _layer_norm(node: Node, known: Known) -> Function:
    axes, epsilon = node.integers("axes"), node.number("epsilon")
    rank = len(node.shape)
    if axes != tuple(range(rank - len(axes), rank)):
        raise NoLibraryForm(f"norms over the dimensions {axes} have no form in PyTorch")
    extents = node.shape[rank - len(axes) :]

    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        scale, shift = tensors[1:] if len(tensors) == 3 else (None, None)
        return f.layer_norm(tensors[0], extents, scale, shift, epsilon)

    return run


def _pad_arguments(before: Sequence[int], after: Sequence[int]) -> list[int]:
    """PyTorch's order: the last dimension first, before and after."""
    return [amount for low, high in reversed(list(zip(before, after, strict=True))) for amount in (low, high)]


def _pad(node: Node, known: Known) -> Function:
    amounts = _pad_arguments(node.integers("before"), node.integers("after"))
    value = node.number("value")
    return lambda tensors, out: f.pad(tensors[0], amounts, value=value)


def _slice(node: Node, known: Known) -> Function:
    parts = tuple(
        slice(start, start + step * (extent - 1) + 1, step)
        for start, step, extent in zip(node.integers("starts"), node.integers("steps"), node.shape, strict=True)
    )
    if prod(node.shape) == 0 or any(step < 1 for step in node.integers("steps")):
        raise NoLibraryForm("this slice has no form in PyTorch")
    return lambda tensors, out: tensors[0][parts]


def _index(node: Node, known: Known) -> Function:
    """PyTorch puts the common shape where the first index is, or at the front if the indexed dimensions are not adjacent."""
    dims, at, rank = node.integers("dims"), node.integer("at"), node.integer("common")
    first = dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0

    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        places: list[Tensor | slice] = [slice(None)] * tensors[0].dim()
        for dim, one in zip(dims, tensors[1:], strict=True):
            places[dim] = one.long()
        return tensors[0][tuple(places)].movedim(tuple(range(first, first + rank)), tuple(range(at, at + rank)))

    return run


def _place_of_extreme(node: Node, known: Known) -> Function:
    axes, keep = node.integers("axes"), bool(node.attributes["keepdims"])
    function = torch.argmax if node.op == "argmax" else torch.argmin

    def run(tensors: Sequence[Tensor], out: Tensor | None) -> Tensor:
        found = function(tensors[0], axes[0]) if len(axes) == 1 else function(tensors[0])
        return found.reshape(node.shape).to(_dtype(node))

    if len(axes) not in (1, len(node.shape) if keep else len(axes)):
        raise NoLibraryForm(f"places of extremes over the dimensions {axes} have no form in PyTorch")
    return run


_OTHERS: Mapping[str, Callable[[Node, Known], Function]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv1d_transpose", "conv2d_transpose", "conv3d_transpose"), _transposed_convolution),
    **dict.fromkeys(("pool1d", "pool2d", "pool3d"), _pool),
    **dict.fromkeys(("adaptive_pool1d", "adaptive_pool2d", "adaptive_pool3d"), _adaptive_pool),
    **dict.fromkeys(("mean", "sum", "max", "min", "prod"), _reduction),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    "dense": _dense,
    "batch_matmul": _batch_matmul,
    "layer_norm": _layer_norm,
    "transpose": lambda node, known: lambda tensors, out: tensors[0].permute(node.integers("axes")),
    "pad": _pad,
    "concat": lambda node, known: lambda tensors, out: torch.cat(list(tensors), node.integer("axis"), out=out),
    "slice": _slice,
    "embedding": lambda node, known: lambda tensors, out: f.embedding(tensors[1], tensors[0]),
    "expand": lambda node, known: lambda tensors, out: tensors[0].expand(node.shape),
    "index": _index,
    "gather": lambda node, known: lambda tensors, out: torch.gather(tensors[0], node.integer("axis"), tensors[1].long(), out=out),
    **dict.fromkeys(("argmax", "argmin"), _place_of_extreme),
    "cumsum": lambda node, known: lambda tensors, out: torch.cumsum(tensors[0], node.integer("axis"), dtype=_dtype(node), out=out),
    "cumprod": lambda node, known: lambda tensors, out: torch.cumprod(tensors[0], node.integer("axis"), dtype=_dtype(node), out=out),
}
