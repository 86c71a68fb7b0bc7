"""What a person asks to tune: a built-in name, or a Python file with a declaration or a PyTorch model."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ansor.errors import AnsorError, DeclarationError
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import ZooOperator, find


@dataclass(frozen=True)
class OperatorSubject:
    """A declaration: a function of `args` that returns tensors."""

    name: str
    function: Callable[..., Sequence[Tensor]]
    args: tuple[int, ...]


@dataclass(frozen=True)
class NetworkSubject:
    """A PyTorch model and the inputs to trace it with."""

    name: str
    model: Callable[[], object]
    example_inputs: Callable[[], tuple[object, ...]]


Subject = OperatorSubject | NetworkSubject


def resolve(text: str, args: tuple[int, ...] = ()) -> Subject:
    """`resnet18`, `matmul`, `FILE.py` or `FILE.py:function`; `args` replace an operator's default sizes.

    A file holds either functions `model()` and `example_inputs()`, or a function that returns the tensors of a declaration.
    """
    path, _, function = text.partition(":")
    if path.endswith(".py"):
        return _from_file(Path(path), function, args)
    found = find(text)
    if isinstance(found, ZooOperator):
        return OperatorSubject(found.name, found.function, args or found.args)
    return NetworkSubject(found.name, found.model, found.example_inputs)


def _from_file(path: Path, function: str, args: tuple[int, ...]) -> Subject:
    if not path.is_file():
        raise DeclarationError(f"asked for {path}, which is not a file; give the path of a Python file, or a built-in name")
    module = _loaded(path)
    if not function and hasattr(module, "model"):
        return _network(module, path, "model")
    if function and not hasattr(module, function):
        raise DeclarationError(f"asked for {path}:{function}, but the file has no {function}; it has {', '.join(_own_functions(module)) or 'no functions'}")
    chosen = function or _only_function(module, path)
    if hasattr(module, "example_inputs") and chosen != "example_inputs" and not _declares(module, chosen):
        return _network(module, path, chosen)
    return OperatorSubject(chosen, getattr(module, chosen), args)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except AnsorError:
        raise
    except Exception as error:
        raise DeclarationError(f"asked to read {path}, which fails with {type(error).__name__}: {error}") from error
    return module


def _network(module: ModuleType, path: Path, function: str) -> NetworkSubject:
    if not hasattr(module, "example_inputs"):
        raise DeclarationError(f"{path} has {function}() but no example_inputs(); add a function that returns the model's inputs as a tuple of tensors")
    return NetworkSubject(path.stem, getattr(module, function), module.example_inputs)


def _own_functions(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module.__name__ and name[0] != "_"]


def _only_function(module: ModuleType, path: Path) -> str:
    names = _own_functions(module)
    if len(names) != 1:
        raise DeclarationError(f"asked to tune {path}, which has {len(names)} functions ({', '.join(names) or 'none'}); name one: {path}:FUNCTION")
    return names[0]


def _declares(module: ModuleType, name: str) -> bool:
    """True when the function asks for sizes or is registered as a workload: it is a declaration, not a model."""
    function = getattr(module, name)
    code = getattr(function, "__code__", None)
    return code is None or code.co_argcount > 0
