"""Graphs as PT2E quantises them, unchanged: each operator beside PyTorch's numbers, the network beside its floats; what is refused, in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from ansor.errors import ModelError
from ansor.graph.export import known_warnings_silenced
from ansor.integer.from_pt2e import from_pt2e, is_pt2e
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Convolution, Table
from ansor.integer.reading import network_of
from ansor.integer.reference import computed, run
from ansor.offload.build import build
from ansor.offload.program import Running
from ansor.vta.runtime.operator_queue import Queue
from ansor.vta.runtime.simulators import FunctionalDriver
from tests.integer.models import samples, small
from tests.integer.pt2e_models import OPS, Recipe, quantised

pytestmark = pytest.mark.torch
RECIPES = {
    "int8": Recipe(), "uint8": Recipe(unsigned=True), "tensor": Recipe(per_channel=False), "7 bits": Recipe(unsigned=True, reduced=True),
    "not folded": Recipe(folded=False), "weights in the graph": Recipe(constant=False), "both": Recipe(per_channel=False, constant=False),
}  # fmt: skip


class Block(nn.Module):
    """Two convolutions beside one, pools, a concatenation, means, and padding of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.beside = nn.Conv2d(3, 8, 3, padding="same"), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 1, 2)
        self.last = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.relu(self.second(x) + self.beside(x))
        x = torch.cat([nn.functional.avg_pool2d(x, 2), nn.functional.hardtanh(nn.functional.adaptive_avg_pool2d(x, (2, 3)))], 1)
        result: torch.Tensor = self.last(x.mean((2, 3)))
        return result


def export(graph: nn.Module, shape: tuple[int, ...]) -> torch.export.ExportedProgram:
    with known_warnings_silenced(), torch.no_grad():
        return torch.export.export(graph, (torch.zeros(shape),))


