"""Random programs (a declaration, a sketch of it, a row, a machine) as C, many in one translation unit, and their results when they run.

Compiled programs run in a forked child with guarded buffers, as candidates do while tuning; sanitized ones in a C program of their own with a buffer for every
tensor, so that the address sanitizer sees where each begins and ends.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.dialect import PRELUDE
from ansor.codegen.generate import generate
from ansor.codegen.pool_library import pool_library
from ansor.codegen.source import CSource
from ansor.codegen.sums import with_sums
from ansor.codegen.toolchain import Compiler, compile_shared
from ansor.errors import ScheduleError
from ansor.ir import access, interpreter
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.ir.loops import Loops, Node, Store
from ansor.ir.simplify import simplified
from ansor.measure.call import Call
from ansor.measure.harness import Harness, harness_library
from ansor.measure.isolate import Report, isolated
from ansor.measure.protocol import Message, call_data
from ansor.measure.verify import difference
from ansor.rules.base import SketchRule
from ansor.rules.multi_level_tiling import MultiLevelTiling
from ansor.rules.multi_level_tiling_with_fusion import MultiLevelTilingWithFusion
from ansor.rules.pack_operands import PackOperands
from ansor.rules.reduce_in_vectors import ReduceInVectors
from ansor.rules.tensorize import Tensorize
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import (
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    Fuse,
    Parallel,
    PragmaUnroll,
    Reorder,
    Rfactor,
    Split,
    SplitOuter,
    Step,
    StorageAlign,
    Unroll,
    Vectorize,
)
from ansor.search.derive import derive_sketches, spaces
from ansor.targets.base import Target, parse_target
from ansor.te.tensor import Tensor
from tests.declarations import Array, Case, Draw
from tests.manual.calls import drawn_schedule
from tests.mixed_declarations import small_values

TARGETS = tuple(
    parse_target(text)
    for text in (
        "cpu -mcpu=haswell -threads=1",
        "cpu -mcpu=haswell -threads=2",
        "cpu -mcpu=x86-64-v4 -threads=1",
        "cpu -mcpu=x86-64-v4 -threads=2",
        "cpu -mcpu=x86-64 -threads=2",
        "cpu -mcpu=haswell -threads=2 -vector-bytes=4",
        "cpu -mcpu=znver4 -threads=1",
    )
)
KEEN: dict[str, SketchRule] = {
    "pack_operands": PackOperands(reuse=1),
    "reduce_in_vectors": ReduceInVectors(least=2),
    "multi_level_tiling_with_fusion": MultiLevelTilingWithFusion(uneven=1),
    "multi_level_tiling": MultiLevelTiling(uneven=1),
    "tensorize": Tensorize(uneven=1),
}
QUICK = ("-O1", "-ftrivial-auto-var-init=pattern")  # so that a tile element which is read before it is written is detected
SANITIZED = ("-std=gnu99", "-O0", "-g1", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-pthread")


@dataclass(frozen=True)
class Program:
    """One program. `case` has the inputs and the expected outputs. Its loops and its text are made once: they are asked for several times."""

    case: Case
    sketch: Sketch
    row: tuple[int, ...]
    target: Target
    entry: str

    @cached_property
    def loops(self) -> Loops:
        """Its loop nests."""
        return self.sketch.lower_row(self.row, self.entry)

    @cached_property
    def source(self) -> CSource:
        """Its C text."""
        return generate(self.loops, self.target.machine, self.entry)

    def __str__(self) -> str:
        lines = [f"{self.case.kind}, target {self.target}", str(self.case.dag), f"sketch {self.sketch.name}", f"row {list(self.row)}", str(self.sketch)]
        return "\n".join(lines)


def case_of(tensors: Sequence[Tensor], **values: Array) -> Case:
    """A declaration written by hand; inputs that are not given are small whole numbers."""
    dag, rng = Dag(tensors), np.random.default_rng(0)
    inputs = {tensor.name: values.get(tensor.name, small_values(rng, tensor)) for tensor in dag.inputs}
    results = evaluate(dag.outputs, inputs)
    return Case("by hand", dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, results, strict=True)})


def sketches(case: Case, target: Target) -> list[Sketch]:
    """Every annotated space of rules that pack and split unevenly wherever they can, and every sketch of the target's own rules."""
    keen = tuple(KEEN.get(rule, rule) for rule in target.rules)
    found = [*spaces(case.dag, target, keen), *derive_sketches(case.dag, target.rules, target)]
    return list({sketch.name: sketch for sketch in found}.values())


