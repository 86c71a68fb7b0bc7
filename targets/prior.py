"""The estimate's assumptions about a core, and the family of learned weights that corrects it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Issue:
    """A core's throughput and latency.

    arithmetic, loads: vector multiply-adds and loads per cycle; across: additional loads for one that crosses a cache line. latency: of a multiply-add.
    window: instructions in flight.
    late: additional latency, in cycles, of an intrinsic. With eight accumulators, just enough to hide `latency`, a tile takes 7 % longer than with ten.
    each: additional cycles per instruction of a tile, however many start together.
    optimizes: whether to assume that the C compiler optimises: it hoists loop invariants, unrolls short loops to vectorise the loop around them, and gathers
    distant elements into vectors.
    """

    arithmetic: float = 2.0
    loads: float = 2.0
    across: float = 1.0
    latency: float = 4.0
    window: float = 256.0
    each: float = 0.0
    late: float = 0.0
    optimizes: bool = True


@dataclass(frozen=True)
class Reduction:
    """Reductions in vectors of partial results.

    running, together: vectors of partial results of one element, and of several elements together; fold: cycles to halve a vector of them by adding.
    """

    running: float = 4.0
    together: float = 8.0
    fold: float = 2.0


@dataclass(frozen=True)
class Overhead:
    """Cycles besides the multiply-adds.

    call: one vector, or one element, of exp, tanh, ...; result: to initialise and store a result vector; spill: an accumulator without a register;
    loop: leaving and entering the loops around a tile, unless other work hides it; division: a quotient or remainder by a constant, in an index;
    fork: a loop that several threads share, from its caller's arrival to its end, besides its iterations.
    """

    call: float = 10.0
    result: float = 1.5
    spill: float = 3.0
    loop: float = 2.0
    division: float = 1.5
    fork: float = 5000.0


@dataclass(frozen=True)
class Traffic:
    """How data reach the caches.

    rates: bytes per cycle into the first, second and third cache. fill: share of a cache that a tile can use.
    way_bytes: addresses this far apart are in the same set of the first cache.
    """

    rates: tuple[float, float, float] = (64.0, 16.0, 8.0)
    fill: float = 0.75
    way_bytes: int = 4096


@dataclass(frozen=True)
class Prior:
    """Constants of the analytic estimate (`ansor.cost_model.analytic`), in cycles unless stated otherwise.

    family: names the weights learned on similar processors, '' for none.
    """

    issue: Issue = Issue()
    overhead: Overhead = Overhead()
    traffic: Traffic = Traffic()
    reduction: Reduction = Reduction()
    family: str = ""


PROCESSORS = "processors"
"""The family of the weights in the package: processors that run many instructions at once, in any order."""

BOARDS = "boards"
"""The family of boards that count instructions."""

OUT_OF_ORDER = Prior(Issue(late=0.5), family=PROCESSORS)
"""A modern server core."""
