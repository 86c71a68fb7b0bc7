"""Turns a template into sketches: a template describes a subset of the search space.

    run it: each knob it reads takes every value in turn, splits that it only applies stay open   (`open_config`)
    -> runs, each a sketch: steps, and the open choices
    -> runs whose steps differ only in numbers form one sketch, with these numbers as its choices

So every configuration of the template is one row of one sketch, and every row is a configuration that the template accepts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np

from ansor.algorithms.base import Alternative, check_alternative
from ansor.errors import InstantiationError, ScheduleError
from ansor.ir.dag import Dag
from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Step
from ansor.support.text import counted
from ansor.templates.label import template_label
from ansor.templates.open_config import OpenConfig
from ansor.templates.space import ConfigSpace
from ansor.templates.split import SplitSpace
from ansor.templates.task import Task

MAX_RUNS = 4096
"""The maximum number of runs of one template. A run takes about a millisecond."""

NUMBERS = ("lengths", "amount", "limit")
"""The step fields that may be open. A step has at most one of them."""

Numbers: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[str, ...]
"""Knobs to treat jointly, since their values do not occur in all combinations; often a single knob."""


@dataclass(frozen=True)
class TemplateResult:
    """The result of a template for all configurations in which the knobs it read have these digits."""

    digits: Mapping[str, int]
    sketch: Sketch

    @property
    def structure(self) -> object:
        """Equal for runs that differ only in numbers."""
        blank = tuple(step if _number(step) is None else replace(step, **{_field(step): ""}) for step in self.sketch.steps)
        return id(self.sketch.dag), blank, tuple(choice.name for choice in self.sketch.choices), tuple(self.digits)


def template_sketches(task: Task, dag: Dag) -> list[Sketch]:
    """The sketches of all possible configurations of a template. A sketch belongs to `dag` if the template declares the same computation, otherwise to
    the template's own declaration.

    Raises ScheduleError if no configuration is possible, or the template reads too many values, and DeclarationError if it computes other arrays than `dag`.
    """
    groups: dict[object, list[TemplateResult]] = {}
    dags = {_identity(dag): dag}
    refused = list[str]()
    for run in _runs(task, {}, [0], refused):
        known = dags.setdefault(_identity(run.sketch.dag), run.sketch.dag)
        settled = TemplateResult(run.digits, Sketch(known, run.sketch.steps, run.sketch.choices))
        groups.setdefault(settled.structure, []).append(settled)
    if not groups:
        count = counted(task.config_space.range_length, "configuration")
        raise ScheduleError(f"template {task.name!r} refuses all of its {count} (first: {refused[0]}); widen its knobs, or relax its checks")
    for other in dags.values():
        check_alternative(dag, Alternative(template_label(task.name), other))
    return [_merged(group, task.config_space) for group in groups.values()]


def _identity(dag: Dag) -> object:
    """Equal for declarations with the same stages, axes and arguments, under the same names."""
    return dag.key, str(dag), tuple(tensor.name for tensor in dag.tensors)


def _runs(task: Task, digits: Mapping[str, int], count: list[int], refused: list[str]) -> Iterator[TemplateResult]:
    """Run the template. If it reads a knob outside `digits`, run it again with each value of the first such knob, recursively.

    `count`: runs so far; `refused`: the reasons of impossible configurations.
    """
    count[0] += 1
    config = OpenConfig(task.config_space, digits)
    if count[0] > MAX_RUNS:
        raise ScheduleError(
            f"template {task.name!r} reads the values of the knobs {', '.join(digits)}, which takes more than {MAX_RUNS} runs to enumerate; give them fewer "
            "values, or apply splits without reading their sizes"
        )
    try:
        found = TemplateResult(digits, _sketch(task, config))
    except InstantiationError as error:
        refused.append(str(error))
        found = None
    looked_at = next((name for name in config.looked_at if name not in digits), None)
    if looked_at is not None:
        for digit in range(len(task.config_space.space_map[looked_at])):
            yield from _runs(task, {**digits, looked_at: digit}, count, refused)
    elif found is not None:
        yield found


def _sketch(task: Task, config: OpenConfig) -> Sketch:
    schedule, tensors = task.instantiate(config)
    return schedule.sketch(tensors)


# runs as rows -----------------------------------------------------------------------------------------------------------------------------------------


def _merged(runs: Sequence[TemplateResult], space: ConfigSpace) -> Sketch:
    """Merge runs that differ only in numbers into one sketch. Numbers that depend on a single knob become a choice with its name; numbers of knobs that
    depend on each other become one joint choice."""
    first = runs[0].sketch
    numbers = {place: [_number(run.sketch.steps[place]) for run in runs] for place, step in enumerate(first.steps) if _number(step) is not None}
    varying = {place: values for place, values in numbers.items() if len(set(values)) > 1}
    blocks = _blocks(runs)
    if any(_owner(runs, blocks, values) is None for values in varying.values()):
        blocks = [tuple(runs[0].digits)]
    steps, choices = list(first.steps), list(first.choices)
    for block in blocks:
        places = [place for place, values in varying.items() if _owner(runs, blocks, values) == block]
        if not places:
            continue
        name, choice = "+".join(block), _choice(block, [varying[place] for place in places], space)
        distinct = list(dict.fromkeys(tuple(varying[place]) for place in places))
        for place in places:
            number = distinct.index(tuple(varying[place]))
            steps[place] = replace(steps[place], **{_field(steps[place]): choice.numbers[number][0] if choice.numbers else name})
        choices.append(choice)
    return Sketch(first.dag, tuple(steps), tuple(choices))


def _choice(block: Block, columns: Sequence[Sequence[Numbers | None]], space: ConfigSpace) -> Choice:
    """The numbers that a block's knobs determine, as one choice. `columns`: a list per number, with its value in each run."""
    name, distinct = "+".join(block), list(dict.fromkeys(tuple(column) for column in columns))
    rows = list(dict.fromkeys(zip(*distinct, strict=True)))
    table = np.array([[part for number in row for part in number or ()] for row in rows], np.int64)
    knob = space.space_map[block[0]]
    if len(distinct) > 1:
        parts = tuple((f"{name}.{place}", len(column[0] or ())) for place, column in enumerate(distinct))
        return Choice(name, table, numbers=parts)
    if len(block) == 1 and isinstance(knob, SplitSpace) and table.shape[1] == knob.num_output - 1:
        return Choice(name, table, "tile", None, knob.product)
    return Choice(name, table)


