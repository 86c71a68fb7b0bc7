"""Reads a PyTorch module into a `Graph`: exports it with `torch.export`, then translates its ATen calls one by one.

A call without a translation stays in PyTorch, as a `torch` node; one warning for each cause names the operators. A call whose arguments are all constants is
evaluated here, once, and becomes a constant too.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch._dynamo.convert_frame import compile_lock
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from ansor import te
from ansor.errors import DeclarationError, ModelError
from ansor.graph.aten import elementwise as _elementwise  # noqa: F401  # these fill the table
from ansor.graph.aten import functions as _functions  # noqa: F401
from ansor.graph.aten import heavy as _heavy  # noqa: F401
from ansor.graph.aten import indexing as _indexing  # noqa: F401
from ansor.graph.aten import layout as _layout  # noqa: F401
from ansor.graph.aten import reductions as _reductions  # noqa: F401
from ansor.graph.aten.quantised import OF_CONSTANTS, integers_of
from ansor.graph.aten.translation import NO_TRANSLATION, TABLE, AtenCall, Builder, Ref, Result, StaysWhole, Unsupported, check_values, is_of_kernels, no_dtype
from ansor.graph.declare import declare
from ansor.graph.decomposition import parts_of
from ansor.graph.dtypes import array_of, in_memory, value_of, view_of
from ansor.graph.export import CallArguments, ExampleInputs, Exported, Report, exported, known_warnings_silenced, logs_silenced
from ansor.graph.in_place import OF_MEMORY, is_composed, only_reads, unseen_write, updates_statistics
from ansor.graph.ir import Graph, Node, Value
from ansor.graph.torch_call import Held, Slot, TorchCall
from ansor.graph.weights import WatchedWeights
from ansor.support.bfloat16 import tensor_of
from ansor.support.garbage import uncollected
from ansor.support.notices import warn
from ansor.support.text import first_line, listed

TAKES_EMPTY = ("aten.cat.default", "aten.concat.default")  # their translation leaves out operands without elements
MOST_PARTS_OF_PARTS = 4
"""The most levels at which calls are decomposed."""


@dataclass(frozen=True)
class Fixed:
    """A leaf of the call's arguments or results that is not an array: a number, text or None, fixed when the model was exported."""

    value: object


@dataclass(frozen=True)
class Signature:
    """How a call's arguments and results are nested, and what each leaf is: the name of an input, an index into the graph's outputs, or a fixed value.

    `parameters`: those of the model itself, if known; `opened`: whether the trees contain opened objects (`ansor.graph.opened`).
    """

    input_tree: pytree.TreeSpec
    input_leaves: tuple[str | Fixed, ...]
    output_tree: pytree.TreeSpec
    output_leaves: tuple[int | Fixed, ...]
    parameters: inspect.Signature | None = None
    opened: bool = False


@dataclass(frozen=True)
class TorchModel:
    """A module that was read: its graph, and how it is called. `torch_calls`: operator -> why it stays in PyTorch; the other fields as in `ExtractedGraph`."""

    graph: Graph
    signature: Signature
    torch_calls: Mapping[str, str]
    examples: CallArguments | None = None
    watched: WatchedWeights | None = None


def from_torch(model: object, example_inputs: ExampleInputs = (), report: Report | None = None, *, borrowed: bool = False) -> TorchModel:
    """Read an `nn.Module`, another callable of tensors, or an `ExportedProgram`.

    `example_inputs`: a tensor, a sequence of positional arguments or a mapping of keyword arguments; they fix the shapes and dtypes.
    The module is read in evaluation mode, and left unchanged. `report`: gets what the user should know, one line for each cause; by default it is a warning.
    `borrowed`: constants may share memory with the module's weights; for callers that read the constants before anything writes to the weights.
    Raises ModelError if the model cannot be exported, or changes state as it runs.
    """
    say = report or warn
    with compile_lock, uncollected():  # PyTorch patches its own modules while it traces: one thread at a time, and no torch.compile meanwhile
        made = exported(model, example_inputs, say)
        found = _as_exported(made, say, borrowed)
        if found is not None:
            return found
        core = _as_aten(made.program)
    return _Reader(core, borrowed=borrowed).read(made, say)


