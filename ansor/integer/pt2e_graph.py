"""Translates a `torch.export` program with quantized_decomposed operators to a graph of ONNX operators with QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from ansor.errors import ModelError
from ansor.integer.onnx_file import Array, OnnxGraph, OnnxNode
from ansor.integer.pt2e_operators import TRANSLATIONS, Call

DTYPES = {torch.int8: np.int8, torch.uint8: np.uint8}
QUANTISE, DEQUANTISE = "quantized_decomposed.quantize_per_", "quantized_decomposed.dequantize_per_"
TRANSPOSED = ("aten.permute.default", "aten.t.default", "aten.transpose.int")

VIEWS = ("aten.flatten.using_ints", "aten.view.default", "aten.reshape.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default",
         "aten.contiguous.default", "aten.dropout.default")  # fmt: skip
"""Calls whose results may share memory with their input."""


def graph_of(program: ExportedProgram, name: str) -> OnnxGraph:
    """The graph of a program. Raises ModelError for calls that integer networks do not support, for inputs that are not tensors of fixed shapes, and for
    outputs that are not tensors."""
    return _Translator(program, name).graph()


class _Translator:
    """Walks one program. Mutable, and private to one call of `graph_of`."""

    def __init__(self, program: ExportedProgram, name: str) -> None:
        self.program, self.name = program, name
        self.inputs: dict[str, tuple[tuple[int, ...], str]] = {}
        self.held: dict[str, torch.Tensor] = {}  # constants
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, Array] = {}
        self.weights: dict[str, tuple[torch.Tensor, Call]] = {}  # dequantised constants: stored values, and the call that dequantises them
        self.stored: dict[str, str] = {}  # call that quantises -> name of its result

    def graph(self) -> OnnxGraph:
        self._read_inputs()
        for node in self.program.graph.nodes:
            if node.op == "get_attr":
                self.held[node.name] = _tensor(getattr(self.program.graph_module, str(node.target), None), node)
            elif node.op == "call_function" and node.meta.get("val") is not None:
                self._call(node)
        for name, tensor in self.held.items():
            self.constants.setdefault(name, tensor.numpy())
        return OnnxGraph(self.name, self.inputs, self._outputs(), self.constants, tuple(self.nodes))

    def _read_inputs(self) -> None:
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes if node.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            if not isinstance(spec.arg, TensorArgument):
                raise ModelError(f"the model takes the argument {spec.arg}, which is not a tensor; export it with tensor arguments only")
            if spec.kind is InputKind.USER_INPUT:
                value = values[spec.arg.name]
                if not all(isinstance(extent, int) for extent in value.shape):
                    raise ModelError(f"the input {spec.arg.name} has the shape {list(value.shape)}, which is not fixed; export without dynamic shapes")
                self.inputs[spec.arg.name] = tuple(value.shape), str(value.dtype).removeprefix("torch.")
            elif spec.target in self.program.state_dict or spec.target in self.program.constants:
                held = self.program.state_dict if spec.target in self.program.state_dict else self.program.constants
                self.held[spec.arg.name] = _tensor(held[spec.target], spec.arg.name)
            else:
                raise ModelError(f"the model takes an argument of kind {spec.kind.name} ({spec.arg.name}); only tensors are supported")

    def _outputs(self) -> tuple[str, ...]:
        for spec in self.program.graph_signature.output_specs:
            if spec.kind is not OutputKind.USER_OUTPUT or not isinstance(spec.arg, TensorArgument):
                raise ModelError(f"the model has the output {spec.arg} of kind {spec.kind.name}; only tensors are supported: leave it out")
        return tuple(self.stored.get(spec.arg.name, spec.arg.name) for spec in self.program.graph_signature.output_specs)

    def _call(self, node: torch.fx.Node) -> None:
        call = Call(node)
        _check_change(node, call)
        if call.operator.startswith(DEQUANTISE):
            self._dequantise(call)
        elif all(one.name in self.held for one in node.all_input_nodes) and not _is_random(node):
            self.held[node.name] = self._computed(node)
        elif call.operator.startswith(QUANTISE):
            self._quantise(call)
        elif call.operator in TRANSPOSED and call.source in self.weights:
            self._transpose(call)
        elif call.operator in TRANSLATIONS:
            op, inputs, attributes = TRANSLATIONS[call.operator](call)
            self._add(op, [self._operand(one, call) for one in inputs], node.name, str(call), **attributes)
        else:
            raise ModelError(f"the model has {call}, which is not supported in int8 networks; supported operators: {', '.join(TRANSLATIONS)}")

    def _operand(self, given: object, call: Call) -> str:
        """The name of an operand: a node, None for an omitted one, or an array, which becomes a constant."""
        if given is None:
            return ""
        if isinstance(given, torch.fx.Node):
            return self.stored.get(given.name, given.name)
        if not isinstance(given, np.ndarray):
            raise ModelError(f"the {call} has the operand {given!r:.60}, which has to be a tensor")
        return self._constant(f"{call.name}_operand", given)

    def _add(self, op: str, inputs: Sequence[str], output: str, label: str, **attributes: object) -> None:
        self.nodes.append(OnnxNode(op, tuple(inputs), (output,), attributes, label.removesuffix(f" {output}")))

    def _constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def _computed(self, node: torch.fx.Node) -> torch.Tensor:
        """The result of a call on constants."""
        assert callable(node.target)
        arguments = torch.fx.map_arg((node.args, node.kwargs), lambda one: self.held[one.name])
        with torch.no_grad():
            return _tensor(node.target(*arguments[0], **arguments[1]), node)

    def _parameters(self, call: Call) -> tuple[str, str, tuple[int, int], np.dtype[Any]]:
        """The names of the scales and zero points of a call that quantises or dequantises, its limits, and its dtype."""
        dtype = call.arguments["dtype"]
        if dtype not in DTYPES:
            raise ModelError(f"the {call} has dtype {dtype}; tensors have to be int8 or uint8: quantise with 8 bits")
        whole = np.dtype(DTYPES[dtype])
        given = {"zero_point": call.arguments.get("zero_points"), "scale": call.arguments.get("scales"), **call.arguments}
        scales, zeros, low, high = (self._numbers(given[key], call) for key in ("scale", "zero_point", "quant_min", "quant_max"))
        ends = np.iinfo(whole)
        if zeros.min() < ends.min or zeros.max() > ends.max:
            raise ModelError(f"the {call} has the zero point {zeros.min():g}, which is outside the range of {whole}; quantise with {whole} zero points")
        names = self._constant(f"{call.name}_scale", scales), self._constant(f"{call.name}_zero_point", zeros.astype(whole))
        return *names, (max(int(low[0]), int(ends.min)), min(int(high[0]), int(ends.max))), whole

    def _numbers(self, given: object, call: Call) -> Array:
        if isinstance(given, torch.fx.Node):
            if given.name not in self.held:
                raise ModelError(f"the {call} has scales that are computed from its input ({given.name}); quantise statically, with a calibration")
            given = self.held[given.name].numpy()
        return np.asarray(given, np.float64).reshape(-1)

    def _quantise(self, call: Call) -> None:
        """Add a QuantizeLinear, after a Clip if the limits are narrower than those of the dtype."""
        scale, zero, (low, high), whole = self._parameters(call)
        source = call.source
        if (low, high) != (np.iinfo(whole).min, np.iinfo(whole).max):
            if source in self.inputs:
                self._add("QuantizeLinear", [source, scale, zero], f"{call.name}_wide", str(call))
                self._add("DequantizeLinear", [f"{call.name}_wide", scale, zero], source := f"{call.name}_real", str(call))
            step, middle = float(self.constants[scale][0]), int(self.constants[zero][0])
            self._add("Clip", [source], f"{call.name}_clip", str(call), min=(low - middle) * step, max=(high - middle) * step)
            source = f"{call.name}_clip"
        name = f"{call.source}_int8"
        self.stored[call.name] = name = call.name if name in self.stored.values() else name
        self._add("QuantizeLinear", [source, scale, zero], name, str(call))

    def _dequantise(self, call: Call) -> None:
        scale, zero, _, _ = self._parameters(call)
        if call.source in self.held:
            self.weights[call.name] = self.held[call.source], call
        self._add("DequantizeLinear", [self.stored.get(call.source, call.source), scale, zero], call.name, str(call), axis=int(call.arguments.get("axis", 0)))

    def _transpose(self, call: Call) -> None:
        """Replace a transpose of dequantised weights by a DequantizeLinear of the transposed weights."""
        values, before = self.weights[call.source]
        if values.ndim != 2:
            raise ModelError(f"the {call} transposes weights of shape {list(values.shape)}; only 2-dimensional weights of dense layers are supported")
        order = call.arguments.get("dims", [1, 0]) if call.operator == "aten.permute.default" else [1, 0]
        turned = [one % 2 for one in order] == [1, 0]
        stored = self._constant(f"{call.name}_values", np.ascontiguousarray(values.numpy().T if turned else values.numpy()))
        axis = int(before.arguments.get("axis", 0)) % 2
        inputs = [stored, f"{before.name}_scale", f"{before.name}_zero_point"]
        self._add("DequantizeLinear", inputs, call.name, str(call), axis=1 - axis if turned else axis)


def _check_change(node: torch.fx.Node, call: Call) -> None:
    """Raises ModelError if a call changes a tensor in place and a later node reads it: in the graph, that node would read the old value."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable or not node.all_input_nodes:
        return
    source = node.all_input_nodes[0]
    while str(source.target) in VIEWS and source.all_input_nodes:
        source = source.all_input_nodes[0]
    if _is_read_after(node, source):
        raise ModelError(f"the {call} changes {call.source}, which is read later; export a model that does not compute in place there")


def _is_read_after(node: torch.fx.Node, source: torch.fx.Node) -> bool:
    """Whether a tensor, or one that shares its memory, is read after a node."""
    others = [one for one in source.users if one is not node]
    return any(node < one or str(one.target) in VIEWS and _is_read_after(node, one) for one in others)


def _is_random(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _tensor(given: object, what: object) -> torch.Tensor:
    if not isinstance(given, torch.Tensor):
        raise ModelError(f"the model has {what}, a {type(given).__name__} where a tensor is expected; export a straight-line model")
    return given.detach()
