"""A PyTorch module as a `Graph`: `torch.export`, then one translation per ATen call.

A call without a translation stays a call of PyTorch (`torch` node), and `report` gets one line that says which and why. Calls whose arguments are
all constants are made here, once: their results are constants too.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from ansor import te
from ansor.errors import DeclarationError, ModelError
from ansor.graph.aten import elementwise as _elementwise  # noqa: F401  # these three fill the table
from ansor.graph.aten import heavy as _heavy  # noqa: F401
from ansor.graph.aten import layout as _layout  # noqa: F401
from ansor.graph.aten.translation import TABLE, AtenCall, Builder, Ref, Unsupported, check_values, dtype_name
from ansor.graph.declare import declare
from ansor.graph.ir import Array, Graph, Node, Value
from ansor.graph.torch_call import Slot, TorchCall

Report = Callable[[str], None]
ExampleInputs = torch.Tensor | Sequence[object] | Mapping[str, object]


@dataclass(frozen=True)
class Fixed:
    """A leaf of the call's arguments or results that is no array: a number, text or None, fixed when the model was exported."""

    value: object


@dataclass(frozen=True)
class Signature:
    """How a call's arguments and results are nested, and what each leaf is: an input by name, an output by its place in the graph's outputs, or fixed."""

    input_tree: pytree.TreeSpec
    input_leaves: tuple[str | Fixed, ...]
    output_tree: pytree.TreeSpec
    output_leaves: tuple[int | Fixed, ...]


@dataclass(frozen=True)
class TorchModel:
    """What was read of a module: its graph, and how it is called. `torch_calls`: operator -> why it stays in PyTorch."""

    graph: Graph
    signature: Signature
    torch_calls: Mapping[str, str]


def from_torch(model: object, example_inputs: ExampleInputs = (), report: Report | None = None) -> TorchModel:
    """Reads an `nn.Module`, another callable of tensors, or an `ExportedProgram`.

    `example_inputs`: a tensor, a sequence of positional arguments or a mapping of keyword arguments; shapes and dtypes are fixed by them.
    The module is read as in evaluation mode, and left as it was. Raises ModelError where it cannot be exported, or changes state as it runs.
    """
    say = report or (lambda line: None)
    program = model if isinstance(model, ExportedProgram) else _exported(model, example_inputs, say)
    with _known_warnings_silenced():
        core = program.run_decompositions({})
    return _Reader(core).read(say)


@contextmanager
def _known_warnings_silenced() -> Iterator[None]:
    """PyTorch's own export code uses its own deprecated names; the user can do nothing about these."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*is deprecated", category=DeprecationWarning, module="torch\\..*")
        warnings.filterwarnings("ignore", message="The tensor attributes? .* assigned during export", category=UserWarning)  # nn.LSTM and its kin
        yield


class _Function(torch.nn.Module):
    """A module around a plain function, for torch.export."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: object, **kwargs: object) -> object:
        return self._function(*args, **kwargs)


def _exported(model: object, example_inputs: ExampleInputs, say: Report) -> ExportedProgram:
    if not callable(model):
        raise ModelError(f"asked to read a {type(model).__name__} as a PyTorch model; give a torch.nn.Module, a function of tensors or an ExportedProgram")
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    args, kwargs = split_inputs(example_inputs)
    training = [part for part in module.modules() if part.training]
    if isinstance(model, torch.nn.Module) and model.training:
        say("the model is in training mode; it is read as in evaluation mode (model.eval())")
    try:
        for part in training:
            part.training = False
        with torch.no_grad(), _known_warnings_silenced():
            return torch.export.export(module, args, kwargs, strict=False)
    except Exception as error:  # the model's own code runs here, so anything may come
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"torch.export cannot read {type(model).__name__}: {reason}; torch.export.export(model, args, strict=False) has to accept the model"
        ) from error
    finally:
        for part in training:
            part.training = True


def split_inputs(example_inputs: ExampleInputs) -> tuple[tuple[object, ...], dict[str, object]]:
    """Positional and keyword arguments from any form of `example_inputs`."""
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    return tuple(example_inputs), {}


