"""Where stages read each other: every read of a body with its indices as sums of loop variables, looking through inlined stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansor.ir.linear import Linear, Opaque, of
from ansor.schedule.index_arithmetic import affine, is_index_arithmetic, signature
from ansor.schedule.state import Inlined, Stage, State
from ansor.te.expr import Axis, Cast, Const, Expr
from ansor.te.fold import postorder
from ansor.te.tensor import Read, Tensor

Environment = dict[Axis, Linear]


@dataclass(frozen=True, eq=False)
class Place:
    """Where a body is computed: for which stage, and the values of its axes there. All reads of an inlined stage at the same indices share one place."""

    stage: str
    values: Environment


@dataclass(frozen=True, eq=False)
class Reads:
    """What is read where. The first pass fills it, consumers first; nothing changes it afterwards.

    indices: the indices of each read at each place. entered: the inlined stage and place behind a read. inlined: stage -> what is inlined into it, by tensor
    and indices. readings: stage -> its readers and their indices. environments: where an index that depends on data is computed.
    """

    indices: dict[tuple[Place, int], tuple[Linear, ...]] = field(default_factory=dict)
    entered: dict[tuple[Place, int], tuple[Tensor, Place]] = field(default_factory=dict)
    inlined: dict[str, dict[tuple[object, ...], tuple[Tensor, Place]]] = field(default_factory=dict)
    readings: dict[str, list[tuple[str, tuple[Linear, ...]]]] = field(default_factory=dict)
    environments: dict[Opaque, Place] = field(default_factory=dict)

    def note(self, state: State, tensor: Tensor, place: Place) -> None:
        """Record the global indices at which a stage reads every other stage, looking through inlined stages."""
        open_bodies = [(place, iter(_reads_in_order(tensor)))]
        while open_bodies:
            place, waiting = open_bodies[-1]
            read = next(waiting, None)
            if read is None:
                open_bodies.pop()
                continue
            index = self.indices[place, id(read)] = tuple(index_of(i, place, self.environments) for i in read.indices)
            producer = producer_of(state, read.tensor.name)
            if producer is not None and isinstance(producer.placement, Inlined):
                known = self.inlined.setdefault(place.stage, {})
                key = (producer.name, *map(signature, index))
                if key not in known:
                    assert producer.tensor.compute is not None
                    inner = Place(place.stage, dict(zip(producer.tensor.compute.axes, index, strict=True)))
                    known[key] = producer.tensor, inner
                    open_bodies.append((inner, iter(_reads_in_order(producer.tensor))))
                self.entered[place, id(read)] = known[key]
            elif producer is not None:
                self.readings.setdefault(producer.name, []).append((place.stage, index))


def producer_of(state: State, name: str) -> Stage | None:
    """The stage that computes a tensor, None for an input."""
    return state[name] if name in state else None  # noqa: SIM401  # a State has no get


def index_of(expr: Expr, place: Place, environments: dict[Opaque, Place], known: dict[int, Linear] | None = None) -> Linear:
    """An integer expression as a sum of loop variables; other parts become opaque and are recorded with their place. known: earlier results, by id."""
    if isinstance(expr, Axis):
        return place.values[expr]
    known = {} if known is None else known
    for node in postorder(expr, lambda node: node.children if id(node) not in known and is_index_arithmetic(node) else ()):
        if id(node) not in known:
            known[id(node)] = _index_of_node(node, place, environments, known)
    return known[id(expr)]


def _index_of_node(expr: Expr, place: Place, environments: dict[Opaque, Place], known: Mapping[int, Linear]) -> Linear:
    if isinstance(expr, Const):
        return Linear((), int(expr.value))
    if isinstance(expr, Axis):
        return place.values[expr]
    if is_index_arithmetic(expr):
        found = known[id(expr.value)] if isinstance(expr, Cast) else affine(expr, *(known[id(child)] for child in expr.children))
        if found is not None:
            return found
    atom = Opaque(expr)
    environments[atom] = place
    return of(atom)


def _reads_in_order(tensor: Tensor) -> list[Read]:
    """The reads of the body, each once; reads inside the indices of a read come before it."""
    assert tensor.compute is not None
    return [node for node in postorder(tensor.compute.body) if isinstance(node, Read)]
