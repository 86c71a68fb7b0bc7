from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansor.graph.memory import Buffer, planned
from ansor.integer.network import IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.operators import Add, Operator, Reshape, Table
from ansor.integer.plan import arena_of, roots_of, smallest, steps_of
from ansor.integer.reference import computed

SHAPE = (4, 5)
IDENTITY = np.arange(-128, 128).astype(np.int8)


@st.composite
def networks(draw: st.DrawFn) -> IntegerNetwork:
    """Tables, sums and reshapes of one size, that read whatever is there."""
    names, operators = ["x"], []
    for number in range(draw(st.integers(1, 12))):
        name, sources = f"t{number}", [draw(st.sampled_from(names)) for _ in range(2)]
        kind = draw(st.sampled_from(("table", "add", "reshape")))
        one: Operator = Table(name, (sources[0],), np.roll(IDENTITY, number + 1))
        if kind == "add":
            one = Add(name, (sources[0], sources[1]), (1 << 20, 3 << 18), 5, 20, 0, -128, 127)
        operators.append(Reshape(name, (sources[0],), SHAPE) if kind == "reshape" else one)
        names.append(name)
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=2, unique=True))
    tensors = {name: IntegerTensor(name, SHAPE, Quantisation(1.0, 0)) for name in names}
    return IntegerNetwork("n", ("x",), tuple(outputs), tensors, tuple(operators)).checked()


@given(networks(), st.integers(0, 100), st.sampled_from((1, 16, 64)))
def test_a_run_in_the_arena_gives_what_a_run_apart_gives(network: IntegerNetwork, workspace: int, alignment: int) -> None:
    steps = steps_of(network)
    plan = arena_of(network, [workspace] * len(steps), alignment)
    arena, first = np.zeros(plan.size, np.int8), np.random.default_rng(0).integers(-128, 128, SHAPE).astype(np.int8)
    apart = {"x": first}
    for one in network.operators:
        apart[one.output] = computed(one, *(apart[name] for name in one.inputs))
    size = first.size
    arena[plan.offsets["x"] : plan.offsets["x"] + size] = first.reshape(-1)
    for step, one in enumerate(steps):
        arena[plan.workspaces[step] : plan.workspaces[step] + workspace] = step  # whatever a kernel writes there
        places = [arena[plan.offsets[name] : plan.offsets[name] + size].reshape(SHAPE) for name in one.inputs]
        arena[plan.offsets[one.output] : plan.offsets[one.output] + size] = computed(one, *places).reshape(-1)
    for name in network.outputs:
        assert np.array_equal(arena[plan.offsets[name] : plan.offsets[name] + size].reshape(SHAPE), apart[name])
    assert all(place % alignment == 0 for place in (*plan.offsets.values(), *plan.workspaces)) and max(plan.alive, default=0) <= plan.size


def test_a_sum_takes_the_place_of_an_operand_that_nobody_reads_later() -> None:
    tensors = {name: IntegerTensor(name, SHAPE, Quantisation(1.0, 0)) for name in ("x", "a", "b", "c")}
    operators = (Table("a", ("x",), IDENTITY), Add("b", ("a", "x"), (1, 1), 0, 1, 0, -128, 127), Reshape("c", ("b",), SHAPE))
    network = IntegerNetwork("n", ("x",), ("c",), tensors, operators).checked()
    assert roots_of(network) == {"x": "x", "a": "a", "b": "a", "c": "a"}
    assert arena_of(network, [0, 0], 4).size == 2 * 20


def test_orders_are_tried_until_no_step_needs_less() -> None:
    """A chain in which the largest first leaves a gap of no use: a quarter of MobileNet-V1's first layers."""
    sizes = (27648, 18432, 18432, 36864, 9216, 18432)
    buffers = [Buffer(str(place), size, max(place - 1, 0), place) for place, size in enumerate(sizes)]
    assert planned(buffers, 4).size == 64512
    assert smallest(buffers, 4).size == 55296 == sizes[2] + sizes[3]
