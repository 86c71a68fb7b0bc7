"""What a person sees while a run goes on: a few live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ansor.text import counted, format_left, format_seconds, format_share
from ansor.tuning import Progress, TaskState

PLAIN_SECONDS = 5.0
"""Seconds between two plain lines."""


def progress_parts(progress: Progress, peak_gflops: float | None) -> list[str]:
    """Trials, their speed and the time left; best latency, rate, share of the peak and the gain to expect; the task at hand; failures by kind."""
    rate = progress.measured / progress.elapsed if progress.elapsed > 0 else 0.0
    speed = f", {rate:.1f} trials/s" if rate > 0 else ""
    left = seconds_left(progress)
    number = counted(progress.trials, "trial") if progress.budget is None else f"{progress.trials}/{progress.budget} trials"
    parts = [f"{number}{speed}{f', {format_left(left)} left' if left is not None else ''}"]
    if progress.waiting < progress.tasks:
        parts.append(_best_text(progress, peak_gflops))
    parts.append(progress.task.name)
    if progress.failures:
        parts.append("failed: " + ", ".join(f"{kind} {count}" for kind, count in sorted(progress.failures.items())))
    return parts


def _best_text(progress: Progress, peak_gflops: float | None) -> str:
    what = "best" if progress.tasks == 1 else "sum of kernels"
    gflops = progress.flop / progress.seconds / 1e9
    share = f" ({100 * gflops / peak_gflops:.0f} % of peak)" if peak_gflops else ""
    missing = f", {counted(progress.waiting, 'task')} to come" if progress.waiting else ""
    gain = f", {format_share(progress.gain)} to gain" if progress.gain is not None else ""
    return f"{what} {format_seconds(progress.seconds)}, {gflops:.1f} GFLOP/s{share}{missing}{gain}"


def seconds_left(progress: Progress) -> float | None:
    """Until the budget is used, of time or, at the pace so far, of trials; None before there is a pace."""
    by_trials = (progress.budget - progress.trials) * progress.pace if progress.budget is not None and progress.pace is not None else None
    return min((seconds for seconds in (by_trials, progress.left) if seconds is not None), default=None)


@dataclass
class ProgressView:
    """Shows progress on a console; use it in a `with` statement."""

    console: Console
    peak_gflops: float | None = None
    live: Live | None = None
    last: float = field(default=0.0)

    def __enter__(self) -> ProgressView:
        if self.console.is_terminal:
            self.live = Live(Text("starting"), console=self.console, refresh_per_second=8, transient=True)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""
        parts = progress_parts(progress, self.peak_gflops)
        if self.live is not None:
            # One part to a line, so that nothing jumps as numbers grow; what is wider than the terminal is cut.
            self.live.update(Text("\n".join(parts), no_wrap=True, overflow="ellipsis"))
            return
        now = time.monotonic()
        if now - self.last >= PLAIN_SECONDS or progress.trials == progress.budget or progress.left == 0:
            self.last = now
            self.console.print(" | ".join(parts), highlight=False, soft_wrap=True)

    def now(self, what: str) -> None:
        """What goes on instead of trials; on a terminal only."""
        if self.live is not None:
            self.live.update(Text(what))

    def say(self, line: str) -> None:
        """One line above the live one."""
        self.console.print(line, highlight=False, soft_wrap=True)


def task_table(states: Sequence[TaskState], peak_gflops: float | None) -> Table:
    """One row per task: uses, best latency, rate, share of the peak, trials."""
    table = Table(box=None, pad_edge=False)
    table.add_column("task")
    for heading in ("uses", "latency", "GFLOP/s", "% of peak", "trials"):
        table.add_column(heading, justify="right")
    for state in states:
        seconds = state.seconds
        gflops = state.task.flop / seconds / 1e9 if seconds else None
        table.add_row(
            state.task.name,
            f"{state.weight:g}",
            format_seconds(seconds) if seconds else "-",
            f"{gflops:.1f}" if gflops is not None else "-",
            f"{100 * gflops / peak_gflops:.0f}" if gflops is not None and peak_gflops else "-",
            str(state.trials),
        )
    if any(_has_other_operations(state) for state in states):
        table.caption, table.caption_justify = "operations are counted as declared; Winograd's algorithm and its like need fewer of them", "left"
    return table


def _has_other_operations(state: TaskState) -> bool:
    return state.best is not None and state.best.sketch.dag.flop < state.task.flop
