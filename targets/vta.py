"""The kind `vta`: an accelerator with its own instructions (`ansor.vta`). Programs are operators; costs are cycles of the device's stated model."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import lru_cache

from ansor.codegen.generate import generate
from ansor.codegen.machine import Machine
from ansor.codegen.source import Argument, CSource
from ansor.errors import TargetError
from ansor.ir.columns import Row
from ansor.ir.dag import Dag
from ansor.ir.loops import Loops
from ansor.schedule.legality import LIMITS
from ansor.schedule.machine import Limit
from ansor.targets.base import CodeGenerator, Kind, LoopUse, Option, OwnAlgorithms, Target, register_kind
from ansor.targets.hardware import Caches, Hardware, Memory
from ansor.targets.prior import Prior
from ansor.targets.unit import cycles
from ansor.vta.compiled import called_as
from ansor.vta.configuration import CORE_32, CORE_64, DEFAULT, Configuration
from ansor.vta.cycles import CHISEL
from ansor.vta.estimate import estimated_cycles
from ansor.vta.generate import compile_operator, is_for_core
from ansor.vta.limits import limits_of
from ansor.vta.refusals import refusal
from ansor.vta.toolchain import VtaToolchain, is_operator
from ansor.vta.work import work_on_core

CORES = {"default": DEFAULT, "32": CORE_32, "64": CORE_64}
CORE = Option("core", "mcpu", "text", "default (16 x 16), 32, 64, or sizes as powers of two: block=5,weight_bytes=19", always=True)


_NEVER = 1e30
"""Cycles of plain loops, which no core can run."""


@lru_cache
def configuration_named(text: str) -> Configuration:
    """The configuration named by `-core`. Raises TargetError for another text."""
    if text in CORES:
        return CORES[text]
    names = [field.name for field in fields(Configuration)]
    given = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if len(given) != text.count(",") + 1 or not all(name in names and re.fullmatch(r"\d{1,2}", value) for name, value in given.items()):
        raise TargetError(f"asked for target vta with -core={text}; cores are {', '.join(CORES)}, or some of {', '.join(names)} as powers of two: block=5")
    return Configuration(**{name: int(value) for name, value in given.items()})


def configuration_of(target: Target) -> Configuration:
    """The core of a target."""
    return configuration_named(target.mcpu)


def _text_of(configuration: Configuration) -> str:
    """The canonical text of a configuration, so that all its records have one target."""
    named = next((name for name, one in CORES.items() if one == configuration), "")
    sizes = [(field.name, getattr(configuration, field.name)) for field in fields(Configuration)]
    return named or ",".join(f"{name}={size}" for name, size in sizes if size != getattr(DEFAULT, name))


def _default(core: str) -> Target:
    configuration = configuration_named(core)
    core = _text_of(configuration)
    scratchpads = tuple((scope, 1 << size) for scope, size in (
        ("inp", configuration.input_bytes), ("wgt", configuration.weight_bytes), ("acc", configuration.accumulator_bytes),
    ))  # fmt: skip
    block, rows = 1 << configuration.block, 1 << configuration.batch
    hardware = Hardware(1, block, 1 << 16, Caches(1 << configuration.accumulator_bytes), Memory(others=scratchpads))
    return Target("vta", core, hardware, rules=(f"scratchpad_tiling(block={block}, rows={rows})", "skip_stage"), prior=Prior())


def _emit(target: Target, loops: Loops, entry: str) -> CSource:
    """An operator if the loops use the core. Plain loops, such as references, are C for this machine."""
    if not is_for_core(loops):
        return generate(loops, Machine(16, 1), entry)
    arguments = tuple(Argument(one.name, loops.logical_shapes[one.name], one.dtype, one.scope) for one in loops.arguments)
    return CSource(compile_operator(loops, configuration_of(target)).to_text(), entry, arguments)


def _limits(target: Target) -> tuple[Limit, ...]:
    memories = tuple(limit for limit in LIMITS if limit.name == "memories")
    return (*limits_of(configuration_of(target)), *memories)


def _cycles(target: Target, loops: Loops) -> Row:
    configuration = configuration_of(target)
    work = work_on_core(loops, configuration)
    return _NEVER if work is None else estimated_cycles(work, configuration, CHISEL)


def _refusal(target: Target, dag: Dag) -> str:
    return refusal(dag, 1 << configuration_of(target).block)


def _algorithms(target: Target) -> tuple[str, ...]:
    return f"groups_{1 << configuration_of(target).block}", "one_channel"


def _called(source: CSource) -> CSource:
    return replace(source, text=called_as(source.text, source.arguments)) if is_operator(source) else source


VTA = register_kind(Kind(
    "vta", _default, (CORE,), "default", cycles(CHISEL.name), "vta-sim",
    CodeGenerator(
        _emit, lambda target: VtaToolchain(), limits=_limits, cost=_cycles, loops=LoopUse(open=False, plain=False), refusal=_refusal,
        algorithms=OwnAlgorithms(_algorithms, _called),
    ),
))  # fmt: skip
