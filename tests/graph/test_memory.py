from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansor.graph.memory import ALIGNMENT, Buffer, planned

BUFFERS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 12), st.integers(0, 6)), max_size=30).map(
    lambda rows: [Buffer(f"b{index}", size, first, first + life) for index, (size, first, life) in enumerate(rows)]
)


@given(BUFFERS)
def test_buffers_alive_at_one_time_lie_apart(buffers: list[Buffer]) -> None:
    plan = planned(buffers)
    for one in buffers:
        assert plan.offsets[one.name] % ALIGNMENT == 0
        assert plan.offsets[one.name] + one.size <= plan.size
        for other in buffers:
            if other is one or not one.overlaps(other):
                continue
            begin, end = plan.offsets[one.name], plan.offsets[one.name] + one.size
            assert end <= plan.offsets[other.name] or plan.offsets[other.name] + other.size <= begin


@given(BUFFERS)
def test_the_arena_is_no_larger_than_all_buffers_side_by_side(buffers: list[Buffer]) -> None:
    assert planned(buffers).size <= sum(-(-buffer.size // ALIGNMENT) * ALIGNMENT for buffer in buffers)


def test_a_chain_needs_two_buffers() -> None:
    plan = planned([Buffer(f"b{step}", 640, step, step + 1) for step in range(10)])
    assert plan.size == 2 * 640


def test_nothing_needs_nothing() -> None:
    assert planned([]).size == 0
