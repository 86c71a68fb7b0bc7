"""The state of a program while it is scheduled by hand or by a search: stages, loops, and the steps so far. Source: TVM 0.9, `auto_scheduler.loop_state`.

    state = dag.get_init_state()
    i, j, k = state[C].iters
    outer, inner = state.split(C, i, [16])              # records a SplitStep, returns the new iterators
    state.parallel(C, outer)

A `StateObject` is immutable; the methods of a `State` record a step and replace its `StateObject`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansor.compat.auto_scheduler import steps as logged
from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.stages import Iterator, Stage, names_of
from ansor.compat.auto_scheduler.steps import ANNOTATIONS, IteratorAnnotation, LoggedStep
from ansor.compat.auto_scheduler.structure import StateObject
from ansor.compat.auto_scheduler.transform import next_state
from ansor.errors import ScheduleError
from ansor.te.tensor import Tensor

StageKey = Stage | Tensor | int | str
"""Identifies a stage of a state."""



class State:
    """A declaration and a `StateObject`, which the methods replace.

    Identify a stage by its tensor, number, name, or `Stage`; take an iterator from the current `state[stage].iters`. Methods raise ScheduleError for
    anything that does not fit.
    """

    ANNOTATION_TRANS_TABLE = {"none": 0} | {name: number for number, name in enumerate(ANNOTATIONS) if number}

    def __init__(self, state_object: StateObject | State, dag: Declaration) -> None:
        self.state_object: StateObject = state_object.state_object if isinstance(state_object, State) else state_object
        self.compute_dag = dag

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages in topological order, placeholders included."""
        return self.state_object.stages

    @property
    def stage_ops(self) -> list[Tensor]:
        """The tensors of the stages."""
        return [stage.op for stage in self.stages]

    @property
    def transform_steps(self) -> tuple[LoggedStep, ...]:
        """The steps so far. A step's id is its index here."""
        return self.state_object.transform_steps

    @property
    def concrete(self) -> bool:
        """Whether all lengths are set."""
        return self.state_object.concrete

    def __getitem__(self, key: StageKey) -> Stage:
        return self.stages[self.stage_id(key)]

    def stage_id(self, key: StageKey) -> int:
        """The number of a stage. Raises ScheduleError if there is none."""
        found: int | None = None
        if isinstance(key, int) and not isinstance(key, bool):
            found = key if 0 <= key < len(self.stages) else None
        elif isinstance(key, str):
            named = [number for number, stage in enumerate(self.stages) if stage.name == key]
            found = named[0] if len(named) == 1 else None
        else:
            op = key.op if isinstance(key, Stage) else key
            found = self.state_object.number_of(op) if isinstance(op, Tensor) else None
        if found is None:
            listed = ", ".join(f"{number} {stage.name}" for number, stage in enumerate(self.stages))
            raise ScheduleError(f"asked for the stage {key!r:.80}; the stages are {listed}")
        return found

    # loops ----------------------------------------------------------------------------------------------------------------------------------------

    def split(self, stage: StageKey, iterator: Iterator, lengths: Sequence[int | None], inner_to_outer: bool = True) -> list[Iterator]:
        """Split a loop into len(lengths) + 1 parts. `lengths`: of the inner parts, or of the outer ones, outermost first; None leaves one to the search.

        Stages computed at the loop move to its innermost part.
        """
        number, which = self._place(stage, iterator)
        extent = iterator.range.extent if iterator.range else None
        self._record(logged.SplitStep(number, which, extent, tuple(lengths), inner_to_outer))
        return self._parts(number, which, len(lengths))

    def follow_split(self, stage: StageKey, iterator: Iterator, src_step_id: int, n_split: int) -> list[Iterator]:
        """Split a loop like an earlier split step: by its first `n_split` - 1 lengths, and the product of the others as the last."""
        number, which = self._place(stage, iterator)
        self._record(logged.FollowSplitStep(number, which, src_step_id, n_split))
        return self._parts(number, which, n_split)

    def follow_fused_split(
        self, stage: StageKey, iterator: Iterator, src_step_ids: Sequence[int], level: int, factor_or_nparts: bool
    ) -> list[Iterator]:
        """Split a loop in two by the product of these splits' lengths at `level`: the inner length, or the number of parts if `factor_or_nparts` is False."""
        number, which = self._place(stage, iterator)
        self._record(logged.FollowFusedSplitStep(number, which, tuple(src_step_ids), level, factor_or_nparts))
        return self._parts(number, which, 1)

    def fuse(self, stage: StageKey, iters: Sequence[Iterator]) -> Iterator:
        """Fuse adjacent loops. Stages computed at the last of them move to the fused loop."""
        number = self.stage_id(stage)
        ids = tuple(self._index(number, one) for one in iters)
        self._record(logged.FuseStep(number, ids))
        return self.stages[number].iters[ids[0] if ids else 0]

    def reorder(self, stage: StageKey, order: Sequence[Iterator]) -> None:
        """Reorder the loops of a stage. `order` lists all of them."""
        number = self.stage_id(stage)
        self._record(logged.ReorderStep(number, tuple(self._index(number, one) for one in order)))

    # annotations ----------------------------------------------------------------------------------------------------------------------------------

    def parallel(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Run a loop on several threads."""
        return self._annotated(stage, iterator, IteratorAnnotation.PARALLEL)

    def vectorize(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Run a loop with vector instructions."""
        return self._annotated(stage, iterator, IteratorAnnotation.VECTORIZE)

    def unroll(self, stage: StageKey, iterator: Iterator, max_unroll: int | None = None) -> Iterator:
        """Unroll a loop, unless it has more than `max_unroll` iterations."""
        self._place(stage, iterator)
        if max_unroll is not None and iterator.range is not None and iterator.range.extent > max_unroll:
            return iterator
        return self._annotated(stage, iterator, IteratorAnnotation.UNROLL)

    def bind(self, stage: StageKey, iterator: Iterator, thread_name: str) -> Iterator:
        """Bind a loop to GPU threads. This is only recorded; no program for a processor can be built from it."""
        if thread_name not in ANNOTATIONS[IteratorAnnotation.VTHREAD : IteratorAnnotation.TENSORIZE]:
            threads = ", ".join(ANNOTATIONS[IteratorAnnotation.VTHREAD : IteratorAnnotation.TENSORIZE])
            raise ScheduleError(f"asked to bind iterator {iterator.name} to {thread_name!r}; threads are {threads}")
        return self._annotated(stage, iterator, IteratorAnnotation(ANNOTATIONS.index(thread_name)))

    def pragma(self, stage: StageKey, iterator: Iterator, pragma_type: str) -> None:
        """Add a hint such as `auto_unroll_max_step$64`."""
        self._record(logged.PragmaStep(*self._place(stage, iterator), pragma_type))

    def storage_align(self, stage: StageKey, iterator: Iterator, factor: int, offset: int) -> None:
        """Align rows of a stage's buffer to `offset` modulo `factor`. This is recorded but has no effect here."""
        self._record(logged.StorageAlignStep(*self._place(stage, iterator), factor, offset))

    # places ---------------------------------------------------------------------------------------------------------------------------------------

    def compute_at(self, stage: StageKey, target_stage: StageKey, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of another stage. Its extents then depend on that loop; `dag.infer_bound_from_state` computes them."""
        self._record(logged.ComputeAtStep(self.stage_id(stage), *self._place(target_stage, target_iter)))

    def compute_inline(self, stage: StageKey) -> None:
        """Inline a stage into all stages that read it."""
        self._record(logged.ComputeInlineStep(self.stage_id(stage)))

    def compute_root(self, stage: StageKey) -> None:
        """Compute a stage in its own loop nest."""
        self._record(logged.ComputeRootStep(self.stage_id(stage)))

    # new stages -----------------------------------------------------------------------------------------------------------------------------------

    def cache_read(self, stage: StageKey, scope_name: str, reader_stages: Sequence[StageKey]) -> Tensor:
        """Insert a stage after this one that copies it for some of its readers. Returns the tensor of the copy."""
        number = self.stage_id(stage)
        self._record(logged.CacheReadStep(number, scope_name, tuple(self.stage_id(reader) for reader in reader_stages)))
        return self.stages[number + 1].op

    def cache_write(self, stage: StageKey, scope_name: str) -> Tensor:
        """Insert a stage before this one that computes it in private memory; this stage then copies the result. Returns the new stage's tensor."""
        number = self.stage_id(stage)
        self._record(logged.CacheWriteStep(number, scope_name))
        return self.stages[number].op

    def rfactor(self, stage: StageKey, iterator: Iterator, factor_iter_id: int) -> Tensor:
        """Insert a stage of partial results before this one, one for each iteration of a reduction loop; this stage combines them. Returns the new tensor."""
        number, which = self._place(stage, iterator)
        self._record(logged.RfactorStep(number, which, factor_iter_id))
        return self.stages[number].op

    # ----------------------------------------------------------------------------------------------------------------------------------------------

    def apply(self, steps: Sequence[LoggedStep]) -> State:
        """Apply further steps, such as those of a log. If one does not fit, changes nothing and raises ScheduleError."""
        found = self.state_object
        for step in steps:
            found = next_state(found, step)
        self.state_object = found
        return self

    def copy(self) -> State:
        """An independent copy."""
        return State(self.state_object, self.compute_dag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State | StateObject) and self.state_object == (other.state_object if isinstance(other, State) else other)

    def __hash__(self) -> int:
        return hash(self.state_object)

    def __str__(self) -> str:
        return str(self.state_object)

    def __repr__(self) -> str:
        return f"State({len(self.stages)} stages, {len(self.transform_steps)} steps)"

    def _record(self, step: LoggedStep) -> None:
        self.state_object = next_state(self.state_object, step)

    def _annotated(self, stage: StageKey, iterator: Iterator, annotation: IteratorAnnotation) -> Iterator:
        number, which = self._place(stage, iterator)
        self._record(logged.AnnotationStep(number, which, annotation))
        return self.stages[number].iters[which]

    def _parts(self, number: int, first: int, lengths: int) -> list[Iterator]:
        return list(self.stages[number].iters[first : first + lengths + 1])

    def _place(self, stage: StageKey, iterator: Iterator) -> tuple[int, int]:
        number = self.stage_id(stage)
        return number, self._index(number, iterator)

    def _index(self, number: int, iterator: Iterator) -> int:
        """The index of an iterator in its stage."""
        iters = self.stages[number].iters
        found = [k for k, one in enumerate(iters) if one is iterator] or [k for k, one in enumerate(iters) if one == iterator]
        if len(found) != 1:
            name = self.stages[number].name
            known = f"its iterators are {names_of(iters)}; take one from state[...].iters, which changes with every step"
            raise ScheduleError(f"asked for the iterator {iterator!r:.120} of stage {name}, which has no such iterator: {known}")
        return found[0]
