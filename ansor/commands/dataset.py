"""`ansor dataset`: collect measured programs, train a cost model on them, and evaluate how well models rank unseen programs."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ansor.commands.common import make_console, target_of
from ansor.cost_model.base import PACKAGE, CostModel
from ansor.cost_model.feature_table import FEATURES_VERSION
from ansor.cost_model.lightgbm_model import stage_model
from ansor.cost_model.network_model import NetworkModel, write_networks
from ansor.cost_model.pretrained import knows, pretrained, weights_of
from ansor.cost_model.saved import load_model
from ansor.cost_model.training_set import estimated_scores
from ansor.dataset.collect import collect
from ansor.dataset.evaluate import Quality, Score, mean_quality, quality
from ansor.dataset.examples import Examples, load_examples
from ansor.dataset.further import JOINED_BY, StartingModel, starting_model
from ansor.dataset.operators import DatasetTask, tasks_for
from ansor.dataset.split import FOLDS, HELD_OUT, WAYS, fold_of, splits
from ansor.dataset.teach import taught
from ansor.dataset.train import FURTHER, MEMBERS, NETWORK, train_networks, train_trees
from ansor.errors import AnsorError
from ansor.ir.feature_rows import FeatureRows
from ansor.run.states import TaskState
from ansor.support.text import counted
from ansor.targets.base import Target, parse_target
from ansor.tasks.recorded import OTHER_TARGET

TAUGHT = 64
"""The number of programs of a task whose times the package's model predicts; every second task is enough."""


def run_dataset(given: argparse.Namespace) -> int:
    """Run the requested action: collect, train or evaluate."""
    actions = {"collect": _collect, "train": _train, "eval": _evaluate}
    return actions[given.action](given, make_console())


def _collect(given: argparse.Namespace, console: Console) -> int:
    part, parts = given.part
    target = target_of(given)
    tasks = tasks_for(target)
    if unknown := sorted({*given.only} - {task.kind for task in tasks}):
        known = ", ".join(sorted({task.kind for task in tasks}))
        raise AnsorError(f"asked for kinds of operators {', '.join(unknown)}; the data set for {target} has {known}")
    tasks = [task for task in tasks if (not given.only or task.kind in given.only) and (given.search != "tuning" or fold_of(task) != HELD_OUT)]
    tasks = tasks[part - 1 :: parts]
    console.print(f"{len(tasks)} tasks, {given.trials} programs each, for {target}; records in {given.folder}", soft_wrap=True)
    begun = time.monotonic()
    count = 0

    def done(task: DatasetTask, states: Sequence[TaskState]) -> None:
        nonlocal count
        count += 1
        cost = min((state.cost for state in states if state.cost is not None), default=None)
        best = "none valid" if cost is None else f"best {states[0].unit.text(cost)}"
        elapsed = time.monotonic() - begun
        console.print(f"{count}/{len(tasks)} {task.name}: {sum(state.trials for state in states)} programs, {best}; {elapsed / 60:.1f} min", soft_wrap=True)

    collect(tasks, target, Path(given.folder), trials=given.trials, seed=given.seed, search=given.search, done=done)
    return 0


def _examples(given: argparse.Namespace, console: Console) -> list[tuple[Target, list[Examples]]]:
    """The examples of each requested target. Those of different folders are kept apart: measured at different times, they are not comparable."""
    folders = [Path(folder) for folder in given.folders]
    for folder in folders:
        if not folder.is_dir():
            raise AnsorError(f"asked for the data set in {folder}, which is not a folder; run `ansor dataset collect {folder}` first")
    return [(target, _of_target(target, folders, given, console)) for target in (target_of(given), *map(parse_target, given.beside))]


def _of_target(target: Target, folders: Sequence[Path], given: argparse.Namespace, console: Console) -> list[Examples]:
    tasks, found = tasks_for(target), []
    for folder in folders:
        left_out: Counter[str] = Counter()
        if not console.is_terminal:  # on a terminal a progress bar shows it
            console.print(f"computing the features of the programs in {folder} for {target}, which takes minutes for a large folder", soft_wrap=True)
        here = list(track(load_examples(tasks, target, folder, left_out), "features", console=console, total=len(tasks), transient=True))
        for reason, count in left_out.items():
            if not given.beside or not reason.startswith(OTHER_TARGET):
                console.print(f"{count} records are left out: {reason}", soft_wrap=True)
        if here:
            console.print(f"{len(here)} tasks, {sum(map(len, here)):,} programs of {folder} for {target}", soft_wrap=True)
        found += here
    if not found:
        names = " and ".join(map(str, folders)) + (" has" if len(folders) == 1 else " have")
        raise AnsorError(f"{names} no valid records of the data set's tasks for {target}; run `ansor dataset collect {folders[0]}` for this target first")
    return found


