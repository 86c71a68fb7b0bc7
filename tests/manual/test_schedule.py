"""What each call does to the loops, in whatever order calls are made, and what is said when one does not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from ansor import te
from ansor.errors import DeclarationError, ScheduleError
from ansor.ir.loops import For, Node
from ansor.manual.loop import AnyLoop, Loop
from ansor.manual.schedule import Schedule, create_schedule
from ansor.manual.scheduled_stage import ScheduledStage
from ansor.targets.base import find_intrinsic
from ansor.te.tensor import Tensor


class Matmul:
    """D = max(A B, 0) of 12 x 10, over 8, and its schedule."""

    def __init__(self) -> None:
        self.a, self.b = te.placeholder((12, 8), name="A"), te.placeholder((8, 10), name="B")
        self.k = te.reduce_axis((0, 8), name="k")
        self.c = te.compute((12, 10), lambda i, j: te.sum(self.a[i, self.k] * self.b[self.k, j], axis=self.k), name="C")
        self.d = te.compute((12, 10), lambda i, j: te.max(self.c[i, j], 0.0), name="D")
        self.s = create_schedule(self.d.op)
        self.i, self.j = self.c.op.axis
        self.di, self.dj = self.d.op.axis


def loops_of(schedule: Schedule) -> list[str]:
    """Every loop as `variable extent` with how it runs, in program order."""
    found: list[str] = []

    def visit(nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, For):
                runs = [word for word, flag in (("parallel", node.parallel), ("vectorized", node.vectorized), ("unrolled", node.unrolled)) if flag]
                found.append(" ".join([*runs, node.var.name, str(node.var.extent)]))
                visit(node.body)

    visit(schedule.sketch().lower_row(()).body)
    return found


C, D = ["C_i 12", "C_j 10", "C_k 8"], ["D_i 12", "D_j 10"]


def test_untouched() -> None:
    assert loops_of(Matmul().s) == [*C, *D]


def test_split_gives_outer_and_inner() -> None:
    m = Matmul()
    outer, inner = m.s[m.c].split(m.i, factor=5)
    assert loops_of(m.s) == ["C_i_0 3", "C_i_1 5", "C_j 10", "C_k 8", *D]
    assert (outer.extent, inner.extent, outer.name, repr(inner)) == (3, 5, "i_0", "Loop(C.i_1)")


def test_nparts_are_that_many_of_the_region_too() -> None:
    m = Matmul()
    outer, _ = m.s[m.d].split(m.di, nparts=2)
    m.s[m.c].compute_at(m.s[m.d], outer)
    pieces, inside = m.s[m.c].split(m.i, nparts=3)
    assert (pieces.extent, inside.extent) == (3, 4)  # of all twelve rows
    assert loops_of(m.s) == ["D_i_0 2", "C_i_0 3", "C_i_1 2", "C_j 10", "C_k 8", "D_i_1 6", "D_j 10"]  # of the six that are needed


def test_split_into_several() -> None:
    m = Matmul()
    assert [loop.extent for loop in m.s[m.c].split_into(m.i, (2, 3))] == [2, 2, 3]


def test_tile() -> None:
    m = Matmul()
    parts = m.s[m.c].tile(m.i, m.j, 4, 5)
    assert [loop.name for loop in parts] == ["i_0", "j_0", "i_1", "j_1"]
    assert loops_of(m.s) == ["C_i_0 3", "C_j_0 2", "C_i_1 4", "C_j_1 5", "C_k 8", *D]


def test_fuse_neighbours_any_number() -> None:
    m = Matmul()
    fused = m.s[m.c].fuse(m.i, m.j)
    assert fused.extent == 120 and loops_of(m.s) == ["C_i_j_f 120", "C_k 8", *D]
    assert m.s[m.c].fuse(fused).name == fused.name


def test_reorder_moves_only_what_is_named() -> None:
    m = Matmul()
    m.s[m.c].reorder(m.k, m.i)
    assert loops_of(m.s) == ["C_k 8", "C_j 10", "C_i 12", *D]
    m.s[m.c].reorder(m.j)
    assert loops_of(m.s) == ["C_k 8", "C_j 10", "C_i 12", *D]


def test_how_loops_run_may_be_said_before_their_order() -> None:
    m = Matmul()
    m.s[m.d].vectorize(m.dj)
    m.s[m.c].unroll(m.i)
    m.s[m.d].parallel(m.di)
    m.s[m.c].reorder(m.k, m.j, m.i)
    assert loops_of(m.s) == ["C_k 8", "C_j 10", "unrolled C_i 12", "parallel D_i 12", "vectorized D_j 10"]


def test_a_loop_of_vectors_becomes_the_innermost() -> None:
    m = Matmul()
    m.s[m.c].vectorize(m.j)
    assert loops_of(m.s) == ["C_i 12", "C_k 8", "vectorized C_j 10", *D]


def test_a_reduction_in_vectors() -> None:
    m = Matmul()
    m.s[m.c].vectorize(m.k)
    assert loops_of(m.s) == ["C_i 12", "C_j 10", "vectorized C_k 8", *D]


def test_outermost_loops_run_in_parallel_together() -> None:
    m = Matmul()
    m.s[m.d].parallel(m.dj)
    m.s[m.d].parallel(m.di)
    assert loops_of(m.s) == [*C, "parallel D_i 12", "parallel D_j 10"]


def test_loops_of_one_iteration_are_no_obstacle_to_parallel_ones() -> None:
    m = Matmul()
    outer, inner = m.s[m.d].split(m.di, factor=12)
    m.s[m.d].parallel(inner)
    assert outer.extent == 1 and loops_of(m.s) == [*C, "parallel D_i_0 1", "parallel D_i_1 12", "D_j 10"]


def test_the_pragma_for_unrolling() -> None:
    m = Matmul()
    m.s[m.c].pragma(m.i, "auto_unroll_max_step", 64)
    m.s[m.c].pragma(m.i, "unroll_explicit", True)
    assert "(unroll up to 64)" in str(m.s.sketch().lower_row(()))


def test_loops_may_change_after_something_is_computed_there() -> None:
    m = Matmul()
    m.s[m.c].compute_at(m.s[m.d], m.di)
    m.s[m.d].reorder(m.dj, m.di)
    assert loops_of(m.s) == ["D_j 10", "D_i 12", "C_i 1", "C_j 1", "C_k 8"]
    m.s[m.d].split(m.di, factor=4)
    assert loops_of(m.s) == ["D_j 10", "D_i_0 3", "D_i_1 4", "C_i 1", "C_j 1", "C_k 8"]


def test_what_is_computed_at_a_loop_follows_it_into_the_one_it_is_fused_to() -> None:
    m = Matmul()
    m.s[m.c].compute_at(m.s[m.d], m.dj)
    m.s[m.d].fuse(m.di, m.dj)
    assert loops_of(m.s) == ["D_i_j_f 120", "C_i 1", "C_j 1", "C_k 8"]


def test_producers_may_be_placed_before_their_readers() -> None:
    x = te.placeholder((16,), name="x")
    p = te.compute((16,), lambda i: x[i] + 1.0, name="p")
    q = te.compute((16,), lambda i: p[i] * 2.0, name="q")
    s = create_schedule(o := te.compute((16,), lambda i: q[i] - 3.0, name="o"))
    s[p].compute_at(s[o], o.op.axis[0])  # q, which reads p, is still elsewhere
    s[q].compute_at(s[o], o.op.axis[0])
    assert loops_of(s) == ["o_i 16", "p_i 1", "q_i 1"]


def test_the_last_place_counts() -> None:
    m = Matmul()
    m.s[m.c].compute_at(m.s[m.d], m.di)
    m.s[m.c].compute_root()
    assert loops_of(m.s) == [*C, *D]


def test_inline() -> None:
    x = te.placeholder((4,), name="x")
    p = te.compute((4,), lambda i: x[i] + 1.0, name="p")
    s = create_schedule(te.compute((4,), lambda i: p[i] * 2.0, name="o").op)
    s[p].compute_inline()
    assert loops_of(s) == ["o_i 4"]


def test_cache_write_gives_the_declared_axes_to_the_new_stage() -> None:
    m = Matmul()
    local = m.s.cache_write(m.c, "global")
    assert m.s[local].op.axis == (m.i, m.j) and m.s[local].op.reduce_axis == (m.k,)
    assert m.s[m.c].op.reduce_axis == () and [axis.name for axis in m.s[m.c].op.axis] == ["i", "j"]
    i, j = m.s[m.c].op.axis
    outer, *_ = m.s[m.c].tile(i, j, 6, 5)
    m.s[local].compute_at(m.s[m.c], outer)
    assert loops_of(m.s)[:4] == ["C_i_0 2", "C_local_i 6", "C_local_j 10", "C_local_k 8"]


def test_cache_read() -> None:
    m = Matmul()
    copy = m.s.cache_read(m.a, "local", [m.c])
    m.s[copy].compute_at(m.s[m.c], m.i)
    assert loops_of(m.s) == ["C_i 12", "A_local_i0 1", "A_local_i1 8", "C_j 10", "C_k 8", *D]


def test_rfactor_names_axes_as_they_are_stored() -> None:
    m = Matmul()
    outer, inner = m.s[m.c].split(m.k, factor=4)
    partial = m.s.rfactor(m.c, inner, factor_axis=-1)
    assert [loop.name for loop in m.s[partial].op.axis] == ["i", "j", "k_1"]
    assert [loop.name for loop in m.s[partial].op.reduce_axis] == ["k_0"]
    (combined,) = m.s[m.c].op.reduce_axis
    assert isinstance(combined, Loop) and combined.extent == 4
    m.s[partial].vectorize(m.s[partial].op.axis[2])
    m.s[m.c].unroll(combined)
    assert loops_of(m.s) == ["C_rf_i 12", "C_rf_j 10", "C_rf_k_0 2", "vectorized C_rf_k_1 4", "C_i 12", "C_j 10", "unrolled C_k_1 4", *D]


def test_rfactor_puts_its_axis_first_unless_told() -> None:
    m = Matmul()
    partial = m.s.rfactor(m.c, m.k)
    assert [loop.name for loop in m.s[partial].op.axis] == ["k", "i", "j"] and loops_of(m.s)[:3] == ["C_rf_k 8", "C_rf_i 12", "C_rf_j 10"]


def test_tensorize_the_two_innermost_loops() -> None:
    x, y = te.placeholder((8, 16), "int8", name="A"), te.placeholder((16, 32), "int8", name="B")
    product = te.nn.matmul(x, y, out_dtype="int32", name="C")
    s = create_schedule(product.op)
    (i, j), (k,) = product.op.axis, product.op.reduce_axis
    outer, group = s[product].split(k, factor=4)
    s[product].reorder(i, outer, j, group)
    intrinsic = find_intrinsic("avx512_dpbusd_s8s8")
    assert intrinsic is not None
    s[product].tensorize(j, intrinsic)
    assert "for C_k_1 in 4  (avx512_dpbusd_s8s8)" in str(s.sketch().lower_row(()))


def test_storage_align_pads_rows() -> None:
    m = Matmul()
    m.s[m.c].storage_align(m.i, 16, 0)
    (stored,) = m.s.sketch().lower_row(()).intermediates
    assert stored.shape == (12, 16)


def test_stages_are_found_by_tensor_operation_and_name() -> None:
    m = Matmul()
    assert {m.s[one].name for one in (m.c, m.c.op, m.s[m.c].op, "C")} == {"C"}
    assert [stage.name for stage in m.s.stages] == ["C", "D"] and [op.name for op in m.s.outputs] == ["D"]
    assert [loop.name for loop in m.s[m.c].leaf_iter_vars] == ["i", "j", "k"] and m.s[m.c].leaf_iter_vars[2] is m.k
    assert m.s.normalize() is m.s and str(m.s) == "(as declared)" and repr(m.s[m.c]) == "C: i, j, k"


def test_what_a_stage_reads_follows_its_copies() -> None:
    m = Matmul()
    assert [tensor.name for tensor in m.s[m.c].op.input_tensors] == ["A", "B"]
    copy = m.s.cache_read(m.a, "local", m.c)
    assert [tensor.name for tensor in m.s[m.c].op.input_tensors] == [copy.name, "B"]
    producer = m.s[m.d].op.input_tensors[0]
    assert m.s[producer].name == "C", "what is read can be scheduled"


def test_axes_that_go_by_another_name_are_still_themselves() -> None:
    x = te.placeholder((4, 6), name="x")
    o = te.compute((4, 6), lambda i, i_0: x[i, i_0] + 1.0, name="o")  # parts of i would be called i_0
    s = create_schedule(o.op)
    i, other = o.op.axis
    s[o].split(i, factor=2)
    s[o].vectorize(other)
    assert loops_of(s) == ["o_i_0 2", "o_i_1 2", "vectorized o_i0 6"]


def test_arguments_are_taken_in_the_order_given_even_if_nobody_reads_them() -> None:
    m = Matmul()
    unread = te.placeholder((3,), name="A")
    names = [tensor.name for tensor in m.s.sketch([m.b, unread, m.d, m.a, m.c]).dag.tensors]
    assert names == ["B", "A_1", "D", "A", "C"]
    assert m.s.sketch([m.b, m.d, m.a, m.c]).state.is_output("C") and not m.s.sketch().state.is_output("C")


Calls = Callable[[Matmul], object]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (lambda m: m.s[m.c].split(m.i), "asked to split loop i of stage C by factor=None, nparts=None; give one of them"),
        (lambda m: m.s[m.c].split(m.i, 2, 3), "by factor=2, nparts=3; give one of them"),
        (lambda m: m.s[m.c].split(m.i, 2.5), "by 2.5; give a whole number"),
        (lambda m: m.s[m.c].split(m.i, 0), "of lengths (0,); give parts - 1 lengths >= 1"),
        (lambda m: m.s[m.c].split(m.di, 2), "asked to split loop i, which is not a loop of stage C; its loops are i, j, k: take them from s[C].op.axis"),
        (lambda m: [m.s[m.c].split(m.i, 2), m.s[m.c].unroll(m.i)], "to unroll loop i of stage C, which was split into i_0, i_1; name a loop that still exists"),
        (lambda m: [m.s[m.c].fuse(m.i, m.j), m.s[m.c].unroll(m.i)], "which was fused into i_j_f"),
        (lambda m: [m.s[m.c].unroll(m.i), m.s[m.c].split(m.i, 2)], "loop i of stage C, which is unrolled; split first, then annotate the result"),
        (lambda m: [m.s[m.c].unroll(m.i), m.s[m.c].vectorize(m.i)], "asked to vectorize loop i of stage C, which is unrolled already; annotate each loop once"),
        (lambda m: [m.s[m.c].unroll(m.i), m.s.cache_write(m.c, "local")], "asked to cache-write stage C, which is already annotated"),
        (lambda m: [m.s[m.c].split(m.i, 2), m.s.cache_write(m.c, "local")], "asked to cache-write stage C, which was changed or moved already"),
        (lambda m: m.s[m.c].fuse(), "asked to fuse no loops of stage C; name at least one of i, j, k"),
        (lambda m: m.s[m.c].fuse(m.j, m.i), "which are not consecutive in i, j, k"),
        (lambda m: m.s[m.c].reorder(m.i, m.i), "asked to reorder stage C as i, i; name each loop once"),
        (lambda m: m.s[m.c].reorder("i"), "asked to reorder loop 'i', which is not a loop of stage C"),
        (lambda m: m.s[m.c].bind(m.i, "threadIdx.x"), "to threadIdx.x, a thread of a GPU; use parallel for outer loops"),
        (lambda m: m.s[m.c].pragma(m.i, "debug_skip_region"), "give auto_unroll_max_step with a number of statements, 0 for none"),
        (lambda m: m.s[m.c].pragma(m.i, "auto_unroll_max_step"), "with None at loop i of stage C"),
        (lambda m: m.s[m.c].storage_align(m.j, 16, 0), "asked to align axis j of stage C; only rows are padded: give its last axis but one, i"),
        (lambda m: m.s[m.c].compute_at(m.d, m.di), "at a loop of Tensor(D, (12, 10), float32); give a stage of this schedule, s[...]"),
        (lambda m: m.s[m.c].set_scope("shared"), "asked for stage C in memory 'shared', which only other devices have; give 'global' or 'local'"),
        (lambda m: m.s.cache_write(m.c, "wmma.accumulator"), "memory 'wmma.accumulator', which only other devices have"),
        (lambda m: m.s.cache_read(m.a, "shared", [m.c]), "asked for a copy of A in memory 'shared'"),
        (lambda m: m.s.cache_read(m.a, "local", [m.d]), "for stage D, which does not read it"),
        (lambda m: m.s[m.a], "asked to schedule A, which is not a stage; the stages are C, D"),
        (lambda m: m.s[Matmul().c], "which this schedule does not have; its stages are C, D"),
        (lambda m: m.s["X"], "asked to schedule X"),
        (lambda m: m.s.rfactor(m.c, m.i), "asked to rfactor loop i of stage C, which is not a reduction loop"),
        (lambda m: m.s.rfactor(m.c, m.k, 3), "to position 3; it takes 0..2"),
    ],
)
def test_a_call_that_does_not_fit_says_why(calls: Calls, words: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        calls(Matmul())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (lambda m: m.s[m.d].parallel(m.dj), "loop j of stage D in parallel, which is inside loop i; only outermost loops can run in parallel: reorder it"),
        (lambda m: m.s[m.c].parallel(m.k), "which is inside loop i"),
        (lambda m: [m.s[m.c].parallel(m.i), m.s[m.c].compute_at(m.s[m.d], m.di)], "computed inside another; annotate that one"),
        (lambda m: [m.s[m.d].vectorize(m.di), m.s[m.d].vectorize(m.dj)], "asked to vectorize loops i, j of stage D; fuse them into one, or vectorize one"),
        (lambda m: [m.s[m.c].compute_at(m.s[m.d], m.di), m.s[m.d].fuse(m.di, m.dj)], "which was fused with loops inside it into i_j_f; name that loop"),
        (lambda m: m.s[m.d].compute_at(m.s[m.c], m.i), "but it is an output, which is kept whole; leave it at root"),
        (lambda m: m.s[m.c].compute_inline(), "asked to inline stage C, which is a reduction"),
        (lambda m: m.s[m.c].tensorize(m.j, "avx2_pmaddwd_s8s8"), "the stage computes something else along them"),
        (lambda m: m.s[m.d].storage_align(m.di, 16, 0), "an output whose layout the caller determines"),
    ],
)
def test_what_does_not_fit_in_the_end_says_why(calls: Calls, words: str) -> None:
    m = Matmul()
    calls(m)
    with pytest.raises(ScheduleError) as caught:
        m.s.sketch()
    assert words in str(caught.value)


@pytest.mark.parametrize("what", [te.placeholder((4,), name="x"), "C", None])
def test_only_computed_tensors_have_schedules(what: object) -> None:
    with pytest.raises(DeclarationError, match="give tensors that te.compute made, or their .op"):
        create_schedule(what)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (lambda m: [m.a, m.d], "reads placeholder B, which it does not list"),
        (lambda m: [m.a, m.b], "a workload needs a computed tensor"),
        (lambda m: [m.a, m.b, Matmul().d], "asked for the argument D, which is not a tensor of this program; its tensors are A, B, C, D"),
        (lambda m: [m.a, m.b, m.d.op], "arguments are tensors"),
    ],
)
def test_arguments_that_do_not_fit(args: Callable[[Matmul], list[Tensor]], words: str) -> None:
    m = Matmul()
    with pytest.raises(DeclarationError) as caught:
        m.s.sketch(args(m))
    assert words in str(caught.value)


def test_operations_of_declarations() -> None:
    m = Matmul()
    assert m.c.op == m.c.op != m.d.op and m.c.op.output(0) is m.c and m.c.op.input_tensors == (m.a, m.b)
    assert (m.c.op.name, m.c.op.tag, dict(m.c.op.attrs), m.a.op.axis, m.a.op.reduce_axis) == ("C", "", {}, (), ())
    axes: tuple[AnyLoop, ...] = m.c.op.axis
    assert [axis.extent for axis in axes] == [12, 10]
    with pytest.raises(DeclarationError, match="asked for output 1 of C; an operation has one output, number 0"):
        m.c.op.output(1)


def test_keywords_are_tvms() -> None:
    names = {
        "vectorize": "var", "unroll": "var", "parallel": "var", "tensorize": "var tensor_intrin", "pragma": "var pragma_type pragma_value",
        "compute_at": "parent scope", "bind": "ivar thread_ivar", "split": "parent factor nparts", "set_scope": "scope",
        "tile": "x_parent y_parent x_factor y_factor", "storage_align": "axis factor offset",
    }  # fmt: skip
    for method, words in names.items():
        assert list(inspect.signature(getattr(ScheduledStage, method)).parameters) == ["self", *words.split()]
