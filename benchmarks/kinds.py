"""Each operator in three forms: declared in `te`, as the usual PyTorch call, and as ONNX nodes.

Every function here makes an `Operator` of given sizes. Convolutions are NCHW, so that all sides get the same tensors. Weights of networks are constants. Each
side gets them ahead of time, as its users do: ours binds and packs them, Inductor freezes them, ONNX Runtime has them as initialisers. Only PyTorch eager gets
them with each call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from ansor import te
from ansor.te import nn
from ansor.te.tensor import Tensor

Tensors = Mapping[str, torch.Tensor]
Function = Callable[..., torch.Tensor]
EPSILON = 1e-5


@dataclass(frozen=True)
class Node:
    """An ONNX node. It reads inputs, constants and earlier results by name; the last one of an operator is called `output`."""

    op: str
    reads: tuple[str, ...]
    result: str = "output"
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Operator:
    """One operator of one size.

    declare: our declaration, inputs before constants; inputs: the arguments of each call, by name; constants: known ahead of time; function: PyTorch's, which
    takes inputs and constants in order; nodes: ONNX nodes, which also read `shapes` (int64 vectors); exact: a function in double precision, if `function` does
    not support it; bound: our constants, if they differ from PyTorch's (a batch norm's four vectors are two for us).
    """

    declare: Callable[[], list[Tensor]]
    inputs: Tensors
    constants: Tensors
    function: Function
    nodes: tuple[Node, ...]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    exact: Function | None = None
    bound: Tensors | None = None

    @property
    def our_constants(self) -> Tensors:
        """The values that our kernel's constants are bound to, by name."""
        return self.constants if self.bound is None else self.bound

    def reference(self) -> torch.Tensor:
        """The result, computed in double precision."""
        arguments = [tensor.double() for tensor in (*self.inputs.values(), *self.constants.values())]
        return (self.exact or self.function)(*arguments)


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def _placeholders(tensors: Tensors, constant: bool = False) -> list[Tensor]:
    return [te.placeholder(tuple(value.shape), str(value.dtype).removeprefix("torch."), name, constant=constant) for name, value in tensors.items()]


def _operator(inputs: Tensors, constants: Tensors, build: Callable[..., Tensor], function: Function, nodes: Sequence[Node],
              shapes: Mapping[str, tuple[int, ...]] | None = None, exact: Function | None = None, bound: Tensors | None = None) -> Operator:
    """An operator whose declaration is `build` of placeholders like the tensors."""

    def declare() -> list[Tensor]:
        given = [*_placeholders(inputs), *_placeholders(constants if bound is None else bound, constant=True)]
        return [*given, build(*given)]

    return Operator(declare, inputs, constants, function, tuple(nodes), shapes or {}, exact, bound)