def _as_exported(made: Exported, say: Report, borrowed: bool) -> TorchModel | None:
    """Read the program without PyTorch's rewrite, which may take longer than the export; None if a call may write to a tensor, or needs the rewrite."""
    calls = [node for node in made.program.graph.nodes if node.op not in ("placeholder", "output")]
    if not all(node.target is operator.getitem or only_reads(node) for node in calls):
        return None
    try:
        return _Reader(made.program, rewritten=False, borrowed=borrowed).read(made, say)
    except (Unsupported, ModelError):
        return None


def _as_aten(program: ExportedProgram) -> ExportedProgram:
    """Rewrite the program so that no call writes to a tensor. Raises ModelError for operators whose shapes PyTorch does not know, and for writes that the
    rewrite would lose."""
    if behind := unseen_write(program):
        raise ModelError(f"the model writes in place to a result of {behind}, or to its operand: both share memory, but torch.export treats them as copies; "
                         "call .clone() on the result first")  # fmt: skip
    try:
        with known_warnings_silenced(), logs_silenced():
            written: ExportedProgram = program.run_decompositions({})
            return written
    except Exception as error:
        raise ModelError(
            f"torch.export exports the model, but cannot rewrite it without side effects: {first_line(error)}; remove that operator from the model"
        ) from error


