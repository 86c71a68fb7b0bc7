"""Runs jobs on a device by trial programs: writes their input and interprets their answers. A transport reaches the device."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ansor.codegen.artifact import Artifact
from ansor.codegen.source import Argument
from ansor.errors import MeasureError
from ansor.measure.device import Job, Observation
from ansor.measure.failure import PASSING, Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.trial.answer import Answer, OutputCheck, read_answer
from ansor.measure.trial.fill import fills_of, key_of
from ansor.measure.trial.host_reference import HostReference, host_reference, sums_wanted, wrong_sums
from ansor.measure.trial.kept import KeptFile, kept_bytes
from ansor.measure.trial.prepared import Prepared
from ansor.measure.trial.proof import Growths, HostProof, Proof, growths, host_inputs, no_proof
from ansor.measure.trial.recipe import (
    File,
    Source,
    SumsRequest,
    check_lines,
    input_lines,
    moves_line,
    recipe_text,
    sums_lines,
    time_line,
)
from ansor.measure.trial.sums import COUNT, MOST_BLOCKS, block_for
from ansor.measure.trial.transport import Ended, Limits, Transport
from ansor.measure.worker import NOT_FINITE, POSITIVE
from ansor.support.bfloat16 import BFLOAT16
from ansor.support.text import clip
from ansor.targets.unit import INSTRUCTIONS, SECONDS, Unit

REFERENCE_SECONDS = 120.0  # minimum time limit of its run on the device
TASKS_KEPT = 16  # references whose outputs are kept on the device
_NO_TIME = 1e-9  # seconds: stands for a call too short for the clock


@dataclass(frozen=True, slots=True)
class Reference:
    """How a task's inputs are filled, and what its outputs are compared with.

    kept: the file with the reference's outputs, '' if nothing is compared with them; failure: why nothing can be compared. here: the reference's results on
    this machine, for devices that keep nothing; prepared: holds the inputs as files of this machine. growths: `verify.measured_growth`, by output."""

    sources: Mapping[str, Source]
    outputs: tuple[Argument, ...] = ()
    kept: str = ""
    failure: Failure | None = None
    here: HostReference | None = None
    prepared: Prepared | None = None
    growths: Growths = field(default_factory=dict)

    def inputs(self, arguments: Sequence[Argument]) -> Mapping[str, Source]:
        """Where a candidate's values come from."""
        return self.sources if self.prepared is None else self.prepared.sources(self.kept, arguments)


