"""Text that identifies what a graph traced by Dynamo computes: equal for equal graphs in any process, and None if text cannot identify it.

The text is a cache key, so it must differ for graphs that differ. A function is identified by its name only if it is PyTorch's or Python's own: the name of
any other function does not say what it does.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence

import torch

PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
OWN = ("torch", "operator", "_operator", "math", "builtins")
NAMESPACES = ("aten", "prims", "prim")
_NUMBERS = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format, type(...))


class Unidentifiable(Exception):
    """Something that text cannot identify; never raised outside this package."""


def traced_text(graph: torch.fx.GraphModule) -> str | None:
    """All operators in order, with their arguments, and digests of the tensors that the graph itself holds; None if text cannot identify them."""
    try:
        return _graph(graph)
    except Unidentifiable:
        return None


def state_text() -> str | None:
    """PyTorch's global state that results and choices of kernels depend on. None if something intercepts all calls, so that a graph may mean anything."""
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        return None
    autocast = torch.is_autocast_enabled("cpu"), str(torch.get_autocast_dtype("cpu"))
    modes = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(), torch._C._get_mkldnn_enabled()
    return repr((torch.__version__, torch.get_num_threads(), str(torch.get_default_dtype()), autocast, modes))


def argument_text(given: object) -> str | None:
    """The properties of an argument, other than a weight, that a network depends on: for a tensor, everything but its values. None if text cannot tell."""
    if isinstance(given, torch.Tensor):
        dense = type(given) in PLAIN and given.layout is torch.strided and given.device.type == "cpu"
        flags = given.is_conj(), given.is_neg()
        return repr((tuple(given.shape), str(given.dtype), given.stride(), flags)) if dense else None
    try:
        return _value(given, {})
    except Unidentifiable:
        return None


def weight_text(tensor: torch.Tensor) -> str | None:
    """A tensor's properties and a digest of its values. Reading the values takes tenths of a second for hundreds of megabytes. None if text cannot tell."""
    if type(tensor) not in PLAIN or tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg():
        return None
    content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return repr((tuple(tensor.shape), str(tensor.dtype), tensor.stride(), hashlib.sha256(content.data).hexdigest()))


def _graph(graph: torch.fx.GraphModule) -> str:
    numbers: dict[torch.fx.Node, int] = {}
    lines = []
    for node in graph.graph.nodes:
        numbers[node] = len(numbers)
        told = "" if node.op in ("placeholder", "output") else _held(graph, str(node.target)) if node.op == "get_attr" else _target(node)
        arguments = "" if node.op == "placeholder" else f"{_value(node.args, numbers)} {_value(node.kwargs, numbers)}"
        lines.append(f"{node.op} {told} {arguments}")
    return "\n".join(lines)


def _held(graph: torch.fx.GraphModule, name: str) -> str:
    """A tensor or graph that the graph itself holds under a name."""
    found: object = graph
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, torch.fx.GraphModule):
        return f"{{{_graph(found)}}}"
    text = weight_text(found) if isinstance(found, torch.Tensor) else None
    if text is None:
        raise Unidentifiable(name)
    return text


def _target(node: torch.fx.Node) -> str:
    if node.op == "call_method":
        return str(node.target)
    target = node.target
    if node.op != "call_function":
        raise Unidentifiable(node.op)
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        name = str(target)
        if name.split(".")[0] in NAMESPACES:
            return name
        raise Unidentifiable(name)
    if isinstance(target, torch._ops.HigherOrderOperator) and type(target).__module__.split(".")[0] == "torch":
        return f"higher order {target._name}"
    return _name_of_function(target)


def _name_of_function(target: object) -> str:
    """The name under which a function is found in PyTorch or Python; without such a name it may not be theirs, and Unidentifiable is raised."""
    names = {str(getattr(target, one, "")) for one in ("__qualname__", "__name__")}
    module = str(getattr(target, "__module__", None) or "torch")
    if module.split(".")[0] in OWN:
        for place in (module, "torch", "torch._C._nn", "torch.Tensor"):
            for name in sorted(names - {""}):
                if _found(place, name) is target:
                    return f"{place}.{name}"
    raise Unidentifiable(str(target))


def _found(place: str, name: str) -> object:
    found: object = {"torch.Tensor": torch.Tensor, "torch._C._nn": torch._C._nn}.get(place) or sys.modules.get(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _value(value: object, numbers: Mapping[torch.fx.Node, int]) -> str:
    if isinstance(value, torch.fx.Node):
        return f"%{numbers[value]}"
    if isinstance(value, slice):
        return f"slice({_value((value.start, value.stop, value.step), numbers)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_value(one, numbers)}' for key, one in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{type(value).__name__}({', '.join(_value(one, numbers) for one in value)})"
    if type(value) in _NUMBERS:
        return f"{type(value).__name__} {value!r}"
    raise Unidentifiable(repr(type(value)))
