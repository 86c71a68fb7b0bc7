"""The rows of the operator suite, as data. `kinds` defines the operators; `operators` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import kinds
from kinds import Operator

BATCH = 16
GROUP_TITLES = {
    "ansor": "The ten operators of the Ansor paper", "resnet": "ResNet-50, batch 1", "mobilenet": "MobileNet-V2, batch 1", "bert": "BERT-base, 128 tokens",
    "subgraph": "Subgraphs", "odd": "Matrix products, round and odd", "int8": "int8 to int32 (peak of fp32)",
}  # fmt: skip
"""The heading of each group in the plot."""


@dataclass(frozen=True)
class Row:
    """One operator of one size.

    unusual: grouped, dilated, depthwise, transposed, capsule, norm; resnet_3x3_s1: a 3x3 layer of ResNet-18 with stride 1; fp32: False for int8;
    aim: the target for its speed relative to PyTorch eager.
    """

    name: str
    group: str
    operator: partial[Operator]
    unusual: bool = False
    resnet_3x3_s1: bool = False
    fp32: bool = True
    aim: float | None = None


def _ansor() -> list[Row]:
    """The ten operators of the Ansor paper (section 7.1), two sizes each, batch 1 and 16."""
    conv, transposed, b = kinds.conv, kinds.transposed_conv, BATCH
    usual = {
        "conv1d_256": partial(conv, 1, 64, (256,), 128, 3, 2, 1),
        "conv1d_64_b16": partial(conv, b, 256, (64,), 256, 5, 1, 2),
        "conv2d_224_b16": partial(conv, b, 3, (224, 224), 64, 7, 2, 3),
        "conv2d_14_b16": partial(conv, b, 256, (14, 14), 256, 3, 1, 1),
        "conv3d_224": partial(conv, 1, 3, (16, 224, 224), 64, 7, 2, 3),
        "conv3d_14": partial(conv, 1, 256, (16, 14, 14), 256, 3, 1, 1),
        "matmul_128": partial(kinds.matmul, 128, 128, 128),
        "batch_matmul_512_b16": partial(kinds.batch_matmul, b, 512, 512, 32),
    }
    unusual = {
        "grouped_56": partial(conv, 1, 64, (56, 56), 128, 3, 2, 1, 1, 4),
        "grouped_28_b16": partial(conv, b, 128, (28, 28), 128, 3, 1, 1, 1, 4),
        "dilated_224": partial(conv, 1, 3, (224, 224), 64, 7, 2, 3, 2),
        "dilated_14_b16": partial(conv, b, 256, (14, 14), 256, 3, 1, 2, 2),
        "depthwise_112": partial(conv, 1, 64, (112, 112), 64, 3, 2, 1, 1, 64),
        "depthwise_14_b16": partial(conv, b, 512, (14, 14), 512, 3, 2, 1, 1, 512),
        "transposed_4": partial(transposed, 1, 512, 4, 256, 4, 2, 1),
        "transposed_16_b16": partial(transposed, b, 128, 16, 64, 4, 2, 1),
        "capsule_16": partial(kinds.capsule, 1, 16, 32, 32, 3, 2, 1),
        "capsule_8_b16": partial(kinds.capsule, b, 8, 32, 32, 3, 1, 1),
        "norm_256": partial(kinds.matrix_norm, 1, 256, 256),
        "norm_1024": partial(kinds.matrix_norm, 1, 1024, 1024),
    }
    return _rows("ansor", usual) + _rows("ansor", unusual, unusual=True)


def _resnet() -> list[Row]:
    """The distinct convolutions of ResNet-50, batch 1; its 3x3 layers with stride 1 are also those of ResNet-18."""
    layers = [(7, 3, 64, 224, 2), (1, 64, 64, 56, 1)]
    for width, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        wide = 4 * width
        if width > 64:  # the first block of a stage halves the image in its 3x3 convolution and in its shortcut
            layers += [(1, 2 * width, width, 2 * size, 1), (3, width, width, 2 * size, 2), (1, 2 * width, wide, 2 * size, 2)]
        layers += [(3, width, width, size, 1), (1, width, wide, size, 1), (1, wide, width, size, 1)]
    return [_resnet_row(*layer) for layer in layers]


def _resnet_row(kernel: int, ci: int, co: int, size: int, stride: int) -> Row:
    name = f"resnet_{kernel}x{kernel}_{ci}_{co}_{size}" + ("_s2" if stride == 2 else "")
    plain = kernel == 3 and stride == 1
    return Row(name, "resnet", partial(kinds.conv, 1, ci, (size, size), co, kernel, stride, kernel // 2), resnet_3x3_s1=plain, aim=1.3 if plain else None)


def _mobilenet() -> list[Row]:
    """Convolutions of MobileNet-V2: depthwise and pointwise ones of each size."""
    depthwise = [(32, 112, 1), (96, 112, 2), (144, 56, 1), (192, 28, 1), (384, 14, 1), (576, 14, 2), (960, 7, 1)]
    pointwise = [(32, 16, 112), (16, 96, 112), (144, 24, 56), (192, 32, 28), (64, 384, 14), (160, 960, 7), (320, 1280, 7)]
    of_depth = {
        f"mobilenet_depthwise_{c}_{size}" + ("_s2" if stride == 2 else ""): partial(kinds.conv, 1, c, (size, size), c, 3, stride, 1, 1, c)
        for c, size, stride in depthwise
    }
    of_points = {f"mobilenet_pointwise_{ci}_{co}_{size}": partial(kinds.conv, 1, ci, (size, size), co, 1) for ci, co, size in pointwise}
    return _rows("mobilenet", of_depth, unusual=True) + _rows("mobilenet", of_points)


def _bert() -> list[Row]:
    """BERT-base on 128 tokens: 12 heads of 64, width 768, inner width 3072."""
    return _rows("bert", {
        "bert_dense_768_768": partial(kinds.dense, 128, 768, 768),
        "bert_dense_768_3072": partial(kinds.dense, 128, 768, 3072),
        "bert_dense_3072_768": partial(kinds.dense, 128, 3072, 768),
        "bert_query_key": partial(kinds.batch_matmul, 12, 128, 128, 64, True),
        "bert_attention_value": partial(kinds.batch_matmul, 12, 128, 64, 128),
        "bert_softmax": partial(kinds.softmax, 12, 128, 128),
        "bert_layer_norm": partial(kinds.layer_norm, 128, 768),
        "bert_gelu": partial(kinds.gelu, 128, 3072),
    })  # fmt: skip


def _subgraph() -> list[Row]:
    """The two subgraphs of the paper (section 7.2)."""
    return _rows("subgraph", {
        "conv_bn_relu_56": partial(kinds.conv_bn_relu, 1, 64, 56, 64, 3, 1, 1),
        "conv_bn_relu_14": partial(kinds.conv_bn_relu, 1, 256, 14, 512, 3, 2, 1),
        "attention_scores": partial(kinds.attention_scores, 1, 128, 12, 64),
        "attention_scores_b16": partial(kinds.attention_scores, BATCH, 128, 12, 64),
    })  # fmt: skip


def _odd() -> list[Row]:
    """Matrix products with unusual sizes, and two with usual ones. B is not constant."""
    aims = {127: 0.95, 255: 0.95, 512: 0.97, 1000: 0.95, 1021: None, 1024: 0.97}
    square = [Row(f"matmul_{size}", "odd", partial(kinds.matmul, size, size, size), aim=aim) for size, aim in aims.items()]
    return square + _rows("odd", {
        "matmul_4096x16x512": partial(kinds.matmul, 4096, 16, 512),
        "matmul_16x4096x512": partial(kinds.matmul, 16, 4096, 512),
        "matrix_vector_1024": partial(kinds.matrix_vector, 1024, 1024),
        "matrix_vector_4096": partial(kinds.matrix_vector, 4096, 4096),
    })  # fmt: skip


def _int8() -> list[Row]:
    """Matrix products of int8 with sums in int32, compared with `torch._int_mm`."""
    return [Row(f"int8_matmul_{size}", "int8", partial(kinds.int8_matmul, size), fp32=False, aim=aim) for size, aim in ((512, 1.0), (1024, None))]


def _rows(group: str, operators: dict[str, partial[Operator]], unusual: bool = False) -> list[Row]:
    return [Row(name, group, operator, unusual) for name, operator in operators.items()]


ROWS: tuple[Row, ...] = (*_ansor(), *_resnet(), *_mobilenet(), *_bert(), *_subgraph(), *_odd(), *_int8())
GROUPS: tuple[str, ...] = tuple(dict.fromkeys(row.group for row in ROWS))


def chosen(names: Sequence[str]) -> list[Row]:
    """The rows with these names and groups, in the suite's order; all if none are given."""
    return [row for row in ROWS if not names or row.name in names or row.group in names]
