"""Measurements indexed by their input: a configuration of a task on a target. Source: AutoTVM 0.9, `autotvm.database`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, overload

from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.common.outcome import MeasureErrorNo


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A key that equal inputs share: target, task, arguments, and, unless excluded, the configuration with its code hash."""
    config = f" {inp.config}" if include_config else ""
    return f"{inp.target} {inp.task.name} {inp.task.args} {dict(inp.task.kwargs)}{config}"


class Database:
    """Measurements in memory. To keep them on disk, use log files: `log_to_file`, and `load_from_file` with `save`."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[MeasureInput, list[MeasureResult]]] = {}

    @overload
    def load(self, inp: MeasureInput, get_all: Literal[False] = False) -> MeasureResult | None: ...

    @overload
    def load(self, inp: MeasureInput, get_all: Literal[True]) -> list[MeasureResult] | None: ...

    def load(self, inp: MeasureInput, get_all: bool = False) -> MeasureResult | list[MeasureResult] | None:
        """The latest result of an input, or all in order; None if there is none."""
        _, results = self._known.get(measure_str_key(inp), (inp, []))
        if not results:
            return None
        return list(results) if get_all else max(results, key=lambda result: result.timestamp)

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Store a result: it replaces earlier ones or, with `extend`, is added to them."""
        key = measure_str_key(inp)
        before = self._known[key][1] if extend and key in self._known else []
        self._known[key] = (inp, [*before, res])

    def filter(self, func: Callable[[MeasureInput, list[MeasureResult]], object]) -> list[tuple[MeasureInput, MeasureResult]]:
        """The measurements of every input for which `func(input, results)` is true."""
        return [(inp, result) for inp, results in self._known.values() if func(inp, list(results)) for result in results]

    def flush(self) -> None:
        """Forget everything."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[MeasureInput]:
        return (inp for inp, _ in self._known.values())


DummyDatabase = Database


def filter_inputs(db: Database, measure_inputs: Sequence[MeasureInput], retry: bool = False) -> tuple[list[MeasureResult | None], list[MeasureInput]]:
    """The known result of each input, None if unknown, and the inputs to measure, including failed ones with `retry`."""
    results: list[MeasureResult | None] = []
    for inp in measure_inputs:
        known = db.load(inp)
        results.append(None if known is None or (retry and known.error_no != MeasureErrorNo.NO_ERROR) else known)
    return results, [inp for inp, known in zip(measure_inputs, results, strict=True) if known is None]
