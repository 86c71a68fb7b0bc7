"""Replaces in-place calls by calls that make a new tensor, where nothing reads the old value afterwards.

    y = conv(x); z = add_(y, w); relu(z)        becomes        y = conv(x); z = add(y, w); relu(z)

PyTorch's own rewriting (`ExportedProgram.run_decompositions`) does this for every program, including writes to views and inputs, but takes longer than the
export. Here, memory is identified by the storages of the tensors that `torch.export` traced, which are shared as in a real call, and by what the schemas say
about views. A call stays in place if its memory belongs to an argument or a weight, or if a value from before the call is read after it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree as pytree

Memory = frozenset[int]
LEFT_ALONE = {torch.Tag.inplace_view, torch.Tag.nondeterministic_seeded}
"""Tags of calls that are left to PyTorch's rewriting: those that change the shape of their operand or draw random numbers."""

WRITES_UNSAID = ("aten.native_batch_norm.default",)  # writes to its running statistics, which its schema does not say
OF_MEMORY = ("aten.as_strided", "aten.resize")  # prefixes of operators whose results depend on the memory layout; arrays of networks are always contiguous


KEPT_WHOLE = ("aten.broadcast_tensors.", "aten.dropout.", "aten.einsum.", "aten.meshgrid.", "aten.sum_to_size.", "aten.type_as.")
"""Prefixes of operators whose results may be their operands, or views of them, but which PyTorch's rewriting treats as copies."""

STATISTICS = ("training", "use_input_stats")
"""Arguments of norms; if one is true, the norm updates its running statistics."""


def without_writes(program: ExportedProgram) -> None:
    """Replace such in-place calls in a program's graph; leave all others as they are."""
    graph = program.graph
    if not any(_writes(node) for node in graph.nodes) or any(str(node.target).startswith(OF_MEMORY) for node in graph.nodes):
        return
    _spell_out_dropout(program)
    writes = {node: made for node in graph.nodes if node.op == "call_function" and (made := new_value(node.target)) is not None}
    if not writes or not all(map(_is_plain, graph.nodes)):
        return
    memory = _memories(graph)
    place = {node: number for number, node in enumerate(graph.nodes)}
    last = {node: max((place[user] for user in node.users), default=-1) for node in graph.nodes}
    for node, made in writes.items():
        before = [one for one in graph.nodes if place[one] < place[node] and memory[one] & memory[node]]
        unread = all(one.op == "call_function" and last[one] <= place[node] for one in before)
        if unread and before and _makes_the_same(made, node):
            node.target = made


