"""The computation of a task in any accepted form: a function with arguments, tensors, or a tensor. It becomes the list [inputs..., outputs...]."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from ansor.errors import DeclarationError
from ansor.ir.access import producers
from ansor.support.text import with_article
from ansor.te.tensor import Tensor


def tensors_of(given: object, what: str = "the declaration") -> tuple[Tensor, ...]:
    """The given tensors. For a single tensor, its inputs are found and come first, in the order in which they are read.

    Raises DeclarationError for anything else, naming it as `what`.
    """
    if isinstance(given, Tensor):
        return (*_inputs_of(given), given)
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(one, Tensor) for one in given):
        kinds = ", ".join(dict.fromkeys(type(one).__name__ for one in given)) if isinstance(given, list | tuple) else ""
        found = f"{with_article(type(given).__name__)}{f' of {kinds}' if kinds else ''}"
        raise DeclarationError(f"{what} returned {found}; it has to return the list [inputs..., outputs...]")
    return tuple(given)


def call(function: Callable[..., object], args: Sequence[object], name: str = "") -> object:
    """Call the function. Raises DeclarationError when the arguments do not fit its parameters; its own exceptions pass."""
    name = name or str(getattr(function, "__name__", function))
    check_call(function, args, f"{name} with args={tuple(args)}", "give one value for each in args=(...)")
    return function(*args)


def check_call(function: Callable[..., object], args: Sequence[object], asked: str, cure: str) -> None:
    """Raise DeclarationError unless the function takes these arguments. `asked`: the call as the user wrote it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C: the call will tell
        return
    try:
        signature.bind(*args)
    except TypeError as error:
        named = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
        if named:
            cure = f"sizes are given by their places, so let the function take {' and '.join(named)} without a * before"
        raise DeclarationError(f"asked for {asked}, but it takes {parameters(signature)}: {error}; {cure}") from None


def parameters(signature: inspect.Signature) -> str:
    """The parameters as text, `n=512, m=512`."""
    found = [one.name if one.default is one.empty else f"{one.name}={one.default}" for one in signature.parameters.values()]
    return ", ".join(found) or "no arguments"


def _inputs_of(output: Tensor) -> tuple[Tensor, ...]:
    """The placeholders behind a tensor, each once."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    stack = [output]
    while stack:
        tensor = stack.pop()
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        if tensor.is_placeholder and tensor is not output:
            found[id(tensor)] = tensor
        stack.extend(reversed(producers(tensor)))
    return tuple(found.values())
