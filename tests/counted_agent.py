"""Agents on emulated boards that count instructions, as clocks of emulators that share the cores of one machine rank programs badly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.measure.agent.address import read_address
from ansor.measure.agent.build import built_agent
from ansor.measure.device import Job, Observation
from ansor.measure.device_kinds import DeviceKind
from ansor.measure.devices.agent import EMULATED, AgentTransport
from ansor.measure.devices.one_job import JobLock
from ansor.measure.devices.qemu import counted, plugin
from ansor.measure.failure import Failure
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.runs import TrialRuns
from ansor.measure.trial.transport import Ended, Limits
from ansor.targets.base import Target
from ansor.targets.unit import INSTRUCTIONS, Unit

MARK = "mark "


class CountedTransport(AgentTransport):
    """Takes the emulator's counts out of a program's output."""

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        """See `Transport`."""
        ended = super().run(program, mode, kept, recipe, limits)
        lines = ended.output.splitlines(keepends=True)
        marks = "".join(line for line in lines if line.startswith(MARK))
        return Ended("".join(line for line in lines if not line.startswith(MARK)), ended.failure, {**ended.counters, **counted(marks)})


class CountedAgent:
    """`counted-agent:ADDRESS`: the agent with that address, which runs programs as `counting_agent` says."""

    unit: Unit = INSTRUCTIONS
    form = PROGRAM
    alone = False
    model = "emulated, counted"

    def __init__(self, text: str, target: Target, say: Callable[[str], None]) -> None:
        del target, say
        self.name, self._one = text, JobLock()
        self._transport = CountedTransport(read_address(text.partition(":")[2]), self._one.closing)
        self._runs = TrialRuns(self._transport, INSTRUCTIONS, slower=EMULATED, proof=HostProof(closing=self._one.closing))

    def run(self, job: Job) -> Observation | Failure:
        with self._one.running():
            return self._runs.run(job)

    def close(self) -> None:
        with self._one.ended(self._transport.interrupt):
            self._transport.close()


KIND = DeviceKind("counted-agent", "an agent under an emulator that counts", CountedAgent)


def counting_agent(store: Path, emulator: str) -> str:
    """The device: an agent started on this machine, with an emulator that writes its counts among what programs print."""
    return f"counted-agent:agent-stdio:{built_agent()} -store {store} -with '{emulator} -plugin {plugin()},out=/dev/stdout'"
