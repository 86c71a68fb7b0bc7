"""Writes a program for a board as files that need only a C compiler: C, header, linker script, build script, and a self-test for the whole machine.

The self-test is a separate image: start-up code, the trial program, the kernel, and the correct outputs, computed here in double precision. It fills the
inputs from a seed, runs the kernel, compares, and prints the result on the board's console.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansor.codegen.artifact import Artifact
from ansor.codegen.image import harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.compilers import SOURCE_FLAGS
from ansor.codegen.image.toolchain import IMAGE, LINK
from ansor.codegen.source import CSource
from ansor.codegen.trial.manifest import program_text
from ansor.codegen.trial.program import FOLDER as TRIAL
from ansor.errors import MeasureError
from ansor.measure.device import Job
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.measure.trial.fill import Fill, fills_of
from ansor.measure.trial.host_reference import HostReference, host_reference
from ansor.measure.trial.kept import KeptFile, kept_bytes
from ansor.measure.trial.proof import HostProof, growths
from ansor.measure.trial.recipe import check_lines, input_lines, recipe_text
from ansor.measure.worker import POSITIVE

TEST = "selftest"
"""The folder of the self-test."""

SECONDS = 60.0
"""The time limit of a self-test run, if the board has a watchdog."""

TOLD = """\
/* Data for the self-test: inputs from a seed, and the correct outputs. */
#include "bare.h"

static const unsigned long long expected[] = {{
{expected}
}};

static const char recipe[] =
{recipe};

extern const char ansor_trial_manifest[], ansor_data_end[];

static char *put(char *at, const char *text) {{
    while (*text) *at++ = *text++;
    return at;
}}

static char *put_number(char *at, uintptr_t number) {{
    for (int bit = 8 * (int)sizeof number - 4; bit >= 0; bit -= 4) *at++ = "0123456789abcdef"[number >> bit & 15];
    return at;
}}

