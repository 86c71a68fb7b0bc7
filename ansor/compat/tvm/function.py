"""The result of `tvm.build`: a function that writes its results into the arrays it is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray as NumpyArray

from ansor.codegen.source import ALIGNMENT
from ansor.compat.tvm.benchmark import BenchmarkResult, timed
from ansor.compat.tvm.device import Device
from ansor.compat.tvm.nd import NDArray
from ansor.errors import MeasureError
from ansor.measure import kernel_files
from ansor.measure.kernel import Kernel

Array = NumpyArray[np.generic]
Given = NDArray | Array | float


class Module:
    """A module that holds one function: itself."""

    entry_name: str

    @property
    def entry_func(self) -> Self:
        """The function, the only one in this module."""
        return self

    def __getitem__(self, name: str) -> Self:
        """The function of that name. Raises AttributeError for any name but its own."""
        if name not in (self.entry_name, "main", "default_function"):
            raise AttributeError(f"asked for the function {name!r} of a module that holds {self.entry_name!r}")
        return self


class Function(Module):
    """A kernel in destination-passing style: `func(a, b, c)` reads a and b and writes c, in the order of the arguments it was built with.

    kernel: our kernel, which returns its results instead; mcpu: the processor it was built for; numbers: position of a number argument -> the only
    number allowed there.
    """

    def __init__(self, kernel: Kernel, mcpu: str = "native", numbers: Mapping[int, int] | None = None) -> None:
        self.kernel, self.mcpu = kernel, mcpu
        self.numbers = dict(numbers or {})
        self.entry_name = kernel.code.entry

    def __call__(self, *args: Given | int) -> None:
        """Run once. Raises TypeError or ValueError for a wrong number of arguments, a wrong shape or dtype."""
        wanted = self.kernel.arguments
        args = self._without_numbers(args)
        if len(args) != len(wanted):
            names = ", ".join(argument.name for argument in wanted)
            raise TypeError(f"{self.entry_name} takes {len(wanted)} arguments, including outputs ({names}), but found {len(args)}")
        arrays = self._arrays(args)
        outputs = [array for array, argument in zip(arrays, wanted, strict=True) if argument.role == "output"]
        self.kernel(*(array for array, argument in zip(arrays, wanted, strict=True) if argument.role != "output"), out=outputs)

    def _arrays(self, args: tuple[Given, ...]) -> list[Array]:
        return [_memory(arg, argument.dtype) for arg, argument in zip(self._without_numbers(args), self.kernel.arguments, strict=True)]

    def _without_numbers(self, args: tuple[Given | int, ...]) -> tuple[Given, ...]:
        """The arguments without numbers. Raises ValueError if a number differs from the one that the function was built for."""
        if self.numbers and len(args) == len(self.kernel.arguments) + len(self.numbers):
            for place, number in self.numbers.items():
                if args[place] != number:
                    raise ValueError(f"{self.entry_name} was built for {number} as argument {place}, but found {args[place]}; build it for that size")
            return tuple(arg for place, arg in enumerate(args) if place not in self.numbers)
        return args

    def time_evaluator(
        self, func_name: str, dev: Device | None = None, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0, cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1, f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:  # fmt: skip
        """Return a function that takes the same arguments, times calls, and returns the seconds of one call: `repeat` means of `number` calls each, after one
        untimed call. `number` is raised until a repeat takes `min_repeat_ms` milliseconds of wall time.

        `f_preproc` is not called. Raises AttributeError for a `func_name` other than its own.
        """
        function = self[func_name]

        def evaluate(*args: Given | int) -> BenchmarkResult:
            function(*args)  # checks the arguments
            call = function._unchecked(function._arrays(args))
            return timed(call, number, repeat, min_repeat_ms / 1e3, lambda: time.sleep(cooldown_interval_ms / 1e3), repeats_to_cooldown)

        return evaluate

    def _unchecked(self, arrays: Sequence[Array]) -> Callable[[], None]:
        """A call without overhead if the kernel can use the arrays directly, so that its time is that of the kernel."""
        plain = all(argument.as_given for argument in self.kernel.arguments)
        if plain and all(array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0 for array in arrays):
            addresses = [array.ctypes.data for array in arrays]
            return lambda: self.kernel.run_pointers(addresses)
        return lambda: self(*arrays)

    def get_source(self, fmt: str = "c") -> str:
        """The C source text."""
        return self.kernel.source

    def export_library(self, file_name: str | Path, *, fcompile: object = None, addons: object = None, workspace_dir: object = None, **kwargs: object) -> None:
        """Write the function as a shared library for `tvm.runtime.load_module`. The other arguments are ignored.

        Raises MeasureError unless the name ends in .so.
        """
        path = Path(file_name)
        if path.suffix not in kernel_files.LIBRARY:
            raise MeasureError(f"asked to export a library as {path.name}; give a name that ends in {kernel_files.LIBRARY[0]}")
        kernel_files.export_library(self.kernel, path)

    def save(self, file_name: str | Path, fmt: str = "") -> Path:
        """Write the function in the format of the suffix or of `fmt`: `.c` source, `.o` object file for `contrib.cc.create_shared`, `.so` shared library.

        A name without a suffix is a folder, for `ansor.Kernel.load`. Raises MeasureError for other suffixes, ToolchainError with the compiler's output.
        """
        path = Path(file_name)
        kernel_files.save(self.kernel, path if not fmt or path.suffix else path.with_suffix(f".{fmt}"), self.mcpu)
        return path

    def __repr__(self) -> str:
        return f"Function({self.entry_name}: {', '.join(argument.name for argument in self.kernel.arguments)})"


def _memory(given: Given, dtype: str) -> Array:
    """The argument as an array. Numbers become arrays without dimensions."""
    return given.memory if isinstance(given, NDArray) else np.asarray(given, dtype) if isinstance(given, int | float) else given
