"""Maps workload keys to declarations: functions by name, and declarations by key. Source: TVM 0.9, `auto_scheduler.workload_registry`.

A log identifies a workload by its key. Resolving it only calls functions registered here, with plain numbers and strings; a log cannot run anything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import TypeVar, cast, overload

from ansor.compat.auto_scheduler.operator_order import topological
from ansor.compat.auto_scheduler.workload_key import decode_workload_key, parse_workload_key
from ansor.compat.common.log_files import put
from ansor.errors import AnsorError, DeclarationError, RecordError
from ansor.support.json_values import Json, parse, refuse
from ansor.tasks import workloads as tasks
from ansor.tasks.declared import tensors_of
from ansor.tasks.workloads import WorkloadFunction
from ansor.te.declaration_json import declaration_from_json, declaration_to_json
from ansor.te.tensor import Tensor, placeholder

F = TypeVar("F", bound=WorkloadFunction)
_declarations: dict[str, tuple[Tensor, ...]] = {}
_serialized: dict[str, WorkloadFunction] = {}


class Registry(MutableMapping[str, object]):
    """Functions that return tensors, by name, and declarations, by key."""

    def __getitem__(self, key: str) -> object:
        return _declarations[key] if key in _declarations else tasks.find_workload(key)

    def __setitem__(self, key: str, value: object) -> None:
        if callable(value):
            tasks.register_workload(key, override=True)(value)
        else:
            register_workload_tensors(key, cast("Sequence[Tensor]", value))

    def __delitem__(self, key: str) -> None:
        if key in _declarations:
            del _declarations[key]
        else:
            tasks.forget_workload(key)

    def __iter__(self) -> Iterator[str]:
        return iter([*_declarations, *tasks.workload_names()])

    def __len__(self) -> int:
        return len(_declarations) + len(tasks.workload_names())

    def __contains__(self, key: object) -> bool:
        return key in _declarations or key in tasks.workload_names()


WORKLOAD_FUNC_REGISTRY = Registry()


@overload
def register_workload(func_name: F, f: None = None, override: bool = False) -> F: ...


@overload
def register_workload(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...


@overload
def register_workload(func_name: str, f: F, override: bool = False) -> F: ...


def register_workload(func_name: str | F, f: F | None = None, override: bool = False) -> F | Callable[[F], F]:
    """Register a function that returns tensors, by default under its own name. Use it as a decorator, with or without a name, or call it with both arguments.

    Names are shared with `ansor.register_workload`. Raises DeclarationError if another function has the name, unless `override`.
    """
    if not isinstance(func_name, str):
        return tasks.register_workload(func_name, override=override)
    register = tasks.register_workload(func_name, override=override)
    return register if f is None else register(f)


def register_workload_tensors(workload_key: str, tensors: Sequence[Tensor], override: bool = True) -> str:
    """Register a declaration under a key. Raises DeclarationError if the key is already registered, unless `override`."""
    if workload_key in _declarations and not override:
        raise DeclarationError(f"asked to register the workload {workload_key:.200}, which exists already; pass override=True")
    _declarations[workload_key] = tuple(tensors)
    return workload_key


def make_workload_key(func: str | WorkloadFunction, args: Sequence[object] | object) -> str:
    """`["name", arg, ...]` for a registered function and its arguments. A tensor argument becomes ["TENSOR", shape, dtype].

    Raises DeclarationError if the function is not registered, or a key cannot hold an argument.
    """
    name = func if isinstance(func, str) else _name_of(func)
    tasks.find_workload(name)
    return json.dumps([name, *map(_plain, args if isinstance(args, list | tuple) else (args,))])


def _name_of(function: WorkloadFunction) -> str:
    name = tasks.workload_name(function)
    if name is None:
        shown = getattr(function, "__qualname__", repr(function))
        raise DeclarationError(f"asked for the key of the workload {shown}, which is not registered; decorate it with @auto_scheduler.register_workload")
    return name


def _plain(value: object) -> Json:
    if isinstance(value, Tensor):
        return ["TENSOR", list(value.shape), value.dtype]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise DeclarationError(f"asked for the key of a workload with the argument {value!r:.80}; a key holds numbers, strings, lists of them, and tensors")


def workload_key_to_tensors(workload_key: str) -> tuple[Tensor, ...]:
    """The declaration of a key: the one registered under it, or the result of the function it names.

    Shapes in keys of hashed workloads may be lists or flattened. Raises DeclarationError for an unknown key.
    """
    if workload_key in _declarations:
        return _declarations[workload_key]
    wanted = decode_workload_key(workload_key)
    same = [tensors for key, tensors in _declarations.items() if decode_workload_key(key) == wanted]
    if same:
        return same[0]
    key = parse_workload_key(workload_key)
    if key.is_hash:
        raise DeclarationError(f"asked for the workload {workload_key:.200}, a declaration that is not registered; call register_workload_tensors")
    function = tasks.find_workload(key.name)
    try:
        found = function(*map(_argument, key.args))
    except AnsorError:
        raise
    except Exception as error:  # user code, called with arguments from a log
        what = f"{type(error).__name__}: {error}"
        raise DeclarationError(f"asked for the workload {workload_key:.200}, but {key.name} raises {what}; check its arguments") from error
    return tensors_of(found, f"workload {key.name}")


def _argument(value: Json) -> object:
    if isinstance(value, tuple) and len(value) == 3 and value[0] == "TENSOR":
        _, shape, dtype = value
        if isinstance(shape, tuple) and isinstance(dtype, str):
            return placeholder(tuple(int(extent) for extent in shape if isinstance(extent, int)), dtype)
    return value


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, Json]:
    """A key and its declaration as data; None instead of a declaration for a key that names a function.

    Raises DeclarationError if the key is not registered.
    """
    if workload_key in _declarations:
        tensors = _declarations[workload_key]
        return workload_key, declaration_to_json(tensors, topological(tensors))
    name = parse_workload_key(workload_key).name
    _serialized[name] = tasks.find_workload(name)
    return workload_key, None


def deserialize_workload_registry_entry(data: tuple[str, Json]) -> None:
    """Register a serialised entry. Never imports a function: raises DeclarationError for one that this process has neither registered nor serialised."""
    key, fields = data
    if fields is None:
        name = parse_workload_key(key).name
        if name in _serialized and not tasks.is_registered(name):
            tasks.register_workload(name)(_serialized[name])
        tasks.find_workload(name)
    elif key not in _declarations:
        register_workload_tensors(key, declaration_from_json(fields))


def save_workload_func_registry(filename: str | Path) -> None:
    """Write every declaration registered under a key to a file of JSON lines. Raises RecordError if it cannot be written."""
    lines = [json.dumps(serialize_workload_registry_entry(key)) for key in _declarations]
    put(filename, "".join(f"{line}\n" for line in lines).encode(), "the workloads")


def load_workload_func_registry(filename: str | Path) -> None:
    """Register the declarations from a file of `save_workload_func_registry`. Executes nothing in the file. Raises RecordError for any other file."""
    try:
        lines = Path(filename).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"the workloads cannot be read from {filename}: {error}") from error
    for line in lines:
        fields = parse(line)
        if not isinstance(fields, list) or len(fields) != 2 or not isinstance(fields[0], str):
            refuse("it is not [key, declaration]")
        deserialize_workload_registry_entry((fields[0], fields[1]))


def is_registered(workload_key: str) -> bool:
    """Whether a key is registered."""
    try:
        workload_key_to_tensors(workload_key)
    except AnsorError:
        return False
    return True
