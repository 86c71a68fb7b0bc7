"""`vta-sim`: a VTA core simulated in this process. Outputs are computed with the modules in a random order, which exposes races; costs are deterministic
cycles of a stated model: `vta-sim` uses the model of the Chisel design, `vta-sim:hls` that of the HLS design.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.errors import AnsorError, DeviceError
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.devices.one_job import JobLock
from ansor.measure.failure import Failure
from ansor.measure.inputs import make_inputs
from ansor.measure.trial.proof import HostProof
from ansor.measure.turns import Say
from ansor.measure.verify import difference
from ansor.targets.base import Target
from ansor.targets.unit import Unit, cycles
from ansor.vta.compiled import Operator, alignment, finish, linked, operator_from_text
from ansor.vta.configuration import Memory
from ansor.vta.cycles import CHISEL, HLS, CycleModel, Cycles, count_cycles
from ansor.vta.functional import BoundsError, Counts, run_in_random_order
from ansor.vta.tensors import pack, unpack
from ansor.vta.toolchain import FORM, is_operator

MODELS = {"": CHISEL, "hls": HLS, "chisel": CHISEL}
INT8 = (-128.0, 128.0)
Arrays = dict[str, NDArray[np.generic]]


class VtaSimulator:
    """One core. Outputs are compared with plain loops on this machine, which run once per task."""

    form, alone = FORM, False

    def __init__(self, name: str, model: CycleModel) -> None:
        self.name, self.model, self._model = name, f"vta-sim {model.name}", model
        self.unit: Unit = cycles(model.name)
        self._one = JobLock()
        self._expected: dict[str, tuple[Arrays, Arrays]] = {}
        self._proof: HostProof | None = None

    def run(self, job: Job) -> Observation | Failure:
        """See `Device`."""
        with self._one.running():
            if not is_operator(job.artifact.source):
                return Failure("instantiation", "a VTA core cannot run plain loops: keep operands and results in its memories, as its rules do")
            known = self._known(job)
            if isinstance(known, Failure):
                return known
            return self._run(job, operator_from_text(job.artifact.source.text), *known)

    def close(self) -> None:
        """Drop what was computed for tasks."""
        with self._one.ended(lambda: None):
            self._expected.clear()
            self._proof = None

    def _known(self, job: Job) -> tuple[Arrays, Arrays] | Failure:
        """A task's inputs and its expected outputs, which are empty if nothing is compared."""
        if job.task.key in self._expected:
            return self._expected[job.task.key]
        arguments = job.artifact.source.arguments
        ranges = {one.name: INT8 for one in arguments if one.dtype == "int8"} | {name: (low, high) for name, low, high in job.task.ranges}
        inputs = make_inputs(arguments, seed=job.task.seed, ranges=ranges)
        inputs |= {name: np.load(path, allow_pickle=False) for name, path in job.task.files}
        expected: Arrays = {}
        if job.reference is not None:
            self._proof = self._proof or HostProof(closing=self._one.closing)
            made = self._proof.outputs(job.reference.source, [inputs])
            if isinstance(made, Failure):
                return made
            (expected,) = made
        self._expected[job.task.key] = inputs, expected
        return inputs, expected

    def _run(self, job: Job, operator: Operator, inputs: Arrays, expected: Arrays) -> Observation | Failure:
        start = time.monotonic()
        try:
            outputs, counts, taken = simulated(operator, inputs, self._model, job.task.seed)
        except BoundsError as error:
            return Failure("out_of_bounds", str(error))
        except AnsorError as error:
            return Failure("trap", str(error))
        if time.monotonic() - start > job.timing.timeout_seconds:
            return Failure("timeout", f"simulating it took longer than {job.timing.timeout_seconds:g} s")
        for name, right in expected.items():
            wrong = difference(name, outputs[name], right.astype(outputs[name].dtype))
            if wrong:
                return Failure("wrong_answer", wrong)
        check = "compared with the reference on the host, modules in a random order" if expected else ""
        return Observation((float(taken.total),), self.unit, check=check, counters=_counters(operator, counts, taken))


def simulated(operator: Operator, inputs: Arrays, model: CycleModel, seed: int) -> tuple[Arrays, Counts, Cycles]:
    """An operator's outputs and cost. Raises ProgramError if its dependency tokens do not enforce a required order."""
    configuration, bases = operator.configuration, addresses(operator)
    dram = np.full(bases[-1] + operator.uops.nbytes + alignment(configuration), 0xA5, np.uint8)
    for tensor, base in zip(operator.tensors, bases, strict=False):
        if tensor.role != "output":
            held = pack(inputs[tensor.name], tensor.layout)
            dram[base : base + len(held)] = held
    dram[bases[-1] : bases[-1] + operator.uops.nbytes] = operator.uops.view(np.uint8)
    words = np.concatenate([linked(operator, bases[:-1], 0, bases[-1]), finish(configuration)])
    counts = run_in_random_order(words, dram, configuration, seed)
    outputs = {
        tensor.name: unpack(dram[base : base + tensor.layout.bytes(configuration)], tensor.layout, tensor.dtype)
        for tensor, base in zip(operator.tensors, bases, strict=False) if tensor.role == "output"
    }  # fmt: skip
    return outputs, counts, count_cycles(words, configuration, model)


def addresses(operator: Operator) -> Sequence[int]:
    """Start addresses of an operator's tensors when it is alone, then of its micro-ops: not at 0, so that errors show."""
    step, found = alignment(operator.configuration), [alignment(operator.configuration)]
    for tensor in operator.tensors:
        found.append(found[-1] + -(-tensor.layout.bytes(operator.configuration) // step) * step)
    return found


def _counters(operator: Operator, counts: Counts, taken: Cycles) -> dict[str, float]:
    """Statistics of a program: how busy its parts were, how much it moved."""
    busy = {f"{part}_busy_cycles": float(cycles_) for part, cycles_ in taken.busy.items()}
    loaded = {f"{memory.name.lower()}_bytes_loaded": float(counts.loaded[memory]) for memory in Memory if counts.loaded[memory]}
    return {
        "instructions": float(len(operator.words)), "micro_ops": float(len(operator.uops)), "gemm_cycles": float(taken.gemm), "alu_cycles": float(taken.alu),
        "bus_cycles": float(taken.bus), "close_writes": float(counts.close_writes), "bytes_stored": float(counts.stored), **busy, **loaded,
    }  # fmt: skip


def _model(text: str) -> str:
    name = text.partition(":")[2]
    if name not in MODELS:
        raise DeviceError(f"asked to measure on {text}; its models are {', '.join(f'vta-sim:{one}' for one in MODELS if one)}")
    return name


def _open(text: str, target: Target, say: Say) -> VtaSimulator:
    del say
    name = _model(text)
    if target.kind != "vta":
        raise DeviceError(f"asked to measure programs for {target} on {text}: it runs operators of VTA; leave devices out, or use the target vta")
    return VtaSimulator(text, MODELS[name])


KINDS = (DeviceKind("vta-sim", "a VTA core, simulated; cycles of a stated model", _open, check=_model),)
