"""Converts a measurement of the auto-scheduler to a trial of our record files, and back.

    {"i": [["[\\"matmul\\", 512, 512, 512]", "llvm", [...]], [[], [["SP", ...], ...]]], ...}     a workload, and steps on its declaration
    {"workload": "57f6...", "target": "cpu ...", "sketch": [...], "row": [3, 0, 12], ...}        a declaration's key, a sketch of our search, and its choices

Both need the declaration: a log names it, and a record file holds its key. Steps become a row if our search has the program, and a row becomes steps if TVM's
steps can express it; every program is compared, loop by loop, with its original. What the other format cannot hold is left out: failure messages, rounds and
seeds, names of a task's inputs, and all hardware parameters but the number of threads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache

from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.log_line import LogRecord
from ansor.compat.auto_scheduler.measured import MeasureInput, RecordedState, RecordedTask
from ansor.compat.auto_scheduler.measuring import measured
from ansor.compat.auto_scheduler.search_task import SearchTask
from ansor.compat.auto_scheduler.tune import state_of_row
from ansor.compat.auto_scheduler.workload_key import parse_workload_key
from ansor.compat.auto_scheduler.workload_registry import workload_key_to_tensors
from ansor.compat.common.hardware import HardwareParams
from ansor.compat.common.local_target import local_target
from ansor.compat.common.outcome import ERRORS, MeasureErrorNo
from ansor.errors import DeclarationError, RecordError, ScheduleError
from ansor.measure.failure import Failure
from ansor.measure.record import Record
from ansor.measure.record_target import options_text, record_target
from ansor.schedule.choice import Choice
from ansor.schedule.matching import absent_values, found_among
from ansor.schedule.sketch import Sketch
from ansor.support.json_values import frozen
from ansor.support.text import listed
from ansor.targets.base import Target
from ansor.targets.program_options import read_target, why_refused
from ansor.tasks.origins import RULES, origin_of
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.workloads import is_registered
from ansor.te.tensor import Tensor

LARGEST_EXTENT = 1 << 24
"""The largest dimension that is accepted. Lines with larger ones are skipped: no measured workload has them."""

MOST_SHOWN = 8
"""The largest number of values of a choice that a reason lists."""

HASH_ONLY = "the log has only a hash of the workload, as for tasks that TVM's Relay extracts; only a network that was tuned here converts: name it"

_LOGGED = re.compile(r" \(logged: (.*)\)\Z", re.DOTALL)
_KINDS = {number: kind for kind, number in reversed(ERRORS.items())}


class FromStates:
    """Trials from log records. `here`: times are from this machine and its compiler, so that a search continues from them; otherwise they are kept apart."""

    def __init__(self, *, here: bool = False) -> None:
        self.here = here
        self._task = cache(_task_of)

    def convert(self, record: LogRecord) -> Record:
        """Convert a record to a trial. Raises AnsorError with the reason if that is impossible."""
        logged, result = record.input.task.recorded, record.result
        task = self._task(logged)
        program = task.compute_dag.replay(record.input.state)
        if program.notes:
            raise ScheduleError(f"it would be a different program here: {program.notes[0]}")
        found = found_among(program.sketch, [space.sketch for space in task.local.spaces])
        if found is None:
            raise ScheduleError(_why_absent(program.sketch, [space.sketch for space in task.local.spaces]))
        space = task.local.spaces[found[0]]
        failed = result.error_no != MeasureErrorNo.NO_ERROR
        failure = Failure(_KINDS[MeasureErrorNo(result.error_no)], f"{MeasureErrorNo(result.error_no).name} in a log") if failed else None
        return Record(task.local.workload_key, self._target(task, logged), frozen(json.loads(space.name)), found[1], () if failed else tuple(result.costs),
                      failure, False, result.all_cost, result.timestamp, 0, 0, space.algorithm)  # fmt: skip

    def _target(self, task: SearchTask, logged: RecordedTask) -> str:
        return record_target(task.local_target) if self.here else f"{task.local_target} (logged: {logged.target})"


class FromTrials:
    """Log records from trials of the given workloads: key in a log -> tensors."""

    def __init__(self, workloads: Mapping[str, tuple[Tensor, ...]]) -> None:
        self._keys = {ComputeDAG(tensors).dag.key: (key, tensors) for key, tensors in workloads.items()}
        self._spaces = cache(self._spaces_of)

    def convert(self, record: Record) -> LogRecord:
        """Convert a trial to a log record. Raises AnsorError with the reason if that is impossible."""
        task, spaces = self._spaces(record.workload, record.target)
        space = spaces.get((record.algorithm, json.dumps(record.sketch, separators=(",", ":"))))
        if space is None and origin_of(record.algorithm) != RULES:
            raise RecordError(f"it is a program of {origin_of(record.algorithm)}, and only those of the rules are converted")
        if space is None:
            raise RecordError("it names a sketch that does not exist in this version")
        if not space.holds(record.row):
            raise RecordError("its row is not a program of its sketch")
        result = measured(record.costs, record.failure, record.elapsed, record.timestamp)
        return LogRecord(MeasureInput(task.recorded, RecordedState(state_of_row(task, space, record.row).transform_steps)), result)

    def _spaces_of(self, workload: str, target: str) -> tuple[SearchTask, dict[tuple[str, str], SketchSpace]]:
        if workload not in self._keys:
            raise RecordError("its workload is unknown; name it: NAME, or FILE.py[:function], and --args")
        key, tensors = self._keys[workload]
        local, logged = _targets(target)
        hardware = HardwareParams(local.threads)
        task = SearchTask(workload_key=key, compute_dag=ComputeDAG(tensors), target=logged, hardware_params=hardware)
        return task, {(space.algorithm, space.name): space for space in task.local.spaces}


def _task_of(logged: RecordedTask) -> SearchTask:
    """Complete the task of a log line, without inputs: nothing is measured."""
    local_target(logged.target, logged.hardware_params)
    tensors = _declared(logged.workload_key)
    for tensor in tensors:
        if max(tensor.shape, default=1) > LARGEST_EXTENT:
            raise RecordError(f"a dimension of {tensor.name} has {max(tensor.shape)} elements; at most {LARGEST_EXTENT} are accepted")
    return SearchTask(workload_key=logged.workload_key, compute_dag=ComputeDAG(tensors), target=logged.target, hardware_params=logged.hardware_params)


def _why_absent(program: Sketch, sketches: Sequence[Sketch]) -> str:
    """Why our search does not have a program: which of its numbers have values that the search does not try."""
    cause = "; ".join(_absent(choice, value) for choice, value in absent_values(program, sketches)) or "no sketch has its structure"
    return f"our search does not have its program ({cause}); SearchTask.apply_best of ansor.compat.tvm can still build it from the log"


def _absent(choice: Choice, value: tuple[int, ...]) -> str:
    if len(value) > 1 or choice.size > MOST_SHOWN:
        return f"it does not try {choice.name} = {value if len(value) > 1 else value[0]}"
    return f"{choice.name} is {value[0]}, and it tries {listed(list(map(str, choice.table[:, 0].tolist())), MOST_SHOWN)}"


def _declared(workload_key: str) -> tuple[Tensor, ...]:
    key = parse_workload_key(workload_key)
    try:
        return workload_key_to_tensors(workload_key)
    except DeclarationError as error:
        if key.is_hash:
            raise RecordError(HASH_ONLY) from error
        if is_registered(key.name):
            raise
        raise RecordError(f"its workload {key.name!a:.100} is not registered here; name the function that declares it: FILE.py:function and --args") from error


def _targets(text: str) -> tuple[Target, str]:
    """The target that a record names, and its text in a log: the text in the original log, if there is one, else TVM's text for a processor."""
    logged = _LOGGED.search(text)
    local = read_target(text[: logged.start()] if logged else options_text(text))
    if logged:
        reason = why_refused(logged[1])
        if reason:
            raise RecordError(f"the target it was logged with {reason}")
        return local, logged[1]
    return local, "llvm -keys=cpu" + ("" if local.mcpu == "native" else f" -mcpu={local.mcpu}")
