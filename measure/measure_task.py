"""What all candidates of a task share when they are measured."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.codegen.source import CSource


@dataclass(frozen=True, slots=True)
class MeasureTask:
    """What all candidates of a task share. `reference` computes the expected outputs in double precision: the same
    arguments with float64 for every float; None: outputs are not verified. `reduction` is the length of the longest
    reduction behind an output element; `ranges` gives (low, high) for arguments that must not get the default inputs;
    `threads`: of the target, which decide the clock; `files` holds the values of single arguments (NumPy's format);
    `rounding`: the dtype in which outputs were computed on the way, where that is a narrower one."""

    key: str
    reference: CSource | None = None
    reduction: int = 1
    ranges: tuple[tuple[str, float, float], ...] = ()
    seed: int = 0
    threads: int = 1
    files: tuple[tuple[str, str], ...] = ()
    rounding: str = ""