void bare_known(void) {{
    char *at = put(ansor_asked, "trial");
    *at++ = 0;
    at = put_number(put(put_number(at, (uintptr_t)expected), " "), sizeof expected);
    *at++ = 0;
    *put(at, recipe) = 0;
    ansor_control.flags = BARE_ALONE;
    ansor_control.manifest = (uintptr_t)ansor_trial_manifest;
    ansor_control.heap_start = (uintptr_t)ansor_data_end, ansor_control.heap_end = {heap_end:#x}ul;
    ansor_control.limit = {limit};
}}
"""

BUILD = """\
#!/bin/sh
# sh build.sh builds lib{entry}.a. sh build.sh test also builds and runs an image for the board {board} that tests it.
#
#   CC      a C compiler for the board: "zig cc", clang, or a gcc without an operating system        AR   its archiver (zig ar)
#   MCPU    its option for the processor ({machine})
#   LDLIBS  further libraries to link, such as -lm for a gcc           RUN  the command that runs the image, instead of the board's simulator
set -e
cd "$(dirname "$0")"
CC=${{CC:-zig cc}}
AR=${{AR:-zig ar}}
MCPU=${{MCPU-{quoted}}}
CFLAGS="${{CFLAGS:--O3}} {flags} -ffp-contract=fast -fno-math-errno -fno-trapping-math -fno-sanitize=all $MCPU"
$CC $CFLAGS -c {entry}.c -o {entry}.o
rm -f lib{entry}.a
$AR rcs lib{entry}.a {entry}.o
"""

BUILD_TEST = """
[ "$1" = test ] || exit 0
plain="{plain} $MCPU -include {test}/board.h -I{test}/image -I{test}/trial"
objects=""
for one in {sources}; do $CC $plain -c {test}/$one.c -o {test}/$one.o; objects="$objects {test}/$one.o"; done
$CC $CFLAGS -DTRIAL_SMALL -c {test}/kernel.c -o {test}/kernel.o
$CC $MCPU -ffreestanding {link} -Wl,-T,board.ld {test}/kernel.o {entry}.o $objects $LDLIBS -o {test}/image.elf
if [ -n "$RUN" ]; then $RUN {test}/image.elf > {test}/said.txt < /dev/null || true
else
{start}
fi
if grep -q '"failure"' {test}/said.txt || grep -Eq '"(wrong|unwritten)": [1-9]' {test}/said.txt || ! grep -q '"wrong": 0' {test}/said.txt
then cat {test}/said.txt; echo "{entry}: wrong"; exit 1; fi
echo "{entry}: right"
"""


def board_files(code: CSource, board: Board, flags: Sequence[str], task: MeasureTask) -> Mapping[str, str]:
    """The text of each file, by its path in the folder, without the header. flags: compiler flags for this processor. Raises MeasureError when the correct
    outputs cannot be computed here."""
    machine = " ".join(map(shlex.quote, flags))
    words = {"entry": code.entry, "board": Path(board.name).stem, "flags": " ".join(SOURCE_FLAGS), "machine": machine, "quoted": shlex.quote(machine)}
    found = {f"{code.entry}.c": code.text, "board.ld": harness.script(board, told=False), "build.sh": BUILD.format(**words)}
    if task.reference is None:
        return found
    sources = ("image/bare", f"image/{Path(harness.STARTS[board.core.architecture]).stem}", "trial/trial", "told")
    plain = " ".join(one for one in (*harness.C_FLAGS, "-DBARE_KNOWN") if not one.startswith(("-I", "-g")))
    command, beside = _command(board)
    found["build.sh"] += BUILD_TEST.format(**words, test=TEST, sources=" ".join(sources), plain=plain, link=" ".join(LINK), start=command)
    found |= {f"{TEST}/image/{path.name}": path.read_text() for path in (*sorted(harness.FOLDER.glob("*.h")), *harness.sources(board)[:2])}
    found |= {f"{TEST}/trial/{path.name}": path.read_text() for path in (*sorted(TRIAL.glob("*.h")), TRIAL / "trial.c")}
    found[f"{TEST}/board.h"] = "".join(f"#define {one.removeprefix('-D').replace('=', ' ', 1)}\n" for one in harness.defines(board))
    found[f"{TEST}/kernel.c"] = f'#include "../{code.entry}.h"\n{program_text(code, small=True).removeprefix(code.text)}'
    found[f"{TEST}/told.c"] = _told(code, board, task, task.reference)
    return {**found, **beside}


def _command(board: Board) -> tuple[str, dict[str, str]]:
    """The shell command that runs the image on the board's simulator, and the files that it needs."""
    if not board.run.command:
        said = f"{board.name} has no simulator: load {TEST}/image.elf on the board; its answer is at ansor_answer, and on its console if it has one"
        return f"    echo {shlex.quote(said)}; exit 0", {}
    words, beside = [], {}
    for word in board.run.command:
        if word.startswith("/") and Path(word).is_file():
            name = f"{TEST}/{Path(word).name}"
            beside[name], word = Path(word).read_text(), name
        words.append(f"{TEST}/image.elf" if word == "IMAGE" else word)
    return f"    {shlex.join(words)} > {TEST}/said.txt < /dev/null || true", beside


def _told(code: CSource, board: Board, task: MeasureTask, reference: CSource) -> str:
    fills, here = _expected(code, task, reference)
    outputs = tuple(one for one in reference.arguments if one.role == "output")
    kept = KeptFile({one.name: here.outputs[one.name] for one in outputs}, dict(here.moves), here.input_scale)
    words = np.frombuffer(kept_bytes(kept, outputs), "<u8")
    rows = [", ".join(f"{word:#x}ull" for word in words[at : at + 6]) for at in range(0, len(words), 6)]
    measured = growths(code, task.rounding, here.outputs, here.moves, here.input_scale)
    recipe = recipe_text([*input_lines(code.arguments, fills), *check_lines(code, outputs, task.reduction, task.rounding, measured)])
    lines = "\n".join(f'    "{line}\\n"' for line in recipe.splitlines())
    return TOLD.format(expected="    " + ",\n    ".join(rows), recipe=lines, heap_end=board.heap_end, limit=board.ticks(SECONDS))


def _expected(code: CSource, task: MeasureTask, reference: CSource, positive: bool = False) -> tuple[dict[str, Fill], HostReference]:
    """How inputs are filled, and the resulting outputs. Floats are from -1 to 1; if outputs are then not finite (roots, logarithms), from 0.5 to 1.5."""
    floats = {one.name: POSITIVE for one in code.arguments if positive and one.dtype.startswith("float")}
    job = Job(task, Artifact(code, Path(), code.entry, IMAGE), Artifact(reference, Path(), reference.entry), TimingOptions())
    fills = fills_of(code.arguments, task.seed, floats | {name: (low, high) for name, low, high in task.ranges})
    here = host_reference(HostProof(), job, fills)
    if isinstance(here, Failure):
        raise MeasureError(f"asked to save {code.entry} with a self-test, whose right outputs cannot be computed: {here}")
    if positive or all(np.isfinite(one).all() for one in here.outputs.values()):
        return fills, here
    return _expected(code, task, reference, positive=True)
