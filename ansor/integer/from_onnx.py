"""Reads ONNX models in QDQ format as integer networks. Quantisers write this format: it has QuantizeLinear and DequantizeLinear around the operators."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from ansor.errors import AnsorError, ModelError
from ansor.integer.network import IntegerNetwork, Quantisation
from ansor.integer.onnx_constants import FOLDED, folded
from ansor.integer.onnx_file import Array, OnnxGraph, OnnxNode, read_file
from ansor.integer.onnx_operators import OPERATORS
from ansor.integer.onnx_values import CallerComputed, IntegerValue, Padded, RealInput, Values, Weights
from ansor.integer.pending import Function, Pending
from ansor.integer.rescale import Doubles


def from_onnx(path: str | Path) -> IntegerNetwork:
    """Read a file. Raises ModelError if it is damaged, or an operator is not supported."""
    return network_of_graph(read_file(path), str(path))


def network_of_graph(graph: OnnxGraph, source: str) -> IntegerNetwork:
    """The network of a graph that came from `source`. Raises ModelError like `from_onnx`."""
    try:
        return _Reader(graph).network()
    except AnsorError:
        raise
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, ArithmeticError) as error:  # sizes and attributes that contradict each other
        raise ModelError(f"asked to read {source}, which is inconsistent: {' '.join(str(error).split())[:200]}; export it again") from error


class _Reader(Values):
    """Walks one graph."""

    def network(self) -> IntegerNetwork:
        """The network of the whole graph."""
        for node in self.graph.nodes:
            if node.op == "QuantizeLinear":
                self._quantise(node)
            elif node.op == "DequantizeLinear":
                self._dequantise(node)
            elif node.op in FOLDED and all(isinstance(self.known.get(name), np.ndarray) for name in node.inputs if name):
                self.known[node.outputs[0]] = folded(node, [self.constant(node, place) for place in range(len(node.inputs))])
            elif node.op in OPERATORS:
                self.known[node.outputs[0]] = OPERATORS[node.op](self, node)
            else:
                raise ModelError(f"the model has {node}, which is not supported; supported operators: QuantizeLinear, DequantizeLinear, {', '.join(OPERATORS)}")
        return self.build.network([self._output(name) for name in self.graph.outputs])

    def _quantise(self, node: OnnxNode) -> None:
        source, result = node.inputs[0], node.outputs[0]
        value = self.known.get(source)
        if isinstance(value, CallerComputed):
            self.known[result] = value
            return
        if isinstance(value, Padded):
            self._check_same(node, value.tensor)
            self.known[result] = value
            return
        if isinstance(value, (np.ndarray, Weights)):
            value = value.real if isinstance(value, Weights) else value
            scales, zeros, axis = self._scales(node)
            shape = [1] * value.ndim
            if scales.size > 1:
                shape[axis] = scales.size
            if zeros.dtype not in (np.int8, np.uint8):
                raise ModelError(f"the {node} quantises a constant to {zeros.dtype}; only int8 and uint8 are supported")
            low = 0 if zeros.dtype == np.uint8 else -128
            wide = np.rint(value.astype(np.float64) / scales.reshape(shape)) + zeros.astype(np.float64).reshape(shape)
            self.known[result] = np.asarray(np.clip(wide, low, low + 255)).astype(zeros.dtype)
            return
        quantisation, unsigned = self._parameters(node)
        if value is None and source in self.graph.inputs:
            self.known[source] = IntegerValue(self.build.input(source, self.graph.inputs[source][0], quantisation, unsigned))
        if isinstance(value, RealInput):
            self.known[source] = IntegerValue(self.build.reshaped(self._input(value.source, quantisation, unsigned), value.shape))
        made = self._made(node, source, result, quantisation)
        self.build.tensors[made] = replace(self.build.tensors[made], unsigned=unsigned)
        self.known[result] = IntegerValue(made)

    def _input(self, name: str, quantisation: Quantisation, unsigned: bool) -> str:
        """The integer tensor of an input that is reshaped before it is quantised. Raises ModelError if the input is quantised in two ways."""
        known = self.known.get(name)
        if known is None:
            known = self.known[name] = IntegerValue(self.build.input(name, self.graph.inputs[name][0], quantisation, unsigned))
        if not isinstance(known, IntegerValue) or self.build.quantisation(known.tensor) != quantisation:
            raise ModelError(f"the input {name} is quantised in two ways; quantise it once, before it is reshaped")
        return known.tensor

    def _made(self, node: OnnxNode, source: str, result: str, quantisation: Quantisation) -> str:
        """The integer tensor of a quantised value."""
        value = self.known.get(source)
        if isinstance(value, Pending):
            return value.quantised(self.build, result, quantisation)
        tensor = self.stored(node)
        if self.build.quantisation(tensor) == quantisation:
            return tensor
        return Function((tensor,), -math.inf, math.inf, lambda values: values).quantised(self.build, result, quantisation)

    def _dequantise(self, node: OnnxNode) -> None:
        source, result = node.inputs[0], node.outputs[0]
        value = self.known.get(source)
        if isinstance(value, np.ndarray):
            scales, zeros, axis = self._scales(node)
            self.known[result] = Weights(value, scales, axis, zeros)
            return
        if value is None and source in self.graph.inputs:
            shape, dtype = self.graph.inputs[source]
            if dtype not in ("int8", "uint8"):
                raise ModelError(f"the input {source} has dtype {dtype} and is dequantised; give int8 or uint8, or quantise a float32 input")
            quantisation, unsigned = self._parameters(node)
            self.known[source] = value = IntegerValue(self.build.input(source, shape, quantisation, unsigned))
        if not isinstance(value, (IntegerValue, Padded, CallerComputed)):
            raise ModelError(f"the {node} reads {source}, which is not quantised")
        if not isinstance(value, CallerComputed):
            self._check_same(node, value.tensor)
        self.known[result] = value

    def _check_same(self, node: OnnxNode, tensor: str) -> None:
        """Raises ModelError if the scale or zero point of the node differs from that of the tensor."""
        if self._parameters(node)[0] != self.build.quantisation(tensor):
            raise ModelError(f"the {node} has a different scale or zero point from the quantised values before it; give both the same")

    def _scales(self, node: OnnxNode) -> tuple[Doubles, Array, int]:
        scales = self.constant(node, 1).astype(np.float64).reshape(-1)
        if not scales.size or not np.all(np.isfinite(scales)) or np.any(scales < 0):
            raise ModelError(f"the {node} has the scale {scales.tolist()!r:.60}; scales have to be finite and not negative")
        has_zeros = len(node.inputs) > 2 and node.inputs[2]
        zeros = self.constant(node, 2).reshape(-1) if has_zeros else np.zeros(scales.shape, np.uint8 if node.op == "QuantizeLinear" else np.int32)
        if node.attributes.get("block_size", 0):
            raise ModelError(f"the {node} has block-wise scales; only one scale, or one for each channel, is supported")
        return scales, zeros, int(node.number("axis", 1))

    def _parameters(self, node: OnnxNode) -> tuple[Quantisation, bool]:
        """The quantisation of a tensor (one scale and one 8-bit zero point), and whether the tensor is unsigned in the model."""
        scales, zeros, _ = self._scales(node)
        if scales.size != 1 or zeros.size != 1 or zeros.dtype not in (np.int8, np.uint8) or scales[0] <= 0:
            what = f"{scales.size} scales and zero points of dtype {zeros.dtype}"
            raise ModelError(f"the {node} has {what}; tensors have to be int8 or uint8 with one scale: quantise with 8 bits, per tensor for activations")
        unsigned = zeros.dtype == np.uint8
        return Quantisation(float(scales[0]), int(zeros[0]) - (128 if unsigned else 0)), unsigned

    def _output(self, name: str) -> str:
        value = self.known.get(name)
        if isinstance(value, CallerComputed):
            self.build.left_out.append(value.operator)
            return value.tensor
        if isinstance(value, IntegerValue):
            return value.tensor
        raise ModelError(f"the output {name} is not quantised: quantise every result (QuantizeLinear, DequantizeLinear), including the last one")