class _Reader:
    """Walks one exported program. Mutable, and private to one call of `from_torch`."""

    def __init__(self, program: ExportedProgram, build: Builder | None = None, within: tuple[object, ...] = (), *,
                 rewritten: bool = True, borrowed: bool = False) -> None:  # fmt: skip
        """within: the operators whose decomposition is read; nothing in it may stay in PyTorch. rewritten: no call writes to its arguments; otherwise, calls of
        composite operators without a translation may. borrowed: see `from_torch`."""
        self.program = program
        self.build = build or Builder()
        self.within = within
        self.rewritten = rewritten
        self.borrowed = borrowed
        self.read_names = {node.name for node in program.graph.nodes if node.users}
        self.arrays: dict[str, str] = {}  # fx node -> array of the graph
        self.held: dict[str, Held] = {}  # fx node -> constant that NumPy cannot hold
        self.tuples: dict[str, list[str | Held | None]] = {}  # fx node of several results -> arrays
        self.lists: dict[str, tuple[torch.fx.Node, int]] = {}  # fx node that is a list among several results -> the call, and how many results precede it
        self.pending: dict[str, TorchCall] = {}  # fx node of several results -> the call that stays in PyTorch
        self.pending_inputs: dict[str, list[str]] = {}
        self.declarable: set[str] = set()  # nodes known to have a declaration, by everything that it depends on
        self.reasons: dict[str, str] = {}  # site -> why it stays in PyTorch

    def read(self, made: Exported, say: Report) -> TorchModel:
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
        weights = [made.own_name(one.target) for one in self.program.graph_signature.input_specs if one.target is not None and one.arg.name in self.read_names]
        watched = WatchedWeights(made.module, weights) if made.module is not None else None
        signature = Signature(spec.in_spec, inputs, spec.out_spec, outputs, made.parameters, made.opened)
        return TorchModel(graph, signature, torch_calls, made.examples, watched)

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
                raise ModelError(f"the model takes an argument of kind {spec.kind.name} ({spec.arg}); only tensors and fixed Python values are supported")
        return tuple(leaves)

    def _constant(self, name: str, tensor: object) -> None:
        assert isinstance(tensor, torch.Tensor)
        kept = self._kept(name, tensor)
        if isinstance(kept, Held):
            self.held[name] = kept
        else:
            self.arrays[name] = kept

    def _kept(self, hint: str, tensor: torch.Tensor) -> str | Held:
        """A constant: a copy, which later changes to the module do not affect, unless it may be borrowed."""
        if in_memory(value_of(tensor).dtype):
            return self.build.constant(hint, view_of(tensor) if self.borrowed else array_of(tensor))
        return Held(tensor.detach().clone())

    def _read_attribute(self, node: torch.fx.Node) -> None:
        held = getattr(self.program.graph_module, str(node.target), None)
        if not isinstance(held, torch.Tensor):
            raise ModelError(f"the model has control flow or a nested graph ({node.target}), which is not supported; export a straight-line model")
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
                names.append(self._output(spec.arg.name))
        return tuple(leaves), names

    def _output(self, name: str) -> str:
        """The array of an output; a constant that NumPy cannot hold is copied by PyTorch."""
        if name not in self.held:
            return self.arrays[name]
        held = self.held[name]
        value = value_of(held.tensor)
        call = TorchCall(name, "aten.clone.default", (held,))
        self.reasons[name] = no_dtype(value.dtype)
        return self.build.add("torch", [], value.shape, value.dtype, name, call=call, index=0)

    def _read_call(self, node: torch.fx.Node) -> None:
        if node.target is operator.getitem:
            self._read_item(node)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise ModelError(f"the model calls {node.target}, which is not a plain operator (control flow?); export a straight-line model")
        results = _results(node)
        if not results:
            return  # assertions and the like
        if str(node.target).startswith(OF_MEMORY):
            _check_memory(node)
        if self._known(node) and torch.Tag.nondeterministic_seeded not in node.target.tags and not updates_statistics(node):
            self._make_constant(node)
            return
        if all(one.size == 0 and in_memory(one.dtype) for one in results):
            self._make_empty(node, results)
            return
        try:
            made = self._translated(node, results)
        except Unsupported as reason:
            if isinstance(reason, StaysWhole) or not self._read_parts(node, results):
                self._leave_in_torch(node, results, str(reason))
            return
        if isinstance(made, list):
            self.tuples[node.name] = list(made)
        else:
            self.arrays[node.name] = made

    def _translated(self, node: torch.fx.Node, results: Sequence[Value]) -> Result:
        """Translate a call. Raises Unsupported if there is no translation, or none for these arguments."""
        given = [self._value_of(one) for one in node.all_input_nodes]
        if str(node.target) in TAKES_EMPTY:
            given = [value for value in given if value.size]
        check_values([*results[:1], *given])  # if there are several results, the others may be unused
        call = AtenCall(str(node.target), node.name, self._bound(node), tuple(results), _used(node, len(results)))
        translation = TABLE.get(call.operator)
        if translation is None:
            raise Unsupported(NO_TRANSLATION)
        before = len(self.build.nodes)
        made = translation(call, self.build)
        if isinstance(made, list):
            for place in call.used:
                if made[place] is None:
                    raise Unsupported(f"its result number {place} is used, but kernels do not compute it")
        elif self.build.values[made] != results[0]:  # some reference implementations of PyTorch make another dtype than they declare
            assert self.within or not self.rewritten, (str(call), self.build.values[made])
            raise Unsupported("its decomposition gives another shape or dtype")
        self._check_declarable(list(self.build.nodes.values())[before:])
        return made

    def _read_parts(self, node: torch.fx.Node, results: Sequence[Value]) -> bool:
        """Read the parts into which PyTorch decomposes a call; False, with nothing changed, if a part has no translation either."""
        given = [self._value_of(one) for one in node.all_input_nodes]
        if len(self.within) >= MOST_PARTS_OF_PARTS or node.target in self.within or not all(map(is_of_kernels, (*given, *results))):
            return False
        parts = parts_of(node, TABLE)
        if parts is None:
            return False
        inner = _Reader(self.program, self.build, (*self.within, node.target), borrowed=self.borrowed)
        inner.declarable = self.declarable
        for one, outer in zip((one for one in parts.graph.nodes if one.op == "placeholder"), node.all_input_nodes, strict=True):
            if outer.name in self.held:
                return False
            inner.arrays[one.name] = self._array_of(outer)
        state = self.build.state()
        try:
            made = inner.read_graph(parts)
            if [self.build.values[one] for one in made] != list(results):
                raise Unsupported("its decomposition gives another shape or dtype")
        except (Unsupported, ModelError, RuntimeError):  # PyTorch's decompositions do not take all that its operators take
            self.build.restore(state)
            return False
        if isinstance(node.meta["val"], torch.Tensor):
            self.arrays[node.name] = made[0]
        else:
            self.tuples[node.name] = list(made)
        return True

    def read_graph(self, module: torch.fx.GraphModule) -> list[str]:
        """Read the parts of a call, and return the arrays that they make. Raises Unsupported if a part has no translation."""
        for node in module.graph.nodes:
            if node.op == "call_function":
                self._read_call(node)
            elif node.op == "get_attr":
                self._constant(node.name, getattr(module, str(node.target)))
        (output,) = next(node for node in module.graph.nodes if node.op == "output").args
        made = [output] if isinstance(output, torch.fx.Node) else list(output)
        if not all(isinstance(one, torch.fx.Node) and one.name in self.arrays for one in made):
            raise Unsupported("a part of its result is not an array")
        return [self.arrays[one.name] for one in made]

    def _check_declarable(self, nodes: Sequence[Node]) -> None:
        """Raises Unsupported if a node has no declaration, for example because of its dtype."""
        for node in nodes:
            if node.op in ("reshape", "batch_norm"):
                continue
            values = [self.build.values[name] for name in node.inputs]
            known = repr((node.op, values, node.shape, node.dtype, sorted(node.attributes.items())))
            if known in self.declarable:
                continue
            try:
                declare(node, [te.placeholder(value.shape, value.dtype, f"operand{index}") for index, value in enumerate(values)], node.op)
            except DeclarationError as error:
                raise Unsupported(str(error)) from error
            self.declarable.add(known)

    def _known(self, node: torch.fx.Node) -> bool:
        return all(one.name in self.held or self.arrays.get(one.name) in self.build.constants for one in node.all_input_nodes)

    def _value_of(self, node: torch.fx.Node) -> Value:
        return value_of(self.held[node.name].tensor) if node.name in self.held else self.build.values[self._array_of(node)]

    def _array_of(self, node: torch.fx.Node) -> str:
        found = self.arrays.get(node.name)
        if found is None:
            raise ModelError(f"the model passes all results of {node.target} to one call, which is not supported; remove that call from the model")
        return found

    def _make_empty(self, node: torch.fx.Node, results: Sequence[Value]) -> None:
        """Add results without elements as constants."""
        made: list[str | Held | None] = [self.build.constant(node.name, np.empty(one.shape, one.dtype)) for one in results]
        if isinstance(node.meta["val"], torch.Tensor):
            self.arrays[node.name] = str(made[0])
        else:
            self.tuples[node.name] = made

    def _make_constant(self, node: torch.fx.Node) -> None:
        def tensor(argument: torch.fx.Node) -> torch.Tensor:
            if argument.name in self.held:
                return self.held[argument.name].tensor
            return tensor_of(np.asarray(self.build.constants[self.arrays[argument.name]], order="C"))

        assert callable(node.target)
        with torch.no_grad():
            made = node.target(*(_mapped(one, tensor) for one in node.args), **{key: _mapped(one, tensor) for key, one in node.kwargs.items()})
        if isinstance(made, torch.Tensor):
            self._constant(node.name, made)
            self._remember_integers(node)
            return
        self.tuples[node.name] = [self._kept(f"{node.name}_{i}", one) if isinstance(one, torch.Tensor) else None for i, one in enumerate(made)]

    def _remember_integers(self, node: torch.fx.Node) -> None:
        """Remember what a float constant was dequantised from."""
        if str(node.target) not in OF_CONSTANTS or node.name in self.held or any(one.name in self.held for one in node.all_input_nodes):
            return
        integers = integers_of(AtenCall(str(node.target), node.name, self._bound(node), tuple(_results(node))), self.build)
        if integers is not None:
            self.build.integers[self.arrays[node.name]] = integers

    def _bound(self, node: torch.fx.Node) -> dict[str, object]:
        """The arguments by their names in the operator's schema, with defaults filled in."""
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
        if source.name in self.lists:
            source, before = self.lists[source.name]
            index += before
        else:
            parts = source.meta["val"]
            before = sum(map(len, map(_leaves, parts[:index])))
            if isinstance(parts[index], (list, tuple)):
                self.lists[node.name] = source, before
                return
            index = before
        if source.name in self.tuples:
            made = self.tuples[source.name][index]
            if isinstance(made, Held):
                self.held[node.name] = made
                return
            assert made is not None
            self.arrays[node.name] = made
            return
        call = self.pending[source.name]
        value = _results(source)[index]
        self.arrays[node.name] = self.build.add("torch", self.pending_inputs[source.name], value.shape, value.dtype, node.name, call=call, index=index)

    def _leave_in_torch(self, node: torch.fx.Node, results: Sequence[Value], reason: str) -> None:
        if self.within or not self.rewritten and is_composed(node):
            raise Unsupported(reason)
        names: list[str] = []

        def slot(one: torch.fx.Node) -> Slot | Held:
            if one.name in self.held:
                return self.held[one.name]
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
        """Report what runs in PyTorch, once for each cause. Returns operator -> cause."""
        sites: dict[str, dict[str, set[str]]] = {}  # cause -> operator -> sites
        for node in graph:
            if node.op == "torch":
                call = node.attributes["call"]
                assert isinstance(call, TorchCall)
                sites.setdefault(self.reasons[call.site], {}).setdefault(call.operator, set()).add(call.site)
        for reason, operators in sites.items():
            calls = sum(map(len, operators.values()))
            names = list(operators)
            say(f"{listed(names)} {'runs' if len(names) == 1 else 'run'} in PyTorch{f' ({calls} calls)' if calls > 1 else ''}: {reason}")
        return {name: reason for reason, operators in sites.items() for name in operators}


