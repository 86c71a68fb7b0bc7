"""Turns rows into the printed table, and into a summary that is compared with the targets."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from common import short, table
from operator_sets import MARKS
from results import EAGER, OURS, Cell, Result
from rich.table import Table
from suite import Row

from ansor.dataset.known import FAMILY, NOTHING, OPERATOR

RIVAL_TITLES = {EAGER: "PyTorch eager", "inductor": "PyTorch Inductor", "onnxruntime": "ONNX Runtime"}
GEOMEAN_EAGER, GEOMEAN_BEST, WORST, UNUSUAL, INT8_OVER_FP32 = 1.3, 1.1, 0.95, 2.0, 1.6
INT8_PAIR = ("int8_matmul_512", "matmul_512")
NOTHING_KNOWN: Mapping[str, str] = {}


@dataclass(frozen=True)
class Line:
    """One line of the summary. value: None if no row has one; aim: the target, None if there is none."""

    what: str
    value: float | None
    aim: float | None = None
    remark: str = ""

    @property
    def missed(self) -> bool:
        """Whether the value is below its target. A row that was not run misses nothing."""
        return self.aim is not None and self.value is not None and self.value < self.aim

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.2f}"
        verdict = "" if self.aim is None or self.value is None else f", target {self.aim}: {'MISSED' if self.missed else 'met'}"
        return f"{self.what}: {value}{verdict}{f' ({self.remark})' if self.remark else ''}"


def geomean(values: Iterable[float]) -> float | None:
    """Geometric mean; None without values."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def summary(rows: Sequence[Row], results: Mapping[str, Result], known: Mapping[str, str] = NOTHING_KNOWN) -> list[Line]:
    """Compares the rows that have results with the targets. A row of ours that failed or is wrong becomes a line that missed its target.

    known: for each row, how much of it the package's model was trained on (`known_to_model`); rows that it was not trained on also get separate means.
    """
    found = [(row, results[row.name]) for row in rows if row.name in results]
    fp32 = [(row, result) for row, result in found if row.fp32]
    against_eager = {row.name: ratio for row, result in fp32 if (ratio := result.ratio(EAGER)) is not None}
    against_best = {row.name: ratio for row, result in fp32 if (ratio := result.best_ratio()) is not None}
    unusual = [against_eager[row.name] for row, _ in fp32 if row.unusual and row.name in against_eager]
    lines = [
        Line("geomean of fp32 rows against PyTorch eager", geomean(against_eager.values()), GEOMEAN_EAGER, f"{len(against_eager)} rows"),
        Line("geomean of fp32 rows against the best rival", geomean(against_best.values()), GEOMEAN_BEST, f"{len(against_best)} rows"),
        _worst("worst fp32 row against PyTorch eager", against_eager, WORST),
        _worst("worst fp32 row against the best rival", against_best, None),
        Line("geomean of unusual operators against PyTorch eager", geomean(unusual), UNUSUAL, f"{len(unusual)} rows"),
    ]
    for what, learned in (("operators", (OPERATOR,)), ("families", (OPERATOR, FAMILY))):
        if any(known.get(row.name) in learned for row, _ in fp32):
            others = [row.name for row, _ in fp32 if known.get(row.name) not in learned]
            lines += [_others("PyTorch eager", against_eager, others, what), _others("the best rival", against_best, others, what)]
    lines += [Line(f"{row.name} against PyTorch eager", result.ratio(EAGER), row.aim) for row, result in found if row.aim is not None]
    lines += _int8(results)
    lines += [Line(f"{row.name}: {result.ours.problem}", 0.0, 1.0) for row, result in found if not result.ours.counts]
    return [line for line in lines if line.value is not None]


def _worst(what: str, ratios: Mapping[str, float], aim: float | None) -> Line:
    name = min(ratios, key=lambda one: ratios[one], default="")
    return Line(what, ratios.get(name), aim, name)


def _others(rival: str, ratios: Mapping[str, float], others: Container[str], what: str) -> Line:
    kept = [ratio for name, ratio in ratios.items() if name in others]
    return Line(f"the same against {rival}, only {what} that the model was not trained on", geomean(kept), None, f"{len(kept)} rows")


def _int8(results: Mapping[str, Result]) -> list[Line]:
    seconds = [results[name].ours.seconds for name in INT8_PAIR if name in results and results[name].ours.counts]
    if len(seconds) < 2 or not all(seconds):
        return []
    int8, fp32 = seconds
    return [Line("our int8 matmul 512 against our fp32 matmul 512", (fp32 or 0.0) / (int8 or 1.0), INT8_OVER_FP32, "timed in different rows")]


def results_table(title: str, rows: Sequence[Row], results: Mapping[str, Result], rivals: Sequence[str],
                  known: Mapping[str, str] = NOTHING_KNOWN) -> Table:
    """One line for each row with a result, by group, with marks for what the package's model was trained on."""
    numbers = ["ours ms", "GFLOP/s", "% of peak", *(f"{RIVAL_TITLES[rival]} / ours" for rival in rivals), "error", "target", "tuned in", "setup of others"]
    shown = table(title, ["operator"], numbers)
    found = [row for row in rows if row.name in results]
    for number, row in enumerate(found):
        result = results[row.name]
        ours, gflops, share = result.ours, result.gflops(OURS), result.share(OURS)
        setup = sum(result.cells[rival].setup for rival in rivals if rival in result.cells)
        shown.add_row(
            f"{row.name}{MARKS[known.get(row.name, NOTHING)]}",
            f"{1e3 * ours.seconds:.3f}" if ours.seconds else "-", f"{gflops:.1f}" if gflops else "-", f"{100 * share:.1f}" if share else "-",
            *(_compared(result.cells.get(rival)) for rival in rivals), _error(ours), _verdict(row, result), short(ours.setup), short(setup),
            end_section=number + 1 == len(found) or found[number + 1].group != row.group,
        )  # fmt: skip
    return shown


def _compared(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return cell.problem.partition(":")[0] if cell.problem else str(cell.ratio)


def _error(cell: Cell) -> str:
    if cell.error is None:
        return "-"
    return f"{cell.error:.0e}{' WRONG' if cell.problem else ''}"


def _verdict(row: Row, result: Result) -> str:
    if row.aim is None:
        return "-"
    ratio = result.ratio(EAGER)
    return f"{row.aim} {'-' if ratio is None else 'met' if ratio >= row.aim else 'MISSED'}"


def problems(results: Iterable[Result]) -> list[str]:
    """Every cell that does not count, in full."""
    return [f"{result.name}, {side}: {cell.problem}" for result in results for side, cell in result.cells.items() if cell.problem]
