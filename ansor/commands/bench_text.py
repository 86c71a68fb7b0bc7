"""The results of `ansor bench`, as values and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ansor.commands.group_times import GroupTime, limit_of
from ansor.commands.step_times import CALL_PART
from ansor.measure.interleaved import Ratio
from ansor.measure.peak import Peak
from ansor.networks.runtimes import TITLES
from ansor.run.progress import say
from ansor.support.text import counted, format_seconds, format_share

SHOWN, NAME_WIDTH = 12, 33
"""The most groups with a row of their own, and the width of their names: tables fit into 80 columns."""


@dataclass(frozen=True)
class Side:
    """A runtime for the model. seconds: median time of a call; None if it cannot run the model: `problem` says why. ratio: its seconds over ours."""

    name: str
    seconds: float | None
    ratio: Ratio | None
    problem: str = ""


@dataclass(frozen=True)
class Bench:
    """The results. sides: all runtimes, ours first; groups: of our operators; error: largest difference from PyTorch's results; trials: of tuning."""

    network: str
    target: str
    threads: int
    trials: int
    error: float
    peak: Peak | None
    sides: Sequence[Side]
    groups: Sequence[GroupTime]

    @property
    def limit(self) -> float | None:
        """Seconds of a call at the limit of each group (`limit_of`); None without a peak."""
        return None if self.peak is None else limit_of(self.groups)


def show(found: Bench, console: Console) -> None:
    """Print the runtimes, the groups and the limit."""
    trials = f"{counted(found.trials, 'trial')} on record" if found.trials else "nothing tuned (--trials N tunes)"
    say(console, f"{found.network}, {counted(found.threads, 'thread')}, {trials}; medians of alternating calls")
    console.print()
    console.print(_sides_table(found.sides))
    for side in found.sides:
        if side.problem:
            say(console, f"{TITLES[side.name]}: {side.problem}")
    say(console, f"largest difference from PyTorch eager's largest result: {found.error:.1e}")
    console.print()
    console.print(_groups_table(found.groups))
    total = format_seconds(sum(one.seconds for one in found.groups))
    say(console, f"timed within such calls; shares are of the sum, {total}")
    for line in _limit_lines(found):
        say(console, line)


def _sides_table(sides: Sequence[Side]) -> Table:
    shown = _table("", ["a call", "ansor is", "middle 80 %"])
    for side in sides:
        if side.seconds is not None and side.ratio is not None:
            spread = f"{side.ratio.low:.2f} .. {side.ratio.high:.2f}"
            ours = side.name == "ours"
            shown.add_row(TITLES[side.name], format_seconds(side.seconds), "" if ours else f"{side.ratio.median:.2f} x as fast", "" if ours else spread)
    return shown


def _groups_table(groups: Sequence[GroupTime]) -> Table:
    shown = _table("group", ["uses", "time", "share", "GFLOP/s", "of limit"])
    total = sum(one.seconds for one in groups)
    own = [one for one in groups if one.name != CALL_PART]
    for one in own[:SHOWN]:
        shown.add_row(*_row(_clipped(one.name), one, total))
    if rest := own[SHOWN:]:
        shown.add_row(*_row(f"{counted(len(rest), 'more group')}", _together(rest), total))
    for one in groups:
        if one.name == CALL_PART:
            shown.add_row(*_row(one.name, one, total))
    return shown


def _row(name: str, one: GroupTime, total: float) -> tuple[str, ...]:
    rate, near = "-" if one.rate is None else f"{one.rate:.0f}", "-" if one.of_limit is None else f"{100 * one.of_limit:.0f} %"
    return name, str(one.uses), format_seconds(one.seconds), format_share(one.seconds / total), rate, near


def _together(groups: Sequence[GroupTime]) -> GroupTime:
    """Several groups as one; it has no rate, or no limit, if one of them has none."""
    flop, limits = [one.flop for one in groups if one.flop is not None], [one.limit for one in groups if one.limit is not None]
    return GroupTime(
        "", sum(one.uses for one in groups), sum(one.seconds for one in groups),
        sum(flop) if len(flop) == len(groups) else None, sum(limits) if len(limits) == len(groups) else None,
    )  # fmt: skip


def _limit_lines(found: Bench) -> list[str]:
    """The limit, and how near the network comes to it."""
    if found.peak is None or found.limit is None:
        return ["the peak of this machine cannot be measured, so no limit is known"]
    ours = found.sides[0].seconds
    assert ours is not None
    return [
        f"with every group at its limit, a call takes {format_seconds(found.limit)}; ansor takes {format_seconds(ours)}",
        f"limit: {found.peak.gflops:.0f} GFLOP/s (fp32), {found.peak.gbytes:.0f} GB/s; above 100 %: data came from caches",
    ]


def _clipped(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}…"


def _table(first: str, numbers: Sequence[str]) -> Table:
    made_table = Table(box=None, pad_edge=False)
    made_table.add_column(first)
    for heading in numbers:
        made_table.add_column(heading, justify="right")
    return made_table
