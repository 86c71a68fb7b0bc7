"""The subject of a command: a built-in name, a Python file with a declaration or a PyTorch model, or a float ONNX file."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

from ansor.errors import AnsorError, DeclarationError
from ansor.rules.base import SketchRule
from ansor.support.text import counted, one_line, with_article
from ansor.targets.base import Target
from ansor.tasks.declared import check_call
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import ZooOperator, find

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class OperatorSubject:
    """A declaration: a function of `args` that returns tensors."""

    name: str
    function: Callable[..., Sequence[Tensor]]
    args: tuple[object, ...]
    file: str = ""  # the name of its file, without .py; "" for a built-in one
    rules: tuple[str | SketchRule, ...] = ()  # the file's own rules, which are tried before the target's

    @property
    def title(self) -> str:
        """The name with all sizes, including defaults."""
        return f"{self.name}({', '.join(map(str, self.args))})"

    def task(self, target: Target) -> SearchTask:
        """The task for a target."""
        return SearchTask(self.function, self.args, target, rules=(*self.rules, *target.rules) if self.rules else None)


@dataclass(frozen=True)
class NetworkSubject:
    """A PyTorch model, the inputs to trace it with, and those to calibrate it with. Weights may be random, so ask for the model only once."""

    name: str
    model: Callable[[], object]
    example_inputs: Callable[[], object]
    file: str = ""
    calibration: Callable[[], object] | None = None

    @property
    def title(self) -> str:
        """The network's name."""
        return self.name


Subject = OperatorSubject | NetworkSubject


def resolve(text: str, args: tuple[int | str, ...] = ()) -> Subject:
    """`resnet18`, `matmul`, `FILE.py`, `FILE.py:function` or `FILE.onnx`; `args` are an operator's sizes, completed by its defaults.

    A file holds either functions `model()` and `example_inputs()`, or a function that returns the tensors of a declaration, and optionally a list
    `sketch_rules` of rules for it. Raises DeclarationError if something is missing or does not fit; the subject's functions raise it, too, if they fail.
    """
    path, _, function = text.partition(":")
    if path.endswith(".py"):
        return _from_file(Path(path), function, args)
    if path.endswith(".onnx"):
        if function:
            raise DeclarationError(f"asked for {text}, but an ONNX file holds one model and no functions; leave :{function} out")
        return _network(Path(path).stem, *_of_onnx(Path(path)), args)
    found = find(text)
    if isinstance(found, ZooOperator):
        return _operator(found.name, found.function, args)
    return replace(_network(found.name, found.model, found.example_inputs, args), calibration=found.calibration)


