"""Single operators beside PyTorch: tune, then run both in turns in one process.

    python benchmarks/operators.py                                  # 128 trials each, one thread
    python benchmarks/operators.py --only conv2d_nhwc --trials 64 --records runs/

Both sides are called as a user calls them, with tensors in and a new tensor out. `tuned in` is wall time from the declaration to the built
kernel. `error` is the largest difference from a computation in double precision, relative to its largest element, ours and PyTorch's.

Weights that are constants are packed once, before the timed calls; that is what a network does with them. PyTorch's functional
convolutions get the same weights anew in each call. In the row `matmul` B is an ordinary argument, as torch.mm gets it: whatever packing
helps happens inside the timed call.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from common import Ratio, add_target, console, interleaved, machine_line, parser, peak_of, ratio, records_at, short, table, target_of, use_threads
from rich.console import Console

from ansor import api, te
from ansor.ir.dag import Dag
from ansor.measure.kernel import Kernel
from ansor.progress import ProgressView
from ansor.targets.base import Target
from ansor.te import nn
from ansor.te.tensor import Tensor

Function = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Case:
    """An operator twice.

    declare: ours; inputs: tensors of each call; constants: bound before, by name; theirs: PyTorch's, on `torch_inputs`;
    exact: the same in double precision, on our layout; aim: the ratio asked for.
    """

    title: str
    declare: Callable[[], list[Tensor]]
    inputs: tuple[torch.Tensor, ...]
    constants: Mapping[str, torch.Tensor]
    against: str
    theirs: Callable[[], torch.Tensor]
    exact: Callable[[], torch.Tensor]
    from_theirs: Callable[[torch.Tensor], torch.Tensor]
    aim: float | None = None


def _random(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def _same(result: torch.Tensor) -> torch.Tensor:
    return result


def matmul(size: int, constant: bool) -> Case:
    """C = A B, all square."""
    a, b = _random(size, size, seed=0), _random(size, size, seed=1)

    def declare() -> list[Tensor]:
        first, second = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B", constant=constant)
        return [first, second, nn.matmul(first, second, name="C")]

    title = f"matmul {size}, " + ("B constant, packed ahead" if constant else "B as it comes")
    return Case(
        title, declare, (a,) if constant else (a, b), {"B": b} if constant else {}, "torch.mm",
        lambda: torch.mm(a, b), lambda: a.double() @ b.double(), _same, None if constant else 0.85,
    )  # fmt: skip


def conv2d(layout: str) -> Case:
    """3x3, 64 -> 64 channels, 56x56, padding 1, weights constant."""
    data, weight = _random(1, 64, 56, 56, seed=0), _random(64, 64, 3, 3, seed=1)
    if layout == "NCHW":
        shapes, ours, ours_weight = ((1, 64, 56, 56), (64, 64, 3, 3)), data, weight
        torch_data, torch_weight, back = data, weight, _same
    else:
        shapes, ours = ((1, 56, 56, 64), (3, 3, 64, 64)), data.permute(0, 2, 3, 1).contiguous()
        ours_weight = weight.permute(2, 3, 1, 0).contiguous()
        torch_data, torch_weight = data.to(memory_format=torch.channels_last), weight.to(memory_format=torch.channels_last)
        back = _to_nhwc

    def declare() -> list[Tensor]:
        image, kernel = te.placeholder(shapes[0], name="data"), te.placeholder(shapes[1], name="weight", constant=True)
        return [image, kernel, nn.conv2d(image, kernel, 1, 1, data_layout=layout)]

    functional = torch.nn.functional.conv2d
    against = "conv2d NCHW" if layout == "NCHW" else "conv2d channels_last"
    return Case(
        f"conv2d 3x3 64->64 56x56 {layout}, weights packed ahead", declare, (ours,), {"weight": ours_weight}, against,
        lambda: functional(torch_data, torch_weight, padding=1), lambda: back(functional(data.double(), weight.double(), padding=1)), back, 1.0,
    )  # fmt: skip


def _to_nhwc(result: torch.Tensor) -> torch.Tensor:
    return result.permute(0, 2, 3, 1)


CASES: dict[str, Callable[[], Case]] = {
    "matmul": lambda: matmul(512, constant=False),
    "matmul_packed": lambda: matmul(512, constant=True),
    "conv2d_nchw": lambda: conv2d("NCHW"),
    "conv2d_nhwc": lambda: conv2d("NHWC"),
}


@dataclass(frozen=True)
class Row:
    """What came of a case. Seconds of one call; errors relative to the largest element."""

    case: Case
    flop: int
    tuning_seconds: float
    ours: float
    theirs: float
    ratio: Ratio
    error: float
    their_error: float


def tuned(case: Case, target: Target, trials: int, records: Path | None, seed: int, out: Console) -> tuple[Kernel, float]:
    """The tuned kernel with its constants bound, and the seconds it took."""
    start = time.perf_counter()
    with ProgressView(out) as view:
        kernel = api.auto_schedule(case.declare, target=str(target), trials=trials, records=records, seed=seed, report=view.say, on_progress=view.update)
    seconds = time.perf_counter() - start
    kernel.bind_constants(case.constants)
    return kernel, seconds


def compared(case: Case, kernel: Kernel, seconds: float, turns: int) -> Row:
    """Both checked and timed."""
    exact = case.exact()
    scale = float(exact.abs().max())

    def ours() -> torch.Tensor:
        result = kernel(*case.inputs)
        assert isinstance(result, torch.Tensor)
        return result

    with torch.no_grad():
        error = float((ours().double() - exact).abs().max()) / scale
        their_error = float((case.from_theirs(case.theirs()).double() - exact).abs().max()) / scale
        times = interleaved({"ours": ours, "theirs": case.theirs}, turns)
    flop = Dag(case.declare()).flop
    return Row(case, flop, seconds, times["ours"].median, times["theirs"].median, ratio(times["ours"], times["theirs"]), error, their_error)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="operators (default: all)")
    options.add_argument("--trials", type=int, default=128, help="programs measured for each (default: %(default)s)")
    options.add_argument("--turns", type=int, default=200, help="turns of the comparison (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of the search (default: %(default)s)")
    options.add_argument("--records", metavar="FOLDER", help="continue from and append to record files in this folder")
    add_target(options)
    given = options.parse_args()
    out, target = console(), target_of(given)
    use_threads(target.threads)
    rows = []
    for name in given.only:
        case = CASES[name]()
        out.print(f"{case.title}: {given.trials} trials")
        kernel, seconds = tuned(case, target, given.trials, records_at(given.records, name), given.seed, out)
        rows.append(compared(case, kernel, seconds, given.turns))
    peak = peak_of(target).gflops
    shown = table(
        f"{target.threads} thread(s), medians of {given.turns} turns; peak {peak:.0f} GFLOP/s", ["operator", "PyTorch"],
        ["tuned in", "ours", "torch", "torch / ours (middle 80 %)", "GFLOP/s", "% of peak", "error", "torch error", "aim"],
    )  # fmt: skip
    reached = True
    for row in rows:
        gflops, aim = row.flop / row.ours / 1e9, row.case.aim
        met = aim is None or row.ratio.median >= aim
        reached &= met
        shown.add_row(
            row.case.title, row.case.against, short(row.tuning_seconds), short(row.ours), short(row.theirs), str(row.ratio), f"{gflops:.0f}",
            f"{100 * gflops / peak:.0f}", f"{row.error:.1e}", f"{row.their_error:.1e}", "-" if aim is None else f"{aim} {'met' if met else 'MISSED'}",
        )  # fmt: skip
    out.print(shown)
    out.print(f"torch / ours above 1: ours is faster. {machine_line()}, torch {torch.__version__}")
    return int(not reached)


if __name__ == "__main__":
    sys.exit(main())
