"""Loops bound to GPU threads: recorded, visible in features, but never part of a program."""

from __future__ import annotations

from typing import Any

import pytest

from ansor.compat import tvm
from ansor.compat.autotvm.feature import get_itervar_feature
from ansor.compat.common.threads import BoundError
from ansor.compat.tvm import te
from ansor.errors import ScheduleError, TargetError
from ansor.te.tensor import Tensor


def bound() -> tuple[Any, list[Tensor]]:
    """A product of 128 x 128 with its rows in 16 blocks and its columns on 16 threads."""
    a, b, k = te.placeholder((128, 128), name="A"), te.placeholder((128, 128), name="B"), te.reduce_axis((0, 128), "k")
    c = te.compute((128, 128), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    outer, inner, *_ = s[c].tile(y, x, 8, 8)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, te.thread_axis((0, 16), "threadIdx.x"))
    return s, [a, b, c]


def test_features_describe_sharing_between_threads() -> None:
    """A thread reads 8 x 128 elements of A, 8 times each; 16 threads read the same ones, 16 blocks different ones."""
    rows = [{str(name): values for name, *values in row[1:]} for row in get_itervar_feature(*bound())]
    assert [row["_attr_"][4:].index(1) for row in rows] == [0, 3, 9, 9, 9]
    assert [row["A_0"][2:] for row in rows[:3]] == [[16 * 1024, 128, 16, 1], [1024, 128, 1, 16], [1024, 8, 0, 0]]


def test_bound_schedules_have_no_program() -> None:
    s, args = bound()
    for use in (tvm.lower, tvm.build):
        with pytest.raises(BoundError, match=r"loop y_0 of stage C is bound to blockIdx.x, which processors do not have; use s\[C\].parallel"):
            use(s, args)


def test_thread_axes() -> None:
    s, (*_, c) = bound()
    with pytest.raises(ScheduleError, match="asked for the threads 'warp'; tags are blockIdx.x, .*vthread"):
        te.thread_axis("warp")
    with pytest.raises(ScheduleError, match="asked to bind a loop of stage C to 'threadIdx.x'; give te.thread_axis"):
        s[c].bind(s[c].leaf_iter_vars[-1], "threadIdx.x")
    assert (str(te.thread_axis("vthread")), te.thread_axis((4, 32), "threadIdx.y").extent) == ("vthread", 28)


def test_targets_of_other_devices_can_be_inspected() -> None:
    found = [make().keys for make in (tvm.target.cuda, tvm.target.rocm, tvm.target.mali, tvm.target.bifrost, tvm.target.intel_graphics, tvm.target.arm_cpu)]
    assert [keys[-1] for keys in found] == [*["gpu"] * 5, "cpu"] and found[2][0] == "mali" and found[5][0] == "arm_cpu"
    assert tvm.target.cuda("v100", "sm_70", "-max_num_threads=1024") == "cuda -arch=sm_70 -model=v100 -max_num_threads=1024"
    assert tvm.target.arm_cpu("rasp4b64").mcpu == "cortex-a72"
    with pytest.raises(TargetError, match="asked for the ARM board 'pi'; boards are unknown, rasp4b64, rk3399"):
        tvm.target.arm_cpu("pi")
