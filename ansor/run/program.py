"""A program for another machine: the result of `auto_schedule` if it cannot be loaded into this process."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from ansor.codegen.building import Toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.codegen.pool_library import SOURCE as POOL
from ansor.codegen.source import Argument, CSource, signature
from ansor.codegen.trial.manifest import program_text
from ansor.codegen.trial.program import FOLDER, SOURCES
from ansor.errors import MeasureError, ToolchainError
from ansor.ir.dag import c_identifier
from ansor.measure.failure import Failure
from ansor.measure.kernel import Kernel
from ansor.measure.kernel_html import kernel_html
from ansor.measure.measure_task import MeasureTask
from ansor.measure.trial.fill import Fill, fills_of
from ansor.measure.trial.proof import Growths, HostProof, growths
from ansor.measure.trial.recipe import check_lines, input_lines, moves_line, recipe_text
from ansor.measure.verify import INSENSITIVE
from ansor.measure.worker import POSITIVE
from ansor.run.board_program import TEST, board_files
from ansor.run.kernels import built, schedule_text
from ansor.run.reporter import Report
from ansor.run.states import Best
from ansor.support.notices import warn
from ansor.support.safe_files import make_folder, write_whole
from ansor.support.text import counted
from ansor.targets.base import Target, find_kind
from ansor.targets.unit import SECONDS, Unit
from ansor.tasks.task import SearchTask

UNMEASURED = "# No C compiler worked where this was written: the bound for long sums assumes that their roundings cancel. A right program may exceed it."


@dataclass(frozen=True, repr=False)
class Measured:
    """cost: the cost of one run in `unit`, None if nothing was measured. stats: other counts of the device, by name, such as `tensor_bytes_sent`."""

    cost: float | None = None
    unit: Unit = SECONDS
    stats: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Program:
    """The C code of a program and what is known about it; attributes are named as in `Kernel`.

    schedule: its loops as text. measured: its cost. origin: its origin, "" for the plain declaration. task: the reference for its outputs.
    """

    name: str
    target: Target
    code: CSource
    task: MeasureTask
    schedule: str = ""
    measured: Measured = Measured()
    origin: str = ""

    def __repr__(self) -> str:
        measured = f", measured {self.unit.text(self.cost)}" if self.cost is not None else ""
        return f"Program({self.name} for {self.target}: {signature(self.arguments)}; {counted(self.code.threads, 'thread')}{measured})"

    def _repr_html_(self) -> str:
        return kernel_html(repr(self), self.arguments, self.schedule, self.source)

    @property
    def cost(self) -> float | None:
        """The cost of one run in `unit`, None if nothing was measured."""
        return self.measured.cost

    @property
    def unit(self) -> Unit:
        """The unit of the cost."""
        return self.measured.unit

    @property
    def stats(self) -> Mapping[str, float]:
        """Other counts of the device, by name."""
        return self.measured.stats

    @property
    def source(self) -> str:
        """The C text."""
        return self.code.text

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Inputs, constants and outputs in declaration order."""
        return self.code.arguments

    @property
    def latency_s(self) -> float | None:
        """The cost if it is in seconds, else None."""
        return self.cost if self.unit == SECONDS else None

    def bind_constants(self, constants: object) -> NoReturn:
        """A program for another machine gets its constants there: raises MeasureError."""
        raise MeasureError(f"asked to bind constants of {self.name}, a program for {self.target} that does not run here; use save(folder)")

    def __call__(self, *inputs: object, **named: object) -> NoReturn:
        """A program for another machine cannot be called: raises MeasureError."""
        raise MeasureError(f"asked to call {self.name}, a program for {self.target}, which does not run in this process; use save(folder)")

    def save(self, folder: str | Path) -> Path:
        """Write C, a header, a build script and a self-test, which need only a C compiler. Existing files are replaced. A board also gets a linker script,
        and its self-test is an image that its simulator runs.

        `sh build.sh` builds a static library. `sh build.sh test` also builds and runs the self-test: it fills the inputs from a seed, computes the outputs
        with plain loops in double precision (for a board, this is done here), and compares. A program that is not C is written as text, to one file named
        after it and the kind of its target. Raises MeasureError when the folder cannot be written to.
        """
        place = Path(folder)
        try:
            for name, text in files_of(self).items():
                make_folder((place / name).parent)
                write_whole(place / name, text.encode(), 0o755 if name.endswith(".sh") else 0o644)
        except OSError as error:
            raise MeasureError(f"asked to save a program in {place}, which cannot be written to ({error.strerror or error}); name another folder") from error
        return place


