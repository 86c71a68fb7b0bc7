"""The operators of a data set: sizes from networks, and random neighbours of those sizes.

Each kind has a function that declares it from named sizes, as the networks' graphs do (channels first, constant weights, fused epilogues), and a table of
sizes with the network they come from. `dataset_tasks` adds a few with other channels, images and batches for each; the same seed gives the same tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ansor import te
from ansor.dataset.drawn import drawn
from ansor.dataset.layers import LAYERS, drawn_layers
from ansor.dataset.network_layers import LAYER_SEEDS, TALL_SEEDS, WINDOW_SEEDS, network_layer, tall_product, window_layer
from ansor.errors import DeclarationError
from ansor.targets.base import Target
from ansor.targets.prior import BOARDS
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor

Sizes = dict[str, int]
MAX_FLOP = 1.2e9
"""The most operations of a task of random size: larger ones take too long to measure."""

DRAWN = 1200
"""Seeds of declarations drawn at random. Each is a task, except those in NOT_LEARNED."""

NOT_LEARNED = frozenset({664, 814, 856})
"""Seeds that are not tasks: their declarations belong to families of `benchmarks/pristine_operators.py`, from which no model may learn."""

JITTERED = ("channels", "inputs", "outputs", "image", "rows", "columns", "batch")


@dataclass(frozen=True)
class DatasetTask:
    """One operator of one size. kind: its class; network: the source of the size; base: the name of the task whose size it was drawn near, or its own."""

    kind: str
    network: str
    sizes: tuple[tuple[str, int], ...]
    base: str

    @property
    def name(self) -> str:
        """Kind and sizes, valid as a file name."""
        return "-".join([self.kind, *(f"{key}{value}" for key, value in self.sizes)])

    def declare(self) -> list[Tensor]:
        """Inputs, constants and the result."""
        return (LAYERS[self.kind] if self.kind in LAYERS else KINDS[self.kind].declare)(**dict(self.sizes))


@dataclass(frozen=True)
class Kind:
    """A class of operators: a function that declares one, and the sizes in networks."""

    declare: Callable[..., list[Tensor]]
    networks: Mapping[str, tuple[str, ...]]


def _weight(*shape: int, name: str = "weight", dtype: str = "float32") -> Tensor:
    return te.placeholder(shape, dtype, name, constant=True)


def _finished(result: Tensor, inputs: list[Tensor], epilogue: int) -> list[Tensor]:
    """The plain result (0), with bias and ReLU (1), or with bias, a residual and ReLU (2). Channels are the second dimension."""
    if not epilogue:
        return [*inputs, result]
    bias = _weight(result.shape[1], name="bias")
    biased = nn.bias_add(result, bias)
    if epilogue == 1:
        return [*inputs, bias, nn.relu(biased)]
    residual = te.placeholder(result.shape, name="residual")
    return [*inputs, residual, bias, nn.relu(nn.add(biased, residual))]


def conv2d(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
           epilogue: int = 0) -> list[Tensor]:
    """2-d convolution, NCHW."""
    data, weight = te.placeholder((batch, channels, image, image), name="data"), _weight(outputs, channels // groups, kernel, kernel)
    return _finished(nn.conv2d(data, weight, stride, padding, dilation, groups), [data, weight], epilogue)


def conv2d_nhwc(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> list[Tensor]:
    """2-d convolution, NHWC, with ReLU."""
    data, weight = te.placeholder((batch, image, image, channels), name="data"), _weight(kernel, kernel, channels, outputs)
    return [data, weight, nn.relu(nn.conv2d(data, weight, stride, padding, data_layout="NHWC"))]


def conv2d_bn(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> list[Tensor]:
    """2-d convolution, NCHW, with non-constant weights, bias, batch norm and ReLU: nothing can be packed or transformed ahead of time."""
    return workloads.conv2d_nchw_bn_relu(batch, image, image, channels, outputs, kernel, stride, padding)


def depthwise_nhwc(batch: int, channels: int, image: int, kernel: int, stride: int, padding: int) -> list[Tensor]:
    """Depthwise 2-d convolution, NHWC."""
    return workloads.depthwise_conv2d(batch, image, image, channels, kernel, stride, padding)


def transposed_nhwc(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Tensor]:
    """Transposed 2-d convolution, NHWC."""
    return workloads.conv2d_transpose(batch, image, image, channels, outputs, kernel, stride, padding)


def depthwise(batch: int, channels: int, image: int, kernel: int, stride: int, padding: int, epilogue: int = 0) -> list[Tensor]:
    """Depthwise 2-d convolution, NCHW."""
    data, weight = te.placeholder((batch, channels, image, image), name="data"), _weight(channels, 1, kernel, kernel)
    return _finished(nn.depthwise_conv2d_nchw(data, weight, stride, padding), [data, weight], epilogue)


def transposed(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Tensor]:
    """Transposed 2-d convolution, NCHW."""
    data, weight = te.placeholder((batch, channels, image, image), name="data"), _weight(channels, outputs, kernel, kernel)
    return [data, weight, nn.conv2d_transpose(data, weight, stride, padding)]


def conv1d(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> list[Tensor]:
    """1-d convolution, NCW."""
    data, weight = te.placeholder((batch, channels, image), name="data"), _weight(outputs, channels, kernel)
    return [data, weight, nn.conv1d(data, weight, stride, padding, dilation)]


def conv3d(batch: int, channels: int, depth: int, image: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> list[Tensor]:
    """3-d convolution, NCDHW."""
    data, weight = te.placeholder((batch, channels, depth, image, image), name="data"), _weight(outputs, channels, kernel, kernel, kernel)
    return [data, weight, nn.conv3d(data, weight, stride, padding)]


def capsule(batch: int, channels: int, image: int, outputs: int, kernel: int, stride: int, padding: int) -> list[Tensor]:
    """2-d convolution of 4 x 4 matrices."""
    data, weight = te.placeholder((batch, image, image, 4, 4, channels), name="data"), _weight(kernel, kernel, 4, 4, channels, outputs)
    return [data, weight, nn.capsule_conv2d(data, weight, stride, padding)]


def dense(rows: int, inputs: int, outputs: int, epilogue: int = 0) -> list[Tensor]:
    """Data times constant weights [outputs, inputs]; epilogue 1: bias and ReLU, 2: bias and GELU."""
    data, weight = te.placeholder((rows, inputs), name="data"), _weight(outputs, inputs)
    if not epilogue:
        return [data, weight, nn.dense(data, weight)]
    bias = _weight(outputs, name="bias")
    result = nn.dense(data, weight, bias)
    return [data, weight, bias, nn.relu(result) if epilogue == 1 else nn.gelu(result)]


def matmul(rows: int, columns: int, inputs: int) -> list[Tensor]:
    """Product of two matrices, neither of them constant."""
    a, b = te.placeholder((rows, inputs), name="A"), te.placeholder((inputs, columns), name="B")
    return [a, b, nn.matmul(a, b)]


def int8_matmul(rows: int, columns: int, inputs: int) -> list[Tensor]:
    """Product of two int8 matrices, in int32."""
    a, b = te.placeholder((rows, inputs), "int8", "A"), te.placeholder((inputs, columns), "int8", "B")
    return [a, b, nn.matmul(a, b, out_dtype="int32")]


def batch_matmul(batch: int, rows: int, columns: int, inputs: int, transpose: int) -> list[Tensor]:
    """Batch of matrix products; transpose 1: the second operand is [batch, columns, inputs]."""
    a = te.placeholder((batch, rows, inputs), name="A")
    b = te.placeholder((batch, columns, inputs) if transpose else (batch, inputs, columns), name="B")
    return [a, b, nn.batch_matmul(a, b, transpose_b=bool(transpose))]


def softmax(rows: int, columns: int) -> list[Tensor]:
    """Softmax of every row."""
    data = te.placeholder((rows, columns), name="data")
    return [data, nn.softmax(data)]


def layer_norm(rows: int, columns: int) -> list[Tensor]:
    """Layer norm of every row."""
    data, gamma, beta = te.placeholder((rows, columns), name="data"), _weight(columns, name="gamma"), _weight(columns, name="beta")
    return [data, gamma, beta, nn.layer_norm(data, gamma, beta)]


def matrix_norm(batch: int, rows: int, columns: int) -> list[Tensor]:
    """2-norm of each matrix."""
    data = te.placeholder((batch, rows, columns), name="data")
    return [data, nn.norm(data, axis=(1, 2))]


def pool(batch: int, channels: int, image: int, kernel: int, stride: int, padding: int, average: int) -> list[Tensor]:
    """Maximum or average pooling of images."""
    data = te.placeholder((batch, channels, image, image), name="data")
    return [data, nn.pool2d(data, kernel, stride, padding=padding, pool_type="avg" if average else "max")]


def attention_scores(batch: int, rows: int, inputs: int) -> list[Tensor]:
    """Softmax of the scaled product of queries and keys."""
    query, key = te.placeholder((batch, rows, inputs), name="query"), te.placeholder((batch, rows, inputs), name="key")
    return [query, key, nn.softmax(nn.multiply(nn.batch_matmul(query, key), inputs**-0.5))]


KINDS: Mapping[str, Kind] = {
    "conv2d": Kind(conv2d, {
        "resnet": ("b1 c3 i224 o64 k7 s2 p3 e1", "b1 c64 i56 o64 k3 p1 e1", "b1 c64 i56 o64 k3 p1 e2", "b1 c64 i56 o128 k3 s2 p1 e1",
                   "b1 c128 i28 o128 k3 p1 e2", "b1 c128 i28 o256 k3 s2 p1 e1", "b1 c256 i14 o256 k3 p1 e1", "b1 c256 i14 o512 k3 s2 p1 e1",
                   "b1 c512 i7 o512 k3 p1 e2"),
        "vgg": ("b1 c3 i224 o64 k3 p1 e1", "b1 c256 i28 o256 k3 p1 e1", "b1 c512 i14 o512 k3 p1 e1"),
        "alexnet": ("b1 c3 i224 o64 k11 s4 p2 e1", "b1 c64 i27 o192 k5 p2 e1", "b1 c192 i13 o384 k3 p1 e1"),
        "inception": ("b1 c3 i299 o32 k3 s2 e1", "b1 c48 i35 o64 k5 p2 e1", "b1 c96 i35 o96 k3 p1 e1", "b1 c80 i73 o96 k3 e1"),
        "mobilenet": ("b1 c3 i224 o32 k3 s2 p1 e1",),
        "squeezenet": ("b1 c16 i55 o64 k3 p1 e1", "b1 c48 i13 o192 k3 p1 e1"),
        "densenet": ("b1 c128 i28 o32 k3 p1", "b1 c128 i7 o32 k3 p1"),
    }),
    "pointwise": Kind(conv2d, {
        "resnet": ("b1 c64 i56 o64 k1 e1", "b1 c64 i56 o256 k1 e2", "b1 c256 i56 o64 k1 e1", "b1 c128 i28 o512 k1 e2", "b1 c512 i28 o256 k1 s2 e1",
                   "b1 c1024 i14 o256 k1 e1", "b1 c256 i14 o1024 k1 e2", "b1 c1024 i14 o512 k1 s2", "b1 c2048 i7 o512 k1 e1"),
        "mobilenet": ("b1 c32 i112 o16 k1", "b1 c16 i112 o96 k1 e1", "b1 c24 i56 o144 k1 e1", "b1 c192 i28 o32 k1", "b1 c64 i14 o384 k1 e1",
                      "b1 c576 i14 o96 k1", "b1 c160 i7 o960 k1 e1", "b1 c960 i7 o320 k1", "b1 c320 i7 o1280 k1 e1"),
        "squeezenet": ("b1 c256 i27 o32 k1 e1", "b1 c512 i13 o64 k1 e1"),
    }),
    "conv2d_nhwc": Kind(conv2d_nhwc, {
        "resnet": ("b1 c64 i56 o64 k3 p1", "b1 c128 i28 o128 k3 p1", "b1 c256 i14 o1024 k1", "b1 c3 i224 o64 k7 s2 p3"),
        "yolo": ("b1 c32 i52 o64 k3 p1", "b1 c128 i26 o64 k1"),
    }),
    "depthwise": Kind(depthwise, {
        "mobilenet": ("b1 c32 i112 k3 s1 p1 e1", "b1 c96 i112 k3 s2 p1 e1", "b1 c144 i56 k3 s1 p1 e1", "b1 c144 i56 k3 s2 p1", "b1 c192 i28 k3 s1 p1 e1",
                      "b1 c384 i14 k3 s1 p1", "b1 c576 i14 k3 s2 p1 e1", "b1 c960 i7 k3 s1 p1 e1"),
        "efficientnet": ("b1 c144 i56 k5 s2 p2", "b1 c240 i28 k5 s1 p2", "b1 c480 i14 k5 s1 p2", "b1 c1152 i7 k5 s1 p2"),
        "convnext": ("b1 c96 i56 k7 s1 p3", "b1 c384 i14 k7 s1 p3"),
    }),
    "grouped": Kind(conv2d, {
        "resnext": ("b1 c128 i56 o128 k3 p1 g32 e1", "b1 c256 i28 o256 k3 p1 g32 e1", "b1 c512 i14 o512 k3 p1 g32", "b1 c256 i56 o256 k3 s2 p1 g32"),
        "shufflenet": ("b1 c240 i28 o240 k1 g3", "b1 c480 i14 o480 k1 g4"),
        "paper": ("b1 c64 i56 o128 k3 s2 p1 g4", "b1 c128 i28 o256 k3 s2 p1 g4"),
    }),
    "dilated": Kind(conv2d, {
        "deeplab": ("b1 c128 i28 o128 k3 p2 d2 e1", "b1 c256 i28 o128 k3 p6 d6", "b1 c64 i56 o64 k3 p2 d2"),
        "paper": ("b1 c3 i224 o64 k7 s2 p3 d2", "b1 c256 i14 o256 k3 p1 d2"),
    }),
    "transposed": Kind(transposed, {
        "dcgan": ("b1 c512 i4 o256 k4 s2 p1", "b1 c256 i8 o128 k4 s2 p1", "b1 c128 i16 o64 k4 s2 p1", "b1 c64 i32 o3 k4 s2 p1"),
        "unet": ("b1 c256 i14 o128 k2 s2 p0", "b1 c128 i28 o64 k2 s2 p0"),
    }),
    "conv1d": Kind(conv1d, {
        "whisper": ("b1 c80 i1500 o384 k3 p1", "b1 c384 i1500 o384 k3 s2 p1"),
        "wavenet": ("b1 c64 i1000 o128 k2 d8", "b1 c128 i500 o128 k3 p4 d4"),
        "paper": ("b1 c64 i256 o128 k3 s2 p1", "b1 c256 i64 o256 k3 p1"),
    }),
    "conv3d": Kind(conv3d, {
        "c3d": ("b1 c64 n8 i28 o64 k3 p1", "b1 c128 n4 i14 o256 k3 p1", "b1 c256 n4 i7 o256 k3 p1"),
        "r3d": ("b1 c3 n8 i112 o64 k3 s2 p1", "b1 c64 n4 i28 o128 k1 s2"),
    }),
    "capsule": Kind(capsule, {"paper": ("b1 c32 i16 o32 k3 s2 p1", "b1 c16 i8 o32 k3 s2 p1", "b1 c8 i12 o16 k3 s1 p1")}),
    "dense": Kind(dense, {
        "bert": ("r128 a768 o768 e1", "r128 a768 o3072 e2", "r64 a3072 o768", "r128 a512 o512", "r128 a128 o512 e2"),
        "vit": ("r197 a768 o768", "r197 a384 o1536 e2", "r50 a768 o2304"),
        "resnet": ("r1 a2048 o1000", "r1 a512 o1000", "r16 a2048 o1000"),
        "vgg": ("r1 a4096 o4096 e1", "r4 a4096 o1000"),
        "dlrm": ("r128 a479 o1024 e1", "r128 a1024 o256 e1", "r256 a13 o512 e1", "r64 a256 o1"),
    }),
    "matmul": Kind(matmul, {
        "blas": ("r512 m512 a512", "r256 m256 a256", "r1000 m1000 a500", "r127 m127 a127", "r4096 m16 a512", "r16 m2048 a512",
                 "r64 m64 a4096", "r384 m384 a384"),
        "linpack": ("r640 m640 a640", "r320 m320 a320", "r1024 m256 a512", "r256 m1024 a256", "r512 m512 a128", "r768 m768 a256", "r128 m512 a1024"),
    }),
    "int8_matmul": Kind(int8_matmul, {"blas": ("r512 m512 a512", "r128 m768 a768", "r1000 m256 a384")}),
    "batch_matmul": Kind(batch_matmul, {
        "bert": ("b12 r128 m128 a64 t1", "b12 r128 m64 a128 t0", "b16 r64 m64 a64 t1"),
        "vit": ("b6 r197 m197 a64 t1", "b6 r197 m64 a197 t0"),
        "paper": ("b1 r128 m128 a128 t0", "b16 r128 m128 a128 t0"),
    }),
    "softmax": Kind(softmax, {
        "bert": ("r1536 m128", "r768 m64"), "vit": ("r1182 m197",), "vgg": ("r1 m1000", "r64 m1000"), "gpt": ("r64 m2048",)
    }),
    "layer_norm": Kind(layer_norm, {"bert": ("r128 m768", "r64 m512"), "vit": ("r197 m384",), "gpt": ("r64 m1600",), "convnext": ("r3136 m96",)}),
    "matrix_norm": Kind(matrix_norm, {"paper": ("b1 r256 m256", "b1 r1024 m1024", "b16 r128 m128")}),
    "pool": Kind(pool, {
        "resnet": ("b1 c64 i112 k3 s2 p1 x0", "b1 c512 i7 k7 s1 p0 x1"), "vgg": ("b1 c128 i112 k2 s2 p0 x0",), "inception": ("b1 c192 i35 k3 s1 p1 x1",),
        "densenet": ("b1 c256 i28 k2 s2 p0 x1",), "mobilenet": ("b1 c1280 i7 k7 s1 p0 x1",),
    }),
    "attention_scores": Kind(attention_scores, {"bert": ("b12 r128 a64", "b8 r64 a64"), "vit": ("b6 r197 a64",), "gpt": ("b4 r256 a64",)}),
    "conv2d_bn": Kind(conv2d_bn, {
        "yolo": ("b1 c32 i104 o64 k3 s2 p1", "b1 c64 i52 o128 k3 p1", "b1 c128 i26 o256 k3 s2 p1", "b1 c256 i13 o512 k3 p1", "b1 c128 i26 o64 k1",
                 "b1 c3 i208 o32 k3 p1"),
        "cifar": ("b1 c16 i32 o16 k3 p1", "b1 c64 i8 o64 k3 p1"),
    }),
    "depthwise_nhwc": Kind(depthwise_nhwc, {
        "mobilenet_192": ("b1 c32 i96 k3 s1 p1", "b1 c96 i96 k3 s2 p1", "b1 c144 i48 k3 s1 p1", "b1 c192 i24 k3 s1 p1", "b1 c384 i12 k3 s1 p1",
                          "b1 c120 i40 k5 s1 p2"),
    }),
    "drawn": Kind(drawn, {"random": tuple(f"z{seed}" for seed in range(DRAWN) if seed not in NOT_LEARNED)}),
    "network_layer": Kind(network_layer, {"random": tuple(f"z{seed}" for seed in LAYER_SEEDS)}),
    "tall_product": Kind(tall_product, {"random": tuple(f"z{seed}" for seed in TALL_SEEDS)}),
    "window_layer": Kind(window_layer, {"random": tuple(f"z{seed}" for seed in WINDOW_SEEDS)}),
    "transposed_nhwc": Kind(transposed_nhwc, {"pix2pix": ("b1 c512 i8 o256 k4 s2 p1", "b1 c256 i16 o128 k4 s2 p1"), "unet": ("b1 c64 i28 o32 k2 s2 p0",)}),
}  # fmt: skip
"""Sizes are written as letters and numbers, as in `_LETTERS`."""

_LETTERS = {
    "b": "batch", "c": "channels", "i": "image", "o": "outputs", "k": "kernel", "s": "stride", "p": "padding", "d": "dilation", "g": "groups", "e": "epilogue",
    "r": "rows", "m": "columns", "a": "inputs", "n": "depth", "t": "transpose", "x": "average", "z": "seed",
}  # fmt: skip


def tasks_for(target: Target) -> list[DatasetTask]:
    """The tasks that a model learns from for a target: layers for boards, operators for processors."""
    if target.prior.family != BOARDS:
        return dataset_tasks()
    return [_task(kind, "drawn", sizes, sizes) for kind, sizes in drawn_layers(target)]


def dataset_tasks(neighbours: int = 2, seed: int = 0) -> list[DatasetTask]:
    """Every size of the tables, and `neighbours` drawn near each. No duplicates; kinds alternate, so that the first hundred tasks include all of them."""
    return list(_dataset_tasks(neighbours, seed))


@lru_cache(maxsize=1)  # drawing them takes seconds
def _dataset_tasks(neighbours: int, seed: int) -> tuple[DatasetTask, ...]:
    by_kind = {name: list(_of_kind(name, kind, neighbours, seed)) for name, kind in KINDS.items()}
    longest = max(map(len, by_kind.values()))
    spread = [(place * longest // len(tasks), task) for tasks in by_kind.values() for place, task in enumerate(tasks)]
    return tuple(dict.fromkeys(task for _, task in sorted(spread, key=lambda one: one[0])))


def _of_kind(name: str, kind: Kind, neighbours: int, seed: int) -> Iterator[DatasetTask]:
    given = [(network, _parsed(text)) for network, texts in kind.networks.items() for text in texts]
    for network, sizes in given:
        yield _task(name, network, sizes, sizes)
    for network, sizes in given:
        digest = hashlib.sha256(f"{name} {sorted(sizes.items())} {seed}".encode()).digest()
        rng = np.random.default_rng(list(digest))
        found = 0
        for _ in range(50):
            if found == neighbours:
                break
            drawn = _neighbour(sizes, rng)
            if drawn != sizes and _works(kind, drawn):
                found += 1
                yield _task(name, network, drawn, sizes)


def _task(kind: str, network: str, sizes: Sizes, base: Sizes) -> DatasetTask:
    return DatasetTask(kind, network, tuple(sizes.items()), DatasetTask(kind, network, tuple(base.items()), "").name)


def _parsed(text: str) -> Sizes:
    return {_LETTERS[word[0]]: int(word[1:]) for word in text.split()}


def _neighbour(sizes: Sizes, rng: np.random.Generator) -> Sizes:
    """Random replacements for large numbers: mostly multiples of 8 for channels, anything for images."""
    drawn = dict(sizes)
    for key in JITTERED:
        if key not in sizes or sizes[key] <= 4 and key != "batch":
            continue
        if key == "batch":
            drawn[key] = sizes[key] * int(rng.choice([1, 1, 1, 2, 4])) if sizes[key] == 1 else max(1, int(sizes[key] * rng.choice([0.5, 1, 1, 1.5])))
        elif rng.random() < 0.6:
            step = 1 if key == "image" or rng.random() < 0.15 else 8
            drawn[key] = max(step, round(sizes[key] * 2 ** rng.uniform(-1, 0.8) / step) * step)
    if sizes.get("groups", 1) > 1:
        for key in ("channels", "outputs"):
            drawn[key] = max(1, drawn[key] // sizes["groups"]) * sizes["groups"]
    return drawn


def _works(kind: Kind, sizes: Sizes) -> bool:
    """Whether an operator of these sizes can be declared, and is not too large."""
    from ansor.ir.dag import Dag

    try:
        return Dag(kind.declare(**sizes)).flop <= MAX_FLOP
    except DeclarationError:
        return False
