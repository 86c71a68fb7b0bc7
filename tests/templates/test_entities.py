"""The effect of knob values on schedules."""

import pytest

import ansor
from ansor import te
from ansor.errors import ConfigError, InstantiationError, ScheduleError
from ansor.manual.loop import AnyLoop
from ansor.manual.schedule import Schedule
from ansor.templates.entities import AnnotateEntity, ReorderEntity, SplitEntity
from ansor.templates.space import ConfigEntity


def scheduled() -> tuple[Schedule, list[AnyLoop]]:
    """C[i, j, l] = A[i, j, l] + 1 of 8, 12 and 16 iterations."""
    a = te.placeholder((8, 12, 16), name="A")
    s = ansor.create_schedule(te.compute((8, 12, 16), lambda i, j, l: a[i, j, l] + 1.0, name="C"))  # noqa: E741
    return s, list(s["C"].op.axis)


def loops(s: Schedule) -> list[tuple[str, int]]:
    return [(loop.name, loop.extent) for loop in s["C"].leaf_iter_vars]


@pytest.mark.parametrize("size", [[-1, 2, 4], [7, 2, 4]])
def test_splits_use_their_inner_sizes(size: list[int]) -> None:
    s, (_, j, _) = scheduled()
    outer, middle, inner = SplitEntity(size).apply(s, "C", j)
    assert [outer.extent, middle.extent, inner.extent] == [2, 2, 4] and len(loops(s)) == 5
    assert len(s.sketch().steps) == 1


def test_a_split_into_one_loop_does_nothing() -> None:
    s, (i, _, _) = scheduled()
    assert SplitEntity([-1]).apply(s, "C", i) == [i] and not s.sketch().steps


def test_an_order() -> None:
    s, (i, j, l) = scheduled()  # noqa: E741
    assert ReorderEntity([2, 0, 1]).apply(s, "C", [i, j, l]) == [l, i, j] and loops(s) == [("l", 16), ("i", 8), ("j", 12)]
    with pytest.raises(ConfigError, match=r"asked to order 2 loops by \[2, 0, 1\]; give the 3 loops"):
        ReorderEntity([2, 0, 1]).apply(s, "C", [i, j])


def test_annotations() -> None:
    s, axes = scheduled()
    assert AnnotateEntity(["none", "unroll", "vec"]).apply(s, "C", axes) == axes
    assert [str(step) for step in s.sketch().steps] == ["Vectorize(stage='C', loop='l', amount=1)", "Unroll(stage='C', loop='j')"]


def test_fused_annotations() -> None:
    s, axes = scheduled()
    found = AnnotateEntity(["fuse", "fuse", "none"]).apply(s, "C", axes)
    assert loops(s) == [(found[-1].name, 8 * 12 * 16)]


def test_gpu_threads_are_refused() -> None:
    s, axes = scheduled()
    with pytest.raises(ScheduleError, match="asked to bind loop i of stage C to blockIdx.x"):
        AnnotateEntity(["blockIdx.x", "none", "none"]).apply(s, "C", axes)


def test_lengths_out_of_bounds_are_reported() -> None:
    s, axes = scheduled()
    config = ConfigEntity(0, None, {})
    AnnotateEntity(["none", "unroll", "vec"]).apply(s, "C", axes, axis_lens=[8, 12, 16], max_unroll=8, vec_size=[4, 8], cfg=config)
    assert config.errors == ["a loop of 12 iterations must not be unrolled", "a loop of 16 iterations must not be run as vectors"]
    with pytest.raises(InstantiationError, match="a loop of 12 iterations must not be unrolled"):
        AnnotateEntity(["none", "unroll", "none"]).apply(s, "C", axes, axis_lens=[8, 12, 16], max_unroll=8)


def test_caches_are_located() -> None:
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="B")
    s = ansor.create_schedule(te.compute((8, 8), lambda i, j: b[i, j] + 1.0, name="C"))
    axes = list(s["C"].op.axis)
    assert AnnotateEntity([1]).apply(s, "C", axes, source=["B"]) == axes
    assert [str(step) for step in s.sketch().steps] == ["ComputeAt(stage='B', target='C', loop='j')"]
