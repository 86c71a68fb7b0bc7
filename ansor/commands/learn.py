"""`ansor doctor --learn` fits the cost model to this machine."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ansor.commands.common import doing, target_of
from ansor.dataset import learn
from ansor.dataset.collect import Done
from ansor.dataset.evaluate import Quality
from ansor.dataset.examples import Examples
from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.errors import AnsorError
from ansor.run.machine_checks import check_machine, check_tools
from ansor.run.machine_model import forget_model, is_fittable, keep_model, machine_model, name_of
from ansor.run.states import TaskState
from ansor.support.settings import cache_part
from ansor.support.text import counted
from ansor.targets.base import Target


def run_learn(given: argparse.Namespace, console: Console) -> int:
    """Measure for the given minutes, train, evaluate, and keep the model if it is better. With 0 minutes, remove the kept one."""
    target = target_of(given)
    if not is_fittable(target):
        raise AnsorError(f"asked to fit a cost model to {target}; it can only be fitted to this machine: leave --target out, or give 'cpu -threads=N'")
    if given.learn == 0:
        return _forget(target, console)
    check_machine(target, measures=True)
    check_tools(target)
    folder = cache_part("learning") / name_of(target)
    tasks = learn.spread(dataset_tasks())
    console.print(f"measuring programs of {counted(len(tasks), 'task')} for {target} in turn, for {given.learn:g} min; records in {folder}", soft_wrap=True)
    learn.measure(tasks, target, folder, 60.0 * given.learn, done=_teller(console))
    with doing(console, "computing the features of the measured programs"):
        learned, held_out = learn.examples(tasks, target, folder)
    if not learned or len(held_out) < learn.LEAST_HELD_OUT:
        found = f"{len(learned)} training tasks and {len(held_out)} held-out tasks have measured programs"
        raise AnsorError(
            f"asked to learn for {given.learn:g} min; {found}, but at least 1 and {learn.LEAST_HELD_OUT} are needed; run the same command to continue"
        )
    return _learned(target, learned, held_out, console)


def _learned(target: Target, learned: Sequence[Examples], held_out: Sequence[Examples], console: Console) -> int:
    programs = sum(map(len, learned))
    said = f"training on {counted(programs, 'program')} of {counted(len(learned), 'task')}, and on the package model's predictions for other machines"
    console.print(said, soft_wrap=True)
    before = machine_model(target)
    with doing(console, "training"):
        networks = learn.fit(learned)
    found = learn.tried(networks, held_out, None if before is None else before.model)
    console.print(table_of(found))
    if not found.better:
        stays = "the package's model" if before is None else "the model in use"
        console.print(f"not kept, because it is no better on the held-out tasks: {stays} stays in use; run the command again to add programs", soft_wrap=True)
        return 0
    about = {"tasks": len(learned), "programs": programs, "held_out": len(held_out), "made": time.strftime("%Y-%m-%d")}
    path = keep_model(target, networks, about)
    console.print(f"kept: it chooses programs for {target} on this machine from now on; --model package selects the package's, --learn 0 removes it\n{path}",
                  soft_wrap=True)  # fmt: skip
    return 0


def _forget(target: Target, console: Console) -> int:
    removed = forget_model(target)
    said = "removed the model of this machine" if removed else "there is no model of this machine"
    console.print(f"{said} for {target}; the package's model chooses programs", soft_wrap=True)
    return 0


def _teller(console: Console) -> Done:
    begun = time.monotonic()

    def done(task: DatasetTask, states: Sequence[TaskState]) -> None:
        console.print(f"{(time.monotonic() - begun) / 60:.1f} min  {task.name}: {counted(sum(state.trials for state in states), 'program')}", soft_wrap=True)

    return done


def table_of(found: learn.Tried) -> Table:
    """Each model on the held-out tasks."""
    table = Table(title=f"{counted(found.package.tasks, 'task')} held out", title_justify="left")
    for name in ("scores by", "pairs in order", "peak@1", "peak@5"):
        table.add_column(name, justify="left" if name == "scores by" else "right")
    rows: list[tuple[str, Quality | None]] = [
        ("the package's model", found.package), ("the model in use", found.before), ("the new model", found.fitted), ("the estimate alone", found.estimate)
    ]  # fmt: skip
    for name, one in rows:
        if one is not None:
            table.add_row(name, f"{100 * one.pairwise:.1f} %", f"{one.peak1:.3f}", f"{one.peak5:.3f}")
    return table
