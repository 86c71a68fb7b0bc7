"""C of programs whose nests others have: the same as if each were the first."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from ansor.codegen import generate
from ansor.tasks.task import SearchTask
from tests import declarations
from tests.codegen.test_text_parts import two_products
from tests.declarations import seeded_draw

BOARDS = ("micro -board=mps2-an386", "micro -board=spike-rvv128")


@pytest.mark.parametrize("target", BOARDS)
@pytest.mark.parametrize("kind", sorted(declarations.KINDS))
def test_what_was_written_before_does_not_change_a_program(kind: str, target: str) -> None:
    case = declarations.random_case(seeded_draw(3), kind)
    task, rng = SearchTask(tensors=list(case.dag.tensors), target=target), np.random.default_rng(0)
    for space in task.spaces[:6]:
        for row in rng.integers(0, space.sizes, (6, len(space.sizes))).tolist():
            one, alone = task.source(space.sketch, row, "one"), task.target.emit(space.sketch.lower_row(row, "one"), "one")
            assert one.text == alone.text
            if space.sketch.dag is task.dag:
                assert one.arguments == alone.arguments and one.apart == alone.apart and one.workspace_bytes == alone.workspace_bytes


def test_nests_in_common_are_written_once() -> None:
    task = SearchTask(tensors=two_products(), target=BOARDS[0])
    for space in task.spaces:
        first = task.source(space.sketch, [0] * len(space.sizes), "first").apart
        before = generate._kept_code.cache_info()
        again = task.source(space.sketch, [0] * len(space.sizes), "again").apart
        after = generate._kept_code.cache_info()
        assert first is not None and again is not None and [one.text("x") for one in first.nests] == [one.text("x") for one in again.nests]
        assert after.hits - before.hits == len(first.nests) and after.misses == before.misses


@pytest.mark.parametrize("target", ["cpu -threads=1", BOARDS[0]])
def test_a_task_is_copied_without_the_nests_it_knows(target: str) -> None:
    task = SearchTask("matmul", (8, 8, 8), target)
    (space, *_), row = task.spaces, [0] * len(task.spaces[0].sizes)
    text = task.source(space.sketch, row).text
    for other in (copy.deepcopy(task), pickle.loads(pickle.dumps(task))):
        (space, *_) = other.spaces
        assert other.source(space.sketch, row).text == text
