"""`local`: this machine. Candidates are shared libraries; each runs in a child of a measuring process, verified and timed by its clock."""

from __future__ import annotations

from pathlib import Path

from ansor.codegen.artifact import LIBRARY, Artifact
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.pool_library import pool_library
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import find_compiler
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind, name_alone
from ansor.measure.failure import Failure
from ansor.measure.harness import harness_library
from ansor.measure.protocol import CallData, call_data
from ansor.measure.runner import REFERENCE_SECONDS, InputOptions, Runner
from ansor.measure.turns import Say
from ansor.support.notices import warn
from ansor.targets.base import LOCAL, Target
from ansor.targets.unit import SECONDS, Unit


class LocalDevice:
    """This machine. The harness (clock, threads) is built with this machine's compiler, whatever candidates are built with."""

    name = model = LOCAL
    unit: Unit = SECONDS
    form = LIBRARY
    alone = True

    def __init__(self, say: Say = warn) -> None:
        self._host = find_compiler()
        self._runner = Runner(harness_library(self._host), pool_library(self._host), say=say)
        self._builder: Builder | None = None  # of plain programs
        self._references: dict[str, Path | None] = {}
        self._plains: dict[Path, CallData | Failure | None] = {}  # by reference

    def run(self, job: Job) -> Observation | Failure:
        """See `Device`. Raises MeasureError if the measuring process cannot be kept alive."""
        runner, task = self._runner, job.task
        runner.options = job.timing
        reference = None if job.reference is None else job.reference.path
        if self._references.get(task.key, Path()) != reference:  # a finished run removed its files
            plain = None if job.reference is None else self._plain(job.reference)
            if isinstance(plain, Failure):
                return plain
            self._references[task.key] = reference
            runner.define(
                task.key, job.artifact.source, reference=None if job.reference is None else called(job.reference), reference_library=reference, plain=plain,
                how=InputOptions(
                    task.reduction, {name: (low, high) for name, low, high in task.ranges}, task.seed, task.threads, dict(task.files), task.rounding
                ),
            )  # fmt: skip
        run = runner.run(task.key, called(job.artifact), job.artifact.path, best_seconds=job.best)
        if run.failure is not None:
            return run.failure
        return Observation(run.seconds, SECONDS, run.cut_short, "compared with the reference on the host" if job.reference is not None else "")

    def _plain(self, reference: Artifact) -> CallData | Failure | None:
        """The plain program of a reference, built here once; None if it has none."""
        if reference.path not in self._plains:
            self._plains[reference.path] = self._built(reference.source.plain)
        return self._plains[reference.path]

    def _built(self, source: CSource | None) -> CallData | Failure | None:
        if source is None:
            return None
        self._builder = self._builder or Builder(CToolchain(self._host))
        (built,) = self._builder.build([source], timeout=REFERENCE_SECONDS)
        if built.artifact is None:
            return Failure("reference", f"the plain program did not build: {built.failure}")
        return call_data(source, str(built.artifact.path))

    def noise_floor(self) -> float:
        """Relative spread of a fixed kernel on this machine now; smaller differences mean nothing."""
        return self._runner.noise_floor()

    def close(self) -> None:
        """End the measuring process, and remove the built programs."""
        self._runner.close()
        self._references.clear()
        self._plains.clear()
        if self._builder is not None:
            self._builder.close()
        self._builder = None


def called(artifact: Artifact) -> CSource:
    """How to call an artifact: its entry point may have another name than in the text."""
    source = artifact.source
    return CSource(source.text, artifact.symbol, source.arguments, source.workspace_bytes, source.threads, source.tolerance)


def _open(text: str, target: Target, say: Say) -> LocalDevice:
    del text, target
    return LocalDevice(say)


KINDS = (DeviceKind(LOCAL, "this machine", _open, check=name_alone),)
