"""A configuration whose splits stay open as long as nobody looks at their sizes: how one run of a template stands for many of its configurations."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView

import numpy as np

from ansor.manual.loop import AnyLoop
from ansor.manual.schedule import Schedule, Scheduled
from ansor.schedule.choice import Choice
from ansor.templates.entities import Entity, SplitEntity
from ansor.templates.space import HANDMADE, ConfigEntity, ConfigSpace
from ansor.templates.split import SplitSpace


class OpenConfig(ConfigEntity):
    """A configuration of a space of which only the knobs in `digits` have their value.

    The other splits become open choices where they are applied. `looked_at`: the knobs whose values the template asked for, in that order; those that
    were not in `digits` showed their first value, so that what the template did stands for that one alone.
    """

    def __init__(self, space: ConfigSpace, digits: Mapping[str, int]) -> None:
        values = {name: knob[digits.get(name, 0)] for name, knob in space.space_map.items()}
        super().__init__(HANDMADE, None, values)
        self.looked_at: dict[str, None] = {}
        for name, knob in space.space_map.items():
            if isinstance(knob, SplitSpace) and name not in digits:
                values[name] = _OpenSplit(name, knob, self.looked_at)
        self._entities = _Noting(values, self.looked_at)


class _Noting(dict[str, Entity]):
    """The values of knobs, which notes whose was asked for; an open split notes that itself."""

    def __init__(self, values: Mapping[str, Entity], looked_at: dict[str, None]) -> None:
        super().__init__(values)
        self._looked_at = looked_at

    def __getitem__(self, name: str) -> Entity:
        found = super().__getitem__(name)
        if not isinstance(found, _OpenSplit):
            self._looked_at[name] = None
        return found

    def items(self) -> ItemsView[str, Entity]:  # type: ignore[override]  # the class it is in dict has no name
        return {name: self[name] for name in self}.items()

    def values(self) -> ValuesView[Entity]:  # type: ignore[override]  # the class it is in dict has no name
        return {name: self[name] for name in self}.values()


class _OpenSplit(SplitEntity):
    """A split that becomes an open choice of the schedule it is applied to, with all sizes of its knob."""

    def __init__(self, name: str, knob: SplitSpace, looked_at: dict[str, None]) -> None:
        for key, value in (("_name", name), ("_knob", knob), ("_looked_at", looked_at)):
            object.__setattr__(self, key, value)

    _name: str
    _knob: SplitSpace
    _looked_at: dict[str, None]

    @property
    def _size(self) -> tuple[int, ...]:
        self._looked_at[self._name] = None  # its reader is noted
        first = self._knob[0]
        assert isinstance(first, SplitEntity)
        return tuple(first.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitEntity) and self.size == other.size

    def __hash__(self) -> int:
        return hash(self._size)

    def apply(self, s: Schedule, op: Scheduled, axis: AnyLoop) -> list[AnyLoop]:
        """Split the axis by a choice that is open; a number that is asked for before it is made is noted like any other look at the sizes."""
        if self._knob.num_output < 2:
            return [axis]
        s.leave_open(split_choice(self._name, self._knob), lambda: self._size[1:])
        return list(s[op].split_into(axis, self._name, self._knob.num_output))


def split_choice(name: str, knob: SplitSpace) -> Choice:
    """The inner sizes of a split knob as a choice: int64 [values, outputs - 1], in the knob's order."""
    table = np.array([entity.size[1:] for entity in knob.entities if isinstance(entity, SplitEntity)], np.int64)
    return Choice(name, table, "tile", None, knob.product)
