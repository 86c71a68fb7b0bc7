"""Names of `tvm.topi` and `tvm.topi.nn` that need no function of their own: our operators, minus the argument that names the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import Signature, signature
from typing import Any

from ansor.compat.tvm import missing
from ansor.te import nn

Operator = Callable[..., Any]

RENAMED: Mapping[str, tuple[str, str]] = {
    "fast_exp": ("exp", "x"), "fast_tanh": ("tanh", "x"), "fast_erf": ("erf", "x"), "fast_softmax": ("softmax", "x axis"),
    "concatenate": ("concatenate", "a_tuple axis"), "stack": ("stack", "a axis"), "split": ("split", "ary indices_or_sections axis"),
    "meshgrid": ("meshgrid", "a_tuple indexing"), "layout_transform": ("layout_transform", "array src_layout dst_layout"),
    "shape": ("shape_of", "array dtype"), "ndarray_size": ("size_of", "array dtype"), "adv_index": ("advanced_index", "data indices"),
    "elemwise_sum": ("elementwise_sum", "xs"), "broadcast_to": ("broadcast_to", "data shape"), "logical_not": ("logical_not", "data"),
    "bitwise_not": ("bitwise_not", "data"), "einsum": ("einsum", "subscripts operand"),
}
"""TVM's name -> our operator, and TVM's names of its arguments in our order."""


def of_topi(name: str) -> Operator:
    """Our operator of that name. Raises AttributeError if there is none."""
    return _ours(name) or missing.of_topi(name)


def of_nn(name: str) -> Operator:
    """The same for `tvm.topi.nn`."""
    return _ours(name) or missing.of_topi(f"nn.{name}")


@cache
def _ours(name: str) -> Operator | None:
    own, arguments = RENAMED.get(name, (name, None))
    found: Operator | None = None if own.startswith("_") else getattr(nn, own, None)
    return _unnamed(found, arguments) if callable(found) else None


def _unnamed(function: Operator, arguments: str | None) -> Operator:
    """The operator with its arguments renamed, and the result's name as an optional keyword."""
    own = [one for one in signature(function).parameters.values() if one.name != "name"]
    names = [one.name for one in own] if arguments is None else arguments.split()
    takes = Signature([one.replace(name=name) for one, name in zip(own, names, strict=False)])

    @wraps(function)
    def applied(*args: object, name: str = "", **kwargs: object) -> Any:
        given = takes.bind(*args, **kwargs)
        given.apply_defaults()
        return function(*given.args, **given.kwargs, **({"name": name} if name else {}))

    vars(applied)["__signature__"] = takes
    return applied