def _used(node: torch.fx.Node, results: int) -> tuple[int, ...]:
    """The numbers of those of several results that are read."""
    places = {user.args[1] for user in node.users if user.target is operator.getitem}
    return tuple(place for place in range(results) if place in places)


def _check_memory(node: torch.fx.Node) -> None:
    """Raises ModelError unless the operand is contiguous and covers its whole memory."""
    operand = node.all_input_nodes[0].meta.get("val")
    if isinstance(operand, torch.Tensor) and operand.is_contiguous() and operand.untyped_storage().nbytes() == operand.numel() * operand.element_size():
        return
    raise ModelError(f"the model reads a tensor by its memory layout ({node.target}), but the tensor is a view or not contiguous; call .contiguous() first, "
                     "or use view, permute or unfold")  # fmt: skip


def _results(node: torch.fx.Node) -> list[Value]:
    meta = node.meta.get("val")
    if isinstance(meta, torch.Tensor):
        return [_value(meta, node.name)]
    if isinstance(meta, (tuple, list)):
        return [_value(one, node.name) if isinstance(one, torch.Tensor) else Value((), "none") for one in _leaves(meta)]
    if meta is None:
        return []
    if isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
        raise ModelError(f"the model computes with a number that it reads from a tensor ({node.target}); let it compute with tensors of fixed shape")
    raise ModelError(f"the model computes a {type(meta).__name__} from its inputs ({node.target}); only tensors of fixed shape are supported")


def _leaves(results: object) -> list[object]:
    """Results with the lists among them flattened."""
    return [leaf for one in results for leaf in _leaves(one)] if isinstance(results, (list, tuple)) else [results]


def _value(tensor: object, name: str) -> Value:
    assert isinstance(tensor, torch.Tensor)
    shape = tuple(tensor.shape)
    if not all(isinstance(extent, int) for extent in shape):
        raise ModelError(f"{name} has the shape {shape}, which depends on sizes or values of inputs; compile for fixed shapes, and remove such operators "
                         "(x[mask], nonzero, ...) from the model")
    return value_of(tensor)


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _mapped(argument: object, function: Callable[[torch.fx.Node], object]) -> object:
    """The argument with every node in it, including nodes in lists, replaced."""
    if isinstance(argument, torch.fx.Node):
        return function(argument)
    return [_mapped(one, function) for one in argument] if isinstance(argument, (list, tuple)) else argument
