"""Models of one operator, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansor.graph.kernels import ReferenceKernel
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract

Array = NDArray[Any]
Constant = Array | np.generic | None


def saved(path: Path, op: str, inputs: Sequence[Array], constants: Sequence[Constant] = (), outputs: int = 1, opset: int = 20, **attributes: object) -> Any:
    """Write a file with one node, whose first operands are inputs and the others constants (None: missing), and return the model."""
    given = [f"x{place}" for place in range(len(inputs))]
    names = [*given, *("" if one is None else f"c{place}" for place, one in enumerate(constants))]
    results = [f"y{place}" for place in range(outputs)]
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape) for name, one in zip(given, inputs, strict=True)]
    held = [numpy_helper.from_array(np.asarray(one), f"c{place}") for place, one in enumerate(constants) if one is not None]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph([node], "one", values, [helper.make_empty_tensor_value_info(name) for name in results], held)
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))
    model.ir_version = 9
    onnx.save(model, str(path))
    return model


def check(path: Path, op: str, inputs: Sequence[Array], constants: Sequence[Constant] = (), outputs: int = 1, **attributes: Any) -> None:
    """Check that the network of that file matches the reference, and that nothing is left to PyTorch."""
    model = saved(path, op, inputs, constants, outputs, **attributes)
    wanted = ReferenceEvaluator(model).run(None, {f"x{place}": one for place, one in enumerate(inputs)})
    extracted = extract(path, tuple(map(torch.from_numpy, inputs)))
    assert not extracted.torch_calls
    found = CompiledNetwork(extracted, [ReferenceKernel(task.tensors) for task in extracted.tasks])(*inputs)
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.5)


def integers(*values: int) -> Array:
    return np.array(values, dtype=np.int64)