class TrialRuns:
    """Runs jobs through a transport. unit: INSTRUCTIONS are counted in the first call, other units in the second; for SECONDS the program times itself.

    slower: how many times slower than a processor the device is, for time limits. proof: checks a reference against this machine.
    here: runs references on this machine, for devices that keep nothing; sums then verify outputs. prepared: for emulators whose programs read files
    of this machine; `here` then computes the outputs to compare with. blocks: how many blocks' sums fit into an answer.
    reference_seconds: how long a job's reference may run there; None for a limit that even large ones meet.
    """

    def __init__(
        self, transport: Transport, unit: Unit, *, slower: float = 1.0, proof: Proof = no_proof, here: HostProof | None = None,
        prepared: Prepared | None = None, blocks: int = MOST_BLOCKS, reference_seconds: Callable[[Job], float] | None = None,
    ) -> None:  # fmt: skip
        self._transport = transport
        self._unit = unit
        self._slower = slower
        self._proof = proof
        self._here = here
        self._prepared = prepared
        self._blocks = blocks
        self._reference_seconds = reference_seconds
        self._references: OrderedDict[str, Reference] = OrderedDict()

    def run(self, job: Job) -> Observation | Failure:
        """See `Device.run`."""
        reference = self._reference(job)
        if reference.failure is not None:
            return reference.failure
        source, task = job.artifact.source, job.task
        lines = input_lines(source.arguments, reference.inputs(source.arguments))
        if reference.kept:
            lines += check_lines(source, reference.outputs, task.reduction, task.rounding, reference.growths)
        if reference.here:
            lines += sums_lines(source.arguments, sums_wanted(job, self._blocks))
        lines += self._count if self._counts else [f"threads {source.threads}", time_line(job.timing, job.best, task.threads > 1)]
        limits = Limits(job.timing.timeout_seconds * self._slower, job.timing.memory_bytes)
        ended = self._transport.run(job.artifact, "trial", reference.kept or "-", recipe_text(lines), limits)
        answer = answer_of(ended)
        failure = answer.failure or _mistake(answer, source.arguments) or (_silence(answer, source.arguments) if reference.kept else None)
        if failure is None and reference.here:
            failure = wrong_sums(job, reference.here, answer)
        return self._observation(answer, ended, reference) if failure is None else replace(failure, counters=ended.counters)

    @property
    def _counts(self) -> bool:
        return self._unit != SECONDS

    @property
    def _count(self) -> list[str]:
        """Instructions are the same in every call; other units are counted in a warm call."""
        return [f"count {0 if self._unit == INSTRUCTIONS else 1}"]

    def _observation(self, answer: Answer, ended: Ended, reference: Reference) -> Observation | Failure:
        costs = (ended.counters.get(self._unit.name, 0.0),) if self._counts else tuple(max(cost, _NO_TIME) for cost in answer.costs)
        if not costs or not costs[0] > 0:
            return Failure("machine", f"the program ran correctly, but its {self._unit} were not counted")
        counters = {"tensor_bytes_sent": 0.0, **ended.counters}
        return Observation(costs, self._unit, answer.cut_short, _proved(reference), counters)

    def _reference(self, job: Job) -> Reference:
        """The reference of a job's task; its outputs are computed when the task is new, and kept on the device."""
        key = _key(job)
        known = self._references.get(key)
        if known is not None:
            self._references.move_to_end(key)
            return known
        found = self._define(job, f"reference-{key}")
        if found.failure is None or found.failure.kind not in PASSING:
            self._references[key] = found
        while len(self._references) > TASKS_KEPT:
            gone = self._references.popitem(last=False)[1]
            if gone.kept:
                self._transport.forget(gone.kept)
            if gone.prepared is not None:
                gone.prepared.forget(gone.kept)
        return found

    def _define(self, job: Job, kept: str) -> Reference:
        if job.task.rounding == BFLOAT16 or any(one.dtype == BFLOAT16 for one in job.artifact.source.arguments):
            why = "programs with bfloat16 are measured by the device `local` alone; declare float32"
            return Reference({}, failure=Failure("reference", why))
        sources = self._sources(job, positive=False)
        if job.reference is None:
            return Reference(sources)
        if self._here is not None:
            found_here = self._define_here(job, self._here, sources)
            return found_here if self._prepared is None else self._define_prepared(job, self._prepared, found_here, kept)
        found = self._made(job, job.reference, sources, kept)
        if isinstance(found, Answer) and _not_finite(found):
            sources = self._sources(job, positive=True)
            found = self._made(job, job.reference, sources, kept)
        outputs = tuple(one for one in job.reference.source.arguments if one.role == "output")
        proved = found if isinstance(found, Failure) else _incomplete(found, outputs) or _meaningless(found, outputs) or self._proof(job, sources, found)
        if isinstance(proved, Failure):
            return Reference(sources, outputs, kept, proved)
        return Reference(sources, outputs, kept, growths=proved)

    def _define_here(self, job: Job, proof: HostProof, sources: dict[str, Source]) -> Reference:
        found = host_reference(proof, job, sources)
        if isinstance(found, HostReference) and _not_finite(found.answer):
            sources = self._sources(job, positive=True)
            found = host_reference(proof, job, sources)
        if isinstance(found, Failure):
            return Reference(sources, failure=found)
        outputs = tuple(one for one in job.artifact.source.arguments if one.role == "output")
        return Reference(sources, outputs, failure=_meaningless(found.answer, outputs), here=found)

    def _define_prepared(self, job: Job, prepared: Prepared, found: Reference, kept: str) -> Reference:
        """Write the outputs that a reference computed here to the file that programs compare theirs with, and its inputs."""
        if found.failure is not None or found.here is None or job.reference is None:
            return found
        outputs = tuple(one for one in job.reference.source.arguments if one.role == "output")
        given = KeptFile(found.here.outputs, dict(found.here.moves), found.here.input_scale)
        prepared.keep(kept, host_inputs(job, found.sources), kept_bytes(given, outputs))
        known = growths(job.artifact.source, job.task.rounding, found.here.outputs, found.here.moves, found.here.input_scale)
        return Reference(found.sources, outputs, kept, prepared=prepared, growths=known)

    def _sources(self, job: Job, *, positive: bool) -> dict[str, Source]:
        """Where values come from: the generator or files."""
        task, arguments = job.task, job.artifact.source.arguments
        ranges = {one.name: POSITIVE for one in arguments if positive and np.dtype(one.dtype).kind == "f"}
        ranges |= {name: (low, high) for name, low, high in task.ranges}
        sources: dict[str, Source] = dict(fills_of(arguments, task.seed, ranges))
        for one in arguments:
            if one.name in dict(task.files):
                sources[one.name] = self._file(one, Path(dict(task.files)[one.name]))
        return sources

    def _file(self, argument: Argument, path: Path) -> File:
        values = np.load(path, allow_pickle=False)
        if values.dtype != argument.dtype or values.shape != argument.shape or not values.flags.c_contiguous:
            given = f"asked to measure with {path} for {argument.name!r}, which has {values.dtype} of shape {values.shape}"
            raise MeasureError(f"{given}; give {argument.dtype} of shape {argument.shape}, in C order")
        return File(argument.dtype, self._transport.place(path), values.nbytes)

    def _made(self, job: Job, reference: Artifact, sources: Mapping[str, Source], kept: str) -> Answer | Failure:
        """Run the reference; its outputs are kept in the file `kept`."""
        task, arguments = job.task, reference.source.arguments
        lines = [
            *input_lines(arguments, sources), moves_line(task.seed, task.rounding, slower=self._slower),
            *sums_lines(arguments, reference_sums(task, job.artifact.source.arguments, self._blocks)), *(self._count if self._counts else []),
        ]  # fmt: skip
        usual = max(REFERENCE_SECONDS, job.timing.timeout_seconds) * self._slower
        seconds = self._reference_seconds(job) if self._reference_seconds is not None else usual
        limits = Limits(seconds, job.timing.memory_bytes)
        answer = answer_of(self._transport.run(reference, "reference", kept, recipe_text(lines), limits))
        if answer.failure is None:
            return answer
        if answer.failure.kind in PASSING:
            return answer.failure
        return Failure("reference", f"the reference failed: {answer.failure}")