class _Stored(torch.fx.Interpreter):
    """Keeps what each call quantises, by the name that the network has for it."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph)
        self.found: dict[str, NDArray[np.generic]] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n.op == "call_function" and "decomposed.quantize" in str(n.target):
            self.found[f"{n.args[0]}_int8"] = value.numpy()
        return value


def away(network: IntegerNetwork, graph: torch.fx.GraphModule, given: list[torch.Tensor]) -> tuple[int, int]:
    """Integers that differ from PyTorch's, given PyTorch's before each operator, and all; none by more than a step."""
    wrong = total = 0
    for x in given:
        theirs = _Stored(graph)
        with torch.no_grad():
            theirs.run(x)
        values = {network.inputs[0]: network.tensors[network.inputs[0]].stored(x.numpy())}
        for one in network.operators:
            tensor, found = network.tensors[one.output], theirs.found.get(one.output)
            ours = computed(one, *(values[name] for name in one.inputs))
            if found is None:
                values[one.output] = ours
                continue
            plain = (found.astype(int) - (128 if found.dtype == np.uint8 else 0)).astype(np.int8)
            plain = plain.reshape(*plain.shape, *(1,) * (len(tensor.shape) - plain.ndim))  # a mean without height and width
            values[one.output] = np.transpose(plain, tensor.axes) if tensor.axes else plain
            steps = np.abs(ours.astype(int) - values[one.output])
            assert steps.max() <= 1, one.output
            wrong, total = wrong + int((steps > 0).sum()), total + steps.size
    return wrong, total


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("which", ["small", "block"])
def test_integers_are_those_of_pytorch(which: str, recipe: str) -> None:
    """At most a step apart, where single precision rounds the other way; as a graph, its export, and that decomposed, the block is one network."""
    model, shape = (small(), (1, 3, 12, 9)) if which == "small" else (Block(), (1, 3, 16, 24))
    given = samples(4, shape)
    graph = quantised(model, given, RECIPES[recipe])
    network = network_of(export(graph, shape))
    wrong, total = away(network, graph, given)
    assert total > 1000 and wrong < total / 200
    same = [network, from_pt2e(graph)]
    with known_warnings_silenced():
        same += [from_pt2e(export(graph, shape).run_decompositions())] if which == "block" else []
    found = network.tensors[network.inputs[0]].stored(given[0].numpy())
    results = [run(one, {one.inputs[0]: found})[one.outputs[0]] for one in same]
    assert all(np.array_equal(results[0], one) for one in results)
    assert network.left_out == (("softmax",) if which == "small" else ())


def test_a_float_result_is_near() -> None:
    """The graph run in PyTorch, whole: rounding of one layer goes on into the next, so a few results are a step or two away."""
    graph = quantised(Block(), samples(4, (1, 3, 16, 24)))
    network = from_pt2e(graph, "block")
    source, result = network.tensors[network.inputs[0]], network.tensors[network.outputs[0]]
    for x in samples(4, (1, 3, 16, 24)):
        with torch.no_grad():
            theirs = graph(x).numpy()
        assert np.abs(result.read(run(network, {"x": source.stored(x.numpy())})[result.name]) - theirs).max() <= 2.01 * result.quantisation.scale


def test_rectifiers_and_weights() -> None:
    graph = quantised(small(), samples())
    network = from_pt2e(graph)
    first = network.operators[0]
    assert isinstance(first, Convolution) and first.output == "relu_int8" and first.rescale.low == network.tensors["relu_int8"].quantisation.zero_point
    assert first.rescale.multipliers.size == 8 and len(set(first.rescale.multipliers.tolist())) > 1
    apart = from_pt2e(quantised(small(), samples(), Recipe(folded=False)))
    assert sum(isinstance(one, Table) for one in apart.operators) > sum(isinstance(one, Table) for one in network.operators)


@pytest.mark.parametrize("recipe", ["int8", "uint8"])
def test_on_a_core(recipe: str) -> None:
    network = from_pt2e(quantised(Block(), samples(4, (1, 3, 16, 24)), RECIPES[recipe]), "block")
    placed = build(network, "vta")
    running = Running(placed, Queue(FunctionalDriver(seed=1)))
    values = {"x": np.random.default_rng(1).integers(-128, 128, (1, 16, 24, 3)).astype(np.int8)}
    assert np.array_equal(running.run(values)[network.outputs[0]], run(network, values)[network.outputs[0]])
    assert "device  add_int8" in str(placed) or "device  relu_1_int8" in str(placed)


class Calls(nn.Module):
    """What `call` makes of a tensor that was quantised, quantised again."""

    def __init__(self, call: Any, again: bool = True, dtype: torch.dtype = torch.int8, zero: int = 3) -> None:
        super().__init__()
        self.call, self.again, self.dtype, self.zero = call, again, dtype, zero
        self.weight = nn.Parameter(torch.ones(4, 3, 3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = (0.1, self.zero, -128, 127, self.dtype)
        x = self.call(self, OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *given), *given))
        return OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *given), *given) if self.again else x


def _changed(_: Calls, x: torch.Tensor) -> torch.Tensor:
    before = x.flatten(1)
    return torch.relu_(x) + before.reshape(x.shape)


def _dynamic(_: Calls, x: torch.Tensor) -> torch.Tensor:
    scale, zero = OPS.choose_qparams(x, -128, 127, 1e-6, torch.int8)
    return OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8), scale, zero, -128, 127, torch.int8)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("call", "again", "message"),
    [
        (lambda m, x: torch.conv2d(x, m.weight), True, "the aten.conv2d.default conv2d has weights p_weight that are not 8-bit constants"),
        (lambda m, x: torch.relu(x + 1), True, "the aten.add.Tensor add has the operand 1, which has to be a tensor"),
        (lambda m, x: torch.add(x, x, alpha=2), True, "the aten.add.Tensor add has alpha=2; only 1 is supported"),
        (lambda m, x: torch.cumsum(x, 1), True, "the model has aten.cumsum.default cumsum, which is not supported in int8 networks; supported operators: "),
        (lambda m, x: torch.max_pool2d(x + x, 2), True, "reads add, which is not quantised"),
        (lambda m, x: x + x, False, "the output add is not quantised"),
        (lambda m, x: nn.functional.adaptive_avg_pool2d(x, (3, 3)), True, r"makes \[3, 3\] from \[8, 8\]; only sizes that divide the image"),
        (lambda m, x: nn.functional.avg_pool2d(x, 3, padding=1, count_include_pad=False), True, "has means that leave out the padding"),
        (lambda m, x: x.permute(0, 2, 3, 1), True, "the model has aten.permute.default permute, which is not supported"),
        (lambda m, x: nn.functional.pad(x, (1, 1, 1, 1), value=2.0), True, "has value=2.0; only None or 0 is supported"),
        (_changed, True, "the aten.relu.default relu_ changes dequantize_per_tensor, which is read later"),
        (_dynamic, True, "the model has choose_qparams.tensor|quantized_decomposed.choose_qparams.tensor"),
    ],
)
def test_what_is_refused(call: Any, again: bool, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        from_pt2e(export(Calls(call, again), (1, 3, 8, 8)))


def test_numbers_that_are_refused() -> None:
    with pytest.raises(ModelError, match="has dtype torch.int16; tensors have to be int8 or uint8"):
        from_pt2e(export(Calls(lambda m, x: torch.relu(x), dtype=torch.int16), (1, 3, 8, 8)))
    with pytest.raises(ModelError, match="has the zero point 200, which is outside the range of int8"):
        from_pt2e(export(Calls(lambda m, x: torch.relu(x), zero=200), (1, 3, 8, 8)))


def test_what_is_quantised_takes_no_calibration() -> None:
    graph = quantised(Block(), samples(1, (1, 3, 16, 24)))
    assert is_pt2e(graph) and not is_pt2e(Block()) and not is_pt2e("model.onnx")
    with pytest.raises(ModelError, match="is quantised already; leave them out"):
        network_of(graph, samples(1, (1, 3, 16, 24)))
    for node in graph.graph.nodes:
        node.meta.pop("val", None)
    with pytest.raises(ModelError, match="whose inputs have no fixed shapes; give the result of torch.export.export"):
        from_pt2e(graph)
