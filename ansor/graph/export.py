"""Exports a PyTorch model, for the arguments of one call, with `torch.export`."""

from __future__ import annotations

import functools
import inspect
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass

import numpy as np
import torch
import torch.fx.config
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.in_place import without_writes
from ansor.graph.opened import closed, opened
from ansor.graph.own_values import changes_noted
from ansor.graph.training import acting_on_mode
from ansor.support.settings import shows_torch_logs
from ansor.support.text import counted, first_line, listed, with_article

Report = Callable[[str], None]
ExampleInputs = torch.Tensor | Sequence[object] | Mapping[str, object]
CallArguments = tuple[tuple[object, ...], dict[str, object]]
"""Positional and keyword arguments of one call."""

LEAVES_PLACES_OUT = "do_not_emit_stack_traces"
"""A setting of `torch.fx.config` that older versions of PyTorch do not have."""


@dataclass(frozen=True)
class Exported:
    """A program, the call it was exported with, and the parameters of the model's `forward`; the last two are None if unknown.

    `opened`: whether objects among the arguments and results were opened; `module`: the module that was exported, None for any other model.
    """

    program: ExportedProgram
    examples: CallArguments | None
    parameters: inspect.Signature | None
    opened: bool = False
    module: torch.nn.Module | None = None

    def own_name(self, target: str) -> str:
        """The module's own name for the weight `target` of the program."""
        return target.removeprefix("_model.") if self.opened else target


@contextmanager
def known_warnings_silenced() -> Iterator[None]:
    """Silences warnings about deprecated names that PyTorch's export code uses itself: the user can do nothing about them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*is deprecated", category=DeprecationWarning, module="torch\\..*")
        warnings.filterwarnings("ignore", message="The tensor attributes? .* assigned during export", category=UserWarning)  # nn.LSTM and the like
        yield


@contextmanager
def logs_silenced() -> Iterator[None]:
    """Silences the stack traces that PyTorch logs for an export's exceptions, which we report in one sentence. Setting TORCH_LOGS shows them."""
    below = [one for name, one in logging.root.manager.loggerDict.items() if name.startswith("torch.") and isinstance(one, logging.Logger) and one.level]
    before = {} if shows_torch_logs() else {one: one.level for one in (logging.getLogger("torch"), *below)}  # others inherit these levels
    try:
        for one in before:
            one.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for one, level in before.items():
            one.setLevel(level)


@contextmanager
def places_left_out() -> Iterator[None]:
    """Keeps PyTorch from recording the source lines of each call. Recording them takes a third of an export's time, and nothing here reads them."""
    config = torch.fx.config
    before = getattr(config, LEAVES_PLACES_OUT, None)
    if before is not None:
        setattr(config, LEAVES_PLACES_OUT, True)
    try:
        yield
    finally:
        if before is not None:
            setattr(config, LEAVES_PLACES_OUT, before)


@contextmanager
def prints_held() -> Iterator[None]:
    """Holds back what is printed to stderr, and drops it on an exception: PyTorch prints the graph of an export that fails."""
    if shows_torch_logs():
        yield
        return
    held = io.StringIO()
    with redirect_stderr(held):
        yield
    sys.stderr.write(held.getvalue())


def exported(model: object, example_inputs: ExampleInputs, say: Report) -> Exported:
    """See `from_torch`."""
    if isinstance(model, ExportedProgram):
        return Exported(model, _examples_of(model), None)
    if not callable(model):
        raise ModelError(f"asked to read {with_article(type(model).__name__)} as a PyTorch model; "
                         "give a torch.nn.Module, a function of tensors or an ExportedProgram")
    if isinstance(model, type):
        raise ModelError(f"asked to read the class {model.__name__} as a PyTorch model; give an instance: {model.__name__}(...)")
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    args, kwargs = split_inputs(example_inputs)
    _check_call(model, args, kwargs)
    acting = acting_on_mode(module)
    if acting:
        mode = "is in training mode" if len(acting) == 1 else "are in training mode"
        say(f"{listed(acting)} of the model {mode}, but the network computes as in evaluation mode (model.eval())")
    training = [part for part in module.modules() if part.training]
    try:
        for part in training:
            part.training = False
        with changes_noted(module) as changes:
            program, is_opened = _program(module, args, kwargs)
    except SystemExit as error:
        raise ModelError(f"asked to export {_name(model)}, which ends the program (exit {error.code}) when it is called; take that out of it") from None
    except ModelError:  # from `ansor.onnx.module`, which is exported like any other module
        raise
    except Exception as error:  # the model's own code runs here, so any error may be raised
        raise ModelError(
            f"torch.export cannot export {_name(model)}: {first_line(error)}; {_cure(args, kwargs)}"
        ) from error
    finally:
        for part in training:
            part.training = True
    if changed := next(filter(None, changes), ""):
        say(f"{_name(model)} changes its own values as it runs, {changed}, but the network always computes what this one call did")
    own = model if isinstance(model, torch.nn.Module) else None
    return Exported(program, (args, kwargs), parameters_of(model), is_opened, own)


