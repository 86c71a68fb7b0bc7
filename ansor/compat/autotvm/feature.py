"""Features of scheduled programs, for cost models of configurations. Source: AutoTVM 0.9, `autotvm.feature`.

itervar: features of every loop and its touches; their count depends on the loops, so only programs of one template are comparable.
curve: reuse of elements, sampled as a function over the outer loops; a fixed count of numbers per innermost buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from math import log2
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.loop_touches import ANNOTATIONS, LoopTouches, loop_touches
from ansor.compat.common.threads import BindingSchedule
from ansor.manual.program import lower
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor

SAMPLES = 20
"""Points along a curve for cost models; the default of `get_buffer_curve_sample_flatten` is 30."""

Group: TypeAlias = list[object]
"""A name and its values."""


def get_itervar_feature(sch: Schedule, args: Sequence[Tensor], take_log: bool = False) -> list[list[Group]]:
    """For each loop, in order of appearance: ["_itervar_", loop], ["_attr_", 15 numbers], ["_arith_", 3 numbers], and for each touch [name, 6 numbers].

    _attr_: length, nest level, topdown, bottomup, annotation one-hot; _arith_: floating-point additions, multiplications, divisions; a touch: stride, mod,
    count, reuse, thread count, thread reuse. take_log: numbers x except nest level and one-hots become sign(x) log2(|x| + 1).

    Raises ScheduleError if the schedule does not fit.
    """
    rows: list[list[Group]] = []
    for loop in _touched(sch, args):
        groups: list[Group] = [["_itervar_", loop.var], ["_attr_", *_attributes(loop, take_log)], ["_arith_", *_arithmetic(loop, take_log)]]
        rows.append(groups + [[name, *_numbers(astuple(touch), take_log)] for name, touch in loop.touches.items()])
    return rows


def flatten_itervar_feature(fea: Sequence[Sequence[Group]]) -> NDArray[np.float32]:
    """All numbers of `get_itervar_feature` in one vector."""
    return np.array([number for row in fea for group in row[1:] for number in group[1:]], dtype=np.float32)


def get_itervar_feature_flatten(sch: Schedule, args: Sequence[Tensor], take_log: bool = True) -> NDArray[np.float32]:
    """`get_itervar_feature` and `flatten_itervar_feature` in one call. Raises ScheduleError if the schedule does not fit."""
    return flatten_itervar_feature(get_itervar_feature(sch, args, take_log))


def get_buffer_curve_sample_flatten(sch: Schedule, args: Sequence[Tensor], sample_n: int = 30) -> NDArray[np.float32]:
    """For each buffer that the innermost loops touch, in order of names: 4 relations of `sample_n` points, 2 numbers each.

    The relations, of logarithms to base 2 over the loops around the buffer: reuse by count, count by reuse, topdown by count, count by topdown. Point i is
    the value at the last loop whose abscissa is at most i, and the distance from that abscissa to i.

    Raises ScheduleError if the schedule does not fit.
    """
    touched = _touched(sch, args)
    numbers: list[float] = []
    for name in _innermost(touched):
        around = [(loop, loop.touches[name]) for loop in touched if name in loop.touches]
        count, reuse, topdown = (
            sorted([0.0, *(log2(value) for value in values)])
            for values in ([touch.count for _, touch in around], [touch.reuse for _, touch in around], [loop.topdown for loop, _ in around])
        )
        for xs, ys in ((count, reuse), (reuse, count), (count, topdown), (topdown, count)):
            numbers += _sampled(xs, ys, sample_n)
    return np.array(numbers, dtype=np.float32)


def _touched(sch: Schedule, args: Sequence[Tensor]) -> list[LoopTouches]:
    """The touched loops. Loops of one iteration are kept, so that programs of the same structure have the same number of features."""
    if isinstance(sch, BindingSchedule):
        return loop_touches(lower(sch.unbound_sketch(args), simple_mode=False), sch.threads)
    return loop_touches(lower(sch, args, simple_mode=False))


def _attributes(loop: LoopTouches, take_log: bool) -> list[float]:
    length, topdown, bottomup = _numbers([loop.length, loop.topdown, loop.bottomup], take_log)
    return [length, loop.nest_level, topdown, bottomup, *(int(annotation == loop.annotation) for annotation in ANNOTATIONS)]


def _arithmetic(loop: LoopTouches, take_log: bool) -> list[float]:
    return _numbers([loop.arithmetic[kind] for kind in ("add", "mul", "div")], take_log)


def _numbers(values: Sequence[int], take_log: bool) -> list[float]:
    return [(log2(value + 1) if value >= 0 else -log2(1 - value)) if take_log else value for value in values]


def _innermost(touched: Sequence[LoopTouches]) -> list[str]:
    """One touch per buffer touched by the deepest loops, from the last such loop; copies in other memory (`A.local`) count as the same buffer."""
    deepest = max((loop.nest_level for loop in touched), default=0)
    found: dict[str, str] = {}
    for loop in reversed(touched):
        for name in loop.touches if loop.nest_level == deepest else ():
            found.setdefault(name.rpartition("_")[0].partition(".")[0], name)
    return sorted(found.values())


def _sampled(xs: Sequence[float], ys: Sequence[float], number: int) -> list[float]:
    numbers: list[float] = []
    for at in range(number):
        place = max(j for j, x in enumerate(xs) if x < at + 1e-6)
        numbers += [ys[place], at - xs[place]]
    return numbers
