"""Records what the search computes for the rows of a sketch: lowering and feature extraction are the same arithmetic for every population.

Sketches of one declaration are mostly the same. Sketches that are recorded `together` share columns, nests and the analysis of their statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.tape_library import Run, runner
from ansor.cost_model.analytic import estimate, first_cache
from ansor.cost_model.annotations import stages_of
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.features import segments, statement_columns
from ansor.ir.columns import Int, larger, log
from ansor.ir.dag import Dag
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.loops import Store
from ansor.ir.tape import Recorder, matrix
from ansor.schedule.choice import Choice
from ansor.schedule.known_nests import KnownNests
from ansor.schedule.legality import legal
from ansor.schedule.lower import lower_with
from ansor.schedule.sketch import Rows, Sketch
from ansor.support.garbage import uncollected
from ansor.targets.base import Target


@dataclass(frozen=True, eq=False)
class RecordedSketch:
    """The recorded computations for the rows of a sketch."""

    legality: Run
    description: Run
    statements: int

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each program is legal, [n]."""
        (flags,) = self.legality(rows)
        return flags[:, 0]

    def features(self, rows: Rows) -> FeatureRows:
        """The feature rows of each program, with their prior."""
        found, prior = self.description(rows)
        return FeatureRows(found.reshape(-1, WIDTH), segments(len(rows), self.statements), len(rows), prior.reshape(-1))


@dataclass(frozen=True, eq=False)
class _SketchRecorder:
    """What was recorded for the sketches of one declaration and target. genes: each distinct choice, with its columns."""

    dag: Dag
    target: Target
    recorder: Recorder
    nests: KnownNests = field(default_factory=KnownNests)
    statements: dict[Store, Statement] = field(default_factory=dict)
    genes: list[tuple[Choice, tuple[Int, ...]]] = field(default_factory=list)

    def of(self, sketch: Sketch) -> RecordedSketch:
        """Lower a sketch and compute its features, with its choices as columns of a tape."""
        genes = [self._gene(choice) for choice in sketch.choices]
        numbers = {name: parts for choice, gene in zip(sketch.choices, genes, strict=True) for name, parts in choice.named(self.genes[gene][1]).items()}
        loops, target = lower_with(self.nests, sketch.state, numbers), self.target
        program, stages = statements_of(loops, first_cache(target), self.statements), stages_of(loops)
        flag = matrix([legal(loops, target)], np.bool_)
        estimates = [estimate(statement, target) for statement in program]
        columns = [statement_columns(statement, program, stages, (one, target)) for statement, one in zip(program, estimates, strict=True)]
        rows = matrix([one.get(column, 0.0) for one in columns for column in range(WIDTH)], np.float32)
        whole = target.cost(loops) if program else None
        logs = [one.log_cycles for one in estimates] if whole is None else [log(larger(whole / len(program), 1.0))] * len(program)
        prior = matrix(logs, np.float64)
        tape = self.recorder.tape(genes)
        return RecordedSketch(runner(tape, [flag]), runner(tape, [rows, prior]), len(program))

    def _gene(self, choice: Choice) -> int:
        """The number of a choice among the choices of all sketches: the same for the same name and values."""
        for gene, (known, _) in enumerate(self.genes):
            if known.name == choice.name and np.array_equal(known.table, choice.table):
                return gene
        self.genes.append((choice, self.recorder.numbers(len(self.genes), choice.table)))
        return len(self.genes) - 1


_open: ContextVar[list[_SketchRecorder] | None] = ContextVar("recordings", default=None)


@contextmanager
def together() -> Iterator[list[_SketchRecorder]]:
    """Sketches of one declaration and target that are recorded inside share their common parts, which are dropped at the end."""
    around = _open.get()
    if around is not None:
        yield around
        return
    recordings: list[_SketchRecorder] = []
    token = _open.set(recordings)
    try:
        yield recordings
    finally:
        _open.reset(token)
        for recording in recordings:
            recording.recorder.forget()


def recorded(sketch: Sketch, target: Target) -> RecordedSketch:
    """A sketch, recorded together with earlier ones, or alone."""
    with together() as recordings, uncollected():
        return _recording(recordings, sketch.dag, target).of(sketch)


def _recording(recordings: list[_SketchRecorder], dag: Dag, target: Target) -> _SketchRecorder:
    for known in recordings:
        if known.dag is dag and known.target is target:
            return known
    recordings.append(_SketchRecorder(dag, target, Recorder()))
    return recordings[-1]
