"""Sums of trees against walking down each of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen import tree_library
from ansor.codegen.tree_library import MOST_LEAVES, ROWS, Sums, Tree, summed

pytestmark = pytest.mark.compiler
WIDTH = 7


def random_tree(rng: np.random.Generator, leaves: int) -> Tree:
    """A tree that grew by splitting one leaf after the other."""
    left, right = np.zeros(leaves - 1, np.int32), np.zeros(leaves - 1, np.int32)
    places: list[tuple[NDArray[np.int32], int] | None] = [None]
    for node in range(leaves - 1):
        leaf = int(rng.integers(node + 1))
        above = places[leaf]
        if above is not None:
            above[0][above[1]] = node
        left[node], right[node] = -1 - leaf, -1 - (node + 1)
        places[leaf] = (left, node)
        places.append((right, node))
    # Few different numbers, so that rows stand exactly at thresholds, and some thresholds between two float32.
    threshold = rng.integers(0, 4, leaves - 1) + rng.choice([0.0, 1e-12, -1e-12, 0.5], leaves - 1)
    return Tree(rng.integers(0, WIDTH, leaves - 1).astype(np.int32), threshold, left, right, rng.standard_normal(leaves))


def walked(tree: Tree, row: NDArray[np.float32]) -> float:
    node = 0 if len(tree.feature) else -1
    while node >= 0:
        node = int((tree.left if float(row[tree.feature[node]]) <= tree.threshold[node] else tree.right)[node])
    return float(tree.value[-1 - node])


def sums_of(trees: list[Tree]) -> Sums:
    found = summed(trees)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(8))
def test_any_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, int(leaves)) for leaves in [1, 2, MOST_LEAVES, *rng.integers(1, MOST_LEAVES, 9)]]
    rows = rng.integers(0, 4, (3 * ROWS + 5, WIDTH)).astype(np.float32)
    expected = np.zeros(len(rows))
    for tree in trees:
        expected += [walked(tree, row) for row in rows]
    np.testing.assert_array_equal(sums_of(trees)(rows), expected)


@pytest.mark.parametrize("count", [0, 1, 15, ROWS, ROWS + 1])
def test_rows_do_not_know_of_each_other(count: int) -> None:
    rng = np.random.default_rng(count)
    run = sums_of([random_tree(rng, 20) for _ in range(5)])
    rows = rng.standard_normal((count, WIDTH)).astype(np.float32)
    np.testing.assert_array_equal(run(rows), [run(rows[k : k + 1])[0] for k in range(count)])
    np.testing.assert_array_equal(run(np.asfortranarray(rows)), run(rows))


def test_trees_without_a_node() -> None:
    none = np.zeros(0, np.int32)
    trees = [Tree(none, np.zeros(0), none, none, np.array([value])) for value in (1.5, 2.0)]
    assert sums_of(trees)(np.zeros((3, WIDTH), np.float32)).tolist() == [3.5] * 3


def test_too_narrow_rows_are_refused() -> None:
    none = np.array([-1], np.int32)
    run = sums_of([Tree(np.array([6], np.int32), np.zeros(1), none, none - 1, np.zeros(2))])
    with pytest.raises(ValueError, match="feature 6"):
        run(np.zeros((3, 6), np.float32))


def test_what_cannot_be_done_this_way() -> None:
    rng = np.random.default_rng(0)
    assert summed([]) is None
    assert summed([random_tree(rng, MOST_LEAVES + 1)]) is None


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_library, "_library", lambda: None)
    assert summed([random_tree(np.random.default_rng(0), 5)]) is None