def _train(given: argparse.Namespace, console: Console) -> int:
    output = Path(given.output)
    if output.is_dir():
        raise AnsorError(f"asked to save a model as {output}, but that is a folder; name a file in it, such as {output / 'model.gz'}")
    if not output.parent.is_dir():
        raise AnsorError(f"asked to save a model as {output}, but there is no folder {output.parent}; create it first")
    kinds = sorted({task.kind for task in tasks_for(target_of(given))})
    if unknown := sorted({*given.without} - {*kinds}):
        raise AnsorError(f"asked to leave out operators of kind {', '.join(unknown)}; the data set has {', '.join(kinds)}")
    keep = [parse_target(text) for text in given.keep]
    held_out = [*([] if given.all else [f"fold {HELD_OUT} of {FOLDS} by task"]), *given.without]
    begun, options = _starting_model(given, held_out), NETWORK if given.begin is None else FURTHER
    by_target = _examples(given, console)
    learned = [one for _, examples in by_target for one in examples if _is_learned(one.task, given)]
    if not learned:
        raise AnsorError("asked to train, but all tasks with records are held out; collect more, or train on all with --all")
    kept = [one for target in keep for one in _taught(given, target, console)]
    if begun is not None and begun.corrections:
        console.print(f"{given.begin} has {counted(begun.corrections, 'correction')} from measurements of single tasks, which are left out", soft_wrap=True)
    networks = train_networks([*learned, *kept], options, () if begun is None else begun.networks)
    targets = dict.fromkeys([*map(str, [target_of(given), *given.beside]), *([] if begun is None else begun.targets)])
    about = {
        "features": FEATURES_VERSION, "tasks": len({one.task for one in learned}), "programs": sum(map(len, learned)),
        "target": ", ".join(targets), "kept": ", ".join(given.keep),
        "held_out": JOINED_BY.join(held_out), "networks": MEMBERS, "units": len(networks[0].layers.last), "epochs": options.epochs,
        "begin": None if begun is None else begun.about,
    }  # fmt: skip
    write_networks(output, networks, about)
    console.print(f"{output}: {about}", soft_wrap=True)
    model = NetworkModel(networks)
    for target, examples in by_target:
        unseen = [one for one in examples if not _is_learned(one.task, given)]
        if unseen:
            console.print(_tried("networks", model, target, unseen))
    return 0


def _starting_model(given: argparse.Namespace, held_out: Sequence[str]) -> StartingModel | None:
    """The model to train further; None by default. Raises AnsorError if there is none that can be."""
    if given.begin is None:
        return None
    if given.begin != PACKAGE:
        return starting_model(Path(given.begin), held_out)
    return starting_model(weights_of(_family(given, "train the package's model further for", "leave out --begin to start from random weights")), held_out)


def _taught(given: argparse.Namespace, target: Target, console: Console) -> list[Examples]:
    if not knows(target.prior.family, target.unit.name):
        raise AnsorError(f"asked to keep what the package's model predicts for {target}, but the package has no model for it; leave it out of --keep")
    tasks = [task for task in tasks_for(target) if _is_learned(task, given)][::2]
    examples = taught(tasks, target, pretrained(target.prior.family), programs=TAUGHT)
    return list(track(examples, f"programs for {target}", console=console, total=len(tasks), transient=True))


def _is_learned(task: DatasetTask, given: argparse.Namespace) -> bool:
    return (given.all or fold_of(task) != HELD_OUT) and task.kind not in given.without


def _evaluate(given: argparse.Namespace, console: Console) -> int:
    if given.model is not None:
        return _evaluate_model(given, console)
    way = given.split or WAYS[0]
    examples = [one for _, found in _examples(given, console) for one in found]
    parts: dict[str, list[Quality]] = {}
    for split in splits([one.task for one in examples], way):
        held_out = [examples[place] for place in split.held_out]
        learned = [examples[place] for place in split.learned]
        sides: dict[str, Score] = {
            "random": _random, "estimate": estimated_scores, "trees": stage_model(train_trees(learned)).predict,
            "networks": NetworkModel(train_networks(learned)).predict,
        }  # fmt: skip
        found = {name: quality(side, held_out) for name, side in sides.items()}
        for name, one in found.items():
            parts.setdefault(name, []).append(one)
        console.print(_table(f"held out: {split.name}, {len(held_out)} tasks", found))
    if not parts:
        raise AnsorError(f"asked to hold out one {way} at a time, but all tasks with records are of the same one; collect more")
    console.print(_table("all tasks, each while held out", {name: mean_quality(found) for name, found in parts.items()}))
    return 0


def _evaluate_model(given: argparse.Namespace, console: Console) -> int:
    if given.split is not None:
        raise AnsorError("asked to hold out tasks for a model that is already trained; leave out --split, or leave out --model to train others")
    of_package = "test the package's model on programs for", "leave out --model to train others"
    model = pretrained(_family(given, *of_package)) if given.model == PACKAGE else load_model(Path(given.model))
    for target, examples in _examples(given, console):
        unseen = [one for one in examples if fold_of(one.task) == HELD_OUT]
        if not unseen:
            folders = " and ".join(given.folders)
            raise AnsorError(f"asked to test a model on held-out tasks, but there are no records of any for {target} in {folders}; collect more")
        console.print(_tried(given.model, model, target, unseen))
    return 0


def _family(given: argparse.Namespace, asked: str, instead: str) -> str:
    """The family of the targets. Raises AnsorError if the package has no model for it; it says what was asked, and what to do instead."""
    target = target_of(given)
    if not knows(target.prior.family, target.unit.name):
        raise AnsorError(f"asked to {asked} {target}, but the package has no model for it; {instead}")
    return target.prior.family


def _tried(name: str, model: CostModel, target: Target, unseen: Sequence[Examples]) -> Table:
    return _table(f"held out: {len(unseen)} tasks of {target}", {"estimate": quality(estimated_scores, unseen), name: quality(model.predict, unseen)})


def _table(title: str, found: dict[str, Quality]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("scores by", "RMSE", "pairs in order", "peak@1", "peak@5"):
        table.add_column(name, justify="left" if name == "scores by" else "right")
    for name, one in found.items():
        table.add_row(name, f"{one.rmse:.3f}", f"{one.pairwise:.3f}", f"{one.peak1:.3f}", f"{one.peak5:.3f}")
    return table


def _random(features: FeatureRows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(features.count).random(features.count)