def conv(n: int, ci: int, sizes: tuple[int, ...], co: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1) -> Operator:
    """Convolution over one, two or three dimensions, channels first, with constant weights. It is depthwise if there are as many groups as channels."""
    data, weight = _random(n, ci, *sizes), _random(co, ci // groups, *(kernel,) * len(sizes), seed=1)
    ours = (nn.conv1d, nn.conv2d, nn.conv3d)[len(sizes) - 1]
    theirs = (F.conv1d, F.conv2d, F.conv3d)[len(sizes) - 1]

    def build(x: Tensor, w: Tensor) -> Tensor:
        if len(sizes) == 2 and groups == ci == co:
            return nn.depthwise_conv2d_nchw(x, w, stride, padding, dilation)
        return ours(x, w, stride, padding, dilation, groups)

    return _operator(
        {"data": data}, {"weight": weight}, build, lambda x, w: theirs(x, w, None, stride, padding, dilation, groups),
        [_conv_node("Conv", len(sizes), stride, padding, dilation, groups)],
    )  # fmt: skip


def _conv_node(op: str, rank: int, stride: int, padding: int, dilation: int = 1, groups: int = 1, reads: tuple[str, ...] = ("data", "weight"),
               result: str = "output") -> Node:
    attributes = {"strides": [stride] * rank, "pads": [padding] * 2 * rank, "dilations": [dilation] * rank, "group": groups}
    return Node(op, reads, result, attributes)


def transposed_conv(n: int, ci: int, size: int, co: int, kernel: int, stride: int, padding: int) -> Operator:
    """Transposed 2-d convolution, NCHW, with constant weights IOHW."""
    data, weight = _random(n, ci, size, size), _random(ci, co, kernel, kernel, seed=1)
    return _operator(
        {"data": data}, {"weight": weight}, lambda x, w: nn.conv2d_transpose(x, w, stride, padding),
        lambda x, w: F.conv_transpose2d(x, w, None, stride, padding), [_conv_node("ConvTranspose", 2, stride, padding)],
    )  # fmt: skip


def capsule(n: int, size: int, ci: int, co: int, kernel: int, stride: int, padding: int, edge: int = 4) -> Operator:
    """2-d convolution of edge x edge matrices: data [N, H, W, I, K, CI], constant weights [KH, KW, K, J, CI, CO], output [N, H, W, I, J, CO].

    The other libraries lack this operator. They treat each row of a matrix as an image: they transpose the data, run a plain convolution of N * I images from
    K * CI to J * CO channels, with weights reordered ahead of time, and transpose the result.
    """
    data, weight = _random(n, size, size, edge, edge, ci), _random(kernel, kernel, edge, edge, ci, co, seed=1)
    images, out = n * edge, (size + 2 * padding - kernel) // stride + 1
    plain = weight.permute(3, 5, 2, 4, 0, 1).reshape(edge * co, edge * ci, kernel, kernel).contiguous()

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        found = F.conv2d(x.permute(0, 3, 4, 5, 1, 2).reshape(images, edge * ci, size, size), w, None, stride, padding)
        return found.reshape(n, edge, edge, co, out, out).permute(0, 4, 5, 1, 2, 3).contiguous()

    nodes = [
        Node("Transpose", ("data",), "rows", {"perm": [0, 3, 4, 5, 1, 2]}),
        Node("Reshape", ("rows", "images"), "plain"),
        _conv_node("Conv", 2, stride, padding, reads=("plain", "weight"), result="convolved"),
        Node("Reshape", ("convolved", "matrices"), "apart"),
        Node("Transpose", ("apart",), attributes={"perm": [0, 4, 5, 1, 2, 3]}),
    ]
    shapes = {"images": (images, edge * ci, size, size), "matrices": (n, edge, edge, co, out, out)}
    return _operator(
        {"data": data}, {"weight": plain}, lambda x, w: nn.capsule_conv2d(x, w, stride, padding), function, nodes, shapes, bound={"weight": weight}
    )


def matrix_norm(n: int, rows: int, columns: int) -> Operator:
    """2-norm of each matrix of a batch."""
    return _operator(
        {"data": _random(n, rows, columns)}, {}, lambda x: nn.norm(x, (1, 2)), lambda x: torch.linalg.vector_norm(x, dim=(1, 2)),
        [Node("ReduceL2", ("data", "axes"), attributes={"keepdims": 0})], {"axes": (1, 2)},
    )  # fmt: skip


def matmul(n: int, m: int, k: int) -> Operator:
    """A [n, k] times B [k, m]. Both are arguments of each call, so calls include any packing."""
    return _operator({"A": _random(n, k), "B": _random(k, m, seed=1)}, {}, nn.matmul, torch.mm, [Node("MatMul", ("A", "B"))])


def matrix_vector(n: int, k: int) -> Operator:
    """A [n, k] times x [k]."""
    return _operator({"A": _random(n, k), "x": _random(k, seed=1)}, {}, lambda a, x: nn.dense(x, a), torch.mv, [Node("MatMul", ("A", "x"))])


def int8_matmul(size: int) -> Operator:
    """A times B, square, int8 to int32. Both are arguments of each call."""
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8, generator=draw) for _ in range(2))
    return _operator(
        {"A": a, "B": b}, {}, lambda x, y: nn.matmul(x, y, out_dtype="int32"), torch._int_mm, [Node("MatMulInteger", ("A", "B"))], exact=torch.mm
    )


def batch_matmul(batch: int, n: int, m: int, k: int, transpose_b: bool = False) -> Operator:
    """A [batch, n, k] times B [batch, k, m], or B [batch, m, k] transposed."""
    a, b = _random(batch, n, k), _random(batch, *((m, k) if transpose_b else (k, m)), seed=1)
    flipped = [Node("Transpose", ("B",), "flipped", {"perm": [0, 2, 1]})] if transpose_b else []
    return _operator(
        {"A": a, "B": b}, {}, lambda x, y: nn.batch_matmul(x, y, transpose_b=transpose_b),
        lambda x, y: torch.bmm(x, y.transpose(1, 2) if transpose_b else y), [*flipped, Node("MatMul", ("A", "flipped" if transpose_b else "B"))],
    )  # fmt: skip


