"""Verification for devices that keep nothing between programs: the reference runs on this machine, and sums verify a candidate's outputs.

Integers are compared by a hash: they are exact or wrong. Floats are compared by signed sums of blocks (see `ansor.measure.trial.sums`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument
from ansor.measure.device import Job
from ansor.measure.failure import Failure
from ansor.measure.trial.answer import Answer, KeptOutput
from ansor.measure.trial.fill import generated, key_of, uniform
from ansor.measure.trial.proof import Arrays, HostProof, host_inputs
from ansor.measure.trial.recipe import MOVES, Source, SumsRequest
from ansor.measure.trial.sums import BLOCK, COUNT, sums_of, unsure_blocks, wrong_blocks
from ansor.measure.verify import Sensitivity, largest_of, moves_of, tolerances


@dataclass(frozen=True, slots=True, eq=False)
class HostReference:
    """A reference's results on this machine: outputs by name, how far each moves, the largest magnitude of an input."""

    outputs: Arrays = field(default_factory=dict)
    moves: Mapping[str, Sensitivity] = field(default_factory=dict)
    input_scale: float = 1.0

    @property
    def answer(self) -> Answer:
        """What a device would have answered."""
        return Answer(kept=tuple(self._kept(name, one) for name, one in self.outputs.items()), input_scale=self.input_scale)

    def _kept(self, name: str, output: NDArray[np.generic]) -> KeptOutput:
        floats = output.dtype.kind == "f"
        nan, infinite = (int(np.isnan(output).sum()), int(np.isinf(output).sum())) if floats else (0, 0)
        return KeptOutput(output.size, nan, infinite, self.moves[name].usual)


def host_reference(proof: HostProof, job: Job, sources: Mapping[str, Source]) -> HostReference | Failure:
    """Run a job's reference here, and again with slightly moved inputs if outputs are floats."""
    assert job.reference is not None
    inputs = host_inputs(job, sources)
    source = job.reference.source
    floats = any(np.dtype(one.dtype).kind == "f" for one in source.arguments if one.role == "output")
    made = proof.outputs(source, [inputs, *(_moved(inputs, job, number) for number in range(MOVES if floats else 0))])
    if isinstance(made, Failure):
        return made
    outputs, *moved = made
    scales = [float(np.abs(one).max()) for one in inputs.values() if one.dtype.kind == "f" and one.size]
    known = {name: moves_of(one, [other[name] for other in moved]) for name, one in outputs.items()}
    moves = proof.with_plain(source, inputs, outputs, known, job.task.reduction)
    return moves if isinstance(moves, Failure) else HostReference(outputs, moves, max(scales, default=1.0))


def sums_wanted(job: Job, most: int) -> list[SumsRequest]:
    """Requests for the sums that verify a candidate's outputs."""
    outputs = [one for one in job.artifact.source.arguments if one.role == "output"]
    return [SumsRequest(one.name, _block(one, most // len(outputs)), COUNT, key_of(job.task.seed, f"sums of {one.name}")) for one in outputs]


def wrong_sums(job: Job, reference: HostReference, answer: Answer) -> Failure | None:
    """Why a candidate's sums do not verify its outputs; None if they do."""
    arguments = job.artifact.source.arguments
    found = {arguments[one.place].name: one for one in answer.sums if one.place < len(arguments)}
    for one in (one for one in arguments if one.role == "output"):
        expected, sums = reference.outputs[one.name], found.get(one.name)
        if sums is None:
            return Failure("exit", f"the answer has no sums of output {one.name!r}")
        floats = np.dtype(one.dtype).kind == "f"
        right = sums_of(sums.place, expected if floats else expected.astype(one.dtype), sums.block, COUNT, key_of(job.task.seed, f"sums of {one.name}"))
        bound = _bound(job, one, expected, reference) if floats else 0.0
        wrong = wrong_blocks(sums, right, expected.size, bound, unsure_blocks(expected, one.dtype, sums.block) if floats else ())
        if wrong:
            what = f"{len(wrong)} of {len(right.sums)} blocks of {sums.block} elements differ, the first from element {wrong[0] * sums.block} on"
            return Failure("wrong_answer", f"output {one.name!r}: {what if floats else 'its hash differs from that of the reference'}")
    return None


def _bound(job: Job, argument: Argument, expected: NDArray[np.generic], reference: HostReference) -> NDArray[np.float64]:
    scale = largest_of(expected, argument.dtype)
    rounding = job.task.rounding or argument.dtype
    allowed = tolerances(rounding, job.task.reduction, scale, reference.input_scale, reference.moves[argument.name])
    return np.asarray(job.artifact.source.tolerance * allowed)


def _block(argument: Argument, most: int) -> int:
    return max(BLOCK, -(-argument.physical_size // max(1, most)))


def _moved(inputs: Arrays, job: Job, number: int) -> Arrays:
    """Inputs with every float moved towards zero by up to one eps of itself."""
    eps = float(np.finfo(job.task.rounding or "float32").eps)
    found: Arrays = {}
    for name, one in inputs.items():
        found[name] = one
        if one.dtype.kind == "f":
            shares = uniform(generated(key_of(job.task.seed + number, f"moved {name}"), one.size), 8).reshape(one.shape)
            found[name] = one.astype(np.float64) * (1 - shares * eps)
    return found