def results(
    tasks: Sequence[SearchTask], bests: Sequence[Best], toolchain: Toolchain | None = None, report: Report = warn, stats: Mapping[str, float] | None = None
) -> Sequence[Kernel | Program]:
    """The result for each task of one target: a kernel if it runs in this process, else a program."""
    if tasks and not tasks[0].target.is_local:
        return [program_of(task, best, stats) for task, best in zip(tasks, bests, strict=True)]
    kernels = built(tasks, bests, toolchain, report)
    for kernel in kernels:
        kernel.stats = dict(stats or {})
    return kernels


def program_of(task: SearchTask, best: Best, stats: Mapping[str, float] | None = None) -> Program:
    """The chosen program of a task."""
    code = task.source(best.sketch, best.row, c_identifier(task.name))
    cost = best.cost if math.isfinite(best.cost) else None
    unit = task.target.unit if cost is None else best.unit
    return Program(task.name, task.target, code, task.measure_task, schedule_text(task, best), Measured(cost, unit, dict(stats or {})), best.origin)


def files_of(program: Program) -> Mapping[str, str]:
    """The text of each file, by its path in the folder."""
    code, toolchain = program.code, program.target.toolchain()
    if not isinstance(toolchain, CToolchain | ImageToolchain):
        return {f"{code.entry}.{program.target.kind}": code.text}
    if isinstance(toolchain, ImageToolchain):
        header = {f"{code.entry}.h": header_text(program)}
        return {**header, **board_files(code, toolchain.board, toolchain.machine, program.task)}
    reference = program.task.reference
    proof = _host_proof(reference)
    unmeasured = reference is not None and reference.plain is not None and proof is None
    found = {f"{code.entry}.c": code.text, f"{code.entry}.h": header_text(program), "build.sh": build_text(program, unmeasured)}
    if reference is None:
        return found
    found |= {f"{TEST}/{path.name}": path.read_text() for path in (*SOURCES, *sorted(FOLDER.glob("*.h")))}
    if code.threads > 1:
        found[f"{TEST}/{POOL.name}"] = POOL.read_text()
    found[f"{TEST}/kernel.c"] = f'#include "../{code.entry}.h"\n{program_text(code).removeprefix(code.text)}'
    found[f"{TEST}/reference.c"] = program_text(reference)
    return found | {f"{TEST}/{name}.txt": text for name, text in _recipes(program, reference, proof).items()}


def _host_proof(reference: CSource | None) -> HostProof | None:
    """What runs a reference with long sums here; None if it has none, or no C compiler works here."""
    if reference is None or reference.plain is None:
        return None
    try:
        return HostProof()
    except ToolchainError:
        return None


def _recipes(program: Program, reference: CSource, proof: HostProof | None) -> dict[str, str]:
    """The recipes of the self-test's two programs, for the usual inputs and for positive ones: the same inputs, and the bounds for results."""
    task, outputs = program.task, tuple(one for one in reference.arguments if one.role == "output")
    positive = {one.name: POSITIVE for one in program.arguments if one.dtype.startswith("float")}
    told = {}
    for word, floats in (("usual", {}), ("positive", positive)):
        fills = fills_of(program.arguments, task.seed, floats | {name: (low, high) for name, low, high in task.ranges})
        told[f"reference-{word}"] = recipe_text([*input_lines(reference.arguments, fills), moves_line(task.seed, task.rounding)])
        checks = check_lines(program.code, outputs, task.reduction, task.rounding, _measured(program, reference, fills, proof))
        told[f"kernel-{word}"] = recipe_text([*input_lines(program.arguments, fills), *checks, f"threads {program.code.threads}"])
    return told


def _measured(program: Program, reference: CSource, fills: Mapping[str, Fill], proof: HostProof | None) -> Growths:
    """The growth of errors of long sums of these values, measured here; none if they cannot run here."""
    if proof is None:
        return {}
    inputs = {one.name: fills[one.name].array(one.shape) for one in program.arguments if one.role != "output"}
    made = proof.outputs(reference, [inputs])
    if isinstance(made, Failure):
        return {}
    still = dict.fromkeys(made[0], INSENSITIVE)
    moves = proof.with_plain(reference, inputs, made[0], still, program.task.reduction)
    scale = max((float(np.abs(one).max()) for one in inputs.values() if one.dtype.kind == "f" and one.size), default=1.0)
    return {} if isinstance(moves, Failure) else growths(program.code, program.task.rounding, made[0], moves, scale)


