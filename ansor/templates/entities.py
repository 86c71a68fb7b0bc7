"""The value of one knob in one configuration. Values are immutable; lists read from them are copies.

`apply` applies a value to the loops of a stage, in a schedule of `ansor.manual`. Source: AutoTVM 0.9, `autotvm.task.space`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ansor.errors import ConfigError, InstantiationError
from ansor.manual.loop import AnyLoop
from ansor.manual.schedule import Schedule, Scheduled


class SupportsRaiseError(Protocol):
    """The part of a configuration that its values need."""

    def raise_error(self, msg: str) -> None:
        """Mark the configuration as impossible."""
        ...


@dataclass(frozen=True, init=False, repr=False)
class SplitEntity:
    """Sizes of the loops that an axis is split into, outermost first. A first size of -1 stands for what the other sizes leave of the axis."""

    _size: tuple[int, ...]

    def __init__(self, size: Sequence[int]) -> None:
        object.__setattr__(self, "_size", tuple(size))

    @property
    def size(self) -> list[int]:
        """The sizes, as a new list."""
        return list(self._size)

    def apply(self, s: Schedule, op: Scheduled, axis: AnyLoop) -> list[AnyLoop]:
        """Split the axis, and return the loops, outermost first. The outermost loop always covers the axis, whatever its recorded size."""
        inner = self._size[1:]
        return list(s[op].split_into(axis, inner)) if inner else [axis]

    def __repr__(self) -> str:
        return repr(self.size)


@dataclass(frozen=True, init=False, repr=False)
class ReorderEntity:
    """A new order of axes: the axis at position i is the former `perm[i]`."""

    _perm: tuple[int, ...]

    def __init__(self, perm: Sequence[int]) -> None:
        object.__setattr__(self, "_perm", tuple(perm))

    @property
    def perm(self) -> list[int]:
        """The permutation, as a new list."""
        return list(self._perm)

    def apply(self, s: Schedule, op: Scheduled, axes: Sequence[AnyLoop]) -> list[AnyLoop]:
        """Reorder the loops, and return them in the new order. Raises ConfigError if their number does not match."""
        _check_number(axes, self._perm, "order")
        order = [axes[place] for place in self._perm]
        s[op].reorder(*order)
        return order

    def __repr__(self) -> str:
        return repr(self.perm)


@dataclass(frozen=True, init=False, repr=False)
class AnnotateEntity:
    """One annotation per axis, by name; for the policy `locate_cache`, the indices of the axes that caches are attached to."""

    _anns: tuple[str | int, ...]

    def __init__(self, anns: Sequence[str | int]) -> None:
        object.__setattr__(self, "_anns", tuple(anns))

    @property
    def anns(self) -> list[str | int]:
        """The annotations, as a new list."""
        return list(self._anns)

    def apply(
        self,
        s: Schedule,
        op: Scheduled,
        axes: Sequence[AnyLoop],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Collection[int] | None = None,
        cfg: SupportsRaiseError | None = None,
        source: Sequence[Scheduled] | None = None,
    ) -> list[AnyLoop]:
        """Annotate the loops, and return them; a fused loop takes the position of its last part.

        axis_lens: iterations of each loop, checked against max_unroll (longest loop to unroll) and vec_size (allowed vector lengths); if one is out of bounds,
        `cfg.raise_error` is called. source: for the policy locate_cache, the stages to compute at these loops, one for each.
        Without `cfg`, raises InstantiationError for a length out of bounds. Raises ScheduleError for GPU threads.
        """
        if source is not None:
            for stage, place in zip(source, self._anns, strict=True):
                s[stage].compute_at(s[op], axes[int(place)])
            return list(axes)
        _check_number(axes, self._anns, "annotate")
        found = list(axes)
        for place, ann in enumerate(self._anns):
            length = axis_lens[place] if axis_lens is not None else None
            if ann == "unroll":
                _check_length(length, length is None or max_unroll is None or length <= max_unroll, "unrolled", cfg)
                s[op].unroll(found[place])
            elif ann == "vec":
                _check_length(length, length is None or vec_size is None or length in vec_size, "run as vectors", cfg)
                s[op].vectorize(found[place])
            elif ann == "fuse":
                found[place + 1] = s[op].fuse(found[place], found[place + 1])
            elif ann != "none":
                s[op].bind(found[place], ann)
        return found

    def __repr__(self) -> str:
        return repr(self.anns)


@dataclass(frozen=True, repr=False)
class OtherOptionEntity:
    """A value from a list in the template. Only values that JSON can represent can be logged."""

    val: object

    def __repr__(self) -> str:
        return repr(self.val)


def _check_number(axes: Sequence[AnyLoop], values: Sequence[object], verb: str) -> None:
    if len(axes) != len(values):
        raise ConfigError(f"asked to {verb} {len(axes)} loops by {list(values)}; give the {len(values)} loops that the knob was defined over")


def _check_length(length: int | None, allowed: bool, become: str, cfg: SupportsRaiseError | None) -> None:
    if allowed:
        return
    reason = f"a loop of {length} iterations must not be {become}"
    if cfg is None:
        raise InstantiationError(reason)
    cfg.raise_error(reason)


Entity: TypeAlias = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity


def same(one: Entity, other: Entity) -> bool:
    """Whether two values are equal. True, 1 and 1.0 differ, but a tuple equals the list that JSON makes of it."""
    if isinstance(one, OtherOptionEntity) and isinstance(other, OtherOptionEntity):
        return _typed(one.val) == _typed(other.val)
    return one == other


def _typed(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return type(value), value