def by_hand(draw: Draw, case: Case) -> Sketch:
    """Random steps, as a user may write them: lengths that do not divide, anything computed anywhere; refused steps are left out."""
    sketch = Sketch(case.dag)
    for _ in range(draw.integer(1, 8)):
        sketch = _following(sketch, _step(draw, sketch))
    for stage in sketch.state.stages:
        steps: list[Step] = [Parallel(stage.name, draw.integer(1, 2)), PragmaUnroll(stage.name, 16)]
        if stage.loops and stage.kinds[stage.loops[-1]] == "spatial":
            steps.append(Vectorize(stage.name, stage.loops[-1]))
        for step in steps:
            if draw.chance(60):
                sketch = _following(sketch, step)
    return sketch


def _following(sketch: Sketch, step: Step | None) -> Sketch:
    if step is None:
        return sketch
    try:
        following = sketch.then(step)
        following.lower_row(())
    except ScheduleError:
        return sketch
    return following


def _step(draw: Draw, sketch: Sketch) -> Step | None:
    stage, other = draw.pick(sketch.state.stages), draw.pick(sketch.state.stages)
    if not stage.loops:
        return None
    place = draw.integer(0, len(stage.loops) - 1)
    form = draw.integer(0, 9)
    if form <= 2:
        cut = SplitOuter if draw.chance(30) else Split
        return cut(stage.name, stage.loops[place], (draw.integer(1, 5),), 2)
    if form == 3:
        return Split(stage.name, stage.loops[place], (draw.integer(1, 3), draw.integer(1, 4)), 3)
    if form == 4:
        return Fuse(stage.name, stage.loops[place : place + 2])
    if form == 5:
        spatial = [loop for loop in stage.loops if stage.kinds[loop] == "spatial"]
        reduced = [loop for loop in stage.loops if stage.kinds[loop] != "spatial"]
        kept = draw.integer(0, len(spatial))
        order = (*spatial[:kept], *reduced, *spatial[kept:])
        return Reorder(stage.name, order if draw.chance(60) else (*stage.loops[place:], *stage.loops[:place]))
    if form <= 7 and other.loops:
        return ComputeAt(stage.name, other.name, draw.pick(other.loops))
    if form == 8 and draw.chance(30):
        return Rfactor(stage.name, stage.loops[place], draw.integer(0, stage.tensor.ndim))
    if form == 8:
        return draw.pick([CacheWrite(stage.name), ComputeInline(stage.name), StorageAlign(stage.name, 8, draw.integer(0, 7))])
    read = draw.pick([*(read.tensor.name for read in access.reads(stage.tensor)), ""])
    return CacheRead(read, (stage.name,)) if read else Unroll(stage.name, stage.loops[place])


def programs_of(draw: Draw, case: Case, rows: int = 1) -> list[Program]:
    """Random steps, random calls, and every sketch of a declaration for one target, each with some rows, whether or not they fit the machine."""
    target = draw.pick(TARGETS)
    found = [Program(case, sketch, (), target, "program") for sketch in (by_hand(draw, case), drawn_schedule(draw, case.dag)[0])]
    for sketch in sketches(case, target):
        for _ in range(rows if sketch.choices else 1):
            row = tuple(draw.integer(0, int(size) - 1) for size in sketch.sizes)
            found.append(Program(case, sketch, row, target, "program"))
    return found


# the interpreter --------------------------------------------------------------------------------------------------------------------------------------


def iterations(nodes: Sequence[Node]) -> int:
    """How many statements a program runs, which is the cost of interpreting it."""
    return sum(1 if isinstance(node, Store) else int(node.var.extent) * iterations(node.body) for node in nodes)


def interpreted(program: Program, limit: int = 1 << 30) -> str | None:
    """What is wrong with the interpreter's results for a program; '' if nothing is, None if it runs more than `limit` statements."""
    loops = program.loops
    if iterations(loops.body) > limit:
        return None
    return _verdict(program.case, interpreter.run(loops, program.case.inputs), program.case.precise)


def _verdict(case: Case, found: dict[str, Array], expected: dict[str, Array]) -> str:
    scale = max([1.0, *(float(np.abs(value).max()) for value in case.inputs.values() if value.dtype.kind == "f" and value.size)])
    for name, value in expected.items():
        wrong = difference(name, found[name], value, reduction=case.dag.reduce_length, input_scale=scale, rounding=case.dag.rounding)
        if wrong:
            return wrong
    return ""


# compiled ---------------------------------------------------------------------------------------------------------------------------------------------


