"""What a person sees while a run goes on: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ansor.text import counted, format_seconds
from ansor.tuning import Progress, TaskState

PLAIN_SECONDS = 5.0
"""Seconds between two plain lines."""


def progress_text(progress: Progress, weights: Sequence[float], peak_gflops: float | None) -> str:
    """One line: best latency, rate and share of the peak, trials and their speed, time left, failures by kind."""
    parts = [f"{progress.trials}/{progress.budget} trials", progress.task.name]
    known = [seconds for seconds in progress.best if seconds is not None]
    if known:
        parts.append(_best_text(progress, weights, peak_gflops))
    rate = progress.measured / progress.elapsed if progress.elapsed > 0 else 0.0
    if rate > 0:
        parts.append(f"{rate:.1f} trials/s, {format_left((progress.budget - progress.trials) / rate)} left")
    if progress.failures:
        parts.append("failed: " + ", ".join(f"{kind} {count}" for kind, count in sorted(progress.failures.items())))
    return " | ".join(parts)


def _best_text(progress: Progress, weights: Sequence[float], peak_gflops: float | None) -> str:
    total = sum(weight * seconds for weight, seconds in zip(weights, progress.best, strict=True) if seconds is not None)
    missing = sum(seconds is None for seconds in progress.best)
    if len(progress.best) > 1:
        return f"sum of kernels {format_seconds(total)}" + (f" ({counted(missing, 'task')} to come)" if missing else "")
    gflops = progress.task.flop / total / 1e9
    share = f" ({100 * gflops / peak_gflops:.0f} % of peak)" if peak_gflops else ""
    return f"best {format_seconds(total)}, {gflops:.1f} GFLOP/s{share}"


def format_left(seconds: float) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@dataclass
class ProgressView:
    """Shows progress on a console; use it in a `with` statement."""

    console: Console
    weights: Sequence[float]
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

    def expect(self, weights: Sequence[float]) -> None:
        """The weights of the tasks to come."""
        self.weights = weights

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""
        text = progress_text(progress, self.weights, self.peak_gflops)
        if self.live is not None:
            self.live.update(Text(text))
            return
        now = time.monotonic()
        if now - self.last >= PLAIN_SECONDS or progress.trials == progress.budget:
            self.last = now
            self.console.print(text, highlight=False, soft_wrap=True)

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
    return table
