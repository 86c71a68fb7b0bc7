"""Compiles the groups of a network into one callable: tunes them, chooses and builds their programs, and compares them with PyTorch's own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ansor.networks import kept_plans
from ansor.networks.library_choice import Assembled, assembled, runs_here
from ansor.networks.network_kernel import NetworkKernel
from ansor.networks.program_choice import Contenders, chosen_in_network
from ansor.networks.row_choice import Partition, partition
from ansor.networks.saving import NetworkWriter
from ansor.networks.step_run import joined
from ansor.run.choosing import chosen, contending, is_tunable, recorded_states, say_guesses, say_refused
from ansor.run.kernels import built
from ansor.run.keywords import RunOptions
from ansor.run.machine_checks import check_tools
from ansor.run.picks_together import pick_together
from ansor.run.reporter import Reporter, quiet
from ansor.run.session import tune_states
from ansor.run.states import TaskState
from ansor.support.text import counted
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask

if TYPE_CHECKING:
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import ExtractedGraph

OnTasks = Callable[[list[TaskState]], None]


def compiled(
    whole: ExtractedGraph, target: Target, asked: RunOptions, reporter: Reporter, *, library: bool, on_tasks: OnTasks, divides: bool = True
) -> CompiledNetwork:
    """Compile the network. library: use PyTorch's kernels where they are faster; on_tasks: gets the states of all tasks once their programs are chosen;
    divides: compute a stretch for a few rows at a time where that is faster."""
    from ansor.graph.attention_blocks import divided
    from ansor.graph.network import CompiledNetwork

    toolchain = check_tools(target) if whole.tasks else None
    found = partition(whole, target, asked, reporter) if divides and toolchain is not None else Partition()
    extracted = divided(whole, found.stretch, target.threads)
    if line := found.told(whole):
        reporter.say(line)
    name = kept_plans.name_of(extracted, target, asked, library) if toolchain is not None and on_tasks is quiet else ""
    kernels = kept_plans.found(name, extracted, target, reporter) if name else None
    if kernels is not None:
        network = CompiledNetwork(extracted, kernels)
    else:
        recording = kept_plans.RecordingReporter(reporter.view, reporter.report, reporter.on_progress)
        network, compared = _chosen(extracted, target, asked, recording, library=library, on_tasks=on_tasks)
        if name and compared and not any(how == "alarm" for how, _ in recording.lines):
            kept_plans.keep(name, network.kernels, recording.lines)
    network.run_by(joined)
    network.writer, network.stretch = NetworkWriter(target), found.stretch
    if whole.shared is not None:
        whole.shared.add(network.constants)
    found.record(whole, target, asked.records)
    return network


def _chosen(extracted: ExtractedGraph, target: Target, asked: RunOptions, reporter: Reporter, *, library: bool, on_tasks: OnTasks) -> Assembled:
    """Tune the tasks, choose their programs, and build the network."""
    from ansor.graph.network import CompiledNetwork

    tasks = [SearchTask(tensors=group.tensors, target=target, name=group.name) for group in extracted.tasks]
    states = recorded_states([(task, float(group.weight)) for task, group in zip(tasks, extracted.tasks, strict=True)], asked.records)
    tune_states(states, asked, reporter)
    reporter.now(f"choosing programs for {counted(len(tasks), 'kernel')}")
    pick_together(list(states.values()), asked.search.model, asked.search.seed)
    bests = {key: chosen(state, asked.search.model, asked.search.seed) for key, state in states.items()}
    if tasks and runs_here(target):
        contenders = Contenders(extracted, tasks, {key: contending(states[key], best) for key, best in bests.items()})
        bests = chosen_in_network(contenders, asked.records, reporter, measures=asked.measures)
    for state in states.values():
        if state.best is not None:
            state.best = bests[state.task.workload_key]
    on_tasks(list(states.values()))
    say_refused(list(states.values()), reporter.alarm)
    say_guesses([state for state in states.values() if is_tunable(state.task)], reporter.say, hint=not asked.given)
    reporter.now(f"building {counted(len(tasks), 'kernel')}")
    programs = [bests[task.workload_key] for task in tasks]
    ours = [NetworkKernel(kernel) for kernel in built(tasks, programs, target.toolchain() if tasks else None, reporter.alarm)]
    if not (library and tasks and runs_here(target)):
        return Assembled(CompiledNetwork(extracted, ours))
    reporter.now("comparing with PyTorch's kernels")
    return assembled(extracted, tasks, programs, ours, asked.records, reporter.say)
