"""A network as a folder of C that needs no Python: a header, plans and kernels for one or several instruction sets, constants, a self-test, CMakeLists.txt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.exported import CHECKS, RECORDED
from ansor.errors import MeasureError
from ansor.graph.plan import NetworkPlan
from ansor.measure.record import load
from ansor.measure.record_target import options_text
from ansor.networks.export_text import chooser, cmake, constants_text, entry_of, header, readme, recorded_places
from ansor.networks.instruction_sets import FALLBACK, InstructionSet
from ansor.networks.plan_code import plan_text
from ansor.networks.planning import Constants
from ansor.networks.saved_network import CONSTANTS_FILE, KERNELS
from ansor.networks.variants import Programs, Variant, programs, variant_of
from ansor.run.choosing import say_unused
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.support.bfloat16 import is_floating
from ansor.support.safe_files import make_folder, write_whole
from ansor.support.text import counted
from ansor.targets.base import Target

if TYPE_CHECKING:
    from ansor.graph.export import CallArguments
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import ExtractedGraph

SELFTEST = Path(__file__).with_name("selftest.c")
INTEGERS = 2  # made-up integers are below this if no index check limits them
Array = NDArray[np.generic]


@dataclass(frozen=True)
class Exported:
    """An exported network: variants, preferred ones first, the constants that they read, and values for the self-test."""

    variants: Sequence[Variant]
    constants: Constants
    recorded: bytes

    def write(self, folder: Path, *, embed: bool) -> None:
        """Write all files. embed: constants as a C array, not as a file. Raises MeasureError if the folder cannot be written to."""
        content, plan = self.constants.content, self.variants[0].plan
        files = {
            "network.h": header(self.variants, len(content), embed), "network.c": chooser([one.isa for one in self.variants]),
            "selftest.h": recorded_places(plan, embed), "CMakeLists.txt": cmake([one.isa for one in self.variants], embed),
            "README.md": readme([one.isa for one in self.variants], embed),
            **{name: text for one in self.variants for name, text in _texts(one).items()},
            **({"constants.c": constants_text(content)} if embed else {}),
        }  # fmt: skip
        others = {CHECKS.name: CHECKS.read_bytes(), "selftest.c": SELFTEST.read_bytes(), RECORDED: self.recorded} | ({} if embed else {CONSTANTS_FILE: content})
        try:
            for one in self.variants:
                make_folder(folder / KERNELS / one.isa.name)
            for name, written in (others | {name: text.encode() for name, text in files.items()}).items():
                write_whole(folder / name, written)
        except OSError as error:
            text = f"asked to export a network to {folder}, which cannot be written to ({error.strerror or error}); name another folder"
            raise MeasureError(text) from error


def _texts(one: Variant) -> dict[str, str]:
    """The files of a variant: the plan, and one for each kernel."""
    place = f"{KERNELS}/{one.isa.name}"
    return {f"{place}/plan.c": plan_text(one.plan, entry_of(one.isa)), **{f"{place}/{number}.c": text for number, text in enumerate(one.texts)}}


def export(network: CompiledNetwork, folder: Path, target: Target, examples: CallArguments | None, embed: bool) -> None:
    """Write a compiled network for the processor of its target. Raises ModelError if the network cannot run without PyTorch, and MeasureError if the folder
    cannot be written to."""
    constants, isa = Constants(), InstructionSet(target.mcpu.replace("_", "-") or "native", str(target), "${ANSOR_MARCH}")
    one = variant_of(network, isa, constants)
    Exported([one], constants, recorded(network, one.plan, examples)).write(folder, embed=embed)


def export_for(extracted: ExtractedGraph, isas: Sequence[InstructionSet], threads: int, asked: RunOptions, reporter: Reporter) -> Exported:
    """Export a model for several instruction sets. The self-test expects the results of the last set's programs, which are built and run here."""
    from ansor.graph.attention_blocks import in_blocks

    extracted = in_blocks(extracted, threads)
    constants, taken = Constants(), [programs(extracted, isa, threads, asked, reporter) for isa in isas]
    if asked.records is not None and asked.records.exists() and extracted.tasks:
        _say_origins(list(zip(isas, taken, strict=True)), threads, asked.records, reporter)
    found = [variant_of(one.written(extracted, isa), isa, constants) for one, isa in zip(taken, isas, strict=True)]
    return Exported(found, constants, recorded(taken[-1].built(extracted, reporter), found[-1].plan, extracted.examples))


def _say_origins(chosen: Sequence[tuple[InstructionSet, Programs]], threads: int, records: Path, reporter: Reporter) -> None:
    """Say for each instruction set how many kernels are from records, and what to do if none are."""
    held = list(dict.fromkeys(options_text(record.target) for record in load(records).records))
    named = [(isa, str(isa.target_of(threads)), one) for isa, one in chosen if isa != FALLBACK]
    for isa, target, one in named:
        cure = "" if one.recorded else f" (tune for --target '{target}')"
        picked = len(one.tasks) - one.recorded
        reporter.say(f"{isa.name}: {one.recorded} of {counted(len(one.tasks), 'kernel')} from records{cure}, {picked} picked by the model")
        if target in held:
            say_unused({id(state): state for state in one.states}.values(), records, reporter.say, reporter.alarm)
    if held and named and not {target for _, target, _ in named} & set(held):
        cure = "tune for the instruction sets, or export for this machine's processor alone: --isas native, or `export` of the network that compile returns"
        reporter.alarm(f"no program in {records} is used, because it holds programs for {' and '.join(held)}; {cure}")


def recorded(network: CompiledNetwork, plan: NetworkPlan, examples: CallArguments | None) -> bytes:
    """Inputs, made up if there are none, and the network's outputs for them."""
    with network.lock:
        network.fill(examples)
        layout = network.layout()
        inputs = [array for _, array in layout.inputs if array is not None]
        if examples is None:
            for array, made in zip(inputs, _made_up(plan), strict=True):
                np.copyto(array, made)
        given = [array.tobytes() for array in inputs]
        for _, step in network.steps:
            step()
        return b"".join([*given, *(array.tobytes() for array in leaves(layout.results))])


def _made_up(plan: NetworkPlan) -> list[Array]:
    """Numbers from -1 to 1, and indices that are in range for every table that they are used with."""
    random = np.random.default_rng(0)
    rows = {check.place: min(one.rows for one in plan.checks if one.place == check.place) for check in plan.checks}
    return [(random.uniform(-1, 1, one.shape) if is_floating(np.dtype(one.dtype)) else random.integers(0, rows.get(one.place, INTEGERS), one.shape))
            .astype(one.dtype) for one in plan.inputs]  # fmt: skip


def leaves(results: object) -> Sequence[Array]:
    """The arrays among nested results, in the order of a plan's outputs."""
    from ansor.graph.opened import Opened

    held = results.parts if isinstance(results, Opened) else results
    if isinstance(held, np.ndarray):
        return [held]
    several = held.values() if isinstance(held, Mapping) else held if isinstance(held, (tuple, list)) else ()
    return [array for one in several for array in leaves(one)]
