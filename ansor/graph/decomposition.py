"""Decomposes calls as PyTorch does: it defines most operators in terms of a few hundred others, which have translations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Mapping, Sequence

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from ansor.graph.transformer_layers import DECOMPOSITIONS

Table = Mapping[torch._ops.OpOverload, Callable[..., object]]


def parts_of(node: torch.fx.Node, translated: Container[str]) -> torch.fx.GraphModule | None:
    """The call of `node` as a graph of other calls, with `node.all_input_nodes` as inputs, in order; None if PyTorch has no decomposition of it.

    Apart from this call, calls of operators in `translated` stay whole. The graph writes to no tensor.
    """
    assert isinstance(node.target, torch._ops.OpOverload)
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return None
    examples = [one.meta["val"] for one in node.all_input_nodes]
    if not all(isinstance(one, torch.Tensor) for one in examples):
        return None
    table = {operator: function for operator, function in decompositions().items() if operator == node.target or str(operator) not in translated}
    try:
        with torch.no_grad():
            apart = make_fx(_call_of(node), table, tracing_mode="fake")(*examples)
            if not _is_apart(apart, node.target):
                return None
            if _writes(apart):
                apart = make_fx(torch.func.functionalize(apart, remove="mutations"), tracing_mode="fake")(*examples)
    except Exception:  # hundreds of PyTorch's functions run here, which may raise anything
        return None
    if _writes(apart):
        return None
    apart.graph.eliminate_dead_code()
    return apart


@functools.cache
def decompositions() -> Table:
    """PyTorch's decompositions: those for its compilers, and its reference implementations; and ours of fused layers."""
    import torch._refs  # fills the table
    from torch._decomp import decomposition_table

    return {operator: function for operator, function in decomposition_table.items() if isinstance(operator, torch._ops.OpOverload)} | DECOMPOSITIONS


def _call_of(node: torch.fx.Node) -> Callable[..., object]:
    """The node's call as a function of its inputs alone, with a list of tensors as its result."""
    names = [one.name for one in node.all_input_nodes]

    def call(*tensors: torch.Tensor) -> object:
        given = dict(zip(names, tensors, strict=True))
        args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda one: given[one.name])
        assert callable(node.target)
        return pytree.tree_map(_fresh(tensors), node.target(*args, **kwargs))

    return call


def _fresh(tensors: Sequence[torch.Tensor]) -> Callable[[object], object]:
    """Clones a result that is one of the operands, so that the result has its own node."""
    return lambda one: one.clone() if isinstance(one, torch.Tensor) and any(one is other for other in tensors) else one


def _is_apart(graph: torch.fx.GraphModule, operator: object) -> bool:
    return all(node.target is not operator for node in graph.graph.nodes)


def _writes(graph: torch.fx.GraphModule) -> bool:
    """Whether some call writes to one of its operands."""
    return any(isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable for node in graph.graph.nodes)
