"""Plots the suite: for every operator the share of the machine's peak and the speed relative to PyTorch eager, for our kernels and the other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from report import RIVAL_TITLES
from results import EAGER, OURS, Result
from suite import GROUP_TITLES, Row

INK, FAINT, BAND = "#222222", "#d9dde1", "#f4f6f8"
MOST_SHARE, LEAST_RATIO, MOST_RATIO = 1.15, 1 / 4, 16.0
"""Values beyond these limits are drawn at the edge, with their numbers."""


@dataclass(frozen=True)
class Look:
    """How a side is drawn: with its own shape, in a colour of Okabe and Ito's palette, which is safe for colour blindness."""

    title: str
    colour: str
    marker: str
    size: float
    order: int


LOOKS = {
    EAGER: Look(RIVAL_TITLES[EAGER], "#8c8c8c", "o", 22, 3),
    "inductor": Look(RIVAL_TITLES["inductor"], "#e69f00", "s", 20, 4),
    "onnxruntime": Look(RIVAL_TITLES["onnxruntime"], "#009e73", "^", 26, 5),
    OURS: Look("ours", "#0072b2", "D", 38, 6),
}


@dataclass(frozen=True)
class Place:
    """A line of the plot: a row, or the heading of a group."""

    y: float
    heading: str = ""
    result: Result | None = None


def draw(path: Path, rows: Sequence[Row], results: Mapping[str, Result], rivals: Sequence[str], title: str) -> None:
    """Write the plot, in the format of the file's extension."""
    places = list(_places(rows, results))
    height = places[-1].y + 1
    with pyplot.rc_context({"font.size": 8.5, "font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "operators", "text.color": INK}):
        figure, (shares, ratios) = pyplot.subplots(1, 2, sharey=True, figsize=(11, 0.19 * height + 1.4), width_ratios=(1.25, 1), layout="constrained")
        _frame(shares, places, height)
        _frame(ratios, places, height)
        _names(shares, places)
        _shares(shares, places, rivals)
        _ratios(ratios, places, rivals)
        handles, labels = shares.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=9.5, handletextpad=0.2, markerscale=1.3,
            title=f"Operators: {title}", title_fontproperties={"weight": "bold", "size": 10.5},
        )  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(figure)


def _places(rows: Sequence[Row], results: Mapping[str, Result]) -> Iterator[Place]:
    y, group = 0.0, ""
    for row in rows:
        if row.name not in results:
            continue
        if row.group != group:
            y += 0.5 if group else 0.0
            group = row.group
            yield Place(y, GROUP_TITLES[group])
            y += 1.1
        yield Place(y, result=results[row.name])
        y += 1


def _frame(axes: Axes, places: Sequence[Place], height: float) -> None:
    """Grey bands under headings, a thin line for each row, no box."""
    for place in places:
        if place.heading:
            axes.axhspan(place.y - 0.55, place.y + 0.5, color=BAND, zorder=0, linewidth=0)
        else:
            axes.axhline(place.y, color=FAINT, linewidth=0.5, zorder=1)
    axes.set_ylim(height, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=0, top=True, labeltop=True)
    for side in axes.spines.values():
        side.set_visible(False)


def _names(axes: Axes, places: Sequence[Place]) -> None:
    axes.set_yticks([place.y for place in places], [place.heading or _label(place) for place in places])
    for tick, place in zip(axes.get_yticklabels(), places, strict=True):
        tick.set_fontweight("bold" if place.heading else "normal")


def _label(place: Place) -> str:
    name = place.result.name if place.result else ""
    for prefix in ("resnet_", "mobilenet_", "bert_"):
        name = name.removeprefix(prefix)
    return name.replace("_", " ")


def _shares(axes: Axes, places: Sequence[Place], rivals: Sequence[str]) -> None:
    axes.set_title("share of the peak of fp32 arithmetic (square root scale)", fontsize=9.5, pad=8)
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    axes.set_xlim(0, 1.5)
    _grid(axes, [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0], "{:.0%}".format)
    drawn = []
    for side in (*rivals, OURS):
        found = [(share, place.y) for place in places if place.result is not None and (share := place.result.share(side)) is not None]
        _dots(axes, side, found, 0.0, MOST_SHARE)
        drawn += found
    _numbers(axes, drawn, 0.0, MOST_SHARE, "{:.0%}".format)


def _ratios(axes: Axes, places: Sequence[Place], rivals: Sequence[str]) -> None:
    axes.set_title("times as fast as PyTorch eager (log scale)", fontsize=9.5, pad=8)
    axes.set_xscale("log")
    axes.set_xlim(LEAST_RATIO / 1.6, MOST_RATIO * 1.6)
    _grid(axes, [1 / 4, 1 / 2, 1, 2, 4, 8, 16], lambda value: f"{value:g}" if value >= 1 else f"1/{1 / value:g}")
    drawn = []
    for side in (*(one for one in rivals if one != EAGER), OURS):
        found = [(ratio, place.y) for place in places if place.result is not None and (ratio := _faster_than_eager(place.result, side)) is not None]
        _dots(axes, side, found, LEAST_RATIO, MOST_RATIO)
        drawn += found
        if side == OURS:
            ends = [min(MOST_RATIO, max(LEAST_RATIO, ratio)) for ratio, _ in found]
            axes.hlines([y for _, y in found], 1.0, ends, color=LOOKS[OURS].colour, alpha=0.4, linewidth=2.2, zorder=2)
    _numbers(axes, drawn, LEAST_RATIO, MOST_RATIO, "{:.2g}".format)


def _faster_than_eager(result: Result, side: str) -> float | None:
    """Eager's time over a side's time, from medians of turns if there are any."""
    against_us = 1.0 if side == OURS else result.ratio(side)
    eager = result.ratio(EAGER)
    return None if eager is None or not against_us else eager / against_us


def _dots(axes: Axes, side: str, found: Sequence[tuple[float, float]], least: float, most: float) -> None:
    look = LOOKS[side]
    axes.scatter(
        [min(most, max(least, x)) for x, _ in found], [y for _, y in found], s=look.size, c=look.colour, marker=look.marker, label=look.title,
        zorder=look.order, edgecolors="white", linewidths=0.5,
    )  # fmt: skip


def _numbers(axes: Axes, drawn: Sequence[tuple[float, float]], least: float, most: float, text: Callable[[float], str]) -> None:
    """Writes values beyond an edge as numbers next to it."""
    beyond: dict[tuple[float, bool], list[float]] = {}
    for x, y in drawn:
        if not least <= x <= most:
            beyond.setdefault((y, x > most), []).append(x)
    for (y, above), values in beyond.items():
        place, edge, align = ((6, 0), most, "left") if above else ((-6, 0), least, "right")
        shown = " ".join(dict.fromkeys(text(value) for value in sorted(values)))
        axes.annotate(shown, (edge, y), place, textcoords="offset points", ha=align, va="center", fontsize=6.5, annotation_clip=False)


def _grid(axes: Axes, ticks: Sequence[float], text: Callable[[float], str]) -> None:
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    for tick in ticks:
        axes.axvline(tick, color=INK if tick == 1.0 else FAINT, linewidth=0.9 if tick == 1.0 else 0.6, zorder=1)
