"""Winograd's method gives what the direct declaration gives, within the error it states."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.convolution import find_convolution
from ansor.algorithms.winograd import F2, F4, METHODS, Method, rewritten
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.graph.network_memory import NetworkMemory
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.ir.normal.form import normal_form
from ansor.measure.kernel import Kernel
from ansor.measure.result_memory import aligned_empty
from ansor.measure.verify import difference
from ansor.networks.network_kernel import NetworkKernel
from ansor.run.kernels import built
from ansor.run.states import Best
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.declarations import Array, Case, seeded_draw
from tests.programs import Bench, interpreted, programs_of, sanitized_problems, sanitizer_compiler

EPILOGUES = ("none", "bias_relu", "add", "two outputs")


def convolution(n: int, size: tuple[int, ...], ci: int, co: int, layout: str = "NHWC", padding: int = 1, epilogue: str = "bias_relu",
                constant: bool = True, groups: int = 1, taps: tuple[int, ...] = (3, 3)) -> list[Tensor]:
    """A convolution over two or three dimensions and what follows it in a network. ci, co: channels of a group. padding: where there are three taps."""
    inputs, co = ci * groups, co * groups
    shapes = {"NHWC": ((n, *size, inputs), (*taps, ci, co)), "NCHW": ((n, inputs, *size), (co, ci, *taps))}[layout]
    data, weight = te.placeholder(shapes[0], name="data"), te.placeholder(shapes[1], name="weight", constant=constant)
    paddings = tuple(padding if count == 3 else count // 2 for count in taps)
    convolve, letters = (nn.conv2d, layout) if len(taps) == 2 else (nn.conv3d, layout.replace("H", "DH"))
    result = convolve(data, weight, 1, paddings, groups=groups, data_layout=letters)
    bias, channel = te.placeholder((co,), name="bias", constant=True), 1 if layout == "NCHW" else len(shapes[0]) - 1
    if epilogue == "none":
        return [data, weight, result]
    if epilogue == "bias_relu":
        return [data, weight, bias, nn.relu(nn.bias_add(result, bias, channel))]
    other = te.placeholder(result.shape, name="other")
    if epilogue == "add":
        return [data, weight, bias, other, nn.relu(nn.add(nn.bias_add(result, bias, channel), other))]
    return [data, weight, result, nn.relu(result)]


def inputs_of(dag: Dag, seed: int = 0) -> dict[str, Array]:
    """Values between -1 and 1."""
    rng = np.random.default_rng(seed)
    return {tensor.name: rng.uniform(-1, 1, tensor.shape).astype(np.float32) for tensor in dag.inputs}


def of_method(dag: Dag, method: Method, inputs: dict[str, Array]) -> Case:
    """The alternative, with its constants transformed and what the direct declaration gives in double precision."""
    conv = find_convolution(dag, dimensions=(2, 3))
    assert conv is not None
    made = rewritten(dag, conv, method)
    prepared = {name: made.transforms[name].apply(value) if name in made.transforms else value for name, value in inputs.items()}
    expected = evaluate(dag.outputs, inputs, "float64")
    return Case("winograd", made.dag, prepared, {tensor.name: value for tensor, value in zip(dag.outputs, expected, strict=True)})


def problems(case: Case, found: dict[str, Array], reduction: int, tolerance: float) -> str:
    """As the measurer would say it."""
    return "".join(difference(name, found[name], expected, reduction=reduction, stated=tolerance) for name, expected in case.expected.items())


@given(
    st.integers(1, 2), st.tuples(st.integers(3, 11), st.integers(3, 11)), st.integers(2, 9), st.integers(1, 9), st.sampled_from(["NHWC", "NCHW"]),
    st.integers(0, 2), st.sampled_from(EPILOGUES), st.booleans(), st.sampled_from(METHODS), st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_equals_the_direct_declaration(n: int, size: tuple[int, int], ci: int, co: int, layout: str, padding: int, epilogue: str, constant: bool,
                                       method: Method, groups: int) -> None:
    dag = Dag(convolution(n, size, ci, co, layout, padding, epilogue, constant, groups))
    case = of_method(dag, method, inputs_of(dag))
    found = evaluate(case.dag.outputs, case.inputs)
    results = {tensor.name: value for tensor, value in zip(dag.outputs, found, strict=True)}
    assert problems(case, results, dag.reduce_length, method.tolerance) == ""


@given(
    st.integers(1, 2), st.tuples(st.integers(4, 5), st.integers(4, 7), st.integers(4, 7)), st.integers(2, 5), st.integers(1, 5),
    st.sampled_from(["NHWC", "NCHW"]), st.integers(0, 2), st.sampled_from(EPILOGUES), st.booleans(), st.sampled_from(METHODS), st.integers(1, 2),
    st.sampled_from([(3, 3, 3), (2, 3, 3), (1, 3, 3), (3, 1, 3), (3, 3, 1)]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_equals_the_direct_declaration_in_three_dimensions(
    n: int, size: tuple[int, int, int], ci: int, co: int, layout: str, padding: int, epilogue: str, constant: bool, method: Method, groups: int,
    taps: tuple[int, ...],
) -> None:
    dag = Dag(normal_form(convolution(n, size, ci, co, layout, padding, epilogue, constant, groups, taps)))
    case = of_method(dag, method, inputs_of(dag))
    found = evaluate(case.dag.outputs, case.inputs)
    results = {tensor.name: value for tensor, value in zip(dag.outputs, found, strict=True)}
    assert problems(case, results, dag.reduce_length, method.tolerance) == ""


@pytest.mark.parametrize(("size", "taps"), [((8, 8), (3, 3)), ((2, 8, 8), (3, 3, 3))])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_stated_error_is_the_real_one(method: Method, groups: int, size: tuple[int, ...], taps: tuple[int, ...]) -> None:
    """At the depth of real layers the error is the one the head of the module names, and the bound still sees a thousandth."""
    dag = Dag(convolution(1, size, 128, 32, epilogue="none", groups=groups, taps=taps))
    case = of_method(dag, method, inputs_of(dag))
    (found,), (expected,) = evaluate(case.dag.outputs, case.inputs), case.expected.values()
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    assert error < {F2.m: 2e-6, F4.m: 1.5e-5}[method.m]
    assert problems(case, {dag.outputs[0].name: found}, dag.reduce_length, method.tolerance) == ""
    assert problems(case, {dag.outputs[0].name: (found * (1 + 1e-3)).astype(np.float32)}, dag.reduce_length, method.tolerance) != ""


@pytest.mark.parametrize(
    ("seed", "layout", "constant", "groups", "taps"),
    [
        (0, "NHWC", True, 1, (3, 3)), (1, "NCHW", True, 1, (3, 3)), (2, "NHWC", False, 1, (3, 3)),
        (0, "NHWC", True, 2, (3, 3)), (1, "NCHW", True, 2, (3, 3)), (2, "NHWC", False, 2, (3, 3)),
        (0, "NHWC", True, 1, (3, 3, 3)), (1, "NCHW", True, 2, (3, 3, 3)), (2, "NHWC", False, 1, (3, 3, 3)),
    ],
)  # fmt: skip
def test_every_sketch_computes_it(bench: Bench, seed: int, layout: str, constant: bool, groups: int, taps: tuple[int, ...]) -> None:
    size, n = ((5, 6), 1) if len(taps) == 2 else ((2, 3, 2), 2)
    dag = Dag(convolution(n, size, 3, 17 // groups, layout, 1, "add", constant, groups, taps))
    case = of_method(dag, F2, inputs_of(dag))
    every = programs_of(seeded_draw(seed), case)
    chosen = [program for k, program in enumerate(every) if k % 3 == seed % 3][:8]
    assert [interpreted(program, 300_000) for program in chosen[:3]] == [""] * len(chosen[:3])
    assert bench.problems(chosen) == [""] * len(chosen)


@pytest.mark.compiler
@pytest.mark.parametrize(("groups", "layout"), [(1, "NHWC"), (3, "NHWC"), (3, "NCHW")])
def test_programs_stay_within_their_arrays(groups: int, layout: str, tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    dag = Dag(convolution(1, (5, 6), 3, 5, layout, 1, "bias_relu", groups=groups))
    chosen = programs_of(seeded_draw(groups), of_method(dag, F4, inputs_of(dag)))[::5][:4]
    assert sanitized_problems(chosen, tmp_path, gcc) == [""] * len(chosen)


def kernel_of(task: SearchTask, algorithm: str) -> Kernel:
    """Some program of an algorithm, built."""
    space = next(space for space in task.spaces if space.algorithm == algorithm)
    return built([task], [Best(space.sketch, (0,) * len(space.sizes), 1.0)], CToolchain(find_compiler()))[0]


def test_a_kernel_takes_the_weights_as_declared(tmp_path: Path) -> None:
    task = SearchTask(tensors=convolution(1, (6, 5), 16, 16, epilogue="add"), target="cpu -threads=1")
    values = inputs_of(task.dag)
    (expected,) = evaluate(task.dag.outputs, values, "float64")
    kernel = kernel_of(task, "winograd_f2")
    assert [argument.shape for argument in kernel.arguments] == [tensor.shape for tensor in task.dag.tensors]
    unbound = kernel(*values.values())
    kernel.bind_constants({name: values[name] for name in ("weight", "bias")})
    bound = kernel(values["data"], values["other"])
    again = Kernel.load(kernel.save(tmp_path / "saved"))(values["data"], values["other"])
    for found in (unbound, bound, again):
        assert isinstance(found, np.ndarray)
        assert difference("relu", found, expected, reduction=task.dag.reduce_length) == ""

    def aligned(array: Array) -> Array:
        made = aligned_empty(array.shape, "float32")
        made[...] = array
        return made

    arrays = [aligned(value) for value in (*values.values(), np.zeros(expected.shape, np.float32))]
    group = NetworkKernel(kernel)
    group.prepare(arrays, NetworkMemory(group.workspace_bytes))()
    assert np.array_equal(arrays[-1], bound)


@pytest.mark.parametrize(
    ("tensors", "offered"),
    [
        (convolution(1, (56, 56), 64, 64), ["winograd_f4", "winograd_f2"]),
        (convolution(1, (56, 56), 64, 64, "NCHW"), ["winograd_f4", "winograd_f2"]),
        (convolution(1, (28, 28), 64, 64, groups=3), ["winograd_f4", "winograd_f2"]),
        (convolution(1, (28, 28), 32, 32, groups=6), []),  # channels of a group too few, however many groups
        (convolution(1, (56, 56), 4, 64), []),  # channels too few for the transforms to pay
        (convolution(1, (4, 4), 64, 64, padding=0), ["winograd_f2"]),  # one tile of 2 x 2
        (convolution(1, (3, 3), 64, 64, padding=0), []),  # one output
        (convolution(1, (8, 28, 28), 64, 64, taps=(3, 3, 3)), ["winograd_f4", "winograd_f2"]),
        (convolution(2, (8, 28, 28), 64, 64, "NCHW", taps=(1, 3, 3)), ["winograd_f4", "winograd_f2"]),
        (convolution(1, (28, 4, 4), 64, 64, padding=0, taps=(3, 3, 3)), ["winograd_f2"]),
        (convolution(1, (28, 3, 3), 64, 64, padding=0, taps=(3, 3, 3)), []),  # one output in each slice
    ],
)
def test_offered_where_it_saves_multiplications(tensors: list[Tensor], offered: list[str]) -> None:
    for dag in (Dag(tensors), Dag(normal_form(tensors))):
        assert [one.name for one in alternatives_of(dag, ["winograd"])] == offered
