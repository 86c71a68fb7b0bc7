"""What is said of functions and keywords that `te.nn` does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansor.support.names import explained
from ansor.support.text import did_you_mean

OTHER_NAMES = {
    "bmm": "batch_matmul", "cat": "concatenate", "clamp": "clip", "div": "divide", "linear": "dense", "mul": "multiply", "neg": "negative",
    "permute": "transpose", "pow": "power", "sub": "subtract", "unsqueeze": "expand_dims",
}  # fmt: skip
"""Functions as PyTorch names them."""


def explaining(module: str, names: dict[str, Any]) -> Callable[[str], object]:
    """Make a module's functions tell keywords that they do not have. names: its global names; returns its `__getattr__`, for the others."""
    functions = {name: value for name, value in names.items() if callable(value) and not name.startswith("_")}
    for name, value in functions.items():
        names[name] = explained(f"{module.removeprefix('ansor.')}.{name}", value)
        names[name].__module__ = module  # where pickle finds it

    def missing(name: str) -> object:
        hint = f" (did you mean {OTHER_NAMES[name]}?)" if name in OTHER_NAMES else did_you_mean(name, functions)
        raise AttributeError(f"module {module!r} has no attribute {name!r}{'' if name.startswith('_') else hint}")

    return missing
