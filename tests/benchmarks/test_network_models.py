"""The networks of benchmarks/networks.py, by their names."""

import sys
from types import SimpleNamespace

import pytest
import torch
from network_models import NETWORKS, OTHERS, Network, network
from torch import nn

pytestmark = pytest.mark.torch


def test_each_is_found_by_its_name() -> None:
    assert all(network(name) is NETWORKS[name] for name in NETWORKS)
    assert len(set(OTHERS)) == 30 and not set(OTHERS) & set(NETWORKS)


def test_unknown_names_say_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="'resnet19', which is none of resnet18, .*; models of the library timm are called timm:NAME"):
        network("resnet19")
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ValueError, match=r"'timm:any', but the library timm cannot be imported .*; pip install timm"):
        network("timm:any")


def test_models_of_timm_have_their_own_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a stand-in: the tests do not install it."""
    made: list[str] = []
    shape = SimpleNamespace(input_size=(3, 96, 80))
    known = SimpleNamespace(__version__="0", is_model=lambda name: name == "small", get_pretrained_cfg=lambda name: shape, create_model=made.append)
    monkeypatch.setitem(sys.modules, "timm", known)
    found = network("timm:small")
    found.make()
    assert made == ["small"] and found.name == "timm:small" and [tuple(one.shape) for one in found.inputs(2)] == [(2, 3, 96, 80)]
    with pytest.raises(ValueError, match="which timm 0 does not have"):
        network("timm:large")


def test_weights_that_are_zero_are_drawn() -> None:
    """Zeros in a last layer would hide all layers before it."""
    layer = nn.Linear(4, 3)
    nn.init.zeros_(layer.weight)
    found = Network("made up", lambda: layer, lambda batch: (torch.zeros(batch, 4),)).model()
    assert found is layer and bool(layer.weight.any())