def together(sources: Sequence[CSource]) -> str:
    """One translation unit. Helpers have one meaning everywhere, so each is written once; everything else begins with the entry's name."""
    lines: list[str] = [PRELUDE]
    seen: dict[str, str] = {}
    for source in sources:
        for line in source.text.replace(PRELUDE, "", 1).splitlines():
            helper = re.match(r"typedef \S.*? (\w+) __attribute__|static inline \w[\w ]* (\w+)\(", line)
            if helper is None:
                lines.append(line)
                continue
            name = helper[1] or helper[2]
            if name not in seen:
                lines.append(line)
            assert seen.setdefault(name, line) == line, f"helper {name} has two meanings:\n{seen[name]}\n{line}"
    return "\n".join(lines) + "\n"


def numbered(programs: Sequence[Program]) -> list[Program]:
    """The programs under entry names of their own."""
    return [replace(program, entry=f"program{k}") for k, program in enumerate(programs)]


@dataclass(frozen=True)
class Bench:
    """Where compiled programs run: a compiler, its helper libraries, a folder."""

    compiler: Compiler
    folder: Path
    flags: tuple[str, ...] = QUICK

    @property
    def _flags(self) -> tuple[str, ...]:
        """zig turns -O1 into -O2, which dominates the compile time, unless the option is passed on to its clang."""
        return (*self.flags, "-Xclang", "-O1") if "-O1" in self.flags and self.compiler.kind == "zig" else self.flags

    def problems(self, programs: Sequence[Program], timeout: float = 60.0) -> list[str]:
        """For each program what is wrong with it; '' if nothing is."""
        programs = numbered(programs)
        sources = [program.source for program in programs]
        library = self.folder / "programs.so"
        compiled = compile_shared(self.compiler, [together(sources)], library, flags=self._flags, timeout=300)
        if not compiled.ok:
            if len(programs) == 1:
                return [f"does not compile: {compiled.text}"]
            return [found for program in programs for found in self.problems([program], timeout)]
        try:
            return self._run(programs, sources, library, timeout)
        finally:
            library.unlink()

    def _run(self, programs: Sequence[Program], sources: Sequence[CSource], library: Path, timeout: float) -> list[str]:
        harness, pool = Harness(harness_library(self.compiler)), pool_library(self.compiler)
        problems: dict[int, str] = {}
        begin = 0
        while begin < len(programs):

            def body(report: Report, begin: int = begin) -> None:
                for k in range(begin, len(programs)):
                    report(cast(Message, {"begun": k}))
                    call = Call(harness, call_data(sources[k], str(library)), programs[k].case.inputs, pool)
                    call.run(1)
                    damage = call.trespass()
                    outputs = {argument.name: call.output(argument.name) for argument in call.arguments if argument.role == "output"}
                    problem = damage.text if damage else _verdict(programs[k].case, outputs, programs[k].case.precise)
                    report(cast(Message, {"problem": problem}))

            outcome = isolated(harness, body, timeout=timeout)
            last = begin
            for message in outcome.messages:
                said = cast("dict[str, object]", message)
                if "begun" in said:
                    last = int(cast(int, said["begun"]))
                if "problem" in said:
                    problems[last] = str(said["problem"])
            if outcome.failure is not None:
                problems[last] = f"{outcome.failure.kind}: {outcome.failure.text}"
            begin = last + 1
        return [problems[k] for k in range(len(programs))]


# sanitized --------------------------------------------------------------------------------------------------------------------------------------------

DRIVER = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *in, *out;
static void *scratch[64];

static void *block(long bytes) {
  void *found;
  if (posix_memalign(&found, 64, bytes)) exit(3);
  memset(found, 0xFF, bytes);
  return found;
}
static void *filled(long bytes) {
  void *found = block(bytes);
  if (fread(found, 1, bytes, in) != (size_t)bytes) exit(4);
  return found;
}

struct part { void (*body)(void *, long, long); void *ctx; long begin, end; };
static void *run_part(void *argument) {
  struct part *part = argument;
  part->body(part->ctx, part->begin, part->end);
  return NULL;
}
static void two_threads(void *pool, void (*body)(void *, long, long), void *ctx, long n) {
  struct part parts[2] = {{body, ctx, 0, n / 2}, {body, ctx, n / 2, n}};
  pthread_t other;
  (void)pool;
  if (pthread_create(&other, NULL, run_part, &parts[0])) exit(5);
  run_part(&parts[1]);
  pthread_join(other, NULL);
}
"""


@cache
def sanitizer_compiler() -> str:
    """The path of a gcc that has the sanitizers' runtime; '' if there is none."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return ""
    trial = subprocess.run([gcc, *SANITIZED, "-x", "c", "-", "-o", "/dev/null"], input="int main(void) { return 0; }", text=True, capture_output=True)
    return gcc if trial.returncode == 0 else ""


