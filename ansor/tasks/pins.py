"""Pins fix parts of sketches, while the search finds the rest.

    Pin("C*.j", (..., 16))          the innermost length of the tile is 16, the others are free
    Pin("C*.j", (None, 4, {8, 16})) one free length, one of 4, one of 8 or 16
    Pin("C.vector", False)          no vectors
    Pin("C.CacheWrite")             only sketches with that step; Pin("C.CacheWrite", False): only those without

Names are those that sketches print: names of choices, and of steps prefixed with their stage. `*` matches any part of a name. Rows of sketches keep their
meaning: runs with and without pins share records, as far as the pins allow.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ScheduleError
from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Sketch
from ansor.support.text import counted
from ansor.tasks.origins import origin_of
from ansor.tasks.sketch_space import SketchSpace

Part: TypeAlias = "int | None | EllipsisType | Collection[int]"
"""One number of a choice: a given number, one of several, any number (None), or any count of any numbers (`...`)."""

Mask: TypeAlias = NDArray[np.bool_]

MANY = 12
"""The most values that a message lists."""


@dataclass(frozen=True)
class Pin:
    """name: what to fix, with `*` for any part of the name; value: the value to fix it to.

    A choice is fixed to a number, to one of several, to a tuple of numbers (each a `Part`), or to False (0) or True (anything else). A step is fixed to be
    present or absent. A sketch without the name passes if the value is False, and is dropped otherwise. Pins on names that only templates have do not
    affect the rules' sketches, and vice versa.
    """

    name: str
    value: bool | int | tuple[Part, ...] | Set[int] | range = True

    def __post_init__(self) -> None:
        value: object = self.value
        parts = value if isinstance(value, tuple) else (value,)
        if not isinstance(self.name, str) or not all(map(_is_part, parts)) or value is None or value is ...:
            raise ScheduleError(
                f"asked to pin {self.name!r} to {value!r}; give a name, and True, False, a number, several in a set, or a tuple with one of these, "
                "None or ... for each number of the choice"
            )
        if isinstance(self.value, tuple) and sum(part is ... for part in self.value) > 1:
            raise ScheduleError(f"asked to pin {self}; give `...` once, and None for each other number that is free")

    def allows(self, sketch: Sketch) -> dict[int, Mask] | None:
        """Column -> which values of the choice remain; None when the sketch is dropped."""
        masks = {k: self._values(choice) for k, choice in enumerate(sketch.choices) if self._names(choice.name)}
        has_step = any(self._names(step_name) for step_name in step_names(sketch))
        if not all(mask.any() for mask in masks.values()):
            return None
        if not masks and has_step != bool(self.value):
            return None
        return masks

    def matches(self, sketch: Sketch) -> bool:
        """Whether the sketch has a choice or step that the name matches."""
        return any(map(self._names, (*step_names(sketch), *(choice.name for choice in sketch.choices))))

    def takes(self, count: int) -> bool:
        """Whether a choice of that many numbers can have such a value."""
        if isinstance(self.value, bool):
            return True
        parts = self.value if isinstance(self.value, tuple) else (self.value,)
        return len(parts) - 1 <= count if ... in parts else len(parts) == count

    def _names(self, name: str) -> bool:
        return fnmatchcase(name, self.name)

    def _values(self, choice: Choice) -> Mask:
        table = choice.table
        if isinstance(self.value, bool):
            found: Mask = (table != 0).any(axis=1) == self.value
            return found
        wanted: list[Part] = list(self.value) if isinstance(self.value, tuple) else [self.value]
        if ... in wanted:
            place = wanted.index(...)
            wanted[place : place + 1] = [None] * max(0, table.shape[1] - len(wanted) + 1)
        if len(wanted) != table.shape[1]:
            return np.zeros(len(table), np.bool_)
        fits = np.ones(len(table), np.bool_)
        for part, column in zip(wanted, table.T, strict=True):
            if isinstance(part, Collection):
                fits &= np.isin(column, list(part))
            elif part is not None:
                fits &= column == part
        return fits

    def __str__(self) -> str:
        return f"{self.name} to {self.value}".replace("Ellipsis", "...")


def _is_part(part: object) -> bool:
    numbers = part if isinstance(part, Set | range | list | tuple) else (part,)
    return part is None or part is ... or all(isinstance(number, Integral) for number in numbers)


def pinned(spaces: Sequence[SketchSpace], pins: Sequence[Pin]) -> list[SketchSpace]:
    """The part of each sketch that the pins allow; sketches without any allowed program are dropped.

    Raises ScheduleError, which says what can be pinned, when no sketch has the name or value of a pin, or when the pins together leave no program.
    """
    left, before = list(spaces), list[Pin]()
    for pin in pins:
        if not isinstance(pin, Pin):
            raise ScheduleError(f"asked to pin {pin!r}; give a list of ansor.Pin(name, value)")
        left = _pinned(left, pin, spaces, before)
        before.append(pin)
    return left


def _pinned(spaces: Sequence[SketchSpace], pin: Pin, all_spaces: Sequence[SketchSpace], before: Sequence[Pin]) -> list[SketchSpace]:
    known = {origin_of(space.algorithm) for space in all_spaces if pin.matches(space.sketch)}
    if not known:
        raise ScheduleError(f"asked to pin {pin}, but no sketch has that name; the names are {', '.join(pinnable(all_spaces))}")
    left = []
    for space in spaces:
        masks = pin.allows(space.sketch) if origin_of(space.algorithm) in known else {}
        narrowed = space.narrowed(masks) if masks is not None else None
        if narrowed is not None:
            left.append(narrowed)
    if not any(origin_of(space.algorithm) in known for space in left):
        _check_count(pin, all_spaces)
        values = [f"{name} has {text}" for name, text in pinnable(all_spaces).items() if fnmatchcase(name, pin.name)]
        others = f" with {', '.join(map(str, before))}" if before else ""
        raise ScheduleError(f"asked to pin {pin}, but no program is left{others}; {'; '.join(values)}")
    return left


def _check_count(pin: Pin, spaces: Sequence[SketchSpace]) -> None:
    """Raise ScheduleError if every choice with the name of a pin has another count of numbers than its value."""
    choices = (choice for space in spaces for choice in space.sketch.choices if fnmatchcase(choice.name, pin.name))
    counts = list(dict.fromkeys((choice.name, choice.table.shape[1]) for choice in choices))
    if not counts or any(pin.takes(count) for _, count in counts):
        return
    parts = pin.value if isinstance(pin.value, tuple) else (pin.value,)
    given = counted(sum(part is not ... for part in parts), "number")
    there = ", ".join(f"{name} has {count}" for name, count in counts)
    raise ScheduleError(f"asked to pin {pin}, which is {given}, but {there}; give a tuple with as many, None for a free one, `...` for all others")


def pinnable(spaces: Sequence[SketchSpace]) -> dict[str, str]:
    """What can be pinned: the names of choices, with their values as text, and the names of steps."""
    values: dict[str, list[set[int]]] = {}
    for space in spaces:
        for choice in space.sketch.choices:
            columns = [set(column.tolist()) for column in choice.table.T]
            known = values.setdefault(choice.name, columns)
            values[choice.name] = [one | other for one, other in zip(known, columns, strict=False)]
    found = {name: ", then ".join(map(_listed, columns)) for name, columns in values.items()}
    return found | {name: "True or False" for space in spaces for name in step_names(space.sketch)}


def step_names(sketch: Sketch) -> list[str]:
    """The stage and kind of each step, `C.CacheWrite`, each once."""
    return list(dict.fromkeys(f"{step.stage}.{type(step).__name__}" for step in sketch.steps))


def _listed(numbers: set[int]) -> str:
    ordered = sorted(numbers)
    return " or ".join([*map(str, ordered[:MANY]), *(["..."] if len(ordered) > MANY else [])])
