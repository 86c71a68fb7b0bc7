"""A network for several instruction sets: the programs chosen for each, as C that shares one arena and one set of constants. It cannot be run here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.graph.plan import NetworkPlan
from ansor.networks.instruction_sets import InstructionSet
from ansor.networks.network_kernel import NetworkKernel, WrittenKernel
from ansor.networks.planning import Constants, Planning
from ansor.run.choosing import chosen, recorded_states, say_refused
from ansor.run.kernels import built
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.run.states import Best, TaskState
from ansor.support.text import counted
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import ExtractedGraph


@dataclass(frozen=True)
class Variant:
    """The network for one instruction set: the plan of its calls, and the C texts of its kernels."""

    isa: InstructionSet
    plan: NetworkPlan
    texts: tuple[str, ...]


def variant_of(network: CompiledNetwork, isa: InstructionSet, constants: Constants) -> Variant:
    """A compiled network as the variant for an instruction set; adds its constants to `constants`. Raises ModelError if steps run in PyTorch."""
    planning = Planning(network, constants)
    return Variant(isa, planning.plan, tuple(kernel.code.text for kernel in planning.kernels))


@dataclass(frozen=True)
class Programs:
    """The chosen programs for one target, one for each task. states: what the records know about each."""

    tasks: Sequence[SearchTask]
    bests: Sequence[Best]
    states: Sequence[TaskState]

    @property
    def recorded(self) -> int:
        """How many programs are from records."""
        return sum(state.best is not None for state in self.states)

    def written(self, extracted: ExtractedGraph, isa: InstructionSet) -> CompiledNetwork:
        """The network of the programs' C texts, which cannot be called."""
        from ansor.graph.network import CompiledNetwork

        names = [isa.symbol(f"{task.name}_{number}") for number, task in enumerate(self.tasks)]
        rows = zip(self.tasks, self.bests, names, strict=True)
        return CompiledNetwork(extracted, [WrittenKernel(task.name, task.source(best.sketch, best.row, name)) for task, best, name in rows])

    def built(self, extracted: ExtractedGraph, reporter: Reporter) -> CompiledNetwork:
        """The network of the programs' kernels, built for this machine, whatever target the programs were chosen for."""
        from ansor.graph.network import CompiledNetwork

        reporter.now(f"building {counted(len(self.tasks), 'kernel')}")
        toolchain = parse_target("cpu").toolchain() if self.tasks else None
        return CompiledNetwork(extracted, [NetworkKernel(kernel) for kernel in built(self.tasks, self.bests, toolchain, reporter.alarm)])


def programs(extracted: ExtractedGraph, isa: InstructionSet, threads: int, asked: RunOptions, reporter: Reporter) -> Programs:
    """The best recorded programs for an instruction set, and the model's picks where there are none."""
    reporter.now(f"choosing programs for {counted(len(extracted.tasks), 'kernel')}, {isa.name}")
    target = isa.target_of(threads)
    tasks = [SearchTask(tensors=group.tensors, target=target, name=group.name) for group in extracted.tasks]
    states = recorded_states([(task, float(group.weight)) for task, group in zip(tasks, extracted.tasks, strict=True)], asked.records)
    bests = [chosen(states[task.workload_key], asked.search.model, asked.search.seed) for task in tasks]
    say_refused(list(states.values()), reporter.alarm)
    return Programs(tasks, bests, [states[task.workload_key] for task in tasks])