def sanitized_problems(programs: Sequence[Program], folder: Path, gcc: str, timeout: float = 120.0) -> list[str]:
    """For each program what the sanitizers or the comparison report; '' if nothing."""
    programs = numbered(programs)
    (folder / "driver.c").write_text(_driver(programs))
    command = [gcc, *SANITIZED, "-march=native", "driver.c", "-o", "driver", "-lm"]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if compiled.returncode:
        if len(programs) == 1:
            return [f"does not compile: {compiled.stderr[:2000]}"]
        return [found for program in programs for found in sanitized_problems([program], folder, gcc, timeout)]
    problems = [""] * len(programs)
    begin = 0
    while begin < len(programs):
        _write_inputs(programs[begin:], folder / "inputs")
        (folder / "outputs").write_bytes(b"")
        run = subprocess.run([str(folder / "driver"), str(begin)], cwd=folder, capture_output=True, text=True, timeout=timeout, errors="replace")
        done = [int(k) for k in re.findall(r"^done (\d+)$", run.stdout, re.MULTILINE)]
        data = (folder / "outputs").read_bytes()
        for k in done:
            found, data = _outputs(programs[k], data)
            problems[k] = _verdict(programs[k].case, found, programs[k].case.precise)
        begin += len(done)
        if run.returncode:
            problems[begin] = f"code {run.returncode}: {run.stderr[:3000]}"
            begin += 1
    return problems


def _driver(programs: Sequence[Program]) -> str:
    calls = []
    sources = []
    for k, program in enumerate(programs):
        source = program.source
        count = iter(range(1000))
        text = re.sub(r"\(void \*\)\(workspace \+ \d+\)", lambda _, count=count: f"scratch[{next(count)}]", source.text)  # type: ignore[misc]
        sources.append(CSource(text, source.entry, source.arguments, source.workspace_bytes, source.threads))
        calls.append("\n".join(_calling(k, program, source)))
    body = "\n".join(calls)
    return DRIVER + together(sources) + f"""
int main(int count, char **words) {{
  long first = atol(words[1]);
  void *args[64];
  in = fopen("inputs", "rb");
  out = fopen("outputs", "wb");
{body}
  return 0;
}}
"""


def _calling(k: int, program: Program, source: CSource) -> Iterator[str]:
    yield f"  if (first <= {k}) {{"
    sizes = [argument.physical_size * np.dtype(argument.dtype).itemsize for argument in source.arguments]
    for place, (argument, size) in enumerate(zip(source.arguments, sizes, strict=True)):
        yield f"    args[{place}] = {'block' if argument.role == 'output' else 'filled'}({size});"
    scratch = with_sums(simplified(program.loops))[0].intermediates
    for place, buffer in enumerate(scratch):
        yield f"    scratch[{place}] = block({int(buffer.size) * np.dtype(buffer.dtype).itemsize});"
    yield f"    {source.entry}(args, NULL, two_threads, NULL);"
    for place, (argument, size) in enumerate(zip(source.arguments, sizes, strict=True)):
        if argument.role == "output":
            yield f"    fwrite(args[{place}], 1, {size}, out);"
        yield f"    free(args[{place}]);"
    yield from (f"    free(scratch[{place}]);" for place in range(len(scratch)))
    yield f'    fflush(out); printf("done {k}\\n"); fflush(stdout);'
    yield "  }"


def _write_inputs(programs: Sequence[Program], path: Path) -> None:
    with path.open("wb") as file:
        for program in programs:
            for argument in program.source.arguments:
                if argument.role != "output":
                    file.write(argument.physical(program.case.inputs[argument.name].astype(argument.dtype, copy=False)).tobytes())


def _outputs(program: Program, data: bytes) -> tuple[dict[str, NDArray[np.generic]], bytes]:
    found: dict[str, NDArray[np.generic]] = {}
    for argument in program.source.arguments:
        if argument.role == "output":
            dtype = np.dtype(argument.dtype)
            size = argument.physical_size * dtype.itemsize
            found[argument.name] = np.frombuffer(data[:size], dtype).reshape(argument.shape)
            data = data[size:]
    return found, data