def header_text(program: Program) -> str:
    """The header: the entry point and a description of each argument."""
    code = program.code
    guard = f"ANSOR_{code.entry.upper()}_H"
    lines = [f"/* {program.name} for {program.target}.", " *"]
    for number, one in enumerate(program.arguments):
        stored = "" if one.as_given else f", {one.physical_size} elements in the order shown in the self-test"
        lines.append(f" * args[{number}]  {one.role:8s} {one.name}: {one.dtype}[{', '.join(map(str, one.shape))}]{stored}")
    lines += [" *", " * Every buffer and the workspace begin at a multiple of 64 bytes. parallel_for and pool: NULL if the program has one thread. */"]
    bounds = [f"#define {code.entry.upper()}_WORKSPACE_BYTES {code.workspace_bytes}", f"#define {code.entry.upper()}_THREADS {code.threads}"]
    parallel = "void (*parallel_for)(void *pool, void (*body)(void *ctx, long begin, long end), void *ctx, long n), void *pool"
    entry = f"void {code.entry}(void *const *args, unsigned char *workspace, {parallel});"
    if not program.target.dialect.pool:
        entry = f"void {code.entry}(void *const *args, unsigned char *workspace);"
    return "\n".join([*lines, f"#ifndef {guard}", f"#define {guard}", "", *bounds, "", entry, "", "#endif", ""])


def _processor(target: Target) -> str:
    """The processor as gcc and clang name it, with the features that differ from its defaults."""
    usual, found = find_kind(target.kind).default(target.mcpu).hardware.features, target.hardware.features
    return "".join([target.mcpu, *(f"+{name}" for name in sorted(found - usual)), *(f"+no{name}" for name in sorted(usual - found))])


def build_text(program: Program, unmeasured: bool = False) -> str:
    """A shell script that builds with the C compiler in CC. unmeasured: the self-test's bound for long sums had to be assumed."""
    code = program.code
    machine = shlex.quote(f"-mcpu={_processor(program.target)}") if program.target.mcpu not in ("", "native") else ""
    objects = " ".join([f"{TEST}/{path.stem}" for path in SOURCES] + ([f"{TEST}/{POOL.stem}"] if code.threads > 1 else []))
    assumed = f"{UNMEASURED}\n" if unmeasured else ""
    test = f"""
[ "$1" = test ] || exit 0
plain="$CFLAGS_TEST -I{TEST}"
for one in {objects}; do $CC $plain -c $one.c -o $one.o; done
$CC $CFLAGS -c {TEST}/reference.c -o {TEST}/reference.o
$CC $CFLAGS -c {TEST}/kernel.c -o {TEST}/kernel.o
around="{' '.join(f'{one}.o' for one in objects.split())}"
$CC -static $LDFLAGS {TEST}/reference.o $around -lm -o {TEST}/reference
$CC -static $LDFLAGS {TEST}/kernel.o {code.entry}.o $around -lm -o {TEST}/kernel
{assumed}# Inputs are from -1 to 1. If outputs are then not finite (roots, logarithms), they are from 0.5 to 1.5.
for inputs in usual positive; do
    $RUN ./{TEST}/reference reference {TEST}/expected < {TEST}/reference-$inputs.txt > {TEST}/reference.json
    grep -q '"nan": [1-9]' {TEST}/reference.json || break
done
$RUN ./{TEST}/kernel trial {TEST}/expected < {TEST}/kernel-$inputs.txt > {TEST}/kernel.json
if grep -q '"failure"' {TEST}/reference.json {TEST}/kernel.json || grep -Eq '"(wrong|unwritten)": [1-9]' {TEST}/kernel.json ||
   ! grep -q '"wrong": 0' {TEST}/kernel.json; then cat {TEST}/reference.json {TEST}/kernel.json; echo "{code.entry}: wrong"; exit 1; fi
echo "{code.entry}: right"
"""
    return f"""#!/bin/sh
# sh build.sh builds lib{code.entry}.a. sh build.sh test also builds and runs its self-test.
#
#   CC    a C compiler for {program.target}: gcc or clang (cc)        AR    its archiver (ar)
#   MCPU  its option for the processor ({machine or 'nothing'})        RUN   prefix to run programs, such as qemu-aarch64 (nothing)
set -e
cd "$(dirname "$0")"
CC=${{CC:-cc}}
AR=${{AR:-ar}}
MCPU=${{MCPU-{machine}}}
CFLAGS="${{CFLAGS:--O3}} -std=gnu99 -ffp-contract=fast -fno-math-errno -fno-trapping-math $MCPU"
CFLAGS_TEST="-Os -std=gnu99 -ffp-contract=off -fno-math-errno"
$CC $CFLAGS -c {code.entry}.c -o {code.entry}.o
$AR rcs lib{code.entry}.a {code.entry}.o
{test if program.task.reference is not None else ''}"""
