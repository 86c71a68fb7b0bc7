"""Integer networks for tests of placement: a residual block between a first and a last layer, and random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansor.integer.network import CHANNELS_LAST, IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.operators import Add, Convolution, Dense, MaxPool, Operator, Reshape, Window
from ansor.integer.rescale import Rescale, rescale_of


def rescale(channels: int, taps: int, low: int = -128) -> Rescale:
    """A rescale by a power of two, so that sums of this many products become 8-bit numbers."""
    power = -6 - int(np.log2(taps) / 2)
    return rescale_of(np.full(channels, 2.0**power), 0, (low, 127), "a test")


def convolution(name: str, source: str, channels: tuple[int, int], kernel: int, low: int = -128, stride: int = 1) -> Convolution:
    """Random weights, the same for a name."""
    generator = np.random.default_rng(sum(name.encode()))
    weights = generator.integers(-127, 128, (kernel, kernel, *channels)).astype(np.int8)
    bias = generator.integers(-3000, 3000, channels[1]).astype(np.int32)
    window = Window((kernel, kernel), (stride, stride), (kernel // 2,) * 4)
    return Convolution(name, (source,), weights, bias, rescale(channels[1], kernel**2 * channels[0], low), window)


def addition(name: str, left: str, right: str, low: int = 0) -> Add:
    return Add(name, (left, right), (3 << 18, 1 << 18), 1 << 18, 19, 0, low, 127)


def residual(size: int = 8, width: int = 24, classes: int = 10) -> IntegerNetwork:
    """stem, body1, body2 and beside, sum, pool, flat, last."""
    operators: list[Operator] = [
        convolution("stem", "x", (3, width), 3, 0), convolution("body1", "stem", (width, width), 3, 0), convolution("body2", "body1", (width, width), 3),
        convolution("beside", "stem", (width, width), 1), addition("sum", "body2", "beside"), MaxPool("pool", ("sum",), Window((size, size))),
        Reshape("flat", ("pool",), (1, width)),
    ]  # fmt: skip
    weights = np.random.default_rng(9).integers(-127, 128, (width, classes)).astype(np.int8)
    operators.append(Dense("last", ("flat",), weights, np.zeros(classes, np.int32), rescale(classes, width)))
    return network_of("residual", {"x": (1, size, size, 3)}, operators, ("last",))


def network_of(name: str, inputs: dict[str, tuple[int, ...]], operators: list[Operator], outputs: tuple[str, ...]) -> IntegerNetwork:
    """The network with the tensors that the operators make."""
    shapes = dict(inputs)
    for one in operators:
        shapes[one.output] = one.shape([shapes[source] for source in one.inputs])
    tensors = {key: IntegerTensor(key, shape, Quantisation(1.0, 0), CHANNELS_LAST if len(shape) == 4 else ()) for key, shape in shapes.items()}
    return IntegerNetwork(name, tuple(inputs), outputs, tensors, tuple(operators)).checked()


def drawn_network(seed: int, count: int) -> IntegerNetwork:
    """`count` convolutions and additions of any tensors before them; the residual block for 0."""
    if not count:
        return residual()
    generator = np.random.default_rng(seed)
    names, operators = ["x", "y"], list[Operator]()
    for place in range(count):
        sources = generator.choice(len(names), 2)
        if generator.random() < 0.5:
            operators.append(convolution(f"c{place}", names[sources[0]], (4, 4), 1))
        else:
            operators.append(addition(f"a{place}", names[sources[0]], names[sources[1]]))
        names.append(operators[-1].output)
    used = {name for one in operators for name in one.inputs}
    outputs = tuple(one.output for one in operators if one.output not in used)
    return network_of("drawn", {name: (1, 2, 2, 4) for name in ("x", "y")}, operators, outputs)


def turned(network: IntegerNetwork) -> IntegerNetwork:
    """The same network with the arguments of every addition swapped."""
    operators = [replace(one, inputs=one.inputs[::-1], multipliers=one.multipliers[::-1]) if isinstance(one, Add) else one for one in network.operators]
    return replace(network, operators=tuple(operators))
