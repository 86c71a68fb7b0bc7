"""The value of one knob in one configuration. Values never change; lists that are read from them are copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, init=False, repr=False)
class SplitEntity:
    """Sizes of the loops one axis becomes, outermost first. A first size of -1 is whatever the others leave of the axis."""

    _size: tuple[int, ...]

    def __init__(self, size: Sequence[int]) -> None:
        object.__setattr__(self, "_size", tuple(size))

    @property
    def size(self) -> list[int]:
        """The sizes, as a new list."""
        return list(self._size)

    def __repr__(self) -> str:
        return repr(self.size)


@dataclass(frozen=True, init=False, repr=False)
class ReorderEntity:
    """A new order of axes: the axis at place i is the one that was at `perm[i]`."""

    _perm: tuple[int, ...]

    def __init__(self, perm: Sequence[int]) -> None:
        object.__setattr__(self, "_perm", tuple(perm))

    @property
    def perm(self) -> list[int]:
        """The permutation, as a new list."""
        return list(self._perm)

    def __repr__(self) -> str:
        return repr(self.perm)


@dataclass(frozen=True, init=False, repr=False)
class AnnotateEntity:
    """One annotation for each axis, by name; for the policy `locate_cache` the numbers of the axes that caches are attached to."""

    _anns: tuple[str | int, ...]

    def __init__(self, anns: Sequence[str | int]) -> None:
        object.__setattr__(self, "_anns", tuple(anns))

    @property
    def anns(self) -> list[str | int]:
        """The annotations, as a new list."""
        return list(self._anns)

    def __repr__(self) -> str:
        return repr(self.anns)


@dataclass(frozen=True, repr=False)
class OtherOptionEntity:
    """A value from a list that the template's author gave; any value that JSON can hold if it is to be logged."""

    val: object

    def __repr__(self) -> str:
        return repr(self.val)


Entity: TypeAlias = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity


def same(one: Entity, other: Entity) -> bool:
    """Equal, with True and 1 and 1.0 told apart, and a tuple the same as the list that JSON makes of it."""
    if isinstance(one, OtherOptionEntity) and isinstance(other, OtherOptionEntity):
        return _typed(one.val) == _typed(other.val)
    return one == other


def _typed(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return type(value), value
