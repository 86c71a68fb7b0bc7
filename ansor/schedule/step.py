"""The base of schedule steps. Each step is one class, which applies itself to a state, prints itself, and converts to JSON and back.

An open number of a step is the name of a choice (see `ansor.schedule.choice`); the step then belongs to a sketch.
`ansor.schedule.steps` lists all of them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

from ansor.errors import ScheduleError
from ansor.schedule.state import Amount, Lengths, State

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Step(ABC):
    """Base of all steps. `code` names the step in JSON; the fields follow it in order."""

    code: ClassVar[str] = ""
    stage: str

    @abstractmethod
    def apply(self, state: State) -> State:
        """The state after the step. Raises ScheduleError when it does not fit."""

    def to_json(self) -> list[Json]:
        """`[code, field, ...]`."""
        return [self.code, *(_plain(getattr(self, f.name)) for f in fields(self))]

    @cached_property
    def json_text(self) -> str:
        """The same as text. It is cached, since sketches share most of their steps."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    def with_numbers(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        """The step with open numbers filled in."""
        return self

    def __str__(self) -> str:
        given = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return f"{type(self).__name__}({given})"


STEPS: dict[str, type[Step]] = {}


def _plain(value: object) -> Json:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value  # type: ignore[return-value]  # fields hold plain values


def _tuples(value: Json) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def register(step: type[Step]) -> type[Step]:
    """Register a step for `step_from_json`. Raises ScheduleError when another step has its code."""
    if step.code in STEPS:
        raise ScheduleError(f"asked to register step {step.__name__} under code {step.code!r}, which {STEPS[step.code].__name__} has")
    STEPS[step.code] = step
    return step


def step_from_json(entry: Json) -> Step:
    """The step written by `to_json`. Raises ScheduleError for anything else."""
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], str) or entry[0] not in STEPS:
        raise ScheduleError(f"asked to read a step from {entry!r}; a step is [code, stage, ...] with a code of {', '.join(sorted(STEPS))}")
    kind = STEPS[entry[0]]
    given = [_tuples(value) for value in entry[1:]]
    names = [f.name for f in fields(kind)]
    if len(given) != len(names):
        raise ScheduleError(f"asked to read a {kind.__name__} step from {entry!r}; it has the fields {', '.join(names)}")
    return kind(*given)  # type: ignore[arg-type]  # checked when applied


def lengths_of(value: Lengths, numbers: Mapping[str, tuple[int, ...]]) -> Lengths:
    """The lengths of a split, taken from their choice where they are open."""
    return numbers[value] if isinstance(value, str) else value


def amount_of(value: Amount, numbers: Mapping[str, tuple[int, ...]]) -> Amount:
    """A number, taken from its choice where it is open."""
    return numbers[value][0] if isinstance(value, str) else value
