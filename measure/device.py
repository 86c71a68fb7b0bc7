"""A device runs what was built and says what it cost: the protocol, and what goes in and comes out.

    Job (artifact, reference, how inputs are made, timing) --Device.run--> Observation (costs with their unit, what was checked), or a Failure

Nothing else in the system knows whether a device is this machine, a board behind a wire or a simulator. `ansor.testing.device_contract` has the
tests that every device passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ansor.codegen.artifact import Artifact
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.targets.unit import Unit


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one candidate.

    task: how inputs are made and outputs judged. reference: what computes the expected outputs, built for the same device; None: nothing is compared.
    best: the lowest cost of the task so far, in the device's unit, for those that stop early.
    """

    task: MeasureTask
    artifact: Artifact
    reference: Artifact | None = None
    timing: TimingOptions = field(default_factory=TimingOptions)
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a device saw of a candidate that ran, and was right.

    costs: of one call, once for each repeat, above 0. cut_short: clearly worse than the best, so that `costs` is one coarse cost.
    check: how its outputs were proved, in words. counters: whatever else was counted, by name, such as bytes sent. measured_by: the device and its machine,
    where the device that was asked stands for others; else ''.
    """

    costs: tuple[float, ...]
    unit: Unit
    cut_short: bool = False
    check: str = ""
    counters: Mapping[str, float] = field(default_factory=dict)
    measured_by: str = ""


class Device(Protocol):
    """Runs one job at a time, from whatever thread. A failure is a value; what was open is opened again when a later job needs it."""

    @property
    def name(self) -> str:
        """The text that opens it again."""

    @property
    def model(self) -> str:
        """What costs depend on: those of devices of one model compare."""

    @property
    def unit(self) -> Unit:
        """What it counts."""

    @property
    def form(self) -> str:
        """The form of artifacts that it runs (`ansor.codegen.artifact`)."""

    @property
    def alone(self) -> bool:
        """Whether nothing may be built while it runs something, as that would disturb what it counts."""

    def run(self, job: Job) -> Observation | Failure:
        """What the job costs, or why it has no cost. Raises DeviceError when the device cannot be used at all."""

    def close(self) -> None:
        """End what runs, and let go of the device. A later job opens it again."""
