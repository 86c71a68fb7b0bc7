"""Graphs that torchao itself has quantised, on the host and on a core."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from ansor.errors import ModelError
from ansor.graph.export import known_warnings_silenced
from ansor.integer.from_pt2e import from_pt2e
from ansor.integer.reference import run
from ansor.offload.build import build
from ansor.offload.program import Running
from ansor.vta.runtime.operator_queue import Queue
from ansor.vta.runtime.simulators import FunctionalDriver
from tests.integer.models import samples
from tests.integer.test_from_pt2e import away

SHAPE = (1, 3, 16, 24)
pytestmark = pytest.mark.torch


class Residual(torch.nn.Module):
    """A residual block between a pool and a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.Conv2d(16, 16, 3, 1, 1), torch.nn.Conv2d(16, 16, 3, 1, 1)
        self.last = torch.nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.relu(x + self.third(torch.relu(self.second(x))))
        result: torch.Tensor = self.last(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return result


def quantised(*, x86: bool = False, per_channel: bool = True) -> torch.fx.GraphModule:
    """The block by `prepare_pt2e` and `convert_pt2e`, unchanged."""
    with warnings.catch_warnings(), known_warnings_silenced():
        warnings.simplefilter("ignore")
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as inductor
        from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

        if x86:
            quantizer = inductor.X86InductorQuantizer().set_global(inductor.get_default_x86_inductor_quantization_config())
        else:
            quantizer = xnnpack.XNNPACKQuantizer().set_global(xnnpack.get_symmetric_quantization_config(is_per_channel=per_channel))
        prepared = prepare_pt2e(torch.export.export(Residual().eval(), (torch.zeros(SHAPE),)).module(), quantizer)
        for x in samples(4, SHAPE):
            prepared(x)
        graph = convert_pt2e(prepared)
    assert isinstance(graph, torch.fx.GraphModule)
    return graph


@pytest.mark.parametrize("per_channel", [True, False])
def test_the_integers_are_those_of_pytorch_and_of_a_core(per_channel: bool) -> None:
    graph = quantised(per_channel=per_channel)
    network = from_pt2e(graph)
    wrong, total = away(network, graph, samples(2, SHAPE))
    assert total > 1000 and wrong < total / 200
    running = Running(build(network, "vta"), Queue(FunctionalDriver(seed=1)))
    values = {network.inputs[0]: np.random.default_rng(1).integers(-128, 128, (1, 16, 24, 3)).astype(np.int8)}
    assert np.array_equal(running.run(values)[network.outputs[0]], run(network, values)[network.outputs[0]])


def test_what_stays_float_between_operators_is_refused() -> None:
    """The quantizer for x86 leaves sums of a convolution and what is added to them in floats."""
    with pytest.raises(ModelError, match="reads .*, which is not quantised: quantise every result"):
        from_pt2e(quantised(x86=True))
