"""Chooses programs inside a `with` statement: `ApplyHistoryBest` takes them from logs. Source: TVM 0.9, `auto_scheduler.dispatcher`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from ansor.compat.auto_scheduler.callbacks import own_file
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.history import BestProgram, best_of, best_of_ours, pairs_of
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.record import Pairs
from ansor.compat.auto_scheduler.workload_key import parse_workload_key
from ansor.errors import AnsorError, RecordError


class DispatchContext:
    """The root context, which has no programs. `current` is the innermost context."""

    current: ClassVar[DispatchContext]
    _around: DispatchContext | None = None

    def best(self, task: DeclaredTask) -> BestProgram:
        """The best program of a task. Raises RecordError if there is none."""
        raise RecordError(f"asked for the best program of {task!r} outside of any ApplyHistoryBest; name a log, or enter `with ApplyHistoryBest(log):`")

    def query(self, target: str, workload_key: str, has_complex_op: bool = True, dag: object = None, func_name: str = "") -> State | None:
        """The best state of a workload on a target, or None. The last three arguments are accepted for compatibility and ignored."""
        try:
            return self.best(DeclaredTask(workload_key=workload_key, target=target)).state
        except AnsorError:
            return None

    def __enter__(self) -> Self:
        self._around = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        DispatchContext.current = self._around or _ROOT


class FallbackContext(DispatchContext):
    """The root context, under TVM's name."""


class ApplyHistoryBest(DispatchContext):
    """The best programs of logs. Inside `with ApplyHistoryBest("log.json"):`, `task.apply_best()` uses them.

    records: a log, several logs, or pairs of inputs and results. n_lines: how many records to read. include_compatible: also use programs of workloads that
    differ only in numbers.
    """

    def __init__(
        self, records: str | Path | Pairs | Iterable[str | Path], n_lines: int | None = None, include_compatible: bool = False
    ) -> None:
        self.include_compatible = include_compatible
        self._records: dict[str, list[tuple[MeasureInput, MeasureResult]]] = {}
        self._logs: list[str | Path] = []
        self.load(records, n_lines)

    def load(self, records: str | Path | Pairs | Iterable[str | Path], n_lines: int | None = None) -> None:
        """Add records."""
        given = [records] if isinstance(records, str | Path) else list(records)
        logs = [one for one in given if isinstance(one, str | Path)]
        self._logs += logs
        pairs = [pair for log in logs if Path(log).exists() for pair in pairs_of(log, n_lines)]
        pairs += [one for one in given if not isinstance(one, str | Path)][:n_lines]
        for inp, result in pairs:
            self._records.setdefault(parse_workload_key(inp.task.workload_key).name, []).append((inp, result))

    def best(self, task: DeclaredTask) -> BestProgram:
        """The best program of a task; if there is none, that of the enclosing context. Raises RecordError if no context has one."""
        ours = [best_of_ours(task, own_file(log)) for log in self._logs]
        found = [one for one in (*ours, self._of_lines(task)) if one is not None]
        return min(found, key=lambda one: one.cost) if found else (self._around or _ROOT).best(task)

    def _of_lines(self, task: DeclaredTask) -> BestProgram | None:
        try:
            return best_of(task, self._records.get(parse_workload_key(task.workload_key).name, []), self.include_compatible)
        except RecordError:
            return None


_ROOT = FallbackContext()
DispatchContext.current = _ROOT
