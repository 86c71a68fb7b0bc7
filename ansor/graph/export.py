"""A PyTorch model and one call of it as a program of `torch.export`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.opened import closed, opened
from ansor.graph.training import acting_on_mode
from ansor.text import first_line, listed

Report = Callable[[str], None]
ExampleInputs = torch.Tensor | Sequence[object] | Mapping[str, object]
CallArguments = tuple[tuple[object, ...], dict[str, object]]
"""Positional and keyword arguments of one call."""


@dataclass(frozen=True)
class Exported:
    """A program, the call it was made with, the parameters of the model's `forward`, each where it is known.

    `opened`: objects among arguments and results were opened; `module`: what the program was made from, where that is a module.
    """

    program: ExportedProgram
    examples: CallArguments | None
    parameters: inspect.Signature | None
    opened: bool = False
    module: torch.nn.Module | None = None

    def own_name(self, target: str) -> str:
        """What the module itself calls the weight `target` of the program."""
        return target.removeprefix("_model.") if self.opened else target


@contextmanager
def known_warnings_silenced() -> Iterator[None]:
    """PyTorch's own export code uses its own deprecated names; the user can do nothing about these."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*is deprecated", category=DeprecationWarning, module="torch\\..*")
        warnings.filterwarnings("ignore", message="The tensor attributes? .* assigned during export", category=UserWarning)  # nn.LSTM and its kin
        yield


def exported(model: object, example_inputs: ExampleInputs, say: Report) -> Exported:
    """See `from_torch`."""
    if isinstance(model, ExportedProgram):
        return Exported(model, _examples_of(model), None)
    if not callable(model):
        raise ModelError(f"asked to read a {type(model).__name__} as a PyTorch model; give a torch.nn.Module, a function of tensors or an ExportedProgram")
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    args, kwargs = split_inputs(example_inputs)
    acting = acting_on_mode(module)
    if acting:
        mode = "is in training mode" if len(acting) == 1 else "are in training mode"
        say(f"{listed(acting)} of the model {mode}, but the network computes as in evaluation mode (model.eval())")
    training = [part for part in module.modules() if part.training]
    try:
        for part in training:
            part.training = False
        program, is_opened = _program(module, args, kwargs)
    except Exception as error:  # the model's own code runs here, so anything may come
        raise ModelError(
            f"torch.export cannot read {type(model).__name__}: {first_line(error)}; torch.export.export(model, args, strict=False) has to accept the model"
        ) from error
    finally:
        for part in training:
            part.training = True
    own = model if isinstance(model, torch.nn.Module) else None
    return Exported(program, (args, kwargs), _parameters(model), is_opened, own)


def split_inputs(example_inputs: ExampleInputs) -> CallArguments:
    """Positional and keyword arguments from any form of `example_inputs`. Raises ModelError for what is none of them."""
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping):
        return (), {str(key): value for key, value in example_inputs.items()}
    if isinstance(example_inputs, Sequence) and not isinstance(example_inputs, (str, bytes)):
        return tuple(example_inputs), {}
    raise ModelError(
        f"example_inputs is a {type(example_inputs).__name__}; give a tensor, a tuple of the model's positional arguments or a dict of its keyword arguments"
    )


class _Function(torch.nn.Module):
    """A module around a plain function, for torch.export."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()

        def forward(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        self.forward = forward if _parameters(function) is None else functools.wraps(function)(forward)  # torch.export names inputs after its parameters


class _Opening(torch.nn.Module):
    """A module around another, which sees objects closed; torch.export sees them opened."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = model

        @functools.wraps(model.forward)
        def forward(*args: object, **kwargs: object) -> object:
            given = closed(list(args))
            named = closed(kwargs)
            assert isinstance(given, list) and isinstance(named, dict)
            return opened(model(*given, **named))

        self.forward = forward


def _program(module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[ExportedProgram, bool]:
    """The program, and whether objects had to be opened for it. Raises what torch.export raises of the module as it is."""
    args, kwargs = pytree.tree_map(_as_its_own, (args, kwargs))
    with torch.no_grad(), known_warnings_silenced():
        try:
            return torch.export.export(module, args, kwargs, strict=False), False
        except Exception:
            try:
                given, named = opened(args), opened(kwargs)
                assert isinstance(given, tuple) and isinstance(named, dict)
                return torch.export.export(_Opening(module), given, named, strict=False), True
            except Exception:  # the first one is about the model as its author knows it
                pass
            raise


def _as_its_own(leaf: object) -> object:
    """A tensor as another object over the same memory. torch.export takes arguments that are one object, or a weight, for one value in every later call."""
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _parameters(model: Callable[..., object]) -> inspect.Signature | None:
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError):
        return None


def _examples_of(program: ExportedProgram) -> CallArguments | None:
    if program.example_inputs is None:
        return None
    args, kwargs = program.example_inputs
    return tuple(args), dict(kwargs)