def split_inputs(example_inputs: ExampleInputs) -> CallArguments:
    """Positional and keyword arguments from any form of `example_inputs`. Raises ModelError for anything else."""
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, Mapping):
        return (), {str(key): value for key, value in example_inputs.items()}
    if isinstance(example_inputs, Sequence) and not isinstance(example_inputs, (str, bytes)):
        return tuple(example_inputs), {}
    if isinstance(example_inputs, np.ndarray):
        raise ModelError("example_inputs is a NumPy array; give a tensor, such as torch.from_numpy(array)")
    raise ModelError(
        f"example_inputs is a {type(example_inputs).__name__}; give a tensor, a tuple of the model's positional arguments or a dict of its keyword arguments"
    )


def _name(model: object) -> str:
    """`the model Linear`, `the function twice`."""
    return f"the model {type(model).__name__}" if isinstance(model, torch.nn.Module) else f"the function {getattr(model, '__name__', type(model).__name__)}"


def _check_call(model: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raises ModelError if the model does not take the example inputs as arguments."""
    parameters = parameters_of(model)
    if parameters is None:
        return
    try:
        parameters.bind(*args, **kwargs)
    except TypeError as error:
        given = f"the keywords {', '.join(kwargs)}" if kwargs else counted(len(args), "positional argument")
        raise ModelError(f"example_inputs gives {given}, but {_name(model)} takes {parameters}: {error}; give the model's call arguments") from None


def _cure(args: tuple[object, ...], kwargs: dict[str, object]) -> str:
    """What to do about a model that cannot be exported. A likely cause is inputs that are not tensors."""
    leaves = pytree.tree_leaves((args, kwargs))
    if any(isinstance(leaf, np.ndarray) for leaf in leaves):
        return "example_inputs holds a NumPy array; convert it with torch.from_numpy"
    if leaves and not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        shown = ", ".join(f"{leaf!r:.40}" for leaf in leaves[:4])
        return f"example_inputs holds no tensor, but {shown}: give tensors, such as torch.zeros(2, 4), not their shapes"
    return "torch.export.export(model, args, strict=False) has to accept the model"


class _Function(torch.nn.Module):
    """A module around a plain function, for torch.export."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()

        def forward(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        self.forward = forward if parameters_of(function) is None else functools.wraps(function)(forward)  # torch.export names inputs after its parameters


class _Opening(torch.nn.Module):
    """A module around another one: torch.export sees opened objects, and the inner module gets them closed again."""

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
    """The program, and whether objects had to be opened for it. Raises what torch.export raises without opening them."""
    args, kwargs = pytree.tree_map(_as_its_own, (args, kwargs))
    with torch.no_grad(), known_warnings_silenced(), logs_silenced(), prints_held():
        try:
            return _traced(module, args, kwargs), False
        except Exception:
            try:
                given, named = opened(args), opened(kwargs)
                assert isinstance(given, tuple) and isinstance(named, dict)
                return _traced(_Opening(module), given, named), True
            except Exception:  # the first error is about the model as its author knows it
                pass
            raise


def _traced(module: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> ExportedProgram:
    with places_left_out():
        program = torch.export.export(module, args, kwargs, strict=False)
    without_writes(program)
    return program


def _as_its_own(leaf: object) -> object:
    """A new tensor object over the same memory. If two arguments are one object, or one is a weight, torch.export assumes that they are in every call."""
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def parameters_of(model: Callable[..., object]) -> inspect.Signature | None:
    """The parameters of a module's `forward`, or of a function; None if unknown."""
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError):
        return None


def _examples_of(program: ExportedProgram) -> CallArguments | None:
    if program.example_inputs is None:
        return None
    args, kwargs = program.example_inputs
    return tuple(args), dict(kwargs)
