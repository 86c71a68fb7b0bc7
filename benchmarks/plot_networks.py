"""Plots whole networks: the speed of ours relative to the other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from network_results import Result
from plot import FAINT, INK, LOOKS

TICKS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def draw(path: Path, results: Sequence[Result], title: str) -> None:
    """Write the plot, in the format of the file's extension. Bars are the middle 80 % of the turns."""
    with pyplot.rc_context({"font.size": 9, "font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "networks", "text.color": INK}):
        figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(results) + 1.3), layout="constrained")
        for side in results[0].ratios:
            look, each = LOOKS[side], [one.ratios[side] for one in results]
            axes.hlines(range(len(each)), [one.low for one in each], [one.high for one in each], color=look.colour, linewidth=1.5, alpha=0.5, zorder=look.order)
            axes.scatter([one.median for one in each], range(len(each)), c=look.colour, marker=look.marker, s=30, label=look.title, zorder=look.order)
        axes.axvline(1.0, color=INK, linewidth=0.8, zorder=2)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlim(min(0.8, *(ratio.low for one in results for ratio in one.ratios.values())) * 0.95)
        axes.set_yticks(range(len(results)), [one.name.replace("_", " ") for one in results])
        axes.invert_yaxis()
        axes.grid(axis="x", color=FAINT, linewidth=0.7, zorder=0)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel("times as fast as (log scale)")
        figure.legend(loc="outside upper center", ncols=2, frameon=False, title=f"Networks: {title}")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(figure)