class _Reader:
    """Walks one exported program. Mutable, and private to one call of `from_torch`."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.build = Builder()
        self.arrays: dict[str, str] = {}  # fx node -> array of the graph
        self.tuples: dict[str, list[str | None]] = {}  # fx node of several results -> arrays
        self.pending: dict[str, TorchCall] = {}  # fx node of several results -> the call that stays in PyTorch
        self.pending_inputs: dict[str, list[str]] = {}
        self.reasons: dict[str, str] = {}  # site -> why it stays in PyTorch

    def read(self, say: Report) -> TorchModel:
        inputs = self._read_inputs()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._read_call(node)
            elif node.op == "get_attr":
                self._read_attribute(node)
        outputs, names = self._read_outputs()
        graph = self.build.graph(names)
        torch_calls = self._report(graph, say)
        spec = self.program.call_spec
        assert spec.in_spec is not None and spec.out_spec is not None
        return TorchModel(graph, Signature(spec.in_spec, inputs, spec.out_spec, outputs), torch_calls)

    def _read_inputs(self) -> tuple[str | Fixed, ...]:
        leaves: list[str | Fixed] = []
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes if node.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, ConstantArgument):
                leaves.append(Fixed(spec.arg.value))
            elif spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
                self.arrays[spec.arg.name] = self.build.input(spec.arg.name, _value(values[spec.arg.name], spec.arg.name))
                leaves.append(spec.arg.name)
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                assert spec.target is not None
                held = self.program.state_dict if spec.target in self.program.state_dict else self.program.constants
                self._constant(spec.arg.name, held[spec.target])
            else:
                raise ModelError(f"the model takes an argument of kind {spec.kind.name} ({spec.arg}); only tensors and fixed Python values are understood")
        return tuple(leaves)

    def _constant(self, name: str, tensor: object) -> None:
        assert isinstance(tensor, torch.Tensor)
        self.arrays[name] = self.build.constant(name, _array(tensor, name))

    def _read_attribute(self, node: torch.fx.Node) -> None:
        held = getattr(self.program.graph_module, str(node.target), None)
        if not isinstance(held, torch.Tensor):
            raise ModelError(f"the model has control flow or a nested graph ({node.target}), which is not understood; export a straight-line model")
        self._constant(node.name, held)

    def _read_outputs(self) -> tuple[tuple[int | Fixed, ...], list[str]]:
        leaves: list[int | Fixed] = []
        names: list[str] = []
        for spec in self.program.graph_signature.output_specs:
            if spec.kind is not OutputKind.USER_OUTPUT:
                raise ModelError(f"the model changes its own state or its inputs as it runs ({spec.target}); call model.eval(), or make that part functional")
            if isinstance(spec.arg, ConstantArgument):
                leaves.append(Fixed(spec.arg.value))
            else:
                leaves.append(len(names))
                names.append(self.arrays[spec.arg.name])
        return tuple(leaves), names

    def _read_call(self, node: torch.fx.Node) -> None:
        if node.target is operator.getitem:
            self._read_item(node)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise ModelError(f"the model calls {node.target}, which is no plain operator (control flow?); export a straight-line model")
        results = _results(node)
        if not results:
            return  # assertions and the like
        if self._known(node) and torch.Tag.nondeterministic_seeded not in node.target.tags:
            self._make_constant(node)
            return
        call = AtenCall(str(node.target), node.name, self._bound(node), tuple(results))
        try:
            translation = TABLE.get(call.operator)
            if translation is None:
                raise Unsupported("it has no translation into kernels")
            given = [self.build.values[name] for name in self._names(node)]
            check_values([*results[:1], *given])  # of several results the others may be unused
            before = len(self.build.nodes)
            made = translation(call, self.build)
            self._check_declarable(list(self.build.nodes.values())[before:])
        except Unsupported as reason:
            self._leave_in_torch(node, results, str(reason))
            return
        if isinstance(made, list):
            self.tuples[node.name] = made
        else:
            assert self.build.shape(made) == results[0].shape and self.build.dtype(made) == results[0].dtype, (str(call), self.build.values[made])
            self.arrays[node.name] = made

    def _check_declarable(self, nodes: Sequence[Node]) -> None:
        """Unsupported if some node has no declaration, for its dtype, say."""
        for node in nodes:
            if node.op in ("reshape", "batch_norm"):
                continue
            values = [self.build.values[name] for name in node.inputs]
            try:
                declare(node, [te.placeholder(value.shape, value.dtype, f"operand{index}") for index, value in enumerate(values)], node.op)
            except DeclarationError as error:
                raise Unsupported(str(error)) from error

    def _known(self, node: torch.fx.Node) -> bool:
        return all(one.name in self.arrays and self.arrays[one.name] in self.build.constants for one in node.all_input_nodes)

    def _names(self, node: torch.fx.Node) -> list[str]:
        return [self._array_of(one) for one in node.all_input_nodes]

    def _array_of(self, node: torch.fx.Node) -> str:
        found = self.arrays.get(node.name)
        if found is None:
            raise ModelError(f"the model hands all results of {node.target} to one call, which is not understood")
        return found

    def _make_constant(self, node: torch.fx.Node) -> None:
        def tensor(argument: torch.fx.Node) -> torch.Tensor:
            return torch.from_numpy(self.build.constants[self.arrays[argument.name]])

        assert callable(node.target)
        with torch.no_grad():
            made = node.target(*(_mapped(one, tensor) for one in node.args), **{key: _mapped(one, tensor) for key, one in node.kwargs.items()})
        if isinstance(made, torch.Tensor):
            self._constant(node.name, made)
            return
        self.tuples[node.name] = [
            self.build.constant(f"{node.name}_{i}", _array(one, node.name)) if isinstance(one, torch.Tensor) else None for i, one in enumerate(made)
        ]

    def _bound(self, node: torch.fx.Node) -> dict[str, object]:
        """Arguments by the names of the operator's schema, defaults filled in."""
        assert isinstance(node.target, torch._ops.OpOverload)
        bound: dict[str, object] = {}
        for index, argument in enumerate(node.target._schema.arguments):
            if index < len(node.args):
                value: object = node.args[index]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            else:
                value = argument.default_value if argument.has_default_value() else None
            bound[argument.name] = _mapped(value, lambda one: Ref(self._array_of(one)))
        return bound

    def _read_item(self, node: torch.fx.Node) -> None:
        source, index = node.args
        assert isinstance(source, torch.fx.Node) and isinstance(index, int)
        if source.name in self.tuples:
            made = self.tuples[source.name][index]
            if made is not None:
                self.arrays[node.name] = made
                return
            self._leave_in_torch(source, _results(source), f"its result number {index} is used, which kernels do not make")
            del self.tuples[source.name]
        call = self.pending[source.name]
        value = _results(source)[index]
        self.arrays[node.name] = self.build.add("torch", self.pending_inputs[source.name], value.shape, value.dtype, node.name, call=call, index=index)

    def _leave_in_torch(self, node: torch.fx.Node, results: Sequence[Value], reason: str) -> None:
        names: list[str] = []

        def slot(one: torch.fx.Node) -> Slot:
            name = self._array_of(one)
            if name not in names:
                names.append(name)
            return Slot(names.index(name))

        arguments = tuple(_frozen(_mapped(one, slot)) for one in node.args)
        keywords = tuple((key, _frozen(_mapped(value, slot))) for key, value in node.kwargs.items())
        call = TorchCall(node.name, str(node.target), arguments, keywords)
        self.reasons[node.name] = reason
        self.pending[node.name], self.pending_inputs[node.name] = call, names
        if isinstance(node.meta["val"], torch.Tensor):
            self.arrays[node.name] = self.build.add("torch", names, results[0].shape, results[0].dtype, node.name, call=call, index=0)

    def _report(self, graph: Graph, say: Report) -> dict[str, str]:
        sites: dict[tuple[str, str], set[str]] = {}
        for node in graph:
            if node.op == "torch":
                call = node.attributes["call"]
                assert isinstance(call, TorchCall)
                sites.setdefault((call.operator, self.reasons[call.site]), set()).add(call.site)
        for (name, reason), calls in sites.items():
            say(f"{name} runs in PyTorch{f' ({len(calls)} calls)' if len(calls) > 1 else ''}: {reason}")
        return {name: reason for name, reason in sites}


