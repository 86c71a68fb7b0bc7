"""Functions of TVM's core that scripts and tests use: queries about states, and tasks as text. Source: TVM 0.9, `search_policy/utils.h`."""

from __future__ import annotations

import json
from functools import partial

from ansor.compat.auto_scheduler import log_line
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.search_task import SearchTask, recovered_task
from ansor.compat.auto_scheduler.stages import IteratorKind, Stage
from ansor.compat.auto_scheduler.steps import CacheReadStep, CacheWriteStep, IteratorAnnotation, LoggedStep, RfactorStep
from ansor.compat.auto_scheduler.structure import StateObject
from ansor.compat.tvm.missing import of_auto_scheduler as __getattr__  # noqa: F401  # missing names raise

THREADS = (IteratorAnnotation.THREAD_X, IteratorAnnotation.THREAD_Y, IteratorAnnotation.THREAD_Z)
MAKING = (CacheReadStep, CacheWriteStep, RfactorStep)


def SerializeSearchTask(task: SearchTask) -> str:  # TVM's name
    """A task as text, in the form of log lines."""
    line = log_line.dump_record_to_string(MeasureInput(task, task.compute_dag.init_state), MeasureResult([0.0], 0, "", 0.0, 0))
    return json.dumps(json.loads(line)["i"][0])


def DeserializeSearchTask(record: str) -> SearchTask:
    """The task from a text of `SerializeSearchTask`. Raises RecordError for any other text, DeclarationError for a workload that is not registered here."""
    inp, _ = log_line.load_record_from_string(f'{{"i": [{record}, [[], []]], "r": [[0.0], 0, 0.0, 0], "v": "v0.6"}}')
    return recovered_task(inp.task)


def SearchPolicyUtilsIsTiled(stage: Stage) -> bool:
    """Whether the number of a stage's loops has changed since its declaration."""
    return len(stage.iters) != len(stage.spatial) + len(stage.reduced)


def SearchPolicyUtilsHasCrossThreadReduction(state: State | StateObject, stage_id: int) -> bool:
    """Whether a reduction loop of a stage is bound to GPU threads."""
    return any(one.annotation in THREADS and one.iter_kind == IteratorKind.REDUCTION for one in state.stages[stage_id].iters)


def _made_by(kind: type[LoggedStep], state: State | StateObject, stage_id: int) -> bool:
    """Whether a step of that kind was applied to a stage. Walks backwards: before a step that inserted a stage, later stages had smaller numbers by one."""
    for step in reversed(state.transform_steps):
        if isinstance(step, kind) and step.stage_id == stage_id:
            return True
        if isinstance(step, MAKING) and stage_id > step.stage_id:
            stage_id -= 1
    return False


SearchPolicyUtilsHasCacheWriteStage = partial(_made_by, CacheWriteStep)
"""Whether a stage is computed in private memory and copied out by another."""

SearchPolicyUtilsHasCacheReadStage = partial(_made_by, CacheReadStep)
"""Whether a stage has a copy that others read."""

SearchPolicyUtilsHasRfactorStage = partial(_made_by, RfactorStep)
"""Whether a stage holds partial results that another stage combines."""
