"""Writes an integer network as a board's whole program: start-up code, main program, linker script, and a script that builds them without this package."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ansor.codegen.image import harness
from ansor.codegen.image.board import Board
from ansor.codegen.image.compilers import SOURCE_FLAGS, ZIG_FLAGS, clang_flags, gcc_flags, gcc_name, zig_flags
from ansor.codegen.image.toolchain import LINK, counted_flags
from ansor.codegen.trial.program import FOLDER as TRIAL
from ansor.integer.c_text import KERNELS, c_name
from ansor.integer.network_code import NetworkCode

FOLDER = "board"
"""The folder of the start-up code."""
SETTINGS = f"{FOLDER}/settings.h"
FIRMWARE, SCRIPT = "firmware.c", "firmware.ld"

MAIN = """\
/* The network as the whole program of a board. It prints the self-test's result, the cost of each layer, the counter before and after one run, and the bytes
 * of stack used. It prints on the console; without a console, or behind a wire (FIRMWARE_BEHIND_WIRE), it writes to memory at ansor_answer. */
#include "bare.h"
#include "net.h"
#include "trial/system.h"

static unsigned char arena[{word}_ARENA_BYTES] __attribute__((aligned({word}_ALIGNMENT)));
static unsigned int costs[{layers}];
static uint64_t before;

void firmware_after(int layer) {{
    const uint64_t now = counter_now();
    costs[layer] = (unsigned int)(now - before), before = now;
}}

static void say(const char *text, size_t size, unsigned int number) {{
    int digits = 8;
    system_say(text, size);
    while (digits > 1 && !(number >> (4 * digits - 4))) --digits;
    while (digits-- > 0) system_say("0123456789abcdef" + (number >> 4 * digits & 15), 1);
}}

int trial_main(const char *mode, const char *path) {{
    (void)mode, (void)path;
#if !defined(FIRMWARE_BEHIND_WIRE) && (defined(BOARD_CONSOLE_HTIF) || defined(BOARD_CONSOLE_DATA))
    ansor_control.flags = BARE_ALONE;
#endif
    {name}_selftest_fill(arena);
    system_mark(0);
    before = counter_now();
    {name}_run(arena);
    system_mark(1);
    say("selftest ", 9, (unsigned int){name}_selftest_check(arena));
    system_say("\\nlayers", 7);
    for (int layer = 0; layer < {layers}; ++layer) say(" ", 1, costs[layer]);
    system_say("\\n", 1);
    return 0;
}}
"""

BUILD = """\
#!/bin/sh
# Builds lib{name}.a and firmware.elf, the whole program of {board}: sh build.sh. `sh build.sh test` also runs its self-test.
#
#   CC    a C compiler for the board: {gcc} or another GCC, clang, or zig cc ({gcc})
#   MCPU  its option for the processor; known for these three        CFLAGS  of kernels and network (-O3)
#   RUN   what runs firmware.elf ({run})
set -e
cd "$(dirname "$0")"
CC=${{CC:-{gcc}}}
case "$CC" in
  *zig*) machine={zig} order={order} ;;
  *clang*) machine={clang} order={order} ;;
  *) machine={gcc_flags} order="" ;;
esac
CFLAGS="${{CFLAGS:--O3 $order}} ${{MCPU-$machine}} {source_flags}"
case "$CC" in *zig*) CFLAGS="$CFLAGS {zig_source_flags}" ;; esac
case "$CC" in *gcc) AR=${{AR:-${{CC%gcc}}ar}} ;; *) AR=${{AR:-ar}} ;; esac
objects=""
for one in {sources}; do $CC $CFLAGS -I. -c $one.c -o $one.o; objects="$objects $one.o"; done
$CC $CFLAGS -I. -c net.c -o net.o
rm -f lib{name}.a
$AR rcs lib{name}.a net.o $objects
for one in {board_sources} net firmware; do $CC $CFLAGS -I. -I{folder} -include {settings} -c $one.c -o {folder}/$(basename $one).o; done
$CC $CFLAGS {link} -Wl,-T,{script} {board_objects} {folder}/net.o {folder}/firmware.o $objects -o firmware.elf
[ "$1" = test ] || exit 0
said=$({run_command})
echo "$said"
case "$said" in *"selftest 0"*) echo "{name}: right" ;; *) echo "{name}: wrong"; exit 1 ;; esac
"""


def board_files(code: NetworkCode, board: Board) -> dict[str, str]:
    """The files for the board by their paths in the network's folder, in addition to the files of the network."""
    name = c_name(code)
    sources = [path for path in harness.sources(board) if path.name != "trial.c"]
    headers = [path for path in sorted(harness.FOLDER.glob("*.h"))]
    found = {f"{FOLDER}/{path.name}": path.read_text() for path in (*sources, *headers)}
    found |= {f"trial/{one}": (TRIAL / one).read_text() for one in ("system.h", "manifest.h")}
    found[SETTINGS] = settings_text(code, board)
    found[FIRMWARE] = MAIN.format(name=name, word=name.upper(), layers=len(code.calls))
    found[SCRIPT] = harness.script(board, told=False)
    found["build.sh"] = _build_text(code, board, [path.stem for path in sources])
    return found


def settings_text(code: NetworkCode, board: Board) -> str:
    """The header with the board's parameters for the start-up code, and the function that the network calls after each layer."""
    lines = ["TRIAL_SMALL", "TRIAL_SELECTED", f"{c_name(code).upper()}_AFTER firmware_after"]
    lines += [one.removeprefix("-D").replace("=", " ", 1) for one in harness.defines(board, apart=False)]
    return "\n".join([f"/* {board.name}: {board.about} */", *(f"#define {line}" for line in lines), ""])


def _build_text(code: NetworkCode, board: Board, starts: Sequence[str]) -> str:
    core, name = board.core, c_name(code)
    order = counted_flags(core.architecture) if board.counter.unit == "instructions" else ()
    run = " ".join("firmware.elf" if word == "IMAGE" else shlex.quote(word) for word in board.run.command)
    nothing = f'echo "{board.name} has no simulator: flash firmware.elf, and read its console, or ansor_answer" >&2; exit 1'
    return BUILD.format(
        source_flags=" ".join(SOURCE_FLAGS), zig_source_flags=" ".join(ZIG_FLAGS),
        name=name, board=board.name, gcc=gcc_name(core), run=run or "nothing", run_command=f"${{RUN:-{run}}}" if run else nothing,
        zig=shlex.quote(shlex.join(zig_flags(core))), clang=shlex.quote(shlex.join(clang_flags(core))), gcc_flags=shlex.quote(shlex.join(gcc_flags(core))),
        order=shlex.quote(shlex.join(order)), folder=FOLDER, settings=SETTINGS, script=SCRIPT,
        sources=" ".join(("weights", "selftest", *(f"{KERNELS}/{one.code.entry}" for one in code.kernels))), link=shlex.join(LINK),
        board_sources=" ".join(f"{FOLDER}/{one}" for one in starts), board_objects=" ".join(f"{FOLDER}/{one}.o" for one in starts),
    )  # fmt: skip
