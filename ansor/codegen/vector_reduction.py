"""Elements reduced in vectors of partial results: what is held while the reduction runs, one step of it, and how an element comes of it in the end.

    f32x4 acc0_0 = {}, acc0_1 = {};                                  several vectors hide the latency of adding,
    for (k = 0; k < 40; k += 8) { acc0_0 += x[k..]; acc0_1 += x[k + 4..]; }
    acc0_by2 += x[40..];  acc0_by1 += x[42];                         narrower ones take the tail,
    fold = acc0_0 + acc0_1, halves of it, + acc0_by2, ...            and all are combined at the end
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ansor.codegen.dialect import C_TYPES
from ansor.codegen.values import Lanes, Writer, combined
from ansor.ir.linear import Linear, Var, of
from ansor.ir.loops import Store

RUNNING = 4  # vectors of partial results that one element holds while it is reduced
TOGETHER = 8  # and that several elements hold together

Width = tuple[int, int]
"""Lanes of an accumulator, and which of those as wide it is."""
Own = Callable[[str], str]
"""A name for something of ours that nothing else has."""


@dataclass(frozen=True, eq=False)
class VectorReduction:
    """Some elements of a reducing store, reduced together along `var`.

    elements: numbers of the variables that tell each element. names: of each element's accumulators. running: how many of the widest an element has.
    looped: vectors that a loop takes, `running` in each iteration; rest: those after it.
    """

    store: Store
    var: Var
    widest: int
    elements: tuple[dict[Var, int], ...]
    names: tuple[dict[Width, str], ...]
    labels: tuple[str, ...]
    running: int
    looped: int
    rest: tuple[tuple[int, int], ...]

    def starts(self, writer: Writer) -> Iterator[tuple[str, Writer]]:
        """Each accumulator, and what writes values as wide as it."""
        for fixed, names in zip(self.elements, self.names, strict=True):
            for (lanes, _), name in names.items():
                yield name, writer.at(fixed, Lanes(self.var, lanes, Linear()) if lanes > 1 else None)

    def steps_of_loop(self) -> Iterator[tuple[Width, Lanes]]:
        """What one iteration of the loop adds."""
        for k in range(self.running):
            yield (self.widest, k), Lanes(self.var, self.widest, of(self.var) + k * self.widest)

    def steps_after(self) -> Iterator[tuple[Width, Lanes]]:
        """What is added after the loop."""
        for k, (offset, lanes) in enumerate(self.rest):
            yield (lanes, k if lanes == self.widest else 0), Lanes(self.var, lanes, Linear((), offset))

    def step(self, which: Width, lanes: Lanes, writer: Writer) -> Iterator[str]:
        """One vector (or one value) added to an accumulator of each element. `writer.load` is asked for what elements share."""
        assert self.store.combiner is not None
        wraps = writer.helpers.ranges.reduction_may_wrap(self.store)
        for fixed, names in zip(self.elements, self.names, strict=True):
            if lanes.count == 1:
                value = replace(writer.at({**fixed, lanes.var: int(lanes.start.const)}, None), load=None).scalar(self.store.value)
            else:
                value = replace(writer.at(fixed, lanes), load=writer.load if len(self.elements) > 1 else None).vector(self.store.value)
            name = names[which]
            yield f"{name} = {combined(writer.helpers, self.store.combiner, self.store.buffer.dtype, lanes.count, name, value, wraps)};"

    def folded(self, element: int, writer: Writer, own: Own) -> tuple[list[str], str]:
        """Statements that combine the accumulators of an element, and the name of the result: the widest in pairs, halved, with those of half the width, ..."""
        combiner, dtype, names, lines = self.store.combiner, self.store.buffer.dtype, self.names[element], []
        assert combiner is not None
        wraps = writer.helpers.ranges.reduction_may_wrap(self.store)
        lanes = max(width for width, _ in names)
        found = [name for (width, _), name in names.items() if width == lanes]
        while True:
            while len(found) > 1:
                first, second, *others = found
                lines.append(f"{first} = {combined(writer.helpers, combiner, dtype, lanes, first, second, wraps)};")
                found = [*others, first]
            if lanes == 1:
                return lines, found[0]
            name, half = found[0], lanes // 2
            kind = writer.helpers.vector(dtype, half) if half > 1 else C_TYPES[dtype]
            parts = (f"*(const {kind} *)&{name}", f"*((const {kind} *)&{name} + 1)") if half > 1 else (f"{name}[0]", f"{name}[1]")
            fold = own(f"fold{self.labels[element]}_{half}")
            lines.append(f"{kind} {fold} = {combined(writer.helpers, combiner, dtype, half, *parts, wraps)};")
            found = [fold, *([names[half, 0]] if (half, 0) in names else [])]
            lanes = half


def vector_reduction(store: Store, var: Var, elements: Sequence[dict[Var, int]], cut: Callable[[int, int], list[tuple[int, int]]], widest: int, number: int,
                     own: Own) -> VectorReduction:
    """The elements reduced along `var`. cut: what is left after the loop, and the widest vector -> (offset, lanes) of each vector; `number` makes the names
    differ from those of other reductions.
    """
    whole = int(var.extent) // widest
    running = min(RUNNING if len(elements) == 1 else max(TOGETHER // len(elements), 1), whole)
    looped = whole // running * running if running and whole > running else 0
    rest = tuple((looped * widest + offset, lanes) for offset, lanes in cut(int(var.extent) - looped * widest, widest))
    widths = [(widest, k) for k in range(running)] + [(lanes, 0) for _, lanes in rest if lanes < widest]
    labels = tuple(f"{number}_{e}" if len(elements) > 1 else f"{number}" for e in range(len(elements)))
    names = tuple({(lanes, k): own(f"acc{label}_{k}" if lanes == widest else f"acc{label}_by{lanes}") for lanes, k in widths} for label in labels)
    return VectorReduction(store, var, widest, tuple(elements), names, labels, running, looped, rest)