def _writes(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _spell_out_dropout(program: ExportedProgram) -> None:
    """Replace dropout in evaluation mode by its operand. It returns that operand, so a write to its result is a write to the operand, but PyTorch's rewriting
    treats the result as a copy."""
    for node in program.graph.nodes:
        if _is_its_operand(node):
            _rename_outputs(program, node.name, node.args[0].name)
            node.replace_all_uses_with(node.args[0])
            program.graph.erase_node(node)


def _is_its_operand(node: torch.fx.Node) -> bool:
    """Whether it is a call of dropout that does nothing."""
    return node.target is torch.ops.aten.dropout.default and bool(node.args[2:] == (False,) or node.args[1] == 0)


def _rename_outputs(program: ExportedProgram, name: str, to: str) -> None:
    for one in program.graph_signature.output_specs:
        if isinstance(one.arg, TensorArgument) and one.arg.name == name:
            one.arg = TensorArgument(to)


def updates_statistics(node: torch.fx.Node) -> bool:
    """Whether a call of a norm may update its running statistics, which its schema does not say."""
    assert isinstance(node.target, torch._ops.OpOverload)
    for number, argument in enumerate(node.target._schema.arguments):
        if argument.name in STATISTICS and (node.args[number] if number < len(node.args) else node.kwargs.get(argument.name, argument.default_value)):
            return True
    return False


def new_value(target: object) -> torch._ops.OpOverload | None:
    """The out-of-place form of an in-place operator; None for other operators, and if there is no such form."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten" or LEFT_ALONE & set(target.tags):
        return None
    schema = target._schema
    name = schema.name.partition("::")[2]
    written = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments]
    if not name.endswith("_") or written != [True] + [False] * (len(written) - 1) or len(schema.returns) != 1:
        return None
    made = getattr(getattr(torch.ops.aten, name[:-1], None), target._overloadname, None)
    if not isinstance(made, torch._ops.OpOverload) or made._schema.is_mutable or len(made._schema.returns) != 1:
        return None
    return made if _taken(made) == _taken(target) and made._schema.returns[0].alias_info is None else None


def _taken(operator: torch._ops.OpOverload) -> list[tuple[str, str, bool, object]]:
    """The parameters of an operator, apart from which of them it writes to."""
    arguments = operator._schema.arguments
    return [(one.name, str(one.type), one.kwarg_only, one.default_value if one.has_default_value() else None) for one in arguments]


def _is_plain(node: torch.fx.Node) -> bool:
    """Whether the memory of everything that a node makes can be identified."""
    made = node.meta.get("val")
    if made is None:
        return node.op in ("placeholder", "output") or not node.users
    return all(one.layout is torch.strided and not one.is_nested for one in pytree.tree_leaves(made) if isinstance(one, torch.Tensor))


def _memories(graph: torch.fx.Graph) -> Mapping[torch.fx.Node, Memory]:
    """The storages that each node's results may use."""
    found: dict[torch.fx.Node, Memory] = {}
    for node in graph.nodes:
        made = [one for one in pytree.tree_leaves(node.meta.get("val")) if isinstance(one, torch.Tensor)]
        own = frozenset(one.untyped_storage()._cdata for one in made)
        found[node] = own.union(*(found[one] for one in (node.all_input_nodes if _is_its_operand(node) else _viewed(node))))
    return found


def unseen_write(program: ExportedProgram) -> str:
    """The operator because of which PyTorch's rewriting of a program loses a write; "" if there is none.

    The rewriting treats results of `KEPT_WHOLE` as copies. So it loses a write to a result if the operand is read afterwards, or is an argument or a weight.
    It also loses a write to the operand if the result is read afterwards.
    """
    nodes = list(program.graph.nodes)
    if not any(map(_writes, nodes)) or not any(map(_is_kept_whole, nodes)):
        return ""
    memory, place = _memories(program.graph), {node: number for number, node in enumerate(nodes)}
    seen: dict[torch.fx.Node, frozenset[torch.fx.Node]] = {}
    for node in nodes:
        viewed = [] if _is_kept_whole(_call_of(node)) else [seen[one] for one in node.all_input_nodes if memory[one] & memory[node]]
        seen[node] = frozenset().union(*viewed) or frozenset([node])
    for node in filter(_writes, nodes):
        sharing = [one for one in nodes[: place[node]] if memory[one] & memory[node]]
        behind = next((str(one.target) for one in sharing if _is_kept_whole(one)), "")
        if behind and any(not seen[one] & seen[node] and (one.op == "placeholder" or any(place[user] > place[node] for user in one.users)) for one in sharing):
            return behind
    return ""


def _call_of(node: torch.fx.Node) -> torch.fx.Node:
    """The call that makes a node: for one of several results the call that returns them all, else the node itself."""
    return node.args[0] if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node) else node


def _is_kept_whole(node: torch.fx.Node) -> bool:
    return str(node.target).startswith(KEPT_WHOLE)


def _viewed(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The operands that a node's results may be views of, by its schema; all operands if it has no schema. One of several results has those of its call."""
    if node.op != "call_function":
        return
    if _call_of(node) is not node and "val" in node.meta:
        yield from _viewed(_call_of(node))
        return
    if not isinstance(node.target, torch._ops.OpOverload):
        yield from node.all_input_nodes
        return
    schema = node.target._schema
    if all(one.alias_info is None for one in schema.returns):
        return
    for number, argument in enumerate(schema.arguments):
        if argument.alias_info is not None:
            given = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
            yield from (one for one in pytree.tree_leaves(given) if isinstance(one, torch.fx.Node))


def _makes_the_same(made: torch._ops.OpOverload, node: torch.fx.Node) -> bool:
    """Whether the out-of-place call `made` gives the shape and dtype of the tensor that the in-place call writes to; in-place calls convert to these."""
    given: Any = pytree.tree_map(lambda one: one.meta["val"] if isinstance(one, torch.fx.Node) else one, (node.args, node.kwargs))
    wanted = node.meta["val"]
    try:
        found = made(*given[0], **given[1])
    except Exception:  # whatever the error, the call stays as it is
        return False
    return isinstance(found, torch.Tensor) and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


def only_reads(node: torch.fx.Node) -> bool:
    """Whether a call is known to write to no tensor, and does not depend on the memory layout."""
    if not isinstance(node.target, torch._ops.OpOverload) or str(node.target).startswith((*OF_MEMORY, *WRITES_UNSAID)):
        return False
    return not node.target._schema.is_mutable or node.target is torch.ops.aten.dropout_.default and node.args[2:] == (False,)


def is_composed(node: torch.fx.Node) -> bool:
    """Whether PyTorch implements a call by other calls. These may write although its schema does not say so: batch_norm in training mode does."""
    assert isinstance(node.target, torch._ops.OpOverload)
    name = node.target.name()  # type: ignore[no-untyped-call]  # PyTorch has no types there
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