def dense(rows: int, inputs: int, outputs: int) -> Operator:
    """A linear layer with constant weight and bias."""
    constants = {"weight": _random(outputs, inputs, seed=1), "bias": _random(outputs, seed=2)}
    return _operator({"data": _random(rows, inputs)}, constants, nn.dense, F.linear, [Node("Gemm", ("data", "weight", "bias"), attributes={"transB": 1})])


def softmax(*shape: int) -> Operator:
    """Softmax over the last dimension."""
    return _operator({"data": _random(*shape)}, {}, nn.softmax, lambda x: torch.softmax(x, -1), [Node("Softmax", ("data",), attributes={"axis": -1})])


def layer_norm(rows: int, columns: int) -> Operator:
    """Layer norm over the last dimension, with constant scale and shift."""
    constants = {"gamma": _random(columns, seed=1), "beta": _random(columns, seed=2)}
    return _operator(
        {"data": _random(rows, columns)}, constants, lambda x, g, b: nn.layer_norm(x, g, b, epsilon=EPSILON),
        lambda x, g, b: F.layer_norm(x, (columns,), g, b, EPSILON),
        [Node("LayerNormalization", ("data", "gamma", "beta"), attributes={"axis": -1, "epsilon": EPSILON})],
    )  # fmt: skip


def gelu(rows: int, columns: int) -> Operator:
    """Exact GELU."""
    return _operator({"data": 3 * _random(rows, columns)}, {}, nn.gelu, F.gelu, [Node("Gelu", ("data",))])


def conv_bn_relu(n: int, ci: int, size: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> Operator:
    """2-d convolution, batch norm with given statistics, and ReLU; NCHW. Ours has the batch norm as a scale and a shift per channel, computed ahead of time."""
    weight = _random(co, ci, kernel, kernel, seed=1)
    gamma, beta, mean = (_random(co, seed=seed) for seed in (2, 3, 4))
    variance = _random(co, seed=5) + 1.5
    scale = gamma / torch.sqrt(variance + EPSILON)
    constants = {"weight": weight, "gamma": gamma, "beta": beta, "mean": mean, "variance": variance}

    def build(x: Tensor, w: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return nn.relu(nn.scale_shift(nn.conv2d(x, w, stride, padding), scale, shift))

    def function(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, b: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.batch_norm(F.conv2d(x, w, None, stride, padding), m, v, g, b, False, 0.0, EPSILON))

    nodes = [
        _conv_node("Conv", 2, stride, padding, result="convolved"),
        Node("BatchNormalization", ("convolved", "gamma", "beta", "mean", "variance"), "normal", {"epsilon": EPSILON}),
        Node("Relu", ("normal",)),
    ]
    bound = {"weight": weight, "scale": scale, "shift": beta - mean * scale}
    return _operator({"data": _random(n, ci, size, size)}, constants, build, function, nodes, bound=bound)


def attention_scores(n: int, length: int, heads: int, depth: int) -> Operator:
    """Attention scores: transposes queries and keys [n, length, heads, depth], multiplies them for each head, softmax: [n, heads, length, length]."""
    shape = (n, length, heads, depth)

    def build(q: Tensor, k: Tensor) -> Tensor:
        return nn.softmax(nn.batch_matmul(nn.transpose(q, (0, 2, 1, 3), name="q_heads"), nn.transpose(k, (0, 2, 1, 3), name="k_heads")))

    nodes = [
        Node("Transpose", ("q",), "q_heads", {"perm": [0, 2, 1, 3]}),
        Node("Transpose", ("k",), "k_heads", {"perm": [0, 2, 3, 1]}),
        Node("MatMul", ("q_heads", "k_heads"), "scores"),
        Node("Softmax", ("scores",), attributes={"axis": -1}),
    ]
    scale = math.sqrt(1 / depth)  # keeps the softmax from concentrating in one element
    return _operator(
        {"q": scale * _random(*shape), "k": _random(*shape, seed=1)}, {}, build,
        lambda q, k: torch.softmax(q.permute(0, 2, 1, 3) @ k.permute(0, 2, 3, 1), -1), nodes,
    )  # fmt: skip
