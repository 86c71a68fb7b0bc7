"""The result of `tvm.build` for a declaration with open sizes: a function that is built once for each new combination of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, SupportsInt

import numpy as np

from ansor.compat.tvm.benchmark import BenchmarkResult
from ansor.compat.tvm.function import Function, Given, Module
from ansor.compat.tvm.missing import MissingNameError
from ansor.errors import DeclarationError
from ansor.schedule.sized import open_sizes, sized
from ansor.schedule.sketch import Sketch
from ansor.te.size import Guard, Size
from ansor.te.tensor import Tensor


class OpenSizeError(MissingNameError, DeclarationError):
    """An operation that a function with open sizes does not support. Cure: declare it with numbers."""


class SizedFunction(Module):
    """A `Function` for any sizes: `func(a, b)` infers them from the shapes of the arrays, and from arguments that are sizes."""

    def __init__(self, sketch: Sketch, guards: Sequence[Guard], args: Sequence[object], name: str, make: Callable[[Sketch], Function]) -> None:
        self.entry_name = name
        self._sketch, self._guards, self._args, self._make = sketch, guards, args, make
        self._keys = {size.key: size.text for size in open_sizes(sketch.dag.stages) if size.key}
        self._built: dict[tuple[int, ...], Function] = {}

    def __call__(self, *args: Given) -> None:
        """Run once. Raises the errors of `Function` and of `for_sizes_of`."""
        self.for_sizes_of(*args)(*self._arrays(args))

    def for_sizes_of(self, *args: Given) -> Function:
        """The function for the sizes of these arguments.

        Raises DeclarationError if sizes contradict each other or do not fit the declaration, ToolchainError with the compiler's output.
        """
        if len(args) != len(self._args):
            raise TypeError(f"{self.entry_name} takes {len(self._args)} arguments, including outputs, but found {len(args)}")
        values: dict[str, int] = {}
        for declared, given in zip(self._args, args, strict=True):
            sizes, found = (declared.shape, np.shape(given)) if isinstance(declared, Tensor) else ((declared,), (given,))
            for size, value in zip(sizes, found, strict=False):
                self._bind(size, value, values)
        missing = [text for key, text in self._keys.items() if key not in values]
        if missing:
            raise DeclarationError(f"asked to run {self.entry_name}, but no argument has the extent {missing[0]}; make it an argument: tvm.build(s, [n, A])")
        key = tuple(values.get(name, 0) for name in self._keys)
        if key not in self._built:
            for guard in self._guards:
                guard.check(values)
            self._built[key] = self._make(sized(self._sketch, values))
        return self._built[key]

    def _bind(self, size: object, value: SupportsInt, values: dict[str, int]) -> None:
        if isinstance(size, Size) and size.key and values.setdefault(size.key, int(value)) != int(value):
            raise DeclarationError(f"asked to run {self.entry_name} with {size} = {values[size.key]} and {size} = {value}; give arrays with matching shapes")

    def _arrays(self, args: Sequence[Given]) -> list[Given]:
        return [given for declared, given in zip(self._args, args, strict=True) if not isinstance(declared, int | Size)]

    def time_evaluator(self, func_name: str, *options: object, **named: object) -> Callable[..., BenchmarkResult]:
        """Like `Function.time_evaluator`, for the sizes of the arguments."""

        def evaluate(*args: Given) -> BenchmarkResult:
            function = self[func_name].for_sizes_of(*args)
            return function.time_evaluator(function.entry_name, *options, **named)(*self._arrays(args))  # type: ignore[arg-type]  # passed on

        return evaluate

    def save(self, *args: object, **kwargs: object) -> NoReturn:
        """Not possible: a file holds a function for fixed sizes. Raises OpenSizeError."""
        raise OpenSizeError(f"asked to save {self.entry_name}, whose sizes {', '.join(self._keys.values())} are open; declare it with numbers instead")

    export_library = save

    def get_source(self, fmt: str = "c") -> str:
        """The C source for the sizes of the last call. Raises DeclarationError before the first call."""
        if not self._built:
            raise DeclarationError(f"asked for the source of {self.entry_name}, whose sizes {', '.join(self._keys.values())} are open; call it first")
        return list(self._built.values())[-1].get_source(fmt)
