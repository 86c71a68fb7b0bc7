"""The target `toy`: its programs are JSON, and cache misses are their main cost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ansor.codegen.artifact import Artifact
from ansor.codegen.building import BuildOutput
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import Compiled
from ansor.errors import ScheduleError
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, Buffer, For, Loops, Node, Store
from ansor.ir.simplify import simplified
from ansor.targets.base import MCPU, Bounds, CodeGenerator, Kind, Option, Target
from ansor.targets.hardware import Caches, Hardware
from ansor.targets.prior import Issue, Overhead, Prior, Traffic
from ansor.targets.unit import cycles
from ansor.te.expr import Binary, Cast, Const, Expr

FORM = "toy program"
CYCLES = cycles("toy")
OPERATIONS = ("add", "sub", "mul", "div", "max", "min")


def default(mcpu: str) -> Target:
    """All toy machines are alike: no vectors, eight registers, a cache of 512 bytes."""
    hardware = Hardware(threads=1, vector_bytes=4, vector_registers=8, caches=Caches(l1_bytes=512))
    return Target("toy", mcpu, hardware, rules=RULES, prior=PRIOR)


# No overlap: one cycle to read or compute a number, 20 cycles to load a line of 32 bytes that is not in the cache.
PRIOR = Prior(Issue(arithmetic=0.5, loads=1.0, latency=1.0, window=1.0), Overhead(result=2.0, spill=2.0, loop=4.0), Traffic((1.6, 1.6, 1.6), way_bytes=512))
RULES = ("always_inline", "multi_level_tiling", "skip_stage")
OPTIONS = (MCPU, Option("threads", "hardware.threads", "count", "threads that run a program: the toy machine has one", Bounds(most=1), always=True))


def emit(target: Target, loops: Loops, entry: str) -> CSource:
    """The program as JSON: its buffers, and its loops as nested lists."""
    program = simplified(loops)
    buffers = [*program.arguments, *program.intermediates]
    local = [buffer for node in program.body for buffer in _locals(node)]
    places = {buffer: place for place, buffer in enumerate([*buffers, *local])}
    code = {
        "buffers": [[buffer.name, buffer.scope, buffer.dtype, int(buffer.size)] for buffer in places],
        "body": [_node(node, places) for node in program.body],
    }
    arguments = tuple(Argument(one.name, program.logical_shapes[one.name], one.dtype, one.scope) for one in program.arguments)
    return CSource(json.dumps(code, indent=1), entry, arguments)


def _locals(node: Node) -> list[Buffer]:
    return [] if isinstance(node, Store) else [*node.locals, *(buffer for inner in node.body for buffer in _locals(inner))]


def _node(node: Node, places: dict[Buffer, int]) -> list[object]:
    if isinstance(node, For):
        fresh = [places[buffer] for buffer in node.locals]
        return ["for", node.var.name, int(node.var.extent), fresh, [_node(inner, places) for inner in node.body]]
    guards = [[_index(guard.value), *(None if bound is None else int(bound) for bound in (guard.low, guard.high))] for guard in node.guards]
    first = [var.name for var in node.reduce_vars]
    return ["store", places[node.buffer], _place(node.buffer, node.index), node.combiner, node.identity, first, guards, _value(node.value, places)]


def _place(buffer: Buffer, index: Sequence[Linear]) -> list[object]:
    """The flat index of an element, as one sum."""
    flat = Linear()
    for part, stride in zip(index, buffer.strides, strict=True):
        flat = flat + part * int(stride)
    return _index(flat)


def _index(linear: Linear) -> list[object]:
    terms: list[object] = [int(linear.const)]
    for atom, factor in linear.terms:
        if not isinstance(atom, Var):
            raise ScheduleError("asked for a toy program with a division in an index; the toy machine can only add: choose another loop order")
        terms.append([atom.name, int(factor)])
    return terms


def _value(value: Expr, places: dict[Buffer, int]) -> list[object]:
    if isinstance(value, Const):
        return ["number", value.value]
    if isinstance(value, Cast):
        return _value(value.value, places)
    if isinstance(value, Access):
        return ["load", places[value.buffer], _place(value.buffer, value.index)]
    if isinstance(value, Binary) and value.op in OPERATIONS:
        return [value.op, _value(value.left, places), _value(value.right, places)]
    raise ScheduleError(f"asked for a toy program with {type(value).__name__}, which the toy machine cannot compute; use {', '.join(OPERATIONS)}")


class ToyToolchain:
    """Builds nothing: the text is the program."""

    version, flags = "toy 1", ()

    def forms(self) -> tuple[str, ...]:
        return (FORM,)

    def together(self, form: str) -> int:
        return 1

    def prepare(self, form: str) -> None:
        pass

    def build(self, sources: Sequence[CSource], form: str, stem: Path, *, timeout: float, cancelled: threading.Event | None = None) -> BuildOutput:
        start, (source,) = time.monotonic(), sources
        path = stem.with_suffix(".toy")
        path.write_text(source.text)
        return BuildOutput((Artifact(source, path, source.entry, form),), Compiled("", "", time.monotonic() - start, ()))


TOY = Kind("toy", default, OPTIONS, "1", CYCLES, "toy-machine", CodeGenerator(emit, lambda target: ToyToolchain()))
