"""A configuration that keeps splits open until the template reads their sizes, so that one run of a template covers many configurations."""

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
    """A configuration of a space in which only the knobs in `digits` have a fixed value.

    Other splits become open choices when they are applied. `looked_at`: the knobs whose values the template read, in order. A knob outside `digits` shows
    its first value when read, so the run covers only that value.
    """

    def __init__(self, space: ConfigSpace, digits: Mapping[str, int]) -> None:
        values = {name: knob[digits.get(name, 0)] for name, knob in space.space_map.items()}
        super().__init__(HANDMADE, None, values)
        self.looked_at: dict[str, None] = {}
        for name, knob in space.space_map.items():
            if isinstance(knob, SplitSpace) and name not in digits:
                values[name] = _OpenSplit(name, knob, self.looked_at)
        self._entities = _ReadRecorder(values, self.looked_at)


class _ReadRecorder(dict[str, Entity]):
    """A dict of the knobs' values that records which names are read. Open splits record their own reads."""

    def __init__(self, values: Mapping[str, Entity], looked_at: dict[str, None]) -> None:
        super().__init__(values)
        self._looked_at = looked_at

    def __getitem__(self, name: str) -> Entity:
        found = super().__getitem__(name)
        if not isinstance(found, _OpenSplit):
            self._looked_at[name] = None
        return found

    def items(self) -> ItemsView[str, Entity]:  # type: ignore[override]  # the class that dict returns has no name
        return {name: self[name] for name in self}.items()

    def values(self) -> ValuesView[Entity]:  # type: ignore[override]  # the class that dict returns has no name
        return {name: self[name] for name in self}.values()


class _OpenSplit(SplitEntity):
    """A split that becomes an open choice of the schedule it is applied to, with all values of its knob."""

    def __init__(self, name: str, knob: SplitSpace, looked_at: dict[str, None]) -> None:
        for key, value in (("_name", name), ("_knob", knob), ("_looked_at", looked_at)):
            object.__setattr__(self, key, value)

    _name: str
    _knob: SplitSpace
    _looked_at: dict[str, None]

    @property
    def _size(self) -> tuple[int, ...]:
        self._looked_at[self._name] = None  # records the read
        first = self._knob[0]
        assert isinstance(first, SplitEntity)
        return tuple(first.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitEntity) and self.size == other.size

    def __hash__(self) -> int:
        return hash(self._size)

    def apply(self, s: Schedule, op: Scheduled, axis: AnyLoop) -> list[AnyLoop]:
        """Split the axis by an open choice. Reading one of its numbers before the choice is made is recorded like any other read of the sizes."""
        if self._knob.num_output < 2:
            return [axis]
        s.leave_open(split_choice(self._name, self._knob), lambda: self._size[1:])
        return list(s[op].split_into(axis, self._name, self._knob.num_output))


def split_choice(name: str, knob: SplitSpace) -> Choice:
    """The inner sizes of a split knob as a choice: int64 [values, outputs - 1], in the knob's order."""
    table = np.array([entity.size[1:] for entity in knob.entities if isinstance(entity, SplitEntity)], np.int64)
    return Choice(name, table, "tile", None, knob.product)
