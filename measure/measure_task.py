"""What all candidates of a task share in measuring."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.source import CSource


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """What all candidates of a task share. `reference` computes the expected outputs in double precision, with the same
    arguments but float64 for every float; None: outputs are not verified. `reduction`: the length of the longest
    reduction behind an output element; `ranges`: (low, high) of arguments that need other inputs than the default;
    `threads`: the target's, which decide the clock; `files`: values of single arguments (NumPy's format);
    `rounding`: see `Dag.rounding`."""

    key: str
    reference: CSource | None = None
    reduction: int = 1
    ranges: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0
    threads: int = 1
    files: tuple[tuple[str, str], ...] = ()
    rounding: str = ""