def _results(node: torch.fx.Node) -> list[Value]:
    meta = node.meta.get("val")
    if isinstance(meta, torch.Tensor):
        return [_value(meta, node.name)]
    if isinstance(meta, (tuple, list)):
        return [_value(one, node.name) if isinstance(one, torch.Tensor) else Value((), "none") for one in meta]
    if meta is None:
        return []
    raise ModelError(f"the model computes a {type(meta).__name__} from its inputs ({node.target}); only tensors of fixed shape are understood")


def _value(tensor: object, name: str) -> Value:
    assert isinstance(tensor, torch.Tensor)
    shape = tuple(tensor.shape)
    if not all(isinstance(extent, int) for extent in shape):
        raise ModelError(f"{name} has the shape {shape}, which is not fixed; export without dynamic shapes")
    return Value(shape, _supported(tensor.dtype, name))


def _supported(dtype: torch.dtype, name: str) -> str:
    if dtype in (torch.bfloat16, torch.complex32) or dtype.is_complex:
        raise ModelError(f"{name} has dtype {dtype_name(dtype)}, which is not understood; convert the model, for example with model.float()")
    return dtype_name(dtype)


def _array(tensor: torch.Tensor, name: str) -> Array:
    """A copy: what the user does to the module later changes nothing."""
    _supported(tensor.dtype, name)
    copied: Array = tensor.detach().cpu().contiguous().numpy().copy()
    return copied


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _mapped(argument: object, function: Callable[[torch.fx.Node], object]) -> object:
    """The argument with every node in it, also in lists, replaced."""
    if isinstance(argument, torch.fx.Node):
        return function(argument)
    return [_mapped(one, function) for one in argument] if isinstance(argument, (list, tuple)) else argument