def _blocks(runs: Sequence[TemplateResult]) -> list[Block]:
    """The knobs that were read, grouped where the runs do not cover all combinations of their values."""
    blocks: list[Block] = []
    for name in runs[0].digits:
        new: Block = (name,)
        for block in list(blocks):
            if len(_seen(runs, block + new)) < len(_seen(runs, block)) * len(_seen(runs, new)):
                blocks.remove(block)
                new = block + new
        blocks.append(new)
    whole = prod(len(_seen(runs, block)) for block in blocks) == len(runs)
    return blocks if whole else [tuple(runs[0].digits)]


def _seen(runs: Sequence[TemplateResult], block: Block) -> set[Numbers]:
    return {_digits(run, block) for run in runs}


def _digits(run: TemplateResult, block: Block) -> Numbers:
    return tuple(run.digits[name] for name in block)


def _owner(runs: Sequence[TemplateResult], blocks: Sequence[Block], values: Sequence[Numbers | None]) -> Block | None:
    """The block that determines a number on its own; None if no block does."""
    for block in blocks:
        pairs = {(_digits(run, block), value) for run, value in zip(runs, values, strict=True)}
        if len(pairs) == len(_seen(runs, block)):
            return block
    return None


def _field(step: Step) -> str:
    return next(name for name in NUMBERS if hasattr(step, name))


def _number(step: Step) -> Numbers | None:
    """The number of a step; None if it has none, or if it is open."""
    value = next((getattr(step, name) for name in NUMBERS if hasattr(step, name)), None)
    if isinstance(value, int):
        return (value,)
    return value if isinstance(value, tuple) else None
