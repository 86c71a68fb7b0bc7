"""A sketch as the search sees it: `ansor.search.space.Space` over one sketch and one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.tape_library import Run, runner
from ansor.cost_model.analytic import estimate, first_cache
from ansor.cost_model.annotations import stages_of
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.features import segments, statement_columns
from ansor.ir.columns import larger, log
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.tape import Recorder, matrix
from ansor.schedule.legality import legal
from ansor.schedule.lower import lower
from ansor.schedule.sketch import Rows, Sketch
from ansor.support.garbage import uncollected
from ansor.targets.base import Target


class SketchSpace:
    """All programs of one sketch on one target; `algorithm`: the alternative, or the template, it is a sketch of, "" for the declaration itself.

    `allowed`: column -> which values of the choice are searched, bool [values]; all of the others. Rows mean the same with and without.
    """

    def __init__(self, sketch: Sketch, target: Target, algorithm: str = "", allowed: Mapping[int, NDArray[np.bool_]] | None = None) -> None:
        self.algorithm = algorithm
        self.allowed = dict(allowed or {})
        self.sketch = sketch
        self.target = target

    def __repr__(self) -> str:
        return f"SketchSpace({self.sketch!r}{f', {self.algorithm}' if self.algorithm else ''})"

    def _repr_html_(self) -> str:
        return self.sketch._repr_html_()

    @property
    def name(self) -> str:
        """The steps as JSON text."""
        return self.sketch.name

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of values of each choice, `[columns]`."""
        return self.sketch.sizes

    def weights(self, column: int) -> NDArray[np.float64] | None:
        """Sampling weights of a choice."""
        given = self.sketch.choices[column].weights
        allowed = self.allowed.get(column)
        if allowed is None:
            return given
        return allowed.astype(np.float64) if given is None or not (given * allowed).any() else given * allowed

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        """Values one factor away, for tile sizes."""
        near = self.sketch.choices[column].neighbours
        allowed = self.allowed.get(column)
        return near if near is None or allowed is None else np.where((near >= 0) & allowed[near], near, -1)

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Programs that are allowed, and fit the target's registers and stack."""
        found = self._recorded.legal(rows)
        for column, allowed in self.allowed.items():
            found = found & allowed[rows[:, column]]
        return found

    def holds(self, row: Sequence[int]) -> bool:
        """Whether a row is one of the sketch's: a value for each choice."""
        return len(row) == len(self.sizes) and all(0 <= gene < size for gene, size in zip(row, self.sizes.tolist(), strict=True))

    def allows(self, row: Sequence[int]) -> bool:
        """Whether a row of the sketch is one of the space."""
        return all(allowed[row[column]] for column, allowed in self.allowed.items())

    def narrowed(self, allowed: Mapping[int, NDArray[np.bool_]]) -> SketchSpace | None:
        """The space with fewer values, None when a choice has none left."""
        both = {column: mask & self.allowed.get(column, True) for column, mask in allowed.items()}
        return SketchSpace(self.sketch, self.target, self.algorithm, self.allowed | both) if all(mask.any() for mask in both.values()) else None

    def features(self, rows: Rows) -> FeatureRows:
        """What the cost model sees of these programs."""
        return self._recorded.features(rows)

    @cached_property
    def _recorded(self) -> Recorded:
        return recorded(self.sketch, self.target)


@dataclass(frozen=True, eq=False)
class Recorded:
    """What the search asks of the rows of a sketch. It is the same arithmetic for every population, so it is recorded once."""

    legality: Run
    description: Run
    statements: int

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each program is, [n]."""
        (flags,) = self.legality(rows)
        return flags[:, 0]

    def features(self, rows: Rows) -> FeatureRows:
        """The feature rows of each program, with their prior."""
        found, prior = self.description(rows)
        return FeatureRows(found.reshape(-1, WIDTH), segments(len(rows), self.statements), len(rows), prior.reshape(-1))


def recorded(sketch: Sketch, target: Target) -> Recorded:
    """Lowers and describes a sketch whose choices are columns of a tape."""
    with _recording() as recorder:
        named = [choice.named(recorder.numbers(k, choice.table)) for k, choice in enumerate(sketch.choices)]
        numbers = {name: parts for one in named for name, parts in one.items()}
        loops = lower(sketch.state, numbers)
        program, stages = statements_of(loops, first_cache(target)), stages_of(loops)
        flag = matrix([legal(loops, target)], np.bool_)
        estimates = [estimate(statement, target) for statement in program]
        columns = [statement_columns(statement, program, stages, (one, target)) for statement, one in zip(program, estimates, strict=True)]
        rows = matrix([one.get(column, 0.0) for one in columns for column in range(WIDTH)], np.float32)
        whole = target.cost(loops) if program else None
        logs = [one.log_cycles for one in estimates] if whole is None else [log(larger(whole / len(program), 1.0))] * len(program)
        prior = matrix(logs, np.float64)
        tape = recorder.tape()
    return Recorded(runner(tape, [flag]), runner(tape, [rows, prior]), len(program))


@contextmanager
def _recording() -> Iterator[Recorder]:
    recorder = Recorder()
    with uncollected():
        try:
            yield recorder
        finally:
            recorder.forget()
