"""Modules quantised as `convert_pt2e` does it: exported graphs with the operators quantized_decomposed around those of ATen, weights as int8 constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers the operators
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ansor.graph.export import known_warnings_silenced

OPS = torch.ops.quantized_decomposed
WEIGHTED, SAME = ("aten.conv2d.default", "aten.linear.default", "aten.conv2d.padding"), ("aten.max_pool2d.default", "aten.flatten.using_ints")
LIMITING = ("aten.relu.default", "aten.relu_.default", "aten.hardtanh.default")
TAKING = (*WEIGHTED, "aten.add.Tensor", "aten.mean.dim")


@dataclass(frozen=True)
class Recipe:
    """How tensors are quantised. reduced: to 7 bits; folded: rectifiers together with what is before them; constant: weights are stored as int8."""

    unsigned: bool = False
    per_channel: bool = True
    reduced: bool = False
    folded: bool = True
    constant: bool = True

    def limits(self) -> tuple[int, int]:
        most = 127 if self.reduced else 255
        return (0, most) if self.unsigned else (-128, most - 128)


def folded(module: nn.Module) -> nn.Module:
    """The module with batch norms folded into the convolutions before them."""
    for part in list(module.modules()):
        children = list(part.named_children())
        for (name, one), (norm_name, norm) in zip(children, children[1:], strict=False):
            if isinstance(one, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(part, name, fuse_conv_bn_eval(one.eval(), norm.eval()))
                setattr(part, norm_name, nn.Identity())
    return module


def quantised(module: nn.Module, samples: list[torch.Tensor], recipe: Recipe | None = None) -> torch.fx.GraphModule:
    """The module quantised with the ranges observed in the samples."""
    with known_warnings_silenced(), torch.no_grad():
        graph = torch.export.export(folded(module.eval()), (samples[0],)).module()
    for node in [one for one in graph.graph.nodes if "guards" in str(one.target)]:
        graph.graph.erase_node(node)
    seen = _Ranges(graph)
    with torch.no_grad():
        for sample in samples:
            seen.run(sample)
    _Quantiser(graph, seen.ranges, recipe or Recipe()).change()
    graph.recompile()
    return graph


class _Ranges(torch.fx.Interpreter):
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__(graph)
        self.ranges: dict[str, tuple[float, float]] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        found = super().run_node(n)
        if isinstance(found, torch.Tensor):
            low, high = self.ranges.get(n.name, (0.0, 0.0))
            self.ranges[n.name] = min(low, float(found.min())), max(high, float(found.max()))
        return found


class _Quantiser:
    def __init__(self, module: torch.fx.GraphModule, ranges: dict[str, tuple[float, float]], recipe: Recipe) -> None:
        self.module, self.graph, self.ranges, self.recipe = module, module.graph, ranges, recipe
        self.parameters: dict[str, tuple[float, int]] = {}

    def change(self) -> None:
        for node in list(self.graph.nodes):
            if str(node.target) in WEIGHTED:
                self._weights(node)
            readers = [str(one.target) for one in node.users]
            only_limited = self.recipe.folded and str(node.target) in TAKING and len(readers) == 1 and readers[0] in LIMITING
            if node.op == "placeholder" or node.op == "call_function" and "softmax" not in str(node.target) and not only_limited:
                self._quantise(node)

    def _quantise(self, node: torch.fx.Node) -> None:
        low, high = self.recipe.limits()
        if str(node.target) in SAME:
            scale, zero = self.parameters[node.all_input_nodes[0].name]
        else:
            least, most = self.ranges[node.name]
            scale = max(most - least, 1e-4) / (high - low)
            zero = max(low, min(high, round(low - least / scale)))
        users = list(node.users)
        with self.graph.inserting_after(node):
            given = (scale, zero, low, high, torch.uint8 if self.recipe.unsigned else torch.int8)
            stored = self.graph.call_function(OPS.quantize_per_tensor.default, (node, *given))
        for user in users:
            with self.graph.inserting_before(user):  # each reader has its own
                real = self.graph.call_function(OPS.dequantize_per_tensor.default, (stored, *given))
            self.parameters[real.name] = scale, zero
            user.replace_input_with(node, real)

    def _weights(self, node: torch.fx.Node) -> None:
        held = node.args[1]
        assert isinstance(held, torch.fx.Node)
        value = self.module.get_parameter(str(held.target)).detach()
        flat = value.reshape(len(value), -1) if self.recipe.per_channel else value.reshape(1, -1)
        scales = flat.abs().amax(1).clamp_min(1e-6) / 127
        whole = torch.clamp(torch.round(flat / scales[:, None]), -127, 127).to(torch.int8).reshape(value.shape)
        with self.graph.inserting_before(node):
            parameters: tuple[Any, ...] = (float(scales[0]), 0)
            if self.recipe.per_channel:
                parameters = (self._buffer(f"{node.name}_scale", scales), self._buffer(f"{node.name}_zeros", torch.zeros(len(scales), dtype=torch.int64)), 0)
            quantise, dequantise = OPS.quantize_per_tensor.default, OPS.dequantize_per_tensor.default
            if self.recipe.per_channel:
                quantise, dequantise = OPS.quantize_per_channel.default, OPS.dequantize_per_channel.default
            rest = (*parameters, -127, 127, torch.int8)
            stored = self._buffer(f"{node.name}_stored", whole) if self.recipe.constant else self.graph.call_function(quantise, (held, *rest))
            node.replace_input_with(held, self.graph.call_function(dequantise, (stored, *rest)))

    def _buffer(self, name: str, value: torch.Tensor) -> torch.fx.Node:
        self.module.register_buffer(name, value)
        return self.graph.get_attr(name)
