"""How many candidate programs the search processes per second, on one thread.

    python benchmarks/search_throughput.py
    python benchmarks/search_throughput.py --only matmul --profile

The phases run on all candidates of a batch, which is spread over the spaces of the task like a generation of the search: draw rows of choices and drop
duplicates (sample), check the machine's limits (legal), compute the features and the analytic estimate of the legal ones (features), and score them with the
learned model (predict). `described` is the number of drawn candidates per second through the first three phases, `whole` through all four. The arithmetic that
is the same for every population is recorded before (first use: the seconds that this takes for all spaces). `a round` is one `ask` for 16 programs and the
`tell` of their times, training included: five generations, with offspring instead of samples.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from common import console, in_one_thread, machine_line, parser, short, table

from ansor.cost_model.base import CostModel
from ansor.cost_model.pretrained import pretrained
from ansor.ir.feature_rows import FeatureRows, join
from ansor.search.sampling import SampledSpace, distinct
from ansor.search.tuner import Outcome, Pick, Tuner, TunerOptions
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from ansor.te.tensor import Tensor
from ansor.zoo import operators

AIMS = {"described": 100_000, "whole": 50_000}
"""Candidates per second."""

TASKS: dict[str, tuple[str, Callable[[], list[Tensor]]]] = {
    "matmul": ("matmul 512", lambda: operators.matmul(512, 512, 512)),
    "conv2d": ("conv2d + bn + relu, NCHW 56x56 64->64 3x3", lambda: workloads.conv2d_nchw_bn_relu(1, 56, 56, 64, 64, 3, 1, 1)),
    "conv2d_nhwc": ("conv2d + bn + relu, NHWC 56x56 64->64 3x3", lambda: operators.conv2d_bn_relu()),
    "depthwise": ("depthwise conv2d, NHWC 112x112 32", lambda: operators.depthwise_conv2d()),
    "softmax": ("softmax 1536x128", lambda: operators.softmax()),
}
AIMED = ("matmul", "conv2d", "softmax", "depthwise")
ROUND = 16


@dataclass(frozen=True)
class Pass:
    """Seconds of the phases of one batch, and how many candidates were drawn and were legal."""

    sample: float
    legal: float
    features: float
    predict: float
    drawn: int
    kept: int

    @property
    def seconds(self) -> float:
        return self.sample + self.legal + self.features + self.predict

    @property
    def rates(self) -> dict[str, float]:
        """Drawn candidates per second, under the names of AIMS."""
        return {"described": self.drawn / (self.seconds - self.predict), "whole": self.drawn / self.seconds}


def one_pass(spaces: Sequence[SampledSpace], model: CostModel, size: int, rng: np.random.Generator) -> Pass:
    """Run a batch of about `size` candidates through all phases."""
    share = -(-size // len(spaces))
    nothing = np.zeros(0, np.uint64)
    clock = [time.perf_counter()]
    rows = [distinct(sampled.tables, sampled.draw(share, rng), nothing) for sampled in spaces]
    clock.append(time.perf_counter())
    legal = [block[sampled.legal(block)] for sampled, block in zip(spaces, rows, strict=True)]
    clock.append(time.perf_counter())
    features = join([sampled.space.features(block) for sampled, block in zip(spaces, legal, strict=True) if len(block)])
    clock.append(time.perf_counter())
    model.predict(features)
    clock.append(time.perf_counter())
    sample, check, describe, predict = np.diff(clock).tolist()
    return Pass(sample, check, describe, predict, sum(map(len, rows)), features.count)


def first_use(spaces: Sequence[SketchSpace]) -> float:
    """Seconds of recording all spaces."""
    start = time.perf_counter()
    for space in spaces:
        space.legal(np.zeros((1, len(space.sizes)), np.int64))
    return time.perf_counter() - start


class MadeUpTimes:
    """Times that are not measured: the analytic estimate times a reproducible error."""

    def __init__(self, spaces: Sequence[SketchSpace]) -> None:
        self.spaces = spaces

    def outcomes(self, picks: Sequence[Pick]) -> list[Outcome]:
        return [Outcome(pick, self._seconds(pick)) for pick in picks]

    def _seconds(self, pick: Pick) -> float:
        features: FeatureRows = self.spaces[pick.space].features(np.array([pick.row], np.int64).reshape(1, len(pick.row)))
        error = np.random.default_rng([pick.space, *pick.row]).standard_normal()
        return float(np.exp(features.prior_logs()).sum() / 3e9 * np.exp(0.2 * error))


def trained(spaces: Sequence[SketchSpace], programs: int) -> tuple[CostModel, Tuner, MadeUpTimes]:
    """A model trained on this many programs, the tuner that proposed them, and their times."""
    model, times = pretrained(), MadeUpTimes(spaces)
    tuner = Tuner(spaces, model, options=TunerOptions(budget=4 * programs))
    while tuner.trials < programs and (picks := tuner.ask(ROUND)):
        tuner.tell(times.outcomes(picks))
    return model, tuner, times


def rounds(tuner: Tuner, times: MadeUpTimes, count: int, profile: cProfile.Profile | None) -> list[float]:
    """Seconds of `ask` and `tell`, for each of some rounds."""
    found = []
    for _ in range(count):
        if profile is not None:
            profile.enable()
        start = time.perf_counter()
        picks = tuner.ask(ROUND)
        asked = time.perf_counter() - start
        if profile is not None:
            profile.disable()
        outcomes = times.outcomes(picks)
        if profile is not None:
            profile.enable()
        start = time.perf_counter()
        tuner.tell(outcomes)
        found.append(asked + time.perf_counter() - start)
        if profile is not None:
            profile.disable()
    return found


def rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), help="tasks (default: all)")
    options.add_argument("--candidates", type=int, default=2048, help="size of a batch; the search's population has 2048 (default: %(default)s)")
    options.add_argument("--passes", type=int, default=15, help="number of batches; the median is shown (default: %(default)s)")
    options.add_argument("--programs", type=int, default=64, help="programs that the model is trained on (default: %(default)s)")
    options.add_argument("--target", default="cpu", help="(default: %(default)s)")
    options.add_argument("--profile", action="store_true", help="print a profile of the rounds")
    given = options.parse_args()
    in_one_thread()
    out = console()
    shown = table(
        f"candidates per second on one thread, medians of {given.passes} batches of {given.candidates}",
        ["task"], ["spaces", "first use", "legal share", "sample", "legal", "features", "predict", *AIMS, "a round of 16"],
    )  # fmt: skip
    missed = []
    for name in given.only:
        title, declare = TASKS[name]
        spaces = SearchTask(tensors=declare(), target=f"{given.target} -threads=1").spaces
        recording = first_use(spaces)
        model, tuner, times = trained(spaces, given.programs)
        sampled, rng = [SampledSpace(space) for space in spaces], np.random.default_rng(0)
        passes = [one_pass(sampled, model, given.candidates, rng) for _ in range(given.passes)]
        middle = sorted(passes, key=lambda one: one.seconds / one.drawn)[len(passes) // 2]
        profile = cProfile.Profile() if given.profile else None
        seconds = median(rounds(tuner, times, 5, profile))
        shown.add_row(
            title, str(len(spaces)), short(recording), f"{middle.kept / middle.drawn:.2f}", rate(middle.drawn, middle.sample), rate(middle.drawn, middle.legal),
            rate(middle.kept, middle.features), rate(middle.kept, middle.predict), *(f"{found:,.0f}" for found in middle.rates.values()), short(seconds),
        )  # fmt: skip
        missed += [f"{what} of {name} ({found:,.0f})" for what, found in middle.rates.items() if name in AIMED and found < AIMS[what]]
        if profile is not None:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    out.print(shown)
    aims = " and ".join(f"{aim:,} ({what})" for what, aim in AIMS.items())
    out.print(f"target: {aims} per second for {', '.join(AIMED)}: {'MISSED by ' + '; '.join(missed) if missed else 'reached'}. {machine_line()}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
