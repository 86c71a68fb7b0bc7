"""The protocol of devices, which run built programs and report their cost, with their inputs and results.

    Job (artifact, reference, how inputs are made, timing) --Device.run--> Observation (costs with their unit, what was checked), or a Failure

No other part of the system knows whether a device is this machine, a board behind a wire or a simulator. Every device passes the
tests in `ansor.testing.device_contract`.
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

    task: how inputs are made and outputs judged. reference: computes the expected outputs, built for the same device; None: nothing is compared.
    best: the lowest cost of the task so far, in the device's unit, for devices that stop early.
    """

    task: MeasureTask
    artifact: Artifact
    reference: Artifact | None = None
    timing: TimingOptions = field(default_factory=TimingOptions)
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a device observed of a candidate that ran correctly.

    costs: of one call, one per repeat, above 0. cut_short: clearly worse than the best, so `costs` is one coarse cost.
    check: how its outputs were verified, in words. counters: anything else counted, by name, such as bytes sent. measured_by: the device and its machine,
    if the device is a proxy for others; else ''.
    """

    costs: tuple[float, ...]
    unit: Unit
    cut_short: bool = False
    check: str = ""
    counters: Mapping[str, float] = field(default_factory=dict)
    measured_by: str = ""


class Device(Protocol):
    """Runs one job at a time, from any thread. A failure is returned as a value. A closed device reopens when a later job needs it."""

    @property
    def name(self) -> str:
        """The text that opens it."""

    @property
    def model(self) -> str:
        """What costs depend on: costs are comparable between devices of one model."""

    @property
    def unit(self) -> Unit:
        """The unit of its costs."""

    @property
    def form(self) -> str:
        """The form of artifacts it runs (`ansor.codegen.artifact`)."""

    @property
    def alone(self) -> bool:
        """Whether nothing may be built while it runs, as that would disturb its measurements."""

    def run(self, job: Job) -> Observation | Failure:
        """What the job costs, or why it has no cost. Raises DeviceError if the device cannot be used at all."""

    def close(self) -> None:
        """Stop the running job and release the device. A later job opens it again."""
