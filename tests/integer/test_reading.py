"""What a person gives as an int8 network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from ansor.errors import ModelError
from ansor.integer.reading import network_of
from ansor.integer.reference import run
from tests.integer.models import quantised_file
from tests.integer.networks import inputs_of

pytestmark = pytest.mark.torch


def test_an_export_is_quantised_with_its_own_inputs_or_with_others(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, inputs = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval(), torch.randn(1, 3, 8, 8)
    program, path = torch.export.export(model, (inputs,)), tmp_path / "small.pt2"
    torch.export.save(program, path)
    networks = [network_of(path), network_of(str(path), [inputs]), network_of(program, [inputs], "small"), network_of(model, [inputs], "small")]
    results = [run(network, inputs_of(network, 0))[network.outputs[0]] for network in networks]
    assert all(np.array_equal(results[0], one) for one in results[1:]) and [network.name for network in networks] == ["small"] * 4


def test_what_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="^asked to read an int8 network from an int; give the path of an ONNX file in QDQ format, a graph that PT2E"):
        network_of(3)
    (tmp_path / "junk.pt2").write_bytes(b"junk")
    with pytest.raises(ModelError, match="^asked to read .*junk.pt2, which torch.export.load cannot load: "):
        network_of(tmp_path / "junk.pt2")


def test_a_file_that_is_not_quantised(tmp_path: Path) -> None:
    path = quantised_file(nn.Conv2d(3, 4, 3).eval(), tmp_path).with_name("float.onnx")
    with pytest.raises(ModelError, match="^the Conv .* reads x, which is unknown or not quantised: quantise the model in QDQ format"):
        network_of(path)
