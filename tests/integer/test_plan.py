from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor.graph.memory import Buffer, planned
from ansor.integer.network import IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.operators import Add, Operator, Reshape, Table
from ansor.integer.passes import fuse_additions
from ansor.integer.plan import arena_of, roots_of, smallest, steps_of
from ansor.integer.reference import computed
from tests.offload.networks import drawn_network, residual

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


def _check_arena(network: IntegerNetwork, workspace: int, alignment: int) -> None:
    """A run in the arena gives what a run apart gives."""
    steps, generator = steps_of(network), np.random.default_rng(0)
    plan = arena_of(network, [workspace] * len(steps), alignment)
    arena, apart = np.zeros(plan.size, np.int8), dict[str, NDArray[np.int8]]()

    def place(name: str) -> NDArray[np.int8]:
        tensor = network.tensors[name]
        return arena[plan.offsets[name] : plan.offsets[name] + tensor.size].reshape(tensor.shape)

    for name in network.inputs:
        apart[name] = generator.integers(-128, 128, network.tensors[name].shape).astype(np.int8)
        place(name)[:] = apart[name]
    for one in network.operators:
        apart[one.output] = computed(one, *(apart[name] for name in one.inputs))
    for step, one in enumerate(steps):
        arena[plan.workspaces[step] : plan.workspaces[step] + workspace] = step  # whatever a kernel writes there
        place(one.output)[:] = computed(one, *(place(name) for name in one.inputs))
    assert all(np.array_equal(place(name), apart[name]) for name in network.outputs)
    assert all(start % alignment == 0 for start in (*plan.offsets.values(), *plan.workspaces)) and max(plan.alive, default=0) <= plan.size


@given(networks(), st.integers(0, 100), st.sampled_from((1, 16, 64)))
def test_a_run_in_the_arena_gives_what_a_run_apart_gives(network: IntegerNetwork, workspace: int, alignment: int) -> None:
    _check_arena(network, workspace, alignment)


@given(st.integers(0, 500), st.integers(0, 12), st.integers(0, 100))
def test_so_it_does_where_convolutions_add(seed: int, count: int, workspace: int) -> None:
    _check_arena(fuse_additions(drawn_network(seed, count)), workspace, 16)


def test_a_convolution_that_adds_writes_over_what_it_adds_alone() -> None:
    fused = fuse_additions(residual())
    assert roots_of(fused)["sum"] == "body2"
    convolution = next(one for one in fused.operators if one.output == "sum")
    twice = replace(convolution, inputs=("body2", "body2"))
    assert roots_of(replace(fused, operators=tuple(twice if one is convolution else one for one in fused.operators)))["sum"] == "sum"


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
