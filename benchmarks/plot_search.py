"""Plots the best program so far of each search, over trials and over seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path

import matplotlib
import numpy as np
from curve import Curve

matplotlib.use("Agg")

from matplotlib import pyplot

COLOURS = ("#8c8c8c", "#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
Shares = Callable[[Sequence[Curve], Callable[[Curve], float]], Mapping[str, tuple[float, float]]]


def _at_trial(one: Curve, place: float) -> float:
    return one.at_trial(int(place))


def _at(one: Curve, place: float) -> float:
    return one.at(place)


def draw(path: Path, curves: Sequence[Curve], shares: Shares, searches: Sequence[str]) -> None:
    """Write the plot, in the format of the file's extension. Bands are one standard deviation over seeds."""
    trials = max(len(one.best) for one in curves)
    counts = np.unique(np.round(np.geomspace(1, trials, 24)).astype(int))
    seconds = np.geomspace(0.5, max(one.elapsed[-1] for one in curves), 32)
    with pyplot.rc_context({"font.size": 9, "font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "search"}):
        figure, (by_trials, by_seconds) = pyplot.subplots(1, 2, sharey=True, figsize=(9.5, 3.6), layout="constrained")
        for axes, places, at, label in ((by_trials, counts, _at_trial, "programs measured"), (by_seconds, seconds, _at, "seconds since the declaration")):
            found = [shares(curves, partial(at, place=float(place))) for place in places]
            for search, colour in zip(searches, cycle(COLOURS)):
                known = [(place, *column[search]) for place, column in zip(places, found, strict=True) if search in column]
                if not known:
                    continue
                x, mean, spread = (np.array(values, float) for values in zip(*known, strict=True))
                axes.plot(x, mean, color=colour, label=search, linewidth=1.8)
                axes.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
            axes.set_xscale("log")
            axes.set_xlabel(label)
            axes.set_ylim(0, 1.02)
            axes.grid(color="#d9dde1", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        by_trials.set_ylabel("speed, share of the best found")
        by_trials.legend(frameon=False, loc="lower right")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(figure)
