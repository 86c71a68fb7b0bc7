from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from ansor.errors import ModelError
from ansor.integer.from_torch import from_torch, quantisation_of, quantised_weights
from ansor.integer.reference import run
from tests.integer.models import samples, small

pytestmark = pytest.mark.torch


def test_the_integers_follow_the_model() -> None:
    model, inputs = small(), samples()
    network = from_torch(model, inputs, "small")
    assert network.left_out == ("softmax",) and [one.kind for one in network.operators].count("convolution") == 2
    for x in inputs:
        found = run(network, {name: network.tensors[name].stored(x.numpy()) for name in network.inputs})
        real = network.tensors[network.outputs[0]].read(found[network.outputs[0]])
        with torch.no_grad():
            shares = model(x)
        assert torch.allclose(torch.from_numpy(real).float().softmax(1), shares, atol=0.03)


def test_rectifiers_cost_nothing() -> None:
    network = from_torch(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.ReLU6()), samples(2), "n")
    assert [one.kind for one in network.operators] == ["convolution", "convolution"]
    last = network.tensors[network.outputs[0]].quantisation
    assert last.zero_point == -128


def test_flattened_images_are_not_moved() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 10 * 7, 3))
    network = from_torch(model, samples(), "n")
    assert [one.kind for one in network.operators] == ["convolution", "reshape", "dense"]
    x = samples()[0]
    found = run(network, {network.inputs[0]: network.tensors[network.inputs[0]].stored(x.numpy())})
    with torch.no_grad():
        assert np.allclose(network.tensors[network.outputs[0]].read(found[network.outputs[0]]), model(x).numpy(), atol=0.05)


def test_groups_see_their_own_channels() -> None:
    torch.manual_seed(1)
    model, inputs = nn.Conv2d(12, 6, 3, padding=1, groups=3), [torch.randn(1, 12, 8, 7)]
    network = from_torch(model, inputs, "n")
    (one,) = network.operators
    assert str(one).endswith("groups 3") and one.macs((1, 8, 7, 6)) == 8 * 7 * 6 * 4 * 9
    found = run(network, {network.inputs[0]: network.tensors[network.inputs[0]].stored(inputs[0].numpy())})
    with torch.no_grad():
        assert np.allclose(network.tensors[network.outputs[0]].read(found[network.outputs[0]]), model(inputs[0]).numpy(), atol=0.05)


def test_what_a_scale_is() -> None:
    found = quantisation_of(-1.0, 3.0)
    assert found.quantised(np.array([-1.0, 0.0, 3.0])).tolist() == [-128, found.zero_point, 127] and found.real(np.array([found.zero_point], np.int8)) == 0
    weights, scales = quantised_weights(np.array([[1.0, -2.0], [0.0, 0.0]], np.float32))
    assert weights.tolist() == [[64, -127], [0, 0]] and scales[0] == 2 / 127


def test_powers_of_two() -> None:
    network = from_torch(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1)).eval(), samples(), "n", powers_of_two=True)
    for tensor in network.tensors.values():
        assert np.log2(tensor.quantisation.scale) % 1 == 0 and tensor.quantisation.zero_point == 0
    _, scales = quantised_weights(np.array([[1.0, -2.0], [1e-6, 0.0]], np.float32), powers_of_two=True)
    assert scales.tolist() == [2**-5, 2**-8]


@pytest.mark.parametrize(
    ("model", "inputs", "says"),
    [
        (nn.Conv2d(3, 4, 3), [], "without calibration inputs"),
        (nn.Conv2d(3, 4, 3), torch.zeros(1, 3, 8, 8), "with one tensor as calibration inputs; give a list"),
        (nn.Conv2d(3, 4, 3), [np.zeros((1, 3, 8, 8), np.float32)], "with an ndarray among the calibration inputs"),
        (nn.Sequential(nn.Conv2d(3, 3, 3), nn.LayerNorm((10, 7))), samples(1), "layer_norm"),
        (nn.AvgPool2d(3, 2, 1, count_include_pad=False), samples(1), "count_include_pad=True"),
        (nn.MaxPool2d(2, 2, ceil_mode=True), samples(1), "ceil_mode"),
        (nn.Conv2d(3, 4, 3), [torch.full((1, 3, 5, 5), torch.inf)], "not finite"),
    ],
    ids=lambda value: None if isinstance(value, (nn.Module, list)) else value[:20],
)
def test_what_is_not_supported_is_said(model: nn.Module, inputs: list[torch.Tensor], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        from_torch(model.eval(), inputs, "n")
