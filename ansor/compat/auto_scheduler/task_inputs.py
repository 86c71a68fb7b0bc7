"""Values of inputs that cannot be generated (indices, sparse structures), by workload and placeholder name.

Files named `{name}.{d0}_{d1}_{dtype}.npy` hold them as text: numbers separated by spaces. Source: TVM 0.9, `auto_scheduler.measure`, `search_task`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ansor.errors import RecordError
from ansor.te.tensor import Tensor

Array = NDArray[np.generic]
Check = Callable[..., Mapping[Tensor, str]]
"""Maps a list of tensors to the names of its placeholders."""

C = TypeVar("C", bound=Check)

_logger = logging.getLogger("auto_scheduler")
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, Array]] = {}
"""Workload key -> input name -> values."""

_checks: dict[str, Check] = {}


def register_task_input_buffer(workload_key: str, input_name: str, input_data: ArrayLike, overwrite: bool = False, save_to_file: bool = False) -> Array:
    """Register the values of a workload's input, and return the values in effect: without `overwrite`, logs a warning and keeps earlier ones.

    save_to_file: also write them to a file in the current folder.
    """
    known = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if not overwrite and (input_name in known or _file_of(input_name) is not None):
        _logger.warning("the input %s of %s has values already; overwrite=True replaces them", input_name, workload_key)
        return get_task_input_buffer(workload_key, input_name)
    known[input_name] = np.asarray(input_data)
    if save_to_file:
        path = Path(f"{input_name}.{'_'.join(map(str, (*known[input_name].shape, known[input_name].dtype)))}.npy")
        known[input_name].tofile(path, sep=" ")
    return known[input_name]


def get_task_input_buffer(workload_key: str, input_name: str) -> Array:
    """The values of an input: registered ones, or from a file in the current folder. Raises RecordError if there are none."""
    known = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name not in known:
        path = _file_of(input_name)
        if path is None:
            raise RecordError(f"asked for values of the input {input_name!r} of {workload_key:.200}, which has none; call register_task_input_buffer")
        known[input_name] = _read(path)
    return known[input_name]


@overload
def register_task_input_check_func(func_name: C, f: None = None, override: bool = False) -> C: ...


@overload
def register_task_input_check_func(func_name: str, f: None = None, override: bool = False) -> Callable[[C], C]: ...


@overload
def register_task_input_check_func(func_name: str, f: C, override: bool = False) -> C: ...


def register_task_input_check_func(func_name: str | C, f: C | None = None, override: bool = False) -> C | Callable[[C], C]:
    """Register a function that names unnamed placeholders: it maps tensors to {placeholder: name}. Use it as a decorator, or call it with both arguments."""

    def register(function: C) -> C:
        name = func_name if isinstance(func_name, str) else function.__qualname__
        if name in _checks and not override:
            raise RecordError(f"asked to register the input check {name!r}, which exists already; pass override=True")
        _checks[name] = function
        return function

    if not isinstance(func_name, str):
        return register(func_name)
    return register if f is None else register(f)


def input_values(workload_key: str, tensors: Sequence[Tensor], names: Sequence[str]) -> dict[str, Array]:
    """Values by placeholder name, for the inputs called `names`. Raises RecordError if a name is not that of a placeholder, or an input has no values."""
    if not names:
        return {}
    called = {tensor.name: tensor.name for tensor in tensors if tensor.is_placeholder}
    for check in _checks.values():
        called.update({name: tensor.name for tensor, name in check(tensors).items()})
    missing = [name for name in names if name not in called]
    if missing:
        raise RecordError(f"asked to measure with values for the inputs {', '.join(names)}, but the placeholders are {', '.join(called)}; "
                          f"rename {', '.join(missing)}, or register an input check function")  # fmt: skip
    return {called[name]: get_task_input_buffer(workload_key, name) for name in names}


def _file_of(name: str) -> Path | None:
    """The first file in the current folder that holds values of that name."""
    if Path(name).name != name:
        return None
    return next((path for path in sorted(Path().glob("*.npy")) if path.name.startswith(f"{name}.")), None)


def _read(path: Path) -> Array:
    *shape, dtype = path.name.removesuffix(".npy").rpartition(".")[2].split("_")
    try:
        return np.fromfile(path, dtype=dtype, sep=" ").reshape([int(extent) for extent in shape])
    except (OSError, TypeError, ValueError) as error:
        raise RecordError(f"asked for the values in {path}, which cannot be read: {error}; write them with register_task_input_buffer") from error
