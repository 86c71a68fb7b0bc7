"""What the estimate of a program's time assumes of a core, and who has learned what it gets wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Issue:
    """What a core starts, and how long it waits.

    arithmetic, loads: vectors that are multiplied and added, and that are read, in each cycle. latency: of a multiply-add. window: instructions in flight.
    each: what an instruction of a tile costs beside that, however many start together.
    """

    arithmetic: float = 2.0
    loads: float = 2.0
    latency: float = 4.0
    window: float = 256.0
    each: float = 0.0


@dataclass(frozen=True)
class Reduction:
    """Reductions in vectors of partial results.

    running, together: vectors that one element holds while it is reduced, and that several hold together; fold: cycles to combine those of one.
    """

    running: float = 4.0
    together: float = 8.0
    fold: float = 20.0


@dataclass(frozen=True)
class Overhead:
    """Cycles beside the multiply-adds.

    call: one vector, or one element, of exp, tanh, ...; result: to begin and to store a vector of results; spill: an accumulator that has no register;
    loop: leaving and entering the loops around a tile, as far as other work does not hide it.
    """

    call: float = 14.0
    result: float = 1.5
    spill: float = 3.0
    loop: float = 2.0


@dataclass(frozen=True)
class Traffic:
    """How data come into the caches.

    rates: bytes a cycle that come into the first, second and third. fill: share of a cache that a tile can use.
    way_bytes: places so far apart are in the same set of the first.
    """

    rates: tuple[float, float, float] = (64.0, 16.0, 8.0)
    fill: float = 0.75
    way_bytes: int = 4096


@dataclass(frozen=True)
class Prior:
    """Constants of the analytic estimate (`ansor.cost_model.analytic`). Cycles, unless it says otherwise.

    family: names the weights that were learned on processors like it, '' where nothing was.
    """

    issue: Issue = Issue()
    overhead: Overhead = Overhead()
    traffic: Traffic = Traffic()
    reduction: Reduction = Reduction()
    family: str = ""


PROCESSORS = "processors"
"""The family of the weights in the package: processors that run many instructions at once, in any order."""

OUT_OF_ORDER = Prior(family=PROCESSORS)
"""A present-day server's core."""
