"""Progress of a run: a bar and a few live lines on a terminal, plain lines elsewhere, and the table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ansor.ir.access import has_reduction
from ansor.run.machine_peak import peak_gflops
from ansor.run.progress_text import BUSY, is_above, progress_parts, result_parts, seconds_left, share_done, speed_text, trials_text
from ansor.run.several_targets import name_of
from ansor.run.states import Progress, TaskState
from ansor.run.zero_tuning import can_run_as_declared
from ansor.support.text import counted, format_left
from ansor.targets.base import Target
from ansor.targets.unit import SECONDS

PLAIN_SECONDS = 5.0
"""Seconds between two plain lines."""


class ProgressPanel:
    """A run as a rich renderable: the current activity before the first trial, then a bar above a few lines."""

    def __init__(self, target: Target | None = None) -> None:
        self.target = target
        self._bar = Bar(TextColumn("{task.fields[trials]}"), BarColumn(bar_width=None), TextColumn("{task.fields[rest]}"), expand=True, auto_refresh=False)
        self._run = self._bar.add_task("", total=1.0, trials="", rest="")
        self._under: list[str] | None = None  # lines under the bar; None before the first trial
        self._shown: RenderableType = Spinner("dots", "starting")

    def __rich__(self) -> RenderableType:
        return self._shown

    def now(self, what: str) -> None:
        """Show the current activity when no trials run."""
        spinner = Spinner("dots", what)
        self._shown = spinner if self._under is None else Group(self._bar, *map(Text, self._under), spinner)

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""
        left = seconds_left(progress)
        rest = "  ".join(filter(None, (speed_text(progress), f"{format_left(left)} left" if left is not None else "")))
        self._bar.update(self._run, completed=share_done(progress), trials=trials_text(progress), rest=rest)
        # One part per line, so that nothing jumps as numbers grow. Words that do not fit wrap to the next line.
        devices = progress.devices if progress.whole is None else [line for latest in progress.whole.latest for line in latest.devices]
        self._under = [*result_parts(progress, self.peak()), *devices]
        self._shown = Group(self._bar, *map(Text, self._under))

    def peak(self) -> float | None:
        """The target's peak in GFLOP/s, measured when first asked for."""
        return peak_gflops(self.target) if self.target is not None else None


@dataclass
class ProgressView:
    """Shows progress on a console. `target`: rates are compared with its peak."""

    console: Console
    target: Target | None = None
    live: Live | None = None
    last: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.panel = ProgressPanel(self.target)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            # The caller's prints go above the live lines, unless stdout is redirected.
            self.live = Live(self.panel, console=self.console, refresh_per_second=8, transient=True, redirect_stdout=sys.stdout.isatty())
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def update(self, progress: Progress) -> None:
        """Show the state after a trial."""
        if self.live is not None:
            self.panel.update(progress)
            return
        now = time.monotonic()
        if now - self.last >= PLAIN_SECONDS or progress.total.trials == progress.total.budget or progress.left == 0:
            self.last = now
            self.say(" | ".join(progress_parts(progress, self.panel.peak())))

    def now(self, what: str) -> None:
        """Show the current activity when no trials run; only on a terminal."""
        if self.live is not None:
            self.panel.now(what)

    def say(self, line: str) -> None:
        """Print a permanent line above the live ones."""
        say(self.console, line)


def say(console: Console, line: str) -> None:
    """Print one line; only a terminal wraps it, between words."""
    console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)


def task_table(states: Sequence[TaskState], peak_gflops: float | None) -> Table:
    """One row per task: its target if there are several, uses, best latency, rate and share of the peak if any task has them, trials."""
    rated = any(_gflops(state) is not None for state in states)
    several = len({name_of(state.task.target) for state in states}) > 1
    table = Table(box=None, pad_edge=False, caption_justify="left")
    table.add_column("task", overflow="fold")
    if several:
        table.add_column("target", overflow="fold")
    for heading in ("uses", "latency" if all(state.unit == SECONDS for state in states) else "cost", *(("GFLOP/s", "% of peak") if rated else ()), "trials"):
        table.add_column(heading, justify="right", no_wrap=True)
    for state in states:
        cost = state.cost
        gflops = _gflops(state)
        mark = _mark(state, peak_gflops)
        rate = f"{gflops:.1f}{mark}" if gflops is not None else ""
        share = f"{100 * gflops / peak_gflops:.0f}{mark}" if gflops is not None and peak_gflops else ""
        table.add_row(
            Text(state.task.name),
            *([Text(name_of(state.task.target))] if several else []),
            f"{state.weight:g}",
            state.unit.text(cost) if cost else _unmeasured(state),
            *([rate, share] if rated else []),
            str(state.trials),
        )
    table.caption = escape("\n".join(_remarks(states, peak_gflops)))
    return table


UNTUNED, FAILED = "untuned", "failed"


def _unmeasured(state: TaskState) -> str:
    """The word in place of a time."""
    return FAILED if state.trials else UNTUNED


def _without_trials(states: Sequence[TaskState]) -> str:
    """Why tasks have no trials. Tuning a network skips tasks without a reduction."""
    plain = sum(_unmeasured(one) == UNTUNED and not any(map(has_reduction, one.task.dag.stages)) for one in states if one.cost is None)
    return f"no trials ({counted(plain, 'task')} without a reduction, which tuning a network skips)" if plain and len(states) > 1 else "no trials"


def _instead(states: Sequence[TaskState]) -> str:
    """What runs in place of programs that all failed."""
    failed = [state.task for state in states if state.cost is None and _unmeasured(state) == FAILED]
    if all(map(can_run_as_declared, failed)):
        return "they use the plain loops of the declaration"
    return "nothing runs: the target cannot run the plain loops of the declaration either"


def _mark(state: TaskState, peak_gflops: float | None) -> str:
    """The mark after a rate that needs a remark."""
    if state.fewer_operations:
        return "*"
    return "**" if is_above(_gflops(state) or 0.0, peak_gflops) else ""


def _gflops(state: TaskState) -> float | None:
    """The rate of the best program, if its cost is a time."""
    return state.task.flop / state.cost / 1e9 if state.cost and state.unit == SECONDS else None


def _remarks(states: Sequence[TaskState], peak_gflops: float | None) -> list[str]:
    """Explanations of the marks in the table."""
    without = {_unmeasured(state) for state in states if state.cost is None}
    remarks = [f"{UNTUNED}: {_without_trials(states)}; they use the program that the model picks"] if UNTUNED in without else []
    remarks += [f"{FAILED}: no valid program; {_instead(states)}"] if FAILED in without else []
    marks = {_mark(state, peak_gflops) for state in states}
    remarks += ["* operations as declared: the algorithm, such as Winograd's, needs fewer of them"] if "*" in marks else []
    return remarks + ([f"** above the peak, which {BUSY}"] if "**" in marks else [])
