"""A sketch: steps with open numbers, and a table of values for each number. One program of a sketch is one row of small integers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.loops import Loops
from ansor.schedule.choice import Choice
from ansor.schedule.known_nests import KnownNests
from ansor.schedule.lower import Numbers, lower, lower_with
from ansor.schedule.state import State, initial_state
from ansor.schedule.steps import Json, Step
from ansor.support.html_text import table, unfolding

Rows = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """steps: the steps in order; choices: one per column of a candidate matrix."""

    dag: Dag
    steps: tuple[Step, ...] = ()
    choices: tuple[Choice, ...] = ()

    @cached_property
    def state(self) -> State:
        """The structure that the steps lead to."""
        begun: Sketch | None = self.__dict__.pop("_begun", None)
        state = initial_state(self.dag) if begun is None else begun.state
        for step in self.steps[0 if begun is None else len(begun.steps):]:
            state = step.apply(state)
        return state

    @cached_property
    def name(self) -> str:
        """A stable text that identifies the sketch and the meaning of its rows within its workload."""
        return f"[{','.join([*(step.json_text for step in self.steps), json.dumps(self._choices_json(), separators=(',', ':'))])}]"

    def to_json(self) -> list[Json]:
        """The steps, followed by a digest of the choices: a row means the same program only if all tables are the same."""
        return [*schedule_json(self.steps), self._choices_json()]

    def _choices_json(self) -> Json:
        digest = hashlib.sha256()
        for choice in self.choices:
            names = "".join(f"{name} {count} " for name, count in choice.numbers)
            digest.update(f"{choice.name} {names}{choice.table.shape} ".encode() + choice.table.astype("<i8").tobytes())
        return ["choices", digest.hexdigest()[:16]]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """int64 [columns]: number of values of each choice."""
        return np.asarray([choice.size for choice in self.choices], dtype=np.int64)

    def then(self, *steps: Step, choices: Sequence[Choice] = ()) -> Sketch:
        """The sketch with more steps and choices."""
        longer = Sketch(self.dag, (*self.steps, *steps), (*self.choices, *choices))
        begun = self if "state" in self.__dict__ else self.__dict__.get("_begun")
        if begun is not None:
            longer.__dict__["_begun"] = begun  # its state is known, so only the later steps are left to apply
        return longer

    def numbers(self, rows: Rows) -> Numbers:
        """Name of a number -> one array [n] per part."""
        return _joined(choice.named(list(choice.table[rows[:, k]].T)) for k, choice in enumerate(self.choices))

    def row_numbers(self, row: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """Name of a number -> its parts. Raises ScheduleError for a row that is not in the sketch."""
        if len(row) != len(self.choices) or any(not 0 <= gene < choice.size for gene, choice in zip(row, self.choices, strict=False)):
            raise ScheduleError(f"asked for row {list(row)} of a sketch whose {len(self.choices)} choices have {self.sizes.tolist()} values")
        return _joined(choice.named(choice.table[gene].tolist()) for gene, choice in zip(row, self.choices, strict=True))

    def lower_rows(self, rows: Rows) -> Loops:
        """Loop nests of a population: extents are arrays [n]."""
        return lower(self.state, self.numbers(rows))

    def lower_row(self, row: Sequence[int], name: str = "kernel", known: KnownNests | None = None) -> Loops:
        """Loop nests of one program. known: nests of others, of the same declaration."""
        numbers = self.row_numbers(row)
        return lower(self.state, numbers, name) if known is None else lower_with(known, self.state, numbers, name)

    def concrete_steps(self, row: Sequence[int]) -> tuple[Step, ...]:
        """The steps with all numbers filled in: a schedule."""
        numbers = self.row_numbers(row)
        return tuple(step.with_numbers(numbers) for step in self.steps)

    def __repr__(self) -> str:
        return f"Sketch({', '.join(one.name for one in self.dag.outputs)}: {len(self.steps)} steps, {len(self.choices)} open choices)"

    def _repr_html_(self) -> str:
        choices = [(one.name, one.kind, one.extent or "", one.size) for one in self.choices]
        return table(repr(self), ("choice", "kind", "extent", "values"), choices) + unfolding("steps", str(self))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) or "(as declared)"


def _joined(found: Iterable[dict[str, tuple[T, ...]]]) -> dict[str, tuple[T, ...]]:
    return {name: parts for one in found for name, parts in one.items()}


def schedule_json(steps: Sequence[Step]) -> list[Json]:
    """Steps as JSON."""
    return [step.to_json() for step in steps]
