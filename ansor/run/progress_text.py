"""The state of a run as text."""

from __future__ import annotations

from ansor.run.several_targets import name_of
from ansor.run.states import Progress
from ansor.support.text import counted, format_left, format_seconds, format_share
from ansor.targets.unit import SECONDS

ALONE = "each alone, warm caches"
"""How kernels are timed while tuning. The whole network is slower than their sum: data that another kernel wrote is in slower caches."""

BUSY = "was measured while the machine was busy"
"""A remark on the peak when a kernel is faster."""


LEAST_GAIN = 0.0005
"""A smaller gain prints as 0.0 %, as at the end of a run, and is omitted."""


def progress_parts(progress: Progress, peak_gflops: float | None) -> list[str]:
    """Trials, their speed and the time left; best latency, rate and share of the peak; the current task; the expected gain of the rest; failures by kind."""
    left = seconds_left(progress)
    head = [trials_text(progress), speed_text(progress), f"{format_left(left)} left" if left is not None else ""]
    return [part for part in (", ".join(filter(None, head)), *result_parts(progress, peak_gflops)) if part]


def result_parts(progress: Progress, peak_gflops: float | None) -> list[str]:
    """The best result, the current task, the expected gain of the rest, and failures; with several targets a line for each."""
    if progress.whole is not None:
        return [f"{name_of(latest.task.target)}: {'; '.join([trials_text(latest), *result_parts(latest, None)])}" for latest in progress.whole.latest]
    parts = [best_text(progress, peak_gflops)] if progress.waiting < progress.tasks else []
    parts.append(task_text(progress))
    if progress.gain is not None and progress.gain >= LEAST_GAIN:
        parts.append(f"the remaining trials are expected to make it {format_share(progress.gain)} faster")
    if progress.failures:
        parts.append("failed: " + ", ".join(f"{kind} {count}" for kind, count in sorted(progress.failures.items())))
    return parts


def trials_text(progress: Progress) -> str:
    """`8/64 trials`."""
    spent = progress.total
    return counted(spent.trials, "trial") if spent.budget is None else f"{spent.trials}/{spent.budget} trials"


def speed_text(progress: Progress) -> str:
    """`2.0 trials/s`, '' before there is a speed."""
    spent = progress.total
    rate = spent.measured / spent.elapsed if spent.elapsed > 0 else 0.0
    return f"{rate:.1f} trials/s" if rate > 0 else ""


def best_text(progress: Progress, peak_gflops: float | None) -> str:
    """The best latency (for several tasks, the sum), the rate, and the share of the peak."""
    what = "best" if progress.tasks == 1 else f"sum of {counted(progress.tasks - progress.waiting, 'kernel')} ({ALONE})"
    if progress.unit != SECONDS:
        return f"{what} {progress.unit.text(progress.cost)}, {progress.unit.rate(progress.flop, progress.cost)}"
    gflops = progress.flop / progress.cost / 1e9
    return f"{what} {format_seconds(progress.cost)}, {gflops:.1f} GFLOP/s{share_text(gflops, peak_gflops, progress.fewer_operations)}"


def share_text(gflops: float, peak_gflops: float | None, fewer_operations: bool) -> str:
    """` (50 % of peak)`, with a remark if an algorithm needs fewer operations than are counted: the share may then exceed 100."""
    remark = "operations as declared" if fewer_operations else f"which {BUSY}" if is_above(gflops, peak_gflops) else ""
    share = f"{100 * gflops / peak_gflops:.0f} % of peak" if peak_gflops else ""
    return f" ({', '.join(filter(None, (share, remark)))})" if share or remark else ""


def is_above(gflops: float, peak_gflops: float | None) -> bool:
    """Whether a rate exceeds the peak by more than noise, which is possible only if the measured peak is too low."""
    return bool(peak_gflops) and gflops > 1.05 * (peak_gflops or 0.0)


def task_text(progress: Progress) -> str:
    """The current task; with several tasks, also how many already have a program."""
    if progress.tasks == 1:
        return progress.task.name
    return f"measured programs for {progress.tasks - progress.waiting} of {progress.tasks} tuned tasks; now {progress.task.name}"


def seconds_left(progress: Progress) -> float | None:
    """Seconds until the budget of time, or of trials at the current pace, is used; None before there is a pace. Of several targets the last one counts."""
    if progress.whole is not None:
        return max((left for left in map(seconds_left, progress.whole.latest) if left is not None), default=None)
    by_trials = (progress.budget - progress.trials) * progress.pace if progress.budget is not None and progress.pace is not None else None
    return min((seconds for seconds in (by_trials, progress.left) if seconds is not None), default=None)


def share_done(progress: Progress) -> float:
    """The used share of the budget, 0 to 1: of trials or of time, whichever is larger."""
    spent = progress.total
    of_trials = spent.trials / spent.budget if spent.budget else 0.0
    of_time = spent.elapsed / (spent.elapsed + spent.left) if spent.left is not None and spent.elapsed + spent.left > 0 else 0.0
    return min(1.0, max(of_trials, of_time))
