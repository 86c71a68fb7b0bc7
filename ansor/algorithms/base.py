"""Alternatives: other declarations of the same computation, and the registry of algorithms that offer them.

A task searches the sketches of its own declaration and of its alternatives in one run. An algorithm is a function that looks at a declaration and yields
alternatives, registered under a name:

    @register_algorithm("my_algorithm")
    def mine(dag):
        if fits(dag):
            yield Alternative("my_algorithm", Dag(...))

The computation, its key and the reference for verification stay those of the task's own declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ansor.codegen.source import Change, changed_dtype
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag

DIRECT = ""
"""The name of a task's own declaration."""


@dataclass(frozen=True, eq=False, repr=False)
class Alternative:
    """Another declaration of a workload.

    name: its name in records; unique among the alternatives of a workload.
    dag: inputs and outputs like the workload's own, in name, order and dtype. Transformed constants may have another shape and dtype; inputs and
        outputs may have any shape with the same number of elements, in the same memory order.
    transforms: the change made ahead of time to a constant, by name; the placeholder in `dag` is the result.
    tolerance: the allowed rounding error, as a multiple of that of the workload's own declaration.
    """

    name: str
    dag: Dag
    transforms: Mapping[str, Change] = field(default_factory=dict)
    tolerance: float = 1.0

    def __repr__(self) -> str:
        return f"Alternative({self.name or 'the declaration'}: {self.dag!r})"


Algorithm = Callable[[Dag], Iterable[Alternative]]
"""Looks at a workload and yields alternatives that are worth measuring; nothing where it does not apply."""

_algorithms: dict[str, Algorithm] = {}
_of_targets: set[str] = set()


def register_algorithm(name: str, *, everywhere: bool = True) -> Callable[[Algorithm], Algorithm]:
    """A decorator that registers an algorithm for all tasks; with everywhere=False, only for targets that name it (`Kind.codegen.algorithms`).

    Raises DeclarationError when another function has the name.
    """

    def register(function: Algorithm) -> Algorithm:
        known = _algorithms.get(name)
        if known is not None and known.__code__ is not function.__code__:
            raise DeclarationError(f"asked to register algorithm {name!r}, which exists already; choose another name")
        _algorithms[name] = function
        if not everywhere:
            _of_targets.add(name)
        return function

    return register


def registered(of_target: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of the algorithms for every target, and of those that `of_target` adds."""
    return tuple(name for name in _algorithms if name not in _of_targets or name in of_target)


def alternatives_of(dag: Dag, algorithms: Sequence[str | Algorithm] | None = None) -> tuple[Alternative, ...]:
    """The alternatives that `algorithms` (names or functions; all that are registered by default) offer for a workload.

    Raises DeclarationError for an unknown name, and for an alternative that does not compute the same arrays.
    """
    found: dict[str, Alternative] = {}
    for algorithm in registered() if algorithms is None else algorithms:
        for alternative in algorithm_named(algorithm)(dag):
            check_alternative(dag, alternative)
            if alternative.name == DIRECT or alternative.name in found:
                raise DeclarationError(f"two alternatives of one workload are called {alternative.name!r}; give each a unique name")
            found[alternative.name] = alternative
    return tuple(found.values())


def algorithm_named(algorithm: str | Algorithm) -> Algorithm:
    """The algorithm of that name; a function is one itself. Raises DeclarationError for an unknown name."""
    if callable(algorithm):
        return algorithm
    if not isinstance(algorithm, str) or algorithm not in _algorithms:
        raise DeclarationError(f"asked for algorithm {algorithm!r}, which is not registered; registered are: {', '.join(_algorithms)}")
    return _algorithms[algorithm]


def check_alternative(dag: Dag, alternative: Alternative) -> None:
    """Raise DeclarationError when an alternative does not take and return the same arrays."""
    wanted = [(tensor.name, tensor.dtype, tensor.is_placeholder, tensor.constant, tensor.shape) for tensor in dag.tensors]
    found = []
    for tensor, own in zip(alternative.dag.tensors, dag.tensors, strict=False):
        transform = alternative.transforms.get(tensor.name)
        fits = transform is None or (own.constant and transform.shape_of(own.shape) == tensor.shape)
        same = fits and transform is not None or not own.constant and own.size == tensor.size
        dtype = own.dtype if transform is not None and tensor.dtype == changed_dtype(transform, own.dtype) else tensor.dtype
        found.append((tensor.name, dtype, tensor.is_placeholder, tensor.constant, own.shape if same else tensor.shape))
    if found != wanted or len(alternative.dag.tensors) != len(dag.tensors):
        transformed = f" (transformed: {', '.join(alternative.transforms)})" if alternative.transforms else ""
        raise DeclarationError(
            f"alternative {alternative.name!r} takes and gives {list(alternative.dag.tensors)}{transformed}, "
            f"but the workload {list(dag.tensors)}; declare the same names, dtypes and shapes in the same order"
        )
