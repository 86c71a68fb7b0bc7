"""Reads graphs that PyTorch's PT2E quantisation made (`prepare_pt2e`, `convert_pt2e`) as integer networks, by translating them to ONNX operators first."""

from __future__ import annotations

from typing import TypeGuard

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators quantized_decomposed
from torch.export import ExportedProgram

from ansor.errors import ModelError
from ansor.graph.export import known_warnings_silenced, logs_silenced, prints_held
from ansor.integer.from_onnx import network_of_graph
from ansor.integer.network import IntegerNetwork
from ansor.integer.pt2e_graph import graph_of
from ansor.support.text import clip

MARK = "quantized_decomposed."


def is_pt2e(model: object) -> TypeGuard[ExportedProgram | torch.fx.GraphModule]:
    """Whether the model is a graph with PT2E's operators, which is already quantised and takes no calibration."""
    graph = model.graph if isinstance(model, (ExportedProgram, torch.fx.GraphModule)) else None
    return graph is not None and any(node.op == "call_function" and str(node.target).startswith(MARK) for node in graph.nodes)


def from_pt2e(model: ExportedProgram | torch.fx.GraphModule, name: str = "network") -> IntegerNetwork:
    """The network of a graph that `convert_pt2e` returned, or of its export. Raises ModelError if an operator is not supported."""
    program = model if isinstance(model, ExportedProgram) else _exported(model)
    return network_of_graph(graph_of(program, name), f"the graph {name}")


def _exported(model: torch.fx.GraphModule) -> ExportedProgram:
    values = [node.meta.get("val") for node in model.graph.nodes if node.op == "placeholder"]
    inputs = [torch.zeros(value.shape, dtype=value.dtype) for value in values if isinstance(value, torch.Tensor) and _is_fixed(value)]
    if len(inputs) != len(values):
        raise ModelError("asked to read a quantised graph whose inputs have no fixed shapes; give the result of torch.export.export(graph, inputs)")
    try:
        with torch.no_grad(), known_warnings_silenced(), logs_silenced(), prints_held():
            return torch.export.export(model, tuple(inputs), strict=False)
    except Exception as error:  # the graph runs here, so any error may be raised
        raise ModelError(f"asked to read a quantised graph, which torch.export cannot export: {clip(' '.join(str(error).split()), 200)}") from error


def _is_fixed(value: torch.Tensor) -> bool:
    return all(isinstance(extent, int) for extent in value.shape)
