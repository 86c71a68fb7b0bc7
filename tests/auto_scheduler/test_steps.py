"""Reading and writing steps, and invalid steps."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.compat.auto_scheduler.steps import (
    STEPS,
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    IteratorAnnotation,
    LoggedStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    StorageAlignStep,
    step_from_list,
)
from ansor.errors import RecordError
from ansor.support.json_values import Json
from tests.auto_scheduler import lines

index = st.integers(0, 2**31 - 1)
indices = st.lists(index, max_size=4).map(tuple)
lengths = st.lists(st.integers(1, 2**31 - 1), max_size=4).map(tuple)
number = st.integers(-(2**31), 2**31 - 1)
steps: st.SearchStrategy[LoggedStep] = st.one_of(
    st.builds(AnnotationStep, index, index, st.sampled_from(IteratorAnnotation)), st.builds(FuseStep, index, indices),
    st.builds(PragmaStep, index, index, st.text()), st.builds(ReorderStep, index, indices),
    st.builds(SplitStep, index, index, st.none() | st.integers(1, 2**31 - 1), lengths, st.booleans()), st.builds(FollowSplitStep, index, index, index, index),
    st.builds(FollowFusedSplitStep, index, index, indices, index, st.booleans()), st.builds(StorageAlignStep, index, index, number, number),
    st.builds(ComputeAtStep, index, index, index), st.builds(ComputeInlineStep, index), st.builds(ComputeRootStep, index),
    st.builds(CacheReadStep, index, st.text(), indices), st.builds(CacheWriteStep, index, st.text()), st.builds(RfactorStep, index, index, index),
)  # fmt: skip


@given(steps)
def test_steps_read_back(step: LoggedStep) -> None:
    assert step_from_list(step.to_list()) == step


def test_fields_of_every_kind() -> None:
    assert [step_from_list(fields) for fields in lines.STEPS] == [
        SplitStep(2, 0, 512, (2, 1, 4)), SplitStep(2, 4, None, (), False), ReorderStep(2, (0, 4, 1, 5, 8, 2)), FollowSplitStep(4, 0, 0, 2),
        FollowFusedSplitStep(4, 0, (4, 3, 2), 1, True), FollowFusedSplitStep(4, 0, (), 0, False), FuseStep(4, (0, 1)), FuseStep(4, ()),
        AnnotationStep(4, 0, IteratorAnnotation.PARALLEL), PragmaStep(2, 0, "auto_unroll_max_step$64"), StorageAlignStep(4, 0, 32, -8), ComputeAtStep(2, 4, 3),
        ComputeInlineStep(5), ComputeRootStep(6), CacheReadStep(2, "shared", (3, 4)), CacheWriteStep(3, "local"), RfactorStep(3, 2, 1),
    ]  # fmt: skip
    assert [step_from_list(fields).to_list() for fields in lines.STEPS] == lines.STEPS


def test_there_are_14_kinds_and_all_are_frozen() -> None:
    assert " ".join(STEPS) == "AN FU PR RE SP FSP FFSP SA CA CI CR CHR CHW RF" and {step_from_list(fields).code for fields in lines.STEPS} == set(STEPS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        step_from_list(["CI", 5]).stage_id = 6  # type: ignore[misc]


@pytest.mark.parametrize("fields, reason", [
    (None, "it has null for a step"), ([], "it has a list of 0 for a step"), (["XX", 1], "a step of the kind the text 'XX'; kinds are AN, FU,"),
    ([[], 1], "a step of the kind a list of 0"), (["CI"], "its step CI has 0 values, not 1: stage_id"), (["CI", 1, 2], "its step CI has 2 values"),
    (["SP", 1, 0, 8, [2]], "its step SP has 4 values, not 5: stage_id, iter_id, extent, lengths, inner_to_outer"),
    (["CI", -1], "the stage_id of its step CI is -1, not a number from 0"), (["CI", 2**31], "the stage_id of its step CI is 2147483648"),
    (["CI", True], "the stage_id of its step CI is a truth value"), (["CI", 1.0], "the stage_id of its step CI is 1.0"),
    (["AN", 1, 0, 12], "the annotation of its step AN is 12, not a number from 0 to 11"), (["SP", 1, 0, -1, [], 1], "the extent of its step SP is -1"),
    (["SP", 1, 0, 8, [0], 1], "the lengths of its step SP is a list of 1, not a number from 1"), (["SP", 1, 0, 8, 2, 1], "is 2, not a list"),
    (["SP", 1, 0, 8, [None], 1], "the lengths of its step SP"), (["SP", 1, 0, 8, [2], 2], "the inner_to_outer of its step SP is 2, not 0 or 1"),
    (["SP", 1, 0, 8, [2], True], "the inner_to_outer of its step SP is a truth value"), (["PR", 1, 0, 3], "the pragma_type of its step PR is 3, not a text"),
    (["SA", 1, 0, 2**31, 0], "the factor of its step SA is 2147483648, not a number of 32 bits"), (["CHR", 1, "local", "23"], "is the text '23', not a list"),
    (["CI", 10**400], "the stage_id of its step CI is a number, not"),
])  # fmt: skip
def test_invalid_steps_give_a_reason(fields: Json, reason: str) -> None:
    with pytest.raises(RecordError) as error:
        step_from_list(fields)
    assert reason in str(error.value)
