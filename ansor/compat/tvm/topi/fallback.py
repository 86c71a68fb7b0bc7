"""Names of `tvm.topi` and `tvm.topi.nn` that need no function of their own: operators of ours, which TVM has there too or not at all."""

from __future__ import annotations

from collections.abc import Callable

from ansor.compat.tvm import missing
from ansor.te import nn
from ansor.te.tensor import Tensor

Operator = Callable[..., Tensor]


def of_topi(name: str) -> Operator:
    """An operator of ours. Raises AttributeError where there is none."""
    return _ours(name) or missing.of_topi(name)


def of_nn(name: str) -> Operator:
    """The same for `tvm.topi.nn`."""
    return _ours(name) or missing.of_topi(f"nn.{name}")


def _ours(name: str) -> Operator | None:
    found: Operator | None = None if name.startswith("_") else getattr(nn, name, None)
    return found if callable(found) else None
