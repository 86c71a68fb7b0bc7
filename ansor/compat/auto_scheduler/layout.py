"""Layout rewriting: stores operands in the order in which loops read them.

The attribute `layout_free_placeholders` of a tensor names the operands whose layout is free. TVM changes the declaration; here the operand is packed, and its
declared shape does not change. A constant is packed ahead of time (REWRITE_FOR_PRE_TRANSFORMED), other operands by the program itself (INSERT_TRANSFORM_STAGE).
"""

from __future__ import annotations

from collections.abc import Iterator

from ansor.compat.auto_scheduler.declaration import Declaration
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption
from ansor.errors import ScheduleError
from ansor.schedule.state import Inlined, State
from ansor.schedule.steps import Pack, PackInside, Step, packable, packable_inside
from ansor.te.tensor import Tensor

ATTRIBUTE = "layout_free_placeholders"


def packing_steps(dag: Declaration, state: State, option: LayoutRewriteOption) -> list[Step]:
    """Steps that pack the free operands in every stage that reads them. Raises ScheduleError if the attribute names anything but placeholders."""
    return [] if option == LayoutRewriteOption.NO_REWRITE else list(_steps(dag, state, option))


def _steps(dag: Declaration, state: State, option: LayoutRewriteOption) -> Iterator[Step]:
    for tensor in free_placeholders(dag):
        name = dag.renamed[id(tensor)].name
        for stage in state.readers(name):
            if isinstance(stage.placement, Inlined):
                continue
            if option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED and packable(state, stage, name):
                yield Pack(stage.name, name)
            elif packable_inside(state, stage, name):
                yield PackInside(stage.name, name)


def free_placeholders(dag: Declaration) -> list[Tensor]:
    """The placeholders with a free layout."""
    found: dict[int, Tensor] = {}
    for op in dag.ops:
        given = op.attrs.get(ATTRIBUTE, ())
        for tensor in given if isinstance(given, list | tuple) else (given,):
            if not isinstance(tensor, Tensor) or id(tensor) not in dag.renamed or tensor.compute is not None:
                raise ScheduleError(f"the attribute {ATTRIBUTE} of {op.name} names {tensor!r:.80}, which is not a placeholder that it reads; list placeholders")
            found[id(tensor)] = tensor
    return list(found.values())