def _of_onnx(path: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    """The model of an ONNX file and inputs for it, read once."""

    @functools.cache
    def read() -> tuple[object, object]:
        from ansor.onnx.module import read_onnx

        return read_onnx(path)

    return lambda: read()[0], lambda: read()[1]


def _operator(name: str, function: Callable[..., Sequence[Tensor]], args: tuple[int | str, ...]) -> OperatorSubject:
    given = f"--args {','.join(map(str, args))}" if args else "no --args"
    check_call(function, args, f"{name} with {given}", "write --args N,N,... with one for each")
    bound = inspect.signature(function).bind(*args)
    bound.apply_defaults()
    return OperatorSubject(name, _explained(name, function), bound.args)


def _network(name: str, model: Callable[[], object], example_inputs: Callable[[], object], args: tuple[int | str, ...]) -> NetworkSubject:
    if args:
        raise DeclarationError(f"asked for {name} with --args {','.join(map(str, args))}, but it is a network, which takes no arguments; leave --args out")
    return NetworkSubject(name, _explained(f"{name}: model", model), _explained(f"{name}: example_inputs", example_inputs))


def _from_file(path: Path, name: str, args: tuple[int | str, ...]) -> Subject:
    if not path.is_file():
        raise DeclarationError(f"asked for {path}, which is not a file; give the path of a Python file, or a built-in name")
    module = load_file(path)
    chosen = name or ("model" if hasattr(module, "model") else _only_function(module, path))
    if not hasattr(module, chosen):
        raise DeclarationError(f"asked for {path}:{chosen}, but the file has no {chosen}; it has {', '.join(_own_functions(module)) or 'no functions'}")
    value = getattr(module, chosen)
    if not _makes_a_model(module, chosen):
        if not callable(value):
            raise DeclarationError(f"asked for {path}:{chosen}, which is a {type(value).__name__}; name a function that returns tensors")
        return replace(_operator(chosen, value, args), file=path.stem, rules=_sketch_rules(module, path))
    if not hasattr(module, "example_inputs"):
        raise DeclarationError(f"{path} has {chosen} but no example_inputs(); add a function that returns the model's inputs as a tuple of tensors")
    if not callable(module.example_inputs):
        kind = with_article(type(module.example_inputs).__name__)
        raise DeclarationError(f"{path} has example_inputs, which is {kind}; make it a function that returns the model's inputs as a tuple of tensors")
    network = _network(path.stem, value if inspect.isroutine(value) or inspect.isclass(value) else lambda: value, module.example_inputs, args)
    return replace(network, calibration=_explained(f"{path.stem}: calibration", module.calibration) if hasattr(module, "calibration") else None)


def _sketch_rules(module: ModuleType, path: Path) -> tuple[str | SketchRule, ...]:
    rules = getattr(module, "sketch_rules", ())
    if not isinstance(rules, list | tuple):
        raise DeclarationError(f"{path} has sketch_rules, which is {with_article(type(rules).__name__)}; make it a list of sketch rules, names or values")
    return tuple(rules)


def load_file(path: str | Path) -> ModuleType:
    """Run a Python file, and return it as a module. Raises DeclarationError if it is missing or fails."""
    path = Path(path)
    if not path.is_file():
        raise DeclarationError(f"asked for {path}, which is not a file; give the path of a Python file")
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]  # so that no module that anything imports has this name, and no other file
    name = re.sub(r"\W", "_", f"{path.stem}_{digest}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.append(str(path.resolve().parent))  # a file can import its neighbours, as when Python runs it
    try:
        sys.modules[module.__name__] = module  # dataclasses look their module up there
        with _without_options(str(path)):
            spec.loader.exec_module(module)
    except AnsorError:
        raise
    except SystemExit as error:
        sentence = f"asked to read {path}, which ends the program (exit {error.code}) when it is run; guard that code with if __name__ == '__main__'"
        raise DeclarationError(sentence) from None
    except Exception as error:  # the file's own code runs here, so any error may be raised
        raise DeclarationError(f"asked to read {path}, which fails with {one_line(error)}{_place(error, path.name)}{_cure(error)}") from error
    return module


def _cure(error: Exception) -> str:
    """What to do about a file that fails as it is read, if that is known."""
    if isinstance(error, ModuleNotFoundError) and error.name == "tvm":
        return "; for a script of TVM write `from ansor.compat import tvm`, and `from ansor.compat.tvm import te`, ..."
    if isinstance(error, ImportError) and "attempted relative import" in str(error):
        return "; the file is run by itself, with its folder on Python's path: write `from name import ...` without the dot"
    return ""


@contextmanager
def _without_options(program: str) -> Iterator[None]:
    """Inside this block `sys.argv` has only the program's name: a user's code may read its own options, and ansor's are not for it."""
    before = sys.argv
    sys.argv = [program]
    try:
        yield
    finally:
        sys.argv = before


def _explained(name: str, function: Callable[P, R]) -> Callable[P, R]:
    """The function, with its errors reported in one sentence that names the line."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = ", ".join(map(str, args))
        try:
            with _without_options(sys.argv[0]):
                return function(*args, **kwargs)
        except DeclarationError as error:
            if any(isinstance(one, str) for one in args):  # a word where a size is meant
                raise DeclarationError(f"{error}; the function was called with --args {','.join(map(str, args))}") from error
            raise
        except AnsorError:
            raise
        except SystemExit as error:
            raise DeclarationError(f"{name}({given}) ends the program (exit {error.code}); return from the function instead") from None
        except Exception as error:  # the user's own code, as above
            raise DeclarationError(f"{name}({given}) fails with {one_line(error)}{_place(error)}; fix the function") from error

    return call


def _place(error: BaseException, only: str = "") -> str:
    """` (file.py, line 7)`: the last line that ran, in the file named `only` if that is given. "" if no line of the user's ran, as with wrong arguments."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__ and (not only or Path(frame.filename).name == only)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _own_functions(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if name[0] != "_" and inspect.isfunction(value) and value.__module__ == module.__name__]


def _only_function(module: ModuleType, path: Path) -> str:
    names = [name for name in _own_functions(module) if name != "main"]
    operators = [name for name in names if name not in ("example_inputs", "calibration")]
    if not operators:
        classes = [name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__]
        held = f"; it has the {'class' if len(classes) == 1 else 'classes'} {', '.join(classes)}" if classes else ""
        raise DeclarationError(f"asked for {path}, which has no model(){held}; add functions model() and example_inputs(), or one that returns tensors")
    if len(names) != 1:
        raise DeclarationError(f"asked for {path}, which has {counted(len(names), 'function')} ({', '.join(names)}); name one: {path}:FUNCTION")
    return names[0]


def _makes_a_model(module: ModuleType, name: str) -> bool:
    """True for `model`, a module class, a module and, in a file with example_inputs(), any other function without arguments."""
    value = getattr(module, name)
    if name == "model" or hasattr(value, "forward"):
        return True
    return hasattr(module, "example_inputs") and name != "example_inputs" and inspect.isfunction(value) and not inspect.signature(value).parameters
