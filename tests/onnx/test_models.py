"""Models exported by PyTorch, compiled from their files and compared with the originals."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from tests.onnx.onnx_models import MODELS

pytestmark = pytest.mark.torch


def exported(name: str, path: Path) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own warnings about other packages
        torch.onnx.export(model.eval(), inputs, str(path), dynamo=True, verbose=False)
    return model, inputs


@pytest.mark.parametrize("name", MODELS)
def test_exported_models(name: str, tmp_path: Path) -> None:
    model, inputs = exported(name, tmp_path / "model.onnx")
    extracted = extract(tmp_path / "model.onnx")
    assert not extracted.torch_calls
    network = CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])
    with torch.no_grad():
        torch.testing.assert_close(network(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
