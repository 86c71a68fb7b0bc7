"""Checks a reference that ran on a device against the same declaration computed here. It compares sums of blocks, once per task."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import Compiler, find_compiler
from ansor.measure.builder import Builder
from ansor.measure.call import Call
from ansor.measure.device import Job
from ansor.measure.failure import Failure
from ansor.measure.harness import Harness, harness_library
from ansor.measure.isolate import Report, isolated
from ansor.measure.protocol import call_data
from ansor.measure.trial.answer import Answer, KeptOutput, OutputSums
from ansor.measure.trial.fill import Fill, key_of
from ansor.measure.trial.recipe import Source
from ansor.measure.trial.sums import COUNT, sums_of, unsure_blocks, wrong_blocks
from ansor.measure.trial.transport import CLOSED
from ansor.measure.verify import Sensitivity, growth, largest_of, measured_growth, with_plain
from ansor.measure.worker import shared_array

SECONDS = 120.0  # for the reference on this machine
LOOK_SECONDS = 0.05
Arrays = dict[str, NDArray[np.generic]]
Growths = Mapping[str, float]
Proof = Callable[[Job, Mapping[str, Source], Answer], Growths | Failure]


def no_proof(job: Job, sources: Mapping[str, Source], answer: Answer) -> Growths | Failure:
    """Accepts every reference."""
    del job, sources, answer
    return {}


class HostProof:
    """Runs the reference here, in a child process, and compares its sums with the device's. Setting `closing` ends it, as a failure.

    The result is the growth of errors of its plain program, by output (`verify.measured_growth`).
    """

    def __init__(self, compiler: Compiler | None = None, closing: threading.Event | None = None) -> None:
        self._closing = closing or threading.Event()
        self._compiler = compiler or find_compiler()
        self._harness = Harness(harness_library(self._compiler))

    def __call__(self, job: Job, sources: Mapping[str, Source], answer: Answer) -> Growths | Failure:
        if job.reference is None:
            return {}
        source, declared = job.reference.source, {one.name: one for one in job.artifact.source.arguments}
        places = [place for place, one in enumerate(source.arguments) if one.role == "output"]
        if [sums.place for sums in answer.sums] != places or len(answer.kept) != len(places):
            return Failure("reference", f"the device gave sums of the arguments {[sums.place for sums in answer.sums]}, instead of the outputs {places}")
        inputs = host_inputs(job, sources)
        all_made = self.outputs(source, [inputs])
        if isinstance(all_made, Failure):
            return all_made
        (made,) = all_made
        for place, kept, sums in zip(places, answer.kept, answer.sums, strict=True):
            argument = source.arguments[place]
            wrong = _wrong_share(argument, declared[argument.name].dtype, made[argument.name], kept, sums, job)
            if wrong:
                said = "the reference gives different results on the device and on this machine"
                return Failure("reference", f"{said}: output {argument.name!r}, {wrong}")
        usual = {source.arguments[place].name: Sensitivity(kept.sensitivity) for place, kept in zip(places, answer.kept, strict=True)}
        moves = self.with_plain(source, inputs, made, usual, job.task.reduction)
        return moves if isinstance(moves, Failure) else growths(job.artifact.source, job.task.rounding, made, moves, answer.input_scale)

    def with_plain(
        self, source: CSource, inputs: Arrays, expected: Arrays, moves: Mapping[str, Sensitivity], reduction: int
    ) -> dict[str, Sensitivity] | Failure:
        """Add what a reference's plain program finds to the moves of its outputs, if it has one."""
        if source.plain is None:
            return dict(moves)
        made = self.outputs(source.plain, [inputs])
        if isinstance(made, Failure):
            return made
        return {name: with_plain(one, expected[name], made[0][name], reduction) for name, one in moves.items()}

    def outputs(self, source: CSource, runs: Sequence[Arrays]) -> list[Arrays] | Failure:
        """A reference's outputs on this machine for each set of inputs (logical arrays). The reference is built once."""
        with Builder(CToolchain(self._compiler)) as builder:
            (building,) = builder.submit([source], timeout=SECONDS)
            while not wait([building], LOOK_SECONDS).done:
                if self._closing.is_set():
                    return CLOSED
            (built,) = building.result()
            if built.artifact is None:
                return built.failure or Failure("reference", "the reference was not built")
            return self._run(source, built.artifact.path, runs)

    def _run(self, source: CSource, library: Path, runs: Sequence[Arrays]) -> list[Arrays] | Failure:
        """Do all runs in one child process."""
        shared = [{one.name: shared_array(one) for one in source.arguments if one.role == "output"} for _ in runs]

        def body(report: Report) -> None:
            for inputs, outputs in zip(runs, shared, strict=True):
                loaded = Call(self._harness, call_data(source, str(library)), inputs, None)
                report({"buffers": loaded.buffers()})
                loaded.run(1)
                for name, array in outputs.items():
                    array[...] = loaded.output(name)

        failure = isolated(self._harness, body, timeout=SECONDS * len(runs), cancelled=self._closing).failure
        if self._closing.is_set():
            return CLOSED
        return Failure("reference", f"the reference failed on this machine: {failure}") if failure else shared


def host_inputs(job: Job, sources: Mapping[str, Source]) -> Arrays:
    """The logical inputs that a device fills, in a candidate's dtypes."""
    files = dict(job.task.files)
    found: Arrays = {}
    for one in job.artifact.source.arguments:
        if one.role != "output":
            source = sources[one.name]
            found[one.name] = source.array(one.shape) if isinstance(source, Fill) else np.load(files[one.name], allow_pickle=False)
    return found


def growths(candidate: CSource, rounding: str, expected: Arrays, moves: Mapping[str, Sensitivity], input_scale: float) -> Growths:
    """The measured growth of errors of each float output, for the bound of a candidate's output."""
    dtypes = {one.name: one.dtype for one in candidate.arguments}
    return {
        name: measured_growth(rounding or dtypes[name], largest_of(expected[name], dtypes[name]), input_scale, one)
        for name, one in moves.items() if expected[name].dtype.kind == "f"
    }  # fmt: skip


def rounding_bound(dtype: str, reduction: int, scale: float, kept: KeptOutput, moved_eps: float) -> float:
    """How far apart two evaluations in double precision may be. `moved_eps`: the change of inputs behind the sensitivity."""
    limits = np.finfo("float64")
    return growth(dtype, reduction) * float(limits.eps) * (scale + kept.sensitivity / moved_eps) + float(limits.tiny)


def _wrong_share(argument: Argument, dtype: str, made: NDArray[np.generic], kept: KeptOutput, sums: OutputSums, job: Job) -> str:
    """Which blocks are wrong, in words; '' for none."""
    expected = sums_of(sums.place, made, sums.block, COUNT, key_of(job.task.seed, f"sums of {argument.name}"))
    floats = made.dtype.kind == "f"
    finite = made[np.isfinite(made)] if floats else made
    scale = float(np.abs(finite).max()) if floats and finite.size else 0.0
    bound = rounding_bound("float64", job.task.reduction, scale, kept, float(np.finfo(job.task.rounding or "float32").eps))
    wrong = wrong_blocks(sums, expected, made.size, bound, unsure_blocks(made, dtype, sums.block) if floats else ())
    return "" if not wrong else f"{len(wrong)} of {len(expected.sums)} blocks of {sums.block} elements" if floats else "its hash"
