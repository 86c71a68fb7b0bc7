"""The cycle model of VTA: its speed, and its ranking of programs compared with a roofline of bytes and micro-ops.

    python benchmarks/vta_model.py [C9] [--programs 500] [--core default] [--plot FILE.svg]

Programs are random rows of all sketches that the limits allow. The roofline of a program is a lower bound on its cycles: the larger of its bytes / bus_bytes
and the cycles in which its micro-ops start. It ignores latency, order and copies. "rank": Spearman's rank correlation of the two. "turned": the share of
pairs, among those that the roofline separates by more than 10 %, that the model ranks the other way round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ansor.schedule.legality import legal_rows
from ansor.targets.base import Target, parse_target
from ansor.targets.vta import configuration_of
from ansor.tasks.task import SearchTask
from ansor.vta.columns import columns_of
from ansor.vta.compiled import finish, linked
from ansor.vta.configuration import Memory
from ansor.vta.cycles import CHISEL, count_cycles
from ansor.vta.generate import compile_operator
from ansor.vta.work import work_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.vta_layers import LAYERS, declared
from benchmarks.vta_template import Layer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A program: its cycles and its roofline (bus, compute); copies of the operand with the fewest, and of the accumulators; mean bytes of a LOAD or STORE;
    processor seconds that the model took."""

    cycles: int
    bus: int
    compute: int
    operand_copies: int
    sum_copies: int
    bytes_each: float
    seconds: float

    @property
    def roofline(self) -> int:
        """The lower bound on cycles."""
        return max(self.bus, self.compute)


def measured(layer: Layer, target: Target, count: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Yields this many random programs."""
    spaces, core = SearchTask(tensors=declared(layer), target=target).spaces, configuration_of(target)
    found = 0
    while found < count:
        sketch = spaces[int(rng.integers(len(spaces)))].sketch
        rows = rng.integers(0, sketch.sizes, (64, len(sketch.sizes)))
        legal = rows[np.broadcast_to(legal_rows(sketch.lower_rows(rows), target, len(rows)), len(rows))]
        for row in legal[:4].tolist():
            loops = sketch.lower_row(row)
            operator, copies = compile_operator(loops, core), work_of(loops, core).copies
            words = np.concatenate([linked(operator, [0] * len(operator.tensors), 0, 0), finish(core)])
            start = process_time()
            taken = count_cycles(words, core, CHISEL)
            seconds = process_time() - start
            columns = columns_of(words, core)
            moves = int(np.count_nonzero((columns[:, 0] <= 1) & (columns[:, 8] * columns[:, 9] > 0)))
            each = taken.bus * CHISEL.dram.bus_bytes / moves
            yield Measured(
                taken.total, taken.bus, taken.gemm + taken.alu, min(int(copies[Memory.INP]), int(copies[Memory.WGT])), int(copies[Memory.ACC]), each, seconds
            )
            found += 1


def ranks(values: Sequence[float]) -> Floats:
    """Ranks from 0; equal values share a rank."""
    ordered, places, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    del ordered
    shared: Floats = np.cumsum(counts) - (counts + 1) / 2
    return shared[places]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def turned(programs: Sequence[Measured]) -> float:
    """The share of pairs that the model ranks the other way round, among those that the roofline separates by more than 10 %."""
    roofline, cycles = np.asarray([[one.roofline, one.cycles] for one in programs], float).T
    apart = roofline[:, None] > 1.1 * roofline
    return float((apart & (cycles[:, None] < cycles)).sum() / max(apart.sum(), 1))


GROUPS: tuple[tuple[str, Callable[[Measured], bool]], ...] = (
    ("all", lambda one: True),
    ("two copies of all", lambda one: one.operand_copies == 2 and one.sum_copies == 2),
    ("two copies of operands, one of sums", lambda one: one.operand_copies == 2 and one.sum_copies == 1),
    ("one copy of an operand", lambda one: one.operand_copies == 1),
    ("LOADs and STOREs of less than 1 KiB", lambda one: one.bytes_each < 1024),
    ("of 4 KiB and more", lambda one: one.bytes_each >= 4096),
    ("the bus is the roofline", lambda one: one.bus > one.compute),
)


def summary(programs: Sequence[Measured]) -> Table:
    """A line for each group."""
    table = Table()
    for heading in ("programs", "number", "cycles / roofline: median", "tenth", "nine tenths", "rank", "turned"):
        table.add_column(heading, justify="right")
    for name, of in GROUPS:
        chosen = [one for one in programs if of(one)]
        if len(chosen) < 10:
            table.add_row(name, str(len(chosen)))
            continue
        ratios = [f"{one:.2f}" for one in np.quantile([one.cycles / one.roofline for one in chosen], (0.5, 0.1, 0.9))]
        rank = rank_correlation([one.roofline for one in chosen], [one.cycles for one in chosen])
        table.add_row(name, str(len(chosen)), *ratios, f"{rank:.3f}", f"{turned(chosen):.1%}")
    return table


def plotted(programs: Sequence[Measured], path: Path) -> None:
    """Write an SVG with a point for each program, on log scales: the roofline horizontally, cycles vertically; filled if everything is double-buffered."""
    x, y = np.log10(np.asarray([[one.roofline, one.cycles] for one in programs], float)).T
    low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
    places = [[20 + 360 * (value - low) / (high - low) for value in axis] for axis in (x, y)]
    points = [
        f'<circle cx="{a:.1f}" cy="{400 - b:.1f}" r="2.5" fill="{"#36c" if min(one.operand_copies, one.sum_copies) == 2 else "none"}" stroke="#36c"/>'
        for one, a, b in zip(programs, *places, strict=True)
    ]
    line = '<line x1="20" y1="380" x2="380" y2="20" stroke="#999"/>'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400">{line}{"".join(points)}</svg>\n')


def main() -> None:
    """Print the speed and the ranking."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layer", nargs="?", default="C9", help="a convolution of ResNet-18, by its name in benchmarks/vta_layers.py")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--core", default="default")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    layer = next((one for one in LAYERS if one.name == given.layer), None)
    if layer is None:
        parser.error(f"asked for {given.layer}; layers are {', '.join(one.name for one in LAYERS)}")
    programs = list(measured(layer, parse_target(f"vta -core={given.core}"), given.programs, np.random.default_rng(0)))
    seconds, cycles = [one.seconds for one in programs], [one.cycles for one in programs]
    each = f"{1e3 * float(np.median(seconds)):.1f} ms a program, at most {1e3 * max(seconds):.1f}"
    print(f"{sum(cycles) / sum(seconds) / 1e6:.0f} M cycles a second of processor time; {each}")
    Console(width=150).print(summary(programs))
    worst = sorted(programs, key=lambda one: one.cycles / one.roofline)
    for title, some in (("nearest to the roofline", worst[:3]), ("farthest from it", worst[-3:])):
        print(f"{title}: " + "; ".join(str(one) for one in some))
    if given.plot:
        plotted(programs, given.plot)
    print(CHISEL)


if __name__ == "__main__":
    main()
