"""A declaration with its stages in TVM's order, so that stage numbers in TVM's logs mean the same tensors here. Source: TVM 0.9, `ComputeDAG`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption, RecordedState
from ansor.compat.auto_scheduler.program import Program, program_of
from ansor.compat.auto_scheduler.python_text import python_text
from ansor.compat.auto_scheduler.structure import StateObject, initial_state
from ansor.compat.auto_scheduler.tir_text import declaration_text, shortened
from ansor.compat.auto_scheduler.workload_registry import workload_key_to_tensors
from ansor.errors import DeclarationError
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

AnyState = State | StateObject | RecordedState
Hash = Callable[[str], str]


class ComputeDAG(Declaration):
    """All tensors of a computation.

    Args:
        compute_or_sche: the tensors that a kernel takes, inputs and outputs; or the key of a registered workload.

    `ops` holds all tensors, each after those it reads; a state's stages are numbered in this order. Raises DeclarationError if a tensor has two axes with
    the same name.
    """

    hash_func: Hash | None = None
    """If set, hashes declarations for workload keys instead of MD5."""

    def __init__(self, compute_or_sche: str | Sequence[Tensor]) -> None:
        super().__init__(workload_key_to_tensors(compute_or_sche) if isinstance(compute_or_sche, str) else compute_or_sche)
        _check_names(self.ops)

    @property
    def flop_ct(self) -> int:
        """Arithmetic operations of the whole computation."""
        return self.dag.flop

    @cached_property
    def _initial(self) -> StateObject:
        return initial_state(self)

    def get_init_state(self) -> State:
        """The state in which every tensor has its own loop nest, as declared."""
        return State(self._initial, self)

    init_state = property(get_init_state)

    def state_of(self, state: AnyState) -> State:
        """A state with stages. Applies the steps of a log to this declaration; raises ScheduleError if they do not fit."""
        if isinstance(state, RecordedState):
            return self.get_init_state().apply(state.transform_steps)
        return State(state, self) if isinstance(state, StateObject) else state

    def replay(self, state: AnyState, layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.NO_REWRITE) -> Program:
        """The program of a state, with notes on what was left out. Raises ScheduleError for a state that no processor can run."""
        return program_of(self, self.state_of(state).state_object, LayoutRewriteOption(layout_rewrite))

    def apply_steps_from_state(
        self, state: AnyState, layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.NO_REWRITE
    ) -> tuple[Sketch, list[Tensor]]:
        """The program of a state as one of our schedules, and the tensors it takes. Pass both to `auto_scheduler.lower` and `build`.

        Leaves out steps that have no counterpart here and do not change results. The logger "auto_scheduler" warns about each (`replay` returns these notes).
        Raises ScheduleError for a state that no processor can run.
        """
        found = self.replay(state, layout_rewrite)
        found.warn()
        return found.sketch, self.tensors

    def print_python_code_from_state(self, state: AnyState) -> str:
        """The steps as Python calls on a schedule `s`."""
        return python_text(self, self.state_of(state).state_object)

    def infer_bound_from_state(self, state: AnyState) -> State:
        """The state with the extents of all loops. Raises ScheduleError if a length is open."""
        whole = self.state_of(state)
        return State(self.replay(whole).bounded(whole.state_object), self)

    def workload_key(self) -> str:
        """`["hash", shape, ...]`: the MD5 of the declaration as TVM prints it without shapes, then the shapes of `tensors`."""
        text = declaration_text(self.ops, simple=True)
        other = type(self).hash_func
        name = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest() if other is None else other(text)
        return json.dumps([name, *(list(tensor.shape) for tensor in self.tensors)])

    def __str__(self) -> str:
        return shortened(declaration_text(self.ops))

    def __repr__(self) -> str:
        return f"ComputeDAG({', '.join(op.name for op in self.ops)})"

    def __getstate__(self) -> dict[str, object]:
        return {"tensors": self.tensors}

    def __setstate__(self, state: dict[str, Sequence[Tensor]]) -> None:
        self.__init__(state["tensors"])  # type: ignore[misc]  # pickles hold the tensors only


def _check_names(ops: Sequence[Tensor]) -> None:
    for op in ops:
        names = Counter(axis.name for axis in (*op.compute.axes, *op.compute.reduce_axes)) if op.compute else Counter[str]()
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise DeclarationError(f"asked for the DAG of a declaration in which {op.name} has two axes named {twice[0]!r}; rename one")
