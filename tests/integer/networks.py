"""Integer networks for tests: operators of drawn sizes, and small models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ansor.integer.network import CHANNELS_LAST, IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.operators import Add, AveragePool, Convolution, Dense, MaxPool, Operator, Table, Transpose, Window
from ansor.integer.rescale import Rescale, rescale_of


def network_of(operator: Operator, *shapes: tuple[int, ...]) -> IntegerNetwork:
    """A network of one operator."""
    quantisation = Quantisation(1.0, 0)
    given = zip(operator.inputs, shapes, strict=True)
    tensors = {name: IntegerTensor(name, shape, quantisation, CHANNELS_LAST if len(shape) == 4 else ()) for name, shape in given}
    tensors[operator.output] = IntegerTensor(operator.output, operator.shape(shapes), quantisation)
    return IntegerNetwork("one", operator.inputs, (operator.output,), tensors, (operator,)).checked()


def inputs_of(network: IntegerNetwork, seed: int) -> dict[str, Any]:
    """Bytes of all values for its inputs."""
    generator = np.random.default_rng(seed)
    return {name: generator.integers(-128, 128, network.tensors[name].shape).astype(np.int8) for name in network.inputs}


windows = st.builds(
    Window,
    st.tuples(st.integers(1, 3), st.integers(1, 3)), st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(*[st.integers(0, 2)] * 4), st.tuples(st.integers(1, 2), st.integers(1, 2)),
)  # fmt: skip


def rescales(draw: Any, channels: int, sums: float) -> Rescale:
    """Factors such that sums of about this size become 8-bit numbers, with and without the high-word shift."""
    size = draw(st.sampled_from((1.0, 1.0, 300.0, 1e-4)))
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    factors = generator.uniform(0.2, 1.0, channels) * 100 / sums * size
    low = draw(st.sampled_from((-128, -5, 3)))
    return rescale_of(factors, draw(st.integers(-128, 127)), (low, draw(st.sampled_from((127, 6)))), "a test")


@st.composite
def convolutions(draw: Any) -> tuple[Convolution, tuple[int, ...]]:
    window = draw(windows)
    depthwise, channels, groups = draw(st.booleans()), draw(st.integers(1, 9)), 1
    outputs = draw(st.integers(1, 9)) if not depthwise else draw(st.integers(1, 2))
    if not depthwise and draw(st.integers(0, 2)) == 0:
        groups = draw(st.sampled_from([count for count in range(1, channels + 1) if channels % count == 0]))
        outputs = groups * draw(st.integers(1, 3))
    least = [(taps - 1) * apart + 1 for taps, apart in zip(window.kernel, window.dilation, strict=True)]
    shape = (1, draw(st.integers(least[0], 9)), draw(st.integers(least[1], 9)), channels)
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    weights = generator.integers(-127, 128, (*window.kernel, channels // groups, outputs)).astype(np.int8)
    count = channels * outputs if depthwise else outputs
    bias = generator.integers(-5000, 5000, count).astype(np.int32)
    taps = window.kernel[0] * window.kernel[1] * (1 if depthwise else channels // groups)
    window = replace(window, filling=draw(st.integers(-128, 127)), groups=groups)
    return Convolution("y", ("x",), weights, bias, rescales(draw, count, 5000 * taps**0.5), replace(window, depthwise=depthwise)), shape


@st.composite
def others(draw: Any) -> tuple[Operator, tuple[tuple[int, ...], ...]]:
    """Operators other than convolutions, and the shapes of their inputs."""
    kind = draw(st.sampled_from(("dense", "add", "average", "max", "table", "transpose")))
    shape = (1, draw(st.integers(3, 8)), draw(st.integers(3, 8)), draw(st.integers(1, 9)))
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    pairs = [draw(st.tuples(st.integers(1, most), st.integers(1, most))) for most in (3, 2)]
    window = Window(pairs[0], pairs[1], draw(st.tuples(*[st.integers(0, 1)] * 4)))
    if kind == "dense":
        rows, inner, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 20))
        weights, bias = generator.integers(-127, 128, (inner, outputs)).astype(np.int8), generator.integers(-5000, 5000, outputs).astype(np.int32)
        return Dense("y", ("x",), weights, bias, rescales(draw, outputs, 5000 * inner**0.5)), ((rows, inner),)
    if kind == "add":
        factors = tuple(int(one) for one in generator.integers(0, 2**21, 2))
        return Add("y", ("x", "z"), (factors[0], factors[1]), int(generator.integers(-(2**29), 2**29)), 21, 3, -100, 127), (shape, shape)
    if kind == "average":
        taps = window.kernel[0] * window.kernel[1]
        return AveragePool("y", ("x",), replace(window, filling=7), int(generator.integers(-500, 500)), rescales(draw, 1, 70 * taps)), (shape,)
    if kind == "max":
        return MaxPool("y", ("x",), window), (shape,)
    if kind == "table":
        return Table("y", ("x",), generator.integers(-128, 128, 256).astype(np.int8)), (shape,)
    return Transpose("y", ("x",), (0, 3, 1, 2)), (shape,)
