"""A float ONNX model as a PyTorch module, which the rest of the package treats like any other.

`forward` runs the nodes. Values known in advance (constants, shapes, and what is computed from them) are arrays, which are computed outside of the network;
all others are tensors.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from ansor.errors import ModelError
from ansor.onnx import elementwise as _elementwise  # noqa: F401  # these fill the table
from ansor.onnx import layouts as _layouts  # noqa: F401
from ansor.onnx import reductions as _reductions  # noqa: F401
from ansor.onnx import resizing as _resizing  # noqa: F401
from ansor.onnx import windows as _windows  # noqa: F401
from ansor.onnx.call import TABLE, Call, Operand
from ansor.onnx.folding import folded
from ansor.onnx.model_file import Array, Input, Model, Node, read_model


class OnnxModule(torch.nn.Module):
    """Takes the model's inputs in order, or by name if the names are valid in Python. Returns its output, or a tuple of them."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        unknown = sorted({node.op for node in model.nodes if node.op not in TABLE and not _is_folded(node)})
        if unknown:
            raise ModelError(f"the model has {', '.join(unknown)}, which is not supported in float networks; remove it, or run it outside of the network")
        self._model = model
        self._known: dict[str, Array] = dict(model.constants)
        self._buffers_of: dict[str, str] = {}
        for place, (name, array) in enumerate(model.constants.items()):
            if array.ndim and array.dtype.kind == "f":
                self.register_buffer(f"constant_{place}", torch.from_numpy(np.array(array, copy=True)))
                self._buffers_of[name] = f"constant_{place}"

        names = [one.name for one in model.inputs]

        def forward(*args: torch.Tensor, **kwargs: torch.Tensor) -> object:
            return self._run((*args, *(kwargs[name] for name in names[len(args) :])))

        if all(map(_is_of_python, names)):
            wanted = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
            forward.__signature__ = inspect.Signature(wanted)  # type: ignore[attr-defined]  # read by inspect
        self.forward = forward

    def _run(self, tensors: Sequence[torch.Tensor]) -> object:
        values: dict[str, Operand] = dict(self._known)
        values.update(zip((one.name for one in self._model.inputs), tensors, strict=True))
        for node in self._model.nodes:
            made = self._made(node, [values[name] if name else None for name in node.inputs])
            values.update((name, one) for name, one in zip(node.outputs, made, strict=False) if name)
        outputs = tuple(_as_tensor(values[name]) for name in self._model.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _made(self, node: Node, operands: list[Operand]) -> tuple[Operand, ...]:
        arrays = [one for one in operands if not isinstance(one, torch.Tensor)]
        if len(arrays) == len(operands) and node.op not in ("Shape", "Size", "Dropout"):
            return folded(node, arrays, self._model.opset)
        if node.op == "NonZero":
            raise ModelError(f"the {node} of the model has a shape that depends on values, but networks have fixed shapes; remove it, or run it elsewhere")
        if node.op not in TABLE:
            name = next(name for name, one in zip(node.inputs, operands, strict=True) if isinstance(one, torch.Tensor))
            raise ModelError(f"the {node} reads {name}, which has to be a constant: shapes of networks are fixed")
        weights = [getattr(self, self._buffers_of[name]) if name in self._buffers_of and node.op not in OF_ARRAYS else one
                   for name, one in zip(node.inputs, operands, strict=True)]
        made = TABLE[node.op](Call(node, weights, self._model.opset))
        return made if isinstance(made, tuple) else (made,)


OF_ARRAYS = ("Resize", "Clip", "Pad", "Pow")
"""Operators that take arrays of floats as well."""


def _is_of_python(name: str) -> bool:
    """Whether a Python method can have a parameter with this name."""
    return name.isidentifier() and not keyword.iskeyword(name) and name != "self"


def _is_folded(node: Node) -> bool:
    """Whether a node makes a constant."""
    return node.op in ("Constant", "ConstantOfShape", "Range", "NonZero")


def _as_tensor(value: Operand) -> torch.Tensor:
    assert value is not None
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value, copy=True))


def read_onnx(path: str | Path, example_inputs: object = ()) -> tuple[OnnxModule, object]:
    """The model of a file, and inputs to compile it for: the given ones, or zeros with the shapes in the file, where an open batch becomes 1.

    Inputs may be given by name, in any order. Raises ModelError for a file that cannot be read, for int8 models, for wrong input names, and for open shapes
    without inputs.
    """
    model = read_model(path)
    if any(node.op == "QuantizeLinear" for node in model.nodes):
        raise ModelError(f"asked to compile {path} as a float network, but it is quantised (QDQ); use ansor.compile_int8")
    given = not isinstance(example_inputs, (tuple, list, dict)) or len(example_inputs) > 0
    module = OnnxModule(model).eval()
    if isinstance(example_inputs, Mapping) and given:
        return module, _in_order(model, example_inputs)
    return module, example_inputs if given else tuple(_zeros(one) for one in model.inputs)


def _in_order(model: Model, given: Mapping[str, object]) -> tuple[object, ...]:
    names = [one.name for one in model.inputs]
    if set(given) != set(names):
        raise ModelError(f"the example inputs are named {', '.join(map(str, given))}, but the model's are {', '.join(names)}; use the model's names")
    return tuple(given[name] for name in names)


def _zeros(one: Input) -> torch.Tensor:
    shape = [1 if axis == 0 and extent is None else extent for axis, extent in enumerate(one.shape)]
    if any(extent is None for extent in shape):
        raise ModelError(f"the input {one.name} has the shape {list(one.shape)} with open extents; give example inputs")
    try:
        return torch.from_numpy(np.zeros([int(extent or 0) for extent in shape], dtype=one.dtype))
    except (MemoryError, TypeError, ValueError) as error:
        raise ModelError(f"the input {one.name} is {one.dtype} of the shape {list(one.shape)}, which no tensor can have: {error}; export it again") from error
