"""The kind `vta`: its cores, its texts, and who decides what is searched."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.errors import TargetError
from ansor.ir.dag import Dag
from ansor.targets.base import find_kind, parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor
from ansor.vta.configuration import CORE_32, DEFAULT, Configuration
from ansor.zoo.operators import matmul
from tests.vta_declarations import conv2d, dense, depthwise


def test_cores_by_name_and_by_size() -> None:
    assert configuration_of(parse_target("vta")) == DEFAULT and configuration_of(parse_target("vta -core=32")) == CORE_32
    target = parse_target("vta -core=block=5,weight_bytes=19")
    assert configuration_of(target) == Configuration(block=5, weight_bytes=19) and str(target) == "vta -core=block=5,weight_bytes=19"
    assert parse_target(str(target)) == target and target.capacities["wgt"] == 1 << 19 and "block=32" in target.rules[0]
    for same in ("vta -core=weight_bytes=19,block=5", "vta -core=batch=0,block=5,weight_bytes=19"):
        assert parse_target(same) == target
    assert parse_target("vta -core=block=4") == parse_target("vta") and parse_target("vta -core=block=5") == parse_target("vta -core=32")
    assert str(target.unit) == "cycles (chisel)" and target.device == "vta-sim" and not target.open_loops
    for text in ("vta -core=17", "vta -core=block=x", "vta -core=size=3,block=4", "vta -core=block=5,,"):
        with pytest.raises(TargetError, match="cores are default, 32, 64"):
            parse_target(text)


def test_what_is_searched_is_what_rules_say() -> None:
    task = SearchTask(tensors=conv2d((1, 64, 28, 28), 64, 3, pad=1), target="vta")
    names = {choice.name for space in task.spaces for choice in space.sketch.choices}
    assert {name for name in names if not name.startswith("out.")} == {"acc.ci", "inp copies", "wgt copies", "acc copies"} and len(names) == 7
    assert len(task.spaces) == 6 and len(SearchTask(tensors=dense(8, 16, 16), target="vta").spaces) == 2
    assert find_kind("cpu").codegen.cost is None and parse_target("cpu").open_loops


def _greatest(shape: tuple[int, ...]) -> list[te.Tensor]:
    """Maxima of three along dimension 0, with -128 around."""
    v, top = te.placeholder(shape, "int8", name="v"), te.reduce_axis(3, "t")
    around = (shape[0] + 2, *shape[1:])
    low = te.compute(around, lambda i, *at: te.if_then_else(te.all(i >= 1, i <= shape[0]), v[(i - 1, *at)], te.const(-128, "int8")), name="p")
    most = te.compute(shape, lambda i, *at: te.max(low[(i + top, *at)].astype("int32"), axis=top), name="m")
    return [v, te.compute(shape, lambda *at: most[at].astype("int8"), name="y")]


def test_what_no_core_computes_is_said_before_anything_is_built() -> None:
    target = parse_target("vta")
    assert target.refusal(Dag(conv2d((1, 64, 28, 28), 64, 3, pad=1))) == ""
    assert target.refusal(Dag(matmul(8, 8, 8))).startswith("it makes C of float32; a VTA core makes one tensor of int8")
    x, k = te.placeholder((8, 8), "float32", name="x"), te.reduce_axis(8, "k")
    assert "it reads x of float32" in target.refusal(Dag([x, te.compute((8, 8), lambda i, j: x[i, j].astype("int8"), name="y")]))
    a = te.placeholder((8, 8), "int8", name="a")
    assert "one reduction, which cannot be its result" in target.refusal(Dag([a, te.compute((8,), lambda i: te.max(a[i, k], axis=k), name="y")]))
    assert target.refusal(Dag(_grouped(16))) == ""
    assert "acc has 4 groups of 8 channels in and 8 out, but blocks have 16, and w is no" in target.refusal(Dag(_grouped(8)))
    halves = te.compute((8, 8), lambda i, j: te.max(a[i // 2, k].astype("int32"), axis=k), name="h")
    said = target.refusal(Dag([a, te.compute((8, 8), lambda i, j: halves[i, j].astype("int8"), name="y")]))
    assert said.startswith("it reads a at a divided index; a VTA core supports this only for channels in groups: upsample on the host")
    assert target.refusal(Dag(_greatest((8, 16)))) == ""
    assert "m reads p at other places along dimension 1, where a VTA core has channels" in target.refusal(Dag(_greatest((8,))))
    said = target.refusal(Dag(conv2d((1, 16, 6, 6), 16, 3, pad=1, number=-4)))
    assert said == (
        "padded, which is multiplied by weights, has -4 around it; a LOAD of a VTA core pads with 0: "
        "pad with 0, and add -4 times the weights outside the tensor to the bias of each place"
    )
    assert target.refusal(Dag(depthwise((1, 16, 6, 6), 3, pad=1, number=-4))) == ""
    assert target.refusal(Dag(conv2d((1, 16, 6, 6), 16, 3, pad=15))) == ""
    said = target.refusal(Dag(conv2d((1, 16, 6, 6), 16, 3, pad=16)))
    assert said.startswith("padded has a border of 16 rows or columns; a LOAD of a VTA core pads with up to 15: make the wide border on the host")
    assert target.refusal(Dag(conv2d((1, 1, 6, 6), 8, 3, pad=1))) == ""
    v = te.placeholder((8,), "int8", name="v")
    below = te.compute((24,), lambda i: te.if_then_else(i < 8, v[i], te.const(0, "int8")), name="p")
    said = target.refusal(Dag([v, te.compute((24,), lambda i: te.maximum(below[i], 0).astype("int8"), name="y")]))
    assert said.startswith("p needs a border, or parts that are computed differently; a VTA core pads only what it reduces")


def test_what_is_computed_ahead_of_a_reduction_is_said() -> None:
    target, x = parse_target("vta"), te.placeholder((1, 16, 9, 9), "int8", name="x")
    w, wide = te.placeholder((16, 16, 3, 3), "int8", name="w", constant=True), nn.cast(x, "int32")
    said = target.refusal(Dag([x, _narrowed(nn.pool2d(wide, 3, 2, padding=1))]))
    assert said.startswith("pool2d reads pad, computed before it; a VTA core reduces what it reads: pad what is read, convert where it is reduced")
    assert target.refusal(Dag([x, _narrowed(nn.pool2d(wide, 3, 2))])) == ""
    said = target.refusal(Dag([x, nn.pool2d(x, 3, 2)]))
    assert said.endswith("which cannot be its result: reduce x[...].astype('int32'), and convert the result with .astype('int8')")
    said = target.refusal(Dag([x, w, _narrowed(nn.conv2d(wide, nn.cast(w, "int32")))]))
    assert said.startswith("conv2d multiplies cast and cast_1, computed before it; a VTA core multiplies int8 as it reads them: convert inside the sum")
    assert target.refusal(Dag([x, w, _narrowed(nn.conv2d(x, w, padding=1, out_dtype="int32"))])) == ""
    said = target.refusal(Dag([x, w, _narrowed(nn.conv2d(x, w, out_dtype="int64"))]))
    assert said.startswith("it sums conv2d in int64; a VTA core sums in int32")
    places = te.placeholder((4,), "int32", name="places")
    said = target.refusal(Dag([x, places, te.compute((4, 9), lambda i, j: x[0, places[i], 0, j], name="y")]))
    assert said == "it reads x at indices from places; a VTA core reads regions that are known at compile time: do this on the host"


def _narrowed(sums: Tensor) -> Tensor:
    return te.compute(sums.shape, lambda *i: te.max(te.min(sums[i] >> 4, 127), -128).astype("int8"), name="y")


def _grouped(size: int) -> list[Tensor]:
    """Groups of so many of 32 channels."""
    a, w, c = te.placeholder((4, 32), "int8", name="a"), te.placeholder((32, size), "int8", name="w"), te.reduce_axis(size, "c")
    acc = te.compute((4, 32), lambda n, o: te.sum(a[n, o // size * size + c].astype("int32") * w[o, c].astype("int32"), axis=c), name="acc")
    return [a, w, te.compute((4, 32), lambda n, o: acc[n, o].astype("int8"), name="y")]
