"""A knob: a table of values with a number of outputs, defined over axes.

Each kind of table has its own module: `split`, `reorder`, `annotate`; a plain list of values needs none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias, runtime_checkable

from ansor.errors import ConfigError
from ansor.templates.entities import Entity

_numbers = count()


@dataclass(frozen=True, eq=False)
class TransformSpace:
    """All values of one knob, in order. `num_output`: the number of axes it produces. Two knobs are never equal, even with the same values."""

    policy: str
    num_output: int
    entities: tuple[Entity, ...]

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Entity:
        return self.entities[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__.removesuffix('Space')}(policy={self.policy}) len={len(self)}"


@dataclass(frozen=True, eq=False, repr=False)
class OtherOptionSpace(TransformSpace):
    """The values of `define_knob`."""


@runtime_checkable
class Loop(Protocol):
    """The required attributes of a declaration's axis."""

    @property
    def name(self) -> str: ...

    @property
    def extent(self) -> int: ...


class VirtualAxis:
    """An axis to define knobs over, from a length, a declaration's axis, or another virtual axis. Raises ConfigError for anything else.

    `length`: iterations; `name`: that of the declaration's axis, or a unique one.
    """

    def __init__(self, var: "int | Loop | VirtualAxis", name: str | None = None) -> None:
        self.length, found = _measured(var)
        self.name = found or name or f"axis_{next(_numbers)}"

    def __repr__(self) -> str:
        return f"vaxis({self.name})"


@dataclass(frozen=True)
class Axis:
    """Output `index` of a knob, for defining further knobs. `space` is None while a single configuration is instantiated."""

    space: TransformSpace | None
    index: int


AnyAxis: TypeAlias = int | Loop | VirtualAxis | Axis


def length_of(axis: AnyAxis, asked: str) -> int:
    """Iterations of the axis that a knob is defined over. Raises ConfigError for the output of another knob, whose length depends on the configuration."""
    if isinstance(axis, Axis):
        raise ConfigError(f"asked for {asked} over an output of another knob, whose length differs between configurations; give the axis itself or a length")
    return VirtualAxis(axis).length


def place_of(axis: object, axes: Sequence[object], asked: str) -> int:
    """The index of `axis` itself in `axes`. Raises ConfigError if it is not there."""
    for place, other in enumerate(axes):
        # `==` between axes of a declaration builds an expression, so compare their identities.
        if axis is other or (isinstance(axis, Axis | int) and isinstance(other, Axis | int) and axis == other):
            return place
    raise ConfigError(f"asked for {asked} with {axis!r}, which is not among its axes {list(axes)}; name only axes of the knob")


def divisors(n: int) -> list[int]:
    """All divisors of n >= 1, ascending."""
    small = [i for i in range(1, math.isqrt(n) + 1) if n % i == 0]
    return small + [n // i for i in reversed(small) if i * i != n]


def _measured(var: object) -> tuple[int, str]:
    if isinstance(var, VirtualAxis):
        return var.length, ""
    length, name = (var.extent, var.name) if isinstance(var, Loop) else (var, "")
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        raise ConfigError(f"asked for an axis of {var!r}; give an extent of at least 1, an axis of a declaration, or cfg.axis(...)")
    return length, name
