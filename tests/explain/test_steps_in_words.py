"""The text about a program is checked against its state, and covers all of it."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.explain.steps_in_words import in_words, structure_of
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, Inlined
from ansor.schedule.steps import (
    CacheRead,
    CacheWrite,
    ComputeInline,
    ComputeRoot,
    Fuse,
    PackInside,
    Parallel,
    PragmaUnroll,
    Rfactor,
    Split,
    Step,
    StorageAlign,
    Unroll,
    Vectorize,
)
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -mcpu=znver4 -threads=4")
WORKLOADS = {
    "matmul": workloads.matmul(64, 64, 64),
    "tall": workloads.matmul(4, 4, 512),
    "conv2d_bn_relu": workloads.conv2d_nchw_bn_relu(1, 14, 14, 16, 16, 3, 1, 1),
    "softmax": workloads.softmax_nm(16, 64),
    "norm": workloads.norm(1, 64, 64),
}


def _relu() -> list[Tensor]:
    a = te.placeholder((8, 16), name="a")
    b = te.compute((8, 16), lambda i, j: a[i, j] + 1.0, name="b")
    return [a, te.compute((8, 16), lambda i, j: b[i, j] * 2.0, name="c")]


@pytest.mark.parametrize("name", WORKLOADS)
def test_words_and_state_agree(name: str) -> None:
    for sketch in spaces(Dag(WORKLOADS[name]), TARGET):
        row = tuple(int(size) - 1 for size in sketch.sizes)
        facts = in_words(sketch, row)
        state = sketch.state
        for stage in state.stages:
            texts = [one.text for one in facts if one.stage == stage.name]
            place = stage.placement
            inside = f"computed inside {place.stage} at loop {place.loop}" if isinstance(place, At) else "-"
            assert [text for text in texts if text.startswith("computed inside")] == ([inside] if isinstance(place, At) else [])
            assert ("inlined: computed where it is read" in texts) == isinstance(place, Inlined)
            for how, tensors in (("ahead of time", stage.packed.ahead), ("inside the kernel", stage.packed.inside)):
                assert [text.split()[1] for text in texts if how in text] == list(tensors)
            assert any(text.startswith("tiled SSRSRS: ") for text in texts) == (structure_of(stage) == "SSRSRS")
            vectors = [text for text in texts if "vectors" in text]
            assert len(vectors) == (1 if stage.annotations.vectorize else 0) and not any("no vectors" in text for text in vectors)
            assert any("(rfactor)" in text for text in texts) == (stage.role == "rfactor_final")
        assert {one.stage for one in facts} <= {stage.name for stage in state.stages}


@pytest.mark.parametrize(
    ("tensors", "steps", "expected"),
    [
        (workloads.matmul(8, 8, 8), [CacheWrite("C")], [("C", "accumulated in a private tile and written once")]),
        (workloads.matmul(8, 8, 8), [PackInside("C", "B"), CacheWrite("C")], [
            ("C_local", "reads B packed inside the kernel by an earlier loop nest, in the order of its loops"),
            ("C", "accumulated in a private tile and written once"),
        ]),
        (workloads.matmul(8, 8, 64), [Split("C", "k", (16,), 2), Rfactor("C", "k_1", 2)], [
            ("C_rf", "loops split and ordered i j k_1 k_0"), ("C", "partial results along k_1 (rfactor), combined by a second loop nest"),
        ]),
        (workloads.matmul(8, 8, 8), [Fuse("C", ("i", "j")), Parallel("C", 1)], [("C", "i, j fused into one loop"), ("C", "i_j_f in parallel")]),
        (workloads.matmul(8, 8, 8), [Parallel("C", 0), Unroll("C", "k"), PragmaUnroll("C", 16)], [
            ("C", "on one thread"), ("C", "loops ordered i j k"), ("C", "k unrolled"), ("C", "reduction unrolled up to 16 statements"),
        ]),
        (workloads.matmul(8, 8, 64), [Vectorize("C", "k", 1), PragmaUnroll("C", 0)], [("C", "vectors of partial results along the reduction k")]),
        (_relu(), [ComputeInline("b"), Vectorize("c", "j", 0)], [("b", "inlined: computed where it is read"), ("c", "no vectors")]),
        (_relu(), [ComputeInline("b"), ComputeRoot("b"), StorageAlign("b", 32, 0)], [
            ("b", "inlined: computed where it is read"), ("b", "computed in a separate loop nest"), ("b", "rows padded to 0 modulo 32 elements"),
        ]),
        (_relu(), [CacheRead("a", ("b",))], [("a_local", "a copy of a for b")]),
    ],
)  # fmt: skip
def test_each_step_has_its_words(tensors: list[Tensor], steps: list[Step], expected: list[tuple[str, str]]) -> None:
    assert [(one.stage, one.text) for one in in_words(Sketch(Dag(tensors)).then(*steps), ())] == expected


def test_structures() -> None:
    plain = Sketch(Dag(workloads.matmul(64, 64, 64)))
    assert structure_of(plain.state["C"]) == ""
    assert structure_of(plain.then(Split("C", "j", (16,), 2)).state["C"]) == "SSR", "a reduction that is not split still counts"
