"""What each step does to the loops, and what it says when it does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir import interpreter
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Node
from ansor.schedule.choice import level_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import (
    STEPS,
    Buffered,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    FollowSplit,
    Fuse,
    Pack,
    PackInside,
    Parallel,
    PragmaUnroll,
    Reorder,
    Rfactor,
    SetScope,
    Split,
    SplitOuter,
    Step,
    StorageAlign,
    Tensorize,
    Unroll,
    Vectorize,
    register,
    step_from_json,
)
from ansor.te import workloads


def matmul() -> Sketch:
    a, b = te.placeholder((12, 8), name="A"), te.placeholder((8, 10), name="B", constant=True)
    r = te.reduce_axis((0, 8), name="k")
    c = te.compute((12, 10), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return Sketch(Dag([a, b, te.compute((12, 10), lambda i, j: te.max(c[i, j], 0.0), name="D")]))


def loops_of(sketch: Sketch) -> list[str]:
    """Every loop as `variable extent`, in program order."""
    found: list[str] = []

    def visit(nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, For):
                found.append(f"{node.var.name} {node.var.extent}")
                visit(node.body)

    visit(sketch.lower_row(()).body)
    return found


D = ["D_i 12", "D_j 10"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ["C_i 12", "C_j 10", "C_k 8", *D]),
        ([Split("C", "i", (2, 3), 3)], ["C_i_0 2", "C_i_1 2", "C_i_2 3", "C_j 10", "C_k 8", *D]),
        ([Split("C", "j", (4,), 2)], ["C_i 12", "C_j_0 3", "C_j_1 4", "C_k 8", *D]),  # rounded up, guarded
        ([SplitOuter("C", "i", (2, 3), 3)], ["C_i_0 2", "C_i_1 3", "C_i_2 2", "C_j 10", "C_k 8", *D]),
        ([SplitOuter("C", "j", (4,), 2)], ["C_i 12", "C_j_0 4", "C_j_1 3", "C_k 8", *D]),  # four pieces, whatever their length
        ([SplitOuter("C", "i", (4,), 2), Split("D", "i", (6,), 2), ComputeAt("C", "D", "i_0")],
         ["D_i_0 2", "C_i_0 4", "C_i_1 2", "C_j 10", "C_k 8", "D_i_1 6", "D_j 10"]),  # of the region
        ([FollowSplit("C", "i", (2, 3), 2)], ["C_i_0 2", "C_i_1 6", "C_j 10", "C_k 8", *D]),  # the product of both lengths
        ([Fuse("C", ("i", "j"))], ["C_i_j_f 120", "C_k 8", *D]),
        ([Reorder("C", ("k", "j", "i"))], ["C_k 8", "C_j 10", "C_i 12", *D]),
        ([ComputeAt("C", "D", "i")], ["D_i 12", "C_i 1", "C_j 10", "C_k 8", "D_j 10"]),
        ([ComputeAt("C", "D", "i"), ComputeRoot("C")], ["C_i 12", "C_j 10", "C_k 8", *D]),
        ([CacheWrite("C")], ["C_local_i 12", "C_local_j 10", "C_local_k 8", "C_i 12", "C_j 10", *D]),
        ([CacheRead("A", ("C",))], ["A_local_i0 12", "A_local_i1 8", "C_i 12", "C_j 10", "C_k 8", *D]),
        ([Split("C", "k", (4,), 2), Rfactor("C", "k_1", 2)], ["C_rf_i 12", "C_rf_j 10", "C_rf_k_1 4", "C_rf_k_0 2", "C_i 12", "C_j 10", "C_k_1 4", *D]),
    ],
)
def test_loops_after_steps(steps: list[Step], expected: list[str]) -> None:
    assert loops_of(matmul().then(*steps)) == expected


def test_annotations_reach_the_loops() -> None:
    text = str(matmul().then(Parallel("D", 2), Vectorize("D", "j"), Unroll("C", "k"), PragmaUnroll("C", 16)).lower_row(()))
    assert "parallel for D_i in 12" in text and "parallel vectorized for D_j in 10" in text and "unrolled for C_k in 8  (unroll up to 16)" in text


def test_rows_may_be_padded() -> None:
    (stored,) = (b for b in matmul().then(StorageAlign("C", 16, 0)).lower_row(()).intermediates if b.name == "C")
    assert stored.shape == (12, 16)


def test_a_packed_constant_is_stored_in_loop_order() -> None:
    steps = (Pack("C", "B"), Split("C", "j", (5,), 2), Reorder("C", ("j_0", "i", "k", "j_1")))
    (stored,) = (b for b in matmul().then(*steps).lower_row(()).arguments if b.name == "B")
    assert stored.shape == (2, 8, 5)  # j_0, k, j_1
    assert stored.pack == ((0, 1, 0), (5, 0, 1))  # B's k and j, in terms of them


def test_an_operand_packed_inside_is_copied_in_loop_order_with_zeros_beyond_its_end() -> None:
    steps = (PackInside("C", "A"), Split("C", "i", (5,), 2), Reorder("C", ("i_0", "j", "k", "i_1")))
    loops = matmul().then(*steps).lower_row(())
    (stored,) = (b for b in loops.intermediates if b.name == "A_packed")
    assert stored.shape == (3, 8, 5)  # i_0, k, i_1 of 12 rows
    assert "A_packed" in str(loops).split("C[")[0], "the copy comes first"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([Split("X", "i", (2,), 2)], "asked for stage 'X', which does not exist; the stages are C, D"),
        ([Split("C", "x", (2,), 2)], "asked to split loop 'x' of stage C, whose loops are i, j, k; name one of these"),
        ([Split("C", "i", (2, 2), 2)], "into 2 parts of lengths (2, 2); give parts - 1 lengths >= 1"),
        ([Split("C", "i", (0,), 2)], "give parts - 1 lengths >= 1"),
        ([FollowSplit("C", "i", (2,), 1)], "it takes at least 2"),
        ([Fuse("C", ("i", "k"))], "which are not consecutive in i, j, k"),
        ([Fuse("C", ("j", "k"))], "which mix spatial and reduction loops; fuse one kind"),
        ([Reorder("C", ("i", "j"))], "but its loops are i, j, k; list each once"),
        ([ComputeAt("C", "D", "i"), Reorder("D", ("j", "i"))], "reorder before compute_at"),
        ([ComputeAt("C", "D", "i"), Split("D", "i", (2,), 2)], "where stage C is computed; do this before compute_at"),
        ([ComputeAt("D", "C", "i")], "it is an output, which is kept whole; leave it at root"),
        ([ComputeInline("C")], "which is a reduction; compute it at a loop instead"),
        ([ComputeInline("D")], "which is an output; leave it at root"),
        ([CacheWrite("C"), CacheWrite("C_local")], "was changed or moved already; do this first"),
        ([CacheRead("A", ("D",))], "asked to copy A for stage D, which does not read it; name stages that do"),
        ([CacheRead("A", ())], "for no stage; name at least one reader"),
        ([PackInside("C", "A"), CacheRead("A", ("C",))], "which reads it packed already; copy it first, and pack the copy"),
        ([Rfactor("C", "i", 2)], "asked to rfactor loop i of stage C, which is not a reduction loop; name one"),
        ([Rfactor("C", "k", 3)], "to position 3; it takes 0..2"),
        ([Rfactor("C", "k", 2), ComputeAt("C_rf", "C", "k")], "each iteration would compute all of them again; choose a spatial loop"),
        ([Rfactor("C", "k", 2), CacheRead("C_rf", ("C",))], "holds partial results of an rfactor"),
        ([Parallel("C", 3)], "only leading spatial loops can be"),
        ([ComputeAt("C", "D", "i"), Parallel("C", 1)], "which is computed inside another; annotate that one"),
        ([Vectorize("C", "i")], "which is not its innermost (k); reorder first"),
        ([Unroll("C", "k"), Unroll("C", "k")], "asked to unroll loop k of stage C twice"),
        ([StorageAlign("D", 16, 0)], "an output whose layout the caller determines; align an intermediate"),
        ([StorageAlign("C", 16, 16)], "give factor >= 1 and 0 <= offset < factor"),
        ([PackInside("D", "A")], "it has to be an input, or a stage at root, that this stage reads once, at one own axis per dimension"),
        ([PackInside("C", "A"), PackInside("C", "A")], "asked to pack A inside the kernel for stage C"),
        ([Pack("C", "A")], "it has to be a constant that only this stage reads, once, at an index that moves evenly with"),
    ],
)
def test_a_step_that_does_not_fit_says_why(steps: list[Step], words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        print(matmul().then(*steps).state)
    assert words in str(caught.value)


def test_a_stage_that_packs_is_not_inlined() -> None:
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((4, 8), name="w", constant=True)
    scaled = te.compute((4, 8), lambda i, j: x[i, j] * w[i, j], name="scaled")
    sketch = Sketch(Dag([x, w, te.compute((4, 8), lambda i, j: scaled[i, j] + 1.0, name="y")]))
    with pytest.raises(ScheduleError, match="whose loops order the packed copy of w"):
        print(sketch.then(Pack("scaled", "w"), ComputeInline("scaled")).state)


def test_a_stage_read_elsewhere_is_not_computed_inside_one_reader() -> None:
    sketch = Sketch(Dag(workloads.softmax_nm(4, 8)))
    greatest, exponent, total, out = (stage.name for stage in sketch.state.stages)
    with pytest.raises(ScheduleError, match=f"it is read by {total}, {out}; choose a loop around all readers"):
        print(sketch.then(ComputeAt(exponent, out, "i0")).state)
    inside = sketch.then(ComputeAt(total, out, "i0"), ComputeAt(exponent, out, "i0"), ComputeAt(greatest, out, "i0"))
    assert loops_of(inside)[0] == f"{out}_i0 4"
    with pytest.raises(ScheduleError, match="would be read outside it; move .* first"):
        print(inside.then(ComputeRoot(exponent)).state)


def test_partial_results_that_would_stay_empty_are_refused() -> None:
    with pytest.raises(ScheduleError, match="tiles are so uneven that some partial results would be empty; give lengths that divide"):
        matmul().then(Split("C", "k", (3,), 2), Fuse("C", ("k_0", "k_1")), Rfactor("C", "k_0_k_1_f", 2)).lower_row(())
    with pytest.raises(ScheduleError, match="would be empty"):
        matmul().then(SplitOuter("C", "k", (5,), 2), Rfactor("C", "k_0", 2)).lower_row(())  # two in each of four, none in the fifth


@pytest.mark.parametrize("kept", ["k_0", "k_1"])
def test_partial_results_of_lengths_that_do_not_divide(kept: str) -> None:
    sketch = matmul().then(Split("C", "k", (3,), 2), Rfactor("C", kept, 2))
    inputs = {"A": np.arange(96.0, dtype=np.float32).reshape(12, 8), "B": np.arange(80.0, dtype=np.float32).reshape(8, 10)}
    found = interpreter.run(sketch.lower_row(()), inputs)["D"]
    assert np.array_equal(found, np.maximum(inputs["A"] @ inputs["B"], 0.0))


STEP_EXAMPLES: list[Step] = [
    Split("C", "i", (2, 3), 3),
    Split("C", "i", "C.i", 3),
    SplitOuter("C", "i", (4,), 2),
    FollowSplit("C", "i", "C.i", 2),
    Fuse("C", ("i", "j")),
    Reorder("C", ("j", "i")),
    ComputeAt("C", "D", "i"),
    ComputeInline("C"),
    ComputeRoot("C"),
    CacheWrite("C"),
    CacheRead("A", ("C", "D"), "packed"),
    Rfactor("C", "k", 1),
    Parallel("C", "C.parallel"),
    Vectorize("C", "j", 1),
    Unroll("C", "k"),
    PragmaUnroll("C", 16),
    StorageAlign("C", 16, 8),
    SetScope("C", "scratchpad"),
    Buffered("C", 2),
    Pack("C", "B"),
    PackInside("C", "A"),
    Tensorize("C", "j_1", "k_1", "avx2_pmaddwd_s8s8"),
]


def test_every_step_reads_back_from_json_and_from_its_text() -> None:
    assert {step.code for step in STEP_EXAMPLES} == set(STEPS)
    names: dict[str, Callable[..., Step]] = {type(step).__name__: type(step) for step in STEP_EXAMPLES}
    for step in STEP_EXAMPLES:
        assert step_from_json(step.to_json()) == step
        assert eval(str(step), dict(names)) == step


@pytest.mark.parametrize("entry", [None, [], ["??", "C"], [7], ["SP", "C"], {"code": "SP"}])
def test_what_is_no_step_is_refused(entry: object) -> None:
    with pytest.raises(ScheduleError, match="asked to read a"):
        step_from_json(entry)  # type: ignore[arg-type]  # on purpose


def test_codes_of_steps_do_not_collide() -> None:
    with pytest.raises(ScheduleError, match="which Split has"):
        register(type("Other", (Split,), {"code": "SP"}))


def test_a_row_outside_the_sketch_is_refused() -> None:
    with pytest.raises(ScheduleError, match="asked for row .3. of a sketch whose 0 choices"):
        matmul().lower_row((3,))


def eight_bit_products(length: int = 4, **dtypes: str) -> Sketch:
    x, y = te.placeholder((8, 16), dtypes.get("a", "int8"), name="A"), te.placeholder((16, 32), "int8", name="B", constant=True)
    product = te.nn.matmul(x, y, out_dtype="int32", name="C")
    return Sketch(Dag([x, y, product])).then(Split("C", "k", (length,), 2), Reorder("C", ("i", "k_0", "j", "k_1")))


def test_tensorize_marks_the_group_and_makes_the_lanes_vectors() -> None:
    text = str(eight_bit_products().then(Tensorize("C", "j", "k_1", "avx512_dpbusd_s8s8")).lower_row(()))
    assert "vectorized for C_j in 32" in text and "for C_k_1 in 4  (avx512_dpbusd_s8s8)" in text


@pytest.mark.parametrize(
    ("sketch", "step", "words"),
    [
        (eight_bit_products(), Tensorize("C", "j", "k_1", "abacus"), "which no known target has"),
        (eight_bit_products(), Tensorize("C", "i", "k_1", "avx512_dpbusd_s8s8"), "its innermost loops are j, k_1; reorder first"),
        (eight_bit_products(a="uint8"), Tensorize("C", "j", "k_1", "avx512_dpbusd_s8s8"), "the stage computes something else along them"),
        (eight_bit_products(8), Tensorize("C", "j", "k_1", "avx512_dpbusd_s8s8"), "which sums 4 elements; split it to that length"),
        (eight_bit_products(), Tensorize("C", "j", "k_1", "avx2_pmaddwd_s8s8"), "which sums 2 elements; split it to that length"),
    ],
)
def test_tensorize_takes_only_what_the_instruction_computes(sketch: Sketch, step: Step, words: str) -> None:
    with pytest.raises(ScheduleError, match="asked to compute") as caught:
        sketch.then(step).state  # noqa: B018  # applies the steps
    assert words in str(caught.value)


def test_the_name_of_a_sketch_is_its_json() -> None:
    sketch = matmul().then(Split("C", "i", (4,), 2), Split("C", "j", "C.j", 2), choices=[level_choice("C.j", (1, 2))])
    for one in (matmul(), sketch):
        assert one.name == json.dumps(one.to_json(), separators=(",", ":"))