def reference_sums(task: MeasureTask, arguments: tuple[Argument, ...], most: int = MOST_BLOCKS) -> list[SumsRequest]:
    """The sums that verify a task's reference. `arguments`: of a candidate, whose dtypes decide the precision."""
    outputs = [one for one in arguments if one.role == "output"]
    blocks = [block_for(one.physical_size, one.dtype, len(outputs), most) for one in outputs]
    return [SumsRequest(one.name, block, COUNT, key_of(task.seed, f"sums of {one.name}")) for one, block in zip(outputs, blocks, strict=True)]


def answer_of(ended: Ended) -> Answer:
    """A program's answer; a failure if it is unreadable."""
    if ended.failure is not None:
        return Answer(ended.failure)
    try:
        return read_answer(ended.output)
    except ValueError as error:
        return Answer(Failure("exit", f"ended without an answer ({error}); it said: {clip(ended.output, 300)!r}"))


def wrong_text(check: OutputCheck, argument: Argument) -> str:
    """A sentence about a wrong output, worded as in `ansor.measure.verify`; '' if it is right."""
    example = check.example
    where = tuple(int(one) for one in np.unravel_index(example.at, argument.shape)) if check.size else ()
    if check.unwritten:
        return f"output {argument.name!r}: {check.unwritten} of {check.size} elements never written, first at {where}"
    if not check.wrong:
        return ""
    note = f", allowed difference {check.allowed:.3g}" if np.dtype(argument.dtype).kind == "f" else ""
    return f"output {argument.name!r}: {check.wrong} of {check.size} elements wrong, first at {where}: found {example.found}, expected {example.expected}{note}"


def _proved(reference: Reference) -> str:
    if reference.here:
        return "sums and hashes compared with those of the reference on this machine"
    where = "this machine" if reference.prepared else "the device"
    return f"compared with the reference on {where}" if reference.kept else ""


def _mistake(answer: Answer, arguments: tuple[Argument, ...]) -> Failure | None:
    texts = [wrong_text(check, arguments[check.place]) for check in answer.checks if check.place < len(arguments)]
    said = next((text for text in texts if text), "")
    return Failure("wrong_answer", f"after repeated calls: {said}" if answer.later else said) if said else None


def _silence(answer: Answer, arguments: tuple[Argument, ...]) -> Failure | None:
    """A failure if the answer omits an output: an output that was not compared is not verified."""
    compared = {check.place: check.size for check in answer.checks}
    for place, one in enumerate(arguments):
        if one.role == "output" and compared.get(place) != one.physical_size:
            return Failure("exit", f"output {one.name!r}: {compared.get(place, 0)} of {one.physical_size} elements were compared with the reference")
    return None


def _incomplete(answer: Answer, outputs: tuple[Argument, ...]) -> Failure | None:
    """A failure if the answer does not cover all outputs of the reference."""
    sizes, wanted = [one.size for one in answer.kept], [one.physical_size for one in outputs]
    return None if sizes == wanted else Failure("reference", f"the reference kept outputs of {sizes} elements on the device, instead of {wanted}")


def _not_finite(answer: Answer) -> bool:
    return any(one.size and (one.nan + one.infinite) / one.size > NOT_FINITE for one in answer.kept)


def _meaningless(answer: Answer, outputs: tuple[Argument, ...]) -> Failure | None:
    """A failure if a reference verifies nothing: NaN is never compared, and infinities alone are not enough."""
    for one, kept in zip(outputs, answer.kept, strict=True):
        if kept.size and (kept.nan / kept.size > NOT_FINITE or kept.nan + kept.infinite == kept.size):
            shares = f"NaN in {kept.nan / kept.size:.0%} and infinite in {kept.infinite / kept.size:.0%} of its elements"
            why = "no result can be verified; change the declaration so that it is finite there"
            return Failure("reference", f"output {one.name!r} is {shares}, for floats from -1 to 1 and from 0.5 to 1.5: {why}")
    return None


def _key(job: Job) -> str:
    """Identifies a task, its reference and the shapes of its arguments."""
    task = job.task
    declared = sorted((one.name, one.shape, one.dtype, one.role) for one in job.artifact.source.arguments)
    about = (task.key, task.reduction, task.ranges, task.seed, task.files, task.rounding, declared, job.reference and job.reference.source.text)
    return hashlib.sha256(repr(about).encode()).hexdigest()[:24]
